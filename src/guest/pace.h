/* How long the guest stood still. A paused box is frozen, and no clock of the kernel stops with it;
 * time that nobody could use must not count against a deadline. Waiting for a processor is not
 * standing still: a box that starves its guest gains nothing.
 *
 * Frozen in a wait, the guest finds the wait interrupted, which nothing else does: it has no signal
 * unblocked. Frozen at work, it has neither run nor waited for a processor, which is what
 * /proc/self/schedstat counts. Both are exact to PACE_TICK_MS, in the program's favour or not. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define PACE_TICK_MS 1000 /* the longest wait while a deadline is set */

struct pace {
	int fd;             /* owned: our schedstat; -1: only waits are looked at */
	uint64_t at_ms;     /* of the last look; 0: none yet */
	uint64_t waited_ms; /* since then */
	uint64_t busy_ms;   /* running or waiting for a processor, ever; by then */
};

/* One wait of the loop. */
struct pace_wait {
	uint64_t from_ms, to_ms;
	uint64_t asked_ms;
	bool is_interrupted;
};

void pace_open(struct pace *p);
void pace_close(struct pace *p);
/* Nothing is due: what happens until the next wait is of no interest. */
void pace_rest(struct pace *p);
/* After each wait while a deadline is set: by how many milliseconds all of them move. */
uint64_t pace_frozen_ms(struct pace *p, const struct pace_wait *w);
