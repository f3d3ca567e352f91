/* How often a peer may fail. After `limit` failures within `window_ms` it is shut out until the
 * window has passed. The table is bounded: when it is full the oldest window gives way, so a crowd
 * of addresses costs no memory. Not for threads. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

struct rate_limit; /* opaque */

/* What failed logins get. */
#define RATE_LIMIT_FAILURES 20u
#define RATE_LIMIT_WINDOW_MS 60000u
#define RATE_LIMIT_PEERS 4096u

struct rate_limit *rate_limit_create(size_t max_peers, uint32_t limit, uint64_t window_ms);
struct rate_limit *rate_limit_free(struct rate_limit *rl);
CLEANUP_FUNC(struct rate_limit *, rate_limit_free)

/* peer: an address as text, with or without its port ("192.0.2.1:5000", "[2001:db8::1]:5000"). IPv6
 * peers count by their /64: whoever has one address there has them all. now_ms: clock_now_ms().
 * 0, or milliseconds until it is let in again (for Retry-After; the answer is 429). */
uint64_t rate_limit_wait_ms(const struct rate_limit *rl, const char *peer, uint64_t now_ms);
/* Counts a failure; true when this one shut the peer out. */
bool rate_limit_fail(struct rate_limit *rl, const char *peer, uint64_t now_ms);
