/* Strings: borrowed slices and the few copies we make. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct str {
	const char *data; /* borrowed, not NUL-terminated */
	size_t len;
};

#define STR(lit) ((struct str){ (lit), sizeof(lit) - 1 })

struct str str_of(const char *s); /* NULL gives an empty slice */
bool str_eq(struct str a, struct str b);
bool str_is(struct str a, const char *b);
bool str_starts(struct str a, const char *prefix);
bool str_ends(struct str a, const char *suffix);
struct str str_trim(struct str a); /* without ASCII blanks at both ends */
/* Cuts the part before the first `sep` off *rest; false when *rest is exhausted. "a,,b" gives
 * "a", "", "b"; an empty input gives nothing, and nothing follows a separator at the end. */
bool str_split(struct str *rest, char sep, struct str *ret);

/* Copies src into dst with its NUL; -E2BIG (dst is then "") when it does not fit. */
int str_copy(char *dst, size_t size, const char *src);
/* snprintf that says -E2BIG instead of cutting. */
int str_format(char *dst, size_t size, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Edits (insert, delete, replace a byte) that make a into b; STR_FAR when either is too long for a
 * mistyped word. */
#define STR_FAR 64
size_t str_distance(const char *a, const char *b);
char *str_dup(struct str s); /* owned, NUL-terminated; NULL without memory */
