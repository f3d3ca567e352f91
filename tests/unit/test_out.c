#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fault.h"
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

static void sent(struct out *o)
{
	struct out_chunk c = out_next(o);

	out_sent(o, &c);
}

static void send_all(struct out *o)
{
	while (out_has_unsent(o))
		sent(o);
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
	sent(&o);
	assert_int_equal(put(&o, OUT_STDERR, 4, 'b'), 4);
	c = out_next(&o);
	assert_int_equal(c.stream, OUT_STDERR);
	assert_int_equal(c.offset, 0);
	assert_int_equal(c.len, 4);
	assert_memory_equal(c.data, "bbbb", 4);
	sent(&o);
	assert_int_equal(put(&o, OUT_STDOUT, 1, 'c'), 1);
	assert_int_equal(out_next(&o).offset, 10);
	out_done(&o);
}

static void unsent_bytes_of_one_stream_make_one_chunk(void **state)
{
	struct out_chunk c;
	struct out o;

	(void)state;
	out_init(&o, 0);
	assert_int_equal(put(&o, OUT_STDOUT, 3, 'a'), 3);
	assert_int_equal(put(&o, OUT_STDOUT, 2, 'b'), 2);
	assert_int_equal(put(&o, OUT_STDERR, 1, 'c'), 1);
	c = out_next(&o);
	assert_int_equal(c.stream, OUT_STDOUT);
	assert_int_equal(c.len, 5);
	assert_memory_equal(c.data, "aaabb", 5);
	out_sent(&o, &c);
	c = out_next(&o);
	assert_int_equal(c.stream, OUT_STDERR);
	assert_int_equal(c.len, 1);
	out_done(&o);
}

static void no_chunk_is_larger_than_a_frame_takes(void **state)
{
	struct out o;

	(void)state;
	out_init(&o, 0);
	assert_int_equal(put(&o, OUT_STDOUT, GUEST_CHUNK, 'a'), GUEST_CHUNK);
	assert_int_equal(put(&o, OUT_STDOUT, 1, 'a'), 1);
	assert_int_equal(out_next(&o).len, GUEST_CHUNK);
	sent(&o);
	assert_int_equal(out_next(&o).len, 1);
	assert_int_equal(out_next(&o).offset, GUEST_CHUNK);
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
	uint64_t total = 0;

	(void)state;
	out_init(&o, 0);
	/* A length that does not divide the window, so that the ring wraps at odd places. */
	for (int i = 0; i < 200; i++) {
		size_t room;
		char *to = out_space(&o, &room);
		size_t n = room < 7919 ? room : 7919;
		struct out_chunk c;

		for (size_t k = 0; k < n; k++)
			to[k] = (char)((total + k) % 251);
		out_commit(&o, OUT_STDOUT, n);
		c = out_next(&o);
		assert_int_equal(c.len, n);
		for (size_t k = 0; k < n; k++)
			assert_int_equal((unsigned char)c.data[k], (total + k) % 251);
		assert_int_equal(c.offset, total);
		sent(&o);
		total += n;
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
	sent(&o);
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
	out_abandon(&o);
	assert_false(o.is_truncated);
	assert_true(out_is_dropping(&o));
	out_commit(&o, OUT_STDOUT, 1);
	assert_true(o.is_truncated);
	assert_int_equal(out_next(&o).len, 6); /* what is there is still sent */
	out_done(&o);
}

/* What a client holds: both streams from their beginning on. */
struct reader {
	char *data[OUT_STREAMS];
	uint64_t len[OUT_STREAMS];
};

#define READER_MAX (1u << 20)

/* A chunk must go on where the stream ended, or repeat what is there already. */
static void take_chunk(struct reader *r, const struct out_chunk *c)
{
	uint64_t *len = &r->len[c->stream];
	uint64_t again = *len - c->offset;

	assert_true(c->offset <= *len);
	assert_true(*len + c->len <= READER_MAX);
	again = again < c->len ? again : c->len;
	assert_memory_equal(r->data[c->stream] + c->offset, c->data, again);
	memcpy(r->data[c->stream] + *len, c->data + again, c->len - again);
	*len += c->len - again;
}

static unsigned next_random(unsigned *seed)
{
	*seed = *seed * 1103515245u + 12345u;
	return *seed >> 8;
}

/* One random act; what is written is told apart by its position in its stream. */
static void act(struct out *o, struct reader *r, uint64_t written[OUT_STREAMS], unsigned *seed)
{
	enum out_stream stream = next_random(seed) % 2;
	struct out_chunk c;
	size_t room, n;
	char *to;

	switch (next_random(seed) % 16) {
	case 0: /* the client is lost, and another comes */
		out_rewind(o);
		break;
	case 1:
		n = (size_t)(o->sent_at - o->ring.head);
		assert_int_equal(out_credit(o, n ? next_random(seed) % (n + 1) : 0), 0);
		break;
	case 2:
	case 3:
	case 4:
	case 5:
	case 6:
		if (!out_has_unsent(o))
			break;
		c = out_next(o);
		take_chunk(r, &c);
		out_sent(o, &c);
		break;
	default:
		to = out_space(o, &room);
		n = next_random(seed) % (next_random(seed) % 8 ? 5 : 4000);
		n = n < room ? n : room;
		n = written[stream] + n < READER_MAX ? n : 0;
		for (size_t i = 0; i < n; i++)
			to[i] = (char)((written[stream] + i) * 7 + stream);
		if (n > 0)
			out_commit(o, stream, n);
		written[stream] += n;
	}
}

static void expect_all(const struct reader *r, const uint64_t written[OUT_STREAMS])
{
	for (int i = 0; i < OUT_STREAMS; i++) {
		assert_int_equal(r->len[i], written[i]);
		for (uint64_t k = 0; k < written[i]; k++)
			assert_int_equal(r->data[i][k], (char)(k * 7 + (uint64_t)i));
	}
}

static void a_replay_at_any_moment_loses_no_byte_and_keeps_the_order(void **state)
{
	for (unsigned round = 1; round <= 30; round++) {
		struct reader r = { { malloc(READER_MAX), malloc(READER_MAX) }, { 0 } };
		uint64_t written[OUT_STREAMS] = { 0 };
		unsigned seed = round;
		struct out_chunk c;
		struct out o;

		(void)state;
		out_init(&o, 0);
		for (int i = 0; i < 4000; i++)
			act(&o, &r, written, &seed);
		out_rewind(&o);
		if (round % 2)
			out_shrink(&o);
		for (; out_has_unsent(&o); out_sent(&o, &c)) {
			c = out_next(&o);
			take_chunk(&r, &c);
		}
		expect_all(&r, written);
		out_done(&o);
		free(r.data[0]);
		free(r.data[1]);
	}
}

static void streams_that_take_turns_byte_by_byte_fill_the_window_all_the_same(void **state)
{
	struct out o;
	size_t n = 0;

	(void)state;
	out_init(&o, 0);
	while (put(&o, n % 2 ? OUT_STDERR : OUT_STDOUT, 1, 'x') == 1)
		n++;
	assert_int_equal(n, GUEST_WINDOW);
	send_all(&o);
	assert_int_equal(o.offset[OUT_STDOUT], GUEST_WINDOW / 2);
	assert_int_equal(o.offset[OUT_STDERR], GUEST_WINDOW / 2);
	assert_int_equal(out_credit(&o, 101), 0);
	assert_int_equal(o.base[OUT_STDOUT], 51);
	assert_int_equal(o.base[OUT_STDERR], 50);
	out_rewind(&o);
	assert_int_equal(out_next(&o).stream, OUT_STDERR);
	assert_int_equal(out_next(&o).offset, 50);
	out_done(&o);
}

static void for_a_new_client_nothing_has_been_sent(void **state)
{
	struct out o;

	(void)state;
	out_init(&o, 0);
	assert_int_equal(put(&o, OUT_STDOUT, 6, 'a'), 6);
	send_all(&o);
	assert_int_equal(out_credit(&o, 2), 0);
	out_rewind(&o);
	assert_int_equal(out_credit(&o, 1), -EPROTO);
	assert_int_equal(out_next(&o).offset, 2);
	assert_int_equal(out_next(&o).len, 4);
	sent(&o);
	assert_int_equal(out_credit(&o, 4), 0);
	out_done(&o);
}

static void what_has_ended_takes_no_more_memory_than_its_bytes(void **state)
{
	struct out_chunk c;
	struct out o;

	(void)state;
	out_init(&o, 0);
	for (int i = 0; i < 6; i++) { /* so that what is kept lies around the ring's end */
		assert_true(put(&o, OUT_STDOUT, GUEST_WINDOW / 4 - 20, 'a') > 0);
		send_all(&o);
		assert_int_equal(out_credit(&o, ring_len(&o.ring)), 0);
	}
	assert_int_equal(put(&o, OUT_STDERR, 70, 'e'), 70);
	assert_int_equal(put(&o, OUT_STDOUT, 30, 'f'), 30);
	assert_int_equal(out_memory(&o), GUEST_WINDOW);
	out_shrink(&o);
	assert_int_equal(out_memory(&o), 128);
	for (size_t n = 0; n < 70; n += c.len) {
		c = out_next(&o);
		assert_int_equal(c.stream, OUT_STDERR);
		assert_int_equal(c.offset, n);
		for (size_t i = 0; i < c.len; i++)
			assert_int_equal(c.data[i], 'e');
		out_sent(&o, &c);
	}
	c = out_next(&o);
	assert_int_equal(c.stream, OUT_STDOUT);
	send_all(&o);
	assert_int_equal(out_credit(&o, 100), 0);
	out_shrink(&o);
	assert_int_equal(out_memory(&o), 0);
	out_done(&o);
}

static void without_memory_to_shrink_nothing_is_lost(void **state)
{
	(void)state;
	for (size_t n = 1; n <= 2; n++) {
		struct out o;

		out_init(&o, 0);
		assert_int_equal(put(&o, OUT_STDERR, 5, 'e'), 5);
		fault_arm(n);
		out_shrink(&o);
		assert_true(fault_disarm());
		assert_int_equal(out_memory(&o), GUEST_WINDOW);
		assert_memory_equal(out_next(&o).data, "eeeee", 5);
		out_done(&o);
	}
}

static void what_is_given_up_is_flagged_and_counted(void **state)
{
	struct out o;

	(void)state;
	out_init(&o, 0);
	assert_int_equal(put(&o, OUT_STDOUT, 6, 'a'), 6);
	send_all(&o);
	assert_int_equal(put(&o, OUT_STDERR, 3, 'a'), 3);
	out_give_up(&o);
	assert_true(o.is_truncated);
	assert_false(out_has_unsent(&o));
	assert_int_equal(out_memory(&o), 0);
	assert_int_equal(o.base[OUT_STDOUT], 6);
	assert_int_equal(o.base[OUT_STDERR], 3);
	assert_int_equal(out_credit(&o, 6),
			 0); /* of what was sent before: not the client's fault */
	out_done(&o);
	out_init(&o, 0);
	out_give_up(&o);
	assert_false(o.is_truncated);
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
		cmocka_unit_test(unsent_bytes_of_one_stream_make_one_chunk),
		cmocka_unit_test(no_chunk_is_larger_than_a_frame_takes),
		cmocka_unit_test(no_more_than_the_window_is_kept_without_credit),
		cmocka_unit_test(bytes_keep_their_order_around_the_rings_end),
		cmocka_unit_test(credit_for_what_was_not_sent_is_refused),
		cmocka_unit_test(the_limit_keeps_the_first_bytes_and_counts_the_rest),
		cmocka_unit_test(output_of_exactly_the_limit_is_not_truncated),
		cmocka_unit_test(what_is_abandoned_is_flagged_when_bytes_were_lost),
		cmocka_unit_test(a_replay_at_any_moment_loses_no_byte_and_keeps_the_order),
		cmocka_unit_test(streams_that_take_turns_byte_by_byte_fill_the_window_all_the_same),
		cmocka_unit_test(for_a_new_client_nothing_has_been_sent),
		cmocka_unit_test(what_has_ended_takes_no_more_memory_than_its_bytes),
		cmocka_unit_test(without_memory_to_shrink_nothing_is_lost),
		cmocka_unit_test(what_is_given_up_is_flagged_and_counted),
		cmocka_unit_test(input_is_kept_up_to_the_window),
		cmocka_unit_test(input_behind_the_end_of_a_pipe_is_refused),
		cmocka_unit_test(a_terminals_end_comes_between_what_was_sent_before_and_after),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
