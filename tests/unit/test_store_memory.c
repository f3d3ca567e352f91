/* Faults: those that the store in memory makes on demand, and memory that is not there. */
#include "store/memory.h"

#include <errno.h>

#include "base/err.h"
#include "base/str.h"
#include "check.h"
#include "fault.h"
#include "store/store.h"
#include "store_rig.h"

static int put_number(const struct store *st, int i, struct store_results *done)
{
	struct sandbox_row row = store_rig_sandbox("s");
	char id[16];

	assert_int_equal(str_format(id, sizeof(id), "s%d", i), 0);
	row.id = id;
	return store_put_sandbox(st, &row, done ? store_rig_done : NULL, done);
}

static void note_first(void *user, int r)
{
	int *first = user;

	if (*first == 0)
		*first = r;
}

static void note_first_page(void *user, int r, const struct sandbox_row *rows, size_t n, bool more)
{
	(void)rows;
	(void)n;
	(void)more;
	note_first(user, r);
}

static int use(const struct store *st)
{
	struct sandbox_row row = store_rig_sandbox("s");
	struct store_sandbox_filter f = { .metadata = &(struct store_pair){ "team", "red" },
					  .n_metadata = 1,
					  .owner = "ada" };
	struct store_cursor c = { INT64_MAX, "x" };
	int first = 0, r;

	r = store_put_sandbox(st, &row, note_first, &first);
	if (r == 0)
		r = store_list_sandboxes(st, &f, &c, 10, note_first_page, &first);
	if (r == 0)
		r = store_delete_sandbox(st, "s", note_first, &first);
	store_dispatch(st);
	return r < 0 ? r : first;
}

static int open_and_use(void *arg)
{
	struct store_rig *rig = arg;
	struct err err = { 0 };
	int r;

	r = store_open_memory(NULL, &rig->st, &err);
	if (r == 0)
		r = use(&rig->st);
	store_close(&rig->st);
	return r;
}

static int open_disk(void *arg)
{
	struct store_rig *rig = arg;
	struct err err = { 0 };
	int r;

	r = store_open_sqlite(&(struct store_options){ .dir = rig->dir }, &rig->st, &err);
	assert_true(r == 0 || err.code != 0);
	store_close(&rig->st);
	return r;
}

static void without_memory_nothing_is_half_done(void **state)
{
	struct store_rig rig;

	(void)state;
	store_rig_dir(&rig);
	assert_true(fault_each(open_and_use, &rig) > 10);
	assert_true(fault_each(open_disk, &rig) > 3);
	store_rig_end(&rig);
}

static void the_one_in_memory_fails_on_demand(void **state)
{
	struct store_results done = { .n = 0 };
	struct store_rig rig;

	(void)state;
	store_rig_open_memory(&rig);
	rig.faults.fail_in = 2;
	rig.faults.fail_with = ENOSPC;
	for (int i = 0; i < 3; i++)
		assert_int_equal(put_number(&rig.st, i, &done), 0);
	rig.faults.is_held = true;
	store_dispatch(&rig.st);
	assert_int_equal(done.n, 0);
	rig.faults.is_held = false;
	store_dispatch(&rig.st);
	assert_int_equal(done.n, 3);
	assert_int_equal(done.r[0], 0);
	assert_int_equal(done.r[1], -ENOSPC);
	assert_int_equal(done.r[2], 0);
	assert_false(store_rig_has_sandbox(&rig.st, "s1"));
	rig.faults.refuse_in = 1;
	assert_int_equal(put_number(&rig.st, 3, &done), -EAGAIN);
	rig.faults.fail_in = 1;
	rig.faults.fail_on = true;
	assert_int_equal(store_rig_probe(&rig.st), -ENOSPC);
	assert_int_equal(store_rig_probe(&rig.st), -ENOSPC);
	assert_int_equal(rig.faults.writes, 5);
	assert_int_equal(rig.faults.queries, 1);
	store_rig_end(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_memory_nothing_is_half_done),
		cmocka_unit_test(the_one_in_memory_fails_on_demand),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
