#include "base/str.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct str str_of(const char *s)
{
	return s ? (struct str){ s, strlen(s) } : (struct str){ "", 0 };
}

bool str_eq(struct str a, struct str b)
{
	return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

bool str_is(struct str a, const char *b)
{
	return str_eq(a, str_of(b));
}

bool str_starts(struct str a, const char *prefix)
{
	size_t n = strlen(prefix);

	return a.len >= n && str_eq((struct str){ a.data, n }, (struct str){ prefix, n });
}

bool str_ends(struct str a, const char *suffix)
{
	size_t n = strlen(suffix);

	if (n == 0)
		return true;
	return a.len >= n && memcmp(a.data + (a.len - n), suffix, n) == 0;
}

static bool is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

struct str str_trim(struct str a)
{
	while (a.len > 0 && is_blank(a.data[0])) {
		a.data++;
		a.len--;
	}
	while (a.len > 0 && is_blank(a.data[a.len - 1]))
		a.len--;
	return a;
}

bool str_split(struct str *rest, char sep, struct str *ret)
{
	const char *end;
	size_t n;

	if (rest->len == 0)
		return false;
	end = memchr(rest->data, sep, rest->len);
	n = end ? (size_t)(end - rest->data) : rest->len;
	*ret = (struct str){ rest->data, n };
	if (end)
		n++; /* the separator goes too */
	rest->data += n;
	rest->len -= n;
	return true;
}

int str_copy(char *dst, size_t size, const char *src)
{
	size_t n = strlen(src);

	if (size == 0)
		return -E2BIG;
	if (n >= size) {
		dst[0] = '\0';
		return -E2BIG;
	}
	memcpy(dst, src, n + 1);
	return 0;
}

int str_format(char *dst, size_t size, const char *fmt, ...)
{
	va_list ap;
	int n;

	if (size == 0)
		return -E2BIG;
	va_start(ap, fmt);
	n = vsnprintf(dst, size, fmt, ap);
	va_end(ap);
	if (n >= 0 && (size_t)n < size)
		return 0;
	dst[0] = '\0'; /* half a path is worse than none */
	return -E2BIG;
}

char *str_dup(struct str s)
{
	char *p = s.len < SIZE_MAX ? malloc(s.len + 1) : NULL;

	if (!p)
		return NULL;
	if (s.len > 0)
		memcpy(p, s.data, s.len);
	p[s.len] = '\0';
	return p;
}

/* Levenshtein's, one row of the matrix at a time. */
size_t str_distance(const char *a, const char *b)
{
	size_t row[STR_FAR], n = strlen(a), m = strlen(b);

	if (n >= STR_FAR || m >= STR_FAR)
		return STR_FAR;
	for (size_t j = 0; j <= m; j++)
		row[j] = j;
	for (size_t i = 1; i <= n; i++) {
		size_t corner = row[0];

		row[0] = i;
		for (size_t j = 1; j <= m; j++) {
			size_t best = corner + (a[i - 1] != b[j - 1]);

			corner = row[j];
			if (row[j] + 1 < best)
				best = row[j] + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			row[j] = best;
		}
	}
	return row[m];
}
