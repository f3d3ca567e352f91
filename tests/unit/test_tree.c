#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "guest/tree.h"
#include "spec/guest.h"

/* A mark that no other test on this machine uses at the same time. */
static uint64_t new_mark(void)
{
	static uint32_t n;

	return ((uint64_t)getpid() << 32) + ++n;
}

static void take_mark(uint64_t mark)
{
	struct rlimit locks = { mark, mark };
	struct rlimit rss = { GUEST_MARK_SUM - mark, GUEST_MARK_SUM - mark };

	if (setrlimit(RLIMIT_LOCKS, &locks) < 0 || setrlimit(RLIMIT_RSS, &rss) < 0)
		_exit(1);
}

/* Whatever a test leaves ends with us: nobody writes here, and only we keep it open. One member's
 * end is not another's, or a signal would seem to reach fewer than it does. */
static int life[2];
static pid_t roots[8]; /* of the trees of a test */
static size_t root_count;

/* A marked process that starts `depth` more, each in a session of its own, and tells when all wait.
 */
static pid_t start_tree(uint64_t mark, int depth)
{
	int ready[2];
	pid_t pid;
	char byte;

	assert_int_equal(pipe(ready), 0);
	if (life[1] == 0)
		assert_int_equal(pipe(life), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		take_mark(mark);
		(void)close(life[1]);
		while (depth-- > 0 && fork() == 0 && setsid() > 0)
			;
		(void)write(ready[1], "x", 1);
		(void)close(ready[0]);
		(void)close(ready[1]);
		(void)read(life[0], &byte, 1);
		_exit(0);
	}
	(void)close(ready[1]);
	while (read(ready[0], &byte, 1) == 1)
		;
	(void)close(ready[0]);
	assert_true(root_count < sizeof(roots) / sizeof(roots[0]));
	roots[root_count++] = pid;
	return pid;
}

/* A failed test must not leave us waiting for what it started. */
static void kill_roots(void)
{
	for (; root_count > 0; root_count--)
		if (waitpid(roots[root_count - 1], NULL, WNOHANG) == 0)
			(void)kill(roots[root_count - 1], SIGKILL);
}

static int open_view(void **state)
{
	static struct tree_view view;

	/* Orphans of the trees come to us, so that none is left behind as a zombie. */
	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
	assert_int_equal(tree_open(&view, NULL), 0);
	*state = &view;
	return 0;
}

static int close_view(void **state)
{
	tree_close(*state);
	kill_roots();
	if (life[1] > 0) {
		(void)close(life[0]);
		(void)close(life[1]);
	}
	life[1] = 0;
	while (waitpid(-1, NULL, 0) > 0)
		;
	return 0;
}

static void two_limits_that_belong_together_are_a_mark(void **state)
{
	(void)state;
	assert_int_equal(tree_claim_of(5, GUEST_MARK_SUM - 5, 5), TREE_MEMBER);
	assert_int_equal(tree_claim_of(5, GUEST_MARK_SUM - 5, 6), TREE_FREE);
	assert_int_equal(tree_claim_of(RLIM_INFINITY, RLIM_INFINITY, 5), TREE_FREE);
}

static void every_way_to_lower_a_limit_is_tampering(void **state)
{
	(void)state;
	assert_int_equal(tree_claim_of(4, GUEST_MARK_SUM - 5, 4), TREE_TAMPERED);
	assert_int_equal(tree_claim_of(5, GUEST_MARK_SUM - 6, 6), TREE_TAMPERED);
	assert_int_equal(tree_claim_of(0, 0, 5), TREE_TAMPERED);
	assert_int_equal(tree_claim_of(RLIM_INFINITY, 7, 5), TREE_TAMPERED);
	assert_int_equal(tree_claim_of(7, RLIM_INFINITY, 5), TREE_TAMPERED);
	/* sums that wrap around */
	assert_int_equal(tree_claim_of(UINT64_MAX - 1, GUEST_MARK_SUM + 2, 5), TREE_TAMPERED);
}

static void limits_are_found_in_the_kernels_text(void **state)
{
	static const char text[] =
		"Limit                     Soft Limit           Hard Limit           Units     \n"
		"Max resident set          12                   4611686018427387897  bytes     \n"
		"Max file locks            7                    unlimited            locks     \n";
	uint64_t locks, rss;

	(void)state;
	assert_int_equal(tree_parse_limits(text, &locks, &rss), 0);
	assert_int_equal(locks, RLIM_INFINITY);
	assert_int_equal(rss, 4611686018427387897);
	assert_int_equal(tree_parse_limits("", &locks, &rss), -EINVAL);
	assert_int_equal(tree_parse_limits("Max file locks\nMax resident set", &locks, &rss),
			 -EINVAL);
	assert_int_equal(
		tree_parse_limits("Max file locks 1 x y\nMax resident set 1 2 b", &locks, &rss),
		-EINVAL);
}

static void a_programs_name_cannot_forge_its_state(void **state)
{
	unsigned threads;
	char s;

	(void)state;
	assert_int_equal(
		tree_parse_stat("7 (sh) S 1 7 7 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 3 0 99\n", &s,
				&threads),
		0);
	assert_int_equal(s, 'S');
	assert_int_equal(threads, 3);
	assert_int_equal(
		tree_parse_stat("7 (a) Z 1) R 1 7 7 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 9\n", &s,
				&threads),
		0);
	assert_int_equal(s, 'R');
	assert_int_equal(threads, 1);
	assert_int_equal(tree_parse_stat("", &s, &threads), -EINVAL);
	assert_int_equal(tree_parse_stat("7 (sh)", &s, &threads), -EINVAL);
	assert_int_equal(tree_parse_stat("7 (sh) S 1 2", &s, &threads), -EINVAL);
}

static void descendants_are_counted_however_they_detached(void **state)
{
	uint64_t mark = new_mark();

	assert_int_equal(tree_count(*state, mark), 0);
	(void)start_tree(mark, 3);
	assert_int_equal(tree_count(*state, mark), 4);
	assert_int_equal(tree_count(*state, mark + 1), 0);
	assert_int_equal(tree_kill(*state, mark), 0);
}

static void a_signal_reaches_the_tree_and_no_other(void **state)
{
	uint64_t mark = new_mark(), other = new_mark();
	pid_t pid = start_tree(mark, 1);
	int status;

	(void)start_tree(other, 1);
	assert_int_equal(tree_signal(*state, mark, SIGUSR1), 2);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WTERMSIG(status), SIGUSR1);
	assert_int_equal(tree_count(*state, other), 2);
	assert_int_equal(tree_kill(*state, other), 0);
}

static void a_killed_tree_is_gone_and_its_neighbour_is_not(void **state)
{
	uint64_t mark = new_mark(), other = new_mark();
	pid_t pid = start_tree(mark, 5), neighbour = start_tree(other, 2);
	int status;

	assert_int_equal(tree_kill(*state, mark), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WTERMSIG(status), SIGKILL);
	for (int i = 0; i < 1000 && tree_count(*state, mark) > 0; i++)
		(void)usleep(1000);
	assert_int_equal(tree_count(*state, mark), 0);
	assert_int_equal(tree_count(*state, other), 3);
	assert_int_equal(waitpid(neighbour, &status, WNOHANG), 0);
	assert_int_equal(tree_kill(*state, other), 0);
}

static void zombies_are_not_alive(void **state)
{
	uint64_t mark = new_mark();
	pid_t pid = start_tree(mark, 0);
	siginfo_t info;

	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(tree_count(*state, mark), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void outside_of_a_box_nobody_is_held_for_a_tamperer(void **state)
{
	struct tree_view *view = *state;
	uint64_t mark = new_mark();
	pid_t pid = start_tree(mark, 0);
	struct rlimit lower = { 1, 1 };

	assert_false(view->is_everything);
	assert_int_equal(prlimit(pid, RLIMIT_LOCKS, &lower, NULL), 0);
	assert_int_equal(tree_count(view, mark), 0);
	view->is_everything = true; /* as PID 1 sees it; only counted here, never signalled */
	assert_true(tree_count(view, mark) >= 1);
	view->is_everything = false;
	assert_int_equal(kill(pid, SIGKILL), 0);
}

/* From here on as PID 1 of a namespace: no assertions there, the exit code says it. */
#define NO_BOX 77

static char state_of(pid_t pid)
{
	char path[32], text[512], s = '?';
	unsigned threads;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	if (fd_read_file_at(AT_FDCWD, path, text, sizeof(text)) > 0)
		(void)tree_parse_stat(text, &s, &threads);
	return s;
}

static bool becomes(pid_t pid, const char *states)
{
	for (int i = 0; i < 2000; i++) {
		if (strchr(states, state_of(pid)))
			return true;
		(void)usleep(1000);
	}
	return false;
}

static int kill_one_of_three(void)
{
	pid_t doomed, lives, still;
	struct tree_view view;

	if (mount("proc", "/proc", "proc", 0, NULL) < 0)
		return NO_BOX;
	if (tree_open(&view, NULL) < 0 || !view.is_everything)
		return 1;
	doomed = start_tree(101, 3);
	lives = start_tree(102, 1);
	still = start_tree(103, 0);
	(void)kill(still, SIGSTOP);
	if (!becomes(still, "T") || tree_count(&view, 101) != 4)
		return 2;
	if (tree_kill_still(&view, 101) < 0)
		return 3;
	if (!becomes(doomed, "Z") || !becomes(lives, "S"))
		return 4;
	for (int i = 0; i < 2000 && tree_count(&view, 101) > 0; i++)
		(void)usleep(1000);
	if (tree_count(&view, 101) != 0 || tree_count(&view, 102) != 2)
		return 5;
	return state_of(still) == 'T' ? 0 : 6;
}

static _Noreturn void run_as_pid_1(int (*fn)(void))
{
	int status = 0;
	pid_t pid;

	/* Root inside, whoever we are outside: enough to mount a /proc. */
	if (unshare(CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS) < 0 ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		_exit(NO_BOX);
	pid = fork();
	if (pid == 0)
		_exit(fn());
	(void)waitpid(pid, &status, 0);
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 99);
}

static void as_pid_1_a_standstill_kills_the_tree_and_changes_nothing_else(void **state)
{
	int status = 0;
	pid_t pid = fork();

	(void)state;
	assert_true(pid >= 0);
	if (pid == 0)
		run_as_pid_1(kill_one_of_three);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == NO_BOX)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
#define WITH_VIEW(test) cmocka_unit_test_setup_teardown(test, open_view, close_view)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_limits_that_belong_together_are_a_mark),
		cmocka_unit_test(every_way_to_lower_a_limit_is_tampering),
		cmocka_unit_test(limits_are_found_in_the_kernels_text),
		cmocka_unit_test(a_programs_name_cannot_forge_its_state),
		WITH_VIEW(descendants_are_counted_however_they_detached),
		WITH_VIEW(a_signal_reaches_the_tree_and_no_other),
		WITH_VIEW(a_killed_tree_is_gone_and_its_neighbour_is_not),
		WITH_VIEW(zombies_are_not_alive),
		cmocka_unit_test(as_pid_1_a_standstill_kills_the_tree_and_changes_nothing_else),
		WITH_VIEW(outside_of_a_box_nobody_is_held_for_a_tamperer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
