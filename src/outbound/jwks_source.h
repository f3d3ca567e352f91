/* Where the identity provider's keys come from: a file, which is read again when it has changed, or
 * an address, which is asked again when its answer has aged. A set that cannot be had or read
 * leaves the last good one in force. Nothing of it blocks the loop. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/list.h"

struct courier;
struct err;
struct jwks;
struct jwks_source; /* opaque */
struct loop;

#define JWKS_AGE_MS 3600000u   /* of an answer that says nothing about it */
#define JWKS_AGE_MIN_MS 60000u /* what an answer may say */
#define JWKS_AGE_MAX_MS 86400000u
#define JWKS_LOOK_MS 1000u /* least time between two looks at a file */
#define JWKS_WAITS_MAX 256u

/* Starts to get the keys at once. `where`: a path, or http:// or https://. All borrowed. `ask_ms`:
 * least time between two requests, whatever tokens come. */
int jwks_source_create(struct loop *loop, struct courier *courier, const char *where,
		       uint64_t ask_ms, struct jwks_source **ret, struct err *err);
struct jwks_source *jwks_source_free(struct jwks_source *s); /* waits are forgotten */
CLEANUP_FUNC(struct jwks_source *, jwks_source_free)

const struct jwks *jwks_source_keys(const struct jwks_source *s); /* NULL: none yet */

/* A token's key is not known. True: it is being looked for, and the wait's callback comes once it
 * has been, whatever was found. False: that was done only just now. */
struct jwks_wait {
	struct list node;
	void (*done)(void *user);
	void *user;
};
bool jwks_source_refresh(struct jwks_source *s, struct jwks_wait *wait);
