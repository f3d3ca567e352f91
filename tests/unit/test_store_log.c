/* The write-ahead log: how large it gets, and who waits for that. */
#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/str.h"
#include "check.h"
#include "store/store.h"
#include "store_rig.h"

static long long log_size(const struct store_rig *rig)
{
	char path[128];
	FILE *f;
	long long n;

	assert_int_equal(str_format(path, sizeof(path), "%s/holt.db-wal", rig->dir), 0);
	f = fopen(path, "r");
	assert_non_null(f);
	assert_int_equal(fseek(f, 0, SEEK_END), 0);
	n = ftell(f);
	(void)fclose(f);
	return n;
}

static void put_megabytes(const struct store *st, int n)
{
	_free_ char *text = store_rig_text(1 << 20);
	struct sandbox_row row = store_rig_sandbox("s");

	row.env = text;
	for (int i = 0; i < n; i++) {
		memset(text, 'a' + i % 26, 1 << 20); /* what is there already is not written */
		assert_int_equal(store_rig_put_sandbox(st, &row), 0);
	}
}

static void the_log_does_not_grow_without_end(void **state)
{
	struct store_rig rig;

	(void)state;
	store_rig_dir(&rig);
	store_rig_open(&rig);
	put_megabytes(&rig.st, 60);
	assert_true(log_size(&rig) < 16 << 20);
	store_rig_end(&rig);
}

/* A reader that never goes: nothing can be done, but nobody waits for it each time either. */
static void a_reader_that_stays_delays_nobody_for_long(void **state)
{
	uint64_t begun;
	struct store_rig rig;
	sqlite3 *other;

	(void)state;
	store_rig_dir(&rig);
	store_rig_open(&rig);
	other = store_rig_beside(&rig);
	assert_int_equal(sqlite3_exec(other, "BEGIN; SELECT * FROM meta", NULL, NULL, NULL),
			 SQLITE_OK);
	begun = clock_now_ms();
	put_megabytes(&rig.st, 60);
	assert_true(clock_now_ms() - begun < 10000);
	assert_true(log_size(&rig) > 50 << 20);
	assert_int_equal(sqlite3_exec(other, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_close(other), SQLITE_OK);
	put_megabytes(&rig.st, 8); /* and then it goes down again */
	assert_true(log_size(&rig) < 16 << 20);
	store_rig_end(&rig);
}

struct readers {
	const struct store_rig *rig;
	atomic_bool is_over;
};

static void *read_on(void *arg)
{
	struct readers *r = arg;
	sqlite3 *db = store_rig_beside(r->rig);

	while (!atomic_load(&r->is_over)) {
		assert_int_equal(sqlite3_exec(db, "BEGIN; SELECT * FROM meta", NULL, NULL, NULL),
				 SQLITE_OK);
		usleep(3000);
		assert_int_equal(sqlite3_exec(db, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
	}
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
	return NULL;
}

static void readers_that_take_turns_do_not_let_the_log_grow(void **state)
{
	struct store_rig rig;
	struct readers r = { .rig = &rig };
	pthread_t threads[4];

	(void)state;
	store_rig_dir(&rig);
	store_rig_open(&rig);
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(pthread_create(&threads[i], NULL, read_on, &r), 0);
		usleep(700);
	}
	put_megabytes(&rig.st, 100);
	atomic_store(&r.is_over, true);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_true(log_size(&rig) < 50 << 20);
	store_rig_end(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_log_does_not_grow_without_end),
		cmocka_unit_test(a_reader_that_stays_delays_nobody_for_long),
		cmocka_unit_test(readers_that_take_turns_do_not_let_the_log_grow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
