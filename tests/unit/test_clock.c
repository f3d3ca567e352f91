#include "base/clock.h"

#include "check.h"

static void the_monotonic_clock_never_goes_back(void **state)
{
	uint64_t last = clock_now_ns();

	(void)state;
	for (int i = 0; i < 1000; i++) {
		uint64_t now = clock_now_ns();

		assert_true(now >= last);
		last = now;
	}
	assert_true(clock_now_ms() >= last / 1000000);
}

static void assert_iso(int64_t wall_ms, const char *want)
{
	char text[CLOCK_ISO_SIZE];

	clock_iso(wall_ms, text);
	assert_string_equal(text, want);
}

static void a_time_is_written_as_iso_8601(void **state)
{
	(void)state;
	assert_iso(0, "1970-01-01T00:00:00.000Z");
	assert_iso(1767323045678, "2026-01-02T03:04:05.678Z");
	assert_iso(951782400000, "2000-02-29T00:00:00.000Z");
	assert_iso(-1, "1969-12-31T23:59:59.999Z");
	assert_iso(-1000, "1969-12-31T23:59:59.000Z");
	assert_iso(253402300799999, "9999-12-31T23:59:59.999Z");
}

static void times_without_four_digits_of_a_year_stop_at_the_nearest(void **state)
{
	(void)state;
	assert_iso(253402300800000, "9999-12-31T23:59:59.999Z");
	assert_iso(INT64_MAX, "9999-12-31T23:59:59.999Z");
	assert_iso(-62135596800000, "0001-01-01T00:00:00.000Z");
	assert_iso(INT64_MIN, "0001-01-01T00:00:00.000Z");
}

static void the_wall_clock_is_in_this_century(void **state)
{
	(void)state;
	assert_true(clock_wall_ms() > 1704067200000);
	assert_true(clock_wall_ms() < 4102444800000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_monotonic_clock_never_goes_back),
		cmocka_unit_test(a_time_is_written_as_iso_8601),
		cmocka_unit_test(times_without_four_digits_of_a_year_stop_at_the_nearest),
		cmocka_unit_test(the_wall_clock_is_in_this_century),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
