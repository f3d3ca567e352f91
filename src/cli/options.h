/* Command-line options as tables: a row says what an option is called, what it accepts and which
 * field it fills. Parsing, help, completion and the manual page all read the same rows. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/config.h"

struct err;

enum opt_type {
	OPT_FLAG,     /* bool */
	OPT_TEXT,     /* const char *, borrowed from argv */
	OPT_LIST,     /* struct opt_list: may be given many times */
	OPT_COUNT,    /* uint32_t */
	OPT_SIZE,     /* uint64_t bytes */
	OPT_DURATION, /* uint64_t milliseconds */
	OPT_CPU,      /* uint32_t thousandths of a core */
	OPT_CPUS,     /* uint64_t mask, from "0,2-3" */
	OPT_CHOICE,   /* int, index into choices */
	OPT_SETTING,  /* struct opt_settings: one of the program's settings, for config_load() */
	OPT_TYPE_COUNT
};

#define OPT_LIST_MAX 256
struct opt_list {
	size_t len;
	const char *items[OPT_LIST_MAX]; /* borrowed */
};

/* First in the struct of a command that takes settings. */
#define OPT_SETTINGS_MAX 128
struct opt_settings {
	size_t len;
	struct config_flag flags[OPT_SETTINGS_MAX]; /* borrowed from argv and the table */
};

struct opt {
	const char *name; /* long name; NULL ends a table */
	char letter;      /* short form, or 0 */
	enum opt_type type;
	const char *arg; /* what help calls the value; NULL for a flag */
	const char *help;
	size_t offset;              /* of its field in the command's struct */
	uint64_t min, max;          /* of a number */
	const char *const *choices; /* NULL-terminated */
};

#define OPTS_MAX 128
struct opt_rows {
	bool mixed; /* options may stand behind operands too */
	size_t len;
	struct opt rows[OPTS_MAX];
};
/* Adds a table (NULL: none) to the rows. */
void options_add(struct opt_rows *all, const struct opt *table);
/* Adds a row for each setting that has a flag. */
void options_add_settings(struct opt_rows *all);

/* Fills *dst from argv[1..] up to the first operand or "--"; with `mixed` from all of argv up to
 * "--", moving the operands to its end. Returns the first operand's index. Failures
 * name the option and what it accepts; an unknown option suggests the nearest.
 * OPT_HELP_WANTED when --help or -h was met. */
#define OPT_HELP_WANTED 0
int options_parse(const struct opt_rows *all, int argc, char **argv, void *dst, struct err *err);

/* The entry of a NULL-terminated list of names nearest to `word`, or NULL when none is near. */
const char *options_nearest(const char *word, const char *const *names);
