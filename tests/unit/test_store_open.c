/* Opening: whose directory it is, who else has it, which schema it has, and whether it is whole. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sqlite3.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"
#include "check.h"
#include "store/db.h"
#include "store/migrate.h"
#include "store/store.h"
#include "store_rig.h"

static void path_of(const struct store_rig *rig, const char *name, char dst[128])
{
	assert_int_equal(str_format(dst, 128, "%s/%s", rig->dir, name), 0);
}

static int try_open(struct store_rig *rig, struct err *err)
{
	*err = (struct err){ 0 };
	return store_open_sqlite(&(struct store_options){ .dir = rig->dir }, &rig->st, err);
}

/* Says no, and why. */
static void assert_refused(struct store_rig *rig, int want, const char *why)
{
	struct err err;

	assert_int_equal(try_open(rig, &err), want);
	assert_null(rig->st.ops);
	if (!strstr(err.text, why))
		fail_msg("'%s' does not say '%s'", err.text, why);
}

/* A statement of somebody who knows better than we do. */
static void tamper(const struct store_rig *rig, const char *sql)
{
	char path[128];
	sqlite3 *db;

	path_of(rig, "holt.db", path);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
		fail_msg("%s", sqlite3_errmsg(db));
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void make_once(struct store_rig *rig)
{
	struct sandbox_row row = store_rig_sandbox("s1");

	store_rig_dir(rig);
	store_rig_open(rig);
	assert_int_equal(store_rig_put_sandbox(&rig->st, &row), 0);
	store_close(&rig->st);
}

static void what_was_closed_is_there_when_opened_again(void **state)
{
	struct store_rig rig;
	char path[128];
	struct stat st;

	(void)state;
	make_once(&rig);
	path_of(&rig, "holt.db-wal", path);
	assert_int_equal(stat(path, &st), -1); /* closed cleanly: no log is left */
	store_rig_open(&rig);
	assert_true(store_rig_has_sandbox(&rig.st, "s1"));
	store_rig_end(&rig);
}

static void nobody_else_can_read_the_files(void **state)
{
	static const char *const names[] = { "holt.db", "holt.db-wal", "holt.db-shm",
					     "holt.db.lock" };
	mode_t old = umask(0);
	struct store_rig rig;
	struct stat st;
	char path[128];

	(void)state;
	make_once(&rig);
	path_of(&rig, "holt.db", path);
	assert_int_equal(chmod(path, 0644), 0);
	store_rig_open(&rig);
	assert_int_equal(store_rig_probe(&rig.st), 0);
	for (size_t i = 0; i < 4; i++) {
		path_of(&rig, names[i], path);
		assert_int_equal(stat(path, &st), 0);
		assert_int_equal(st.st_mode & 07777, 0600);
	}
	(void)umask(old);
	store_rig_end(&rig);
}

static void two_processes_never_have_it_at_once(void **state)
{
	struct store_rig rig, second;

	(void)state;
	store_rig_dir(&rig);
	store_rig_open(&rig);
	second = rig;
	second.st = (struct store){ 0 };
	assert_refused(&second, -EBUSY, "another process has");
	assert_int_equal(store_rig_probe(&rig.st), 0); /* and we still have it */
	store_rig_end(&rig);
}

static void a_directory_that_others_can_write_to_is_refused(void **state)
{
	struct store_rig rig;

	(void)state;
	store_rig_dir(&rig);
	assert_int_equal(chmod(rig.dir, 0770), 0);
	assert_refused(&rig, -EPERM, "writable by others");
	assert_int_equal(chmod(rig.dir, 0702), 0);
	assert_refused(&rig, -EPERM, "writable by others");
	assert_int_equal(chmod(rig.dir, 0755), 0);
	store_rig_open(&rig);
	store_rig_end(&rig);
}

static void a_directory_of_somebody_else_is_refused(void **state)
{
	struct store_rig rig;

	(void)state;
	if (geteuid() != 0)
		skip();
	store_rig_dir(&rig);
	assert_int_equal(chown(rig.dir, 65533, 65533), 0);
	assert_refused(&rig, -EPERM, "belongs to uid 65533");
	store_rig_end(&rig);
}

static void a_place_that_is_no_directory_is_refused(void **state)
{
	struct store_rig rig = { .dir = "/nonexistent/holt" };

	(void)state;
	assert_refused(&rig, -ENOENT, "/nonexistent/holt");
	rig = (struct store_rig){ .dir = "/proc/self/status" };
	assert_refused(&rig, -ENOTDIR, "/proc/self/status");
}

static void a_database_is_never_reached_through_a_link(void **state)
{
	struct store_rig rig;
	char path[128];

	(void)state;
	store_rig_dir(&rig);
	path_of(&rig, "holt.db", path);
	assert_int_equal(symlink("/tmp/elsewhere.db", path), 0);
	assert_refused(&rig, -ELOOP, "holt.db");
	assert_int_equal(access("/tmp/elsewhere.db", F_OK), -1);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_refused(&rig, -EPERM, "not a file of ours");
	store_rig_end(&rig);
}

static void the_directory_may_be_reached_through_a_link(void **state)
{
	struct store_rig rig, linked;

	(void)state;
	make_once(&rig);
	linked = (struct store_rig){ 0 };
	assert_int_equal(str_format(linked.dir, sizeof(linked.dir), "%s.link", rig.dir), 0);
	assert_int_equal(symlink(rig.dir, linked.dir), 0);
	store_rig_open(&linked);
	assert_true(store_rig_has_sandbox(&linked.st, "s1"));
	store_close(&linked.st);
	assert_int_equal(unlink(linked.dir), 0);
	store_rig_end(&rig);
}

static void names_of_the_database_are_names_of_files(void **state)
{
	static const char *const bad[] = { "", "a/b", "../holt.db", "/holt.db" };
	struct store_rig rig;
	struct err err = { 0 };

	(void)state;
	store_rig_dir(&rig);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(
			store_open_sqlite(&(struct store_options){ .dir = rig.dir, .file = bad[i] },
					  &rig.st, &err),
			-EINVAL);
	store_rig_end(&rig);
}

static void a_read_only_directory_is_refused_until_it_is_not(void **state)
{
	struct store_rig rig;

	(void)state;
	if (geteuid() != 0 || unshare(CLONE_NEWNS) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		skip();
	make_once(&rig);
	assert_int_equal(mount(rig.dir, rig.dir, NULL, MS_BIND, NULL), 0);
	assert_int_equal(mount(NULL, rig.dir, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL), 0);
	assert_refused(&rig, -EROFS, "Read-only");
	assert_int_equal(mount(NULL, rig.dir, NULL, MS_REMOUNT | MS_BIND, NULL), 0);
	store_rig_open(&rig);
	assert_true(store_rig_has_sandbox(&rig.st, "s1"));
	store_close(&rig.st);
	assert_int_equal(umount2(rig.dir, MNT_DETACH), 0);
	store_rig_end(&rig);
}

/* ---- the schema ---- */

static void a_changed_migration_is_refused(void **state)
{
	struct store_rig rig;

	(void)state;
	make_once(&rig);
	tamper(&rig, "UPDATE schema_migrations SET sha256 = zeroblob(32)");
	assert_refused(&rig, -EPROTO, "migration 1 (initial)");
	tamper(&rig, "UPDATE schema_migrations SET sha256 = x'00'");
	assert_refused(&rig, -EPROTO, "migration 1 (initial)");
	store_rig_end(&rig);
}

static void a_newer_database_is_refused(void **state)
{
	struct store_rig rig;

	(void)state;
	make_once(&rig);
	tamper(&rig, "INSERT INTO schema_migrations VALUES (99, 'later', zeroblob(32), 0)");
	assert_refused(&rig, -EPROTO, "newer");
	store_rig_end(&rig);
}

static void a_database_of_others_is_refused_and_left_alone(void **state)
{
	struct store_rig rig;

	(void)state;
	store_rig_dir(&rig);
	tamper(&rig, "CREATE TABLE theirs (a)");
	assert_refused(&rig, -EPROTO, "not ours");
	tamper(&rig, "INSERT INTO theirs VALUES (1)");
	store_rig_end(&rig);
}

static const struct migration steps[] = {
	{ 1, "one", "CREATE TABLE one (a); INSERT INTO one VALUES (1);" },
	{ 2, "two", "CREATE TABLE two (a); ALTER TABLE one ADD COLUMN b DEFAULT 5;" },
	{ 3, "three", "CREATE TABLE three (a); INSERT INTO nowhere VALUES (1);" },
};

static int value_of(struct db *c, const char *sql)
{
	_cleanup_(db_finalize_p) sqlite3_stmt *stmt = NULL;

	if (db_prepare(c, sql, &stmt) < 0 || sqlite3_step(stmt) != SQLITE_ROW)
		return -1;
	return sqlite3_column_int(stmt, 0);
}

static void what_is_missing_is_applied_once_and_whole(void **state)
{
	_cleanup_(db_close_p) struct db *c = NULL;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(db_open(NULL, CONN_MEMORY, &c, &err), 0);
	assert_int_equal(migrate_run(c, steps, 1, &err), 0);
	assert_int_equal(migrate_run(c, steps, 1, &err), 0);
	assert_int_equal(value_of(c, "SELECT count(*) FROM one"), 1);
	assert_int_equal(migrate_run(c, steps, 2, &err), 0);
	assert_int_equal(value_of(c, "SELECT b FROM one"), 5);
	/* The third fails in its middle: nothing of it stays. */
	assert_true(migrate_run(c, steps, 3, &err) < 0);
	assert_non_null(strstr(err.text, "nowhere"));
	assert_int_equal(value_of(c, "SELECT count(*) FROM three"), -1);
	assert_int_equal(value_of(c, "SELECT count(*) FROM schema_migrations"), 2);
	assert_int_equal(migrate_run(c, steps, 1, &err), -EPROTO); /* the second is news to us */
	assert_int_equal(migrate_run(c, steps, 2, &err), 0);
	assert_int_equal(sqlite3_exec(c->db, "DELETE FROM schema_migrations WHERE number = 1", NULL,
				      NULL, NULL),
			 SQLITE_OK);
	assert_int_equal(migrate_run(c, steps, 2, &err), -EPROTO);
	assert_non_null(strstr(err.text, "lacks migration 1"));
}

static void our_own_migrations_are_numbered_without_a_gap(void **state)
{
	const struct migration *list;
	size_t n;

	(void)state;
	list = migrate_list(&n);
	assert_true(n >= 1);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(list[i].number, i + 1);
		assert_true(strstr(list[i].sql, "CREATE") || strstr(list[i].sql, "ALTER"));
	}
}

static pid_t open_in_child(const struct store_rig *rig)
{
	struct store_options options = { .dir = rig->dir };
	pid_t pid = fork();
	struct store st;
	struct err err = { 0 };

	assert_true(pid >= 0);
	if (pid > 0)
		return pid;
	if (store_open_sqlite(&options, &st, &err) < 0)
		_exit(1);
	(void)pause();
	_exit(0);
}

/* Killed at another point of its first opening each time. */
static void a_death_while_the_schema_is_made_leaves_a_good_database(void **state)
{
	struct sandbox_row row = store_rig_sandbox("s1");
	struct store_rig rig;
	int status;
	pid_t pid;

	(void)state;
	for (unsigned us = 200; us < 16000; us = us * 5 / 4) {
		store_rig_dir(&rig);
		pid = open_in_child(&rig);
		(void)usleep(us);
		assert_int_equal(kill(pid, SIGKILL), 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status)); /* it had not failed by itself */
		store_rig_open(&rig);
		assert_int_equal(store_rig_put_sandbox(&rig.st, &row), 0);
		store_rig_end(&rig);
	}
}

/* ---- damage ---- */

static void overwrite(const struct store_rig *rig, off_t at, size_t n)
{
	char junk[4096], path[128];
	_close_ int fd = -1;

	path_of(rig, "holt.db", path);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	memset(junk, 'J', sizeof(junk));
	assert_int_equal(pwrite(fd, junk, n, at), (ssize_t)n);
}

static void what_is_no_database_is_refused_and_left_alone(void **state)
{
	struct store_rig rig;
	struct stat before, after;
	char path[128];

	(void)state;
	make_once(&rig);
	path_of(&rig, "holt.db", path);
	assert_int_equal(stat(path, &before), 0);
	overwrite(&rig, 0, 100);
	assert_refused(&rig, -EUCLEAN, "not a database");
	assert_int_equal(stat(path, &after), 0);
	assert_true(before.st_ino == after.st_ino && before.st_size == after.st_size);
	store_rig_end(&rig);
}

/* A process that dies without closing, and a note that this was before the machine was started. */
static void leave_open(struct store_rig *rig, bool is_other_boot)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		store_rig_open(rig);
		if (is_other_boot && store_put_meta(&rig->st, "boot", "another", NULL, NULL) < 0)
			_exit(1);
		_exit(store_flush(&rig->st) == 0 ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void a_damaged_database_is_found_after_the_machine_went_down(void **state)
{
	struct store_rig rig;

	(void)state;
	make_once(&rig);
	leave_open(&rig, true);
	overwrite(&rig, 4096 * 4, 4096);
	assert_refused(&rig, -EUCLEAN, "damaged");
	store_rig_end(&rig);
}

static void a_whole_database_passes_after_the_machine_went_down(void **state)
{
	struct store_rig rig;

	(void)state;
	make_once(&rig);
	leave_open(&rig, true);
	store_rig_open(&rig);
	assert_true(store_rig_has_sandbox(&rig.st, "s1"));
	store_rig_end(&rig);
}

static void a_log_without_its_database_is_not_thrown_away(void **state)
{
	struct store_rig rig;
	char path[128];

	(void)state;
	make_once(&rig);
	leave_open(&rig, false);
	path_of(&rig, "holt.db", path);
	assert_int_equal(unlink(path), 0);
	assert_refused(&rig, -EUCLEAN, "holt.db-wal");
	path_of(&rig, "holt.db-wal", path);
	assert_int_equal(access(path, F_OK), 0);
	store_rig_end(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_closed_is_there_when_opened_again),
		cmocka_unit_test(nobody_else_can_read_the_files),
		cmocka_unit_test(two_processes_never_have_it_at_once),
		cmocka_unit_test(a_directory_that_others_can_write_to_is_refused),
		cmocka_unit_test(a_directory_of_somebody_else_is_refused),
		cmocka_unit_test(a_place_that_is_no_directory_is_refused),
		cmocka_unit_test(a_database_is_never_reached_through_a_link),
		cmocka_unit_test(the_directory_may_be_reached_through_a_link),
		cmocka_unit_test(names_of_the_database_are_names_of_files),
		cmocka_unit_test(a_read_only_directory_is_refused_until_it_is_not),
		cmocka_unit_test(a_changed_migration_is_refused),
		cmocka_unit_test(a_newer_database_is_refused),
		cmocka_unit_test(a_database_of_others_is_refused_and_left_alone),
		cmocka_unit_test(what_is_missing_is_applied_once_and_whole),
		cmocka_unit_test(our_own_migrations_are_numbered_without_a_gap),
		cmocka_unit_test(a_death_while_the_schema_is_made_leaves_a_good_database),
		cmocka_unit_test(what_is_no_database_is_refused_and_left_alone),
		cmocka_unit_test(a_damaged_database_is_found_after_the_machine_went_down),
		cmocka_unit_test(a_whole_database_passes_after_the_machine_went_down),
		cmocka_unit_test(a_log_without_its_database_is_not_thrown_away),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
