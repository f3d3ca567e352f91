#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

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

static void a_command_gives_its_output_and_its_exit_code(void **state)
{
	struct rig_result r;

	rig_shell(*state, 7, "echo out; echo err >&2; exit 3", &r);
	assert_true(r.is_exit);
	assert_int_equal(r.exit.code, 3);
	assert_int_equal(r.exit.flags, 0);
	assert_string_equal(buf_str(&r.out), "out\n");
	assert_string_equal(buf_str(&r.err), "err\n");
	assert_int_equal(r.exit.output_bytes, 8);
	assert_true(r.exit.wall_us > 0);
	assert_true(r.exit.max_rss_bytes > 0);
	assert_true(r.pid > 0);
	rig_result_done(&r);
}

static void a_program_is_found_by_path_and_gets_the_given_environment_only(void **state)
{
	const char *argv[] = { "env", NULL };
	struct guest_exec e = rig_command(argv);
	struct rig_result r = { 0 };

	e.envp[e.envc++] = "PATH=/nowhere:/usr/bin:/bin";
	e.envp[e.envc++] = "ODD=a b=c";
	rig_exec(*state, 1, &e);
	rig_collect(*state, 1, true, &r);
	assert_string_equal(buf_str(&r.out), "PATH=/nowhere:/usr/bin:/bin\nODD=a b=c\n");
	rig_result_done(&r);
}

static void expect_error(struct guest_rig *rig, const char *program, int code, const char *text)
{
	const char *argv[] = { program, NULL };
	struct guest_exec e = rig_command(argv);
	struct rig_result r = { 0 };

	rig_exec(rig, 2, &e);
	rig_collect(rig, 2, true, &r);
	assert_false(r.is_exit);
	assert_int_equal(r.code, code);
	assert_non_null(strstr(r.text, text));
	rig_result_done(&r);
}

static void what_cannot_be_executed_is_named(void **state)
{
	expect_error(*state, "no-such-program", ENOENT, "no-such-program");
	expect_error(*state, "/no/such/program", ENOENT, "/no/such/program");
	expect_error(*state, "/etc/passwd", EACCES, "/etc/passwd");
	expect_error(*state, "", EINVAL, "no program");
}

int main(void)
{
#define WITH_GUEST(test) cmocka_unit_test_setup_teardown(test, start, stop)
	const struct CMUnitTest tests[] = {
		WITH_GUEST(a_command_gives_its_output_and_its_exit_code),
		WITH_GUEST(a_program_is_found_by_path_and_gets_the_given_environment_only),
		WITH_GUEST(what_cannot_be_executed_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
