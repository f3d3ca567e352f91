/* The options that every command with a box shares. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/options.h"
#include "spec/guest.h"
#include "spec/launch.h"

#define TIMEOUT_UNSET UINT64_MAX
#define TIMEOUT_DEFAULT_MS 30000u
#define TIMEOUT_MAX_MS (7ull * 24 * 3600 * 1000)
/* A box inherits nothing; these are what programs take for granted. */
#define BOX_DEFAULT_PATH "PATH=" GUEST_PATH
#define BOX_DEFAULT_LANG "LANG=C.UTF-8"
#define OUTPUT_JSON_DEFAULT (1ull << 20) /* kept of the output in one JSON object */
#define OUTPUT_JSON_MAX (32ull << 20)
#define OUTPUT_MAX (1ull << 40)

/* The first member of the struct of every command with a box. */
struct box_args {
	const char *template; /* NULL: host */
	struct limits limits; /* 0: the default */
	uint64_t timeout_ms, output_limit;
	struct opt_list env;
	const char *workdir, *user;
	int net, level;
	bool json, tty;
};

/* The rows that fill a struct limits, for every command that asks for one. */
#define LIMIT_OPTS(type_, member_)                                                         \
	{ .name = "memory",                                                                \
	  .letter = 'm',                                                                   \
	  .type = OPT_SIZE,                                                                \
	  .arg = "SIZE",                                                                   \
	  .help = "memory limit (256M)",                                                   \
	  .offset = offsetof(type_, member_.memory_bytes),                                 \
	  .min = LIMIT_MEMORY_MIN,                                                         \
	  .max = LIMIT_MEMORY_MAX },                                                       \
		{ .name = "cpu",                                                           \
		  .letter = 'c',                                                           \
		  .type = OPT_CPU,                                                         \
		  .arg = "CORES",                                                          \
		  .help = "share of the processors: 0.5, 2, 250m (0.5)",                   \
		  .offset = offsetof(type_, member_.cpu_milli),                            \
		  .min = LIMIT_CPU_MIN,                                                    \
		  .max = LIMIT_CPU_MAX },                                                  \
		{ .name = "pids",                                                          \
		  .type = OPT_COUNT,                                                       \
		  .arg = "N",                                                              \
		  .help = "processes and threads (64)",                                    \
		  .offset = offsetof(type_, member_.pids),                                 \
		  .min = LIMIT_PIDS_MIN,                                                   \
		  .max = LIMIT_PIDS_MAX },                                                 \
	{                                                                                  \
		.name = "disk", .type = OPT_SIZE, .arg = "SIZE",                           \
		.help = "everything writable together (half of the memory, at most 512M)", \
		.offset = offsetof(type_, member_.disk_bytes), .min = LIMIT_DISK_MIN,      \
		.max = LIMIT_MEMORY_MAX                                                    \
	}

extern const char *const box_net_names[], *const box_level_names[];

extern const struct opt box_opts[]; /* fill a struct box_args */

#define BOX_ARGS_INIT                       \
	{                                   \
		.timeout_ms = TIMEOUT_UNSET \
	}

/* The limits that need a cgroup controller; ends with a NULL name. */
extern const struct box_limit {
	unsigned controller; /* enum cgroup_controller */
	const char *name;    /* of the option and of the controller, as people know it */
} box_limits[];
/* Which limits were asked for, as enum cgroup_controller bits. */
unsigned box_args_limits(const struct box_args *args);

struct err;
/* Turns the options into an execution's fields (env, cwd, user, deadline, output limit, terminal);
 * kind, argv and code are the caller's.
 * Strings are borrowed from args and the environment. */
int box_args_exec(const struct box_args *args, struct guest_exec *ret, struct err *err);
