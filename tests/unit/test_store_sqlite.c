/* The queues and threads of the embedded store. A lock of another connection's holds the writer up,
 * so that what is queued meanwhile is known to share a commit. */
#include <errno.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "check.h"
#include "store/store.h"
#include "store_rig.h"

/* SQLite's calls land here: the program's symbols come before libc's. */
static atomic_int syncs;

__attribute__((visibility("default"))) int fdatasync(int fd)
{
	atomic_fetch_add(&syncs, 1);
	return (int)syscall(SYS_fdatasync, fd);
}

__attribute__((visibility("default"))) int fsync(int fd)
{
	atomic_fetch_add(&syncs, 1);
	return (int)syscall(SYS_fsync, fd);
}

struct written {
	size_t n, batch_min, batch_max, failed;
	uint64_t took_max_us;
};

static void note_write(void *user, int r, uint64_t took_us, size_t batch)
{
	struct written *w = user;

	w->n++;
	w->failed += r < 0;
	if (w->batch_min == 0 || batch < w->batch_min)
		w->batch_min = batch;
	if (batch > w->batch_max)
		w->batch_max = batch;
	if (took_us > w->took_max_us)
		w->took_max_us = took_us;
}

static void open_with(struct store_rig *rig, struct store_options options)
{
	struct err err = { 0 };

	store_rig_dir(rig);
	options.dir = rig->dir;
	if (store_open_sqlite(&options, &rig->st, &err) < 0)
		fail_msg("%s", err.text);
}

static sqlite3 *hold(const struct store_rig *rig)
{
	sqlite3 *db = store_rig_beside(rig);

	assert_int_equal(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	return db;
}

static void let_go(sqlite3 *db)
{
	assert_int_equal(sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static int put_number(const struct store *st, int i, struct store_results *done)
{
	struct sandbox_row row = store_rig_sandbox("s");
	char id[16];

	assert_int_equal(str_format(id, sizeof(id), "s%d", i), 0);
	row.id = id;
	return store_put_sandbox(st, &row, done ? store_rig_done : NULL, done);
}

static void what_is_queued_together_is_committed_together(void **state)
{
	struct written w = { 0 };
	struct store_results done = { .n = 0 };
	struct store_rig rig;
	sqlite3 *other;

	(void)state;
	open_with(&rig, (struct store_options){ .on_write = note_write, .user = &w });
	other = hold(&rig);
	for (int i = 0; i < 100; i++)
		assert_int_equal(put_number(&rig.st, i, &done), 0);
	usleep(20000);
	assert_int_equal(done.n, 0);
	let_go(other);
	store_rig_wait(&rig.st, &done.n, 100);
	assert_int_equal(w.n, 100);
	assert_int_equal(w.failed, 0);
	/* The writer may have set out with the first few. */
	assert_true(w.batch_max >= 50);
	assert_true(w.batch_min == 100 || w.batch_min + w.batch_max == 100);
	assert_true(w.took_max_us >= 20000);
	store_rig_end(&rig);
}

static void put_in_callback(void *user, int r)
{
	struct store_rig *rig = user;

	assert_int_equal(r, 0);
	assert_int_equal(put_number(&rig->st, 9, NULL), 0);
}

static void what_is_held_back_is_written_when_it_is_let_go(void **state)
{
	struct written w = { 0 };
	struct store_results done = { .n = 0 };
	struct sandbox_row row = store_rig_sandbox("last");
	struct store_rig rig;

	(void)state;
	open_with(&rig, (struct store_options){ .on_write = note_write, .user = &w });
	store_hold(&rig.st, true);
	store_hold(&rig.st, false); /* with nothing to write */
	store_hold(&rig.st, true);
	assert_int_equal(put_number(&rig.st, 0, &done), 0);
	store_hold(&rig.st, true);
	assert_int_equal(put_number(&rig.st, 1, &done), 0);
	store_hold(&rig.st, false);
	assert_int_equal(put_number(&rig.st, 2, &done), 0);
	store_hold(&rig.st, false);
	store_rig_wait(&rig.st, &done.n, 3);
	/* What a callback asks for is written as well, and a flush waits for nobody. */
	assert_int_equal(store_put_sandbox(&rig.st, &row, put_in_callback, &rig), 0);
	store_rig_wait(&rig.st, &w.n, 5);
	store_hold(&rig.st, true);
	assert_int_equal(put_number(&rig.st, 3, &done), 0);
	assert_int_equal(store_flush(&rig.st), 0);
	store_hold(&rig.st, false);
	store_rig_wait(&rig.st, &done.n, 4);
	assert_int_equal(w.failed, 0);
	store_rig_end(&rig);
}

static void one_commit_has_a_limit(void **state)
{
	struct written w = { 0 };
	struct store_results done = { .n = 0 };
	struct store_rig rig;
	sqlite3 *other;

	(void)state;
	open_with(&rig, (struct store_options){ .on_write = note_write, .user = &w });
	other = hold(&rig);
	for (int i = 0; i < 1200; i++)
		assert_int_equal(put_number(&rig.st, i, &done), 0);
	let_go(other);
	store_rig_wait(&rig.st, &done.n, 1200);
	assert_int_equal(w.batch_max, 512);
	store_rig_end(&rig);
}

static void a_bad_write_fails_alone_in_its_batch(void **state)
{
	struct written w = { 0 };
	struct store_results done = { .n = 0 };
	struct sandbox_row a = store_rig_sandbox("a"), b = store_rig_sandbox("b");
	struct execution_row lost = store_rig_execution("x", "nobody");
	struct store_rig rig;
	sqlite3 *other;

	(void)state;
	open_with(&rig, (struct store_options){ .on_write = note_write, .user = &w });
	a.name = b.name = "web";
	other = hold(&rig);
	assert_int_equal(put_number(&rig.st, 1, &done), 0);
	usleep(50000); /* the writer has taken it, and waits */
	assert_int_equal(store_put_sandbox(&rig.st, &a, store_rig_done, &done), 0);
	assert_int_equal(store_put_sandbox(&rig.st, &b, store_rig_done, &done), 0);
	assert_int_equal(store_put_execution(&rig.st, &lost, store_rig_done, &done), 0);
	assert_int_equal(put_number(&rig.st, 2, &done), 0);
	let_go(other);
	store_rig_wait(&rig.st, &done.n, 5);
	assert_true(w.batch_max >= 4);
	assert_int_equal(done.r[0], 0);
	assert_int_equal(done.r[1], 0);
	assert_int_equal(done.r[2], -EEXIST);
	assert_int_equal(done.r[3], -ENOENT);
	assert_int_equal(done.r[4], 0);
	assert_true(store_rig_has_sandbox(&rig.st, "a"));
	assert_false(store_rig_has_sandbox(&rig.st, "b"));
	assert_true(store_rig_has_sandbox(&rig.st, "s2"));
	store_rig_end(&rig);
}

static void a_lock_that_is_never_released_fails_writes_and_later_ones_succeed(void **state)
{
	struct store_results done = { .n = 0 };
	struct store_rig rig;
	sqlite3 *other;

	(void)state;
	open_with(&rig, (struct store_options){ 0 });
	other = hold(&rig);
	for (int i = 0; i < 10; i++)
		assert_int_equal(put_number(&rig.st, i, &done), 0);
	store_rig_wait(&rig.st, &done.n, 10);
	assert_int_equal(done.r[0], -EBUSY);
	assert_int_equal(done.r[9], -EBUSY);
	let_go(other);
	assert_int_equal(put_number(&rig.st, 1, &done), 0);
	store_rig_wait(&rig.st, &done.n, 11);
	assert_int_equal(done.r[10], 0);
	store_rig_end(&rig);
}

static void a_full_queue_refuses_at_once_and_opens_again(void **state)
{
	struct store_results done = { .n = 0 };
	struct store_rig rig;
	sqlite3 *other;

	(void)state;
	open_with(&rig, (struct store_options){ .queue_max = 4 });
	other = hold(&rig);
	for (int i = 0; i < 4; i++)
		assert_int_equal(put_number(&rig.st, i, &done), 0);
	assert_int_equal(put_number(&rig.st, 4, &done), -EAGAIN);
	assert_int_equal(store_probe(&rig.st, store_rig_done, &done), -EAGAIN);
	let_go(other);
	store_rig_wait(&rig.st, &done.n, 4);
	assert_int_equal(put_number(&rig.st, 4, &done), 0);
	store_rig_wait(&rig.st, &done.n, 5);
	assert_int_equal(done.n, 5);
	store_rig_end(&rig);
}

static void queued_bytes_have_a_limit_but_one_write_always_passes(void **state)
{
	_free_ char *text = store_rig_text(1 << 20);
	struct sandbox_row row = store_rig_sandbox("big");
	struct store_results done = { .n = 0 };
	struct store_rig rig;
	sqlite3 *other;
	int r;

	(void)state;
	open_with(&rig, (struct store_options){ .queue_bytes_max = 64 << 10 });
	row.env = text;
	other = hold(&rig);
	assert_int_equal(put_number(&rig.st, 0, &done), 0);
	/* Nothing waits once the writer has taken it. */
	while ((r = store_put_sandbox(&rig.st, &row, store_rig_done, &done)) == -EAGAIN)
		usleep(1000);
	assert_int_equal(r, 0);
	assert_int_equal(put_number(&rig.st, 1, &done), -EAGAIN);
	let_go(other);
	store_rig_wait(&rig.st, &done.n, 2);
	assert_int_equal(done.r[1], 0);
	assert_int_equal(put_number(&rig.st, 1, &done), 0);
	store_rig_wait(&rig.st, &done.n, 3);
	store_rig_end(&rig);
}

static void queries_have_a_limit_too(void **state)
{
	struct store_seen seen = { 0 };
	struct store_rig rig;

	(void)state;
	open_with(&rig, (struct store_options){ .queue_max = 3 });
	for (int i = 0; i < 3; i++)
		assert_int_equal(store_get_sandbox(&rig.st, "s", store_rig_see_sandboxes, &seen),
				 0);
	assert_int_equal(store_get_sandbox(&rig.st, "s", store_rig_see_sandboxes, &seen), -EAGAIN);
	store_rig_wait(&rig.st, &seen.calls, 3);
	assert_int_equal(store_get_sandbox(&rig.st, "s", store_rig_see_sandboxes, &seen), 0);
	store_rig_wait(&rig.st, &seen.calls, 4);
	assert_int_equal(seen.calls, 4);
	store_rig_end(&rig);
}

static void count_output(void *user, int r, const struct execution_row *rows, size_t n, bool more)
{
	size_t *calls = user;

	assert_int_equal(r, 0);
	assert_int_equal(n, 1);
	assert_false(more);
	assert_int_equal(rows->output_len, 40 << 20);
	(*calls)++;
}

static void results_that_nobody_fetches_do_not_pile_up(void **state)
{
	_free_ char *text = store_rig_text(40 << 20);
	struct sandbox_row sandbox = store_rig_sandbox("s");
	struct execution_row row = store_rig_execution("x", "s");
	struct store_rig rig;
	size_t calls = 0;

	(void)state;
	open_with(&rig, (struct store_options){ 0 });
	row.output = text;
	row.output_len = 40 << 20;
	assert_int_equal(store_rig_put_sandbox(&rig.st, &sandbox), 0);
	assert_int_equal(store_rig_put_execution(&rig.st, &row), 0);
	for (int i = 0; i < 5; i++)
		assert_int_equal(store_get_execution(&rig.st, "x", count_output, &calls), 0);
	usleep(1500000); /* enough for all of them */
	store_dispatch(&rig.st);
	assert_true(calls <= 2);
	store_rig_wait(&rig.st, &calls, 5);
	store_rig_end(&rig);
}

static void only_keys_and_named_texts_wait_for_the_disk(void **state)
{
	struct key_row key = store_rig_key("k");
	struct store_results done = { .n = 0 };
	struct sandbox_row row = store_rig_sandbox("s");
	struct store_rig rig;
	int before;

	(void)state;
	open_with(&rig, (struct store_options){ 0 });
	assert_int_equal(store_rig_put_sandbox(&rig.st, &row), 0); /* the log is made */
	before = atomic_load(&syncs);
	assert_int_equal(store_rig_put_sandbox(&rig.st, &row), 0);
	assert_int_equal(store_touch_key(&rig.st, "k", 1, store_rig_done, &done), 0);
	store_rig_wait(&rig.st, &done.n, 1);
	assert_int_equal(atomic_load(&syncs), before);
	assert_int_equal(store_rig_put_key(&rig.st, &key), 0);
	assert_true(atomic_load(&syncs) > before);
	before = atomic_load(&syncs);
	assert_int_equal(store_put_meta(&rig.st, "a", "b", store_rig_done, &done), 0);
	store_rig_wait(&rig.st, &done.n, 2);
	assert_true(atomic_load(&syncs) > before);
	before = atomic_load(&syncs);
	assert_int_equal(store_rig_put_sandbox(&rig.st, &row), 0);
	assert_int_equal(atomic_load(&syncs), before);
	row.is_kept = true; /* its files outlive the machine */
	assert_int_equal(store_rig_put_sandbox(&rig.st, &row), 0);
	assert_true(atomic_load(&syncs) > before);
	before = atomic_load(&syncs);
	row.is_kept = false;
	assert_int_equal(store_rig_put_sandbox(&rig.st, &row), 0);
	assert_int_equal(store_flush(&rig.st), 0);
	assert_true(atomic_load(&syncs) > before);
	store_rig_end(&rig);
}

static void a_durable_store_waits_for_the_disk_each_time(void **state)
{
	struct sandbox_row row = store_rig_sandbox("s");
	struct store_rig rig;

	(void)state;
	open_with(&rig, (struct store_options){ .durable = true });
	for (int i = 0; i < 3; i++) {
		int before = atomic_load(&syncs);

		assert_int_equal(store_rig_put_sandbox(&rig.st, &row), 0);
		assert_true(atomic_load(&syncs) > before);
	}
	store_rig_end(&rig);
}

static void a_flush_waits_for_what_was_queued(void **state)
{
	struct store_results done = { .n = 0 };
	struct store_rig rig;

	(void)state;
	open_with(&rig, (struct store_options){ 0 });
	for (int i = 0; i < 200; i++)
		assert_int_equal(put_number(&rig.st, i, &done), 0);
	assert_int_equal(store_flush(&rig.st), 0);
	assert_int_equal(done.n, 0);
	store_dispatch(&rig.st);
	assert_int_equal(done.n, 200);
	assert_int_equal(store_flush(&rig.st), 0);
	store_rig_end(&rig);
}

struct asker {
	const struct store *st;
	size_t acked, asked, found;
};

static void must_find(void *user, int r, const struct sandbox_row *rows, size_t n, bool more)
{
	struct asker *a = user;

	(void)rows;
	(void)more;
	assert_int_equal(r, 0);
	assert_int_equal(n, 1);
	a->found++;
}

static void ask_for_it(void *user, int r)
{
	struct asker *a = user;
	char id[16];

	assert_int_equal(r, 0);
	assert_int_equal(str_format(id, sizeof(id), "s%zu", a->acked++), 0);
	assert_int_equal(store_get_sandbox(a->st, id, must_find, a), 0);
}

static void a_query_sees_all_that_was_called_back(void **state)
{
	struct sandbox_row row = store_rig_sandbox("s");
	struct store_rig rig;
	struct asker a = { 0 };

	(void)state;
	open_with(&rig, (struct store_options){ 0 });
	a.st = &rig.st;
	for (int i = 0; i < 1000; i++) {
		char id[16];

		assert_int_equal(str_format(id, sizeof(id), "s%d", i), 0);
		row.id = id;
		assert_int_equal(store_put_sandbox(&rig.st, &row, ask_for_it, &a), 0);
		if (i % 10 == 0)
			store_dispatch(&rig.st);
	}
	store_rig_wait(&rig.st, &a.found, 1000);
	store_rig_end(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_queued_together_is_committed_together),
		cmocka_unit_test(what_is_held_back_is_written_when_it_is_let_go),
		cmocka_unit_test(one_commit_has_a_limit),
		cmocka_unit_test(a_bad_write_fails_alone_in_its_batch),
		cmocka_unit_test(a_lock_that_is_never_released_fails_writes_and_later_ones_succeed),
		cmocka_unit_test(a_full_queue_refuses_at_once_and_opens_again),
		cmocka_unit_test(queued_bytes_have_a_limit_but_one_write_always_passes),
		cmocka_unit_test(queries_have_a_limit_too),
		cmocka_unit_test(results_that_nobody_fetches_do_not_pile_up),
		cmocka_unit_test(only_keys_and_named_texts_wait_for_the_disk),
		cmocka_unit_test(a_durable_store_waits_for_the_disk_each_time),
		cmocka_unit_test(a_flush_waits_for_what_was_queued),
		cmocka_unit_test(a_query_sees_all_that_was_called_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
