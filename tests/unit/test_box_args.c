#include "cli/box_args.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "check.h"

static struct box_args defaults(void)
{
	return (struct box_args)BOX_ARGS_INIT;
}

static const char *env_of(const struct guest_exec *e, const char *name)
{
	size_t n = strlen(name);
	const char *found = NULL;

	for (size_t i = 0; i < e->envc; i++)
		if (strncmp(e->envp[i], name, n) == 0 && e->envp[i][n] == '=') {
			assert_null(found); /* never twice */
			found = e->envp[i] + n + 1;
		}
	return found;
}

static void an_execution_is_closed_by_default(void **state)
{
	struct box_args a = defaults();
	struct guest_exec e = { 0 };

	(void)state;
	assert_int_equal(box_args_exec(&a, &e, NULL), 0);
	assert_int_equal(e.timeout_ms, TIMEOUT_DEFAULT_MS);
	assert_int_equal(e.flags, EXEC_STDIN | EXEC_LOGIN);
	assert_int_equal(e.output_limit, 0);
	assert_string_equal(e.user, "");
	assert_string_equal(e.cwd, "");
	assert_int_equal(e.envc, 2);
	assert_string_equal(env_of(&e, "PATH"), GUEST_PATH);
}

static void variables_given_win_over_the_defaults(void **state)
{
	struct box_args a = defaults();
	struct guest_exec e = { 0 };

	(void)state;
	assert_int_equal(setenv("HOLT_TEST_PASSED", "on", 1), 0);
	assert_int_equal(unsetenv("HOLT_TEST_MISSING"), 0);
	a.env = (struct opt_list){
		4, { "PATH=/x", "EMPTY=", "HOLT_TEST_PASSED", "HOLT_TEST_MISSING" }
	};
	assert_int_equal(box_args_exec(&a, &e, NULL), 0);
	assert_string_equal(env_of(&e, "PATH"), "/x");
	assert_string_equal(env_of(&e, "EMPTY"), "");
	assert_string_equal(env_of(&e, "HOLT_TEST_PASSED"), "on");
	assert_null(env_of(&e, "HOLT_TEST_MISSING"));
	assert_string_equal(env_of(&e, "LANG"), "C.UTF-8");
}

static void a_terminal_brings_its_name_and_no_deadline(void **state)
{
	struct box_args a = defaults();
	struct guest_exec e = { 0 };

	(void)state;
	a.tty = true;
	assert_int_equal(setenv("TERM", "vt100", 1), 0);
	assert_int_equal(box_args_exec(&a, &e, NULL), 0);
	assert_true(e.flags & EXEC_PTY);
	assert_string_equal(env_of(&e, "TERM"), "vt100");
	assert_int_equal(e.timeout_ms, 0);
	a.timeout_ms = 5000;
	e = (struct guest_exec){ 0 };
	assert_int_equal(box_args_exec(&a, &e, NULL), 0);
	assert_int_equal(e.timeout_ms, 5000);
}

static void json_keeps_a_mebibyte_of_output(void **state)
{
	struct box_args a = defaults();
	struct guest_exec e = { 0 };
	struct err err = { 0 };

	(void)state;
	a.json = true;
	assert_int_equal(box_args_exec(&a, &e, NULL), 0);
	assert_int_equal(e.output_limit, 1 << 20);
	a.output_limit = OUTPUT_JSON_MAX + 1;
	assert_int_equal(box_args_exec(&a, &e, &err), -ERANGE);
	a.output_limit = 0;
	a.tty = true;
	assert_int_equal(box_args_exec(&a, &e, &err), -EINVAL);
}

static void a_variable_without_a_name_is_refused(void **state)
{
	struct box_args a = defaults();
	struct guest_exec e = { 0 };
	struct err err = { 0 };

	(void)state;
	a.env = (struct opt_list){ 1, { "=value" } };
	assert_int_equal(box_args_exec(&a, &e, &err), -EINVAL);
	assert_string_equal(err.text, "--env '=value': wants NAME=value or NAME");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_execution_is_closed_by_default),
		cmocka_unit_test(variables_given_win_over_the_defaults),
		cmocka_unit_test(a_terminal_brings_its_name_and_no_deadline),
		cmocka_unit_test(json_keeps_a_mebibyte_of_output),
		cmocka_unit_test(a_variable_without_a_name_is_refused),
	};

	return cmocka_run_group_tests_name("box_args", tests, NULL, NULL);
}
