/* Boxes whose building hangs: the request for one has an end, and whoever asks is told why. The
 * launcher under test finds another program in the place of holt-init (hang_init.c), which says
 * nothing until the test lets it go on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/parse.h"
#include "base/str.h"
#include "launch/locks.h"
#include "launch/process.h"
#include "provider/launcher.h"

#define TEMPLATE 1u
#define BUILD_MS 3000u     /* time enough to stop a process that is being built */
#define PATIENCE_MS 40000u /* a launcher that does not answer at all fails the test */
#define STEPS_MAX 4000     /* of 10 ms */
#define PIDS_MAX 64
#define STOCK 2u

struct rig {
	char dir[64], root[80];
	struct launcher *launcher;
	struct err err;
};

static void copy_file(const char *from, const char *to)
{
	_cleanup_(buf_done) struct buf bytes = { .max = 64u << 20 };
	_close_ int in = open(from, O_RDONLY | O_CLOEXEC);
	_close_ int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);

	assert_true(in >= 0 && out >= 0);
	assert_int_equal(fd_slurp(in, &bytes), 0);
	assert_int_equal(fd_write_all(out, bytes.data, bytes.len), 0);
}

static const char *in_dir(char dst[128], const char *dir, const char *name)
{
	assert_int_equal(str_format(dst, 128, "%s/%s", dir, name), 0);
	return dst;
}

static void make_files(struct rig *r)
{
	char to[128];

	(void)str_copy(r->dir, sizeof(r->dir), "/tmp/holt-hang.XXXXXX");
	assert_non_null(mkdtemp(r->dir));
	assert_int_equal(chmod(r->dir, 0755), 0);
	copy_file(getenv("HOLT_LAUNCH"), in_dir(to, r->dir, "holt-launch"));
	copy_file(getenv("HOLT_HANG_INIT"), in_dir(to, r->dir, "holt-init"));
	(void)in_dir(to, r->dir, "root");
	assert_int_equal(mkdir(to, 0755), 0);
	(void)str_copy(r->root, sizeof(r->root), to);
	assert_int_equal(mkdir(in_dir(to, r->root, "bin"), 0755), 0);
	copy_file(getenv("HOLT_INIT"), in_dir(to, r->root, "bin/real-init"));
}

static int start(void **state)
{
	struct rig *r = calloc(1, sizeof(*r));
	struct template_spec t = { .id = TEMPLATE, .root = ROOT_DIR, .preload = "" };
	struct launcher_options o = { .build_ms = BUILD_MS, .spare_cgroups = STOCK };
	char program[128];
	int root;

	assert_non_null(r);
	make_files(r);
	o.program = in_dir(program, r->dir, "holt-launch");
	root = open(r->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (launcher_start(&o, &r->launcher, &r->err) < 0 ||
	    launcher_template_sync(r->launcher, &t, root, &r->err) < 0) {
		print_error("start: %s\n", r->err.text);
		return -1;
	}
	(void)close(root);
	launcher_set_patience(r->launcher, PATIENCE_MS);
	*state = r;
	return 0;
}

static void let_go(struct rig *r)
{
	char path[128];
	int fd = open(in_dir(path, r->root, "go"), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	(void)close(fd);
}

/* Asked, so that what it has said unasked is read as well. */
static struct pool_state look(struct rig *r)
{
	struct pool_state s;

	if (launcher_pool_state_sync(r->launcher, TEMPLATE, &s, &r->err) < 0)
		fail_msg("pool: %s", r->err.text);
	return s;
}

#define UNTIL(r, cond)                                              \
	do {                                                        \
		for (int i_ = 0; i_ < STEPS_MAX && !(cond); i_++) { \
			(void)poll(NULL, 0, 10);                    \
			(void)look(r);                              \
		}                                                   \
		assert_true(cond);                                  \
	} while (0)

static int claim(struct rig *r)
{
	struct launch_spec spec = { .template_id = TEMPLATE, .flags = LAUNCH_COLD };
	struct launcher_box box;
	int e;

	r->err = (struct err){ 0 };
	e = launcher_claim_sync(r->launcher, &spec, &box, &r->err);
	if (e == 0) {
		e = launcher_destroy_sync(r->launcher, box.id, NULL, &r->err);
		launcher_box_done(&box); /* a box whose client is gone ends by itself */
	}
	return e;
}

/* The launcher's children: those that are a box's first process, or the others. */
static size_t children(const struct rig *r, bool is_init, pid_t ret[PIDS_MAX])
{
	_close_ int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int parent = (int)launcher_pid(r->launcher);
	char path[64], text[4096], one[16];
	struct str rest, part;
	uint32_t pid;
	size_t n = 0;

	(void)str_format(path, sizeof(path), "%d/task/%d/children", parent, parent);
	if (fd_read_file_at(proc, path, text, sizeof(text)) <= 0)
		return 0;
	rest = str_trim(str_of(text));
	while (n < PIDS_MAX && str_split(&rest, ' ', &part)) {
		(void)str_format(one, sizeof(one), "%.*s", (int)part.len, part.data);
		if (part.len > 0 && parse_u32(one, 1, INT32_MAX, &pid) == 0 &&
		    process_is_init(proc, (pid_t)pid) == is_init)
			ret[n++] = (pid_t)pid;
	}
	return n;
}

/* In one of our own groups: see open_freezer(). */
static bool is_frozen(pid_t pid)
{
	char path[64], text[4096];

	(void)str_format(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
	return fd_read_file_at(AT_FDCWD, path, text, sizeof(text)) > 0 &&
	       strstr(text, "/holt-hang.");
}

/* The process that counts file locks and is not held; 0: there is none. */
static pid_t find_reader(const struct rig *r)
{
	pid_t pids[PIDS_MAX];
	char path[64], name[32];

	for (size_t i = children(r, false, pids); i > 0; i--) {
		(void)str_format(path, sizeof(path), "/proc/%d/comm", (int)pids[i - 1]);
		if (fd_read_file_at(AT_FDCWD, path, name, sizeof(name)) > 0 &&
		    str_is(str_trim(str_of(name)), LOCKS_READER) && !is_frozen(pids[i - 1]))
			return pids[i - 1];
	}
	return 0;
}

static int stop(void **state)
{
	static const char *const files[] = { "holt-launch", "holt-init", "root/bin/real-init",
					     "root/go" };
	static const char *const dirs[] = { "root/bin", "root" };
	struct rig *r = *state;
	char path[128];
	pid_t pids[PIDS_MAX];

	for (size_t i = children(r, false, pids); i > 0; i--)
		(void)kill(pids[i - 1], SIGCONT); /* also after a failure nothing is left */
	r->launcher = launcher_stop(r->launcher);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		(void)unlink(in_dir(path, r->dir, files[i]));
	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++)
		(void)rmdir(in_dir(path, r->dir, dirs[i]));
	(void)rmdir(r->dir);
	free(r);
	return 0;
}

static void a_box_that_is_not_built_in_time_is_given_up_and_tried_again(void **state)
{
	struct rig *r = *state;
	const struct build_state *b = launcher_builds(r->launcher);
	struct pool_state s;

	assert_int_equal(claim(r), -ETIMEDOUT);
	assert_non_null(strstr(r->err.text, "not ready after"));
	s = look(r);
	assert_int_equal(s.claimed, 0);
	assert_true(s.given_up > 0);
	assert_string_not_equal(s.why, "");
	assert_true(b->late > 0 && b->given_up > 0);
	/* Told at once, instead of one more that hangs. */
	assert_int_equal(claim(r), -EIO);
	assert_non_null(strstr(r->err.text, "no box can be built"));
	/* It is tried again without a request. */
	let_go(r);
	UNTIL(r, b->late == 0);
	if (claim(r) < 0)
		fail_msg("claim: %s", r->err.text);
	UNTIL(r, b->stuck == 0);
}

#define FREEZER "/sys/fs/cgroup/freezer"

/* A group of our own, of version 1, with that process in it; false: it cannot be had here. */
static bool open_freezer(pid_t pid, char dir[64])
{
	char path[128], number[16];

	(void)str_format(dir, 64, FREEZER "/holt-hang.%d.%d", (int)getpid(), (int)pid);
	if (access(FREEZER "/cgroup.procs", W_OK) < 0 || mkdir(dir, 0755) < 0)
		return false;
	(void)str_format(number, sizeof(number), "%d", (int)pid);
	assert_int_equal(fd_write_file_at(AT_FDCWD, in_dir(path, dir, "cgroup.procs"), number), 0);
	return true;
}

static void set_freezer(const char *dir, const char *state)
{
	char path[128];

	assert_int_equal(fd_write_file_at(AT_FDCWD, in_dir(path, dir, "freezer.state"), state), 0);
}

static void on_refused(void *user, const struct provider_reply *r)
{
	*(int *)user = r->code;
}

/* A process in a frozen group of version 1 cannot be killed: it is what a process stuck in the
 * kernel is to the launcher. */
static void what_cannot_be_killed_is_counted_until_it_has_ended(void **state)
{
	struct rig *r = *state;
	const struct build_state *b = launcher_builds(r->launcher);
	struct launch_spec spec = { .template_id = TEMPLATE, .flags = LAUNCH_COLD };
	char freezer[64];
	pid_t pids[PIDS_MAX];
	int code = 1;

	assert_int_equal(launcher_claim(r->launcher, &spec, on_refused, &code, &r->err), 0);
	UNTIL(r, children(r, true, pids) == 1);
	if (!open_freezer(pids[0], freezer)) {
		print_message("skipped: needs root and a freezer of version 1\n");
		skip();
	}
	set_freezer(freezer, "FROZEN");
	UNTIL(r, code != 1);
	assert_int_equal(code, -ETIMEDOUT);
	UNTIL(r, b->stuck > 0 && b->late > 0);
	assert_int_equal(kill(pids[0], 0), 0); /* still there, and so is what it has */
	assert_true(look(r).stuck > 0);
	set_freezer(freezer, "THAWED");
	let_go(r);
	UNTIL(r, b->stuck == 0 && b->late == 0);
	assert_int_equal(rmdir(freezer), 0);
	assert_int_equal(look(r).stuck, 0);
	if (claim(r) < 0)
		fail_msg("claim: %s", r->err.text);
}

/* Other helpers of the launcher come and go; those that are parked stay. */
static void wait_for_stock(struct rig *r, pid_t pids[PIDS_MAX])
{
	int same = 0;

	for (int i = 0; i < STEPS_MAX && same < 30; i++) {
		pid_t now[PIDS_MAX] = { 0 };
		bool is_same = children(r, false, now) == STOCK &&
			       memcmp(now, pids, STOCK * sizeof(now[0])) == 0;

		memcpy(pids, now, sizeof(now));
		same = is_same ? same + 1 : 0;
		(void)poll(NULL, 0, 10);
	}
	assert_int_equal(same, 30);
}

/* Groups of version 1 have a process parked in each, which makes the box: it may hang, too. */
static void a_parked_process_that_does_not_answer_holds_nobody_up(void **state)
{
	struct rig *r = *state;
	const struct build_state *b = launcher_builds(r->launcher);
	pid_t pids[PIDS_MAX] = { 0 };

	if (launcher_info(r->launcher)->cgroup != CGROUP_V1) {
		print_message("skipped: nothing is parked here\n");
		skip();
	}
	let_go(r);
	for (int i = 0; i < 2; i++)
		assert_int_equal(claim(r), 0); /* from the second on it keeps some in stock */
	wait_for_stock(r, pids);
	for (size_t i = 0; i < STOCK; i++)
		assert_int_equal(kill(pids[i], SIGSTOP), 0);
	assert_int_equal(claim(r), -ETIMEDOUT);
	assert_true(look(r).given_up > 0 && b->given_up > 0);
	for (size_t i = 0; i < STOCK; i++)
		(void)kill(pids[i], SIGCONT);
	UNTIL(r, b->late == 0);
	assert_int_equal(claim(r), 0);
}

/* Also for who has not said how long to wait: every request has an end. */
static void a_launcher_that_stands_still_holds_up_nobody_for_ever(void **state)
{
	struct launcher_options o = { .program = getenv("HOLT_LAUNCH"), .build_ms = 500 };
	struct launcher *l;
	struct pool_state s;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(launcher_start(&o, &l, &err), 0);
	assert_int_equal(kill(launcher_pid(l), SIGSTOP), 0);
	(void)alarm(PATIENCE_MS / 1000); /* or the test never ends */
	assert_int_equal(launcher_pool_state_sync(l, TEMPLATE, &s, &err), -ETIMEDOUT);
	(void)alarm(0);
	(void)launcher_stop(l);
}

/* A box that stays: while there is one, locks are counted. */
static void keep_one(struct rig *r, struct launcher_box *ret)
{
	struct launch_spec spec = { .template_id = TEMPLATE, .flags = LAUNCH_COLD };

	let_go(r);
	if (launcher_claim_sync(r->launcher, &spec, ret, &r->err) < 0)
		fail_msg("claim: %s", r->err.text);
	UNTIL(r, find_reader(r) > 0);
}

static void note_uncounted(void *user, const struct build_state *s)
{
	*(bool *)user |= s->uncounted > 0;
}

static void a_reader_of_locks_that_does_not_answer_is_told_and_replaced(void **state)
{
	struct rig *r = *state;
	const struct build_state *b = launcher_builds(r->launcher);
	struct launcher_box box;
	bool is_told = false; /* both states may be told in one turn */
	pid_t reader;

	launcher_on_builds(r->launcher, note_uncounted, &is_told);
	keep_one(r, &box);
	reader = find_reader(r);
	assert_int_equal(kill(reader, SIGSTOP), 0);
	UNTIL(r, is_told);
	UNTIL(r, b->uncounted == 0);
	assert_string_equal(look(r).why, "");
	assert_int_not_equal(find_reader(r), reader);
	launcher_on_builds(r->launcher, NULL, NULL);
	assert_int_equal(launcher_destroy_sync(r->launcher, box.id, NULL, &r->err), 0);
	launcher_box_done(&box);
}

/* They cannot be killed either: so many are made and no more, and nobody gets a box whose locks are
 * not counted. */
static void no_box_is_given_out_while_locks_cannot_be_counted(void **state)
{
	struct rig *r = *state;
	const struct build_state *b = launcher_builds(r->launcher);
	struct launcher_box box;
	char freezers[LOCKS_TRIES][64];
	pid_t reader;

	keep_one(r, &box);
	for (int i = 0; i < LOCKS_TRIES; i++) {
		UNTIL(r, (reader = find_reader(r)) > 0); /* those that are frozen are none */
		if (!open_freezer(reader, freezers[i])) {
			print_message("skipped: needs root and a freezer of version 1\n");
			skip();
		}
		set_freezer(freezers[i], "FROZEN");
	}
	UNTIL(r, claim(r) == -EIO);
	assert_int_equal(find_reader(r), 0);
	assert_non_null(strstr(r->err.text, "file locks cannot be counted"));
	for (int i = 0; i < LOCKS_TRIES; i++)
		set_freezer(freezers[i], "THAWED");
	UNTIL(r, b->uncounted == 0);
	for (int i = 0; i < LOCKS_TRIES; i++)
		assert_int_equal(rmdir(freezers[i]), 0);
	if (claim(r) < 0)
		fail_msg("claim: %s", r->err.text);
	assert_int_equal(launcher_destroy_sync(r->launcher, box.id, NULL, &r->err), 0);
	launcher_box_done(&box);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_box_that_is_not_built_in_time_is_given_up_and_tried_again, start, stop),
		cmocka_unit_test_setup_teardown(what_cannot_be_killed_is_counted_until_it_has_ended,
						start, stop),
		cmocka_unit_test_setup_teardown(
			a_parked_process_that_does_not_answer_holds_nobody_up, start, stop),
		cmocka_unit_test(a_launcher_that_stands_still_holds_up_nobody_for_ever),
		cmocka_unit_test_setup_teardown(
			a_reader_of_locks_that_does_not_answer_is_told_and_replaced, start, stop),
		cmocka_unit_test_setup_teardown(no_box_is_given_out_while_locks_cannot_be_counted,
						start, stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
