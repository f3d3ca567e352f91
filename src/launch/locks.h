/* File locks of boxes. Linux charges them to no control group and bounds them by no limit, so from
 * time to time the launcher counts them in /proc/locks and ends the processes of a box that holds
 * too many. The filter refuses the two kinds that it could not see: locks of open files, and
 * processes that share descriptors without being threads. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "launch/locks_reader.h"
#include "launch/source.h"

struct launch;

#define LOCKS_BOX_MAX 4096 /* about 800 KiB of the kernel's memory */
#define LOCKS_LOOK_MS 1000

struct locks {
	struct source source;     /* first: of sock */
	int sock;                 /* owned: of the reader; -1: there is none */
	struct lock_table *table; /* owned, mapped; NULL: not yet */
	bool is_asked;            /* and has not answered */
	uint64_t asked_ms, next_ms;
};

void locks_init(struct locks *k);
void locks_done(struct locks *k);
/* Looks if it is time to. How long to wait for the next time; -1: there is no such time. */
int locks_look(struct launch *l);
