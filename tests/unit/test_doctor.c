#include <string.h>

#include "check.h"
#include "cli/doctor.h"

static void a_helper_for_modules_is_reported_unless_it_cannot_run(void **state)
{
	static const struct {
		const char *helper;
		long disabled;
		enum health health;
	} rows[] = {
		{ "/sbin/modprobe", 0, HEALTH_WARN },
		{ "/sbin/modprobe", 1, HEALTH_OK },
		{ "", 0, HEALTH_OK },
		{ NULL, 0, HEALTH_OK },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct finding f = { 0 };

		doctor_judge_modules(&f, rows[i].helper, rows[i].disabled);
		assert_int_equal(f.health, rows[i].health);
		assert_int_equal(f.mend[0] != '\0', rows[i].health == HEALTH_WARN);
	}
}

static void a_core_handler_is_reported_where_it_cannot_be_kept_away(void **state)
{
	static const struct {
		const char *pattern;
		bool can_be_limited;
		enum health health;
	} rows[] = {
		{ "core", false, HEALTH_OK },
		{ NULL, false, HEALTH_OK },
		{ "|/usr/share/apport/apport %p", true, HEALTH_OK },
		{ "|/usr/share/apport/apport %p", false, HEALTH_WARN },
		{ "@/run/cores.sock", true, HEALTH_WARN },
		{ "@@/run/cores.sock", true, HEALTH_WARN },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct finding f = { 0 };

		doctor_judge_cores(&f, rows[i].pattern, rows[i].can_be_limited);
		assert_int_equal(f.health, rows[i].health);
		assert_int_equal(f.mend[0] != '\0', rows[i].health == HEALTH_WARN);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_helper_for_modules_is_reported_unless_it_cannot_run),
		cmocka_unit_test(a_core_handler_is_reported_where_it_cannot_be_kept_away),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
