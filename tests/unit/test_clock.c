#include "base/clock.h"

#include <errno.h>

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

static void every_form_of_rfc_3339_is_read(void **state)
{
	static const struct {
		const char *text;
		int64_t want_ms;
	} rows[] = {
		{ "2026-01-02T03:04:05.678Z", 1767323045678 },
		{ "2026-01-02T03:04:05Z", 1767323045000 },
		{ "2026-01-02t03:04:05.6z", 1767323045600 },
		{ "2026-01-02 03:04:05.678901234Z", 1767323045678 },
		{ "2026-01-02T03:04:05.678000+00:00", 1767323045678 },
		{ "2026-01-02T03:04:05-00:00", 1767323045000 },
		{ "2026-01-02T04:34:05+01:30", 1767323045000 },
		{ "2026-01-01T19:04:05-08:00", 1767323045000 },
		{ "1990-12-31T23:59:60Z", 662688000000 },
		{ "2000-02-29", 951782400000 },
	};
	int64_t ms = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (clock_from_iso(rows[i].text, &ms) < 0)
			fail_msg("%s was refused", rows[i].text);
		assert_int_equal(ms, rows[i].want_ms);
	}
}

static void what_is_no_time_is_refused(void **state)
{
	static const char *const rows[] = {
		"",
		"now",
		"2026",
		"2026-1-2",
		"2026-02-29",
		"2026-13-01",
		"2026-01-00",
		"0000-01-01",
		"2026-01-02T03:04",
		"2026-01-02T03:04:05",
		"2026-01-02T24:00:00Z",
		"2026-01-02T03:60:00Z",
		"2026-01-02T03:04:61Z",
		"2026-01-02T03:04:05.Z",
		"2026-01-02T03:04:05+0100",
		"2026-01-02T03:04:05+01",
		"2026-01-02T03:04:05+24:00",
		"2026-01-02T03:04:05+00:60",
		"2026-01-02T03:04:05Zx",
		"2026-01-02 ",
		" 2026-01-02",
	};
	int64_t ms = 7;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (clock_from_iso(rows[i], &ms) != -EINVAL)
			fail_msg("'%s' was taken", rows[i]);
	assert_int_equal(ms, 7);
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
		cmocka_unit_test(every_form_of_rfc_3339_is_read),
		cmocka_unit_test(what_is_no_time_is_refused),
		cmocka_unit_test(the_wall_clock_is_in_this_century),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
