#include "launch/state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/fd.h"
#include "check.h"

#define BOX "abcdefghij0123456789"
#define BOX_2 "bbcdefghij0123456789"

struct rig {
	char dir[32];
	int dir_fd, proc_fd;
	struct state s;
};

static int setup(void **state)
{
	static struct rig rig;
	struct err err = { 0 };

	rig = (struct rig){ .dir = "/tmp/holt-state.XXXXXX", .s = { .dir = -1, .lock = -1 } };
	assert_non_null(mkdtemp(rig.dir));
	rig.dir_fd = open(rig.dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	rig.proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (state_open(&rig.s, rig.dir_fd, rig.proc_fd, &err) < 0)
		fail_msg("%s", err.text);
	*state = &rig;
	return 0;
}

static int teardown(void **state)
{
	static const char *const names[] = { "lock", "instance" };
	struct rig *rig = *state;

	state_close(&rig->s);
	for (size_t i = 0; i < 2; i++)
		(void)unlinkat(rig->dir_fd, names[i], 0);
	rig->dir_fd = fd_close(rig->dir_fd);
	rig->proc_fd = fd_close(rig->proc_fd);
	return rmdir(rig->dir); /* fails when a test has left anything */
}

static struct record example(const struct rig *rig)
{
	struct record rec = { .id = BOX,
			      .tag = "t",
			      .boot_id = rig->s.boot_id,
			      .pid = 4711,
			      .group = { .kind = CGROUP_V1, .name = "0" } };

	assert_int_equal(spec_fill_limits(&rec.limits, NULL, NULL), 0);
	return rec;
}

static void the_instance_stays_and_the_lock_is_one_launchers(void **state)
{
	struct rig *rig = *state;
	struct state next = { .dir = -1, .lock = -1 };
	char instance[ID_LEN + 1];
	struct err err = { 0 };

	assert_true(id_is_valid(rig->s.instance));
	memcpy(instance, rig->s.instance, sizeof(instance));
	assert_int_equal(state_open(&next, rig->dir_fd, rig->proc_fd, &err), -EBUSY);
	assert_non_null(strstr(err.text, "another launcher"));
	state_close(&next);
	state_close(&rig->s);
	assert_false(state_is_open(&rig->s));
	assert_int_equal(state_open(&rig->s, rig->dir_fd, rig->proc_fd, &err), 0);
	assert_string_equal(rig->s.instance, instance);
}

static void a_damaged_instance_is_followed_by_a_new_one(void **state)
{
	struct rig *rig = *state;

	state_close(&rig->s);
	assert_int_equal(fd_write_file_at(rig->dir_fd, "instance", "../../../etc/passwd0"), 0);
	assert_int_equal(state_open(&rig->s, rig->dir_fd, rig->proc_fd, NULL), 0);
	assert_true(id_is_valid(rig->s.instance));
}

static void only_a_directory_of_our_own_is_taken(void **state)
{
	struct rig *rig = *state;
	struct state s = { .dir = -1, .lock = -1 };
	_close_ int file = open("/dev/null", O_RDONLY | O_CLOEXEC);

	for (mode_t bit = 1; bit <= 040; bit <<= 1) {
		assert_int_equal(chmod(rig->dir, 0700 | bit), 0);
		assert_int_equal(state_open(&s, rig->dir_fd, rig->proc_fd, NULL), -EPERM);
	}
	assert_int_equal(chmod(rig->dir, 0700), 0);
	assert_int_equal(state_open(&s, file, rig->proc_fd, NULL), -ENOTDIR);
	assert_int_equal(s.dir, -1);
	if (geteuid() == 0) {
		assert_int_equal(chown(rig->dir, 12345, 12345), 0);
		assert_int_equal(state_open(&s, rig->dir_fd, rig->proc_fd, NULL), -EPERM);
		assert_int_equal(chown(rig->dir, 0, 0), 0);
	}
}

static void a_record_is_written_whole_and_read_back(void **state)
{
	struct rig *rig = *state;
	struct record rec = example(rig), got;
	char data[RECORD_MAX];
	struct stat st;

	assert_int_equal(state_read(&rig->s, BOX, data, &got), -ENOENT);
	assert_int_equal(state_reserve(&rig->s, BOX, NULL), 0);
	assert_int_equal(state_read(&rig->s, BOX, data, &got), -EPROTO);
	assert_int_equal(state_write(&rig->s, &rec, true, NULL), 0);
	assert_int_equal(state_read(&rig->s, BOX, data, &got), 0);
	assert_string_equal(got.tag, "t");
	rec.tag = "newer";
	assert_int_equal(state_write(&rig->s, &rec, false, NULL), 0);
	assert_int_equal(state_read(&rig->s, BOX, data, &got), 0);
	assert_string_equal(got.tag, "newer");
	assert_int_equal(fstatat(rig->dir_fd, BOX, &st, 0), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(faccessat(rig->dir_fd, BOX ".tmp", F_OK, 0), -1);
	/* What is a record, but of another box. */
	assert_int_equal(renameat(rig->dir_fd, BOX, rig->dir_fd, BOX_2), 0);
	assert_int_equal(state_read(&rig->s, BOX_2, data, &got), -EINVAL);
	state_remove(&rig->s, BOX_2);
}

static void a_socket_is_ours_alone_and_found_by_its_box(void **state)
{
	struct rig *rig = *state;
	_close_ int listener = state_listen(&rig->s, BOX, NULL), near = -1, far = -1;
	char word, cwd[64];
	struct stat st;

	assert_true(listener >= 0);
	assert_true(state_has_socket(&rig->s, BOX));
	assert_false(state_has_socket(&rig->s, BOX_2));
	assert_int_equal(fstatat(rig->dir_fd, BOX ".sock", &st, 0), 0);
	assert_int_equal(st.st_mode, S_IFSOCK | 0600);
	near = state_connect(&rig->s, BOX, NULL);
	far = accept(listener, NULL, NULL);
	assert_true(near >= 0 && far >= 0);
	assert_int_equal(fcntl(near, F_GETFL) & O_NONBLOCK, 0);
	assert_int_equal(send(near, "x", 1, 0), 1);
	assert_int_equal(recv(far, &word, 1, 0), 1);
	assert_int_equal(state_connect(&rig->s, BOX_2, NULL), -ENOENT);
	listener = fd_close(listener);
	assert_int_equal(state_connect(&rig->s, BOX, NULL), -ECONNREFUSED);
	assert_int_equal(state_listen(&rig->s, BOX, NULL), -EADDRINUSE);
	assert_string_equal(getcwd(cwd, sizeof(cwd)), "/"); /* and nothing is left of the way */
	state_remove(&rig->s, BOX);
}

static void a_box_that_does_not_accept_makes_nobody_wait(void **state)
{
	struct rig *rig = *state;
	int listener = state_listen(&rig->s, BOX, NULL), fds[64], n = 0;

	while (n < 64 && (fds[n] = state_connect(&rig->s, BOX, NULL)) >= 0)
		n++;
	assert_in_range(n, 1, 63);
	assert_int_equal(fds[n], -EAGAIN);
	while (n > 0)
		(void)close(fds[--n]);
	(void)close(listener);
	state_remove(&rig->s, BOX);
}

static void put(const struct rig *rig, const char *name)
{
	(void)close(openat(rig->dir_fd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
}

struct seen {
	int box, box_2, others;
	int stop_with;
};

static int visit(void *arg, const char *box)
{
	struct seen *seen = arg;

	if (strcmp(box, BOX) == 0)
		seen->box++;
	else if (strcmp(box, BOX_2) == 0)
		seen->box_2++;
	else
		seen->others++;
	return seen->stop_with;
}

static void each_box_is_visited_and_strangers_are_not(void **state)
{
	static const char *const strangers[] = {
		"notes", BOX ".txt", BOX "0", "x" BOX ".sock", ".hidden", "ABCDEFGHIJ0123456789"
	};
	struct rig *rig = *state;
	struct seen seen = { 0 };

	put(rig, BOX);
	put(rig, BOX ".sock");
	put(rig, BOX ".tmp");
	put(rig, BOX_2 ".sock");
	for (size_t i = 0; i < sizeof(strangers) / sizeof(strangers[0]); i++)
		put(rig, strangers[i]);
	assert_int_equal(state_each(&rig->s, visit, &seen, NULL), 0);
	assert_int_equal(seen.box, 1);
	assert_int_equal(seen.box_2, 1);
	assert_int_equal(seen.others, 0);
	seen = (struct seen){ .stop_with = -EIO };
	assert_int_equal(state_each(&rig->s, visit, &seen, NULL), -EIO);
	assert_int_equal(seen.box + seen.box_2, 1);
	state_remove(&rig->s, BOX);
	state_remove(&rig->s, BOX_2);
	for (size_t i = 0; i < sizeof(strangers) / sizeof(strangers[0]); i++)
		assert_int_equal(unlinkat(rig->dir_fd, strangers[i], 0), 0);
}

static void what_is_not_a_plain_small_file_is_no_record(void **state)
{
	struct rig *rig = *state;
	char data[RECORD_MAX];
	struct record got;

	assert_int_equal(symlinkat("/etc/passwd", rig->dir_fd, BOX), 0);
	assert_int_equal(state_read(&rig->s, BOX, data, &got), -ELOOP);
	state_remove(&rig->s, BOX);
	assert_int_equal(mkfifoat(rig->dir_fd, BOX, 0600), 0);
	assert_int_equal(state_read(&rig->s, BOX, data, &got), -EINVAL);
	state_remove(&rig->s, BOX);
	put(rig, BOX);
	assert_int_equal(state_read(&rig->s, BOX, data, &got), -EPROTO);
	{
		_close_ int fd = openat(rig->dir_fd, BOX, O_WRONLY | O_CLOEXEC);

		assert_int_equal(ftruncate(fd, RECORD_MAX + 1), 0);
	}
	assert_int_equal(state_read(&rig->s, BOX, data, &got), -EINVAL);
	state_remove(&rig->s, BOX);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(the_instance_stays_and_the_lock_is_one_launchers),
		CASE(a_damaged_instance_is_followed_by_a_new_one),
		CASE(only_a_directory_of_our_own_is_taken),
		CASE(a_record_is_written_whole_and_read_back),
		CASE(a_socket_is_ours_alone_and_found_by_its_box),
		CASE(a_box_that_does_not_accept_makes_nobody_wait),
		CASE(each_box_is_visited_and_strangers_are_not),
		CASE(what_is_not_a_plain_small_file_is_no_record),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
