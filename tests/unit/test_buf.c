#include "base/buf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "fault.h"

static void a_zeroed_buffer_is_empty_and_usable(void **state)
{
	struct buf b = { 0 };

	(void)state;
	assert_string_equal(buf_str(&b), "");
	assert_int_equal(buf_puts(&b, "hello"), 0);
	assert_int_equal(buf_putc(&b, ' '), 0);
	assert_int_equal(buf_printf(&b, "%s %d", "number", 7), 0);
	assert_string_equal(buf_str(&b), "hello number 7");
	assert_int_equal(b.len, 14);
	buf_done(&b);
	assert_null(b.data);
	assert_int_equal(b.len, 0);
}

static void bytes_with_nul_inside_are_kept(void **state)
{
	struct buf b = { 0 };

	(void)state;
	assert_int_equal(buf_append(&b, "a\0b", 3), 0);
	assert_int_equal(buf_append(&b, NULL, 0), 0);
	assert_int_equal(b.len, 3);
	assert_memory_equal(b.data, "a\0b", 4);
	buf_done(&b);
}

static void many_appends_keep_every_byte(void **state)
{
	struct buf b = { 0 };

	(void)state;
	for (unsigned i = 0; i < 100000; i++)
		assert_int_equal(buf_putc(&b, (char)(i * 7)), 0);
	for (unsigned i = 0; i < 100000; i++)
		assert_int_equal(b.data[i], (char)(i * 7));
	assert_int_equal(b.data[b.len], '\0');
	buf_done(&b);
}

static void the_ceiling_can_be_filled_to_the_byte(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b, 10);
	assert_int_equal(buf_puts(&b, "0123456789"), 0);
	assert_false(b.failed);
	assert_int_equal(buf_putc(&b, 'x'), -E2BIG);
	assert_true(b.failed);
	assert_string_equal(buf_str(&b), "0123456789");
	buf_done(&b);
	assert_int_equal(b.max, 10);
}

static void what_does_not_fit_leaves_the_contents_untouched(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b, 10);
	assert_int_equal(buf_puts(&b, "01234567"), 0);
	assert_int_equal(buf_printf(&b, "%s", "890"), -E2BIG);
	assert_string_equal(buf_str(&b), "01234567");
	assert_int_equal(b.len, 8);
	buf_done(&b);
}

static void after_a_failure_nothing_more_gets_in_until_cleared(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b, 4);
	assert_int_equal(buf_puts(&b, "too long"), -E2BIG);
	assert_int_equal(buf_putc(&b, 'x'), -E2BIG); /* it would fit, behind a hole */
	assert_int_equal(b.len, 0);
	buf_clear(&b);
	assert_int_equal(buf_puts(&b, "fits"), 0);
	assert_string_equal(buf_str(&b), "fits");
	buf_done(&b);
}

static void absurd_sizes_are_refused(void **state)
{
	struct buf b = { 0 };

	(void)state;
	assert_int_equal(buf_reserve(&b, SIZE_MAX), -E2BIG);
	buf_clear(&b);
	assert_int_equal(buf_reserve(&b, (size_t)BUF_MAX + 1), -E2BIG);
	buf_clear(&b);
	assert_int_equal(buf_putc(&b, 'x'), 0);
	assert_int_equal(buf_reserve(&b, SIZE_MAX), -E2BIG);
	assert_string_equal(buf_str(&b), "x");
	buf_done(&b);
}

static void memory_is_never_asked_for_beyond_the_ceiling(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b, 100);
	for (int i = 0; i < 100; i++)
		assert_int_equal(buf_putc(&b, 'x'), 0);
	assert_int_equal(b.cap, 101);
	buf_done(&b);
}

static void reserved_room_needs_no_further_memory(void **state)
{
	struct buf b = { 0 };

	(void)state;
	assert_int_equal(buf_reserve(&b, 1000), 0);
	fault_arm(1);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(buf_putc(&b, 'x'), 0);
	assert_false(fault_disarm());
	buf_done(&b);
}

static void bytes_leave_from_the_front(void **state)
{
	struct buf b = { 0 };

	(void)state;
	buf_drop(&b, 0);
	assert_int_equal(buf_puts(&b, "abcdef"), 0);
	buf_drop(&b, 2);
	assert_string_equal(buf_str(&b), "cdef");
	buf_drop(&b, 4);
	assert_string_equal(buf_str(&b), "");
	assert_int_equal(b.len, 0);
	buf_done(&b);
}

static void a_taken_text_belongs_to_the_taker(void **state)
{
	struct buf b;
	char *text;

	(void)state;
	buf_init(&b, 50);
	assert_null(buf_take(&b));
	assert_int_equal(buf_reserve(&b, 10), 0);
	assert_null(buf_take(&b)); /* empty, though it has memory */
	assert_null(b.data);
	assert_int_equal(buf_puts(&b, "mine"), 0);
	text = buf_take(&b);
	assert_string_equal(text, "mine");
	assert_int_equal(b.len, 0);
	assert_int_equal(b.max, 50);
	assert_int_equal(buf_puts(&b, "next"), 0);
	assert_string_equal(text, "mine");
	free(text);
	buf_done(&b);
}

static int fill(void *arg)
{
	struct buf b = { 0 };
	int r = 0;

	(void)arg;
	for (int i = 0; r == 0 && i < 2000; i++) {
		size_t len = b.len;

		r = buf_printf(&b, "line %d\n", i);
		if (r < 0) {
			assert_true(b.failed);
			assert_int_equal(b.len, len);
			assert_int_equal(strlen(buf_str(&b)), len);
		}
	}
	buf_done(&b);
	return r;
}

static void every_failed_growth_leaves_the_contents_untouched(void **state)
{
	(void)state;
	assert_true(fault_each(fill, NULL) > 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_zeroed_buffer_is_empty_and_usable),
		cmocka_unit_test(bytes_with_nul_inside_are_kept),
		cmocka_unit_test(many_appends_keep_every_byte),
		cmocka_unit_test(the_ceiling_can_be_filled_to_the_byte),
		cmocka_unit_test(what_does_not_fit_leaves_the_contents_untouched),
		cmocka_unit_test(after_a_failure_nothing_more_gets_in_until_cleared),
		cmocka_unit_test(absurd_sizes_are_refused),
		cmocka_unit_test(memory_is_never_asked_for_beyond_the_ceiling),
		cmocka_unit_test(reserved_room_needs_no_further_memory),
		cmocka_unit_test(bytes_leave_from_the_front),
		cmocka_unit_test(a_taken_text_belongs_to_the_taker),
		cmocka_unit_test(every_failed_growth_leaves_the_contents_untouched),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
