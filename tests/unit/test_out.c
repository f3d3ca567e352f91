#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "guest/in.h"
#include "guest/out.h"
#include "spec/guest.h"

/* As the loop does it: reads n bytes of the stream, all of the given letter. */
static size_t put(struct out *o, enum out_stream stream, size_t n, char letter)
{
	size_t room;
	char *to = out_space(o, &room);

	assert_non_null(to);
	n = n < room ? n : room;
	memset(to, letter, n);
	if (n > 0)
		out_commit(o, stream, n);
	return n;
}

static void send_all(struct out *o)
{
	while (out_has_unsent(o))
		out_sent(o);
}

static void nothing_is_allocated_before_the_first_byte(void **state)
{
	struct out o;

	(void)state;
	out_init(&o, 0);
	assert_null(o.ring.data);
	assert_false(out_has_unsent(&o));
	out_done(&o);
}

static void a_chunk_says_its_stream_and_its_offset_there(void **state)
{
	struct out_chunk c;
	struct out o;

	(void)state;
	out_init(&o, 0);
	assert_int_equal(put(&o, OUT_STDOUT, 10, 'a'), 10);
	out_sent(&o);
	assert_int_equal(put(&o, OUT_STDERR, 4, 'b'), 4);
	c = out_next(&o);
	assert_int_equal(c.stream, OUT_STDERR);
	assert_int_equal(c.offset, 0);
	assert_int_equal(c.len, 4);
	assert_memory_equal(c.data, "bbbb", 4);
	out_sent(&o);
	assert_int_equal(put(&o, OUT_STDOUT, 1, 'c'), 1);
	assert_int_equal(out_next(&o).offset, 10);
	out_done(&o);
}

static void while_a_chunk_is_unsent_there_is_no_space(void **state)
{
	struct out o;

	(void)state;
	out_init(&o, 0);
	assert_int_equal(put(&o, OUT_STDOUT, 1, 'a'), 1);
	assert_int_equal(put(&o, OUT_STDOUT, 1, 'b'), 0);
	out_sent(&o);
	assert_int_equal(put(&o, OUT_STDOUT, 1, 'b'), 1);
	out_done(&o);
}

static void no_more_than_the_window_is_kept_without_credit(void **state)
{
	size_t total = 0, n;
	struct out o;

	(void)state;
	out_init(&o, 0);
	while ((n = put(&o, OUT_STDOUT, GUEST_CHUNK, 'x')) > 0) {
		assert_true(n <= GUEST_CHUNK);
		total += n;
		send_all(&o);
	}
	assert_int_equal(total, GUEST_WINDOW);
	assert_int_equal(out_credit(&o, 100), 0);
	assert_int_equal(put(&o, OUT_STDOUT, GUEST_CHUNK, 'y'), 100);
	out_done(&o);
}

static void bytes_keep_their_order_around_the_rings_end(void **state)
{
	struct out o;
	uint64_t sent = 0;

	(void)state;
	out_init(&o, 0);
	/* A length that does not divide the window, so that the ring wraps at odd places. */
	for (int i = 0; i < 200; i++) {
		size_t room;
		char *to = out_space(&o, &room);
		size_t n = room < 7919 ? room : 7919;
		struct out_chunk c;

		for (size_t k = 0; k < n; k++)
			to[k] = (char)((sent + k) % 251);
		out_commit(&o, OUT_STDOUT, n);
		c = out_next(&o);
		assert_int_equal(c.len, n);
		for (size_t k = 0; k < n; k++)
			assert_int_equal((unsigned char)c.data[k], (sent + k) % 251);
		assert_int_equal(c.offset, sent);
		out_sent(&o);
		sent += n;
		assert_int_equal(out_credit(&o, n), 0);
	}
	out_done(&o);
}

static void credit_for_what_was_not_sent_is_refused(void **state)
{
	struct out o;

	(void)state;
	out_init(&o, 0);
	assert_int_equal(out_credit(&o, 1), -EPROTO);
	assert_int_equal(put(&o, OUT_STDOUT, 5, 'a'), 5);
	assert_int_equal(out_credit(&o, 1), -EPROTO);
	out_sent(&o);
	assert_int_equal(out_credit(&o, 6), -EPROTO);
	assert_int_equal(out_credit(&o, UINT64_MAX), -EPROTO);
	assert_int_equal(out_credit(&o, 5), 0);
	assert_int_equal(out_credit(&o, 1), -EPROTO);
	assert_int_equal(out_credit(&o, 0), 0);
	out_done(&o);
}

static void the_limit_keeps_the_first_bytes_and_counts_the_rest(void **state)
{
	struct out o;

	(void)state;
	out_init(&o, 10);
	assert_int_equal(put(&o, OUT_STDOUT, 6, 'a'), 6);
	send_all(&o);
	assert_false(out_is_dropping(&o));
	assert_int_equal(put(&o, OUT_STDERR, 6, 'b'), 6);
	assert_int_equal(out_next(&o).len, 4);
	assert_true(o.is_truncated);
	assert_true(out_is_dropping(&o));
	out_commit(&o, OUT_STDOUT, 1000); /* dropping goes on while a chunk waits */
	assert_int_equal(out_next(&o).stream, OUT_STDERR);
	assert_int_equal(o.written, 1012);
	assert_int_equal(o.kept, 10);
	out_done(&o);
}

static void output_of_exactly_the_limit_is_not_truncated(void **state)
{
	struct out o;

	(void)state;
	out_init(&o, 6);
	assert_int_equal(put(&o, OUT_STDOUT, 6, 'a'), 6);
	assert_false(o.is_truncated);
	assert_true(out_is_dropping(&o));
	out_done(&o);
}

static void what_is_abandoned_is_flagged_when_bytes_were_lost(void **state)
{
	struct out o;

	(void)state;
	out_init(&o, 0);
	assert_int_equal(put(&o, OUT_STDOUT, 6, 'a'), 6);
	send_all(&o);
	out_abandon(&o);
	assert_false(o.is_truncated);
	assert_true(out_is_dropping(&o));
	out_commit(&o, OUT_STDOUT, 1);
	assert_true(o.is_truncated);
	assert_false(out_has_unsent(&o));
	out_done(&o);

	out_init(&o, 0);
	assert_int_equal(put(&o, OUT_STDOUT, 6, 'a'), 6);
	out_abandon(&o);
	assert_true(o.is_truncated);
	assert_false(out_has_unsent(&o));
	out_done(&o);
}

static void input_is_kept_up_to_the_window(void **state)
{
	static char chunk[GUEST_CHUNK];
	struct in in;

	(void)state;
	in_init(&in, false);
	for (unsigned n = 0; n < GUEST_WINDOW; n += GUEST_CHUNK)
		assert_int_equal(in_push(&in, chunk, GUEST_CHUNK), 0);
	assert_int_equal(in_push(&in, chunk, 1), -EPROTO);
	in_took(&in, 1);
	assert_int_equal(in_push(&in, chunk, 1), 0);
	in_done(&in);
}

static void input_behind_the_end_of_a_pipe_is_refused(void **state)
{
	struct in in;
	size_t n;

	(void)state;
	in_init(&in, false);
	assert_int_equal(in_push(&in, "abc", 3), 0);
	assert_int_equal(in_push(&in, NULL, 0), 0);
	assert_int_equal(in_push(&in, "d", 1), -EPROTO);
	assert_false(in_is_at_end(&in));
	assert_memory_equal(in_next(&in, &n), "abc", 3);
	assert_int_equal(n, 3);
	in_took(&in, 3);
	assert_true(in_is_at_end(&in));
	in_done(&in);
}

static void a_terminals_end_comes_between_what_was_sent_before_and_after(void **state)
{
	struct in in;
	size_t n;

	(void)state;
	in_init(&in, true);
	assert_int_equal(in_push(&in, "abc", 3), 0);
	assert_int_equal(in_push(&in, NULL, 0), 0);
	assert_int_equal(in_push(&in, "de", 2), 0);
	(void)in_next(&in, &n);
	assert_int_equal(n, 3);
	in_took(&in, 3);
	assert_int_equal(in.last, 'c');
	assert_true(in_is_at_end(&in));
	(void)in_next(&in, &n);
	assert_int_equal(n, 0);
	in_reopen(&in);
	assert_memory_equal(in_next(&in, &n), "de", 2);
	assert_int_equal(n, 2);
	in_done(&in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_allocated_before_the_first_byte),
		cmocka_unit_test(a_chunk_says_its_stream_and_its_offset_there),
		cmocka_unit_test(while_a_chunk_is_unsent_there_is_no_space),
		cmocka_unit_test(no_more_than_the_window_is_kept_without_credit),
		cmocka_unit_test(bytes_keep_their_order_around_the_rings_end),
		cmocka_unit_test(credit_for_what_was_not_sent_is_refused),
		cmocka_unit_test(the_limit_keeps_the_first_bytes_and_counts_the_rest),
		cmocka_unit_test(output_of_exactly_the_limit_is_not_truncated),
		cmocka_unit_test(what_is_abandoned_is_flagged_when_bytes_were_lost),
		cmocka_unit_test(input_is_kept_up_to_the_window),
		cmocka_unit_test(input_behind_the_end_of_a_pipe_is_refused),
		cmocka_unit_test(a_terminals_end_comes_between_what_was_sent_before_and_after),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
