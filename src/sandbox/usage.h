/* What a sandbox uses, a day at a time: processor time and number of its executions as they end,
 * memory and disk held while it runs, time. A row of the store has all of one sandbox's day, so
 * writing it again counts nothing twice; it is written when an execution ends, when the sandbox
 * stops running, and now and then. A killed daemon goes on from what it had written. */
#pragma once

#include <stdint.h>

struct err;
struct execution;
struct sandbox;
struct sandboxes;

#define USAGE_EVERY_MS 30000u

struct usage { /* of one sandbox, today */
	int32_t day;
	uint64_t cpu_us, memory_byte_ms, disk_byte_ms, executions, wall_ms;
	uint64_t since_ms; /* counted until then, monotonic; 0: it does not run */
};

/* What the store has of today, for those that live. */
int usage_load(struct sandboxes *all, struct err *err);
/* Its state has changed. */
void usage_settle(struct sandbox *sb);
/* One of its executions has ended. */
void usage_execution(struct execution *x);
/* A run of one of its contexts has: the interpreter's own time is counted when that ends. */
void usage_run(struct sandbox *sb);
/* Writes what has changed of all that run. */
void usage_checkpoint(struct sandboxes *all);
