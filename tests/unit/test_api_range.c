#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "api/range.h"

static void a_range_is_read_as_the_rfc_says(void **state)
{
	static const struct {
		const char *header;
		uint64_t size;
		enum range_kind kind;
		uint64_t first, length;
	} rows[] = {
		{ NULL, 10, RANGE_WHOLE, 0, 0 },
		{ "", 10, RANGE_WHOLE, 0, 0 },
		{ "bytes=0-0", 10, RANGE_PART, 0, 1 },
		{ "bytes=0-9", 10, RANGE_PART, 0, 10 },
		{ "bytes=0-99", 10, RANGE_PART, 0, 10 },
		{ "bytes=9-", 10, RANGE_PART, 9, 1 },
		{ "Bytes=2-4", 10, RANGE_PART, 2, 3 },
		{ "bytes= 2-4 ", 10, RANGE_PART, 2, 3 },
		{ "bytes=-3", 10, RANGE_PART, 7, 3 },
		{ "bytes=-30", 10, RANGE_PART, 0, 10 },
		{ "bytes=-18446744073709551615", 10, RANGE_PART, 0, 10 },
		{ "bytes=0-18446744073709551615", 10, RANGE_PART, 0, 10 },
		{ "bytes=10-", 10, RANGE_NOTHING, 0, 0 },
		{ "bytes=10-20", 10, RANGE_NOTHING, 0, 0 },
		{ "bytes=-0", 10, RANGE_NOTHING, 0, 0 },
		{ "bytes=0-", 0, RANGE_NOTHING, 0, 0 },
		{ "bytes=-1", 0, RANGE_NOTHING, 0, 0 },
		{ "bytes=4-2", 10, RANGE_WHOLE, 0, 0 },
		{ "bytes=", 10, RANGE_WHOLE, 0, 0 },
		{ "bytes=-", 10, RANGE_WHOLE, 0, 0 },
		{ "bytes=a-b", 10, RANGE_WHOLE, 0, 0 },
		{ "bytes=1-b", 10, RANGE_WHOLE, 0, 0 },
		{ "bytes=+1-2", 10, RANGE_WHOLE, 0, 0 },
		{ "bytes=1 -2", 10, RANGE_WHOLE, 0, 0 },
		{ "bytes=1-2-3", 10, RANGE_WHOLE, 0, 0 },
		{ "bytes=0-1,3-4", 10, RANGE_WHOLE, 0, 0 },
		{ "bytes=18446744073709551616-", 10, RANGE_WHOLE, 0, 0 },
		{ "bytes=99999999999999999999999999-", 10, RANGE_WHOLE, 0, 0 },
		{ "lines=0-1", 10, RANGE_WHOLE, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct range r = { 0 };
		enum range_kind kind = range_parse(rows[i].header, rows[i].size, &r);

		if (kind != rows[i].kind)
			fail_msg("'%s' of %d bytes", rows[i].header, (int)rows[i].size);
		if (kind != RANGE_PART)
			continue;
		assert_int_equal(r.first, rows[i].first);
		assert_int_equal(r.length, rows[i].length);
	}
}

static void an_etag_is_found_in_a_list(void **state)
{
	char etag[ETAG_SIZE];

	(void)state;
	etag_format(etag, 0x12, 0xabc, 3);
	assert_string_equal(etag, "\"12-abc-3\"");
	etag_format(etag, UINT64_MAX, UINT64_MAX, UINT64_MAX);
	assert_int_equal(strlen(etag), 2 + 3 * 16 + 2);
	assert_true(etag_in("\"a\"", "\"a\"", false));
	assert_true(etag_in("\"b\", \"a\"", "\"a\"", false));
	assert_true(etag_in(" * ", "\"a\"", false));
	assert_true(etag_in("W/\"a\"", "\"a\"", true));
	assert_false(etag_in("W/\"a\"", "\"a\"", false));
	assert_false(etag_in("\"ab\"", "\"a\"", true));
	assert_false(etag_in("a", "\"a\"", true));
	assert_false(etag_in("", "\"a\"", true));
}

static void a_date_is_read_as_it_was_written(void **state)
{
	static const char *const bad[] = { "", "yesterday", "Sun, 06 Nov 1994 08:49:37",
					   "Sun, 06 Nov 1994 08:49:37 GMT+1",
					   "Sunday, 06-Nov-94 08:49:37 GMT" };
	int64_t wall_s = 5;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(http_date_parse(bad[i], &wall_s), -EINVAL);
	assert_int_equal(wall_s, 5);
	assert_int_equal(http_date_parse("Sun, 06 Nov 1994 08:49:37 GMT", &wall_s), 0);
	assert_int_equal(wall_s, 784111777);
}

static void a_time_is_written_as_http_wants_it(void **state)
{
	char date[HTTP_DATE_SIZE];

	(void)state;
	http_date_format(date, 784111777);
	assert_string_equal(date, "Sun, 06 Nov 1994 08:49:37 GMT");
	http_date_format(date, INT64_MAX);
	assert_string_equal(date, "Thu, 01 Jan 1970 00:00:00 GMT");
	http_date_format(date, INT64_MIN);
	assert_string_equal(date, "Thu, 01 Jan 1970 00:00:00 GMT");
	http_date_format(date, 253402300799);
	assert_string_equal(date, "Fri, 31 Dec 9999 23:59:59 GMT");
	http_date_format(date, 253402300800);
	assert_string_equal(date, "Thu, 01 Jan 1970 00:00:00 GMT");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_range_is_read_as_the_rfc_says),
		cmocka_unit_test(an_etag_is_found_in_a_list),
		cmocka_unit_test(a_date_is_read_as_it_was_written),
		cmocka_unit_test(a_time_is_written_as_http_wants_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
