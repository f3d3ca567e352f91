#include "base/utf8.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "check.h"
#include "fault.h"

#define FFFD "\xef\xbf\xbd"

/* By arithmetic instead of the table that the code uses. Returns the length. */
static size_t spell(uint32_t c, char dst[4])
{
	size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
	static const unsigned lead[] = { 0, 0, 0xc0, 0xe0, 0xf0 };

	for (size_t i = n; i-- > 1; c >>= 6)
		dst[i] = (char)(0x80 | (c & 0x3f));
	dst[0] = (char)(lead[n] | c);
	return n;
}

static void every_character_is_valid_and_no_surrogate(void **state)
{
	char text[4];

	(void)state;
	for (uint32_t c = 0; c <= 0x1fffff; c++) {
		size_t n = spell(c, text);
		bool good = c <= 0x10ffff && (c < 0xd800 || c > 0xdfff);

		if (utf8_is_valid(text, n) != good)
			fail_msg("U+%04X", c);
	}
}

static void overlong_and_stray_bytes_are_not_valid(void **state)
{
	static const char *const bad[] = { "\xc0\x80",
					   "\xc1\xbf",
					   "\xe0\x80\x80",
					   "\xe0\x9f\xbf",
					   "\xf0\x80\x80\x80",
					   "\xf0\x8f\xbf\xbf",
					   "\x80",
					   "\xbf",
					   "\xf5\x80\x80\x80",
					   "\xff",
					   "\xfe",
					   "\xc3(" };

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		bool cut = true;

		assert_false(utf8_is_valid(bad[i], strlen(bad[i])));
		assert_int_equal(utf8_prefix(bad[i], strlen(bad[i]), &cut), 0);
		assert_false(cut);
	}
	assert_true(utf8_is_valid(NULL, 0));
	assert_true(utf8_is_valid("a\0b", 3));
}

static void a_sequence_cut_at_the_end_is_told_from_a_wrong_one(void **state)
{
	static const char text[] = "ab\xf0\x9f\xa6\xa6";
	bool cut;

	(void)state;
	for (size_t n = 0; n < sizeof(text); n++) {
		bool whole = n <= 2 || n == 6;

		assert_int_equal(utf8_prefix(text, n < 6 ? n : 6, &cut), n <= 2  ? n
									 : whole ? 6
										 : 2);
		assert_int_equal(cut, !whole);
		if (n == 6)
			break;
	}
	assert_int_equal(utf8_prefix("ab\xf0\x9f\xa6x", 6, &cut), 2);
	assert_false(cut);
	assert_int_equal(utf8_prefix("ab\xe0\x80", 4, &cut), 2);
	assert_false(cut); /* overlong: no byte can make it valid */
	assert_int_equal(utf8_prefix("ab\xed\xa0", 4, &cut), 2);
	assert_false(cut); /* a surrogate */
}

/* Wherever the wrong byte stands in the words that are looked at eight bytes at once. */
static void a_wrong_byte_is_found_at_every_place(void **state)
{
	char text[40];

	(void)state;
	for (size_t n = 1; n <= sizeof(text); n++) {
		for (size_t at = 0; at < n; at++) {
			memset(text, 'x', n);
			text[at] = '\xff';
			assert_int_equal(utf8_prefix(text, n, NULL), at);
		}
	}
}

static void assert_text(int (*fn)(struct buf *, const char *, size_t), const char *in, size_t n,
			const char *want)
{
	struct buf b = { 0 };

	assert_int_equal(fn(&b, in, n), 0);
	assert_string_equal(buf_str(&b), want);
	buf_done(&b);
}

static void invalid_bytes_are_replaced_one_by_one(void **state)
{
	(void)state;
	assert_text(utf8_sanitize, "plain \xc3\xa9", 8, "plain \xc3\xa9");
	assert_text(utf8_sanitize,
		    "a\xff\xfe"
		    "b",
		    4, "a" FFFD FFFD "b");
	assert_text(utf8_sanitize, "\xe2\x82", 2, FFFD FFFD);
	assert_text(utf8_sanitize, "\xed\xa0\x80", 3, FFFD FFFD FFFD);
	assert_text(utf8_sanitize, "", 0, "");
}

static void json_gets_its_escapes(void **state)
{
	(void)state;
	assert_text(utf8_json_escape, "say \"hi\"\\/", 10, "say \\\"hi\\\"\\\\/");
	assert_text(utf8_json_escape, "\b\f\n\r\t", 5, "\\b\\f\\n\\r\\t");
	assert_text(utf8_json_escape, "\0\x01\x1f\x7f", 4, "\\u0000\\u0001\\u001f\x7f");
	assert_text(utf8_json_escape, "\xc3\xa9\xff", 3, "\xc3\xa9" FFFD);
	assert_text(utf8_json_escape, "", 0, "");
}

static void what_needs_an_escape_is_found_at_every_place(void **state)
{
	char text[40], want[64], *end;

	(void)state;
	for (int c = 0; c < 0x80; c++) {
		bool escaped = c < 0x20 || c == '"' || c == '\\';

		for (size_t at = 0; at < sizeof(text); at++) {
			struct buf b = { 0 };

			memset(text, 'x', sizeof(text));
			text[at] = (char)c;
			assert_int_equal(utf8_json_escape(&b, text, sizeof(text)), 0);
			memset(want, 'x', at);
			end = want + at;
			*end++ = escaped ? '\\' : (char)c;
			assert_memory_equal(b.data, want, at + 1);
			assert_int_equal(b.len > sizeof(text), escaped);
			memset(want, 'x', sizeof(text) - at - 1);
			assert_memory_equal(b.data + b.len - (sizeof(text) - at - 1), want,
					    sizeof(text) - at - 1);
			buf_done(&b);
		}
	}
}

static void what_does_not_fit_is_not_appended_in_part(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b, 8);
	assert_int_equal(buf_puts(&b, "keep"), 0);
	assert_int_equal(utf8_sanitize(&b, "ab\xff", 3), -E2BIG);
	assert_string_equal(buf_str(&b), "keep");
	buf_clear(&b);
	assert_int_equal(buf_puts(&b, "keep"), 0);
	assert_int_equal(utf8_json_escape(&b, "ab\n\n", 4), -E2BIG);
	assert_string_equal(buf_str(&b), "keep");
	buf_done(&b);
}

static int escape_all(void *arg)
{
	static const char text[] = "line\n\xff"
				   "more \"text\" that needs a larger buffer than the first";
	struct buf b = { 0 };
	int r = 0;

	(void)arg;
	for (int i = 0; r == 0 && i < 20; i++)
		r = utf8_json_escape(&b, text, sizeof(text) - 1);
	for (int i = 0; r == 0 && i < 20; i++)
		r = utf8_sanitize(&b, text, sizeof(text) - 1);
	buf_done(&b);
	return r;
}

static void missing_memory_is_reported(void **state)
{
	(void)state;
	assert_true(fault_each(escape_all, NULL) > 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_character_is_valid_and_no_surrogate),
		cmocka_unit_test(overlong_and_stray_bytes_are_not_valid),
		cmocka_unit_test(a_sequence_cut_at_the_end_is_told_from_a_wrong_one),
		cmocka_unit_test(a_wrong_byte_is_found_at_every_place),
		cmocka_unit_test(invalid_bytes_are_replaced_one_by_one),
		cmocka_unit_test(json_gets_its_escapes),
		cmocka_unit_test(what_needs_an_escape_is_found_at_every_place),
		cmocka_unit_test(what_does_not_fit_is_not_appended_in_part),
		cmocka_unit_test(missing_memory_is_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
