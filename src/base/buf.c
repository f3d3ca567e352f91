#include "base/buf.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CAP_MIN ((size_t)64)

void buf_init(struct buf *b, size_t max)
{
	*b = (struct buf){ .max = max };
}

void buf_done(struct buf *b)
{
	free(b->data);
	buf_init(b, b->max);
}

void buf_clear(struct buf *b)
{
	b->len = 0;
	b->failed = false;
	if (b->data)
		b->data[0] = '\0';
}

static int fail(struct buf *b, int r)
{
	b->failed = true;
	return r;
}

/* To `need` bytes at least; by doubling, so that many small appends stay cheap. */
static int grow(struct buf *b, size_t need, size_t most)
{
	size_t cap = b->cap < CAP_MIN ? CAP_MIN : b->cap * 2;
	char *data;

	if (cap > most)
		cap = most;
	if (cap < need)
		cap = need;
	data = realloc(b->data, cap);
	if (!data)
		return fail(b, -ENOMEM);
	b->data = data;
	b->cap = cap;
	b->data[b->len] = '\0';
	return 0;
}

int buf_reserve(struct buf *b, size_t more)
{
	size_t max = b->max ? b->max : BUF_MAX;

	/* Once failed, always failed: a text must not have a hole in its middle. */
	if (b->failed || b->len > max || more > max - b->len)
		return fail(b, -E2BIG);
	if (more < b->cap - b->len)
		return 0;
	return grow(b, b->len + more + 1, max < SIZE_MAX ? max + 1 : max);
}

int buf_append(struct buf *b, const void *data, size_t n)
{
	int r = buf_reserve(b, n);

	if (r < 0)
		return r;
	if (n > 0)
		memcpy(b->data + b->len, data, n);
	b->len += n;
	b->data[b->len] = '\0';
	return 0;
}

int buf_puts(struct buf *b, const char *s)
{
	return buf_append(b, s, strlen(s));
}

int buf_putc(struct buf *b, char c)
{
	return buf_append(b, &c, 1);
}

int buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list ap;
	int n, r;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0)
		return fail(b, -E2BIG);
	r = buf_reserve(b, (size_t)n);
	if (r < 0)
		return r;
	va_start(ap, fmt);
	(void)vsnprintf(b->data + b->len, (size_t)n + 1, fmt, ap);
	va_end(ap);
	b->len += (size_t)n;
	return 0;
}

void buf_drop(struct buf *b, size_t n)
{
	if (n == 0)
		return;
	memmove(b->data, b->data + n, b->len - n + 1);
	b->len -= n;
}

const char *buf_str(const struct buf *b)
{
	return b->data ? b->data : "";
}

char *buf_take(struct buf *b)
{
	char *data = b->data;

	if (b->len == 0) {
		buf_done(b);
		return NULL;
	}
	buf_init(b, b->max);
	return data;
}
