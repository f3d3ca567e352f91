/* What a sandbox took lately. */
#include "check.h"

#include "sandbox/registry.h"
#include "sandbox_rig.h"

static void on_usage(void *user, const struct box_usage *usage, const struct err *err)
{
	(void)usage;
	assert_null(err);
	++*(int *)user;
}

static void look(struct sandbox_rig *rig, struct sandbox *sb, uint64_t cpu_us, uint64_t memory)
{
	int calls = 0;

	rig->fake.usage = (struct box_usage){ .cpu_us = cpu_us, .memory_bytes = memory };
	sandbox_usage(sb, on_usage, &calls);
	rig_run(rig);
	assert_int_equal(calls, 1);
}

static void each_look_is_kept_with_what_was_used_since_the_one_before(void **state)
{
	struct sample s[SERIES_MAX];
	struct sandbox_rig rig;
	struct sandbox *sb;
	int64_t began;

	(void)state;
	rig_open(&rig);
	sb = rig_create(&rig, "web");
	began = rig.wall_ms;
	assert_int_equal(sandbox_series(sb, 0, INT64_MAX, s, SERIES_MAX), 0);
	look(&rig, sb, 5000, 100);
	rig_pass(&rig, 1000);
	look(&rig, sb, 5000 + 250000, 200); /* a quarter of a second in one */
	assert_int_equal(sandbox_series(sb, 0, INT64_MAX, s, SERIES_MAX), 2);
	assert_true(s[0].at_ms == began && s[0].memory_bytes == 100 && s[0].cpu_milli == 0);
	assert_true(s[1].at_ms == began + 1000 && s[1].memory_bytes == 200 &&
		    s[1].cpu_milli == 250);
	assert_int_equal(sandbox_series(sb, 0, began - 1, s, SERIES_MAX), 0);
	assert_int_equal(sandbox_series(sb, began + 1, INT64_MAX, s, SERIES_MAX), 1);
	assert_int_equal(sandbox_series(sb, 0, INT64_MAX, s, 1), 1);
	rig_close(&rig);
}

static void the_oldest_give_way_and_the_order_stays(void **state)
{
	struct sample s[SERIES_MAX + 1];
	struct sandbox_rig rig;
	struct sandbox *sb;

	(void)state;
	rig_open(&rig);
	sb = rig_create(&rig, "web");
	for (uint64_t i = 0; i < SERIES_MAX + 5; i++) {
		look(&rig, sb, 0, i);
		rig_pass(&rig, 10);
	}
	assert_int_equal(sandbox_series(sb, 0, INT64_MAX, s, SERIES_MAX + 1), SERIES_MAX);
	for (uint64_t i = 0; i < SERIES_MAX; i++)
		assert_int_equal(s[i].memory_bytes, i + 5);
	rig_close(&rig);
}

static void one_is_taken_whenever_usage_is_counted(void **state)
{
	struct sample s[SERIES_MAX];
	struct sandbox_rig rig;
	struct sandbox *sb;

	(void)state;
	rig_open(&rig);
	sb = rig_create(&rig, "web");
	usage_checkpoint(rig.all);
	rig_run(&rig);
	assert_int_equal(sandbox_series(sb, 0, INT64_MAX, s, SERIES_MAX), 1);
	rig_close(&rig);
}

static void another_box_begins_from_nothing(void **state)
{
	struct sample s[SERIES_MAX];
	struct sandbox_rig rig;
	struct told t = { 0 };
	struct sandbox *sb;

	(void)state;
	rig_open(&rig);
	sb = rig_create(&rig, "web");
	look(&rig, sb, 9000000, 1);
	sandbox_suspend(sb, rig_told, &t);
	rig_run(&rig);
	sandbox_start(sb, rig_told, &t);
	rig_run(&rig);
	assert_int_equal(t.err.code, 0);
	rig_pass(&rig, 1000);
	look(&rig, sb, 100000, 2);
	assert_int_equal(sandbox_series(sb, 0, INT64_MAX, s, SERIES_MAX), 2);
	assert_int_equal(s[1].cpu_milli, 0); /* since when is not known */
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_look_is_kept_with_what_was_used_since_the_one_before),
		cmocka_unit_test(the_oldest_give_way_and_the_order_stays),
		cmocka_unit_test(one_is_taken_whenever_usage_is_counted),
		cmocka_unit_test(another_box_begins_from_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
