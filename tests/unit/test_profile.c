/* Security profiles: what is in the tables holds together, and nothing can be loosened. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "sandbox/profile.h"
#include "spec/launch.h"

static void every_profile_chooses_something_that_there_is(void **state)
{
	(void)state;
	for (unsigned id = 0; id < PROFILE_ID_COUNT; id++) {
		assert_string_equal(profiles[id].name, profile_names[id]);
		for (unsigned key = 0; key < PROFILE_KEY_COUNT; key++) {
			unsigned n = 0;

			while (profile_settings[key].choices[n].name)
				n++;
			assert_true(profiles[id].chosen[key] < n);
		}
	}
	assert_null(profile_names[PROFILE_ID_COUNT]);
}

static void no_profile_is_weaker_than_standard(void **state)
{
	(void)state;
	for (unsigned key = 0; key < PROFILE_KEY_COUNT; key++) {
		unsigned standard = profiles[PROFILE_ID_STANDARD].chosen[key];

		assert_true(profile_settings[key].floor >= standard);
		for (unsigned id = 0; id < PROFILE_ID_COUNT; id++)
			assert_true(profiles[id].chosen[key] >= standard);
	}
}

static void high_needs_another_kernel(void **state)
{
	(void)state;
	assert_null(profile_unavailable(PROFILE_ID_STANDARD));
	assert_null(profile_unavailable(PROFILE_ID_CUSTOM));
	assert_non_null(strstr(profile_unavailable(PROFILE_ID_HIGH),
			       "gVisor, which this version of Holt does not have"));
}

static void a_custom_profile_takes_what_is_as_strict_and_no_less(void **state)
{
	(void)state;
	for (unsigned key = 0; key < PROFILE_KEY_COUNT; key++) {
		const struct profile_setting *s = &profile_settings[key];

		for (unsigned i = 0; s->choices[i].name; i++) {
			bool is_had = i >= s->floor && !(key == PROFILE_ENGINE && i > 0);
			struct err err = { 0 };
			uint32_t flags = 0;

			assert_int_equal(profile_choose(key, s->choices[i].name, &flags, &err),
					 is_had ? 0 : -EINVAL);
			assert_int_equal(flags, is_had ? s->choices[i].flags : 0);
			assert_int_equal(err.text[0] != '\0', !is_had);
		}
	}
}

static void what_it_chooses_adds_up(void **state)
{
	uint32_t flags = 0;

	(void)state;
	assert_int_equal(profile_choose(PROFILE_SYSCALLS, "strict", &flags, NULL), 0);
	assert_int_equal(profile_choose(PROFILE_PROC, "processes", &flags, NULL), 0);
	assert_int_equal(profile_choose(PROFILE_NETWORK, "", &flags, NULL), 0);
	assert_int_equal(flags, TEMPLATE_STRICT_CALLS | TEMPLATE_STRICT_PROC);
	assert_int_equal(profile_choose(PROFILE_PROC, "Processes", &flags, NULL), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_profile_chooses_something_that_there_is),
		cmocka_unit_test(no_profile_is_weaker_than_standard),
		cmocka_unit_test(high_needs_another_kernel),
		cmocka_unit_test(a_custom_profile_takes_what_is_as_strict_and_no_less),
		cmocka_unit_test(what_it_chooses_adds_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
