#include "launch/ids.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "check.h"
#include "launch/box.h"

#define FIRST "aaaaaaaaaa0123456789" /* instances */
#define SECOND "bbbbbbbbbb0123456789"
#define CHUNK_IDS (IDS_CHUNK * BOX_ID_COUNT)
#define MARKS_AT 4096
#define MARK_SIZE 32

struct rig {
	char dir[32];
	int proc_fd;
};

static struct ids *open_ids(const struct rig *rig, const char *instance)
{
	struct ids *ids = calloc(1, sizeof(*ids));
	struct ids_options o = { .dir = rig->dir, .proc_fd = rig->proc_fd, .instance = instance };

	assert_non_null(ids);
	assert_int_equal(ids_init(ids, &o, NULL), 0);
	return ids;
}

static struct ids *close_ids(struct ids *ids)
{
	ids_done(ids);
	free(ids);
	return NULL;
}

/* As if the launcher had been killed: its marks stay. */
static struct ids *kill_ids(struct ids *ids)
{
	ids->lock_fd = fd_close(ids->lock_fd);
	return close_ids(ids);
}

static uint32_t take(struct ids *ids)
{
	uint32_t base = 0;

	assert_int_equal(ids_take(ids, &base, NULL), 0);
	return base;
}

static int setup(void **state)
{
	static struct rig rig;

	rig = (struct rig){ .dir = "/tmp/holt-ids.XXXXXX" };
	assert_non_null(mkdtemp(rig.dir));
	rig.proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	*state = &rig;
	return 0;
}

static int teardown(void **state)
{
	struct rig *rig = *state;
	char path[64];

	(void)snprintf(path, sizeof(path), "%s/ids", rig->dir);
	(void)unlink(path);
	rig->proc_fd = fd_close(rig->proc_fd);
	return rmdir(rig->dir);
}

/* A process with an id of the chunk; NULL when we may not make one. */
static pid_t inhabit(uint32_t uid)
{
	int pair[2];
	char word;
	pid_t pid;

	if (geteuid() != 0)
		skip();
	assert_int_equal(pipe(pair), 0);
	pid = fork();
	if (pid == 0) {
		if (setresuid(uid, uid, uid) < 0 || write(pair[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			(void)pause();
	}
	assert_int_equal(read(pair[0], &word, 1), 1);
	(void)close(pair[0]);
	(void)close(pair[1]);
	return pid;
}

static void bury(pid_t pid)
{
	(void)kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void ranges_are_never_shared(void **state)
{
	struct ids *a = open_ids(*state, NULL), *b = open_ids(*state, FIRST);

	assert_int_equal(take(a), IDS_FIRST);
	assert_int_equal(take(a), IDS_FIRST + BOX_ID_COUNT);
	assert_int_equal(take(b), IDS_FIRST + CHUNK_IDS);
	ids_give(a, IDS_FIRST);
	assert_int_equal(take(a), IDS_FIRST);
	close_ids(a);
	close_ids(b);
}

static void what_a_dead_launcher_had_is_free_when_nobody_lives_in_it(void **state)
{
	struct ids *a = open_ids(*state, FIRST), *b;

	assert_int_equal(take(a), IDS_FIRST);
	kill_ids(a);
	b = open_ids(*state, SECOND);
	assert_int_equal(take(b), IDS_FIRST);
	close_ids(b);
}

static void what_a_living_box_has_is_left_alone_by_others(void **state)
{
	pid_t box = inhabit(IDS_FIRST + 1000);
	struct ids *a = open_ids(*state, FIRST), *b, *c;

	assert_int_equal(take(a), IDS_FIRST);
	kill_ids(a);
	b = open_ids(*state, SECOND);
	c = open_ids(*state, NULL);
	assert_int_equal(take(b), IDS_FIRST + CHUNK_IDS);
	assert_int_equal(take(c), IDS_FIRST + 2 * CHUNK_IDS);
	assert_int_equal(ids_retake(b, IDS_FIRST, NULL), -EBUSY);
	/* Its own instance gets it back, and gives the rest of the chunk to new ones. */
	a = open_ids(*state, FIRST);
	assert_int_equal(ids_retake(a, IDS_FIRST, NULL), 0);
	assert_int_equal(ids_retake(a, IDS_FIRST, NULL), -EBUSY);
	assert_int_equal(take(a), IDS_FIRST + BOX_ID_COUNT);
	close_ids(a);
	close_ids(b);
	close_ids(c);
	bury(box);
}

static void a_launcher_that_leaves_boxes_leaves_its_mark(void **state)
{
	pid_t box = inhabit(IDS_FIRST + 1000);
	struct ids *a = open_ids(*state, FIRST), *b;

	(void)take(a);
	close_ids(a); /* a box is left in it */
	b = open_ids(*state, NULL);
	assert_int_equal(take(b), IDS_FIRST + CHUNK_IDS);
	close_ids(b);
	a = open_ids(*state, FIRST);
	assert_int_equal(ids_retake(a, IDS_FIRST, NULL), 0);
	ids_give(a, IDS_FIRST);
	close_ids(a); /* none is left: whoever lives there, it is nobody we know */
	b = open_ids(*state, NULL);
	assert_int_equal(take(b), IDS_FIRST);
	close_ids(b);
	bury(box);
}

static void change_mark(const struct rig *rig, off_t at, char by)
{
	char path[64], byte;
	int fd;

	(void)snprintf(path, sizeof(path), "%s/ids", rig->dir);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_int_equal(pread(fd, &byte, 1, MARKS_AT + at), 1);
	byte = (char)(byte ^ by);
	assert_int_equal(pwrite(fd, &byte, 1, MARKS_AT + at), 1);
	(void)close(fd);
}

static void a_mark_counts_for_one_boot_and_for_whom_we_cannot_see(void **state)
{
	struct ids *a = open_ids(*state, FIRST), *b;

	(void)take(a);
	kill_ids(a);
	change_mark(*state, ID_LEN, 1); /* of another pid namespace: is anybody there? */
	b = open_ids(*state, NULL);
	assert_int_equal(take(b), IDS_FIRST + CHUNK_IDS);
	close_ids(b);
	change_mark(*state, MARK_SIZE - 1, 1); /* of another boot: surely not */
	b = open_ids(*state, NULL);
	assert_int_equal(take(b), IDS_FIRST);
	close_ids(b);
}

static void only_whole_ranges_of_ours_are_retaken(void **state)
{
	static const uint32_t bad[] = { 0, 1000, IDS_FIRST - BOX_ID_COUNT, IDS_FIRST + 1,
					IDS_FIRST + IDS_CHUNKS * CHUNK_IDS };
	struct ids *ids = open_ids(*state, FIRST);

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_false(ids_is_base(bad[i]));
		assert_int_equal(ids_retake(ids, bad[i], NULL), -EINVAL);
	}
	assert_int_equal(ids_retake(ids, IDS_FIRST + IDS_CHUNKS * CHUNK_IDS - BOX_ID_COUNT, NULL),
			 0);
	close_ids(ids);
}

static void the_last_range_is_the_last(void **state)
{
	struct ids *ids = open_ids(*state, NULL);
	struct err err = { 0 };
	uint32_t base = 7;

	memset(ids->used, 0xff, sizeof(ids->used));
	ids_give(ids, IDS_FIRST + IDS_CHUNKS * CHUNK_IDS - BOX_ID_COUNT);
	assert_int_equal(take(ids), IDS_FIRST + IDS_CHUNKS * CHUNK_IDS - BOX_ID_COUNT);
	assert_int_equal(ids_take(ids, &base, &err), -EAGAIN);
	assert_int_equal(base, 7);
	assert_string_equal(err.text, "all 63488 id ranges are in use");
	close_ids(ids);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static int run_all(void)
{
	const struct CMUnitTest tests[] = {
		CASE(ranges_are_never_shared),
		CASE(what_a_dead_launcher_had_is_free_when_nobody_lives_in_it),
		CASE(what_a_living_box_has_is_left_alone_by_others),
		CASE(a_launcher_that_leaves_boxes_leaves_its_mark),
		CASE(a_mark_counts_for_one_boot_and_for_whom_we_cannot_see),
		CASE(only_whole_ranges_of_ours_are_retaken),
		CASE(the_last_range_is_the_last),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Other boxes of this machine are none of ours: in a view of processes of our own there are none.
 */
int main(void)
{
	int status = 0;
	pid_t pid;

	if (geteuid() != 0)
		return run_all();
	if (unshare(CLONE_NEWPID | CLONE_NEWNS) < 0)
		return 1;
	pid = fork();
	if (pid == 0) {
		if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
		    mount("proc", "/proc", "proc", 0, NULL) < 0)
			exit(1);
		/* The first process of a view cannot be looked at by the leak checker. */
		pid = fork();
		if (pid == 0)
			exit(run_all());
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		_exit(1);
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}
