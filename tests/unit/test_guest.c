/* The whole guest over its socket, first as an ordinary process, then as PID 1. */
#include <errno.h>
#include <fcntl.h>
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

static void a_command_gives_its_output_and_its_exit_code(void **state)
{
	struct rig_result r;

	rig_shell(*state, 7, "echo out; echo err >&2; exit 3", &r);
	assert_true(r.is_exit);
	assert_int_equal(r.exit.code, 3);
	assert_int_equal(r.exit.flags, 0);
	assert_string_equal(buf_str(&r.out), "out\n");
	assert_string_equal(buf_str(&r.err), "err\n");
	assert_int_equal(r.exit.output_bytes, 8);
	assert_true(r.exit.wall_us > 0);
	assert_true(r.exit.max_rss_bytes > 0);
	assert_true(r.pid > 0);
	rig_result_done(&r);
}

static void a_program_is_found_by_path_and_gets_the_given_environment_only(void **state)
{
	const char *argv[] = { "env", NULL };
	struct guest_exec e = rig_command(argv);
	struct rig_result r;

	e.envp[e.envc++] = "PATH=/nowhere:/usr/bin:/bin";
	e.envp[e.envc++] = "ODD=a b=c";
	rig_run(*state, 1, &e, &r);
	assert_string_equal(buf_str(&r.out), "PATH=/nowhere:/usr/bin:/bin\nODD=a b=c\n");
	rig_result_done(&r);
}

static void a_program_is_found_without_a_path_too(void **state)
{
	const char *argv[] = { "env", NULL };
	struct guest_exec e = rig_command(argv);
	struct rig_result r;

	rig_run(*state, 1, &e, &r);
	assert_true(r.is_exit);
	assert_int_equal(r.exit.code, 0);
	assert_int_equal(r.out.len, 0);
	rig_result_done(&r);
}

static void a_login_adds_what_the_passwd_file_says(void **state)
{
	struct guest_exec e = rig_script("echo ${HOME:+home} $SHELL");
	struct rig_result r;

	e.flags = EXEC_LOGIN;
	e.envp[e.envc++] = "SHELL=given";
	rig_run(*state, 1, &e, &r);
	assert_string_equal(buf_str(&r.out), "home given\n");
	rig_result_done(&r);
}

static void expect_error(struct guest_rig *rig, const struct guest_exec *e, int code,
			 const char *text)
{
	struct rig_result r;

	rig_run(rig, 2, e, &r);
	assert_false(r.is_exit);
	assert_int_equal(r.code, code);
	assert_non_null(strstr(r.text, text));
	rig_result_done(&r);
}

static void what_cannot_be_executed_is_named(void **state)
{
	static const struct {
		const char *program;
		int code;
		const char *text;
	} rows[] = {
		{ "no-such-program", ENOENT, "no-such-program" },
		{ "/no/such/program", ENOENT, "/no/such/program" },
		{ "/etc/passwd", EACCES, "/etc/passwd" },
		{ "/etc", EACCES, "/etc" },
		{ "", EINVAL, "no program" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *argv[] = { rows[i].program, NULL };
		struct guest_exec e = rig_command(argv);

		expect_error(*state, &e, rows[i].code, rows[i].text);
	}
}

static void a_file_without_a_format_is_refused(void **state)
{
	char path[] = "/tmp/guest-test-XXXXXX";
	int fd = mkstemp(path);
	const char *argv[] = { path, NULL };
	struct guest_exec e = rig_command(argv);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, "echo no\n", 8), 8);
	assert_int_equal(fchmod(fd, 0755), 0);
	assert_int_equal(close(fd), 0);
	expect_error(*state, &e, ENOEXEC, path);
	assert_int_equal(unlink(path), 0);
}

static void a_bad_user_or_directory_is_one_clean_error(void **state)
{
	struct guest_exec e = rig_script("echo never");

	e.cwd = "/no/such/dir";
	expect_error(*state, &e, ENOENT, "/no/such/dir");
	e.cwd = "/";
	e.user = "no-such-user";
	expect_error(*state, &e, EINVAL, "no-such-user");
	e.user = "4294967295";
	expect_error(*state, &e, EINVAL, "4294967295");
	e.user = "root\nroot";
	expect_error(*state, &e, EINVAL, "root");
}

static void the_working_directory_is_the_given_one(void **state)
{
	struct guest_exec e = rig_script("pwd");
	struct rig_result r;

	e.cwd = "/usr";
	rig_run(*state, 1, &e, &r);
	assert_string_equal(buf_str(&r.out), "/usr\n");
	rig_result_done(&r);
}

static void nothing_of_the_guest_is_open_in_a_program(void **state)
{
	struct rig_result r;

	rig_shell(*state, 1, "ls /proc/self/fd | wc -l; grep SigBlk /proc/self/status", &r);
	/* 0, 1, 2 and the directory that ls reads */
	assert_string_equal(buf_str(&r.out), "4\nSigBlk:\t0000000000000000\n");
	rig_result_done(&r);
}

static void standard_input_reaches_the_program_and_is_acknowledged(void **state)
{
	struct guest_exec e = rig_script("cat; echo end");
	struct rig_result r = { 0 };

	e.flags = EXEC_STDIN;
	rig_exec(*state, 1, &e);
	rig_raw(*state, G_STDIN, 1, "one ", 4);
	rig_raw(*state, G_STDIN, 1, "two ", 4);
	rig_raw(*state, G_STDIN, 1, NULL, 0);
	rig_collect(*state, 1, true, &r);
	assert_string_equal(buf_str(&r.out), "one two end\n");
	assert_int_equal(r.taken, 8);
	rig_result_done(&r);
}

static void input_that_nobody_reads_is_taken_up_to_the_window_only(void **state)
{
	struct guest_exec e = rig_script("read line; sleep 1000");
	struct guest_rig *rig = *state;
	char *chunk = calloc(1, GUEST_CHUNK);
	struct rig_result r = { 0 };

	assert_non_null(chunk);
	e.flags = EXEC_STDIN;
	rig_exec(rig, 1, &e);
	/* The pipe takes 64 KiB and the guest keeps its window; the rest would break the rules. */
	for (unsigned sent = 0; sent < GUEST_WINDOW; sent += GUEST_CHUNK)
		rig_raw(rig, G_STDIN, 1, chunk, GUEST_CHUNK);
	rig_raw(rig, G_PING, 99, NULL, 0);
	for (;;) {
		struct wire_head head;
		struct rd payload;

		assert_true(rig_recv(rig, &head, &payload));
		if (head.type == G_PONG)
			break;
		(void)rig_take(rig, 1, &head, &payload, true, &r);
	}
	assert_true(r.taken > 0 && r.taken < GUEST_WINDOW);
	free(chunk);
	rig_raw(rig, G_CANCEL, 1, NULL, 0);
	rig_collect(rig, 1, true, &r);
	assert_true(r.exit.flags & EXIT_CANCELLED);
	rig_result_done(&r);
}

static void input_for_a_program_that_does_not_read_is_dropped(void **state)
{
	struct guest_exec e = rig_script("exec 0</dev/null; echo closed; sleep 0.2");
	struct guest_rig *rig = *state;
	struct rig_result r = { 0 };
	struct wire_head head;
	struct rd payload;

	e.flags = EXEC_STDIN;
	rig_exec(rig, 1, &e);
	while (r.out.len == 0) {
		assert_true(rig_recv(rig, &head, &payload));
		assert_false(rig_take(rig, 1, &head, &payload, true, &r));
	}
	rig_raw(rig, G_STDIN, 1, "lost", 4);
	rig_collect(rig, 1, true, &r);
	assert_int_equal(r.taken, 4);
	assert_int_equal(r.exit.code, 0);
	rig_result_done(&r);
}

static void a_terminal_has_a_size_an_echo_and_an_end(void **state)
{
	struct guest_exec e =
		rig_script("tty >/dev/null && stty size; read a; echo got=$a; cat; echo over");
	struct rig_result r = { 0 };

	e.flags = EXEC_PTY | EXEC_STDIN;
	e.rows = 33;
	e.cols = 111;
	e.envp[e.envc++] = "PATH=/usr/bin:/bin";
	rig_exec(*state, 1, &e);
	rig_raw(*state, G_STDIN, 1, "word\n", 5);
	rig_raw(*state, G_STDIN, 1, "half", 4);
	rig_raw(*state, G_STDIN, 1, NULL, 0);
	rig_collect(*state, 1, true, &r);
	assert_non_null(strstr(buf_str(&r.out), "33 111\r\n"));
	assert_non_null(strstr(buf_str(&r.out), "got=word\r\n"));
	assert_non_null(strstr(buf_str(&r.out), "halfover\r\n"));
	assert_int_equal(r.exit.code, 0);
	assert_int_equal(r.taken, 9);
	assert_int_equal(r.err.len, 0);
	rig_result_done(&r);
}

static void a_resize_reaches_the_program(void **state)
{
	struct guest_exec e = rig_script(
		"trap 'stty size; exit 5' WINCH; echo ready; while :; do sleep 0.05; done");
	struct guest_rig *rig = *state;
	struct rig_result r = { 0 };
	struct wire_head head;
	uint16_t size[2] = { 50, 132 };
	struct rd payload;

	e.flags = EXEC_PTY;
	e.envp[e.envc++] = "PATH=/usr/bin:/bin";
	rig_exec(rig, 1, &e);
	while (r.out.len == 0) {
		assert_true(rig_recv(rig, &head, &payload));
		assert_false(rig_take(rig, 1, &head, &payload, true, &r));
	}
	rig_raw(rig, G_RESIZE, 1, size, sizeof(size));
	rig_collect(rig, 1, true, &r);
	assert_int_equal(r.exit.code, 5);
	assert_non_null(strstr(buf_str(&r.out), "50 132"));
	rig_result_done(&r);
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

static void output_above_the_limit_is_dropped_and_flagged(void **state)
{
	struct guest_exec e = rig_script("head -c 3000000 /dev/zero");
	struct rig_result r;

	e.output_limit = 1000;
	e.envp[e.envc++] = "PATH=/usr/bin:/bin";
	rig_run(*state, 1, &e, &r);
	assert_int_equal(r.exit.flags, EXIT_TRUNCATED);
	assert_int_equal(r.exit.code, 0);
	assert_int_equal(r.out.len, 1000);
	assert_int_equal(r.exit.output_bytes, 3000000);
	rig_result_done(&r);
}

static void output_of_exactly_the_limit_is_whole(void **state)
{
	struct guest_exec e = rig_script("printf 12345");
	struct rig_result r;

	e.output_limit = 5;
	rig_run(*state, 1, &e, &r);
	assert_int_equal(r.exit.flags, 0);
	assert_string_equal(buf_str(&r.out), "12345");
	rig_result_done(&r);
}

static void much_output_comes_whole_and_in_order(void **state)
{
	struct guest_exec e = rig_script("seq 1 300000");
	struct rig_result r;
	char line[32];
	size_t at = 0;

	e.envp[e.envc++] = "PATH=/usr/bin:/bin";
	rig_run(*state, 1, &e, &r);
	for (int i = 1; i <= 300000; i++) {
		int n = snprintf(line, sizeof(line), "%d\n", i);

		assert_true(at + (size_t)n <= r.out.len);
		assert_memory_equal(r.out.data + at, line, (size_t)n);
		at += (size_t)n;
	}
	assert_int_equal(at, r.out.len);
	rig_result_done(&r);
}

/* Takes frames without crediting until none comes. */
static void take_until_quiet(struct guest_rig *rig, uint32_t id, struct rig_result *r)
{
	struct wire_head head;
	struct rd payload;

	while (!rig_is_quiet(rig, 300)) {
		assert_true(rig_recv(rig, &head, &payload));
		assert_false(rig_take(rig, id, &head, &payload, false, r));
	}
}

static void a_reader_that_does_not_credit_stops_the_program(void **state)
{
	struct guest_exec e = rig_script("head -c 1000000 /dev/zero; echo done >&2");
	struct guest_rig *rig = *state;
	struct rig_result r = { 0 };

	e.envp[e.envc++] = "PATH=/usr/bin:/bin";
	rig_exec(rig, 1, &e);
	take_until_quiet(rig, 1, &r);
	assert_int_equal(r.out.len, GUEST_WINDOW);
	assert_int_equal(r.err.len, 0);
	rig_u64(rig, G_CREDIT, 1, GUEST_WINDOW);
	rig_collect(rig, 1, true, &r);
	assert_int_equal(r.out.len, 1000000);
	assert_string_equal(buf_str(&r.err), "done\n");
	assert_int_equal(r.exit.flags, 0);
	rig_result_done(&r);
}

static void an_exit_waits_for_the_output_before_it(void **state)
{
	struct guest_exec e = rig_script("head -c 140000 /dev/zero");
	struct guest_rig *rig = *state;
	struct rig_result r = { 0 };

	e.envp[e.envc++] = "PATH=/usr/bin:/bin";
	rig_exec(rig, 1, &e);
	take_until_quiet(rig, 1, &r);
	assert_int_equal(r.out.len, GUEST_WINDOW);
	assert_false(r.is_exit);
	rig_u64(rig, G_CREDIT, 1, 20000);
	rig_collect(rig, 1, false, &r);
	assert_int_equal(r.out.len, 140000);
	assert_int_equal(r.exit.flags, 0);
	rig_result_done(&r);
}

static void a_cancel_does_not_wait_for_a_reader_that_holds_back(void **state)
{
	struct guest_exec e = rig_script("head -c 1000000 /dev/zero");
	struct guest_rig *rig = *state;
	struct rig_result r = { 0 };

	e.envp[e.envc++] = "PATH=/usr/bin:/bin";
	rig_exec(rig, 1, &e);
	take_until_quiet(rig, 1, &r);
	rig_raw(rig, G_CANCEL, 1, NULL, 0);
	rig_collect(rig, 1, false, &r);
	assert_true(r.exit.flags & EXIT_CANCELLED);
	assert_true(r.exit.flags & EXIT_TRUNCATED);
	rig_result_done(&r);
}

static void a_full_socket_stops_output_but_loses_nothing(void **state)
{
	struct guest_exec e = rig_script("head -c 100000 /dev/zero");
	struct guest_rig *rig = *state;
	struct rig_result r[8] = { 0 };
	struct wire_head head;
	struct rd payload;
	unsigned ended = 0;

	e.envp[e.envc++] = "PATH=/usr/bin:/bin";
	for (uint32_t id = 1; id <= 8; id++)
		rig_exec(rig, id, &e);
	(void)usleep(200000); /* 800 KB do not fit into the socket */
	while (ended < 8) {
		assert_true(rig_recv(rig, &head, &payload));
		assert_in_range(head.id, 1, 8);
		ended += rig_take(rig, head.id, &head, &payload, false, &r[head.id - 1]);
	}
	for (int i = 0; i < 8; i++) {
		assert_int_equal(r[i].out.len, 100000);
		assert_int_equal(r[i].exit.flags, 0);
		rig_result_done(&r[i]);
	}
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

static void too_many_executions_are_refused_and_the_others_live(void **state)
{
	const char *argv[] = { "/bin/cat", NULL };
	struct guest_exec e = rig_command(argv);
	struct guest_rig *rig = *state;
	struct rig_result r = { 0 };

	e.flags = EXEC_STDIN;
	for (uint32_t id = 1; id <= 257; id++)
		rig_exec(rig, id, &e);
	rig_collect(rig, 257, true, &r);
	assert_int_equal(r.code, E2BIG);
	for (uint32_t id = 1; id <= 256; id++) {
		rig_result_done(&r);
		rig_raw(rig, G_STDIN, id, NULL, 0);
		rig_collect(rig, id, true, &r);
		assert_true(r.is_exit);
		assert_int_equal(r.exit.flags, 0);
	}
	rig_result_done(&r);
}

static void a_ping_is_answered(void **state)
{
	struct wire_head head;
	struct rd payload;

	rig_raw(*state, G_PING, 1234, NULL, 0);
	assert_true(rig_recv(*state, &head, &payload));
	assert_int_equal(head.type, G_PONG);
	assert_int_equal(head.id, 1234);
}

static void frames_of_an_ended_id_are_ignored(void **state)
{
	struct rig_result r;

	rig_raw(*state, G_CANCEL, 5, NULL, 0);
	rig_raw(*state, G_STDIN, 5, "x", 1);
	rig_u64(*state, G_CREDIT, 5, 1);
	rig_signal(*state, 5, SIGTERM, true);
	rig_shell(*state, 5, "echo fine", &r);
	assert_string_equal(buf_str(&r.out), "fine\n");
	rig_result_done(&r);
}

static void a_file_operation_runs_beside_executions(void **state)
{
	struct guest_file f = { .op = FILE_READ, .user = "", .path = "/etc/passwd", .target = "" };
	struct guest_rig *rig = *state;
	struct rig_result r = { 0 };
	uint8_t frame[1024];
	char user[16];
	long n;

	(void)snprintf(user, sizeof(user), "%u", getuid());
	f.user = user;
	n = guest_put_file(frame, sizeof(frame), 3, &f);
	assert_int_equal(send(rig->sock, frame, (size_t)n, 0), n);
	rig_collect(rig, 3, true, &r);
	assert_int_equal(r.code, 0);
	assert_int_equal(r.ends, 1);
	assert_int_equal(r.done, r.out.len);
	assert_non_null(strstr(buf_str(&r.out), "root:"));
	rig_result_done(&r);
}

static void a_cancelled_file_operation_ends_once(void **state)
{
	struct guest_file f = {
		.op = FILE_WRITE, .user = "", .path = "/tmp/guest-test-none", .target = ""
	};
	struct guest_rig *rig = *state;
	struct rig_result r = { 0 };
	uint8_t frame[1024];
	char user[16];
	long n;

	(void)snprintf(user, sizeof(user), "%u", getuid());
	f.user = user;
	f.mode = 0644;
	n = guest_put_file(frame, sizeof(frame), 3, &f);
	assert_int_equal(send(rig->sock, frame, (size_t)n, 0), n);
	rig_raw(rig, G_DATA, 3, "half", 4);
	rig_raw(rig, G_CANCEL, 3, NULL, 0);
	rig_collect(rig, 3, true, &r);
	assert_int_equal(r.code, ECANCELED);
	assert_int_equal(r.ends, 1);
	assert_true(rig_is_quiet(rig, 700));
	assert_int_equal(access("/tmp/guest-test-none", F_OK), -1);
	rig_result_done(&r);
}

/* A broken rule is told with id 0, and then the guest ends with an error. */
static void expect_end(struct guest_rig *rig)
{
	struct rig_result r = { 0 };
	struct wire_head head;
	struct rd payload;

	do
		assert_true(rig_recv(rig, &head, &payload));
	while (head.id != 0);
	assert_int_equal(head.type, G_ERROR);
	assert_true(rig_take(rig, 0, &head, &payload, false, &r));
	assert_true(r.code > 0);
	assert_false(rig_recv(rig, &head, &payload));
	rig_stop(rig, 1);
}

static void expect_refused(const void *message, size_t n)
{
	struct guest_rig rig;

	rig_start(&rig);
	assert_int_equal(send(rig.sock, message, n, 0), (ssize_t)n);
	expect_end(&rig);
}

static void garbage_ends_the_guest(void **state)
{
	static const struct wire_head heads[] = {
		{ WIRE_VERSION, G_PING, 1, 7 },   { WIRE_VERSION + 1, G_PING, 1, 0 },
		{ WIRE_VERSION, G_READY, 1, 0 },  { WIRE_VERSION, 0, 1, 0 },
		{ WIRE_VERSION, 0xffff, 1, 0 },   { WIRE_VERSION, G_EXEC, 1, 0 },
		{ WIRE_VERSION, G_FILE, 1, 0 },   { WIRE_VERSION, G_CREDIT, 1, 0 },
		{ WIRE_VERSION, G_SIGNAL, 1, 0 }, { WIRE_VERSION, G_RESIZE, 1, 0 },
		{ WIRE_VERSION, G_PING, 1, ~0u },
	};

	(void)state;
	expect_refused("x", 1);
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
		expect_refused(&heads[i], sizeof(heads[i]));
}

static void an_oversize_message_ends_the_guest(void **state)
{
	size_t n = WIRE_FRAME_MAX + 1;
	char *message = calloc(1, n);

	(void)state;
	assert_non_null(message);
	expect_refused(message, n);
	free(message);
}

static void a_broken_window_ends_the_guest(void **state)
{
	const char *argv[] = { "/bin/sleep", "1000", NULL };
	struct guest_exec e = rig_command(argv);
	char *chunk = calloc(1, GUEST_CHUNK + 1);
	struct guest_rig rig;

	(void)state;
	assert_non_null(chunk);
	rig_start(&rig);
	rig_exec(&rig, 1, &e);
	rig_u64(&rig, G_CREDIT, 1, 1); /* nothing was sent */
	expect_end(&rig);

	rig_start(&rig);
	rig_raw(&rig, G_STDIN, 1, chunk, GUEST_CHUNK + 1);
	expect_end(&rig);

	rig_start(&rig);
	e.flags = EXEC_STDIN;
	rig_exec(&rig, 1, &e);
	for (int i = 0; i < 8; i++) /* the pipe's 64 KiB, the window's 128, and more */
		rig_raw(&rig, G_STDIN, 1, chunk, GUEST_CHUNK);
	expect_end(&rig);
	free(chunk);
}

static void an_id_in_use_or_zero_ends_the_guest(void **state)
{
	const char *argv[] = { "/bin/sleep", "1000", NULL };
	struct guest_exec e = rig_command(argv);
	struct guest_rig rig;

	(void)state;
	rig_start(&rig);
	rig_exec(&rig, 1, &e);
	rig_exec(&rig, 1, &e);
	expect_end(&rig);
	rig_start(&rig);
	rig_exec(&rig, 0, &e);
	expect_end(&rig);
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

/* Zombies may still be there, nothing else but PID 1 and the program that looks. */
static void expect_alone(struct guest_rig *rig)
{
	struct guest_exec e = boxed_script("grep -hc '^State:.[^Z]' /proc/[0-9]*/status | "
					   "grep -c 1");
	struct rig_result r;

	rig_run(rig, 999, &e, &r);
	/* the guest, the shell and the two greps */
	assert_string_equal(buf_str(&r.out), "4\n");
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

int main(void)
{
#define WITH_GUEST(test) cmocka_unit_test_setup_teardown(test, start, stop)
	const struct CMUnitTest tests[] = {
		WITH_GUEST(a_command_gives_its_output_and_its_exit_code),
		WITH_GUEST(a_program_is_found_by_path_and_gets_the_given_environment_only),
		WITH_GUEST(a_program_is_found_without_a_path_too),
		WITH_GUEST(a_login_adds_what_the_passwd_file_says),
		WITH_GUEST(what_cannot_be_executed_is_named),
		WITH_GUEST(a_file_without_a_format_is_refused),
		WITH_GUEST(a_bad_user_or_directory_is_one_clean_error),
		WITH_GUEST(the_working_directory_is_the_given_one),
		WITH_GUEST(nothing_of_the_guest_is_open_in_a_program),
		WITH_GUEST(standard_input_reaches_the_program_and_is_acknowledged),
		WITH_GUEST(input_that_nobody_reads_is_taken_up_to_the_window_only),
		WITH_GUEST(input_for_a_program_that_does_not_read_is_dropped),
		WITH_GUEST(a_terminal_has_a_size_an_echo_and_an_end),
		WITH_GUEST(a_resize_reaches_the_program),
		WITH_GUEST(a_signal_reaches_the_process),
		WITH_GUEST(a_signal_to_the_tree_reaches_those_who_left),
		WITH_GUEST(a_deadline_ends_the_program),
		WITH_GUEST(who_ignores_the_deadline_is_killed_after_the_grace),
		WITH_GUEST(a_program_that_uses_its_grace_keeps_its_exit_code),
		WITH_GUEST(nothing_of_a_tree_survives_its_deadline),
		WITH_GUEST(a_cancel_without_grace_kills_at_once),
		WITH_GUEST(a_deadline_at_the_moment_of_the_end_gives_one_exit),
		WITH_GUEST(output_above_the_limit_is_dropped_and_flagged),
		WITH_GUEST(output_of_exactly_the_limit_is_whole),
		WITH_GUEST(much_output_comes_whole_and_in_order),
		WITH_GUEST(a_reader_that_does_not_credit_stops_the_program),
		WITH_GUEST(an_exit_waits_for_the_output_before_it),
		WITH_GUEST(a_cancel_does_not_wait_for_a_reader_that_holds_back),
		WITH_GUEST(a_full_socket_stops_output_but_loses_nothing),
		WITH_GUEST(leftovers_are_flagged_and_do_not_hold_the_exit),
		WITH_GUEST(what_is_left_behind_may_go_on_writing),
		WITH_GUEST(zombies_by_the_thousand_are_reaped),
		WITH_GUEST(too_many_executions_are_refused_and_the_others_live),
		WITH_GUEST(a_ping_is_answered),
		WITH_GUEST(frames_of_an_ended_id_are_ignored),
		WITH_GUEST(a_file_operation_runs_beside_executions),
		WITH_GUEST(a_cancelled_file_operation_ends_once),
		cmocka_unit_test(garbage_ends_the_guest),
		cmocka_unit_test(an_oversize_message_ends_the_guest),
		cmocka_unit_test(a_broken_window_ends_the_guest),
		cmocka_unit_test(an_id_in_use_or_zero_ends_the_guest),
		cmocka_unit_test(a_client_that_hangs_up_ends_the_guest_and_what_it_started),
		cmocka_unit_test(as_pid_1_runaways_end_with_their_deadline),
		cmocka_unit_test(as_pid_1_runaways_beside_another_execution_end_too),
		cmocka_unit_test(as_pid_1_one_tree_ends_and_its_neighbour_lives),
		cmocka_unit_test(as_pid_1_who_tampers_with_the_mark_does_not_get_away),
		cmocka_unit_test(as_pid_1_signals_from_inside_do_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
