#include "base/err.h"

#include <errno.h>
#include <string.h>

#include "check.h"

static void a_failure_is_recorded_and_returned_negative(void **state)
{
	struct err err = { 0 };

	(void)state;
	assert_int_equal(err_set(&err, EDQUOT, "box '%s' has %d files", "b1", 9), -EDQUOT);
	assert_int_equal(err.code, EDQUOT);
	assert_string_equal(err.text, "box 'b1' has 9 files");
}

static void the_system_s_word_stands_behind_the_text(void **state)
{
	struct err err = { 0 };

	(void)state;
	assert_int_equal(err_sys(&err, ENOENT, "open '%s'", "/etc/x"), -ENOENT);
	assert_string_equal(err.text, "open '/etc/x': No such file or directory");
}

static void a_function_s_negative_result_is_the_same_code(void **state)
{
	struct err err = { 0 };

	(void)state;
	assert_int_equal(err_sys(&err, -EPERM, "mount"), -EPERM);
	assert_int_equal(err.code, EPERM);
	assert_int_equal(err_set(&err, -EPERM, "mount"), -EPERM);
	assert_int_equal(err.code, EPERM);
}

static void a_failure_without_a_code_is_no_success(void **state)
{
	struct err err = { 0 };

	(void)state;
	assert_int_equal(err_set(&err, 0, "odd"), -EIO);
	assert_int_equal(err_sys(NULL, 0, "odd"), -EIO);
	assert_int_equal(err.code, EIO);
}

static void nobody_needs_to_listen(void **state)
{
	(void)state;
	assert_int_equal(err_set(NULL, EINVAL, "x %d", 1), -EINVAL);
	assert_int_equal(err_sys(NULL, EINVAL, "x %d", 1), -EINVAL);
}

static void nobody_needs_to_be_asked(void **state)
{
	struct err from = { 0 };

	(void)state;
	(void)err_set(&from, EBUSY, "in use");
	assert_int_equal(err_code(NULL), 0);
	assert_int_equal(err_result(NULL, EPROTO), -EPROTO);
	assert_int_equal(err_copy(NULL, &from), -EBUSY);
	err_clear(NULL);
}

static void a_reason_is_passed_on_and_forgotten(void **state)
{
	struct err from = { 0 }, err = { 0 };

	(void)state;
	(void)err_set(&from, EBUSY, "in use");
	assert_int_equal(err_result(&err, EPROTO), -EPROTO);
	assert_int_equal(err_copy(&err, &from), -EBUSY);
	assert_string_equal(err.text, "in use");
	assert_int_equal(err_code(&err), EBUSY);
	assert_int_equal(err_result(&err, EPROTO), -EBUSY);
	err_clear(&err);
	assert_int_equal(err_code(&err), 0);
	assert_string_equal(err.text, "");
}

static void a_long_text_is_cut_and_terminated(void **state)
{
	struct err err = { 0 };
	char big[1000];

	(void)state;
	memset(big, 'x', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	assert_int_equal(err_set(&err, E2BIG, "%s", big), -E2BIG);
	assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
	assert_int_equal(err_sys(&err, E2BIG, "%s", big), -E2BIG);
	assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
}

static void the_old_text_may_be_part_of_the_new_one(void **state)
{
	struct err err = { 0 };

	(void)state;
	(void)err_set(&err, ENOENT, "inner");
	(void)err_set(&err, ENOENT, "outer: %s", err.text);
	assert_string_equal(err.text, "outer: inner");
	(void)err_sys(&err, ENOENT, "outermost: %s", err.text);
	assert_string_equal(err.text, "outermost: outer: inner: No such file or directory");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_failure_is_recorded_and_returned_negative),
		cmocka_unit_test(the_system_s_word_stands_behind_the_text),
		cmocka_unit_test(a_function_s_negative_result_is_the_same_code),
		cmocka_unit_test(a_failure_without_a_code_is_no_success),
		cmocka_unit_test(nobody_needs_to_listen),
		cmocka_unit_test(nobody_needs_to_be_asked),
		cmocka_unit_test(a_reason_is_passed_on_and_forgotten),
		cmocka_unit_test(a_long_text_is_cut_and_terminated),
		cmocka_unit_test(the_old_text_may_be_part_of_the_new_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
