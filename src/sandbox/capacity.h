/* Whether the machine has room for what a sandbox asks for. Two questions, both asked before
 * anything is made:
 *
 * - What is promised: the limits of all sandboxes together, and of finished boxes that may wait,
 *   stay below settings.commit. Sandboxes idle mostly, so that may be more than the machine has.
 * - What is left: the memory and the processes that the machine has free now hold the request and
 *   leave settings.reserve.
 *
 * What becomes no more than it was is never refused. */
#pragma once

#include <errno.h>
#include <stdint.h>

#include "base/machine.h"
#include "spec/quota.h"

struct err;
struct sandboxes;

#define CAPACITY_ERRNO ENOBUFS

struct capacity {              /* of the registry */
	struct quota promised; /* to all sandboxes */
	struct machine_use use;
	uint64_t read_at; /* when use was read, now_ms(); 0: never */
	bool is_known;
};

/* From what a sandbox counts for now to what it would: 0 or -CAPACITY_ERRNO. */
int capacity_admit(struct sandboxes *all, const struct quota *from, const struct quota *to,
		   struct err *err);
/* So many finished boxes more that may wait, against what is promised: the same. */
int capacity_admit_waiting(struct sandboxes *all, uint32_t more, struct err *err);
