/* What the tools of this folder share; others see tool.h and toolbox.h. */
#pragma once

#include "tools/toolbox.h"
#include "json/jv.h"

#define TOOL_ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define TOOL_PATH_MAX 4096u /* bytes, with the NUL */
#define TOOL_HOME "/workspace"

/* Of a row: arguments and their struct, members of what is told. */
#define TOOL_IN(fields_, struct_) \
	.in = fields_, .n_in = TOOL_ARRAY_LEN(fields_), .size = sizeof(struct struct_)
#define TOOL_OUT(fields_) .out = fields_, .n_out = TOOL_ARRAY_LEN(fields_)

struct tools {
	struct tools_deps deps;
	const struct tool_table *tables[TOOLS_TABLES_MAX];
	size_t n_tables;
	struct jv_doc *nothing; /* owned: {} */
};

extern const struct tool_table tools_exec_table, tools_code_table, tools_read_table,
	tools_file_table, tools_edit_table, tools_process_table, tools_output_table,
	tools_sandbox_table, tools_package_table, tools_skill_table, tools_address_table,
	tools_search_table;

/* ---- toolbox.c ---- */

#define TOOL_FIELDS_MAX 32u /* arguments of a tool */

/* Arguments as this daemon takes them: with the bounds of its settings; what may be absent may be
 * null, as models have to say it that are held to a schema strictly; and sandbox_id, at `box_at`,
 * where that is among them. Fills in `args`, the tool's struct. Returns how many there are. */
size_t tools_fields(const struct tools *all, const struct tool *tool, bool is_bound, size_t box_at,
		    struct jv_field ret[TOOL_FIELDS_MAX + 1], void *args);
#define TOOL_BOX_AT(tool) (((tool)->size + 15) & ~(size_t)15) /* behind its struct */
/* Of a struct's fields, the one of this name. */
struct jv_field *tools_field(struct jv_field *fields, const char *name);
/* How long a command may run: for set_bounds. */
void tools_bound_timeout(const struct tools *all, struct jv_field *in, uint64_t *timeout_ms);

/* ---- note.c ---- */

/* A line of the audit log. False: it does not take any now. */
bool tool_note(const struct tool_call *t, const char *outcome);

/* ---- place.c ---- */

/* The path as the box knows it, in the arena: a relative one begins in TOOL_HOME. NULL after
 * tool_fail(). */
const char *tool_path(struct tool_call *t, const char *path);
/* One that lives, of those that the caller may see; NULL. */
struct sandbox *tool_look_up(const struct tool_call *t, const char *id_or_name);
void tool_set_box(struct tool_call *t, const struct sandbox *sb);
/* Variables as a list of "NAME=value"; false after tool_fail(). */
struct jv_strings;
struct sandbox_pair;
bool tool_env(struct tool_call *t, const struct jv_strings *given, const struct sandbox_pair **ret,
	      size_t *ret_n);
#define TOOL_ENV_TEXT_MAX ((16u << 10) + 256u) /* bytes of one */
#define TOOL_ENV_FIELD(struct_, member_, help_)                                   \
	JV_FIELD("env", STRINGS, struct struct_, member_, .max = SANDBOX_ENV_MAX, \
		 .text_max = TOOL_ENV_TEXT_MAX, .help = help_ ", each as NAME=value")
/* The sandbox that is meant, if it is still there. Borrowed for this turn. */
struct sandbox *tool_find_box(const struct tool_call *t);
/* `structured` is whole: the end, with its text. */
void tool_end(struct tool_call *t, struct jw *w);
const char *tool_grant(const struct tool_call *t); /* of a sandbox that is made for it; NULL */
const char *tool_owner(const struct tool_call *t); /* whose things may be seen; NULL: everybody's */
