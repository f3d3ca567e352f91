/* UTF-8: strict validation (no overlong forms, surrogates or values above U+10FFFF). */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct buf;

bool utf8_is_valid(const char *s, size_t n);
/* Length of the longest valid prefix; a sequence cut off at the end is not part of it.
 * *ret_cut (may be NULL) says whether what follows could become valid with more bytes. */
size_t utf8_prefix(const char *s, size_t n, bool *ret_cut);
/* Appends s with every invalid byte replaced by U+FFFD; 0 or buf's error. */
int utf8_sanitize(struct buf *b, const char *s, size_t n);
/* Appends s as the inside of a JSON string (escapes, invalid bytes as U+FFFD). */
int utf8_json_escape(struct buf *b, const char *s, size_t n);
