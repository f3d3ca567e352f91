/* Names and values of a sandbox's own: environment and metadata. */
#pragma once

#include <stddef.h>

#include "sandbox/sandbox.h"
#include "json/jv.h"

struct arena;
struct buf;
struct jv_pairs;
struct jw;

struct pairs {
	struct sandbox_pair *items; /* owned: one block with all the texts */
	size_t len;
};

int pairs_copy(const struct sandbox_pair *items, size_t n, struct pairs *ret); /* -ENOMEM */
/* Those of base, but for names that over has too. */
int pairs_merge(const struct sandbox_pair *base, size_t n_base, const struct sandbox_pair *over,
		size_t n_over, struct pairs *ret);
void pairs_done(struct pairs *p);
/* {"NAME":"value"} and back: -EINVAL, -ENOMEM. "" is empty. */
void pairs_write(const struct sandbox_pair *items, size_t n, struct jw *w);
int pairs_parse(const char *json, struct pairs *ret);
int pairs_read(struct jv v, struct pairs *ret); /* absent: empty */
/* Those of a request, in the arena. NULL without memory, or when there are none. */
const struct sandbox_pair *pairs_given(struct arena *a, const struct jv_pairs *from);
