#include "base/parse.h"

#include <errno.h>

#include "check.h"

#define LEN(a) (sizeof(a) / sizeof((a)[0]))
#define UNTOUCHED 0xdeadbeefu

static void whole_numbers_within_bounds(void **state)
{
	static const struct {
		const char *text;
		uint64_t min, max;
		int r;
		uint64_t want;
	} rows[] = {
		{ "0", 0, UINT64_MAX, 0, 0 },
		{ "007", 0, 10, 0, 7 },
		{ "18446744073709551615", 0, UINT64_MAX, 0, UINT64_MAX },
		{ "18446744073709551616", 0, UINT64_MAX, -ERANGE, 0 },
		{ "99999999999999999999999999", 0, UINT64_MAX, -ERANGE, 0 },
		{ "10", 1, 10, 0, 10 },
		{ "11", 1, 10, -ERANGE, 0 },
		{ "0", 1, 10, -ERANGE, 0 },
		{ "99999999999999999999999999x", 0, UINT64_MAX, -EINVAL, 0 },
		{ "", 0, 10, -EINVAL, 0 },
		{ NULL, 0, 10, -EINVAL, 0 },
		{ "-1", 0, 10, -EINVAL, 0 },
		{ "+1", 0, 10, -EINVAL, 0 },
		{ " 1", 0, 10, -EINVAL, 0 },
		{ "1 ", 0, 10, -EINVAL, 0 },
		{ "0x10", 0, 99, -EINVAL, 0 },
		{ "1.0", 0, 99, -EINVAL, 0 },
	};

	(void)state;
	for (size_t i = 0; i < LEN(rows); i++) {
		uint64_t v = UNTOUCHED;

		assert_int_equal(parse_u64(rows[i].text, rows[i].min, rows[i].max, &v), rows[i].r);
		assert_int_equal(v, rows[i].r ? UNTOUCHED : rows[i].want);
	}
}

static void signed_numbers_within_bounds(void **state)
{
	static const struct {
		const char *text;
		int64_t min, max;
		int r;
		int64_t want;
	} rows[] = {
		{ "-5", -10, 10, 0, -5 },
		{ "-0", -10, 10, 0, 0 },
		{ "9223372036854775807", INT64_MIN, INT64_MAX, 0, INT64_MAX },
		{ "9223372036854775808", INT64_MIN, INT64_MAX, -ERANGE, 0 },
		{ "-9223372036854775808", INT64_MIN, INT64_MAX, 0, INT64_MIN },
		{ "-9223372036854775809", INT64_MIN, INT64_MAX, -ERANGE, 0 },
		{ "-11", -10, 10, -ERANGE, 0 },
		{ "11", -10, 10, -ERANGE, 0 },
		{ "-", -10, 10, -EINVAL, 0 },
		{ "--1", -10, 10, -EINVAL, 0 },
		{ "", -10, 10, -EINVAL, 0 },
		{ NULL, -10, 10, -EINVAL, 0 },
	};

	(void)state;
	for (size_t i = 0; i < LEN(rows); i++) {
		int64_t v = UNTOUCHED;

		assert_int_equal(parse_i64(rows[i].text, rows[i].min, rows[i].max, &v), rows[i].r);
		assert_true(v == (rows[i].r ? UNTOUCHED : rows[i].want));
	}
}

static void numbers_of_32_bits(void **state)
{
	uint32_t v = UNTOUCHED;

	(void)state;
	assert_int_equal(parse_u32("4294967296", 0, UINT32_MAX, &v), -ERANGE);
	assert_int_equal(v, UNTOUCHED);
	assert_int_equal(parse_u32("4294967295", 0, UINT32_MAX, &v), 0);
	assert_int_equal(v, UINT32_MAX);
}

static void yes_and_no_have_four_spellings(void **state)
{
	static const char *const yes[] = { "true", "yes", "on", "1", "TRUE", "Yes" };
	static const char *const no[] = { "false", "no", "off", "0", "False" };
	static const char *const bad[] = { "", "t", "2", "truex", " true", "y" };
	int v;

	(void)state;
	for (size_t i = 0; i < LEN(yes); i++) {
		v = -1;
		assert_int_equal(parse_bool(yes[i], &v), 0);
		assert_int_equal(v, 1);
	}
	for (size_t i = 0; i < LEN(no); i++) {
		v = -1;
		assert_int_equal(parse_bool(no[i], &v), 0);
		assert_int_equal(v, 0);
	}
	v = -1;
	for (size_t i = 0; i < LEN(bad); i++)
		assert_int_equal(parse_bool(bad[i], &v), -EINVAL);
	assert_int_equal(parse_bool(NULL, &v), -EINVAL);
	assert_int_equal(v, -1);
}

struct row {
	const char *text;
	int r;
	uint64_t want;
};

static void check_rows(int (*parse)(const char *, uint64_t, uint64_t, uint64_t *),
		       const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t v = UNTOUCHED;

		assert_int_equal(parse(rows[i].text, 0, UINT64_MAX, &v), rows[i].r);
		assert_int_equal(v, rows[i].r ? UNTOUCHED : rows[i].want);
	}
}

static void sizes_are_powers_of_1024(void **state)
{
	static const struct row rows[] = {
		{ "0", 0, 0 },
		{ "268435456", 0, 256ull << 20 },
		{ "256M", 0, 256ull << 20 },
		{ "256m", 0, 256ull << 20 },
		{ "256MB", 0, 256ull << 20 },
		{ "256MiB", 0, 256ull << 20 },
		{ "1.5G", 0, 3ull << 29 },
		{ "0.5K", 0, 512 },
		{ "1.0009765625K", 0, 1025 },
		{ "0.1K", 0, 102 }, /* 102.4 */
		{ "0.99999999999999999999999999999999999999T", 0, (1ull << 40) - 1 },
		{ "16777215T", 0, 16777215ull << 40 },
		{ "16777215.999999999999T", 0, UINT64_MAX - 1 },
		{ "16777216T", -ERANGE, 0 },
		{ "99999999999999999999K", -ERANGE, 0 },
		{ "1.5", -EINVAL, 0 }, /* half a byte */
		{ "1.", -EINVAL, 0 },
		{ "1.K", -EINVAL, 0 },
		{ ".5K", -EINVAL, 0 },
		{ "1.5.5K", -EINVAL, 0 },
		{ "K", -EINVAL, 0 },
		{ "", -EINVAL, 0 },
		{ "-1K", -EINVAL, 0 },
		{ "1 K", -EINVAL, 0 },
		{ "1Q", -EINVAL, 0 },
		{ "1Ki", 0, 1 << 10 },
		{ "256Mi", 0, 256ull << 20 },
		{ "2Gi", 0, 2ull << 30 },
		{ "1Ti", 0, 1ull << 40 },
		{ "1Qi", -EINVAL, 0 },
		{ "1i", -EINVAL, 0 },
		{ "1iB", -EINVAL, 0 },
		{ "1KiBx", -EINVAL, 0 },
		{ NULL, -EINVAL, 0 },
	};
	uint64_t v = UNTOUCHED;

	(void)state;
	check_rows(parse_size, rows, LEN(rows));
	assert_int_equal(parse_size("8M", 8 << 20, 16 << 20, &v), 0);
	assert_int_equal(parse_size("16M", 8 << 20, 16 << 20, &v), 0);
	v = UNTOUCHED;
	assert_int_equal(parse_size("8388607", 8 << 20, 16 << 20, &v), -ERANGE);
	assert_int_equal(parse_size("17M", 8 << 20, 16 << 20, &v), -ERANGE);
	assert_int_equal(v, UNTOUCHED);
}

static void durations_are_seconds_unless_they_say_otherwise(void **state)
{
	static const struct row rows[] = {
		{ "30", 0, 30000 },
		{ "30s", 0, 30000 },
		{ "1.5", 0, 1500 },
		{ "1.5s", 0, 1500 },
		{ "250ms", 0, 250 },
		{ "5m", 0, 300000 },
		{ "2h", 0, 7200000 },
		{ "0.5h", 0, 1800000 },
		{ "1.0005s", 0, 1000 },
		{ "1.5ms", -EINVAL, 0 },
		{ "1d", 0, 86400000 },
		{ "1w", -EINVAL, 0 },
		{ "s", -EINVAL, 0 },
		{ "1m30s", -EINVAL, 0 },
		{ "18446744073709552", -ERANGE, 0 },
	};
	uint64_t v = UNTOUCHED;

	(void)state;
	check_rows(parse_duration, rows, LEN(rows));
	assert_int_equal(parse_duration("2h", 1, 3600000, &v), -ERANGE);
	assert_int_equal(parse_duration("0", 1, 3600000, &v), -ERANGE);
	assert_int_equal(v, UNTOUCHED);
}

static void cores_become_thousandths(void **state)
{
	static const struct {
		const char *text;
		int r;
		uint32_t want;
	} rows[] = {
		{ "0.5", 0, 500 },    { "2", 0, 2000 },          { "250m", 0, 250 },
		{ "0.001", 0, 1 },    { "0.0005", -ERANGE, 0 },  { "0", -ERANGE, 0 },
		{ "64", 0, 64000 },   { "64.001", -ERANGE, 0 },  { "1.5m", -EINVAL, 0 },
		{ "1c", -EINVAL, 0 }, { "4294968", -ERANGE, 0 }, { NULL, -EINVAL, 0 },
	};

	(void)state;
	for (size_t i = 0; i < LEN(rows); i++) {
		uint32_t v = UNTOUCHED;

		assert_int_equal(parse_cpu(rows[i].text, 1, 64000, &v), rows[i].r);
		assert_int_equal(v, rows[i].r ? UNTOUCHED : rows[i].want);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_numbers_within_bounds),
		cmocka_unit_test(signed_numbers_within_bounds),
		cmocka_unit_test(numbers_of_32_bits),
		cmocka_unit_test(yes_and_no_have_four_spellings),
		cmocka_unit_test(sizes_are_powers_of_1024),
		cmocka_unit_test(durations_are_seconds_unless_they_say_otherwise),
		cmocka_unit_test(cores_become_thousandths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
