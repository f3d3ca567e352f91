/* What an owner may have at a time and start in a day, against what they have. The sums are of the
 * registry's own sandboxes, so they are right again after every start; a request that is let
 * through is counted in the same call, so two at once cannot both take the last place.
 *
 * A running sandbox counts with all its limits, a paused one with all but its processor, a stopped
 * one with its place and its disk: whatever takes one of the machine's places takes one of its
 * owner's. On the disk, volumes count with their size, snapshots and templates with the
 * layers that they keep. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "spec/quota.h"

struct err;
struct sandbox;
struct sandboxes;

/* The limits and the use of an owner, as of now; either may be NULL. */
void quota_of(struct sandboxes *all, const char *owner, struct quota *ret_limits,
	      struct quota *ret_used);

/* ---- for the service's files ---- */

struct quota_book; /* opaque: the owners and what they have */

struct quota_book *quota_book_create(void); /* NULL without memory */
struct quota_book *quota_book_free(struct quota_book *book);
/* What was started today before we were: from the store. */
int quota_load(struct sandboxes *all, struct err *err);
/* Whether the sandbox could be in that state: 0 or -QUOTA_ERRNO, -CAPACITY_ERRNO (the machine),
 * -ENOMEM. Asked before it becomes so; quota_settle() follows in the same turn. */
int quota_admit(struct sandbox *sb, unsigned state, struct err *err);
/* Its state or its limits are other ones now, or it is going. */
void quota_settle(struct sandbox *sb);
void quota_leave(struct sandbox *sb);
/* One more of something: 0 and it is counted, or -QUOTA_ERRNO, -ENOMEM. */
int quota_take(struct sandboxes *all, const char *owner, enum quota_kind kind, uint64_t n,
	       struct err *err);
/* The same of what is there already: it is counted, whatever the limit. */
void quota_charge(struct sandboxes *all, const char *owner, enum quota_kind kind, uint64_t n);
void quota_give(struct sandboxes *all, const char *owner, enum quota_kind kind, uint64_t n);
