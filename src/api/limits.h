/* How fast the caller may ask: its key's bucket for this class of route, and its user's, which
 * holds more. */
#pragma once

#include <stdbool.h>

#include "auth/buckets.h"

struct api;
struct api_call;
struct api_route;

/* All keys of a user together have the rate of so many: one that runs wild leaves room for others,
 * and many of them do not multiply it. */
#define LIMITS_USER_KEYS 4u

/* What the row says, or by its method: what looks is a read. */
enum rate_class limits_class(const struct api_route *route);
/* What one owner's keys are held to; count 0: nothing. */
struct rate limits_rate(const struct api *api, const char *owner, enum rate_class class);
/* One more of a key, "": of what an identity provider says of the owner. False: too many. */
bool limits_take(struct api *api, const char *key_id, const char *owner, enum rate_class class,
		 struct bucket_state *ret);
/* X-RateLimit-* on the answer of a limited route; false after 429 with Retry-After. */
bool limits_check(struct api_call *c);
