/* How executions end: by signal, deadline or cancel, with their trees; first under an ordinary
 * process, then under PID 1. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "guest_rig.h"

static int start(void **state)
{
	static struct guest_rig rig;

	rig_start(&rig);
	*state = &rig;
	return 0;
}

static int stop(void **state)
{
	rig_stop(*state, 0);
	return 0;
}

static void a_signal_reaches_the_process(void **state)
{
	const char *argv[] = { "/bin/sleep", "1000", NULL };
	struct guest_exec e = rig_command(argv);
	struct rig_result r = { 0 };

	rig_exec(*state, 1, &e);
	rig_signal(*state, 1, SIGUSR1, false);
	rig_collect(*state, 1, true, &r);
	assert_int_equal(r.exit.flags, EXIT_SIGNALED);
	assert_int_equal(r.exit.code, SIGUSR1);
	rig_result_done(&r);
}

static void a_signal_to_the_tree_reaches_those_who_left(void **state)
{
	struct guest_exec e =
		rig_script("setsid sh -c 'trap \"echo child; exit\" USR1; echo ready; "
			   "while :; do sleep 0.05; done' & trap : USR1; wait; wait");
	struct guest_rig *rig = *state;
	struct rig_result r = { 0 };
	struct wire_head head;
	struct rd payload;

	e.envp[e.envc++] = "PATH=/usr/bin:/bin";
	rig_exec(rig, 1, &e);
	while (r.out.len == 0) {
		assert_true(rig_recv(rig, &head, &payload));
		assert_false(rig_take(rig, 1, &head, &payload, true, &r));
	}
	rig_signal(rig, 1, SIGUSR1, true);
	rig_collect(rig, 1, true, &r);
	assert_string_equal(buf_str(&r.out), "ready\nchild\n");
	rig_result_done(&r);
}

static void a_deadline_ends_the_program(void **state)
{
	const char *argv[] = { "/bin/sleep", "1000", NULL };
	struct guest_exec e = rig_command(argv);
	struct rig_result r;

	e.timeout_ms = 50;
	rig_run(*state, 1, &e, &r);
	assert_int_equal(r.exit.flags, EXIT_TIMED_OUT | EXIT_SIGNALED);
	assert_int_equal(r.exit.code, SIGTERM);
	assert_true(r.exit.wall_us >= 50000);
	rig_result_done(&r);
}

static void who_ignores_the_deadline_is_killed_after_the_grace(void **state)
{
	struct guest_exec e = rig_script("trap '' TERM; echo on; while :; do sleep 1000; done");
	struct rig_result r;

	e.timeout_ms = 50;
	e.grace_ms = 30;
	rig_run(*state, 1, &e, &r);
	assert_int_equal(r.exit.flags, EXIT_TIMED_OUT | EXIT_SIGNALED);
	assert_int_equal(r.exit.code, SIGKILL);
	assert_string_equal(buf_str(&r.out), "on\n");
	rig_result_done(&r);
}

static void a_program_that_uses_its_grace_keeps_its_exit_code(void **state)
{
	struct guest_exec e =
		rig_script("trap 'echo bye; exit 9' TERM; while :; do sleep 0.02; done");
	struct rig_result r;

	e.timeout_ms = 50;
	e.grace_ms = 5000;
	rig_run(*state, 1, &e, &r);
	assert_int_equal(r.exit.flags, EXIT_TIMED_OUT);
	assert_int_equal(r.exit.code, 9);
	assert_string_equal(buf_str(&r.out), "bye\n");
	rig_result_done(&r);
}

/* A zombie does not run; who reaps it is not our business. */
static bool is_running(pid_t pid)
{
	char path[64], text[512];
	char *state;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	if (fd_read_file_at(AT_FDCWD, path, text, sizeof(text)) < 0)
		return false;
	state = strrchr(text, ')');
	return state && state[2] != 'Z' && state[2] != 'X';
}

/* The script tells the pids of what it leaves; none may live when the exit has been told. */
static void expect_dead(const struct buf *pids)
{
	const char *p = buf_str(pids);
	unsigned n = 0;

	while (*p) {
		pid_t pid = 0;

		while (*p >= '0' && *p <= '9')
			pid = pid * 10 + (*p++ - '0');
		while (*p && (*p < '0' || *p > '9'))
			p++;
		n++;
		assert_false(is_running(pid));
	}
	assert_true(n > 0);
}

static void nothing_of_a_tree_survives_its_deadline(void **state)
{
	struct guest_exec e = rig_script(
		"for i in 1 2 3; do setsid sh -c 'trap \"\" TERM HUP; echo $$; exec "
		"</dev/null >/dev/null 2>&1; (sleep 1000 & sleep 1001)' & done; sleep 1000");
	struct rig_result r;

	e.timeout_ms = 300;
	e.grace_ms = 20;
	e.envp[e.envc++] = "PATH=/usr/bin:/bin";
	rig_run(*state, 1, &e, &r);
	assert_true(r.exit.flags & EXIT_TIMED_OUT);
	expect_dead(&r.out);
	rig_result_done(&r);
}

static void a_cancel_without_grace_kills_at_once(void **state)
{
	struct guest_exec e = rig_script("trap '' TERM; sleep 1000");
	struct rig_result r = { 0 };

	e.grace_ms = 0;
	rig_exec(*state, 1, &e);
	rig_raw(*state, G_CANCEL, 1, NULL, 0);
	rig_raw(*state, G_CANCEL, 1, NULL, 0);
	rig_collect(*state, 1, true, &r);
	assert_int_equal(r.exit.flags, EXIT_CANCELLED | EXIT_SIGNALED);
	assert_int_equal(r.exit.code, SIGKILL);
	assert_int_equal(r.ends, 1);
	assert_true(rig_is_quiet(*state, 50));
	rig_result_done(&r);
}

static void a_deadline_at_the_moment_of_the_end_gives_one_exit(void **state)
{
	const char *argv[] = { "/bin/sleep", "0.02", NULL };
	struct guest_exec e = rig_command(argv);

	for (uint32_t i = 1; i <= 40; i++) {
		struct rig_result r;

		e.timeout_ms = 18 + i % 8;
		rig_run(*state, i, &e, &r);
		assert_true(r.is_exit);
		assert_int_equal(r.ends, 1);
		assert_true(r.exit.flags == 0 || r.exit.flags & EXIT_TIMED_OUT);
		rig_result_done(&r);
	}
	assert_true(rig_is_quiet(*state, 50));
}

static void leftovers_are_flagged_and_do_not_hold_the_exit(void **state)
{
	struct guest_exec e = rig_script("(sleep 0.3; echo late) & echo now");
	struct rig_result r;

	e.envp[e.envc++] = "PATH=/usr/bin:/bin";
	rig_run(*state, 1, &e, &r);
	assert_int_equal(r.exit.flags, EXIT_LEFTOVERS);
	assert_string_equal(buf_str(&r.out), "now\n");
	assert_true(rig_is_quiet(*state, 500)); /* what comes late is dropped, and kills nobody */
	rig_result_done(&r);
}

static void what_is_left_behind_may_go_on_writing(void **state)
{
	char path[] = "/tmp/guest-test-XXXXXX";
	int fd = mkstemp(path);
	char script[256];
	struct guest_exec e;
	struct rig_result r;

	assert_true(fd >= 0);
	(void)snprintf(script, sizeof(script),
		       "(sleep 0.1; head -c 300000 /dev/zero && echo fine >%s) & echo now", path);
	e = rig_script(script);
	e.envp[e.envc++] = "PATH=/usr/bin:/bin";
	rig_run(*state, 1, &e, &r);
	for (int i = 0; i < 200 && lseek(fd, 0, SEEK_END) == 0; i++)
		(void)usleep(20000);
	assert_int_equal(lseek(fd, 0, SEEK_END), 5);
	assert_int_equal(unlink(path), 0);
	(void)close(fd);
	rig_result_done(&r);
}

static void zombies_by_the_thousand_are_reaped(void **state)
{
	struct rig_result r;

	rig_shell(*state, 1,
		  "i=0; while [ $i -lt 2000 ]; do (true &) ; i=$((i+1)); done; echo made", &r);
	assert_string_equal(buf_str(&r.out), "made\n");
	rig_result_done(&r);
	rig_shell(*state, 2, "echo still here", &r);
	assert_string_equal(buf_str(&r.out), "still here\n");
	assert_int_equal(r.exit.flags, 0);
	rig_result_done(&r);
}

static void a_client_that_hangs_up_ends_the_guest_and_what_it_started(void **state)
{
	const char *argv[] = { "/bin/sleep", "1000", NULL };
	struct guest_exec e = rig_command(argv);
	struct rig_result r = { 0 };
	struct guest_rig rig;
	struct wire_head head;
	struct rd payload;

	(void)state;
	rig_start(&rig);
	rig_exec(&rig, 1, &e);
	assert_true(rig_recv(&rig, &head, &payload));
	assert_false(rig_take(&rig, 1, &head, &payload, true, &r));
	rig_stop(&rig, 0);
	for (int i = 0; i < 500 && is_running((pid_t)r.pid); i++)
		(void)usleep(10000);
	assert_false(is_running((pid_t)r.pid));
}

/* From here on the guest is PID 1 and may end everything that is not its own. */
static void box_or_skip(struct guest_rig *rig)
{
	if (!rig_start_boxed(rig))
		skip();
}

/* Each process starts the next and is gone: there is always one, and never the same. */
#define RUNAWAYS "f() { f & }; f & f & f & f & sleep 1000"

static struct guest_exec boxed_script(const char *script)
{
	struct guest_exec e = rig_script(script);

	e.user = "0";
	e.envp[e.envc++] = "PATH=/usr/bin:/bin";
	return e;
}

/* Zombies may still be there, nothing else but PID 1 and the shell that looks. */
static void expect_alone(struct guest_rig *rig)
{
	struct guest_exec e =
		boxed_script("n=0; for p in /proc/[0-9]*; do while read -r key value; do "
			     "case $key$value in State:Z*) ;; State:*) n=$((n+1)) ;; esac; "
			     "done <$p/status; done 2>/dev/null; echo $n");
	struct rig_result r;

	rig_run(rig, 999, &e, &r);
	assert_string_equal(buf_str(&r.out), "2\n");
	rig_result_done(&r);
}

static void as_pid_1_runaways_end_with_their_deadline(void **state)
{
	struct guest_exec e = boxed_script(RUNAWAYS);
	struct guest_rig rig;
	struct rig_result r;

	(void)state;
	box_or_skip(&rig);
	e.timeout_ms = 200;
	e.grace_ms = 10;
	rig_run(&rig, 1, &e, &r);
	assert_true(r.exit.flags & EXIT_TIMED_OUT);
	rig_result_done(&r);
	expect_alone(&rig);
	rig_stop(&rig, 0);
}

static void as_pid_1_runaways_beside_another_execution_end_too(void **state)
{
	struct guest_exec e = boxed_script(RUNAWAYS), cat = boxed_script("exec cat");
	struct guest_rig rig;
	struct rig_result r = { 0 };

	(void)state;
	box_or_skip(&rig);
	cat.flags = EXEC_STDIN;
	rig_exec(&rig, 2, &cat);
	e.timeout_ms = 200;
	e.grace_ms = 10;
	rig_exec(&rig, 1, &e);
	rig_collect(&rig, 1, true, &r);
	assert_true(r.exit.flags & EXIT_TIMED_OUT);
	rig_result_done(&r);
	rig_raw(&rig, G_STDIN, 2, NULL, 0);
	rig_collect(&rig, 2, true, &r);
	assert_int_equal(r.exit.flags, 0);
	rig_result_done(&r);
	expect_alone(&rig);
	rig_stop(&rig, 0);
}

/* More of them than a look can keep up with, so everything has to stand still for a moment. */
#define MANY_RUNAWAYS "i=0; while [ $i -lt 40 ]; do f & i=$((i+1)); done"

static void as_pid_1_a_swarm_of_runaways_ends_and_nobody_else_does(void **state)
{
	struct guest_exec e = boxed_script("f() { f & }; " MANY_RUNAWAYS "; sleep 1000");
	struct guest_exec cat = boxed_script("exec cat"),
			  still = boxed_script("kill -STOP $$; exit 6");
	struct rig_result r = { 0 };
	struct guest_rig rig;

	(void)state;
	box_or_skip(&rig);
	cat.flags = EXEC_STDIN;
	rig_exec(&rig, 2, &cat);
	rig_exec(&rig, 3, &still);
	e.timeout_ms = 300;
	e.grace_ms = 10;
	rig_run(&rig, 1, &e, &r);
	assert_true(r.exit.flags & EXIT_TIMED_OUT);
	rig_result_done(&r);
	rig_raw(&rig, G_STDIN, 2, "alive", 5);
	rig_raw(&rig, G_STDIN, 2, NULL, 0);
	rig_collect(&rig, 2, true, &r);
	assert_string_equal(buf_str(&r.out), "alive");
	rig_result_done(&r);
	/* Who stood still before still does. */
	assert_true(rig_is_quiet(&rig, 100));
	rig_signal(&rig, 3, SIGCONT, false);
	rig_collect(&rig, 3, true, &r);
	assert_int_equal(r.exit.code, 6);
	rig_result_done(&r);
	expect_alone(&rig);
	rig_stop(&rig, 0);
}

static void as_pid_1_one_tree_ends_and_its_neighbour_lives(void **state)
{
	struct guest_exec cat = rig_script("cat");
	struct guest_exec bad =
		rig_script("(trap '' TERM; setsid sleep 1000 & sleep 1000) & sleep 1000");
	struct rig_result r = { 0 }, r2 = { 0 };
	struct guest_rig rig;

	(void)state;
	box_or_skip(&rig);
	cat.user = bad.user = "0";
	cat.flags = EXEC_STDIN;
	cat.envp[cat.envc++] = "PATH=/usr/bin:/bin";
	bad.timeout_ms = 100;
	bad.grace_ms = 10;
	bad.envp[bad.envc++] = "PATH=/usr/bin:/bin";
	rig_exec(&rig, 1, &cat);
	rig_exec(&rig, 2, &bad);
	rig_collect(&rig, 2, true, &r2);
	assert_true(r2.exit.flags & EXIT_TIMED_OUT);
	rig_raw(&rig, G_STDIN, 1, "alive\n", 6);
	rig_raw(&rig, G_STDIN, 1, NULL, 0);
	rig_collect(&rig, 1, true, &r);
	assert_string_equal(buf_str(&r.out), "alive\n");
	assert_int_equal(r.exit.flags, 0);
	rig_result_done(&r);
	rig_result_done(&r2);
	rig_stop(&rig, 0);
}

static void as_pid_1_who_tampers_with_the_mark_does_not_get_away(void **state)
{
	struct guest_exec cat = rig_script("cat");
	/* dash's ulimit cannot set these two; prlimit lowers the lock limit of the whole tree. */
	struct guest_exec bad =
		rig_script("prlimit --locks=3:3 --pid $$; setsid sleep 1001 & sleep 1000");
	struct rig_result r = { 0 };
	struct guest_rig rig;

	(void)state;
	box_or_skip(&rig);
	cat.user = bad.user = "0";
	cat.flags = EXEC_STDIN;
	cat.envp[cat.envc++] = "PATH=/usr/bin:/bin";
	bad.timeout_ms = 200;
	bad.grace_ms = 0;
	bad.envp[bad.envc++] = "PATH=/usr/bin:/bin";
	rig_exec(&rig, 1, &cat);
	rig_exec(&rig, 2, &bad);
	rig_collect(&rig, 2, true, &r);
	assert_true(r.exit.flags & EXIT_TIMED_OUT);
	rig_result_done(&r);
	bad = rig_script("grep -l 'sleep' /proc/[0-9]*/comm | wc -l");
	bad.user = "0";
	bad.envp[bad.envc++] = "PATH=/usr/bin:/bin";
	rig_run(&rig, 3, &bad, &r);
	assert_string_equal(buf_str(&r.out), "0\n");
	rig_result_done(&r);
	rig_stop(&rig, 0);
}

static void as_pid_1_signals_from_inside_do_nothing(void **state)
{
	struct guest_exec e =
		rig_script("kill -9 1; kill -STOP 1; kill -TERM 1; kill -USR1 1; echo sent");
	struct guest_rig rig;
	struct rig_result r;

	(void)state;
	box_or_skip(&rig);
	e.user = "0";
	rig_run(&rig, 1, &e, &r);
	assert_string_equal(buf_str(&r.out), "sent\n");
	rig_result_done(&r);
	rig_run(&rig, 2, &e, &r);
	assert_int_equal(r.exit.flags, 0);
	rig_result_done(&r);
	rig_stop(&rig, 0);
}

/* Run inside a box by the tests below: this program itself, with a part to play. */

/* Stops whatever there is or comes, until it is ended itself. */
static _Noreturn void play_stopper(void)
{
	pid_t self = getpid();

	(void)write(STDOUT_FILENO, "on", 2);
	for (;;)
		for (pid_t pid = 2; pid < 200; pid++)
			if (pid != self)
				(void)kill(pid, SIGSTOP);
}

static void *sleep_for_ever(void *arg)
{
	for (;;)
		(void)pause();
	return arg;
}

/* Its first thread is a zombie, the process is not. */
static _Noreturn void play_headless(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, sleep_for_ever, NULL) != 0)
		_exit(1);
	(void)write(STDOUT_FILENO, "on", 2);
	pthread_exit(NULL);
}

static struct guest_exec boxed_part(const char *part)
{
	static char self[512];
	const char *argv[] = { self, part, NULL };
	struct guest_exec e;
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	assert_true(n > 0);
	self[n] = '\0';
	e = rig_command(argv);
	e.user = "0";
	/* It ends by being killed, which is no time to look for leaks. */
	e.envp[e.envc++] = "ASAN_OPTIONS=detect_leaks=0";
	return e;
}

static void take_until_on(struct guest_rig *rig, uint32_t id, struct rig_result *r)
{
	struct wire_head head;
	struct rd payload;

	while (r->out.len == 0) {
		assert_true(rig_recv(rig, &head, &payload));
		assert_false(rig_take(rig, id, &head, &payload, true, r));
	}
}

static void as_pid_1_who_stops_new_processes_does_not_stop_the_guest(void **state)
{
	struct guest_exec stopper = boxed_part("stopper"), e = boxed_script("exec true");
	struct rig_result r = { 0 }, r2 = { 0 };
	struct guest_rig rig;
	struct wire_head head;
	struct rd payload;

	(void)state;
	box_or_skip(&rig);
	stopper.grace_ms = 0;
	rig_exec(&rig, 1, &stopper);
	take_until_on(&rig, 1, &r);
	for (uint32_t id = 2; id < 12; id++) {
		/* Started or not, it is told, and the guest answers. */
		rig_exec(&rig, id, &e);
		assert_true(rig_recv(&rig, &head, &payload));
		rig_raw(&rig, G_PING, 1000 + id, NULL, 0);
		while (head.type != G_PONG)
			assert_true(rig_recv(&rig, &head, &payload));
	}
	rig_raw(&rig, G_CANCEL, 1, NULL, 0);
	rig_collect(&rig, 1, true, &r);
	assert_true(r.exit.flags & EXIT_CANCELLED);
	e = boxed_script("exit 3");
	rig_run(&rig, 20, &e, &r2);
	assert_int_equal(r2.exit.code, 3);
	rig_result_done(&r);
	rig_result_done(&r2);
	rig_stop(&rig, 0);
}

static void as_pid_1_a_process_without_its_first_thread_ends_too(void **state)
{
	struct guest_exec e = boxed_part("headless"), cat = boxed_script("exec cat");
	struct rig_result r = { 0 };
	struct guest_rig rig;

	(void)state;
	box_or_skip(&rig);
	cat.flags = EXEC_STDIN;
	rig_exec(&rig, 2, &cat); /* so that the tree is looked for, not everything killed */
	e.grace_ms = 20;
	rig_exec(&rig, 1, &e);
	take_until_on(&rig, 1, &r);
	rig_raw(&rig, G_CANCEL, 1, NULL, 0);
	rig_collect(&rig, 1, true, &r);
	assert_true(r.exit.flags & EXIT_CANCELLED);
	assert_true(r.exit.flags & EXIT_SIGNALED);
	rig_result_done(&r);
	rig_raw(&rig, G_STDIN, 2, NULL, 0);
	rig_collect(&rig, 2, true, &r);
	assert_int_equal(r.exit.flags, 0);
	rig_result_done(&r);
	expect_alone(&rig);
	rig_stop(&rig, 0);
}

int main(int argc, char **argv)
{
#define WITH_GUEST(test) cmocka_unit_test_setup_teardown(test, start, stop)
	const struct CMUnitTest tests[] = {
		WITH_GUEST(a_signal_reaches_the_process),
		WITH_GUEST(a_signal_to_the_tree_reaches_those_who_left),
		WITH_GUEST(a_deadline_ends_the_program),
		WITH_GUEST(who_ignores_the_deadline_is_killed_after_the_grace),
		WITH_GUEST(a_program_that_uses_its_grace_keeps_its_exit_code),
		WITH_GUEST(nothing_of_a_tree_survives_its_deadline),
		WITH_GUEST(a_cancel_without_grace_kills_at_once),
		WITH_GUEST(a_deadline_at_the_moment_of_the_end_gives_one_exit),
		WITH_GUEST(leftovers_are_flagged_and_do_not_hold_the_exit),
		WITH_GUEST(what_is_left_behind_may_go_on_writing),
		WITH_GUEST(zombies_by_the_thousand_are_reaped),
		cmocka_unit_test(a_client_that_hangs_up_ends_the_guest_and_what_it_started),
		cmocka_unit_test(as_pid_1_runaways_end_with_their_deadline),
		cmocka_unit_test(as_pid_1_runaways_beside_another_execution_end_too),
		cmocka_unit_test(as_pid_1_a_swarm_of_runaways_ends_and_nobody_else_does),
		cmocka_unit_test(as_pid_1_one_tree_ends_and_its_neighbour_lives),
		cmocka_unit_test(as_pid_1_who_tampers_with_the_mark_does_not_get_away),
		cmocka_unit_test(as_pid_1_signals_from_inside_do_nothing),
		cmocka_unit_test(as_pid_1_who_stops_new_processes_does_not_stop_the_guest),
		cmocka_unit_test(as_pid_1_a_process_without_its_first_thread_ends_too),
	};

	if (argc == 2 && strcmp(argv[1], "stopper") == 0)
		play_stopper();
	if (argc == 2 && strcmp(argv[1], "headless") == 0)
		play_headless();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
