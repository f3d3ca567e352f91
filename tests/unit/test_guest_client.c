/* The client of a box: executions, files and windows by id, and what it does not believe. */
#include "provider/guest_client.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/err.h"
#include "base/fd.h"
#include "check.h"
#include "client_rig.h"
#include "fault.h"

static void an_execution_is_told_from_its_start_to_its_exit(void **state)
{
	struct client_rig *rig = *state;
	struct seen s = { 0 };
	uint32_t id = rig_start(rig, &s);

	rig_say_started(rig, id, true);
	rig_say_output(rig, id, 1, 0, "one\0two", 7);
	rig_say_output(rig, id, 2, 0, "bad", 3);
	rig_say_exit(rig, id, 3, EXIT_TRUNCATED);
	assert_int_equal(guest_dispatch(rig->client), 0);
	assert_int_equal(s.started, 1);
	assert_true(s.warm);
	assert_int_equal(s.out.len, 7);
	assert_memory_equal(s.out.data, "one\0two", 7);
	assert_string_equal(buf_str(&s.err), "bad");
	assert_int_equal(s.exited, 1);
	assert_int_equal(s.exit.code, 3);
	assert_int_equal(s.exit.flags, EXIT_TRUNCATED);
	assert_int_equal(s.failed, 0);
	seen_done(&s);
}

static void what_cannot_start_fails_with_the_guest_s_own_words(void **state)
{
	struct client_rig *rig = *state;
	struct seen s = { 0 };
	uint32_t id = rig_start(rig, &s);

	rig_say_error(rig, id, ENOENT, "exec 'cat': No such file or directory");
	assert_int_equal(guest_dispatch(rig->client), 0);
	assert_int_equal(s.failed, 1);
	assert_int_equal(s.code, ENOENT);
	assert_string_equal(s.text, "exec 'cat': No such file or directory");
}

static void output_is_credited_in_steps_and_never_twice(void **state)
{
	static const char chunk[GUEST_CHUNK];
	struct client_rig *rig = *state;
	struct seen s = { 0 };
	uint32_t id = rig_start(rig, &s);
	struct wire_head head;
	struct rd body;

	rig_say_output(rig, id, 1, 0, chunk, 100);
	assert_int_equal(guest_dispatch(rig->client), 0);
	assert_false(rig_hear(rig, &head, &body));
	rig_say_output(rig, id, 1, 100, chunk, sizeof(chunk));
	assert_int_equal(guest_dispatch(rig->client), 0);
	assert_true(rig_hear(rig, &head, &body));
	assert_int_equal(head.type, G_CREDIT);
	assert_int_equal(rd_u64(&body), 100 + sizeof(chunk));
	assert_false(rig_hear(rig, &head, &body));
	seen_done(&s);
}

static void held_output_is_credited_when_it_is_released(void **state)
{
	static const char chunk[GUEST_CHUNK];
	struct client_rig *rig = *state;
	struct seen s = { 0 };
	uint32_t id = rig_start(rig, &s);
	struct wire_head head;
	struct rd body;

	guest_hold(rig->client, id, true);
	for (size_t i = 0; i < 4; i++)
		rig_say_output(rig, id, 1, i * sizeof(chunk), chunk, sizeof(chunk));
	assert_int_equal(guest_dispatch(rig->client), 0);
	assert_int_equal(s.out.len, GUEST_WINDOW);
	assert_false(rig_hear(rig, &head, &body));
	guest_hold(rig->client, id, false);
	assert_true(rig_hear(rig, &head, &body));
	assert_int_equal(head.type, G_CREDIT);
	assert_int_equal(rd_u64(&body), GUEST_WINDOW);
	seen_done(&s);
}

static void a_guest_that_passes_its_window_is_not_trusted_any_more(void **state)
{
	static const char chunk[GUEST_CHUNK];
	struct client_rig *rig = *state;
	struct seen s = { 0 };
	uint32_t id = rig_start(rig, &s);
	int r = 0;

	guest_hold(rig->client, id, true);
	for (size_t i = 0; r == 0 && i < 9; i++) {
		rig_say_output(rig, id, 1, i * sizeof(chunk), chunk, sizeof(chunk));
		r = guest_dispatch(rig->client);
	}
	assert_int_equal(r, -EPROTO);
	assert_int_equal(s.failed, 1);
	assert_int_equal(s.code, EPROTO);
	assert_int_equal(guest_dispatch(rig->client), -EPROTO);
	seen_done(&s);
}

static void standard_input_stops_at_the_window_and_goes_on_when_taken(void **state)
{
	static const char much[GUEST_WINDOW + 5000];
	struct client_rig *rig = *state;
	struct seen s = { 0 };
	uint32_t id = rig_start(rig, &s);
	struct wire_head head;
	struct rd body;
	size_t heard = 0;

	assert_int_equal(guest_stdin(rig->client, id, much, sizeof(much)), GUEST_WINDOW);
	assert_int_equal(guest_stdin(rig->client, id, much, 1), 0);
	while (rig_hear(rig, &head, &body)) {
		size_t n;

		assert_int_equal(head.type, G_STDIN);
		(void)rd_rest(&body, &n);
		heard += n;
		assert_int_equal(guest_dispatch(rig->client), 0); /* sends what was queued */
	}
	assert_int_equal(heard, GUEST_WINDOW);
	rig_say_u64(rig, G_TAKEN, id, 1000);
	assert_int_equal(guest_dispatch(rig->client), 0);
	assert_int_equal(s.taken, 1000);
	assert_int_equal(guest_stdin(rig->client, id, much, sizeof(much)), 1000);
	assert_int_equal(guest_stdin(rig->client, id, NULL, 0), 0);
}

static void taking_more_than_was_sent_breaks_the_connection(void **state)
{
	struct client_rig *rig = *state;
	struct seen s = { 0 };
	uint32_t id = rig_start(rig, &s);

	assert_int_equal(guest_stdin(rig->client, id, "abc", 3), 3);
	rig_say_u64(rig, G_TAKEN, id, 4);
	assert_int_equal(guest_dispatch(rig->client), -EPROTO);
	assert_int_equal(s.failed, 1);
}

static void a_box_that_dies_fails_everything_that_lives(void **state)
{
	struct client_rig *rig = *state;
	struct seen a = { 0 }, b = { 0 };

	(void)rig_start(rig, &a);
	(void)rig_start(rig, &b);
	rig->guest = fd_close(rig->guest);
	assert_int_equal(guest_dispatch(rig->client), -EPIPE);
	assert_int_equal(a.failed, 1);
	assert_int_equal(b.failed, 1);
	assert_int_equal(b.code, EPIPE);
	assert_int_equal(guest_stdin(rig->client, 1, "x", 1), -EPIPE);
}

static void output_before_the_death_is_not_lost(void **state)
{
	struct client_rig *rig = *state;
	struct seen s = { 0 };
	uint32_t id = rig_start(rig, &s);

	rig_say_output(rig, id, 1, 0, "last words", 10);
	rig->guest = fd_close(rig->guest);
	assert_int_equal(guest_dispatch(rig->client), -EPIPE);
	assert_string_equal(buf_str(&s.out), "last words");
	assert_int_equal(s.failed, 1);
	seen_done(&s);
}

static void frames_of_an_id_that_has_ended_are_passed_over(void **state)
{
	struct client_rig *rig = *state;
	struct seen s = { 0 };
	uint32_t id = rig_start(rig, &s);

	rig_say_exit(rig, id, 0, 0);
	rig_say_u64(rig, G_TAKEN, id, 12);
	rig_say_exit(rig, 4711, 0, 0);
	assert_int_equal(guest_dispatch(rig->client), 0);
	assert_int_equal(s.exited, 1);
	assert_int_equal(guest_signal(rig->client, id, 15, true), -ENOENT);
	assert_int_equal(guest_cancel(rig->client, id), -ENOENT);
}

static void a_frame_that_does_not_belong_to_the_operation_breaks_the_connection(void **state)
{
	struct client_rig *rig = *state;
	struct seen s = { 0 };
	uint32_t id = rig_start(rig, &s);

	rig_say_u64(rig, G_DONE, id, 0);
	assert_int_equal(guest_dispatch(rig->client), -EPROTO);
	assert_int_equal(s.failed, 1);
	assert_int_equal(s.done, 0);
}

/* Otherwise a box that says as much as it can would keep all others waiting. */
static void a_guest_that_does_not_stop_is_not_listened_to_all_day(void **state)
{
	struct client_rig *rig = *state;
	struct seen s = { 0 };
	uint32_t id = rig_start(rig, &s);
	int before;

	for (int i = 0; i < 200; i++)
		rig_say_u64(rig, G_TAKEN, id, 0);
	rig_say_output(rig, id, 1, 0, "last", 4);
	assert_int_equal(guest_dispatch(rig->client), 0);
	assert_int_equal(s.out.len, 0);
	for (before = 0; s.out.len == 0 && before < 10; before++)
		assert_int_equal(guest_dispatch(rig->client), 0); /* nothing is lost */
	assert_string_equal(buf_str(&s.out), "last");
	seen_done(&s);
}

static void garbage_breaks_the_connection(void **state)
{
	struct client_rig *rig = *state;
	struct seen s = { 0 };

	(void)rig_start(rig, &s);
	assert_int_equal(fd_send(rig->guest, "not a frame at all", 18, NULL, 0), 18);
	assert_true(guest_dispatch(rig->client) < 0);
	assert_int_equal(s.failed, 1);
}

static void a_broken_box_says_so_with_id_zero(void **state)
{
	struct client_rig *rig = *state;
	struct seen s = { 0 };

	(void)rig_start(rig, &s);
	rig_say_error(rig, 0, EIO, "unusable");
	assert_true(guest_dispatch(rig->client) < 0);
	assert_int_equal(s.failed, 1);
}

static void a_watch_is_armed_by_done_and_ended_by_its_error(void **state)
{
	struct client_rig *rig = *state;
	struct guest_file f = { .op = FILE_WATCH, .user = "", .path = "/", .target = "" };
	struct seen s = { 0 };
	uint8_t frame[64];
	struct wr w;
	uint32_t id;

	assert_int_equal(guest_file(rig->client, &f, &rig_callbacks, &s, &id, NULL), 0);
	rig_say_u64(rig, G_DONE, id, 0);
	wire_begin(&w, frame, sizeof(frame), G_EVENT, id);
	wr_u8(&w, EVENT_CREATE);
	wr_str(&w, "new");
	rig_say(rig, frame, wire_finish(&w));
	rig_say_error(rig, id, ECANCELED, "cancelled");
	assert_int_equal(guest_dispatch(rig->client), 0);
	assert_int_equal(s.done, 1);
	assert_int_equal(s.events, 1);
	assert_int_equal(s.failed, 1);
}

static void the_blocking_exec_collects_both_streams(void **state)
{
	struct client_rig *rig = *state;
	struct guest_exec e = { .user = "", .cwd = "", .code = "", .argc = 1, .argv = { "x" } };
	struct guest_result r = { 0 };

	rig_say_started(rig, 1, true);
	rig_say_output(rig, 1, 1, 0, "out", 3);
	rig_say_output(rig, 1, 2, 0, "err", 3);
	rig_say_output(rig, 1, 1, 3, "put", 3);
	rig_say_exit(rig, 1, 9, EXIT_SIGNALED);
	assert_int_equal(guest_exec_sync(rig->client, &e, NULL, 0, &r, NULL), 0);
	assert_string_equal(buf_str(&r.out), "output");
	assert_string_equal(buf_str(&r.err), "err");
	assert_int_equal(r.exit.code, 9);
	assert_true(r.warm);
	guest_result_done(&r);
}

static void the_blocking_exec_gives_the_guest_s_reason(void **state)
{
	struct client_rig *rig = *state;
	struct guest_exec e = { .user = "", .cwd = "", .code = "", .argc = 1, .argv = { "x" } };
	struct guest_result r = { 0 };
	struct err err = { 0 };

	rig_say_error(rig, 1, EACCES, "exec 'x': Permission denied");
	assert_int_equal(guest_exec_sync(rig->client, &e, NULL, 0, &r, &err), -EACCES);
	assert_string_equal(err.text, "exec 'x': Permission denied");
}

static void the_blocking_read_gives_the_file(void **state)
{
	struct client_rig *rig = *state;
	uint8_t frame[64];
	struct buf b = { 0 };

	rig_say(rig, frame, guest_put_raw(frame, sizeof(frame), G_DATA, 1, "con", 3));
	rig_say(rig, frame, guest_put_raw(frame, sizeof(frame), G_DATA, 1, "tents", 5));
	rig_say_u64(rig, G_DONE, 1, 8);
	assert_int_equal(guest_read_sync(rig->client, "/f", &b, NULL), 0);
	assert_string_equal(buf_str(&b), "contents");
	buf_done(&b);
}

static void the_blocking_write_sends_all_and_then_the_end(void **state)
{
	struct client_rig *rig = *state;
	struct wire_head head;
	struct rd body;
	size_t n;

	rig_say_u64(rig, G_DONE, 1, 5);
	assert_int_equal(guest_write_sync(rig->client, "/f", "hello", 5, 0600, NULL), 0);
	assert_true(rig_hear(rig, &head, &body));
	assert_int_equal(head.type, G_FILE);
	assert_true(rig_hear(rig, &head, &body));
	assert_int_equal(head.type, G_DATA);
	assert_memory_equal(rd_rest(&body, &n), "hello", 5);
	assert_int_equal(n, 5);
	assert_true(rig_hear(rig, &head, &body));
	assert_int_equal(head.type, G_DATA);
	assert_int_equal(head.len, 0);
}

static void a_list_hands_out_each_entry(void **state)
{
	struct client_rig *rig = *state;
	struct guest_file f = { .op = FILE_LIST, .user = "", .path = "/", .target = "" };
	struct guest_entry entry = { .type = ENTRY_FILE, .path = "notes", .target = "" };
	struct seen s = { 0 };
	uint8_t frame[256];

	rig_say(rig, frame, guest_put_entry(frame, sizeof(frame), 1, &entry));
	rig_say(rig, frame, guest_put_entry(frame, sizeof(frame), 1, &entry));
	rig_say_u64(rig, G_DONE, 1, 2);
	assert_int_equal(guest_file_sync(rig->client, &f, &rig_callbacks, &s, NULL), 0);
	assert_int_equal(s.entries, 2);
	assert_int_equal(s.count, 2);
}

static void a_ping_that_nobody_answers_times_out_and_may_be_answered_late(void **state)
{
	struct client_rig *rig = *state;
	uint8_t frame[64];

	assert_int_equal(guest_ping_sync(rig->client, 0), -ETIMEDOUT);
	rig_say(rig, frame, guest_put_raw(frame, sizeof(frame), G_PONG, 1, NULL, 0));
	assert_int_equal(guest_dispatch(rig->client), 0);
	rig_say(rig, frame, guest_put_raw(frame, sizeof(frame), G_PONG, 2, NULL, 0));
	assert_int_equal(guest_ping_sync(rig->client, 10000), 0);
}

static void a_forgotten_execution_is_still_credited(void **state)
{
	static const char chunk[GUEST_CHUNK];
	struct client_rig *rig = *state;
	struct seen s = { 0 };
	uint32_t id = rig_start(rig, &s);
	struct wire_head head;
	struct rd body;

	guest_forget(rig->client, id);
	rig_say_output(rig, id, 1, 0, chunk, sizeof(chunk));
	rig_say_exit(rig, id, 0, 0);
	assert_int_equal(guest_dispatch(rig->client), 0);
	assert_int_equal(s.out.len, 0);
	assert_int_equal(s.exited, 0);
	assert_true(rig_hear(rig, &head, &body));
	assert_int_equal(head.type, G_CREDIT);
}

static void a_request_above_the_frame_s_size_is_refused_and_forgotten(void **state)
{
	static char big[WIRE_PAYLOAD_MAX + 1];
	struct client_rig *rig = *state;
	struct guest_exec e = { .user = "", .cwd = "", .code = big, .argc = 1, .argv = { "x" } };
	struct seen s = { 0 };
	struct err err = { 0 };
	uint32_t id = 0;

	memset(big, 'x', sizeof(big) - 1);
	assert_int_equal(guest_exec(rig->client, &e, &rig_callbacks, &s, &id, &err), -E2BIG);
	assert_int_equal(id, 0);
	rig->guest = fd_close(rig->guest);
	(void)guest_dispatch(rig->client);
	assert_int_equal(s.failed, 0);
}

static void a_guest_that_does_not_read_makes_requests_fail_in_the_end(void **state)
{
	static char code[WIRE_PAYLOAD_MAX - 1000];
	struct client_rig *rig = *state;
	struct guest_exec e = { .user = "", .cwd = "", .code = code, .argc = 1, .argv = { "x" } };
	int r = 0, n = 0;

	memset(code, 'x', sizeof(code) - 1);
	for (; r == 0 && n < 1000; n++)
		r = guest_exec(rig->client, &e, NULL, NULL, NULL, NULL);
	assert_int_equal(r, -EAGAIN);
	assert_true(n < 100);
	assert_true(guest_wants_write(rig->client));
}

static void a_failed_allocation_leaves_the_client_usable(void **state)
{
	struct client_rig *rig = *state;
	struct guest_exec e = { .user = "", .cwd = "", .code = "", .argc = 1, .argv = { "x" } };
	struct seen s = { 0 };

	fault_arm(1);
	assert_int_equal(guest_exec(rig->client, &e, &rig_callbacks, &s, NULL, NULL), -ENOMEM);
	assert_true(fault_disarm());
	(void)rig_start(rig, &s);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(an_execution_is_told_from_its_start_to_its_exit),
		CASE(what_cannot_start_fails_with_the_guest_s_own_words),
		CASE(output_is_credited_in_steps_and_never_twice),
		CASE(held_output_is_credited_when_it_is_released),
		CASE(a_guest_that_passes_its_window_is_not_trusted_any_more),
		CASE(standard_input_stops_at_the_window_and_goes_on_when_taken),
		CASE(taking_more_than_was_sent_breaks_the_connection),
		CASE(a_box_that_dies_fails_everything_that_lives),
		CASE(output_before_the_death_is_not_lost),
		CASE(frames_of_an_id_that_has_ended_are_passed_over),
		CASE(a_frame_that_does_not_belong_to_the_operation_breaks_the_connection),
		CASE(a_guest_that_does_not_stop_is_not_listened_to_all_day),
		CASE(garbage_breaks_the_connection),
		CASE(a_broken_box_says_so_with_id_zero),
		CASE(a_watch_is_armed_by_done_and_ended_by_its_error),
		CASE(the_blocking_exec_collects_both_streams),
		CASE(the_blocking_exec_gives_the_guest_s_reason),
		CASE(the_blocking_read_gives_the_file),
		CASE(the_blocking_write_sends_all_and_then_the_end),
		CASE(a_list_hands_out_each_entry),
		CASE(a_ping_that_nobody_answers_times_out_and_may_be_answered_late),
		CASE(a_forgotten_execution_is_still_credited),
		CASE(a_request_above_the_frame_s_size_is_refused_and_forgotten),
		CASE(a_guest_that_does_not_read_makes_requests_fail_in_the_end),
		CASE(a_failed_allocation_leaves_the_client_usable),
	};

	return cmocka_run_group_tests_name("guest_client", tests, NULL, NULL);
}
