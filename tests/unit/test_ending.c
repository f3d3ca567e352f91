#include "check.h"
#include "launch/ending.h"

#define BOXES 2000

static void no_more_end_at_a_time_than_the_limit(void **state)
{
	static struct ending_turn boxes[BOXES];
	struct ending e;
	struct ending_turn *t;
	unsigned begun = 0, ended = 0;

	(void)state;
	ending_init(&e);
	for (int i = 0; i < BOXES; i++)
		ending_add(&e, &boxes[i]);
	while (ended < BOXES) {
		while ((t = ending_next(&e, 0)))
			assert_ptr_equal(t, &boxes[begun++]);
		assert_in_range(begun - ended, 1, ENDING_MAX);
		ending_done(&e, &boxes[ended++]);
	}
	assert_int_equal(begun, BOXES);
	assert_false(ending_is_waiting(&e));
}

static void they_end_in_the_order_in_which_they_were_told_to(void **state)
{
	struct ending_turn boxes[3];
	struct ending e;

	(void)state;
	ending_init(&e);
	for (int i = 0; i < 3; i++)
		ending_add(&e, &boxes[i]);
	for (int i = 0; i < 3; i++)
		assert_ptr_equal(ending_next(&e, 0), &boxes[i]);
	assert_null(ending_next(&e, 0));
}

/* Processes that the kernel does not let go must not keep all others alive, nor slow them down. */
static void those_that_do_not_end_hold_up_nobody(void **state)
{
	static struct ending_turn boxes[4 * ENDING_MAX];
	const uint64_t late = 100 + ENDING_SLOW_MS;
	struct ending e;

	(void)state;
	ending_init(&e);
	for (int i = 0; i < 4 * ENDING_MAX; i++)
		ending_add(&e, &boxes[i]);
	for (int i = 0; i < ENDING_MAX; i++)
		assert_ptr_equal(ending_next(&e, 100), &boxes[i]);
	assert_null(ending_next_late(&e, late - 1));
	assert_null(ending_next(&e, late - 1));
	assert_int_equal(ending_wait_ms(&e, late - 1), 1);
	for (int i = 0; i < ENDING_MAX; i++)
		assert_ptr_equal(ending_next_late(&e, late), &boxes[i]);
	assert_null(ending_next_late(&e, late));
	assert_int_equal(e.n_late, ENDING_MAX);
	/* All the others end at the pace as ever. */
	for (int i = ENDING_MAX; i < 4 * ENDING_MAX; i++) {
		assert_ptr_equal(ending_next(&e, late), &boxes[i]);
		ending_done(&e, &boxes[i]);
	}
	ending_done(&e, &boxes[0]); /* late, but at last */
	assert_int_equal(e.n_late, ENDING_MAX - 1);
	assert_int_equal(e.n_under_way, 0);
	assert_int_equal(ending_wait_ms(&e, late), -1);
}

/* One that ends by itself while it waits is taken out of the list. */
static void one_that_is_gone_already_is_passed_over(void **state)
{
	struct ending_turn boxes[2];
	struct ending e;

	(void)state;
	ending_init(&e);
	ending_add(&e, &boxes[0]);
	ending_add(&e, &boxes[1]);
	ending_done(&e, &boxes[0]);
	assert_ptr_equal(ending_next(&e, 0), &boxes[1]);
	assert_int_equal(e.n_under_way, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_more_end_at_a_time_than_the_limit),
		cmocka_unit_test(they_end_in_the_order_in_which_they_were_told_to),
		cmocka_unit_test(those_that_do_not_end_hold_up_nobody),
		cmocka_unit_test(one_that_is_gone_already_is_passed_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
