#include "cli/escape.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/buf.h"
#include "base/utf8.h"

/* Bytes of a control character at s, of n valid ones; 0 when it is none: C0, DEL, C1 (U+0080 to
 * U+009F), and what sets the direction of text (U+200E, U+200F, U+202A to U+202E, U+2066 to
 * U+2069). */
static size_t control_length(const unsigned char *s, size_t n)
{
	if (s[0] < 0x20 || s[0] == 0x7f)
		return 1;
	if (n >= 2 && s[0] == 0xc2 && s[1] < 0xa0)
		return 2;
	if (n < 3 || s[0] != 0xe2)
		return 0;
	if (s[1] == 0x80 && (s[2] == 0x8e || s[2] == 0x8f || (s[2] >= 0xaa && s[2] <= 0xae)))
		return 3;
	return s[1] == 0x81 && s[2] >= 0xa6 && s[2] <= 0xa9 ? 3 : 0;
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
