/* Executions: how they end, their input, and looking at them. */
#include "check.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fault.h"
#include "sandbox/execution.h"
#include "sandbox_rig.h"

/* ---- ending ---- */

static void how_it_ended_is_flagged(void **state)
{
	static const struct {
		uint32_t code, flags;
		uint32_t oom_kills; /* as the box reports afterwards */
		unsigned want;
		int32_t exit_code, signal;
	} cases[] = {
		{ 0, 0, 0, 0, 0, 0 },
		{ SIGTERM, EXIT_SIGNALED | EXIT_TIMED_OUT, 0, EXECUTION_TIMED_OUT, -1, SIGTERM },
		{ SIGKILL, EXIT_SIGNALED | EXIT_TIMED_OUT, 0, EXECUTION_TIMED_OUT, -1, SIGKILL },
		{ SIGKILL, EXIT_SIGNALED | EXIT_CANCELLED, 0, EXECUTION_CANCELLED, -1, SIGKILL },
		{ SIGKILL, EXIT_SIGNALED, 1, EXECUTION_OOM_KILLED, -1, SIGKILL },
		{ SIGKILL, EXIT_SIGNALED, 1, 0, -1, SIGKILL }, /* no further one */
		{ 137, 0, 2, EXECUTION_OOM_KILLED, 137, 0 },
		{ 137, 0, 2, 0, 137, 0 },
		{ 0, EXIT_LEFTOVERS, 0, EXECUTION_LEFTOVERS, 0, 0 },
		{ 0, EXIT_TRUNCATED, 0, EXECUTION_TRUNCATED, 0, 0 },
	};
	struct exec_request req = { .command = "x" };
	struct sandbox_rig rig;
	struct sandbox *sb;

	(void)state;
	rig_open(&rig);
	sb = rig_create(&rig, "");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct exec_told t;
		struct exec_info info;
		uint32_t id = rig_exec(&rig, sb, &req, &t);

		assert_non_null(exec_wait(t.x, rig_exec_ended, &t));
		rig.fake.usage.oom_kills = cases[i].oom_kills;
		rig_say_exit(rig_box(&rig, sb->id), id, cases[i].code, cases[i].flags);
		rig_run(&rig);
		assert_int_equal(t.ends, 1);
		exec_info(t.x, &info);
		assert_int_equal(info.flags, cases[i].want);
		assert_int_equal(info.exit_code, cases[i].exit_code);
		assert_int_equal(info.signal, cases[i].signal);
		assert_int_equal(rig_exec_row(&rig, info.id).flags, cases[i].want);
		assert_int_equal(rig_expect(&rig, rig_box(&rig, sb->id), G_ACK, NULL), id);
		exec_told_done(&t);
	}
	rig_close(&rig);
}

static void those_in_a_sandbox_that_ends_are_interrupted_and_recorded(void **state)
{
	static const struct {
		enum { DELETED, KILLED, LYING } how;
		const char *reason;
	} cases[] = {
		{ DELETED, "the sandbox was ended: deleted" },
		{ KILLED, "its box ended: killed by signal 9" },
		{ LYING, "its box does not answer" },
	};
	struct exec_request req = { .command = "x" };
	struct sandbox_rig rig;

	(void)state;
	rig_open(&rig);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct sandbox *sb = rig_create(&rig, "");
		struct exec_told t, starting = { 0 };
		struct exec_info info;
		struct told ended = { 0 };
		struct exec_row_look row;
		uint32_t id = rig_exec(&rig, sb, &req, &t);

		exec_start(sb, &req, rig_exec_told,
			   &starting); /* the box never says a word of it */
		assert_non_null(exec_wait(t.x, rig_exec_ended, &t));
		rig_say_output(rig_box(&rig, sb->id), id, 2, 0, "half", 4);
		rig_run(&rig);
		if (cases[i].how == KILLED)
			fake_kill(&rig.fake, sb->box_id, SIGKILL);
		else if (cases[i].how == DELETED)
			sandbox_delete(sb, "deleted", rig_told, &ended);
		else
			rig_say(rig_box(&rig, sb->id), "garbage", 7);
		rig_run(&rig);
		rig_tick(&rig, cases[i].how == LYING ? 2 : 0);
		assert_int_equal(t.ends, 1);
		assert_int_equal(starting.calls, 1);
		assert_int_equal(starting.err.code, EBUSY);
		exec_info(t.x, &info); /* it outlives its sandbox for whoever holds it */
		assert_int_equal(info.state, EXECUTION_INTERRUPTED);
		assert_string_equal(info.reason, cases[i].reason);
		assert_int_equal(info.exit_code, -1);
		assert_int_equal(info.output_end, 4);
		row = rig_exec_row(&rig, info.id);
		assert_int_equal(row.state, EXECUTION_INTERRUPTED);
		assert_int_equal(row.output_bytes, 4);
		assert_int_equal(exec_stdin(t.x, "x", 1), -EPIPE);
		assert_int_equal(exec_cancel(t.x), -ESRCH);
		exec_told_done(&t);
	}
	assert_int_equal(rig.fake.live, 0);
	rig_close(&rig);
}

static void ends_that_the_store_does_not_take_are_kept_and_written_when_it_heals(void **state)
{
	struct exec_request req = { .command = "x" };
	struct sandbox_rig rig;
	struct exec_told t = { 0 };
	struct sandbox *sb;
	struct fake_box *box;

	(void)state;
	rig_open(&rig);
	sb = rig_create(&rig, "");
	box = rig_box(&rig, sb->id);
	rig.faults.fail_in = 1;
	rig.faults.fail_on = true;
	rig.faults.fail_with = ENOSPC;
	for (unsigned i = 0; i < SANDBOX_UNRECORDED_MAX; i++) {
		uint32_t id = rig_exec(&rig, sb, &req, &t);

		assert_non_null(exec_wait(t.x, rig_exec_ended, &t));
		rig_say_exit(box, id, 0, 0);
		rig_run(&rig);
		assert_int_equal(t.ends, 1); /* the caller has its answer */
		exec_told_done(&t);
	}
	rig_expect_nothing(&rig, box); /* no acknowledgement */
	exec_start(sb, &req, rig_exec_told, &t);
	rig_run(&rig);
	assert_int_equal(t.err.code, EAGAIN);
	assert_non_null(strstr(t.err.text, "No space left"));
	rig_tick(&rig, 1);
	rig_expect_nothing(&rig, box);
	rig.faults.fail_in = 0;
	rig_tick(&rig, 1);
	for (unsigned i = 0; i < SANDBOX_UNRECORDED_MAX; i++)
		(void)rig_expect(&rig, box, G_ACK, NULL);
	assert_int_equal(sb->n_unrecorded, 0);
	(void)rig_exec(&rig, sb, &req, &t);
	exec_told_done(&t);
	rig_close(&rig);
}

static void on_readable(void *user)
{
	++*(int *)user;
}

/* One at a time, by a wait or a reader: the store's slowness becomes the caller's. */
static void a_caller_who_waits_is_held_by_a_slow_store_and_not_refused(void **state)
{
	struct exec_request req = { .command = "x" };
	struct exec_told t[SANDBOX_UNRECORDED_MAX + 2] = { 0 };
	struct exec_reader *reader;
	struct output_chunk chunk;
	struct sandbox_rig rig;
	struct fake_box *box;
	struct sandbox *sb;
	uint64_t omitted;
	int calls = 0;

	(void)state;
	rig_open(&rig);
	sb = rig_create(&rig, "");
	box = rig_box(&rig, sb->id);
	rig.faults.is_held = true;
	for (unsigned i = 0; i < SANDBOX_UNRECORDED_MAX + 2; i++) {
		uint32_t id = rig_exec(&rig, sb, &req, &t[i]);

		assert_non_null(exec_wait(t[i].x, rig_exec_ended, &t[i]));
		rig_say_exit(box, id, 0, 0);
		rig_run(&rig);
		assert_int_equal(t[i].ends, i < SANDBOX_UNRECORDED_MAX);
	}
	reader = exec_reader_open(t[SANDBOX_UNRECORDED_MAX].x, 0, on_readable, &calls);
	assert_non_null(reader);
	rig_run(&rig);
	assert_int_equal(exec_read(reader, &chunk, &omitted), 0);
	calls = 0;
	rig.faults.is_held = false;
	rig_run(&rig);
	assert_true(calls > 0);
	assert_int_equal(exec_read(reader, &chunk, &omitted), -ENODATA);
	exec_reader_close(reader);
	assert_int_equal(sb->n_unrecorded, 0);
	for (unsigned i = 0; i < SANDBOX_UNRECORDED_MAX + 2; i++) {
		assert_int_equal(t[i].ends, 1);
		exec_told_done(&t[i]);
	}
	rig_close(&rig);
}

/* Background ones and callers that do not wait: they are not held, so there is an end to it. */
static void more_than_can_wait_for_a_slow_store_are_refused(void **state)
{
	struct exec_request req = { .command = "x" };
	struct exec_told t = { 0 };
	struct sandbox_rig rig;
	struct sandbox *sb;

	(void)state;
	rig_open(&rig);
	sb = rig_create(&rig, "");
	rig.faults.is_held = true;
	for (unsigned i = 0; i < SANDBOX_BEHIND_MAX; i++) {
		uint32_t id = rig_exec(&rig, sb, &req, &t);

		exec_told_done(&t);
		rig_say_exit(rig_box(&rig, sb->id), id, 0, 0);
		rig_run(&rig);
	}
	exec_start(sb, &req, rig_exec_told, &t);
	rig_run(&rig);
	assert_int_equal(t.err.code, EAGAIN);
	assert_non_null(strstr(t.err.text, "it is slow"));
	rig.faults.is_held = false;
	rig_run(&rig);
	assert_int_equal(sb->n_unrecorded, 0);
	rig_close(&rig);
}

/* What it refuses is told to who waits, who would wait for nothing. */
static void one_that_is_held_is_told_when_the_store_fails(void **state)
{
	struct exec_request req = { .command = "x" };
	struct exec_told t = { 0 };
	struct sandbox_rig rig;
	struct sandbox *sb;

	(void)state;
	rig_open(&rig);
	sb = rig_create(&rig, "");
	rig.faults.is_held = true;
	for (unsigned i = 0; i <= SANDBOX_UNRECORDED_MAX; i++) {
		uint32_t id;

		if (t.x)
			exec_told_done(&t);
		if (i == SANDBOX_UNRECORDED_MAX) {
			rig.faults.fail_in = 1;
			rig.faults.fail_with = ENOSPC;
		}
		id = rig_exec(&rig, sb, &req, &t);
		assert_non_null(exec_wait(t.x, rig_exec_ended, &t));
		rig_say_exit(rig_box(&rig, sb->id), id, 0, 0);
		rig_run(&rig);
	}
	assert_int_equal(t.ends, 0);
	rig.faults.is_held = false;
	rig_run(&rig);
	assert_int_equal(t.ends, 1);
	assert_int_equal(sb->n_unrecorded, 1);
	rig_tick(&rig, 1);
	assert_int_equal(sb->n_unrecorded, 0);
	exec_told_done(&t);
	rig_close(&rig);
}

static void waiting_for_one_that_has_ended_is_answered_in_the_next_turn(void **state)
{
	struct exec_request req = { .command = "x" };
	struct sandbox_rig rig;
	struct exec_told t;
	struct exec_wait *w;
	struct sandbox *sb;
	uint32_t id;

	(void)state;
	rig_open(&rig);
	sb = rig_create(&rig, "");
	id = rig_exec(&rig, sb, &req, &t);
	rig_say_exit(rig_box(&rig, sb->id), id, 0, 0);
	rig_run(&rig);
	assert_non_null(exec_wait(t.x, rig_exec_ended, &t));
	w = exec_wait(t.x, rig_exec_ended, &t);
	assert_int_equal(t.ends, 0);
	exec_unwait(w);
	rig_run(&rig);
	assert_int_equal(t.ends, 1);
	exec_told_done(&t);
	rig_close(&rig);
}

/* ---- input ---- */

static void on_room(void *user)
{
	++*(int *)user;
}

static void input_is_taken_whole_or_not_at_all_within_its_limits(void **state)
{
	static const char data[EXEC_STDIN_MAX + 1] = { 1 };
	struct exec_request req = { .command = "cat", .has_stdin = true };
	struct sandbox_rig rig;
	struct exec_told t;
	struct wire_head head;
	struct rd payload;
	uint8_t frame[64];
	struct sandbox *sb;
	struct fake_box *box;
	uint32_t id;
	size_t sent = 0;
	int room = 0;
	bool is_ended = false;

	(void)state;
	rig_open(&rig);
	sb = rig_create(&rig, "");
	box = rig_box(&rig, sb->id);
	id = rig_exec(&rig, sb, &req, &t);
	exec_on_room(t.x, on_room, &room);
	assert_int_equal(exec_stdin(t.x, data, EXEC_STDIN_MAX + 1), -E2BIG);
	assert_int_equal(exec_stdin(t.x, data, EXEC_STDIN_MAX), 0); /* a window of it is sent */
	assert_int_equal(exec_stdin(t.x, data, GUEST_WINDOW), 0);
	assert_int_equal(exec_stdin(t.x, data, 1), -EAGAIN);
	assert_int_equal(exec_stdin_end(t.x), 0);
	assert_int_equal(exec_stdin(t.x, data, 1), -EPIPE);
	assert_int_equal(exec_stdin_end(t.x), -EPIPE);
	assert_false(exec_stdin_is_sent(t.x)); /* the process would take the rest along */
	while (!is_ended) {
		while (rig_recv(&rig, box, &head, &payload)) {
			size_t n = (size_t)(payload.end - payload.p);

			assert_int_equal(head.type, G_STDIN);
			is_ended = n == 0;
			sent += n;
			rig_say(box, frame, guest_put_u64(frame, sizeof(frame), G_TAKEN, id, n));
		}
		rig_run(&rig);
	}
	assert_int_equal(sent, EXEC_STDIN_MAX + GUEST_WINDOW);
	assert_true(room > 0);
	assert_true(exec_stdin_is_sent(t.x));
	exec_told_done(&t);
	rig_close(&rig);
}

static void signals_sizes_and_cancels_reach_the_box_while_it_runs(void **state)
{
	struct exec_request req = { .kind = EXECUTION_PTY, .rows = 24, .cols = 80 };
	struct exec_request plain = { .command = "x" };
	struct sandbox_rig rig;
	struct exec_told t, p;
	struct rd payload;
	struct told paused = { 0 };
	struct sandbox *sb;
	struct fake_box *box;
	uint32_t id;

	(void)state;
	rig_open(&rig);
	sb = rig_create(&rig, "");
	box = rig_box(&rig, sb->id);
	id = rig_exec(&rig, sb, &req, &t);
	(void)rig_exec(&rig, sb, &plain, &p);
	assert_int_equal(exec_stdin(p.x, "x", 1), -EPIPE); /* it has none */
	assert_int_equal(exec_resize(p.x, 1, 1), -ENOTTY);
	assert_int_equal(exec_signal(t.x, SIGINT, true), 0);
	assert_int_equal(rig_expect(&rig, box, G_SIGNAL, &payload), id);
	assert_int_equal(rd_u32(&payload), SIGINT);
	assert_int_equal(rd_u8(&payload), 1);
	assert_int_equal(exec_resize(t.x, 50, 132), 0);
	assert_int_equal(rig_expect(&rig, box, G_RESIZE, NULL), id);
	sandbox_pause(sb, rig_told, &paused);
	rig_run(&rig);
	assert_int_equal(exec_signal(t.x, SIGINT, false), -EBUSY);
	assert_int_equal(exec_stdin(t.x, "x", 1), -EBUSY);
	assert_int_equal(exec_cancel(t.x), -EBUSY);
	sandbox_resume(sb, rig_told, &paused);
	rig_run(&rig);
	assert_int_equal(exec_cancel(t.x), 0);
	assert_int_equal(rig_expect(&rig, box, G_CANCEL, NULL), id);
	rig_say_exit(box, id, SIGHUP, EXIT_SIGNALED | EXIT_CANCELLED);
	rig_run(&rig);
	assert_int_equal(exec_signal(t.x, SIGINT, false), -ESRCH);
	assert_int_equal(exec_resize(t.x, 1, 1), -ESRCH);
	exec_told_done(&t);
	exec_told_done(&p);
	rig_close(&rig);
}

/* ---- looking ---- */

struct got {
	int calls;
	enum execution_state state;
	struct buf out;
	size_t n;
	bool more;
	char ids[8][ID_LEN + 1];
	struct err err;
};

static void on_get(void *user, const struct exec_info *info, const struct output *output,
		   const struct err *err)
{
	struct got *g = user;

	g->calls++;
	g->err = err ? *err : (struct err){ 0 };
	buf_clear(&g->out);
	if (info)
		g->state = info->state;
	if (output)
		assert_int_equal(output_collect(output, 1, &g->out), 0);
}

static void on_list(void *user, const struct exec_info *infos, size_t n, bool more,
		    const struct err *err)
{
	struct got *g = user;

	g->calls++;
	g->err = err ? *err : (struct err){ 0 };
	g->n = n;
	g->more = more;
	for (size_t i = 0; i < n && i < 8; i++)
		memcpy(g->ids[i], infos[i].id, ID_LEN + 1);
}

static void executions_are_found_running_ended_and_after_their_sandbox(void **state)
{
	struct exec_request req = { .command = "x" };
	struct sandbox_rig rig;
	struct exec_told t;
	struct got g = { 0 };
	struct told ended = { 0 };
	char id[ID_LEN + 1], sandbox_id[ID_LEN + 1];
	struct sandbox *sb;
	uint32_t guest_id;

	(void)state;
	rig_open(&rig);
	sb = rig_create(&rig, "");
	memcpy(sandbox_id, sb->id, sizeof(sandbox_id));
	guest_id = rig_exec(&rig, sb, &req, &t);
	memcpy(id, t.x->id, sizeof(id));
	exec_get(rig.all, sandbox_id, "ann", id, on_get, &g);
	assert_int_equal(g.calls, 0);
	rig_run(&rig);
	assert_int_equal(g.calls, 1);
	assert_int_equal(g.state, EXECUTION_RUNNING);
	rig_say_output(rig_box(&rig, sandbox_id), guest_id, 1, 0, "out", 3);
	rig_say_exit(rig_box(&rig, sandbox_id), guest_id, 0, 0);
	rig_run(&rig);
	exec_told_done(&t);
	sandbox_delete(sb, "deleted", rig_told, &ended);
	rig_run(&rig);
	exec_get(rig.all, sandbox_id, "ann", id, on_get, &g);
	rig_run(&rig);
	assert_int_equal(g.err.code, 0);
	assert_int_equal(g.state, EXECUTION_EXITED);
	assert_string_equal(buf_str(&g.out), "out");
	exec_get(rig.all, sandbox_id, "bob", id, on_get, &g);
	rig_run(&rig);
	assert_int_equal(g.err.code, ENOENT);
	exec_get(rig.all, "aaaaaaaaaaaaaaaaaaaa", "ann", id, on_get, &g);
	rig_run(&rig);
	assert_int_equal(g.err.code, ENOENT);
	exec_get(rig.all, sandbox_id, "ann", "no such id", on_get, &g);
	rig_run(&rig);
	assert_int_equal(g.err.code, ENOENT);
	buf_done(&g.out);
	rig_close(&rig);
}

static void a_list_has_running_and_recorded_ones_newest_first(void **state)
{
	struct exec_request req = { .command = "x" };
	struct sandbox_rig rig;
	struct exec_told t[4];
	struct got g = { 0 };
	char ids[4][ID_LEN + 1];
	struct sandbox *sb;

	(void)state;
	rig_open(&rig);
	sb = rig_create(&rig, "");
	for (size_t i = 0; i < 4; i++) {
		uint32_t id = rig_exec(&rig, sb, &req, &t[i]);

		memcpy(ids[i], t[i].x->id, sizeof(ids[i]));
		if (i % 2 == 0) {
			rig_say_exit(rig_box(&rig, sb->id), id, 0, 0);
			rig_run(&rig);
			(void)rig_expect(&rig, rig_box(&rig, sb->id), G_ACK, NULL);
		}
		rig_pass(&rig, 5);
	}
	exec_list(rig.all, sb->id, "ann", 0, NULL, 3, on_list, &g);
	rig_run(&rig);
	assert_int_equal(g.n, 3);
	assert_true(g.more);
	for (size_t i = 0; i < 3; i++)
		assert_string_equal(g.ids[i], ids[3 - i]);
	exec_list(rig.all, sb->id, "ann", t[1].x->started_ms, ids[1], 3, on_list, &g);
	rig_run(&rig);
	assert_int_equal(g.n, 1);
	assert_false(g.more);
	assert_string_equal(g.ids[0], ids[0]);
	exec_list(rig.all, sb->id, "bob", 0, NULL, 3, on_list, &g);
	rig_run(&rig);
	assert_int_equal(g.n, 0);
	for (size_t i = 0; i < 4; i++)
		exec_told_done(&t[i]);
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(how_it_ended_is_flagged),
		cmocka_unit_test(those_in_a_sandbox_that_ends_are_interrupted_and_recorded),
		cmocka_unit_test(
			ends_that_the_store_does_not_take_are_kept_and_written_when_it_heals),
		cmocka_unit_test(a_caller_who_waits_is_held_by_a_slow_store_and_not_refused),
		cmocka_unit_test(more_than_can_wait_for_a_slow_store_are_refused),
		cmocka_unit_test(one_that_is_held_is_told_when_the_store_fails),
		cmocka_unit_test(waiting_for_one_that_has_ended_is_answered_in_the_next_turn),
		cmocka_unit_test(input_is_taken_whole_or_not_at_all_within_its_limits),
		cmocka_unit_test(signals_sizes_and_cancels_reach_the_box_while_it_runs),
		cmocka_unit_test(executions_are_found_running_ended_and_after_their_sandbox),
		cmocka_unit_test(a_list_has_running_and_recorded_ones_newest_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
