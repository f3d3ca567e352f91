/* Every setting of the program, as one table: what it is called in holt.yaml, in the environment
 * and on the command line, what it accepts, what it is when nobody says anything. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum setting_type {
	SETTING_STRING,   /* const char *; NULL when unset */
	SETTING_PATH,     /* const char *; "~/" at the start is the home directory */
	SETTING_BOOL,     /* bool */
	SETTING_U32,      /* uint32_t */
	SETTING_SIZE,     /* uint64_t bytes */
	SETTING_DURATION, /* uint64_t milliseconds */
	SETTING_CPU,      /* uint32_t thousandths of a core */
	SETTING_CHOICE,   /* int: index into choices */
	SETTING_LIST,     /* struct config_list, from "a,b" or a YAML sequence */
	SETTING_SECRET,   /* struct secret *; NULL when unset */
	SETTING_RATE,     /* struct rate */
	SETTING_TYPE_COUNT
};

enum setting_flag {
	SETTING_NOT_IN_FILE = 1 << 0, /* the file's own name: flag and environment only */
	SETTING_AUTO = 1 << 1,        /* takes "auto": derived from the machine (derive.c) */
	SETTING_NONE = 1 << 2,        /* takes "none", which is 0: no limit */
};

struct setting {
	const char *name; /* listen */
	const char *env;  /* HOLT_LISTEN */
	const char *flag; /* --listen; NULL: none */
	enum setting_type type;
	size_t offset;              /* in struct config */
	const char *standard;       /* the default, as it would be written; NULL: unset */
	const char *arg;            /* what help calls the value */
	const char *help;           /* one line */
	uint64_t min, max;          /* of a number; bytes of a text (0: SETTING_TEXT_MAX) */
	const char *const *choices; /* NULL-terminated */
	unsigned flags;
};

/* What a number of SETTING_AUTO holds until it is derived: all bits set. */
#define SETTING_AUTO_U64 UINT64_MAX
#define SETTING_AUTO_U32 UINT32_MAX

#define SETTING_TEXT_MAX 4096u
#define SETTING_LIST_MAX 64u

/* Rows in the order they are shown in. */
const struct setting *settings_table(size_t *ret_count);
/* NULL when there is none. A name is "listen", a flag is "--listen", an environment variable is
 * "HOLT_LISTEN". */
const struct setting *settings_find(const char *name);
const struct setting *settings_find_flag(const char *flag);
const struct setting *settings_find_env(const char *env);
/* The known name nearest to a mistyped one, in the same spelling (name, flag or variable), or NULL.
 */
const char *settings_nearest(const char *word);
