/* File locks of boxes. Linux charges them to no control group and bounds them by no limit, so from
 * time to time the launcher counts them in /proc/locks and ends the processes of a box that holds
 * too many. The filter refuses the two kinds that it could not see: locks of open files, and
 * processes that share descriptors without being threads.
 *
 * A reader that does not answer in the time that a build has is logged with what it waits for,
 * killed and replaced. One that cannot be killed is kept in mind until it has ended, and no more
 * than LOCKS_TRIES of them are made. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "launch/locks_reader.h"
#include "launch/source.h"

struct launch;

#define LOCKS_BOX_MAX 4096 /* about 800 KiB of the kernel's memory */
#define LOCKS_LOOK_MS 1000
#define LOCKS_TRIES 3 /* see locks_are_lost() */

struct locks {
	struct source source;     /* first: of sock */
	int sock;                 /* owned: of the reader; -1: there is none */
	pid_t reader;             /* 0: there is none, or it has ended */
	struct lock_table *table; /* owned, mapped; NULL: not yet */
	bool is_asked;            /* and has not answered */
	uint64_t asked_ms, next_ms;
	unsigned missed;          /* times in a row without an answer */
	pid_t stuck[LOCKS_TRIES]; /* readers that were killed and have not ended */
	unsigned n_stuck;
};

void locks_init(struct locks *k);
void locks_done(struct locks *k);
/* Looks if it is time to. How long to wait for the next time; -1: there is no such time. */
int locks_look(struct launch *l);
/* A child has ended: true when it was a reader. */
bool locks_reaped(struct launch *l, pid_t pid);
/* Too often in a row they were not counted, or too many readers do not end: no box is given out. */
bool locks_are_lost(const struct launch *l);
