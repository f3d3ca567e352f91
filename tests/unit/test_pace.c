#include "guest/pace.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "check.h"

#define MS 1000000ull

/* A guest whose schedstat is ours to write. */
struct fixture {
	struct pace p;
	uint64_t now_ms;
};

static void set_busy(struct fixture *f, uint64_t ran_ms, uint64_t queued_ms)
{
	char text[96];
	int n = snprintf(text, sizeof(text), "%llu %llu 77\n", (unsigned long long)(ran_ms * MS),
			 (unsigned long long)(queued_ms * MS));

	assert_int_equal(pwrite(f->p.fd, text, (size_t)n, 0), n);
}

static void begin(struct fixture *f)
{
	struct pace_wait w = { 1000, 1000, 1000, false };

	*f = (struct fixture){ .p.fd = memfd_create("schedstat", MFD_CLOEXEC), .now_ms = 1000 };
	assert_true(f->p.fd >= 0);
	set_busy(f, 10, 10);
	assert_int_equal(pace_frozen_ms(&f->p, &w), 0);
}

static uint64_t turn(struct fixture *f, uint64_t took_ms, uint64_t asked_ms, bool is_interrupted)
{
	struct pace_wait w = { f->now_ms, f->now_ms + took_ms, asked_ms, is_interrupted };

	f->now_ms += took_ms;
	return pace_frozen_ms(&f->p, &w);
}

static void an_interrupted_wait_counts_once(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f);
	assert_int_equal(turn(&f, 5000, 1000, true), 5000);
	assert_int_equal(turn(&f, 300, 1000, true), 300);
	assert_int_equal(turn(&f, 1000, 1000, false), 0);
	pace_close(&f.p);
}

static void waits_that_take_their_time_are_no_standstill(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f);
	for (int i = 0; i < 10; i++)
		assert_int_equal(turn(&f, 1000, 1000, false), 0);
	for (int i = 0; i < 100; i++)
		assert_int_equal(turn(&f, 37, 1000, false), 0);
	pace_close(&f.p);
}

static void standing_still_at_work_counts(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f);
	assert_int_equal(turn(&f, 4000, 0, false), 4000);
	assert_int_equal(turn(&f, 100, 1000, false), 0);
	f.now_ms += 3000; /* between two waits */
	assert_int_equal(turn(&f, 100, 1000, false), 3000);
	pace_close(&f.p);
}

static void starving_is_no_standstill(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f);
	set_busy(&f, 20, 9000); /* nine seconds in the queue */
	assert_int_equal(turn(&f, 9000, 0, false), 0);
	set_busy(&f, 5020, 9000); /* five on a processor */
	assert_int_equal(turn(&f, 5000, 0, false), 0);
	set_busy(&f, 5020, 11000); /* two in the queue, three nowhere */
	assert_int_equal(turn(&f, 5000, 0, false), 3000);
	pace_close(&f.p);
}

static void what_happens_while_nothing_is_due_does_not_count(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f);
	pace_rest(&f.p);
	f.now_ms += 50000;
	assert_int_equal(turn(&f, 60000, UINT64_MAX, false), 0);
	assert_int_equal(turn(&f, 1000, 1000, false), 0);
	pace_close(&f.p);
}

static void without_schedstat_only_waits_are_looked_at(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f);
	assert_int_equal(ftruncate(f.p.fd, 0), 0);
	assert_int_equal(turn(&f, 5000, 0, false), 0);
	pace_close(&f.p);
	assert_int_equal(turn(&f, 5000, 0, false), 0);
	assert_int_equal(turn(&f, 5000, 1000, true), 5000);
}

static void the_real_one_can_be_read(void **state)
{
	struct pace p;
	struct pace_wait w = { 0, 1, 1, false };

	(void)state;
	pace_open(&p);
	if (p.fd < 0)
		skip(); /* a kernel without it */
	assert_int_equal(pace_frozen_ms(&p, &w), 0);
	assert_int_equal(p.at_ms, 1); /* it was understood */
	pace_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_interrupted_wait_counts_once),
		cmocka_unit_test(waits_that_take_their_time_are_no_standstill),
		cmocka_unit_test(standing_still_at_work_counts),
		cmocka_unit_test(starving_is_no_standstill),
		cmocka_unit_test(what_happens_while_nothing_is_due_does_not_count),
		cmocka_unit_test(without_schedstat_only_waits_are_looked_at),
		cmocka_unit_test(the_real_one_can_be_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
