/* R2: memory by every way, all of it charged to the box. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "attack.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define MIB (1ull << 20)
/* 48 MiB, of which the disk takes at most 24; every attack wants a multiple of it. */
#define SMALL                                               \
	{                                                   \
		.memory_bytes = 48 * MIB, .cpu_milli = 2000 \
	}

/* Refused or killed, the reporting process or the one that took the memory. */
static void expect_kill(struct world *w, const char *line)
{
	struct op op;

	box_start(w, &w->box, line, NULL, &op);
	assert_true(box_wait(&w->box, &op, ATTACK_TIMEOUT_MS + 5000));
	if (!(op.exit.flags & EXIT_SIGNALED) || op.exit.code != 9)
		op_expect_held(line, &op, 0);
	op_done(&op);
}

/* Killed for memory again and again: the box itself goes on, and says how often. */
static void box_survives_many_kills(struct world *w, const struct attack *a)
{
	struct box_usage usage;

	box_open(w, &w->box, TEMPLATE_PLAIN, &a->limits);
	box_upload(w, &w->box);
	for (int i = 0; i < 10; i++) {
		expect_kill(w, "memory private 256");
		box_expect_answer(&w->box);
	}
	box_close(w, &w->box, &usage);
	assert_true(usage.oom_kills >= 10);
	assert_true(usage.memory_peak_bytes <= a->limits.memory_bytes + PEAK_SLACK);
}

/* The main process itself is the one that is killed: its result says so. */
static void kill_is_reported(struct world *w, const struct attack *a)
{
	static const char *const script = "x=aaaaaaaaaaaaaaaa; while :; do x=$x$x; done";
	struct box_usage usage;
	struct op op;
	struct guest_exec e = { .argc = 3,
				.timeout_ms = ATTACK_TIMEOUT_MS,
				.user = "",
				.cwd = "",
				.code = "",
				.argv = { "/bin/sh", "-c", script } };

	box_open(w, &w->box, TEMPLATE_PLAIN, &a->limits);
	box_start_argv(&w->box, &e, &op);
	assert_true(box_wait(&w->box, &op, ATTACK_TIMEOUT_MS + 5000));
	assert_int_equal(op.code, 0);
	assert_true(op.exit.flags & EXIT_SIGNALED);
	assert_int_equal(op.exit.code, 9);
	op_done(&op);
	box_expect_answer(&w->box);
	box_close(w, &w->box, &usage);
	assert_true(usage.oom_kills >= 1);
}

/* A full disk and full memory at once: PID 1 still answers and the box can be destroyed. */
static void full_box_answers(struct world *w, const struct attack *a)
{
	box_open(w, &w->box, TEMPLATE_PLAIN, &a->limits);
	box_upload(w, &w->box);
	box_expect_held(w, &w->box, "fill-all 24", 0);
	expect_kill(w, "memory private 256");
	expect_kill(w, "memory tables 256");
	box_expect_answer(&w->box);
	box_close(w, &w->box, NULL);
}

/* Charged to nobody until they are accepted: who has too much of it is ended, and nobody else. */
static void connections_that_wait_are_limited(struct world *w, const struct attack *a)
{
	struct op op, few;

	box_start(w, &w->neighbour, "backlog 100 4 5000", NULL, &few);
	box_wait_ready(&w->neighbour, &few);
	box_open(w, &w->box, TEMPLATE_PLAIN, &a->limits);
	box_upload(w, &w->box);
	box_start(w, &w->box, "backlog 1200 96 40000", a, &op);
	assert_true(box_wait(&w->box, &op, 60000));
	if (op.code != EPIPE)
		fail_msg("a box was not ended: %s%s", op.text, buf_str(&op.out));
	world_expect_death(w, &op, false);
	assert_true(box_wait(&w->neighbour, &few, 30000));
	op_expect_held("backlog", &few, 0);
	op_done(&few);
}

static const struct attack rows[] = {
	{ "R2 touched private memory is charged", "memory private 256", NEEDS_MEMORY, 0, SMALL,
	  NULL },
	{ "R2 touched shared memory is charged", "memory shared 256", NEEDS_MEMORY, 0, SMALL,
	  NULL },
	{ "R2 memory cannot be locked down", "memory locked 256", 0, 0, SMALL, NULL },
	{ "R2 memfds are charged", "memory memfd 256", NEEDS_MEMORY | BOX_MAY_DIE, 0, SMALL, NULL },
	{ "R2 files in /dev/shm are charged", "memory shm 256", 0, 0, SMALL, NULL },
	{ "R2 files in /tmp are charged", "memory tmp 256", 0, 0, SMALL, NULL },
	{ "R2 System V shared memory is charged", "memory sysv 256", NEEDS_MEMORY, 0, SMALL, NULL },
	{ "R2 pipe buffers are charged", "memory pipes 256", NEEDS_MEMORY | BOX_MAY_DIE, 60000,
	  SMALL, NULL },
	{ "R2 socket buffers are charged", "memory sockets 256", NEEDS_MEMORY | BOX_MAY_DIE, 60000,
	  SMALL, NULL },
	{ "R2 buffers of connections are charged", "memory tcp 256", NEEDS_MEMORY | BOX_MAY_DIE,
	  60000, SMALL, NULL },
	{ "R2 what waits in connections that nobody accepts is limited",
	  NULL,
	  0,
	  60000,
	  { .memory_bytes = 64 * MIB },
	  connections_that_wait_are_limited },
	{ "R2 access control lists in bulk are refused", "memory acls 256", 0, 60000, SMALL, NULL },
	{ "R2 page tables are charged", "memory tables 256", NEEDS_MEMORY, 60000, SMALL, NULL },
	{ "R2 inodes and names are charged",
	  "memory names 256",
	  NEEDS_MEMORY | BOX_MAY_DIE,
	  0,
	  { .memory_bytes = 48 * MIB,
	    .inodes = 1u << 20,
	    .disk_bytes = 48 * MIB,
	    .cpu_milli = 2000 },
	  NULL },
	{ "R2 names that do not exist are charged", "memory negative 64", NEEDS_MEMORY, 60000,
	  SMALL, NULL },
	{ "R2 a crowd of processes shares one limit", "memory-crowd 256", NEEDS_MEMORY, 0, SMALL,
	  NULL },
	{ "R2 a box survives being killed for memory ten times", NULL, NEEDS_MEMORY, 0, SMALL,
	  box_survives_many_kills },
	{ "R2 a kill for memory is reported as such", NULL, NEEDS_MEMORY, 0, SMALL,
	  kill_is_reported },
	{ "R2 a box with full disk and full memory answers", NULL, NEEDS_MEMORY, 0, SMALL,
	  full_box_answers },
};

const struct attack_table attacks_memory = { rows, COUNT(rows) };
