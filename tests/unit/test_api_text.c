#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "api/text.h"
#include "base/buf.h"
#include "base/signals.h"

/* Fed in two pieces, wherever the cut is, the same text comes out. */
static void a_character_cut_between_two_pieces_comes_out_whole(void **state)
{
	static const char *const texts[] = {
		"plain",
		"gr\xc3\xbc\xc3\x9f",
		"\xe2\x82\xac",
		"\xf0\x9f\xa6\xa6 otter",
		"\xe2\x82\xac\xe2\x82\xac",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		size_t n = strlen(texts[i]);

		for (size_t cut = 0; cut <= n; cut++) {
			struct text_tail t = { 0 };
			struct buf b = { 0 };

			assert_int_equal(text_feed(&t, texts[i], cut, &b), 0);
			/* Nothing that has come out ends within a character. */
			assert_true(b.len == 0 || b.len == cut || t.len > 0);
			assert_int_equal(text_feed(&t, texts[i] + cut, n - cut, &b), 0);
			assert_int_equal(t.len, 0);
			assert_string_equal(buf_str(&b), texts[i]);
			buf_done(&b);
		}
	}
}

static void a_character_can_arrive_byte_by_byte(void **state)
{
	static const char otter[] = "\xf0\x9f\xa6\xa6";
	struct text_tail t = { 0 };
	struct buf b = { 0 };

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(text_feed(&t, otter + i, 1, &b), 0);
		assert_int_equal(b.len, 0);
		assert_int_equal(t.len, i + 1);
	}
	assert_int_equal(text_feed(&t, otter + 3, 1, &b), 0);
	assert_string_equal(buf_str(&b), otter);
	buf_done(&b);
}

static void bytes_that_can_never_be_text_are_not_held(void **state)
{
	static const struct {
		const char *data;
		size_t held;
	} rows[] = {
		{ "a\xff", 0 },     { "a\x80", 0 },     { "a\xc0", 0 },
		{ "a\xed\xa0", 0 }, { "a\xf5", 0 },     { "\x80\x80\x80\x80", 0 },
		{ "a\xc3", 1 },     { "a\xe2\x82", 2 }, { "a\xf0\x9f\xa6", 3 },
		{ "a\xe2\xe2", 1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct text_tail t = { 0 };
		struct buf b = { 0 };

		assert_int_equal(text_feed(&t, rows[i].data, strlen(rows[i].data), &b), 0);
		assert_int_equal(t.len, rows[i].held);
		assert_int_equal(b.len, strlen(rows[i].data) - rows[i].held);
		buf_done(&b);
	}
}

static void what_is_held_at_the_end_comes_out_as_it_is(void **state)
{
	struct text_tail t = { 0 };
	struct buf b = { 0 };

	(void)state;
	assert_int_equal(text_feed(&t, "\xe2\x82", 2, &b), 0);
	assert_int_equal(b.len, 0);
	assert_int_equal(text_end(&t, &b), 0);
	assert_int_equal(b.len, 2);
	assert_int_equal(t.len, 0);
	buf_done(&b);
}

static void a_full_buffer_changes_nothing(void **state)
{
	struct text_tail t = { 0 };
	struct buf b;

	(void)state;
	buf_init(&b, 4);
	assert_int_equal(text_feed(&t, "\xe2\x82", 2, &b), 0);
	assert_true(text_feed(&t, "\xac plus", 6, &b) < 0);
	assert_int_equal(t.len, 2);
	assert_int_equal(b.len, 0);
	buf_done(&b);
}

static void signals_are_found_by_either_name(void **state)
{
	(void)state;
	assert_int_equal(signal_from("SIGINT"), 2);
	assert_int_equal(signal_from("INT"), 2);
	assert_int_equal(signal_from("sigkill"), 9);
	assert_int_equal(signal_from("SIG"), 0);
	assert_int_equal(signal_from(""), 0);
	assert_int_equal(signal_from("SIGNOPE"), 0);
	assert_string_equal(signal_name(15), "SIGTERM");
	assert_null(signal_name(0));
	assert_null(signal_name(64));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_character_cut_between_two_pieces_comes_out_whole),
		cmocka_unit_test(a_character_can_arrive_byte_by_byte),
		cmocka_unit_test(bytes_that_can_never_be_text_are_not_held),
		cmocka_unit_test(what_is_held_at_the_end_comes_out_as_it_is),
		cmocka_unit_test(a_full_buffer_changes_nothing),
		cmocka_unit_test(signals_are_found_by_either_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
