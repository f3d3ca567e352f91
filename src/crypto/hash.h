/* SHA-256, at once or piece by piece. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

#define HASH_LEN 32

/* 0, -ENOMEM, or -EIO when the library refuses (a broken installation). */
int hash_sha256(const void *data, size_t n, uint8_t ret[HASH_LEN]);

struct hash; /* opaque */

struct hash *hash_create(void); /* NULL without memory */
struct hash *hash_free(struct hash *h);
CLEANUP_FUNC(struct hash *, hash_free)
int hash_update(struct hash *h, const void *data, size_t n);
/* *to goes on from where *from is. */
int hash_copy(struct hash *to, const struct hash *from);
/* The sum of all updates; h is as new afterwards. */
int hash_final(struct hash *h, uint8_t ret[HASH_LEN]);
