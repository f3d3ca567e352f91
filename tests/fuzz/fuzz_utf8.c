/* Any bytes as UTF-8, against a decoder that works by arithmetic instead of a table. */
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/utf8.h"
#include "fuzz.h"

/* Length of the character at s, 0 when there is none. */
static size_t plain_sequence(const uint8_t *s, size_t n)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t len = s[0] < 0x80       ? 1
		     : s[0] >> 5 == 6  ? 2
		     : s[0] >> 4 == 14 ? 3
		     : s[0] >> 3 == 30 ? 4
				       : 0;
	uint32_t c;

	if (len == 0 || len > n)
		return 0;
	c = len == 1 ? s[0] : s[0] & (0x7fu >> len);
	for (size_t i = 1; i < len; i++) {
		if (s[i] >> 6 != 2)
			return 0;
		c = c << 6 | (s[i] & 0x3f);
	}
	if (c < least[len] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
		return 0;
	return len;
}

static size_t plain_prefix(const uint8_t *s, size_t n)
{
	size_t at = 0;

	for (size_t len; at < n && (len = plain_sequence(s + at, n - at)) > 0;)
		at += len;
	return at;
}

/* What follows the prefix can become a character: up to three more bytes make it one. */
static bool can_grow(const uint8_t *s, size_t n)
{
	static const uint8_t second[] = { 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf };
	uint8_t text[4] = { 0 };

	if (n == 0 || n > 3)
		return false;
	for (size_t k = 0; k < sizeof(second); k++) {
		memset(text, 0x80, sizeof(text));
		memcpy(text, s, n);
		if (n == 1)
			text[1] = second[k];
		if (plain_sequence(text, sizeof(text)) > n)
			return true;
	}
	return false;
}

static void check_json(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		MUST((unsigned char)s[i] >= 0x20 && s[i] != '"');
		if (s[i] == '\\')
			MUST(strchr("\"\\bfnrtu", s[++i]) && i < n);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(buf_done) struct buf clean = { 0 }, twice = { 0 }, json = { 0 };
	const char *s = (const char *)data;
	bool cut;
	size_t n = utf8_prefix(s, size, &cut);

	MUST(n == plain_prefix(data, size));
	MUST(utf8_is_valid(s, size) == (n == size));
	MUST(cut == can_grow(data + n, size - n));
	MUST(utf8_sanitize(&clean, s, size) == 0);
	MUST(utf8_is_valid(buf_str(&clean), clean.len));
	MUST(utf8_sanitize(&twice, buf_str(&clean), clean.len) == 0);
	MUST(twice.len == clean.len && memcmp(buf_str(&twice), buf_str(&clean), clean.len) == 0);
	MUST(utf8_json_escape(&json, s, size) == 0);
	MUST(utf8_is_valid(buf_str(&json), json.len));
	check_json(buf_str(&json), json.len);
	return 0;
}
