/* Many small allocations with one end: a request's memory. Nothing is freed singly. */
#pragma once

#include <stddef.h>

struct arena; /* opaque */

/* max: ceiling of all bytes handed out. NULL without memory. */
struct arena *arena_create(size_t max);
struct arena *arena_free(struct arena *a); /* takes NULL, returns NULL */
/* 16-byte aligned, zeroed; NULL without memory or above the ceiling. */
void *arena_alloc(struct arena *a, size_t n);
void *arena_array(struct arena *a, size_t count, size_t size); /* overflow-checked */
char *arena_strndup(struct arena *a, const char *s, size_t n);
char *arena_printf(struct arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Everything is given back but one block, for the next request. Under AddressSanitizer what was
 * handed out before cannot be read any more. */
void arena_reset(struct arena *a);
size_t arena_used(const struct arena *a);
