#include "sandbox/grant.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "check.h"

static void true_or_names_are_a_grant(void **state)
{
	struct err err = { 0 };

	(void)state;
	assert_int_equal(grant_check("true", &err), 0);
	assert_int_equal(grant_check("[\"a\"]", &err), 0);
	assert_int_equal(grant_check("[\"a\",\"b c\"]", &err), 0);
}

static void anything_else_is_refused_in_words(void **state)
{
	static const char *const bad[] = { "",       "false",  "null",      "1",
					   "\"a\"",  "{}",     "[]",        "[1]",
					   "[\"\"]", "[null]", "[[\"a\"]]", "[\"a\\u0000\"]",
					   "[true]" };

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct err err = { 0 };

		assert_int_equal(grant_check(bad[i], &err), -EINVAL);
		assert_int_equal(strncmp(err.text, "tools: ", 7), 0);
	}
}

static void names_and_their_number_are_bounded(void **state)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct err err = { 0 };

	(void)state;
	(void)buf_puts(&b, "[\"0\"");
	for (unsigned i = 1; i < GRANT_SERVERS_MAX; i++)
		(void)buf_printf(&b, ",\"%u\"", i);
	(void)buf_puts(&b, "]");
	assert_int_equal(grant_check(buf_str(&b), &err), 0);
	b.len--;
	(void)buf_puts(&b, ",\"more\"]");
	assert_int_equal(grant_check(buf_str(&b), &err), -EINVAL);
	buf_clear(&b);
	(void)buf_puts(&b, "[\"");
	for (unsigned i = 0; i < GRANT_NAME_MAX; i++)
		(void)buf_putc(&b, 'a');
	(void)buf_puts(&b, "\"]");
	assert_int_equal(grant_check(buf_str(&b), &err), 0);
	b.len -= 2;
	(void)buf_puts(&b, "a\"]");
	assert_int_equal(grant_check(buf_str(&b), &err), -EINVAL);
}

static void a_grant_is_of_those_it_names_and_no_others(void **state)
{
	(void)state;
	assert_true(grant_has("true", "anything"));
	assert_true(grant_has("[\"a\",\"b\"]", "b"));
	assert_false(grant_has("[\"a\",\"b\"]", "c"));
	assert_false(grant_has("[\"a\",\"b\"]", ""));
	assert_false(grant_has("", "a"));
	assert_false(grant_has("false", "a"));
	assert_false(grant_has("[\"a\"", "a"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(true_or_names_are_a_grant),
		cmocka_unit_test(anything_else_is_refused_in_words),
		cmocka_unit_test(names_and_their_number_are_bounded),
		cmocka_unit_test(a_grant_is_of_those_it_names_and_no_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
