/* What a sandbox uses, a day (UTC) at a time, and what an owner keeps on the disk besides. A row of
 * the store has all of one sandbox's day, so writing it again counts nothing twice.
 *
 * Time, memory and disk are limits times the time that they were held. Processor time is what the
 * box's control group says, which goes on counting while nobody looks; where there is none it is
 * what executions said when they ended. An execution is counted in the commit that ends it.
 *
 * Rows say until when they are counted. After a kill the time since then is counted as well, at
 * what the sandbox's row says that it was; of a box that has not outlived it, that time is not:
 * when it ended nobody knows. So what a crash can lose is at most USAGE_EVERY_MS of network bytes,
 * and of a box that died with us also of its processor, memory and time. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct box_usage;
struct err;
struct execution;
struct sandbox;
struct sandboxes;
struct usage_row;

#define USAGE_EVERY_MS 30000u
/* One without a box, and what is kept, only change by the time that passes. */
#define USAGE_IDLE_MS 3600000u

enum usage_held { HELD_NOTHING, HELD_DISK, HELD_MEMORY, HELD_ALL };

struct usage { /* of one sandbox, or of what one owner keeps: today */
	int32_t day;
	uint64_t cpu_us, memory_byte_ms, disk_byte_ms, net_bytes, executions, wall_ms;
	uint64_t box_cpu_us;  /* of this box, as far as it is counted */
	uint64_t exec_cpu_us; /* of its executions that have ended */
	enum usage_held held; /* since since_ms */
	bool is_timed;        /* since_ms says something */
	bool is_waiting;      /* whether it has lived since until_ms is not known yet */
	int64_t since_ms;     /* counted until then, monotonic */
	int64_t until_ms;     /* the same, wall clock */
	int64_t written_ms;   /* the last write, monotonic */
};

/* What the store has of those that live. Behind the rows of sandboxes and objects. */
int usage_load(struct sandboxes *all, struct err *err);
/* Its state has changed. */
void usage_settle(struct sandbox *sb);
/* After a start: its box is there, and has been; or it is not. Before its state changes. */
void usage_found(struct sandbox *sb);
void usage_lost(struct sandbox *sb);
/* It has another box, which has used nothing. */
void usage_new_box(struct sandbox *sb);
/* What its box has used until now, in all. */
void usage_box(struct sandbox *sb, const struct box_usage *used);
/* Bytes to or from its programs. */
void usage_net(struct sandbox *sb, uint64_t bytes);
/* One of its executions has ended, and is about to be recorded: counts it once, and gives the row
 * that goes with it. False: it has no sandbox any more. */
bool usage_execution(struct execution *x, struct usage_row *ret);
/* A run of one of its contexts has: the interpreter's own time is its execution's. */
void usage_run(struct sandbox *sb);
/* Looks at all that runs, and writes what is due. */
void usage_checkpoint(struct sandboxes *all);

/* What an owner keeps besides their sandboxes' disks has become more or less. */
void usage_keep(struct sandboxes *all, const char *owner, uint64_t before, uint64_t now);
void usage_forget(struct sandboxes *all); /* the registry goes: frees the table alone */
