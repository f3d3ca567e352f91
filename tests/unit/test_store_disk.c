/* Disks that are full, read-only, failing or pulled away, and processes that die in the middle. */
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/id.h"
#include "base/str.h"
#include "check.h"
#include "store/store.h"
#include "store_rig.h"

/* What SQLite's writes are answered with while this is not 0. */
static atomic_int write_errno;

static ssize_t hooked_pwrite(int fd, const void *data, size_t n, off_t at)
{
	int code = atomic_load(&write_errno);

	if (!code)
		return pwrite(fd, data, n, at);
	errno = code;
	return -1;
}

/* How many of its reads fail from now on. */
static atomic_int reads_to_fail;

static ssize_t hooked_pread(int fd, void *data, size_t n, off_t at)
{
	if (atomic_load(&reads_to_fail) == 0)
		return pread(fd, data, n, at);
	atomic_fetch_sub(&reads_to_fail, 1);
	errno = EIO;
	return -1;
}

static ssize_t hooked_write(int fd, const void *data, size_t n)
{
	int code = atomic_load(&write_errno);

	if (!code)
		return write(fd, data, n);
	errno = code;
	return -1;
}

/* SQLite lets its system calls be replaced, by name, for just this. */
static int hook_disk(void **state)
{
	static const struct {
		const char *name;
		sqlite3_syscall_ptr fn;
	} hooks[] = {
		{ "pwrite", (sqlite3_syscall_ptr)hooked_pwrite },
		{ "pwrite64", (sqlite3_syscall_ptr)hooked_pwrite },
		{ "write", (sqlite3_syscall_ptr)hooked_write },
		{ "pread", (sqlite3_syscall_ptr)hooked_pread },
		{ "pread64", (sqlite3_syscall_ptr)hooked_pread },
	};
	sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);

	(void)state;
	for (size_t i = 0; i < sizeof(hooks) / sizeof(hooks[0]); i++)
		assert_int_equal(vfs->xSetSystemCall(vfs, hooks[i].name, hooks[i].fn), SQLITE_OK);
	return 0;
}

static void fail_and_heal(int code, int want)
{
	struct sandbox_row row = store_rig_sandbox("s1");
	struct store_rig rig;

	store_rig_dir(&rig);
	store_rig_open(&rig);
	assert_int_equal(store_rig_probe(&rig.st), 0);
	atomic_store(&write_errno, code);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(store_rig_put_sandbox(&rig.st, &row), want);
		assert_int_equal(store_rig_probe(&rig.st), want);
		assert_false(store_rig_has_sandbox(&rig.st, "s1")); /* it can still be read */
	}
	atomic_store(&write_errno, 0);
	assert_int_equal(store_rig_put_sandbox(&rig.st, &row), 0);
	assert_int_equal(store_rig_probe(&rig.st), 0);
	assert_true(store_rig_has_sandbox(&rig.st, "s1"));
	store_close(&rig.st);
	store_rig_open(&rig);
	assert_true(store_rig_has_sandbox(&rig.st, "s1"));
	store_rig_end(&rig);
}

static void a_full_disk_is_told_and_healed(void **state)
{
	(void)state;
	fail_and_heal(ENOSPC, -ENOSPC);
}

static void a_used_up_quota_is_told_and_healed(void **state)
{
	(void)state;
	fail_and_heal(EDQUOT, -EDQUOT);
}

static void a_disk_gone_read_only_is_told_and_healed(void **state)
{
	(void)state;
	fail_and_heal(EROFS, -EROFS);
}

static void a_failing_disk_is_told_and_healed(void **state)
{
	(void)state;
	fail_and_heal(EIO, -EIO);
}

/* A change of somebody else's: what the store has read so far counts no more. */
static void change_beside(const struct store_rig *rig)
{
	sqlite3 *db = store_rig_beside(rig);

	assert_int_equal(
		sqlite3_exec(db, "INSERT INTO meta VALUES ('beside', '')", NULL, NULL, NULL),
		SQLITE_OK);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void a_disk_that_cannot_be_read_is_told_and_healed(void **state)
{
	struct sandbox_row row = store_rig_sandbox("s1");
	struct store_rig rig;

	(void)state;
	store_rig_dir(&rig);
	store_rig_open(&rig);
	change_beside(&rig);
	atomic_store(&reads_to_fail, INT_MAX);
	/* SQLite counts what cannot be read as damaged. */
	assert_int_equal(store_rig_put_sandbox(&rig.st, &row), -EUCLEAN);
	assert_int_equal(store_rig_probe(&rig.st), -EUCLEAN);
	atomic_store(&reads_to_fail, 0);
	assert_int_equal(store_rig_put_sandbox(&rig.st, &row), 0);
	assert_true(store_rig_has_sandbox(&rig.st, "s1"));
	store_rig_end(&rig);
}

static void a_connection_that_cannot_begin_is_made_anew(void **state)
{
	struct sandbox_row row = store_rig_sandbox("s1");
	struct store_rig rig;

	(void)state;
	store_rig_dir(&rig);
	store_rig_open(&rig);
	change_beside(&rig);
	atomic_store(&reads_to_fail, 1);
	assert_int_equal(store_rig_put_sandbox(&rig.st, &row), 0);
	assert_int_equal(atomic_load(&reads_to_fail), 0);
	assert_true(store_rig_has_sandbox(&rig.st, "s1"));
	store_rig_end(&rig);
}

static void many_writes_to_a_failing_disk_each_get_their_answer(void **state)
{
	struct sandbox_row row = store_rig_sandbox("s1");
	struct store_results done = { .n = 0 };
	struct store_rig rig;

	(void)state;
	store_rig_dir(&rig);
	store_rig_open(&rig);
	atomic_store(&write_errno, EIO);
	for (int i = 0; i < 400; i++)
		assert_int_equal(store_put_sandbox(&rig.st, &row, store_rig_done, &done), 0);
	store_rig_wait(&rig.st, &done.n, 400);
	for (int i = 0; i < 400; i++)
		assert_int_equal(done.r[i], -EIO);
	atomic_store(&write_errno, 0);
	assert_int_equal(store_rig_put_sandbox(&rig.st, &row), 0);
	store_rig_end(&rig);
}

static void closing_on_a_failing_disk_ends_and_loses_nothing(void **state)
{
	struct sandbox_row row = store_rig_sandbox("s1"), late = store_rig_sandbox("s2");
	struct store_results done = { .n = 0 };
	struct store_rig rig;

	(void)state;
	store_rig_dir(&rig);
	store_rig_open(&rig);
	assert_int_equal(store_rig_put_sandbox(&rig.st, &row), 0);
	atomic_store(&write_errno, EIO);
	assert_int_equal(store_put_sandbox(&rig.st, &late, store_rig_done, &done), 0);
	store_close(&rig.st);
	assert_int_equal(done.n, 1);
	assert_int_equal(done.r[0], -EIO);
	atomic_store(&write_errno, 0);
	store_rig_open(&rig);
	assert_true(store_rig_has_sandbox(&rig.st, "s1"));
	assert_false(store_rig_has_sandbox(&rig.st, "s2"));
	store_rig_end(&rig);
}

static void a_database_pulled_away_is_noticed_and_found_again(void **state)
{
	struct sandbox_row row = store_rig_sandbox("s1");
	struct store_rig rig;
	char path[128], aside[128];

	(void)state;
	store_rig_dir(&rig);
	store_rig_open(&rig);
	assert_int_equal(str_format(path, sizeof(path), "%s/holt.db", rig.dir), 0);
	assert_int_equal(str_format(aside, sizeof(aside), "%s/aside", rig.dir), 0);
	assert_int_equal(rename(path, aside), 0);
	assert_int_equal(store_rig_put_sandbox(&rig.st, &row), -ESTALE);
	assert_int_equal(store_rig_probe(&rig.st), -ESTALE);
	assert_int_equal(access(path, F_OK), -1); /* nothing was made in its place */
	assert_int_equal(rename(aside, path), 0);
	assert_int_equal(store_rig_put_sandbox(&rig.st, &row), 0);
	store_rig_end(&rig);
}

/* ---- real limits ---- */

static void put_until_full(const struct store *st, int want)
{
	_free_ char *text = store_rig_text(256 << 10);
	struct sandbox_row row = store_rig_sandbox("s");
	int r = 0;

	row.env = text;
	for (int i = 0; i < 200 && r == 0; i++) {
		char id[16];

		assert_int_equal(str_format(id, sizeof(id), "s%d", i), 0);
		row.id = id;
		r = store_rig_put_sandbox(st, &row);
	}
	assert_int_equal(r, want);
}

static void a_limit_on_file_sizes_counts_as_a_full_disk(void **state)
{
	struct sandbox_row row = store_rig_sandbox("small");
	struct rlimit old, low;
	struct store_rig rig;

	(void)state;
	store_rig_dir(&rig);
	store_rig_open(&rig);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	low = (struct rlimit){ .rlim_cur = 1 << 20, .rlim_max = old.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
	put_until_full(&rig.st, -ENOSPC);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_int_equal(store_rig_put_sandbox(&rig.st, &row), 0);
	assert_true(store_rig_has_sandbox(&rig.st, "s0"));
	store_rig_end(&rig);
}

/* One that is full after a few megabytes; false without the privilege. */
static bool small_disk(struct store_rig *rig, const char *size)
{
	if (geteuid() != 0 || unshare(CLONE_NEWNS) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return false;
	store_rig_dir(rig);
	assert_int_equal(mount("tmpfs", rig->dir, "tmpfs", 0, size), 0);
	return true;
}

static void end_small_disk(struct store_rig *rig)
{
	store_close(&rig->st);
	assert_int_equal(umount2(rig->dir, MNT_DETACH), 0);
	store_rig_end(rig);
}

static void a_real_disk_that_is_full_heals_when_there_is_room(void **state)
{
	struct sandbox_row row = store_rig_sandbox("small");
	struct store_rig rig;

	(void)state;
	if (!small_disk(&rig, "size=4m,mode=700"))
		skip();
	store_rig_open(&rig);
	put_until_full(&rig.st, -ENOSPC);
	assert_int_equal(mount(NULL, rig.dir, NULL, MS_REMOUNT, "size=16m"), 0);
	assert_int_equal(store_rig_put_sandbox(&rig.st, &row), 0);
	assert_true(store_rig_has_sandbox(&rig.st, "small"));
	assert_true(store_rig_has_sandbox(&rig.st, "s0"));
	assert_int_equal(store_flush(&rig.st), 0);
	end_small_disk(&rig);
}

static void what_fits_is_written_beside_what_does_not(void **state)
{
	_free_ char *text = store_rig_text(STORE_TEXT_MAX);
	struct sandbox_row big = store_rig_sandbox("big"), a = store_rig_sandbox("a");
	struct sandbox_row b = store_rig_sandbox("b");
	struct store_results done = { .n = 0 };
	struct store_rig rig;
	sqlite3 *other;

	(void)state;
	if (!small_disk(&rig, "size=3m,mode=700"))
		skip();
	store_rig_open(&rig);
	big.env = text;
	/* Held up, so that the three are one batch. */
	other = store_rig_beside(&rig);
	assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(store_probe(&rig.st, NULL, NULL), 0);
	usleep(50000);
	assert_int_equal(store_put_sandbox(&rig.st, &a, store_rig_done, &done), 0);
	assert_int_equal(store_put_sandbox(&rig.st, &big, store_rig_done, &done), 0);
	assert_int_equal(store_put_sandbox(&rig.st, &b, store_rig_done, &done), 0);
	assert_int_equal(sqlite3_exec(other, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_close(other), SQLITE_OK);
	store_rig_wait(&rig.st, &done.n, 3);
	assert_int_equal(done.r[0], 0);
	assert_int_equal(done.r[1], -ENOSPC);
	assert_int_equal(done.r[2], 0);
	assert_true(store_rig_has_sandbox(&rig.st, "a"));
	assert_false(store_rig_has_sandbox(&rig.st, "big"));
	assert_true(store_rig_has_sandbox(&rig.st, "b"));
	end_small_disk(&rig);
}

/* ---- death ---- */

struct teller {
	struct store st;
	int out;
	uint32_t acked, queued;
};

static void tell(void *user, int r)
{
	struct teller *t = user;

	if (r < 0 || fd_write_all(t->out, &t->acked, sizeof(t->acked)) < 0)
		_exit(1);
	t->acked++;
}

static void put_round(struct teller *t, int round)
{
	struct sandbox_row row = store_rig_sandbox("s");
	char id[32];

	while (t->queued < t->acked + 50) {
		(void)str_format(id, sizeof(id), "r%d-%u", round, t->queued++);
		row.id = id;
		if (store_put_sandbox(&t->st, &row, tell, t) < 0)
			_exit(1);
	}
}

/* Writes without end, and says which writes were acknowledged. */
static pid_t start_writer(const struct store_rig *rig, int round, int *ret_fd)
{
	struct store_options options = { .dir = rig->dir };
	struct teller t = { 0 };
	struct err err = { 0 };
	int fds[2];
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid > 0) {
		(void)close(fds[1]);
		*ret_fd = fds[0];
		return pid;
	}
	(void)close(fds[0]);
	t.out = fds[1];
	if (store_open_sqlite(&options, &t.st, &err) < 0)
		_exit(1);
	for (;;) {
		put_round(&t, round);
		store_dispatch(&t.st);
	}
}

static uint32_t kill_after(pid_t pid, int fd, uint32_t count)
{
	uint32_t n = 0, last = 0;
	int status;

	while (n < count && fd_read_all(fd, &last, sizeof(last)) == (ssize_t)sizeof(last))
		n++;
	assert_int_equal(n, count);
	assert_int_equal(kill(pid, SIGKILL), 0);
	while (fd_read_all(fd, &last, sizeof(last)) == (ssize_t)sizeof(last))
		n++;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	return n;
}

static size_t count_of(const struct store *st, int round, uint32_t acked)
{
	size_t found = 0;

	for (uint32_t i = 0; i < acked; i++) {
		char id[32];

		assert_int_equal(str_format(id, sizeof(id), "r%d-%u", round, i), 0);
		found += store_rig_has_sandbox(st, id);
	}
	return found;
}

static void what_was_acknowledged_survives_the_end_of_the_process(void **state)
{
	struct store_rig rig;

	(void)state;
	store_rig_dir(&rig);
	for (int round = 0; round < 8; round++) {
		_close_ int fd = -1;
		pid_t pid = start_writer(&rig, round, &fd);
		uint32_t acked = kill_after(pid, fd, 100 + 37 * (uint32_t)round);

		store_rig_open(&rig);
		assert_int_equal(count_of(&rig.st, round, acked), acked);
		store_close(&rig.st);
	}
	store_rig_end(&rig);
}

/* ---- growing ---- */

static int execution_result(const struct store *st, const char *id)
{
	struct store_seen seen = { 0 };

	assert_int_equal(store_get_execution(st, id, store_rig_see_executions, &seen), 0);
	store_rig_wait(st, &seen.calls, 1);
	return seen.r;
}

/* Whoever runs programs that say much would fill the disk, and then nobody could do anything. */
static void the_database_has_a_size_and_what_ended_first_gives_way(void **state)
{
	struct store_rig rig;
	struct store_options o = { .dir = rig.dir, .size_max = 4 << 20 };
	struct sandbox_row box, gone = store_rig_sandbox("gone");
	_free_ char *text = store_rig_text(64 << 10);
	char path[96], id[ID_LEN + 1];
	struct err err = { 0 };
	struct stat st;

	(void)state;
	store_rig_dir(&rig);
	assert_int_equal(store_open_sqlite(&o, &rig.st, &err), 0);
	box = store_rig_sandbox("box");
	gone.is_live = false;
	gone.name = "gone";
	assert_int_equal(store_rig_put_sandbox(&rig.st, &box), 0);
	assert_int_equal(store_rig_put_sandbox(&rig.st, &gone), 0);
	for (int i = 0; i < 400; i++) { /* 25 MiB */
		struct execution_row row;

		(void)str_format(id, sizeof(id), "x%03d", i);
		row = store_rig_execution(id, i % 2 ? "box" : "gone");
		row.is_live = i == 0;
		row.ended_ms = i == 0 ? 0 : 1000 + i;
		row.content = text;
		row.output = NULL;
		row.output_len = 0;
		assert_int_equal(store_rig_put_execution(&rig.st, &row), 0);
	}
	assert_int_equal(store_flush(&rig.st), 0);
	(void)str_format(path, sizeof(path), "%s/holt.db", rig.dir);
	assert_int_equal(stat(path, &st), 0);
	assert_in_range(st.st_size, 2 << 20, 6 << 20);
	assert_int_equal(execution_result(&rig.st, "x399"), 0);
	assert_int_equal(execution_result(&rig.st, "x200"), -ENOENT);
	assert_int_equal(execution_result(&rig.st, "x001"), -ENOENT);
	assert_int_equal(execution_result(&rig.st, "x000"), 0); /* it lives */
	assert_true(store_rig_has_sandbox(&rig.st, "box"));
	store_rig_end(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		/* First: a child must not inherit the locks of another test's threads. */
		cmocka_unit_test(what_was_acknowledged_survives_the_end_of_the_process),
		cmocka_unit_test(a_full_disk_is_told_and_healed),
		cmocka_unit_test(a_used_up_quota_is_told_and_healed),
		cmocka_unit_test(a_disk_gone_read_only_is_told_and_healed),
		cmocka_unit_test(a_failing_disk_is_told_and_healed),
		cmocka_unit_test(a_disk_that_cannot_be_read_is_told_and_healed),
		cmocka_unit_test(a_connection_that_cannot_begin_is_made_anew),
		cmocka_unit_test(many_writes_to_a_failing_disk_each_get_their_answer),
		cmocka_unit_test(closing_on_a_failing_disk_ends_and_loses_nothing),
		cmocka_unit_test(a_database_pulled_away_is_noticed_and_found_again),
		cmocka_unit_test(a_limit_on_file_sizes_counts_as_a_full_disk),
		cmocka_unit_test(a_real_disk_that_is_full_heals_when_there_is_room),
		cmocka_unit_test(what_fits_is_written_beside_what_does_not),
		cmocka_unit_test(the_database_has_a_size_and_what_ended_first_gives_way),
	};

	return cmocka_run_group_tests(tests, hook_disk, NULL);
}
