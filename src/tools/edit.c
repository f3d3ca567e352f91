/* edit_file, search_files: the box's own search does the work. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "config/config.h"
#include "sandbox/files.h"
#include "tools/edit_scan.h"
#include "tools/file_work.h"
#include "tools/impl.h"

#define OLD_MAX (16u << 10) /* bytes; a request to a box is 64 KiB at the most */
#define NEW_MAX (32u << 10)
#define GLOB_MAX 256
#define FOUND_DEFAULT 100u
#define FOUND_MAX 1000u
#define LINE_BYTES 300u
#define SKIPPED_MAX 20u         /* that are told by name */
#define WHOLE_MAX (1u << 20)    /* bytes of a file whose new lines are told */
#define CHANGES_MAX 20u         /* places whose new lines are told */
#define CHANGE_BYTES (4u << 10) /* of one */

/* ---- edit_file ---- */

struct edit_args {
	const char *path, *old_text, *new_text;
	bool replace_all, dry_run;
};

struct edit {
	struct file_work work; /* data: the file as it was, or nothing when that is too long */
	bool is_real;          /* this time the file is changed */
	uint64_t count;        /* how often the text is there */
	const char *skipped;   /* arena: why the file was not looked at; NULL: it was */
};

static void edit_start(struct edit *e, bool is_real);
static void edit_read(struct edit *e);

static void edit_found(void *user, const struct guest_found *f)
{
	struct edit *e = user;

	if (f->kind == FOUND_FILE)
		e->count += f->number;
	else if (f->kind == FOUND_SKIPPED)
		e->skipped = arena_strndup(e->work.call->arena, f->text, strlen(f->text));
}

/* The lines that are new, as they are now: "changes". */
static void write_changes(const struct edit *e, struct jw *w)
{
	const struct edit_args *a = e->work.call->args;
	struct edit_scan s;
	struct edit_change c;

	jw_key(w, "changes");
	jw_array_begin(w);
	edit_scan_begin(&s, buf_str(&e->work.data), e->work.data.len, a->old_text, a->new_text);
	for (unsigned i = 0; i < CHANGES_MAX && edit_scan_next(&s, &c); i++) {
		jw_object_begin(w);
		jw_uint_field(w, "line", c.line);
		jw_key(w, "text");
		jw_string_n(w, buf_str(&c.text),
			    c.text.len < CHANGE_BYTES ? c.text.len : CHANGE_BYTES);
		jw_object_end(w);
		buf_done(&c.text);
	}
	jw_array_end(w);
}

static void edit_tell(struct edit *e)
{
	struct tool_call *t = e->work.call;
	struct jw w = jw_begin(&t->structured);

	jw_object_begin(&w);
	jw_bool_field(&w, "ok", true);
	jw_str_field(&w, "path", e->work.path);
	jw_uint_field(&w, "replacements", e->count);
	jw_bool_field(&w, "dry_run", !e->is_real);
	write_changes(e, &w);
	jw_object_end(&w);
	file_work_end(&e->work);
	tool_end(t, &w);
}

static void edit_done(void *user, uint64_t count)
{
	struct edit *e = user;
	const struct edit_args *a = e->work.call->args;
	struct err err = { 0 };

	(void)count;
	e->work.op = NULL;
	if (e->skipped)
		(void)err_set(&err, EINVAL, "it cannot be edited: %s", e->skipped);
	else if (e->count == 0)
		(void)err_set(&err, ENOENT,
			      "old_text is not in the file: it must be there exactly as given, "
			      "blanks and ends of lines included");
	else if (e->count > 1 && !a->replace_all)
		(void)err_set(&err, EEXIST,
			      "old_text is there %" PRIu64
			      " times: give more of what is around it, or replace_all",
			      e->count);
	if (err.code)
		return file_work_fail(&e->work, &err);
	if (e->is_real)
		return edit_tell(e);
	edit_read(e);
}

/* ---- what it was like: for the lines that are told ---- */

static void edit_go_on(struct edit *e)
{
	const struct edit_args *a = e->work.call->args;

	if (a->dry_run)
		return edit_tell(e);
	edit_start(e, true);
}

static void read_data(void *user, const void *data, size_t n)
{
	struct edit *e = user;

	if (n <= WHOLE_MAX - e->work.data.len && buf_append(&e->work.data, data, n) == 0)
		return;
	file_cancel(TAKE(e->work.op));
	buf_done(&e->work.data);
	edit_go_on(e);
}

static void read_done(void *user, uint64_t count)
{
	struct edit *e = user;

	(void)count;
	e->work.op = NULL;
	edit_go_on(e);
}

static void edit_read(struct edit *e)
{
	static const struct file_ops ops = {
		.data = read_data,
		.done = read_done,
		.failed = file_work_failed,
	};

	e->work.data.max = WHOLE_MAX;
	(void)file_work_start(&e->work, &(struct guest_file){ .op = FILE_READ }, &ops);
}

/* Looked at first: whether the text is there once is known before anything is changed. */
static void edit_start(struct edit *e, bool is_real)
{
	static const struct file_ops ops = {
		.found = edit_found,
		.done = edit_done,
		.failed = file_work_failed,
	};
	const struct edit_args *a = e->work.call->args;
	struct guest_file f = {
		.op = FILE_REPLACE,
		.flags = is_real ? 0 : FILE_DRY_RUN,
		.search = { .limit = 1,
			    .line_bytes = LINE_BYTES,
			    .name = "",
			    .exclude = "",
			    .pattern = a->old_text,
			    .replacement = a->new_text },
	};

	e->is_real = is_real;
	e->count = 0;
	(void)file_work_start(&e->work, &f, &ops);
}

static void run_edit(struct tool_call *t)
{
	const struct edit_args *a = t->args;
	struct edit *e;

	if (strcmp(a->old_text, a->new_text) == 0)
		return tool_fail(t, "new_text: it is the same as old_text");
	e = file_work_create(t, sizeof(*e), a->path);
	if (e)
		edit_start(e, false);
}

static const struct jv_field edit_in[] = {
	JV_FIELD("path", STRING, struct edit_args, path, .flags = JV_REQUIRED, .min = 1,
		 .max = TOOL_PATH_MAX - 1, .help = "the file; relative ones begin in /workspace"),
	JV_FIELD("old_text", STRING, struct edit_args, old_text, .flags = JV_REQUIRED, .min = 1,
		 .max = OLD_MAX,
		 .help = "the text to replace, exactly as it is in the file; may be several lines"),
	JV_FIELD("new_text", STRING, struct edit_args, new_text, .flags = JV_REQUIRED,
		 .max = NEW_MAX, .help = "the text that replaces it"),
	JV_FIELD("replace_all", BOOL, struct edit_args, replace_all,
		 .help = "replace every occurrence; otherwise there must be exactly one"),
	JV_FIELD("dry_run", BOOL, struct edit_args, dry_run,
		 .help = "change nothing: only return what would change"),
};
static const struct jv_field change_out[] = {
	{ .name = "line", .type = JV_TYPE_U64, .flags = JV_REQUIRED, .help = "the first of them" },
	{ .name = "text", .type = JV_TYPE_STRING, .flags = JV_REQUIRED },
};
static const struct jv_field edit_out[] = {
	{ .name = "ok", .type = JV_TYPE_BOOL, .flags = JV_REQUIRED },
	{ .name = "path", .type = JV_TYPE_STRING, .flags = JV_REQUIRED },
	{ .name = "replacements", .type = JV_TYPE_U64, .flags = JV_REQUIRED },
	{ .name = "dry_run", .type = JV_TYPE_BOOL, .flags = JV_REQUIRED },
	{ .name = "changes",
	  .type = JV_TYPE_OBJECTS,
	  .flags = JV_REQUIRED,
	  .sub = change_out,
	  .sub_count = TOOL_ARRAY_LEN(change_out),
	  .help = "the lines that changed, as they are now; of a file above 1 MiB none" },
};

/* ---- search_files ---- */

struct search_args {
	const char *path, *name, *exclude, *pattern;
	bool regex, ignore_case;
	uint32_t context, limit;
};

struct hunt {
	struct file_work work;
	struct jw w;  /* writes the list, into work.data */
	bool is_full; /* there was more than a model is given */
	uint64_t n_skipped;
	const char *skipped[SKIPPED_MAX]; /* arena */
};

/* Whether there is room for one more. */
static bool takes(struct hunt *h)
{
	h->is_full =
		h->is_full || h->work.data.len >= h->work.call->all->deps.config->mcp_output_bytes;
	return !h->is_full;
}

static void hunt_entry(void *user, const struct guest_entry *e)
{
	struct hunt *h = user;

	if (!takes(h))
		return;
	jw_object_begin(&h->w);
	jw_str_field(&h->w, "path", e->path);
	jw_str_field(&h->w, "type", file_type_name(e->type));
	jw_uint_field(&h->w, "size", e->size);
	jw_object_end(&h->w);
}

static void skipped(struct hunt *h, const struct guest_found *f)
{
	if (h->n_skipped < SKIPPED_MAX)
		h->skipped[h->n_skipped] =
			arena_printf(h->work.call->arena, "%s: %s", f->path, f->text);
	h->n_skipped++;
}

static void hunt_found(void *user, const struct guest_found *f)
{
	struct hunt *h = user;

	if (f->kind == FOUND_SKIPPED)
		return skipped(h, f);
	if ((f->kind != FOUND_MATCH && f->kind != FOUND_CONTEXT) || !takes(h))
		return;
	jw_object_begin(&h->w);
	jw_str_field(&h->w, "path", f->path[0] ? f->path : h->work.path);
	jw_uint_field(&h->w, "line", f->number);
	jw_str_field(&h->w, "text", f->text);
	if (f->kind == FOUND_CONTEXT)
		jw_bool_field(&h->w, "is_context", true);
	jw_object_end(&h->w);
}

static void write_skipped(struct hunt *h, struct jw *w)
{
	jw_uint_field(w, "skipped", h->n_skipped);
	jw_key(w, "skipped_files");
	jw_array_begin(w);
	for (uint64_t i = 0; i < h->n_skipped && i < SKIPPED_MAX; i++)
		jw_string(w, h->skipped[i] ? h->skipped[i] : "");
	jw_array_end(w);
}

static void hunt_done(void *user, uint64_t count)
{
	struct hunt *h = user;
	struct tool_call *t = h->work.call;
	const struct search_args *a = t->args;
	struct jw w = jw_begin(&t->structured);

	h->work.op = NULL;
	jw_array_end(&h->w);
	if (jw_end(&h->w) < 0)
		return file_work_fail(&h->work,
				      &(struct err){ E2BIG, "too much was found: look for less" });
	jw_object_begin(&w);
	jw_str_field(&w, "path", h->work.path);
	jw_raw_field(&w, "matches", buf_str(&h->work.data), h->work.data.len);
	jw_bool_field(&w, "truncated", count > a->limit || h->is_full);
	write_skipped(h, &w);
	jw_object_end(&w);
	file_work_end(&h->work);
	tool_end(t, &w);
}

static const char *given(const char *text)
{
	return text ? text : "";
}

static void run_search(struct tool_call *t)
{
	static const struct file_ops ops = {
		.entry = hunt_entry,
		.found = hunt_found,
		.done = hunt_done,
		.failed = file_work_failed,
	};
	const struct search_args *a = t->args;
	struct guest_file f = {
		.op = a->pattern ? FILE_GREP : FILE_FIND,
		.flags = (a->regex ? FILE_REGEX : 0) | (a->ignore_case ? FILE_ICASE : 0),
		.search = { .limit = a->limit,
			    .context = a->context,
			    .line_bytes = LINE_BYTES,
			    .name = given(a->name),
			    .exclude = given(a->exclude),
			    .pattern = given(a->pattern),
			    .replacement = "" },
	};
	struct hunt *h;

	if (!a->pattern && !a->name)
		return tool_fail(t, "want a name to look for, or a pattern, or both");
	h = file_work_create(t, sizeof(*h), a->path);
	if (!h)
		return;
	h->w = jw_begin(&h->work.data);
	jw_array_begin(&h->w);
	(void)file_work_start(&h->work, &f, &ops);
}

static const struct jv_field search_in[] = {
	JV_FIELD("path", STRING, struct search_args, path, .min = 1, .max = TOOL_PATH_MAX - 1,
		 .help = "directory to search, with everything below it"),
	JV_FIELD("name", STRING, struct search_args, name, .min = 1, .max = GLOB_MAX,
		 .help = "names of files, such as *.py; with a slash in it, paths"),
	JV_FIELD("exclude", STRING, struct search_args, exclude, .min = 1, .max = GLOB_MAX,
		 .help = "names that are left out with all below them, such as node_modules"),
	JV_FIELD("pattern", STRING, struct search_args, pattern, .min = 1, .max = OLD_MAX,
		 .help = "text to look for in the files; without it, names are all that is "
			 "looked at"),
	JV_FIELD("regex", BOOL, struct search_args, regex,
		 .help = "the pattern is a POSIX extended regular expression"),
	JV_FIELD("ignore_case", BOOL, struct search_args, ignore_case,
		 .help = "letters match in either case"),
	JV_FIELD("context", U32, struct search_args, context, .max = GUEST_CONTEXT_MAX,
		 .help = "number of lines to return before and after each match"),
	JV_FIELD("limit", U32, struct search_args, limit, .min = 1, .max = FOUND_MAX,
		 .help = "number of matches to return"),
};
static const struct search_args search_defaults = { .path = ".", .limit = FOUND_DEFAULT };
static const struct jv_field match_out[] = {
	{ .name = "path",
	  .type = JV_TYPE_STRING,
	  .flags = JV_REQUIRED,
	  .help = "below the path that was searched" },
	{ .name = "line", .type = JV_TYPE_U64 },
	{ .name = "text", .type = JV_TYPE_STRING },
	{ .name = "is_context", .type = JV_TYPE_BOOL, .help = "it is near one that matches" },
	{ .name = "type", .type = JV_TYPE_STRING },
	{ .name = "size", .type = JV_TYPE_U64 },
};
static const struct jv_field search_out[] = {
	{ .name = "path", .type = JV_TYPE_STRING, .flags = JV_REQUIRED },
	{ .name = "matches",
	  .type = JV_TYPE_OBJECTS,
	  .flags = JV_REQUIRED,
	  .sub = match_out,
	  .sub_count = TOOL_ARRAY_LEN(match_out) },
	{ .name = "truncated", .type = JV_TYPE_BOOL, .flags = JV_REQUIRED },
	{ .name = "skipped",
	  .type = JV_TYPE_U64,
	  .flags = JV_REQUIRED,
	  .help = "files that could not be looked at" },
	{ .name = "skipped_files", .type = JV_TYPE_STRINGS, .flags = JV_REQUIRED },
};

/* ---- the table ---- */

static const struct tool rows[] = {
	{ .name = "edit_file",
	  .title = "Edit a file",
	  .about = "Replaces a text in a file of the sandbox with another, and returns the lines "
		   "that changed. The file must contain the old text exactly as given, and only "
		   "once unless replace_all is set.",
	  .in = edit_in,
	  .n_in = TOOL_ARRAY_LEN(edit_in),
	  .size = sizeof(struct edit_args),
	  .out = edit_out,
	  .n_out = TOOL_ARRAY_LEN(edit_out),
	  .hints = TOOL_DESTRUCTIVE,
	  .flags = TOOL_IN_BOX,
	  .scopes = SCOPE_FILE_READ | SCOPE_FILE_WRITE,
	  .run = run_edit },
	{ .name = "search_files",
	  .title = "Search files",
	  .about = "Finds files in the sandbox by name, or lines in them by their text.",
	  .in = search_in,
	  .n_in = TOOL_ARRAY_LEN(search_in),
	  .size = sizeof(struct search_args),
	  .defaults = &search_defaults,
	  .out = search_out,
	  .n_out = TOOL_ARRAY_LEN(search_out),
	  .hints = TOOL_READ_ONLY | TOOL_IDEMPOTENT,
	  .flags = TOOL_IN_BOX,
	  .scopes = SCOPE_FILE_READ,
	  .run = run_search },
};
const struct tool_table tools_edit_table = { rows, TOOL_ARRAY_LEN(rows) };
