#include "base/utf8.h"

#include <stdint.h>
#include <string.h>

#include "base/buf.h"

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

/* Well-formed sequences by their first byte (Unicode, table 3-7): how long, and which second bytes
 * rule out overlong forms, surrogates and values above U+10FFFF. Later bytes are 80..BF. */
static const struct {
	uint8_t first, last, len, lo, hi;
} forms[] = {
	{ 0x00, 0x7f, 1, 0x00, 0x00 }, { 0xc2, 0xdf, 2, 0x80, 0xbf }, { 0xe0, 0xe0, 3, 0xa0, 0xbf },
	{ 0xe1, 0xec, 3, 0x80, 0xbf }, { 0xed, 0xed, 3, 0x80, 0x9f }, { 0xee, 0xef, 3, 0x80, 0xbf },
	{ 0xf0, 0xf0, 4, 0x90, 0xbf }, { 0xf1, 0xf3, 4, 0x80, 0xbf }, { 0xf4, 0xf4, 4, 0x80, 0x8f },
};

/* Length of the sequence at s, 0 when it is none. *ret_cut: it is one as far as it goes. */
static size_t sequence(const uint8_t *s, size_t n, bool *ret_cut)
{
	size_t row = 0;

	*ret_cut = false;
	while (row < sizeof(forms) / sizeof(forms[0]) && s[0] > forms[row].last)
		row++;
	if (row == sizeof(forms) / sizeof(forms[0]) || s[0] < forms[row].first)
		return 0;
	for (size_t i = 1; i < forms[row].len; i++) {
		uint8_t lo = i == 1 ? forms[row].lo : 0x80, hi = i == 1 ? forms[row].hi : 0xbf;

		if (i == n) {
			*ret_cut = true;
			return 0;
		}
		if (s[i] < lo || s[i] > hi)
			return 0;
	}
	return forms[row].len;
}

/* Output is mostly ASCII: eight bytes at a time while it is. */
static size_t ascii_run(const uint8_t *s, size_t n)
{
	size_t i = 0;

	for (uint64_t word; n - i >= sizeof(word); i += sizeof(word)) {
		memcpy(&word, s + i, sizeof(word));
		if (word & 0x8080808080808080ull)
			break;
	}
	while (i < n && s[i] < 0x80)
		i++;
	return i;
}

size_t utf8_prefix(const char *s, size_t n, bool *ret_cut)
{
	const uint8_t *p = (const uint8_t *)s;
	bool cut = false;
	size_t i = 0;

	while (i < n) {
		size_t len = ascii_run(p + i, n - i);

		if (len == 0)
			len = sequence(p + i, n - i, &cut);
		if (len == 0)
			break;
		i += len;
	}
	if (ret_cut)
		*ret_cut = cut;
	return i;
}

bool utf8_is_valid(const char *s, size_t n)
{
	return utf8_prefix(s, n, NULL) == n;
}

/* A failed buffer keeps the contents it had before the whole text, not a part of it. */
static int undo(struct buf *b, size_t len, int r)
{
	b->len = len;
	if (b->data)
		b->data[len] = '\0';
	return r;
}

int utf8_sanitize(struct buf *b, const char *s, size_t n)
{
	size_t before = b->len;
	int r;

	for (size_t i = 0; i < n;) {
		size_t len = utf8_prefix(s + i, n - i, NULL);

		r = len ? buf_append(b, s + i, len) : buf_puts(b, REPLACEMENT);
		if (r < 0)
			return undo(b, before, r);
		i += len ? len : 1;
	}
	return 0;
}

static int put_escape(struct buf *b, unsigned char c)
{
	static const char *const shorts[] = {
		['\b'] = "\\b", ['\f'] = "\\f", ['\n'] = "\\n", ['\r'] = "\\r",
		['\t'] = "\\t", ['"'] = "\\\"", ['\\'] = "\\\\"
	};

	if (c < sizeof(shorts) / sizeof(shorts[0]) && shorts[c])
		return buf_puts(b, shorts[c]);
	return buf_printf(b, "\\u%04x", c);
}

static bool needs_escape(unsigned char c)
{
	return c < 0x20 || c == '"' || c == '\\';
}

#define EACH(c) (0x0101010101010101ull * (c))

/* Whether one of eight bytes is below c, which is at most 0x80. */
static bool has_below(uint64_t word, uint64_t c)
{
	return (word - EACH(c)) & ~word & EACH(0x80);
}

/* Bytes at s, valid UTF-8 all of them, that stand in JSON as they are. */
static size_t json_run(const char *s, size_t n)
{
	size_t i = 0;

	for (uint64_t word; n - i >= sizeof(word); i += sizeof(word)) {
		memcpy(&word, s + i, sizeof(word));
		if (has_below(word, 0x20) || has_below(word ^ EACH('"'), 1) ||
		    has_below(word ^ EACH('\\'), 1))
			break;
	}
	while (i < n && !needs_escape((unsigned char)s[i]))
		i++;
	return i;
}

static int json_valid(struct buf *b, const char *s, size_t n)
{
	int r = 0;

	for (size_t i = 0; i < n && r == 0;) {
		size_t run = json_run(s + i, n - i);

		r = run ? buf_append(b, s + i, run) : put_escape(b, (unsigned char)s[i]);
		i += run ? run : 1;
	}
	return r;
}

int utf8_json_escape(struct buf *b, const char *s, size_t n)
{
	size_t before = b->len;
	int r;

	for (size_t i = 0; i < n;) {
		size_t len = utf8_prefix(s + i, n - i, NULL);

		r = len ? json_valid(b, s + i, len) : buf_puts(b, REPLACEMENT);
		if (r < 0)
			return undo(b, before, r);
		i += len ? len : 1;
	}
	return 0;
}
