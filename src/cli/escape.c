#include "cli/escape.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/buf.h"
#include "base/utf8.h"

static bool is_between(unsigned char c, unsigned char first, unsigned char last)
{
	return c >= first && c <= last;
}

/* U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069: what sets the direction of text. */
static bool is_direction(const unsigned char *s)
{
	if (s[0] != 0xe2)
		return false;
	if (s[1] == 0x80)
		return is_between(s[2], 0x8e, 0x8f) || is_between(s[2], 0xaa, 0xae);
	return s[1] == 0x81 && is_between(s[2], 0xa6, 0xa9);
}

/* Bytes of a control character (C0, DEL, C1, direction) at s, of n valid ones; 0 when it is none.
 */
static size_t control_length(const unsigned char *s, size_t n)
{
	if (s[0] < 0x20 || s[0] == 0x7f)
		return 1;
	if (n >= 2 && s[0] == 0xc2 && s[1] < 0xa0) /* U+0080 to U+009F */
		return 2;
	return n >= 3 && is_direction(s) ? 3 : 0;
}

static void put_hex(struct buf *b, const unsigned char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		(void)buf_printf(b, "\\x%02x", s[i]);
}

static void put_valid(struct buf *b, const unsigned char *s, size_t n)
{
	while (n > 0) {
		size_t len = control_length(s, n);

		if (len > 0)
			put_hex(b, s, len);
		else
			(void)buf_append(b, s, len = 1);
		s += len;
		n -= len;
	}
}

int escape_text(struct buf *b, const char *s, size_t n)
{
	while (n > 0) {
		size_t valid = utf8_prefix(s, n, NULL);

		put_valid(b, (const unsigned char *)s, valid);
		s += valid;
		n -= valid;
		if (n > 0) {
			put_hex(b, (const unsigned char *)s, 1);
			s++;
			n--;
		}
	}
	return b->failed ? -E2BIG : 0;
}
