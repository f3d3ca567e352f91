/* R13: kernel objects in bulk, and what a box's neighbours have left of them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attack.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define MIB (1ull << 20)

/* While one box holds all it can get, another still gets a few: counters are not shared. */
static void neighbours_get_theirs(struct world *w, const char *kind)
{
	char line[64];
	struct op op;

	(void)snprintf(line, sizeof(line), "bulk-some %s 4", kind);
	box_start(w, &w->neighbour, line, NULL, &op);
	assert_true(box_wait(&w->neighbour, &op, 10000));
	if (op.exit.code != 0) { /* then nobody can take any away */
		printf("held: no %s in a box at all\n", kind);
		op_done(&op);
		return;
	}
	op_done(&op);
	box_open(w, &w->box, TEMPLATE_PLAIN, NULL);
	box_upload(w, &w->box);
	(void)snprintf(line, sizeof(line), "bulk-hold %s 8000", kind);
	box_start(w, &w->box, line, NULL, &op);
	box_wait_ready(&w->box, &op);
	(void)snprintf(line, sizeof(line), "bulk-some %s 4", kind);
	box_expect_held(w, &w->neighbour, line, 0);
	guest_forget(w->box.guest, op.id);
	op_done(&op);
	box_close(w, &w->box, NULL);
}

static void inotify_is_not_shared(struct world *w, const struct attack *a)
{
	(void)a;
	neighbours_get_theirs(w, "inotify");
}

static void timers_are_not_shared(struct world *w, const struct attack *a)
{
	(void)a;
	neighbours_get_theirs(w, "timers");
}

static void queues_are_not_shared(struct world *w, const struct attack *a)
{
	(void)a;
	neighbours_get_theirs(w, "mqueue");
}

static void watches_are_not_shared(struct world *w, const struct attack *a)
{
	(void)a;
	neighbours_get_theirs(w, "watches");
}

/* Locks that are nobody's do not make the launcher end who has a few. */
static void locks_of_the_dead_end_nobody(struct world *w, const struct attack *a)
{
	struct op op;

	(void)a;
	box_open(w, &w->box, TEMPLATE_PLAIN, NULL);
	box_upload(w, &w->box);
	box_start(w, &w->box, "flock-flood 19 12000", NULL, &op);
	box_wait_ready(&w->box, &op);
	box_expect_held(w, &w->neighbour, "keep-locks 1000 8000", 0);
	assert_true(box_wait(&w->box, &op, 30000));
	op_done(&op);
	box_close(w, &w->box, NULL);
}

static const struct attack rows[] = {
	{ "R13 timers are limited", "bulk timers", 0, 0, { 0 }, NULL },
	{ "R13 queued signals are limited", "bulk pending", 0, 0, { 0 }, NULL },
	{ "R13 timerfds are limited", "bulk timerfd", 0, 0, { 0 }, NULL },
	{ "R13 signalfds are limited", "bulk signalfd", 0, 0, { 0 }, NULL },
	{ "R13 eventfds are limited", "bulk eventfd", 0, 0, { 0 }, NULL },
	{ "R13 epoll instances are limited", "bulk epoll", 0, 0, { 0 }, NULL },
	{ "R13 inotify instances are limited", "bulk inotify", 0, 0, { 0 }, NULL },
	{ "R13 inotify watches are limited", "bulk watches", 0, 0, { 0 }, NULL },
	{ "R13 POSIX queues are limited", "bulk mqueue", 0, 0, { 0 }, NULL },
	{ "R13 POSIX semaphores are limited",
	  "bulk semaphores",
	  0,
	  0,
	  { .disk_bytes = 16 * MIB },
	  NULL },
	{ "R13 System V semaphores are limited",
	  "bulk sysv-sem",
	  BOX_MAY_DIE,
	  0,
	  { .memory_bytes = 64 * MIB },
	  NULL },
	{ "R13 System V segments are limited",
	  "bulk sysv-shm",
	  0,
	  0,
	  { .memory_bytes = 64 * MIB },
	  NULL },
	{ "R13 System V messages are limited",
	  "bulk sysv-msg",
	  NEEDS_MEMORY | BOX_MAY_DIE,
	  0,
	  { .memory_bytes = 64 * MIB },
	  NULL },
	{ "R13 file locks are limited", "hold-locks 6000", 0, 60000, { 0 }, NULL },
	{ "R13 file locks of many processes are limited",
	  "hold-locks 6000 20",
	  0,
	  60000,
	  { 0 },
	  NULL },
	{ "R13 no file lock is hidden", "hidden-locks", 0, 0, { 0 }, NULL },
	{ "R13 file locks of dead processes are held against nobody",
	  NULL,
	  0,
	  60000,
	  { 0 },
	  locks_of_the_dead_end_nobody },
	{ "R13 inotify instances of one box are not missing in another",
	  NULL,
	  0,
	  0,
	  { 0 },
	  inotify_is_not_shared },
	{ "R13 inotify watches of one box are not missing in another",
	  NULL,
	  0,
	  0,
	  { 0 },
	  watches_are_not_shared },
	{ "R13 timers of one box are not missing in another",
	  NULL,
	  0,
	  0,
	  { 0 },
	  timers_are_not_shared },
	{ "R13 queues of one box are not missing in another",
	  NULL,
	  0,
	  0,
	  { 0 },
	  queues_are_not_shared },
};

const struct attack_table attacks_bulk = { rows, COUNT(rows) };
