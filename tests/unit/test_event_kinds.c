#include "sandbox/event_kinds.h"

#include <string.h>

#include "check.h"

static void every_kind_is_known_once_and_fits(void **state)
{
	size_t n;
	const struct event_kind *all = event_kinds(&n);

	(void)state;
	assert_true(n > 30);
	for (size_t i = 0; i < n; i++) {
		assert_true(event_kind_is_known(all[i].kind));
		assert_true(event_pattern_is_valid(all[i].kind) ==
			    (strncmp(all[i].kind, "security.", 9) != 0));
		assert_true(strlen(all[i].kind) <= EVENT_KIND_MAX);
		assert_non_null(strchr(all[i].kind, '.'));
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(all[i].kind, all[k].kind);
	}
	assert_false(event_kind_is_known("sandbox"));
	assert_false(event_kind_is_known("sandbox.*"));
	assert_false(event_kind_is_known(""));
}

static void patterns_are_kinds_beginnings_or_everything(void **state)
{
	static const char *const good[] = { "*", "sandbox.*", "sandbox.created", "quota.exceeded" };
	static const char *const bad[] = {
		"",           "**",       "s*", "sandbox",     "sandbox.",   "*.ended",
		"sandbox.c*", "nobody.*", ".*", "sandbox.*.x", "security.*", "security.denied"
	};
	char lengthy[80];

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_true(event_pattern_is_valid(good[i]));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(event_pattern_is_valid(bad[i]));
	memset(lengthy, 'a', sizeof(lengthy) - 1);
	lengthy[sizeof(lengthy) - 1] = '\0';
	assert_false(event_pattern_is_valid(lengthy));
	assert_true(event_pattern_matches("sandbox.*", "sandbox.created"));
	assert_false(event_pattern_matches("sandbox.*", "sandboxes.created"));
	assert_false(event_pattern_matches("sandbox.created", "sandbox.created2"));
	assert_true(event_pattern_matches("*", "anything"));
	assert_true(event_pattern_matches("", "anything"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_is_known_once_and_fits),
		cmocka_unit_test(patterns_are_kinds_beginnings_or_everything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
