/* The boxes that are being built: each has a time to become ready in. One that exceeds it is logged
 * with what its process waits for, given up, and counted until that process has really ended:
 * nothing that it has is used again before. While the last build that ended was a late one, none is
 * begun but one attempt now and then, so that a kernel that hangs does not collect processes. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "spec/launch.h"

struct box;
struct err;
struct launch;
struct template;

#define BUILDS_MS 30000u /* unless the client says otherwise */
#define BUILDS_MAX 32u   /* at a time; further claims wait */
#define BUILDS_STUCK 64u /* processes that were given up and have not ended: then no more */
#define BUILDS_AGAIN -EINPROGRESS

struct builds {
	struct list open; /* of struct box, by build_link; the oldest first */
	unsigned count;   /* of them */
	uint32_t limit_ms;
	bool has_room;     /* one has ended since claims were asked again */
	uint64_t retry_ms; /* when the next attempt is due; 0: none is */
	struct build_state state;
};

void builds_init(struct builds *s, uint32_t limit_ms);
/* May one be begun? 0; BUILDS_AGAIN: when another has ended; -EIO with the reason. */
int builds_check(const struct launch *l, struct err *err);
void builds_add(struct launch *l, struct box *b);
/* It is not built any more: it is finished, or has failed in time. Also for one that was not added.
 */
void builds_remove(struct launch *l, struct box *b);
/* A box has become ready. */
void builds_worked(struct launch *l, const struct box *b);
/* A build, or a part of one that is made ahead (t NULL), took longer than it may: err says which.
 */
void builds_failed(struct launch *l, const struct template *t, bool has_own, const struct err *err);
/* The process of one that was given up has ended. */
void builds_ended(struct launch *l);
/* So many boxes that are to end take too long to. */
void builds_ends_late(struct launch *l, uint32_t n);
/* File locks were not counted so many times in a row. */
void builds_uncounted(struct launch *l, uint32_t n);
/* How long the loop may wait, no longer than that; -1: for ever. */
int builds_wait_ms(const struct launch *l, int wait_ms);
/* Gives up what is late, asks the claims again that waited, and tries again when that is due. */
void builds_turn(struct launch *l);
