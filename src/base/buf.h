/* A growing byte buffer with a ceiling. Zero-initialised is valid and empty (ceiling BUF_MAX).
 * A failed append leaves the contents untouched and marks the buffer failed, so a sequence of
 * appends needs one check at its end: until buf_clear() all others are refused too (-E2BIG). */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define BUF_MAX (64u << 20) /* ceiling of a buffer that was not given one */

struct buf {
	char *data; /* owned; always NUL-terminated behind len once allocated */
	size_t len;
	size_t cap;
	size_t max;  /* 0 means BUF_MAX */
	bool failed; /* an append did not fit or found no memory */
};

void buf_init(struct buf *b, size_t max);
void buf_done(struct buf *b);  /* frees; the buffer is empty and valid again */
void buf_clear(struct buf *b); /* len = 0 and failed = false, memory kept */

/* All return 0, -ENOMEM, or -E2BIG when the ceiling would be passed. */
int buf_reserve(struct buf *b, size_t more); /* room for `more` bytes behind len */
int buf_append(struct buf *b, const void *data, size_t n);
int buf_puts(struct buf *b, const char *s);
int buf_putc(struct buf *b, char c);
int buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

void buf_drop(struct buf *b, size_t n);   /* removes n bytes from the front; n <= len */
const char *buf_str(const struct buf *b); /* never NULL */
char *buf_take(struct buf *b); /* ownership of the text (NULL when empty); b is empty afterwards */
