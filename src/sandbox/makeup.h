/* What a template says of its boxes beyond their files, variables and limits. A sandbox has a copy
 * of its own: it stays what it was when the template is gone.
 *
 * Texts are borrowed: of a request, or of the arena that they were copied to. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "json/jv_decode.h"

struct arena;
struct err;
struct jw;

#define MAKEUP_USER_MAX 32
#define MAKEUP_PATH_MAX 255
#define MAKEUP_PATHS_MAX 16
#define MAKEUP_PRELOAD_MAX 32
#define MAKEUP_MODULE_MAX 128 /* bytes of a module's name */
#define MAKEUP_COMMAND_MAX 8192
#define MAKEUP_BYTES_MAX (64u << 10) /* all of one */
#define START_TIMEOUT_DEFAULT_MS 30000u
#define START_TIMEOUT_MAX_MS (10u * 60 * 1000)

/* What runs in a sandbox from its beginning, and when it counts as ready: at most one of the ready
 * ones is given; none: when the command has been started. */
struct makeup_start {
	const char *command;       /* of a shell; NULL or "": nothing is started */
	const char *ready_command; /* until it ends with 0; NULL or "": none */
	uint32_t ready_port;       /* until something listens there; 0: none */
	const char *ready_http;    /* until a GET of this path at ready_port answers 2xx; NULL */
	uint64_t timeout_ms;       /* 0: START_TIMEOUT_DEFAULT_MS */
};

struct makeup {
	const char *user, *workdir; /* of what names none; NULL or "": the box's own */
	bool writable_root;         /* copy-on-write; else what the template brought is read-only */
	struct jv_strings writable; /* paths that can be written to all the same */
	struct jv_strings preload;  /* modules that a waiting Python has imported */
	struct jv_strings preload_node; /* the same of Node */
	struct makeup_start start;
	/* Not for clients to say: */
	uint8_t root;    /* enum template_root: ROOT_HOST, ROOT_LAYERS */
	uint8_t profile; /* enum profile_id */
	uint32_t strict; /* enum template_flag of a custom one */
};

/* Rows for a table of a struct that has a struct makeup as this member. Absent lists have the
 * length that was there before. */
#define MAKEUP_ROWS(struct_, member_)                                                             \
	JV_FIELD("user", STRING, struct_, member_.user, .flags = JV_NULLABLE, .min = 1,           \
		 .max = MAKEUP_USER_MAX, .help = "who runs what names nobody: a name or number"), \
		JV_FIELD("workdir", STRING, struct_, member_.workdir, .flags = JV_NULLABLE,       \
			 .min = 1, .max = MAKEUP_PATH_MAX, .help = "where that runs; absolute"),  \
		JV_FIELD("writableRoot", BOOL, struct_, member_.writable_root,                    \
			 .help = "all of the root can be written to, copy-on-write"),             \
		JV_FIELD("writablePaths", STRINGS, struct_, member_.writable,                     \
			 .flags = JV_NULLABLE, .max = MAKEUP_PATHS_MAX,                           \
			 .text_max = MAKEUP_PATH_MAX,                                             \
			 .help = "directories of a read-only root that can be written to"),       \
		JV_FIELD("preload", STRINGS, struct_, member_.preload, .flags = JV_NULLABLE,      \
			 .max = MAKEUP_PRELOAD_MAX, .text_max = MAKEUP_MODULE_MAX,                \
			 .help = "modules that a waiting Python has imported"),                   \
		JV_FIELD("preloadNode", STRINGS, struct_, member_.preload_node,                   \
			 .flags = JV_NULLABLE, .max = MAKEUP_PRELOAD_MAX,                         \
			 .text_max = MAKEUP_MODULE_MAX,                                           \
			 .help = "modules that a waiting Node has loaded"),                       \
		JV_FIELD("start", OBJECT, struct_, member_.start, .flags = JV_NULLABLE,           \
			 .sub = makeup_start_fields, .sub_count = MAKEUP_START_FIELDS,            \
			 .help = "what runs from the beginning, and when it is ready")
#define MAKEUP_START_FIELDS 5
extern const struct jv_field makeup_start_fields[MAKEUP_START_FIELDS];

/* True when nothing is said: a box like those of the built-in template. */
bool makeup_is_plain(const struct makeup *m);
/* True when a finished box needs to know nothing of it: commands and checks come later. */
bool makeup_needs_no_box(const struct makeup *m);
/* As in struct template_spec; -E2BIG, -ENOMEM. */
int makeup_preload(const struct jv_strings *modules, char *dst, size_t size);
int makeup_writable(const struct makeup *m, char *dst, size_t size);
/* -EINVAL with "field: why". flags: enum template_flag of the built-in template below. */
int makeup_check(const struct makeup *m, uint32_t flags, struct err *err);
int makeup_copy(const struct makeup *m, struct arena *a, struct makeup *ret); /* -ENOMEM */
/* The members of an open object, and of such an object back: what is absent is not said.
 * -EINVAL, -ENOMEM. */
void makeup_write(const struct makeup *m, struct jw *w);
int makeup_read(struct jv object, struct arena *a, struct makeup *ret);
