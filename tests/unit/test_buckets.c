#include "auth/buckets.h"

#include <errno.h>
#include <string.h>

#include "base/str.h"
#include "check.h"

#define S 1000000000ull /* nanoseconds */

static const struct rate ten = { 10, 1000 };

static unsigned take_all(struct buckets *b, const char *who, struct rate rate, uint64_t now)
{
	struct bucket_state s;
	unsigned n = 0;

	while (n < 5000000 && buckets_take(b, who, RATE_READ, rate, now, &s))
		n++;
	return n;
}

static void a_rate_is_read_as_it_is_written(void **state)
{
	static const char *const good[] = { "0", "1/s", "600/m", "5000/h", "1000000/h" };
	static const char *const bad[] = { "",     "1",   "/m",      "0/m",
					   "-1/m", "1/",  "1/d",     "1/mm",
					   "1 /m", "x/m", "600/m/s", "00000000000000001/m" };
	struct rate r = { 7, 7 };
	char text[RATE_TEXT_SIZE];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_true(rate_parse(bad[i], &r) < 0);
	assert_int_equal(rate_parse(NULL, &r), -EINVAL);
	assert_int_equal(rate_parse("1000001/s", &r), -ERANGE);
	assert_int_equal(r.count, 7);
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(rate_parse(good[i], &r), 0);
		rate_format(r, text);
		assert_string_equal(text, good[i]);
	}
}

static void a_bucket_lets_in_what_it_holds_and_fills_evenly(void **state)
{
	_cleanup_(buckets_free_p) struct buckets *b = buckets_create(10);
	struct bucket_state s;

	(void)state;
	assert_true(buckets_take(b, "k", RATE_READ, ten, 5 * S, &s));
	assert_int_equal(s.remaining, 9);
	assert_int_equal(s.full_ms, 100);
	assert_int_equal(take_all(b, "k", ten, 5 * S), 9);
	assert_false(buckets_take(b, "k", RATE_READ, ten, 5 * S, &s));
	assert_int_equal(s.remaining, 0);
	assert_int_equal(s.wait_ms, 100);
	assert_int_equal(s.full_ms, 1000);
	assert_false(buckets_take(b, "k", RATE_READ, ten, 5 * S + S / 10 - 1, &s));
	assert_int_equal(s.wait_ms, 1); /* never told to come at once */
	assert_true(buckets_take(b, "k", RATE_READ, ten, 5 * S + S / 10, &s));
	assert_false(buckets_take(b, "k", RATE_READ, ten, 5 * S + S / 10, &s));
	assert_int_equal(take_all(b, "k", ten, 6 * S), 9);
	assert_int_equal(take_all(b, "k", ten, 3600 * S), 10); /* never more than full */
}

static void every_rate_lets_in_as_many_as_it_says(void **state)
{
	static const uint32_t counts[] = { 1, 3, 7, 600, 999, 1000000, 999999, 600001 };
	static const uint32_t times[] = { 1000, 60000, 3600000 };

	(void)state;
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		for (size_t j = 0; j < 3; j++) {
			_cleanup_(buckets_free_p) struct buckets *b = buckets_create(1);
			struct rate r = { counts[i], times[j] };

			assert_int_equal(take_all(b, "k", r, S), counts[i]);
		}
}

static void keys_and_classes_have_buckets_of_their_own(void **state)
{
	_cleanup_(buckets_free_p) struct buckets *b = buckets_create(10);
	struct bucket_state s;

	(void)state;
	assert_int_equal(take_all(b, "k", ten, S), 10);
	assert_true(buckets_take(b, "l", RATE_READ, ten, S, &s));
	assert_true(buckets_take(b, "k", RATE_EXEC, ten, S, &s));
	assert_false(buckets_take(b, "k", RATE_READ, ten, S, &s));
}

static void a_clock_that_stands_or_a_rate_that_changes_does_no_harm(void **state)
{
	_cleanup_(buckets_free_p) struct buckets *b = buckets_create(10);
	const struct rate one = { 1, 1000 }, many = { 1000, 1000 };
	struct bucket_state s;

	(void)state;
	assert_int_equal(take_all(b, "k", ten, 9 * S), 10);
	assert_false(buckets_take(b, "k", RATE_READ, ten, S, &s)); /* set back */
	assert_false(buckets_take(b, "k", RATE_READ, one, S, &s));
	assert_true(buckets_take(b, "k", RATE_READ, many, S + S / 2, &s));
	assert_int_equal(s.remaining, 499);
	assert_int_equal(take_all(b, "k", (struct rate){ 1, 3600000 }, 2 * S), 0);
}

static void a_full_table_forgets_who_was_away_longest(void **state)
{
	_cleanup_(buckets_free_p) struct buckets *b = buckets_create(2);
	struct bucket_state s;

	(void)state;
	assert_int_equal(take_all(b, "a", ten, S), 10);
	assert_int_equal(take_all(b, "b", ten, S), 10);
	assert_false(buckets_take(b, "a", RATE_READ, ten, S, &s));
	assert_true(buckets_take(b, "c", RATE_READ, ten, S, &s)); /* b goes */
	assert_false(buckets_take(b, "a", RATE_READ, ten, S, &s));
	assert_true(buckets_take(b, "b", RATE_READ, ten, S, &s));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_rate_is_read_as_it_is_written),
		cmocka_unit_test(a_bucket_lets_in_what_it_holds_and_fills_evenly),
		cmocka_unit_test(every_rate_lets_in_as_many_as_it_says),
		cmocka_unit_test(keys_and_classes_have_buckets_of_their_own),
		cmocka_unit_test(a_clock_that_stands_or_a_rate_that_changes_does_no_harm),
		cmocka_unit_test(a_full_table_forgets_who_was_away_longest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
