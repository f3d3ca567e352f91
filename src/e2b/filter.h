/* ?metadata= of a list: "team%3Dred"-like pairs that SDKs encode twice, each name and value by
 * itself and then all of it. */
#pragma once

#include <stddef.h>

#include "sandbox/sandbox.h"

struct arena;

#define FILTER_PAIRS_MAX 64u

/* Into at most FILTER_PAIRS_MAX pairs, texts in the arena. -EINVAL (a bad escape, a pair without a
 * name or '='), -E2BIG, -ENOMEM. */
int filter_pairs(const char *text, struct arena *a, struct sandbox_pair ret[FILTER_PAIRS_MAX],
		 size_t *ret_n);
