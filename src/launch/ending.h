/* How many boxes end at a time. With a box the kernel frees its system call filters, its mounts and
 * its namespaces, in work queues of the whole machine; thousands at once have hung kernels. So no
 * more than ENDING_MAX are under way, and the next begins when one of them has ended. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"

#define ENDING_MAX 32
#define ENDING_SLOW_MS 2000 /* who takes longer is not waited for */

struct ending {
	struct list waiting;
	unsigned under_way;
	uint64_t last_ms; /* when one last began */
};

void ending_init(struct ending *e);
void ending_add(struct ending *e, struct list *node);
/* The one that is to end now, taken out of the list; NULL: none, or not yet. */
struct list *ending_next(struct ending *e, uint64_t now_ms);
/* One that ending_next() gave has ended. */
void ending_done(struct ending *e);
bool ending_is_waiting(const struct ending *e);
