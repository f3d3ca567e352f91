/* How many boxes end at a time. With a box the kernel frees its system call filters, its mounts and
 * its namespaces, in work queues of the whole machine; thousands at once have hung kernels. So no
 * more than ENDING_MAX are under way, and the next begins when one of them has ended. One that
 * takes too long is late: it holds up nobody any more, but is counted until it has ended. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"

#define ENDING_MAX 32
#define ENDING_SLOW_MS 2000 /* who takes longer is not waited for */

enum ending_state { ENDING_NOT, ENDING_WAITS, ENDING_UNDER_WAY, ENDING_LATE };

/* One box's part in it. */
struct ending_turn {
	struct list node; /* first; of the list that its state names */
	enum ending_state state;
	uint64_t began_ms;
};

struct ending {
	struct list waiting, under_way, late; /* of struct ending_turn; under_way: oldest first */
	unsigned n_under_way, n_late;
};

void ending_init(struct ending *e);
void ending_turn_init(struct ending_turn *t);
void ending_add(struct ending *e, struct ending_turn *t);
/* The one that is to end now; NULL: none, or not yet. */
struct ending_turn *ending_next(struct ending *e, uint64_t now_ms);
/* One that has become late since this was last asked; NULL: none has. */
struct ending_turn *ending_next_late(struct ending *e, uint64_t now_ms);
/* It has ended, whatever its state was. */
void ending_done(struct ending *e, struct ending_turn *t);
bool ending_is_waiting(const struct ending *e);
/* For how long nothing changes unless one of them ends; -1: for ever. */
int ending_wait_ms(const struct ending *e, uint64_t now_ms);
