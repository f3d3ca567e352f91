#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include "check.h"
#include "provider/keeper.h"

#define SOMEBODY 65534u

struct place {
	char dir[32];   /* a temporary directory of ours */
	char state[64]; /* the state directory below it, not made yet */
	uid_t uid;      /* the daemon's: another one when we are root */
	gid_t gid;
};

static int setup(void **state)
{
	static struct place p;
	bool is_root = geteuid() == 0;

	p = (struct place){ .dir = "/tmp/holt-keeper-XXXXXX" };
	p.uid = is_root ? SOMEBODY : geteuid();
	p.gid = is_root ? SOMEBODY : getegid();
	assert_non_null(mkdtemp(p.dir));
	assert_int_equal(chmod(p.dir, 0755), 0);
	assert_int_equal(str_format(p.state, sizeof(p.state), "%s/state", p.dir), 0);
	*state = &p;
	return 0;
}

static char *in(const struct place *p, const char *name, char *dst, size_t size)
{
	assert_int_equal(str_format(dst, size, "%s%s", p->state, name), 0);
	return dst;
}

static int teardown(void **state)
{
	static const char *const names[] = { "/data/lock", "/data", "/boxes", "" };
	struct place *p = *state;
	char path[96];

	for (size_t i = 0; i < 4; i++)
		if (unlink(in(p, names[i], path, sizeof(path))) < 0)
			(void)rmdir(path);
	(void)str_format(path, sizeof(path), "%s/elsewhere", p->dir);
	(void)rmdir(path);
	return rmdir(p->dir);
}

static struct stat look(const struct place *p, const char *name)
{
	struct stat st = { 0 };
	char path[96];

	assert_int_equal(lstat(in(p, name, path, sizeof(path)), &st), 0);
	return st;
}

static int prepare(const struct place *p, struct keeper_dirs *d, struct err *err)
{
	return keeper_prepare(p->state, p->uid, p->gid, d, err);
}

static void each_directory_has_its_owner_and_mode(void **state)
{
	struct place *p = *state;
	struct keeper_dirs d;
	struct stat st, by_fd;

	assert_int_equal(prepare(p, &d, NULL), 0);
	st = look(p, "");
	assert_int_equal(st.st_uid, geteuid());
	assert_int_equal(st.st_mode & 07777, geteuid() == 0 ? 0755 : 0700);
	st = look(p, "/data");
	assert_int_equal(st.st_uid, p->uid);
	assert_int_equal(st.st_gid, p->gid);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(fstat(d.data_fd, &by_fd), 0);
	assert_int_equal(st.st_ino, by_fd.st_ino);
	st = look(p, "/boxes");
	assert_int_equal(st.st_uid, geteuid());
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(fstat(d.boxes_fd, &by_fd), 0);
	assert_int_equal(st.st_ino, by_fd.st_ino);
	keeper_dirs_done(&d);
	assert_int_equal(prepare(p, &d, NULL), 0); /* what is there is taken */
	keeper_dirs_done(&d);
	assert_int_equal(d.data_fd, -1);
}

static void a_wider_mode_is_narrowed_and_missing_parents_are_made(void **state)
{
	struct place *p = *state;
	struct keeper_dirs d;
	char path[96];

	assert_int_equal(mkdir(p->state, 0755), 0);
	assert_int_equal(chmod(p->state, 0755), 0);
	assert_int_equal(mkdir(in(p, "/boxes", path, sizeof(path)), 0755), 0);
	assert_int_equal(chmod(path, 0755), 0);
	assert_int_equal(prepare(p, &d, NULL), 0);
	assert_int_equal(look(p, "/boxes").st_mode & 07777, 0700);
	keeper_dirs_done(&d);
	assert_int_equal(
		keeper_prepare(in(p, "/boxes/a/b//", path, sizeof(path)), p->uid, p->gid, &d, NULL),
		0);
	keeper_dirs_done(&d);
	(void)unlink(in(p, "/boxes/a/b/data/lock", path, sizeof(path)));
	(void)rmdir(in(p, "/boxes/a/b/data", path, sizeof(path)));
	(void)rmdir(in(p, "/boxes/a/b/boxes", path, sizeof(path)));
	(void)rmdir(in(p, "/boxes/a/b", path, sizeof(path)));
	assert_int_equal(rmdir(in(p, "/boxes/a", path, sizeof(path))), 0);
}

static int open_fds(void)
{
	int n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void expect_refusal(const struct place *p, int code, const char *text)
{
	struct keeper_dirs d = { -1, -1, -1 };
	struct err err = { 0 };
	int before = open_fds();

	assert_int_equal(prepare(p, &d, &err), -code);
	if (!strstr(err.text, text))
		assert_string_equal(err.text, text);
	assert_non_null(strstr(err.text, p->state));
	assert_int_equal(d.data_fd, -1);
	assert_int_equal(open_fds(), before);
}

static void a_symbolic_link_is_refused_wherever_it_is(void **state)
{
	static const char *const names[] = { "", "/data", "/boxes" };
	struct place *p = *state;
	char path[96], target[96];

	assert_int_equal(str_format(target, sizeof(target), "%s/elsewhere", p->dir), 0);
	assert_int_equal(mkdir(target, 0700), 0);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(symlink(target, in(p, names[i], path, sizeof(path))), 0);
		expect_refusal(p, ELOOP, "is a symbolic link");
		if (i == 0) { /* a slash behind it changes nothing */
			struct keeper_dirs d;

			(void)str_format(path, sizeof(path), "%s//", p->state);
			assert_int_equal(keeper_prepare(path, p->uid, p->gid, &d, NULL), -ELOOP);
		}
		assert_int_equal(unlink(in(p, names[i], path, sizeof(path))), 0);
		if (i == 0)
			assert_int_equal(mkdir(p->state, 0700), 0);
	}
	assert_int_equal(symlink("/etc/passwd", in(p, "/data/lock", path, sizeof(path))), 0);
	expect_refusal(p, ELOOP, "data/lock");
}

static void what_is_no_directory_is_refused(void **state)
{
	struct place *p = *state;
	int fd = open(p->state, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	(void)fd_close(fd);
	expect_refusal(p, ENOTDIR, "is not a directory");
}

static void what_others_may_write_is_refused(void **state)
{
	static const char *const names[] = { "", "/data", "/boxes" };
	struct place *p = *state;
	struct keeper_dirs d;
	char path[96];

	assert_int_equal(prepare(p, &d, NULL), 0);
	keeper_dirs_done(&d);
	for (size_t i = 0; i < 3; i++) {
		mode_t mode = look(p, names[i]).st_mode & 07777;

		assert_int_equal(chmod(in(p, names[i], path, sizeof(path)), mode | S_IWGRP), 0);
		expect_refusal(p, EPERM, "can be written by others");
		assert_int_equal(chmod(path, mode | S_IWOTH), 0);
		expect_refusal(p, EPERM, "can be written by others");
		assert_int_equal(chmod(path, mode), 0);
	}
	assert_int_equal(prepare(p, &d, NULL), 0);
	keeper_dirs_done(&d);
}

static void what_belongs_to_somebody_else_is_refused(void **state)
{
	static const char *const names[] = { "", "/data", "/boxes" };
	struct place *p = *state;
	struct keeper_dirs d;
	char path[96];

	if (geteuid() != 0)
		skip();
	assert_int_equal(prepare(p, &d, NULL), 0);
	keeper_dirs_done(&d);
	for (size_t i = 0; i < 3; i++) {
		uid_t uid = look(p, names[i]).st_uid;

		assert_int_equal(chown(in(p, names[i], path, sizeof(path)), 12345, (gid_t)-1), 0);
		expect_refusal(p, EPERM, "belongs to user 12345");
		assert_int_equal(chown(path, uid, (gid_t)-1), 0);
	}
	assert_int_equal(prepare(p, &d, NULL), 0);
	keeper_dirs_done(&d);
}

static void two_never_share_a_directory(void **state)
{
	struct place *p = *state;
	struct keeper_dirs first, second;

	assert_int_equal(prepare(p, &first, NULL), 0);
	expect_refusal(p, EBUSY, "is in use by another holt");
	keeper_dirs_done(&first);
	assert_int_equal(prepare(p, &second, NULL), 0);
	keeper_dirs_done(&second);
}

static void a_lock_that_is_also_another_file_is_refused(void **state)
{
	struct place *p = *state;
	struct keeper_dirs d;
	char lock[96], other[96];

	assert_int_equal(prepare(p, &d, NULL), 0);
	keeper_dirs_done(&d);
	in(p, "/data/lock", lock, sizeof(lock));
	assert_int_equal(str_format(other, sizeof(other), "%s/other", p->dir), 0);
	assert_int_equal(link(lock, other), 0);
	expect_refusal(p, EPERM, "is not a file of its own");
	assert_int_equal(unlink(lock), 0);
	assert_int_equal(unlink(other), 0);
	assert_int_equal(mkfifo(lock, 0600), 0);
	expect_refusal(p, EPERM, "is not a file of its own");
}

static int as_ordinary_user(const struct place *p)
{
	struct keeper_dirs d;
	struct err err = { 0 };

	if (setresgid(SOMEBODY, SOMEBODY, SOMEBODY) < 0 ||
	    setresuid(SOMEBODY, SOMEBODY, SOMEBODY) < 0)
		return 1;
	if (keeper_prepare(p->state, 0, 0, &d, &err) != -EPERM)
		return 2;
	if (prepare(p, &d, &err) < 0)
		return 3;
	if ((look(p, "").st_mode & 07777) != 0700 || look(p, "/data").st_uid != SOMEBODY ||
	    look(p, "/boxes").st_uid != SOMEBODY)
		return 4;
	return 0;
}

static void to_an_ordinary_user_everything_is_his_own(void **state)
{
	struct place *p = *state;
	int status = 0;
	pid_t pid;

	if (geteuid() != 0)
		skip();
	assert_int_equal(chown(p->dir, SOMEBODY, SOMEBODY), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(as_ordinary_user(p));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void a_path_of_nothing_or_too_much_is_refused(void **state)
{
	struct place *p = *state;
	static char path[5000];
	struct keeper_dirs d;

	memset(path, 'a', sizeof(path) - 1);
	assert_int_equal(keeper_prepare("", p->uid, p->gid, &d, NULL), -EINVAL);
	assert_int_equal(keeper_prepare(path, p->uid, p->gid, &d, NULL), -EINVAL);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(each_directory_has_its_owner_and_mode),
		CASE(a_wider_mode_is_narrowed_and_missing_parents_are_made),
		CASE(a_symbolic_link_is_refused_wherever_it_is),
		CASE(what_is_no_directory_is_refused),
		CASE(what_others_may_write_is_refused),
		CASE(what_belongs_to_somebody_else_is_refused),
		CASE(two_never_share_a_directory),
		CASE(a_lock_that_is_also_another_file_is_refused),
		CASE(to_an_ordinary_user_everything_is_his_own),
		CASE(a_path_of_nothing_or_too_much_is_refused),
	};

	return cmocka_run_group_tests_name("keeper_dirs", tests, NULL, NULL);
}
