/* How fast a key may ask: one token bucket for each key and class of route. A bucket holds as many
 * requests as its rate names, and fills evenly in the time that it names; so that many may come at
 * once, and no more than twice that within the time. The table is bounded: the one that was not
 * used for longest gives way, and begins full when it comes again. Not for threads.
 *
 * What a request costs is known here and nowhere else: a table that several daemons share would
 * stand behind this header. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/rate.h"

enum rate_class { RATE_READ, RATE_WRITE, RATE_EXEC, RATE_CREATE, RATE_CLASS_COUNT };
const char *rate_class_name(enum rate_class class); /* "read" */

struct buckets; /* opaque */
#define BUCKETS_MAX 65536u

struct buckets *buckets_create(size_t max); /* NULL without memory */
struct buckets *buckets_free(struct buckets *b);
CLEANUP_FUNC(struct buckets *, buckets_free)

struct bucket_state {
	uint32_t remaining; /* requests that would be let in now */
	uint64_t wait_ms;   /* of a refused one: until the next would be; at least 1 */
	uint64_t full_ms;   /* until all of them would be */
};
/* Takes one out of the bucket of who and class; false when there is none in it. Without memory
 * everybody is let in. rate.count is not 0; now_ns: clock_now_ns(). */
bool buckets_take(struct buckets *b, const char *who, enum rate_class class, struct rate rate,
		  uint64_t now_ns, struct bucket_state *ret);
