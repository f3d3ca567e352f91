#include "check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sandbox/execution.h"
#include "sandbox_rig.h"

/* A program that writes for ever, as a box shows it: within its window. */
struct writer {
	struct fake_box *box;
	uint32_t id;
	uint64_t sent[2], credited;
	bool has_acked;
};

static char byte_at(int stream, uint64_t offset)
{
	return (char)(stream == 1 ? 'a' + offset % 26 : 'A' + offset % 23);
}

/* Takes credit, then says up to n bytes of the stream if the window allows; what it said. */
static size_t write_some(struct sandbox_rig *rig, struct writer *w, int stream, size_t n)
{
	static char data[GUEST_CHUNK];
	uint64_t open;
	struct wire_head head;
	struct rd payload;

	while (rig_recv(rig, w->box, &head, &payload)) {
		if (head.id != w->id)
			continue;
		if (head.type == G_CREDIT)
			w->credited += rd_u64(&payload);
		w->has_acked = w->has_acked || head.type == G_ACK;
	}
	open = w->credited + GUEST_WINDOW - w->sent[0] - w->sent[1];
	n = n < open ? n : (size_t)open;
	n = n < sizeof(data) ? n : sizeof(data);
	if (n == 0)
		return 0;
	for (size_t i = 0; i < n; i++)
		data[i] = byte_at(stream, w->sent[stream - 1] + i);
	rig_say_output(w->box, w->id, stream, w->sent[stream - 1], data, n);
	w->sent[stream - 1] += n;
	return n;
}

/* Somebody who follows, and checks every byte. */
struct follower {
	struct exec_reader *r;
	uint64_t at, omitted, streams[2];
	int told;
	bool is_ended;
};

static void on_readable(void *user)
{
	((struct follower *)user)->told++;
}

/* Reads one chunk; false when there is none now. */
static bool follow_once(struct follower *f)
{
	struct output_chunk c;
	uint64_t omitted;
	int r = exec_read(f->r, &c, &omitted);

	if (r != 1) {
		f->is_ended = r == -ENODATA;
		return false;
	}
	f->omitted += omitted;
	assert_int_equal(c.seq, f->at + omitted);
	f->at = c.seq + c.len;
	if (f->omitted == 0)
		for (size_t i = 0; i < c.len; i++)
			assert_int_equal(c.data[i],
					 byte_at(c.stream, f->streams[c.stream - 1] + i));
	f->streams[c.stream - 1] += c.len;
	return true;
}

/* All that is there, if it was told that there is something. */
static void follow_when_told(struct follower *f)
{
	if (f->told == 0)
		return;
	f->told = 0;
	while (follow_once(f))
		;
}

static struct writer start(struct sandbox_rig *rig, struct sandbox *sb, size_t keep,
			   struct exec_told *t)
{
	struct exec_request req = { .command = "yes", .keep = keep };
	struct writer w = { .box = rig_box(rig, sb->id) };

	w.id = rig_exec(rig, sb, &req, t);
	return w;
}

static int count_spool(struct sandbox_rig *rig, const char *id)
{
	return faccessat(rig->settings.spool_fd, id, F_OK, 0) == 0;
}

static void little_output_is_left_with_the_box_and_much_goes_to_a_file(void **state)
{
	struct sandbox_rig rig;
	struct exec_told t;
	struct writer w;
	struct sandbox *sb;
	char id[ID_LEN + 1];

	(void)state;
	rig_open(&rig);
	sb = rig_create(&rig, "");
	w = start(&rig, sb, 0, &t);
	memcpy(id, t.x->id, sizeof(id));
	assert_int_equal(write_some(&rig, &w, 1, EXECUTION_SMALL), EXECUTION_SMALL);
	rig_run(&rig);
	assert_int_equal(write_some(&rig, &w, 1, 1), 1); /* nothing was credited before */
	assert_int_equal(w.credited, 0);
	assert_int_equal(output_end(t.x->output), EXECUTION_SMALL);
	assert_false(output_is_persistent(t.x->output));
	rig_run(&rig);
	assert_true(output_is_persistent(t.x->output));
	assert_int_equal(count_spool(&rig, id), 1);
	assert_int_equal(write_some(&rig, &w, 1, 1), 1);
	assert_int_equal(w.credited, EXECUTION_SMALL + 1);
	rig_say_exit(w.box, w.id, 0, 0);
	rig_run(&rig);
	(void)write_some(&rig, &w, 1, 0);
	assert_true(w.has_acked);
	assert_int_equal(count_spool(&rig, id), 0); /* the store has it */
	exec_told_done(&t);
	rig_close(&rig);
}

static void output_without_a_file_goes_on_in_memory(void **state)
{
	struct sandbox_rig rig;
	struct exec_told t;
	struct writer w;
	size_t n = 0;

	(void)state;
	rig_open(&rig);
	rig.all->settings.spool_fd = -1;
	w = start(&rig, rig_create(&rig, ""), 0, &t);
	while (n < 600000) {
		n += write_some(&rig, &w, 1, GUEST_CHUNK);
		rig_run(&rig);
	}
	assert_int_equal(output_end(t.x->output), n);
	assert_false(output_is_persistent(t.x->output));
	exec_told_done(&t);
	rig_close(&rig);
}

static void without_a_reader_the_oldest_give_way_and_that_is_flagged(void **state)
{
	struct sandbox_rig rig;
	struct exec_told t;
	struct exec_info info;
	struct follower f = { 0 };
	struct writer w;
	size_t n = 0;

	(void)state;
	rig_open(&rig);
	w = start(&rig, rig_create(&rig, ""), 64 << 10, &t);
	while (n < 1 << 20) { /* never stops: nobody reads */
		size_t said = write_some(&rig, &w, 1 + (n / GUEST_CHUNK) % 2, GUEST_CHUNK);

		assert_true(said > 0);
		n += said;
		rig_run(&rig);
	}
	exec_info(t.x, &info);
	assert_true(info.flags & EXECUTION_TRUNCATED);
	assert_int_equal(info.output_end, n);
	assert_int_equal(info.output_begin, n - (64 << 10));
	f.r = exec_reader_open(t.x, 0, on_readable, &f);
	assert_int_equal(f.told, 0);
	rig_run(&rig);
	assert_int_equal(f.told, 1);
	while (follow_once(&f))
		;
	assert_int_equal(f.omitted, n - (64 << 10));
	assert_int_equal(f.at, n);
	exec_reader_close(f.r);
	exec_told_done(&t);
	rig_close(&rig);
}

static void follow_both(struct sandbox_rig *rig, struct follower *a, struct follower *b,
			uint64_t end)
{
	for (int i = 0; i < 1000 && (a->at < end || b->at < end); i++) {
		follow_when_told(a);
		rig_turn(rig);
		follow_when_told(b);
		rig_turn(rig);
	}
	assert_int_equal(a->at, end);
	assert_int_equal(b->at, end);
}

/* A new life in which all executions together keep no more than this. */
static void limit_output(struct sandbox_rig *rig, uint64_t max)
{
	rig_death(rig);
	rig->settings.output_max = max;
	rig_birth(rig);
	rig_ready(rig);
	rig_run(rig);
}

static void without_room_for_all_less_is_kept_of_each_and_that_is_flagged(void **state)
{
	enum { MAX = 1 << 20, COUNT = 12, SAID = 512 << 10 };
	struct sandbox_rig rig;
	struct exec_told t[COUNT];
	struct exec_info info;
	struct sandbox *sb;
	uint64_t kept = 0;

	(void)state;
	rig_open(&rig);
	limit_output(&rig, MAX);
	sb = rig_create(&rig, "");
	for (size_t i = 0; i < COUNT; i++) {
		struct writer w = start(&rig, sb, 0, &t[i]);
		size_t n = 0, said;

		while (n < SAID) { /* none has to wait */
			said = write_some(&rig, &w, 1, GUEST_CHUNK);
			assert_true(said > 0);
			n += said;
			rig_run(&rig);
		}
		(void)write_some(&rig, &w, 1, 0); /* takes the last credit */
		exec_info(t[i].x, &info);
		kept += info.output_end - info.output_begin;
		assert_int_equal(info.output_end, n);
		assert_true(info.output_begin < info.output_end);
		/* What is not kept is flagged, and only that. */
		assert_int_equal(!!(info.flags & EXECUTION_TRUNCATED), info.output_begin > 0);
	}
	assert_true(kept <= MAX + COUNT * 2 * EXECUTION_SMALL);
	assert_true(kept < COUNT * SAID / 2);
	for (size_t i = 0; i < COUNT; i++)
		exec_told_done(&t[i]);
	sandbox_delete(sb, "deleted", rig_told, &(struct told){ 0 });
	rig_run(&rig);
	assert_int_equal(output_budget_used(rig.all->output_budget), 0);
	rig_close(&rig);
}

/* step: bytes of each chunk; the streams take turns. max: of all executions together. */
static void check_slow_reader(size_t keep, size_t step, uint64_t max)
{
	struct sandbox_rig rig;
	struct exec_told t;
	struct follower slow = { 0 }, quick = { 0 };
	struct writer w;
	uint64_t stopped;
	int turn = 0;

	rig_open(&rig);
	limit_output(&rig, max);
	w = start(&rig, rig_create(&rig, ""), keep, &t);
	slow.r = exec_reader_open(t.x, 0, on_readable, &slow);
	quick.r = exec_reader_open(t.x, 0, on_readable, &quick);
	while (write_some(&rig, &w, 1 + turn++ % 2, step) > 0) { /* until the box has to wait */
		if (turn % 32 == 0)
			rig_run(&rig);
		follow_when_told(&quick);
	}
	rig_run(&rig);
	if (write_some(&rig, &w, 1, 1) > 0) /* the last credit was on its way */
		rig_run(&rig);
	stopped = w.sent[0] + w.sent[1];
	assert_true(stopped <= keep + GUEST_WINDOW + 1);
	assert_true(quick.at < stopped);
	follow_both(&rig, &slow, &quick, stopped);
	assert_true(write_some(&rig, &w, 2, step) > 0);
	rig_run(&rig);
	follow_both(&rig, &slow, &quick, w.sent[0] + w.sent[1]);
	assert_int_equal(slow.omitted, 0);
	assert_int_equal(slow.streams[0], w.sent[0]);
	assert_int_equal(slow.streams[1], w.sent[1]);
	exec_reader_close(slow.r);
	exec_reader_close(quick.r);
	exec_told_done(&t);
	rig_close(&rig);
}

static void a_slow_reader_stops_the_box_and_loses_nothing(void **state)
{
	(void)state;
	check_slow_reader(1 << 20, GUEST_CHUNK, 1 << 30);
	check_slow_reader(256 << 10, 1000, 1 << 30);
}

static void a_slow_reader_loses_nothing_when_there_is_no_room_for_all(void **state)
{
	(void)state;
	check_slow_reader(1 << 20, GUEST_CHUNK, 40 << 10);
	check_slow_reader(1 << 20, 1000, 1);
}

static void a_slow_reader_loses_nothing_in_a_ring_smaller_than_a_chunk(void **state)
{
	(void)state;
	check_slow_reader(4 << 10, GUEST_CHUNK, 1 << 30);
}

static void a_slow_reader_loses_nothing_when_streams_take_turns_byte_by_byte(void **state)
{
	(void)state;
	check_slow_reader(64 << 10, 1, 1 << 30);
}

static void a_reader_that_goes_lets_the_box_go_on(void **state)
{
	struct sandbox_rig rig;
	struct exec_told t;
	struct follower f = { 0 };
	struct writer w;

	(void)state;
	rig_open(&rig);
	w = start(&rig, rig_create(&rig, ""), 64 << 10, &t);
	f.r = exec_reader_open(t.x, 0, on_readable, &f);
	while (write_some(&rig, &w, 1, GUEST_CHUNK) > 0)
		rig_run(&rig);
	exec_reader_close(f.r);
	rig_run(&rig);
	assert_true(write_some(&rig, &w, 1, GUEST_CHUNK) > 0);
	exec_told_done(&t);
	rig_close(&rig);
}

static void what_a_slow_reader_has_not_read_survives_the_end_and_is_recorded_whole(void **state)
{
	struct sandbox_rig rig;
	struct exec_told t;
	struct follower f = { 0 };
	struct writer w;

	(void)state;
	rig_open(&rig);
	w = start(&rig, rig_create(&rig, ""), 64 << 10, &t);
	assert_non_null(exec_wait(t.x, rig_exec_ended, &t));
	f.r = exec_reader_open(t.x, 0, on_readable, &f);
	while (write_some(&rig, &w, 1, GUEST_CHUNK) > 0)
		rig_run(&rig);
	rig_say_exit(w.box, w.id, 0, 0);
	rig_run(&rig);
	assert_int_equal(t.ends, 1);
	(void)write_some(&rig, &w, 1, 0);
	assert_false(w.has_acked); /* not all of it is in the ring */
	while (!f.is_ended) {
		while (follow_once(&f))
			;
		rig_run(&rig);
	}
	assert_int_equal(f.omitted, 0);
	assert_int_equal(f.at, w.sent[0]);
	(void)write_some(&rig, &w, 1, 0);
	assert_true(w.has_acked);
	exec_reader_close(f.r);
	exec_told_done(&t);
	rig_close(&rig);
}

static void a_reader_may_begin_anywhere_and_sees_the_rest(void **state)
{
	struct sandbox_rig rig;
	struct exec_told t;
	struct follower f = { .at = 10, .streams = { 10 } };
	struct writer w;

	(void)state;
	rig_open(&rig);
	w = start(&rig, rig_create(&rig, ""), 0, &t);
	(void)write_some(&rig, &w, 1, 100);
	rig_run(&rig);
	f.r = exec_reader_open(t.x, 10, on_readable, &f);
	while (follow_once(&f))
		;
	assert_int_equal(f.at, 100);
	assert_false(f.is_ended);
	rig_run(&rig);
	f.told = 0;
	(void)write_some(&rig, &w, 2, 5);
	rig_run(&rig);
	assert_int_equal(f.told, 1);
	assert_true(follow_once(&f));
	assert_int_equal(f.at, 105);
	rig_say_exit(w.box, w.id, 0, 0);
	rig_run(&rig);
	assert_int_equal(f.told, 2); /* that it has ended is told, too */
	assert_false(follow_once(&f));
	assert_true(f.is_ended);
	exec_reader_close(f.r);
	exec_told_done(&t);
	rig_close(&rig);
}

static void readers_and_waiting_callers_are_bounded(void **state)
{
	struct exec_reader *r[EXECUTION_READERS_MAX];
	struct exec_wait *w[EXECUTION_WAITS_MAX];
	struct sandbox_rig rig;
	struct exec_told t;
	struct follower f = { 0 };

	(void)state;
	rig_open(&rig);
	(void)start(&rig, rig_create(&rig, ""), 0, &t);
	for (size_t i = 0; i < EXECUTION_READERS_MAX; i++) {
		r[i] = exec_reader_open(t.x, 0, on_readable, &f);
		assert_non_null(r[i]);
	}
	assert_null(exec_reader_open(t.x, 0, on_readable, &f));
	for (size_t i = 0; i < EXECUTION_WAITS_MAX; i++) {
		w[i] = exec_wait(t.x, rig_exec_ended, &t);
		assert_non_null(w[i]);
	}
	assert_null(exec_wait(t.x, rig_exec_ended, &t));
	for (size_t i = 0; i < EXECUTION_READERS_MAX; i++)
		exec_reader_close(r[i]);
	for (size_t i = 0; i < EXECUTION_WAITS_MAX; i++)
		exec_unwait(w[i]);
	exec_told_done(&t);
	rig_close(&rig);
}

struct closer {
	struct exec_reader *own, *other;
	int told;
};

static void close_both(void *user)
{
	struct closer *c = user;

	c->told++;
	exec_reader_close(c->own);
	exec_reader_close(c->other);
	c->own = c->other = NULL;
}

static void a_reader_that_is_told_may_close_itself_and_others(void **state)
{
	struct sandbox_rig rig;
	struct exec_told t;
	struct closer c = { 0 };
	struct follower f = { 0 };
	struct writer w;

	(void)state;
	rig_open(&rig);
	w = start(&rig, rig_create(&rig, ""), 0, &t);
	c.own = exec_reader_open(t.x, 0, close_both, &c);
	c.other = exec_reader_open(t.x, 0, on_readable, &f);
	(void)write_some(&rig, &w, 1, 10);
	rig_run(&rig);
	assert_int_equal(c.told, 1);
	assert_int_equal(f.told, 0);
	assert_int_equal(t.x->n_readers, 0);
	exec_told_done(&t);
	rig_close(&rig);
}

#define MANY 200
#define BOXES 4

static void two_hundred_stream_at_once_each_its_own(void **state)
{
	static struct writer w[MANY];
	static struct exec_told t[MANY];
	static struct follower f[MANY];
	struct sandbox *sb[BOXES];
	struct sandbox_rig rig;

	(void)state;
	rig_open(&rig);
	for (size_t i = 0; i < BOXES; i++)
		sb[i] = rig_create(&rig, "");
	for (size_t i = 0; i < MANY; i++) {
		w[i] = start(&rig, sb[i % BOXES], 16 << 10, &t[i]);
		f[i].r = exec_reader_open(t[i].x, 0, on_readable, &f[i]);
		assert_non_null(exec_wait(t[i].x, rig_exec_ended, &t[i]));
	}
	for (size_t round = 0; round < 40; round++) {
		for (size_t i = 0; i < MANY; i++) {
			/* A hundred bytes each: credit of one is not another's. */
			(void)write_some(&rig, &w[i], 1 + (int)((round + i) % 2), 100 + i);
			if (i % 50 == 0)
				rig_turn(&rig);
		}
		rig_turn(&rig);
		for (size_t i = 0; i < MANY; i += 1 + round % 3)
			while (follow_once(&f[i]))
				;
	}
	for (size_t i = 0; i < MANY; i++)
		rig_say_exit(w[i].box, w[i].id, (uint32_t)i % 256, 0);
	rig_run(&rig);
	for (size_t i = 0; i < MANY; i++) {
		struct exec_info info;

		while (follow_once(&f[i]))
			;
		assert_true(f[i].is_ended);
		assert_int_equal(t[i].ends, 1);
		assert_int_equal(f[i].omitted, 0);
		assert_int_equal(f[i].streams[0], w[i].sent[0]);
		assert_int_equal(f[i].streams[1], w[i].sent[1]);
		exec_info(t[i].x, &info);
		assert_int_equal(info.exit_code, i % 256);
		exec_reader_close(f[i].r);
		exec_told_done(&t[i]);
	}
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(little_output_is_left_with_the_box_and_much_goes_to_a_file),
		cmocka_unit_test(output_without_a_file_goes_on_in_memory),
		cmocka_unit_test(without_a_reader_the_oldest_give_way_and_that_is_flagged),
		cmocka_unit_test(without_room_for_all_less_is_kept_of_each_and_that_is_flagged),
		cmocka_unit_test(a_slow_reader_loses_nothing_when_there_is_no_room_for_all),
		cmocka_unit_test(a_slow_reader_stops_the_box_and_loses_nothing),
		cmocka_unit_test(a_slow_reader_loses_nothing_in_a_ring_smaller_than_a_chunk),
		cmocka_unit_test(a_slow_reader_loses_nothing_when_streams_take_turns_byte_by_byte),
		cmocka_unit_test(a_reader_that_goes_lets_the_box_go_on),
		cmocka_unit_test(
			what_a_slow_reader_has_not_read_survives_the_end_and_is_recorded_whole),
		cmocka_unit_test(a_reader_may_begin_anywhere_and_sees_the_rest),
		cmocka_unit_test(readers_and_waiting_callers_are_bounded),
		cmocka_unit_test(a_reader_that_is_told_may_close_itself_and_others),
		cmocka_unit_test(two_hundred_stream_at_once_each_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
