/* Executions whose end is that of their pipes: what children write belongs to them, too. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "guest_rig.h"

static int start(void **state)
{
	static struct guest_rig rig;

	rig_start(&rig);
	*state = &rig;
	return 0;
}

static int stop(void **state)
{
	rig_stop(*state, 0);
	return 0;
}

static struct guest_exec whole(const char *script)
{
	struct guest_exec e = rig_script(script);

	e.flags |= EXEC_WHOLE;
	e.envp[e.envc++] = "PATH=/usr/bin:/bin";
	return e;
}

static void the_output_of_a_child_that_stays_is_waited_for(void **state)
{
	struct guest_exec e = whole("(sleep 0.1; echo late; sleep 0.1; echo later >&2) & echo now;"
				    " exit 3");
	struct rig_result r;

	rig_run(*state, 1, &e, &r);
	assert_string_equal(buf_str(&r.out), "now\nlate\n");
	assert_string_equal(buf_str(&r.err), "later\n");
	assert_int_equal(r.exit.code, 3);
	assert_int_equal(r.exit.flags & (EXIT_TIMED_OUT | EXIT_CANCELLED | EXIT_SIGNALED), 0);
	rig_result_done(&r);
}

static void a_child_that_lets_go_of_the_pipes_is_not_waited_for(void **state)
{
	struct guest_exec e = whole("sleep 30 >/dev/null 2>&1 </dev/null & echo now");
	struct rig_result r;

	rig_run(*state, 1, &e, &r);
	assert_string_equal(buf_str(&r.out), "now\n");
	assert_int_equal(r.exit.flags, EXIT_LEFTOVERS);
	rig_result_done(&r);
}

static void nobody_waits_behind_one_that_a_signal_ended(void **state)
{
	struct guest_exec e = whole("sleep 30 & echo now; kill -9 $$");
	struct rig_result r;

	rig_run(*state, 1, &e, &r);
	assert_string_equal(buf_str(&r.out), "now\n");
	assert_int_equal(r.exit.flags, EXIT_SIGNALED | EXIT_LEFTOVERS);
	assert_int_equal(r.exit.code, SIGKILL);
	rig_result_done(&r);
}

static void the_deadline_ends_the_waiting_too(void **state)
{
	struct guest_exec e = whole("sleep 1000 & echo now");
	struct rig_result r;

	e.timeout_ms = 2000;
	rig_run(*state, 1, &e, &r);
	assert_string_equal(buf_str(&r.out), "now\n");
	assert_int_equal(r.exit.flags, EXIT_TIMED_OUT);
	rig_result_done(&r);
}

/* The first process is gone when its shell's end has been seen by the one it left. */
static void a_cancel_ends_the_waiting_too(void **state)
{
	struct guest_exec e = whole("p=$$; (while kill -0 $p 2>/dev/null; do sleep 0.02; done;"
				    " echo alone; sleep 1000) &");
	struct guest_rig *rig = *state;
	struct rig_result r = { 0 };
	struct wire_head head;
	struct rd payload;

	rig_exec(rig, 1, &e);
	while (r.out.len == 0) {
		assert_true(rig_recv(rig, &head, &payload));
		assert_false(rig_take(rig, 1, &head, &payload, true, &r));
	}
	rig_raw(rig, G_CANCEL, 1, NULL, 0);
	rig_collect(rig, 1, true, &r);
	assert_string_equal(buf_str(&r.out), "alone\n");
	assert_int_equal(r.exit.flags, EXIT_CANCELLED);
	rig_result_done(&r);
}

static void a_terminal_ends_with_its_program(void **state)
{
	struct guest_exec e = whole("trap '' HUP; sleep 30 & exit 4");
	struct rig_result r;

	e.flags |= EXEC_PTY | EXEC_STDIN;
	rig_run(*state, 1, &e, &r);
	assert_int_equal(r.exit.code, 4);
	rig_result_done(&r);
}

static void a_relative_working_directory_begins_in_the_home(void **state)
{
	struct guest_exec e = whole("echo no");
	struct rig_result r;

	e.cwd = "~nobody";
	rig_run(*state, 1, &e, &r);
	assert_false(r.is_exit);
	assert_non_null(strstr(r.text, "home"));
	rig_result_done(&r);
	e.cwd = "not/there";
	rig_run(*state, 2, &e, &r);
	assert_false(r.is_exit);
	assert_non_null(strstr(r.text, "chdir '/"));
	assert_non_null(strstr(r.text, "/not/there'"));
	rig_result_done(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)
		TEST(the_output_of_a_child_that_stays_is_waited_for),
		TEST(a_child_that_lets_go_of_the_pipes_is_not_waited_for),
		TEST(nobody_waits_behind_one_that_a_signal_ended),
		TEST(the_deadline_ends_the_waiting_too),
		TEST(a_cancel_ends_the_waiting_too),
		TEST(a_terminal_ends_with_its_program),
		TEST(a_relative_working_directory_begins_in_the_home),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
