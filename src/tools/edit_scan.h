/* Which lines of a text are new when one piece of it is replaced by another, from the first place
 * to the last. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct edit_scan {
	const char *at, *stop; /* borrowed: what has not been looked at */
	const char *old_text, *new_text;
	size_t old_len, new_len;
	uint64_t line; /* of `at`, in the text as it will be */
};

struct edit_change {
	uint64_t line;   /* the first that is new, from 1 */
	struct buf text; /* owned by the caller: from its beginning to the end of the last one */
};

void edit_scan_begin(struct edit_scan *s, const char *text, size_t n, const char *old_text,
		     const char *new_text);
bool edit_scan_next(struct edit_scan *s, struct edit_change *ret); /* false: no more */
