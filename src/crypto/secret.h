/* A value that must not be seen: it shows as "***", is compared in constant time and is zeroed
 * before its memory goes back. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"

struct secret; /* opaque */

#define SECRET_MAX 65536u

/* NULL without memory or above SECRET_MAX. */
struct secret *secret_create(const void *data, size_t n);
struct secret *secret_free(struct secret *s); /* takes NULL, returns NULL */
CLEANUP_FUNC(struct secret *, secret_free)

/* What to print for it: "***", or "" for none (NULL). */
const char *secret_show(const struct secret *s);
/* The one door to the bytes (a NUL stands behind them); NULL for NULL. *ret_len may be NULL. */
const char *secret_reveal(const struct secret *s, size_t *ret_len);

/* The time taken depends on the lengths only. NULL equals nothing, not even NULL. */
bool secret_equals(const struct secret *a, const struct secret *b);
bool secret_is(const struct secret *s, const void *data, size_t n);
bool secret_bytes_equal(const void *a, const void *b, size_t n);
