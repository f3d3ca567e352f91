#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdint.h>

#include "launch/poolsize.h"

static void without_claims_the_minimum_waits(void **state)
{
	struct poolsize p;

	(void)state;
	poolsize_init(&p, 3, 10, 1000);
	assert_int_equal(poolsize_target(&p, 0), 3);
	assert_int_equal(poolsize_target(&p, 1000000), 3);
}

static void a_burst_raises_the_target_above_itself(void **state)
{
	struct poolsize p;

	(void)state;
	poolsize_init(&p, 1, 100, 1000);
	for (int i = 0; i < 20; i++)
		poolsize_claimed(&p, 5000);
	assert_int_equal(poolsize_target(&p, 5050), 29);
}

static void the_maximum_is_never_passed(void **state)
{
	struct poolsize p;

	(void)state;
	poolsize_init(&p, 1, 8, 1000);
	for (int i = 0; i < 1000; i++)
		poolsize_claimed(&p, 5000);
	assert_int_equal(poolsize_target(&p, 5000), 8);
}

static void the_pool_shrinks_only_after_a_quiet_time(void **state)
{
	struct poolsize p;

	(void)state;
	poolsize_init(&p, 1, 100, 60000);
	for (int i = 0; i < 20; i++)
		poolsize_claimed(&p, 5000);
	assert_int_equal(poolsize_target(&p, 5000), 29);
	/* Time is counted in parts: a sixteenth more or less. */
	assert_int_equal(poolsize_target(&p, 5000 + 60000 * 15 / 16), 29);
	assert_int_equal(poolsize_target(&p, 5000 + 60000 * 17 / 16), 1);
}

/* What came after the highest peak is what remains of it. */
static void a_smaller_peak_that_is_younger_outlives_a_larger_one(void **state)
{
	struct poolsize p;

	(void)state;
	poolsize_init(&p, 0, 100, 60000);
	for (int i = 0; i < 40; i++)
		poolsize_claimed(&p, 1000);
	for (int i = 0; i < 20; i++)
		poolsize_claimed(&p, 50000);
	assert_int_equal(poolsize_target(&p, 55000), 57);
	assert_int_equal(poolsize_target(&p, 70000), 29);
	assert_int_equal(poolsize_target(&p, 120000), 0);
}

static void what_a_peak_may_take_says_how_many_more_wait(void **state)
{
	struct poolsize p;

	(void)state;
	poolsize_init(&p, 0, 100, 1000);
	p.utilization = 50;
	for (int i = 0; i < 10; i++)
		poolsize_claimed(&p, 5000);
	assert_int_equal(poolsize_target(&p, 5000), 20);
	p.utilization = 100;
	assert_int_equal(poolsize_target(&p, 5000), 10);
}

static void boxes_that_take_long_to_make_need_more_of_them_waiting(void **state)
{
	struct poolsize quick, slow;

	(void)state;
	poolsize_init(&quick, 0, 100, 10000);
	poolsize_init(&slow, 0, 100, 10000);
	poolsize_made(&quick, 10ull * 1000000);
	poolsize_made(&slow, 900ull * 1000000);
	for (uint64_t ms = 10000; ms < 12000; ms += 20) {
		poolsize_claimed(&quick, ms);
		poolsize_claimed(&slow, ms);
	}
	/* One every 20 ms, made in 5: one at a time is enough. */
	assert_int_equal(poolsize_target(&quick, 12000), 2);
	assert_int_equal(poolsize_target(&slow, 12000), 100);
}

static void overload_is_forgotten_like_any_other_peak(void **state)
{
	struct poolsize p;

	(void)state;
	poolsize_init(&p, 0, 10, 1000);
	poolsize_made(&p, 100ull * 1000000);
	for (int i = 0; i < 100000; i++)
		poolsize_claimed(&p, 5000);
	assert_int_equal(poolsize_target(&p, 5000), 10);
	assert_int_equal(poolsize_target(&p, 8000), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_claims_the_minimum_waits),
		cmocka_unit_test(a_burst_raises_the_target_above_itself),
		cmocka_unit_test(the_maximum_is_never_passed),
		cmocka_unit_test(the_pool_shrinks_only_after_a_quiet_time),
		cmocka_unit_test(a_smaller_peak_that_is_younger_outlives_a_larger_one),
		cmocka_unit_test(overload_is_forgotten_like_any_other_peak),
		cmocka_unit_test(what_a_peak_may_take_says_how_many_more_wait),
		cmocka_unit_test(boxes_that_take_long_to_make_need_more_of_them_waiting),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
