/* Executions that are kept: what goes on without a client, what the next one is told, and the
 * bounds. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "guest/kept.h"
#include "record_rig.h"

static int start(void **state)
{
	static struct guest_rig rig;

	rig_start(&rig);
	rig_persist(&rig);
	*state = &rig;
	return 0;
}

static int stop(void **state)
{
	rig_end(*state);
	return 0;
}

static void an_execution_goes_on_and_its_end_is_told_to_the_next_client(void **state)
{
	struct guest_exec e =
		record_script("echo begun; read go; echo end; echo bad >&2; exit 3", "t1");
	struct guest_rig *rig = *state;
	struct record r = { 0 };
	struct guest_live live;

	e.flags |= EXEC_STDIN;
	rig_exec(rig, 7, &e);
	while (r.stream[0].len == 0)
		assert_false(record_frame(rig, 7, &r));
	rig_raw(rig, G_STDIN, 7, "go\n", 3);
	rig_hang_up(rig);
	(void)usleep(200000);
	record_connect(rig, 7, &r, &live);
	assert_string_equal(live.tag, "t1");
	assert_int_equal(live.pid, r.pid);
	assert_int_equal(live.flags, LIVE_ENDED);
	assert_int_equal(live.offset[0], 0);
	assert_int_equal(live.stdin_taken, 3);
	assert_true(live.age_ms >= 200 && live.age_ms < 60000);
	record_all(rig, 7, &r);
	assert_string_equal(buf_str(&r.stream[0]), "begun\nend\n");
	assert_string_equal(buf_str(&r.stream[1]), "bad\n");
	assert_int_equal(r.exit.code, 3);
	assert_int_equal(r.exit.flags, 0);
	assert_int_equal(r.exit.output_bytes, 14);
	record_done(&r);
}

static void an_end_is_told_until_it_is_acknowledged(void **state)
{
	struct guest_exec e = record_script("echo out; exit 5", "");
	struct guest_rig *rig = *state;
	struct record r = { 0 };
	struct guest_live live;

	rig_exec(rig, 1, &e);
	record_all(rig, 1, &r);
	for (unsigned i = 2; i < 5; i++) {
		record_connect(rig, 1, &r, &live);
		assert_string_equal(live.tag, "");
		record_all(rig, 1, &r);
		assert_int_equal(r.exits, i);
		assert_int_equal(r.exit.code, 5);
		assert_true(rig_is_quiet(rig, 20));
	}
	assert_string_equal(buf_str(&r.stream[0]), "out\n");
	rig_raw(rig, G_ACK, 1, NULL, 0);
	rig_raw(rig, G_ACK, 1, NULL, 0); /* of what is not there: no harm */
	rig_expect_nothing(rig);
	rig_exec(rig, 1, &e); /* the id is free again */
	record_all(rig, 1, &r);
	rig_raw(rig, G_ACK, 1, NULL, 0);
	record_done(&r);
}

static void the_id_of_what_is_kept_is_taken(void **state)
{
	struct guest_exec e = record_script("exit 5", "");
	struct guest_rig *rig = *state;
	struct record r = { 0 };
	struct guest_live live;

	rig_exec(rig, 1, &e);
	record_all(rig, 1, &r);
	rig_exec(rig, 1, &e);
	rig_expect_refusal(rig);
	record_connect(rig, 1, &r, &live); /* and it is still kept */
	record_all(rig, 1, &r);
	record_done(&r);
}

/* Lines on both streams in turn, told apart by their number. */
#define LINES 3000
#define LINES_SCRIPT \
	"i=0; while [ $i -lt 3000 ]; do echo out $i; echo err $i >&2; i=$((i+1)); done; exit 9"

static void expect_lines(const struct buf *b, const char *name, const char *end)
{
	struct buf want = { 0 };

	for (int i = 0; i < LINES; i++)
		assert_int_equal(buf_printf(&want, "%s %d%s", name, i, end), 0);
	assert_int_equal(b->len, want.len);
	assert_memory_equal(b->data, want.data, want.len);
	buf_done(&want);
}

static unsigned next_random(unsigned *seed)
{
	*seed = *seed * 1103515245u + 12345u;
	return *seed >> 8;
}

/* How many bytes are taken of a connection: mostly few, sometimes more than a window. */
static uint64_t next_length(unsigned *seed)
{
	return next_random(seed) % (next_random(seed) % 8 ? 5000 : 2 * GUEST_WINDOW);
}

/* Follows an execution through connections that end anywhere, credits anything that it may, and
 * leaves frames unread. */
static unsigned follow(struct guest_rig *rig, uint32_t id, struct record *r, unsigned seed)
{
	uint64_t left = next_length(&seed), taken = 0;
	unsigned connections = 1;
	struct guest_live live;

	for (;;) {
		uint64_t before = r->uncredited;

		if (record_frame(rig, id, r))
			return connections;
		taken += r->uncredited - before;
		if (next_random(&seed) % 8 == 0 || r->uncredited == GUEST_WINDOW)
			record_credit(rig, id, r, next_random(&seed) % (r->uncredited + 1));
		if (taken < left)
			continue;
		record_connect(rig, id, r, &live);
		assert_true(live.offset[0] <= r->stream[0].len);
		assert_true(live.offset[1] <= r->stream[1].len);
		left = next_length(&seed);
		taken = 0;
		connections++;
	}
}

static void replay(struct guest_rig *rig, bool is_terminal)
{
	struct guest_exec e = record_script(LINES_SCRIPT, "lines");
	unsigned connections = 0;

	e.flags |= is_terminal ? EXEC_PTY : 0;
	for (unsigned seed = 1; seed <= 12; seed++) {
		struct record r = { 0 };

		rig_exec(rig, seed, &e);
		connections += follow(rig, seed, &r, seed);
		assert_int_equal(r.exit.code, 9);
		assert_int_equal(r.exits, 1);
		assert_int_equal(r.exit.flags, 0);
		assert_int_equal(r.exit.output_bytes, r.stream[0].len + r.stream[1].len);
		if (!is_terminal) {
			expect_lines(&r.stream[0], "out", "\n");
			expect_lines(&r.stream[1], "err", "\n");
		}
		rig_raw(rig, G_ACK, seed, NULL, 0);
		record_done(&r);
	}
	assert_true(connections > 36); /* or nothing was tested */
}

static void a_replay_loses_and_doubles_no_byte_of_two_streams(void **state)
{
	replay(*state, false);
}

static void a_replay_loses_and_doubles_no_byte_of_a_terminal(void **state)
{
	struct guest_exec e = record_script("stty raw; i=0; while [ $i -lt 3000 ]; do echo out $i; "
					    "i=$((i+1)); done; exit 9",
					    "terminal");
	struct guest_rig *rig = *state;
	struct record r = { 0 };

	replay(rig, true);
	e.flags |= EXEC_PTY;
	rig_exec(rig, 99, &e);
	assert_true(follow(rig, 99, &r, 99) > 1);
	expect_lines(&r.stream[0], "out", "\n");
	rig_raw(rig, G_ACK, 99, NULL, 0);
	record_done(&r);
}

static void output_stops_at_the_window_while_nobody_is_connected(void **state)
{
	struct guest_exec e = record_script("head -c 1000000 /dev/zero; echo done >&2", "");
	struct guest_rig *rig = *state;
	struct record r = { 0 };
	struct guest_live live;

	rig_exec(rig, 1, &e);
	assert_false(record_frame(rig, 1, &r)); /* G_STARTED */
	rig_hang_up(rig);
	(void)usleep(300000);
	record_connect(rig, 1, &r, &live);
	assert_int_equal(live.flags, 0);
	while (r.uncredited < GUEST_WINDOW)
		assert_false(record_frame(rig, 1, &r));
	assert_true(rig_is_quiet(rig, 100));
	assert_int_equal(r.stream[1].len, 0);
	record_credit(rig, 1, &r, r.uncredited);
	record_all(rig, 1, &r);
	assert_int_equal(r.stream[0].len, 1000000);
	assert_string_equal(buf_str(&r.stream[1]), "done\n");
	record_done(&r);
}

static void credit_for_the_connection_before_is_refused(void **state)
{
	struct guest_exec e = record_script("echo out; sleep 1000", "");
	struct guest_rig *rig = *state;
	struct record r = { 0 };
	struct guest_live live;

	rig_exec(rig, 1, &e);
	while (r.stream[0].len == 0)
		assert_false(record_frame(rig, 1, &r));
	record_connect(rig, 1, &r, &live);
	rig_u64(rig, G_CREDIT, 1, 5);
	rig_expect_refusal(rig);
	record_connect(rig, 1, &r, &live);
	assert_false(record_frame(rig, 1, &r));
	assert_string_equal(buf_str(&r.stream[0]), "out\n");
	record_done(&r);
}

static void an_execution_that_is_acknowledged_early_is_not_kept(void **state)
{
	struct guest_exec e = record_script("sleep 1000", "");
	struct guest_rig *rig = *state;
	struct record r = { 0 };

	rig_exec(rig, 1, &e);
	assert_false(record_frame(rig, 1, &r));
	rig_raw(rig, G_ACK, 1, NULL, 0);
	rig_expect_nothing(rig);
	assert_true(rig_dies_soon(r.pid));
	rig_exec(rig, 1, &e);
	rig_raw(rig, G_ACK, 1, NULL, 0);
	rig_raw(rig, G_CANCEL, 1, NULL, 0);
	record_all(rig, 1, &r); /* its end is told once all the same */
	assert_int_equal(r.exits, 1);
	rig_expect_nothing(rig);
	record_done(&r);
}

static void standard_input_goes_on_behind_what_the_guest_has(void **state)
{
	struct guest_exec e = record_script("read first; sleep 0.4; exec cat", "");
	static char much[GUEST_CHUNK];
	struct guest_rig *rig = *state;
	struct record r = { 0 };
	struct guest_live live;

	memset(much, 'a', sizeof(much));
	much[0] = '\n';
	e.flags |= EXEC_STDIN;
	rig_exec(rig, 1, &e);
	for (int i = 0; i < 4; i++)
		rig_raw(rig, G_STDIN, 1, much, sizeof(much));
	record_connect(rig, 1, &r, &live);
	assert_int_equal(live.flags, LIVE_STDIN);
	assert_int_equal(live.stdin_taken + live.stdin_kept, 4 * sizeof(much));
	assert_true(live.stdin_kept > 0);
	rig_raw(rig, G_STDIN, 1, "end", 3);
	rig_raw(rig, G_STDIN, 1, NULL, 0);
	record_all(rig, 1, &r);
	assert_int_equal(r.stream[0].len, 4 * sizeof(much) - 1 + 3);
	assert_memory_equal(r.stream[0].data + r.stream[0].len - 3, "end", 3);
	record_done(&r);
}

static void a_deadline_holds_while_nobody_is_connected(void **state)
{
	struct guest_exec e = record_script("sleep 1000", "");
	struct guest_rig *rig = *state;
	struct record r = { 0 };
	struct guest_live live;

	e.timeout_ms = 100;
	e.grace_ms = 0;
	rig_exec(rig, 1, &e);
	assert_false(record_frame(rig, 1, &r));
	rig_hang_up(rig);
	assert_true(rig_dies_soon(r.pid));
	record_connect(rig, 1, &r, &live);
	assert_int_equal(live.flags & ~LIVE_ENDED, 0); /* it may not have been reaped yet */
	record_all(rig, 1, &r);
	assert_int_equal(r.exit.flags, EXIT_TIMED_OUT | EXIT_SIGNALED);
}

static void a_terminal_lives_on_and_can_be_resized(void **state)
{
	struct guest_exec e = record_script("read x; stty size", "");
	struct guest_rig *rig = *state;
	struct record r = { 0 };
	struct guest_live live;
	uint8_t frame[64];
	struct wr w;
	long n;

	e.flags |= EXEC_PTY | EXEC_STDIN;
	rig_exec(rig, 1, &e);
	record_connect(rig, 1, &r, &live);
	assert_int_equal(live.flags, LIVE_PTY | LIVE_STDIN);
	wire_begin(&w, frame, sizeof(frame), G_RESIZE, 1);
	wr_u16(&w, 11);
	wr_u16(&w, 222);
	n = wire_finish(&w);
	assert_int_equal(send(rig->sock, frame, (size_t)n, 0), n);
	rig_raw(rig, G_STDIN, 1, "\n", 1);
	record_all(rig, 1, &r);
	assert_non_null(strstr(buf_str(&r.stream[0]), "11 222"));
	record_done(&r);
}

static void a_cancelled_execution_with_a_full_window_ends_for_the_next_client(void **state)
{
	struct guest_exec e = record_script("exec head -c 1000000 /dev/zero", "");
	struct guest_rig *rig = *state;
	struct record r = { 0 };
	struct guest_live live;

	e.grace_ms = 0;
	rig_exec(rig, 1, &e);
	while (r.uncredited < GUEST_WINDOW)
		assert_false(record_frame(rig, 1, &r));
	rig_raw(rig, G_CANCEL, 1, NULL, 0);
	record_connect(rig, 1, &r, &live);
	while (!record_frame(rig, 1, &r))
		;
	assert_true(r.exit.flags & EXIT_CANCELLED);
	/* What it had put into the pipe by then is lost, and told. */
	assert_int_equal((r.exit.flags & EXIT_TRUNCATED) != 0, r.exit.output_bytes > GUEST_WINDOW);
	assert_int_equal(r.stream[0].len, GUEST_WINDOW);
	record_done(&r);
}

/* Runs it to its end without crediting anything. */
static void run_uncredited(struct guest_rig *rig, uint32_t id, const char *script)
{
	struct guest_exec e = record_script(script, "");
	struct record r = { 0 };

	rig_exec(rig, id, &e);
	while (!record_frame(rig, id, &r))
		;
	assert_int_equal(r.exit.flags, 0);
	record_done(&r);
}

/* The guest sees the end with the last bytes still in the pipe; they take the last of its room. */
static void the_last_byte_of_the_window_holds_no_end_back(void **state)
{
	struct guest_exec e = record_script(
		"head -c 98304 /dev/zero; kill -STOP $$; head -c 32768 /dev/zero; exit 0", "");
	struct guest_rig *rig = *state;
	struct record r = { 0 };
	int status;

	rig_exec(rig, 1, &e);
	while (r.uncredited < 98304)
		assert_false(record_frame(rig, 1, &r));
	assert_int_equal(kill(rig->pid, SIGSTOP), 0);
	assert_int_equal(waitpid(rig->pid, &status, WUNTRACED), rig->pid);
	assert_true(WIFSTOPPED(status));
	while (rig_is_running(r.pid)) { /* until it has stopped itself, that changes nothing */
		(void)kill((pid_t)r.pid, SIGCONT);
		(void)usleep(1000);
	}
	assert_int_equal(kill(rig->pid, SIGCONT), 0);
	while (!record_frame(rig, 1, &r))
		;
	assert_int_equal(r.exit.flags, 0);
	assert_int_equal(r.exit.output_bytes, GUEST_WINDOW);
	record_done(&r);
}

static void more_output_than_is_kept_costs_the_oldest_theirs_and_no_end(void **state)
{
	const uint32_t n = GUEST_KEPT_BYTES / GUEST_WINDOW + 3;
	struct guest_rig *rig = *state;
	struct guest_ready ready;
	struct guest_live live;

	for (uint32_t i = 1; i <= n; i++)
		run_uncredited(rig, i, "head -c 131072 /dev/zero; exit 0");
	rig_u64(rig, G_CREDIT, 1, 131072); /* was sent: no broken rule */
	rig_connect(rig, &ready);
	assert_int_equal(ready.live, n);
	for (uint32_t i = 1; i <= n; i++) {
		rig_expect_live(rig, &live);
		assert_int_equal(live.id, i);
		assert_int_equal(live.offset[0], i <= 3 ? GUEST_WINDOW : 0);
	}
	for (uint32_t i = 1; i <= n; i++) {
		struct record r = { 0 };

		r.stream[0].len = 0;
		while (!record_frame(rig, i, &r))
			;
		assert_int_equal(r.stream[0].len, i <= 3 ? 0 : GUEST_WINDOW);
		assert_int_equal(r.exit.flags, i <= 3 ? EXIT_TRUNCATED : 0);
		assert_int_equal(r.exit.output_bytes, GUEST_WINDOW);
		record_done(&r);
		rig_raw(rig, G_ACK, i, NULL, 0);
	}
}

static void too_many_unacknowledged_ends_are_refused(void **state)
{
	struct guest_exec e = record_script("exit 0", "");
	struct guest_rig *rig = *state;
	struct rig_result r = { 0 };
	struct guest_ready ready;

	for (uint32_t i = 1; i <= GUEST_KEPT_MAX; i++)
		run_uncredited(rig, i, "exit 0");
	rig_run(rig, 1000, &e, &r);
	assert_false(r.is_exit);
	assert_int_equal(r.code, E2BIG);
	rig_result_done(&r);
	rig_shell(rig, 1001, "exit 4", &r); /* what is not kept needs no place */
	assert_int_equal(r.exit.code, 4);
	rig_result_done(&r);
	rig_raw(rig, G_ACK, 17, NULL, 0);
	run_uncredited(rig, 1002, "exit 0");
	rig_connect(rig, &ready);
	assert_int_equal(ready.live, GUEST_KEPT_MAX);
}

/* Out of memory may refuse the execution or cut its output, and both are told; never the end. */
static void a_failed_allocation_loses_no_end(void **state)
{
	(void)state;
	for (size_t n = 1; n <= 12; n++) {
		struct guest_exec e = record_script("echo fine", "");
		struct rig_result r = { 0 };
		struct guest_ready ready;
		struct guest_live live;
		struct guest_rig rig;

		rig_start_faulty(&rig, n);
		rig_persist(&rig);
		rig_run(&rig, 1, &e, &r);
		rig_connect(&rig, &ready);
		assert_int_equal(ready.live, r.is_exit ? 1 : 0);
		if (r.is_exit) {
			struct record again = { 0 };

			rig_expect_live(&rig, &live);
			again.stream[0].len = 0;
			assert_int_equal(live.offset[0], r.out.len); /* was credited */
			assert_int_equal(buf_append(&again.stream[0], r.out.data, r.out.len), 0);
			record_all(&rig, 1, &again);
			assert_int_equal(again.exit.flags & ~(uint32_t)EXIT_TRUNCATED, 0);
			record_done(&again);
		} else {
			assert_int_equal(r.code, ENOMEM);
		}
		rig_result_done(&r);
		rig_end(&rig);
	}
}

int main(void)
{
#define WITH_GUEST(test) cmocka_unit_test_setup_teardown(test, start, stop)
	const struct CMUnitTest tests[] = {
		WITH_GUEST(an_execution_goes_on_and_its_end_is_told_to_the_next_client),
		WITH_GUEST(an_end_is_told_until_it_is_acknowledged),
		WITH_GUEST(the_id_of_what_is_kept_is_taken),
		WITH_GUEST(a_replay_loses_and_doubles_no_byte_of_two_streams),
		WITH_GUEST(a_replay_loses_and_doubles_no_byte_of_a_terminal),
		WITH_GUEST(output_stops_at_the_window_while_nobody_is_connected),
		WITH_GUEST(credit_for_the_connection_before_is_refused),
		WITH_GUEST(an_execution_that_is_acknowledged_early_is_not_kept),
		WITH_GUEST(standard_input_goes_on_behind_what_the_guest_has),
		WITH_GUEST(a_deadline_holds_while_nobody_is_connected),
		WITH_GUEST(a_terminal_lives_on_and_can_be_resized),
		WITH_GUEST(a_cancelled_execution_with_a_full_window_ends_for_the_next_client),
		WITH_GUEST(the_last_byte_of_the_window_holds_no_end_back),
		WITH_GUEST(more_output_than_is_kept_costs_the_oldest_theirs_and_no_end),
		WITH_GUEST(too_many_unacknowledged_ends_are_refused),
		cmocka_unit_test(a_failed_allocation_loses_no_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
