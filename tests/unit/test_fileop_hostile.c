/* The file operations against code in the same box that plants links and swaps things while they
 * are used. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/tar.h"
#include "check.h"
#include "fileop_rig.h"
#include "guest/fileop.h"

#define FILE_OP(...) (&(struct guest_file){ __VA_ARGS__ })
#define RACE_ROUNDS 12
#define HAMMER_ROUNDS 300
#define EXCHANGE 2 /* RENAME_EXCHANGE */

/* --- links ------------------------------------------------------------------------------------ */

static void planted_links_are_read_inside_the_root(void **state)
{
	static const char *const links[] = { "../canary", "/../../canary",
					     "/proc/self/root/canary" };
	struct rig *g = *state;
	struct rig_answer a;

	for (unsigned i = 0; i < 3; i++) {
		rig_symlink(g, links[i], "link");
		rig_run(g, FILE_OP(.op = FILE_READ, .path = "link"), NULL, 0, &a);
		assert_int_equal(a.error, ENOENT);
		assert_int_equal(a.data.len, 0);
		rig_answer_done(&a);
		assert_int_equal(rig_do(g, FILE_OP(.op = FILE_TAR_GET, .path = "link"), NULL, 0),
				 ENOENT);
		assert_int_equal(unlinkat(g->root_fd, "link", 0), 0);
	}
	rig_symlink(g, "/", "root");
	rig_run(g, FILE_OP(.op = FILE_LIST, .path = "root/root/.."), NULL, 0, &a);
	assert_int_equal(a.done, 1); /* itself, and not the canary's directory */
	rig_answer_done(&a);
}

static void planted_links_are_written_inside_the_root(void **state)
{
	struct rig *g = *state;

	rig_symlink(g, "../canary", "link");
	assert_int_equal(rig_do(g, FILE_OP(.op = FILE_WRITE, .path = "link"), "evil", 4), 0);
	assert_string_equal(rig_text(g, "canary"), "evil"); /* the root's own */
	assert_int_equal(
		rig_do(g, FILE_OP(.op = FILE_WRITE, .path = "link", .flags = FILE_APPEND), "!", 1),
		0);
	assert_string_equal(rig_text(g, "canary"), "evil!");
	assert_int_equal(
		rig_do(g, FILE_OP(.op = FILE_CHMOD, .path = "link", .mode = 0600), NULL, 0), 0);
	assert_int_equal(
		rig_do(g, FILE_OP(.op = FILE_WRITE, .path = "link", .flags = FILE_EXCL), "x", 1),
		EEXIST);
	rig_symlink(g, "..", "up");
	assert_int_equal(
		rig_do(g, FILE_OP(.op = FILE_WRITE, .path = "up/new/file", .flags = FILE_PARENTS),
		       "x", 1),
		0);
	assert_string_equal(rig_text(g, "new/file"), "x");
	assert_int_equal(rig_do(g,
				FILE_OP(.op = FILE_RENAME, .path = "up/canary", .target = "up/c2"),
				NULL, 0),
			 0);
	assert_string_equal(rig_text(g, "c2"), "evil!");
	assert_int_equal(rig_do(g,
				FILE_OP(.op = FILE_REMOVE, .path = "up", .flags = FILE_RECURSIVE),
				NULL, 0),
			 0); /* the link, not what it names */
	assert_true(rig_exists(g, "c2"));
}

static void a_hard_linked_file_is_replaced_not_changed(void **state)
{
	struct rig *g = *state;

	rig_write(g, "a", "shared");
	assert_int_equal(linkat(g->root_fd, "a", g->root_fd, "b", 0), 0);
	assert_int_equal(rig_do(g, FILE_OP(.op = FILE_WRITE, .path = "b"), "mine", 4), 0);
	assert_string_equal(rig_text(g, "a"), "shared");
	assert_string_equal(rig_text(g, "b"), "mine");
}

static void a_file_that_may_not_be_written_is_not_replaced(void **state)
{
	struct rig *g = *state;

	rig_write(g, "f", "fixed");
	assert_int_equal(fchmodat(g->root_fd, "f", 0444, 0), 0);
	assert_int_equal(rig_do(g, FILE_OP(.op = FILE_WRITE, .path = "f"), "x", 1), EACCES);
	assert_string_equal(rig_text(g, "f"), "fixed");
	rig_mkdir(g, "d");
	assert_int_equal(fchmodat(g->root_fd, "d", 0555, 0), 0);
	assert_int_equal(rig_do(g, FILE_OP(.op = FILE_WRITE, .path = "d/f"), "x", 1), EACCES);
}

/* --- races ------------------------------------------------------------------------------------ */

/* Swaps two names over and over until it is killed. The nap lets others have the directory's lock.
 */
static pid_t start_swapping(const struct rig *g, const char *a, const char *b)
{
	const struct timespec nap = { 0, 20000 };
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid > 0)
		return pid;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails does not stop us */
	for (;;) {
		(void)syscall(SYS_renameat2, g->root_fd, a, g->root_fd, b, EXCHANGE);
		(void)nanosleep(&nap, NULL);
	}
}

static void stop(pid_t pid)
{
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* What is read may be anything but the canary. */
static void check_read(const struct rig *g, enum guest_file_op op, const char *path)
{
	struct rig_answer a;

	rig_run(g, FILE_OP(.op = op, .path = path), NULL, 0, &a);
	if (a.data.len > 0)
		assert_null(memmem(a.data.data, a.data.len, RIG_CANARY, strlen(RIG_CANARY)));
	rig_answer_done(&a);
}

/* Every operation on `path`, where the last or an earlier part of it is being swapped for a link
 * that leads to the canary or its directory. Whether each succeeds is open; where it happens is
 * not. */
static void attack(const struct rig *g, const char *path, struct buf *archive)
{
	const struct guest_file ops[] = {
		{ .op = FILE_WRITE, .path = path },
		{ .op = FILE_WRITE, .path = path, .flags = FILE_APPEND },
		{ .op = FILE_WRITE, .path = path, .flags = FILE_PARENTS },
		{ .op = FILE_CHMOD, .path = path, .mode = 0777 },
		{ .op = FILE_RENAME, .path = path, .target = "/d/other", .flags = FILE_PARENTS },
		{ .op = FILE_RENAME, .path = "/d/other", .target = path },
		{ .op = FILE_REMOVE, .path = path, .flags = FILE_RECURSIVE },
		{ .op = FILE_MKDIR, .path = path, .flags = FILE_PARENTS },
		{ .op = FILE_REMOVE, .path = path },
		{ .op = FILE_TAR_PUT, .path = "/d" },
	};

	check_read(g, FILE_READ, path);
	check_read(g, FILE_TAR_GET, path);
	for (unsigned i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
		(void)rig_do(g, &ops[i], archive->data, archive->len);
}

/* An archive whose one file is called like the canary. */
static void make_archive(struct buf *b)
{
	struct tar_member m = {
		.type = TAR_FILE, .mode = 0666, .size = 4, .path = "canary", .link = ""
	};

	assert_int_equal(tar_write_member(b, &m), 0);
	assert_int_equal(buf_append(b, "evil", 4), 0);
	assert_int_equal(buf_append(b, (char[TAR_BLOCK]){ 0 }, tar_padding(4)), 0);
	assert_int_equal(tar_write_end(b), 0);
}

static void a_directory_swapped_for_a_link_never_leads_out(void **state)
{
	struct rig *g = *state;
	_cleanup_(buf_done) struct buf archive = { 0 };
	pid_t swapper;

	g->skip_leak_check = true;
	make_archive(&archive);
	rig_mkdir(g, "d");
	rig_write(g, "d/canary", "decoy");
	rig_symlink(g, "..", "link"); /* outside of the root for whoever follows it by himself */
	swapper = start_swapping(g, "d", "link");
	for (unsigned i = 0; i < RACE_ROUNDS; i++) {
		attack(g, "/d/canary", &archive);
		rig_check_canary(g);
	}
	stop(swapper);
}

static void a_file_swapped_for_a_link_never_leads_out(void **state)
{
	struct rig *g = *state;
	_cleanup_(buf_done) struct buf archive = { 0 };
	pid_t swapper;

	g->skip_leak_check = true;
	make_archive(&archive);
	rig_mkdir(g, "d");
	for (unsigned i = 0; i < RACE_ROUNDS; i++) {
		if (!rig_exists(g, "d/canary"))
			rig_write(g, "d/canary", "decoy");
		if (!rig_exists(g, "link"))
			rig_symlink(g, g->canary, "link");
		swapper = start_swapping(g, "d/canary", "link");
		attack(g, "/d/canary", &archive);
		stop(swapper);
		rig_check_canary(g);
		(void)unlinkat(g->root_fd, "d/canary", 0);
		(void)unlinkat(g->root_fd, "d/canary", AT_REMOVEDIR);
	}
}

/* The tree is swapped under the feet of its removal; the link leads to the canary's directory. */
static void a_tree_that_is_swapped_while_it_is_removed_stays_the_only_loss(void **state)
{
	struct rig *g = *state;
	char name[64];
	pid_t swapper;

	g->skip_leak_check = true;
	rig_symlink(g, g->base, "link");
	rig_mkdir(g, "kept");
	rig_write(g, "kept/file", "kept");
	for (unsigned i = 0; i < RACE_ROUNDS; i++) {
		rig_mkdir(g, "d");
		rig_mkdir(g, "d/sub");
		for (unsigned k = 0; k < 30; k++) {
			(void)snprintf(name, sizeof(name), "d/sub/%u", k);
			rig_mkdir(g, name);
		}
		if (!rig_exists(g, "link"))
			rig_symlink(g, g->base, "link");
		swapper = start_swapping(g, "d/sub", "link");
		(void)rig_do(g, FILE_OP(.op = FILE_REMOVE, .path = "d", .flags = FILE_RECURSIVE),
			     NULL, 0);
		stop(swapper);
		rig_check_canary(g);
		assert_string_equal(rig_text(g, "kept/file"), "kept");
		const char *const rm[] = { "rm", "-rf", "d", "link", NULL };
		assert_int_equal(rig_command(g, rm), 0);
	}
}

/* The race that is always won: what is called "x" is swapped for its rival right before it is
 * opened for the n-th time. Stands in for libc's function, and inherits into the operation's
 * process. */
static struct {
	int root_fd;
	unsigned in; /* opens of x until then; 0: not armed */
} trap;

int openat(int dir_fd, const char *name, int flags, ...)
{
	va_list args;
	mode_t mode;

	va_start(args, flags);
	mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(args, mode_t) : 0;
	va_end(args);
	if (trap.in > 0 && strcmp(name, "x") == 0 && --trap.in == 0)
		(void)syscall(SYS_renameat2, trap.root_fd, "d/x", trap.root_fd, "rival", EXCHANGE);
	return (int)syscall(SYS_openat, dir_fd, name, flags, mode);
}

/* What an operation finds at the name that is swapped, and the link that takes its place. */
static void plant_link(const struct rig *g, const char *target)
{
	if (symlinkat(target, g->root_fd, "rival") < 0 && errno != EEXIST)
		abort();
}

static void plant_file(const struct rig *g)
{
	(void)mkdirat(g->root_fd, "d", 0755);
	(void)fd_close(
		openat(g->root_fd, "d/x", O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644));
	(void)unlinkat(g->root_fd, "rival", 0);
	plant_link(g, g->canary);
}

static void plant_dir(const struct rig *g)
{
	(void)mkdirat(g->root_fd, "d", 0755);
	(void)mkdirat(g->root_fd, "d/x", 0755);
	(void)mkdirat(g->root_fd, "d/x/y", 0755);
	(void)unlinkat(g->root_fd, "rival", 0);
	(void)unlinkat(g->root_fd, "rival/y", AT_REMOVEDIR);
	(void)unlinkat(g->root_fd, "rival", AT_REMOVEDIR);
	plant_link(g, g->base);
}

static void a_link_that_comes_right_before_the_open_is_not_followed(void **state)
{
	static const struct {
		void (*plant)(const struct rig *g);
		unsigned in;
		struct guest_file f;
	} rows[] = {
		{ plant_file, 1, { .op = FILE_WRITE, .path = "d/x", .flags = FILE_APPEND } },
		{ plant_file, 1, { .op = FILE_TAR_GET, .path = "d" } },
		{ plant_dir, 1, { .op = FILE_TAR_GET, .path = "d" } },
		{ plant_dir, 1, { .op = FILE_LIST, .path = "d", .depth = 9 } },
		{ plant_dir, 1, { .op = FILE_REMOVE, .path = "d", .flags = FILE_RECURSIVE } },
		{ plant_dir, 2, { .op = FILE_REMOVE, .path = "d", .flags = FILE_RECURSIVE } },
	};
	const char *const clear[] = { "rm", "-rf", "d", "rival", NULL };
	struct rig *g = *state;
	struct rig_answer a;

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct stat st;

		rows[i].plant(g);
		trap.root_fd = g->root_fd;
		trap.in = rows[i].in;
		rig_run(g, &rows[i].f, "evil", 4, &a);
		trap.in = 0;
		/* It did happen: the rival, once a link, is what was x. */
		assert_int_equal(fstatat(g->root_fd, "rival", &st, AT_SYMLINK_NOFOLLOW), 0);
		assert_false(S_ISLNK(st.st_mode));
		rig_check_canary(g);
		if (a.data.len > 0)
			assert_null(
				memmem(a.data.data, a.data.len, RIG_CANARY, strlen(RIG_CANARY)));
		assert_true(a.entry_count <=
			    1); /* of a list: x, and nothing that is behind the link */
		rig_answer_done(&a);
		assert_int_equal(rig_command(g, clear), 0);
	}
}

/* One run of an operation in this very process. True when an answer holds the canary. */
static bool run_here(const struct rig *g, const struct guest_file *f)
{
	uint8_t frame[WIRE_FRAME_MAX];
	struct guest_file full = *f;
	struct rig_op op = { .id = 7 };
	bool found = false;
	int pair[2];
	ssize_t n;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return true;
	op.sock = pair[0];
	full.user = full.target = "";
	rig_send(&op, f->op == FILE_WRITE ? G_DATA : G_CREDIT, "evilevil", 8);
	rig_send(&op, f->op == FILE_WRITE ? G_DATA : G_CREDIT, "evilevil",
		 f->op == FILE_WRITE ? 0 : 8);
	(void)fileop_run(pair[1], op.id, &full, g->root_fd, -1);
	(void)close(pair[1]);
	while ((n = recv(pair[0], frame, sizeof(frame), 0)) > 0)
		found = found || memmem(frame, (size_t)n, RIG_CANARY, strlen(RIG_CANARY));
	(void)close(pair[0]);
	return found;
}

/* Some races are won once in hundreds of tries, and a process for each try is slow: many tries in
 * one process. */
static void hammer(const struct rig *g, const struct guest_file *f)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		for (unsigned i = 0; i < HAMMER_ROUNDS; i++) {
			/* A try without a victim is none. */
			for (unsigned k = 0; k < 1000 && !rig_exists(g, "d/x"); k++)
				(void)sched_yield();
			if (run_here(g, f))
				_exit(1);
		}
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	rig_check_canary(g);
}

/* Swaps to and fro, and restores what the operations use up. */
static pid_t start_planting(const struct rig *g, void (*plant)(const struct rig *g))
{
	const struct timespec nap = { 0, 5000 };
	pid_t pid;

	plant(g);
	pid = fork();
	assert_true(pid >= 0);
	if (pid > 0)
		return pid;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)prctl(PR_SET_TIMERSLACK, 1);
	for (;;) {
		plant(g);
		for (unsigned i = 0; i < 2; i++) {
			(void)syscall(SYS_renameat2, g->root_fd, "d/x", g->root_fd, "rival",
				      EXCHANGE);
			(void)nanosleep(&nap, NULL);
		}
	}
}

static void the_last_step_never_follows_a_link_that_comes_in_between(void **state)
{
	static const struct {
		void (*plant)(const struct rig *g);
		struct guest_file f;
	} rows[] = {
		{ plant_file, { .op = FILE_WRITE, .path = "d/x", .flags = FILE_APPEND } },
		{ plant_file, { .op = FILE_WRITE, .path = "d/x" } },
		{ plant_file, { .op = FILE_READ, .path = "d/x" } },
		{ plant_file, { .op = FILE_CHMOD, .path = "d/x", .mode = 0666 } },
		{ plant_file, { .op = FILE_TAR_GET, .path = "d" } },
		{ plant_dir, { .op = FILE_TAR_GET, .path = "d" } },
		{ plant_dir, { .op = FILE_REMOVE, .path = "d", .flags = FILE_RECURSIVE } },
	};
	struct rig *g = *state;
	const char *const clear[] = { "rm", "-rf", "d", "rival", NULL };

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		pid_t planter = start_planting(g, rows[i].plant);

		hammer(g, &rows[i].f);
		stop(planter);
		assert_int_equal(rig_command(g, clear), 0);
	}
}

static void a_file_swapped_for_a_fifo_never_holds_us_up(void **state)
{
	struct rig *g = *state;
	pid_t swapper;

	g->skip_leak_check = true;
	rig_write(g, "f", "text");
	assert_int_equal(mkfifoat(g->root_fd, "fifo", 0666), 0);
	swapper = start_swapping(g, "f", "fifo");
	for (unsigned i = 0; i < 2 * RACE_ROUNDS; i++) {
		int code = rig_do(g, FILE_OP(.op = FILE_READ, .path = "f"), NULL, 0);

		assert_true(code == 0 || code == EINVAL);
		code = rig_do(g, FILE_OP(.op = FILE_WRITE, .path = "f", .flags = FILE_APPEND), "x",
			      1);
		assert_true(code == 0 || code == EINVAL || code == ENXIO);
		assert_int_equal(rig_do(g, FILE_OP(.op = FILE_TAR_GET, .path = "/"), NULL, 0), 0);
	}
	stop(swapper);
}

/* Someone fills the directory as fast as it is emptied: the removal ends, one way or the other. */
static void a_directory_that_fills_up_again_does_not_hold_a_removal_forever(void **state)
{
	struct rig *g = *state;
	pid_t filler;
	int code;

	g->skip_leak_check = true;
	rig_mkdir(g, "d");
	filler = fork();
	assert_true(filler >= 0);
	if (filler == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			(void)close(
				openat(g->root_fd, "d/f", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	}
	for (unsigned i = 0; i < RACE_ROUNDS; i++) {
		code = rig_do(g, FILE_OP(.op = FILE_REMOVE, .path = "d", .flags = FILE_RECURSIVE),
			      NULL, 0);
		assert_true(code == 0 || code == ENOTEMPTY || code == ENOENT);
		if (!rig_exists(g, "d"))
			rig_mkdir(g, "d");
	}
	stop(filler);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(planted_links_are_read_inside_the_root),
		TEST(planted_links_are_written_inside_the_root),
		TEST(a_hard_linked_file_is_replaced_not_changed),
		TEST(a_file_that_may_not_be_written_is_not_replaced),
		TEST(a_directory_swapped_for_a_link_never_leads_out),
		TEST(a_file_swapped_for_a_link_never_leads_out),
		TEST(a_tree_that_is_swapped_while_it_is_removed_stays_the_only_loss),
		TEST(a_link_that_comes_right_before_the_open_is_not_followed),
		TEST(the_last_step_never_follows_a_link_that_comes_in_between),
		TEST(a_file_swapped_for_a_fifo_never_holds_us_up),
		TEST(a_directory_that_fills_up_again_does_not_hold_a_removal_forever),
	};

	return cmocka_run_group_tests(tests, rig_drop_root, NULL);
}
