#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "guest/deadline.h"

struct fixture {
	struct list all;
	struct deadline d[4];
};

static struct fixture *make(struct fixture *f)
{
	list_init(&f->all);
	for (int i = 0; i < 4; i++)
		deadline_init(&f->d[i], NULL);
	return f;
}

static void the_soonest_comes_first_whatever_the_order_of_setting(void **state)
{
	struct fixture f;

	(void)state;
	make(&f);
	deadline_set(&f.all, &f.d[0], 300);
	deadline_set(&f.all, &f.d[1], 100);
	deadline_set(&f.all, &f.d[2], 200);
	assert_null(deadline_take(&f.all, 99));
	assert_ptr_equal(deadline_take(&f.all, 1000), &f.d[1]);
	assert_ptr_equal(deadline_take(&f.all, 1000), &f.d[2]);
	assert_ptr_equal(deadline_take(&f.all, 1000), &f.d[0]);
	assert_null(deadline_take(&f.all, 1000));
}

static void of_equal_times_the_first_set_comes_first(void **state)
{
	struct fixture f;

	(void)state;
	make(&f);
	deadline_set(&f.all, &f.d[0], 5);
	deadline_set(&f.all, &f.d[1], 5);
	assert_ptr_equal(deadline_take(&f.all, 5), &f.d[0]);
	assert_ptr_equal(deadline_take(&f.all, 5), &f.d[1]);
}

static void a_moved_deadline_is_due_once(void **state)
{
	struct fixture f;

	(void)state;
	make(&f);
	deadline_set(&f.all, &f.d[0], 5);
	deadline_set(&f.all, &f.d[0], 50);
	assert_null(deadline_take(&f.all, 10));
	assert_ptr_equal(deadline_take(&f.all, 50), &f.d[0]);
	assert_false(deadline_is_set(&f.d[0]));
	assert_null(deadline_take(&f.all, 100));
}

static void a_cleared_deadline_is_never_due(void **state)
{
	struct fixture f;

	(void)state;
	make(&f);
	deadline_clear(&f.d[0]); /* never set: harmless */
	deadline_set(&f.all, &f.d[0], 5);
	assert_true(deadline_is_set(&f.d[0]));
	deadline_clear(&f.d[0]);
	deadline_clear(&f.d[0]);
	assert_null(deadline_take(&f.all, UINT64_MAX));
}

static void the_wait_is_for_the_soonest_and_fits_an_int(void **state)
{
	struct fixture f;

	(void)state;
	make(&f);
	assert_int_equal(deadline_wait_ms(&f.all, 0), -1);
	deadline_set(&f.all, &f.d[0], UINT64_MAX);
	assert_int_equal(deadline_wait_ms(&f.all, 0), 24 * 3600 * 1000);
	deadline_set(&f.all, &f.d[1], 70);
	assert_int_equal(deadline_wait_ms(&f.all, 30), 40);
	assert_int_equal(deadline_wait_ms(&f.all, 70), 0);
	assert_int_equal(deadline_wait_ms(&f.all, 71), 0);
}

static void all_are_delayed_alike(void **state)
{
	struct fixture f;

	(void)state;
	make(&f);
	deadline_delay(&f.all, 5); /* none: harmless */
	deadline_set(&f.all, &f.d[0], 10);
	deadline_set(&f.all, &f.d[1], 20);
	deadline_delay(&f.all, 100);
	assert_null(deadline_take(&f.all, 109));
	assert_ptr_equal(deadline_take(&f.all, 110), &f.d[0]);
	assert_null(deadline_take(&f.all, 119));
	assert_ptr_equal(deadline_take(&f.all, 120), &f.d[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_soonest_comes_first_whatever_the_order_of_setting),
		cmocka_unit_test(of_equal_times_the_first_set_comes_first),
		cmocka_unit_test(a_moved_deadline_is_due_once),
		cmocka_unit_test(a_cleared_deadline_is_never_due),
		cmocka_unit_test(the_wait_is_for_the_soonest_and_fits_an_int),
		cmocka_unit_test(all_are_delayed_alike),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
