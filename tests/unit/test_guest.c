/* The whole guest over its socket: requests, streams, windows, rules. */
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
	expect_error(*state, &e, ESRCH, "no-such-user");
	e.user = "4294967295";
	expect_error(*state, &e, EINVAL, "4294967295");
	e.user = "root\nroot";
	expect_error(*state, &e, ESRCH, "root");
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

/* Out of memory is told, never hidden. */
static bool is_spoiled(struct guest_rig *rig, uint32_t id)
{
	struct rig_result r;
	bool spoiled;

	rig_shell(rig, id, "echo fine", &r);
	spoiled = !r.is_exit || r.exit.flags;
	if (!r.is_exit)
		assert_int_equal(r.code, ENOMEM);
	else if (r.exit.flags)
		assert_int_equal(r.exit.flags, EXIT_TRUNCATED);
	else
		assert_string_equal(buf_str(&r.out), "fine\n");
	rig_result_done(&r);
	return spoiled;
}

static void a_failed_allocation_spoils_one_execution_and_says_so(void **state)
{
	(void)state;
	for (size_t n = 1; n <= 8; n++) {
		struct guest_rig rig;
		int spoiled = 0;

		rig_start_faulty(&rig, n);
		for (uint32_t id = 1; id <= 4; id++)
			spoiled += is_spoiled(&rig, id);
		assert_int_equal(spoiled, 1);
		rig_stop(&rig, 0);
	}
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
		WITH_GUEST(output_above_the_limit_is_dropped_and_flagged),
		WITH_GUEST(output_of_exactly_the_limit_is_whole),
		WITH_GUEST(much_output_comes_whole_and_in_order),
		WITH_GUEST(a_reader_that_does_not_credit_stops_the_program),
		WITH_GUEST(an_exit_waits_for_the_output_before_it),
		WITH_GUEST(a_cancel_does_not_wait_for_a_reader_that_holds_back),
		WITH_GUEST(a_full_socket_stops_output_but_loses_nothing),
		WITH_GUEST(too_many_executions_are_refused_and_the_others_live),
		WITH_GUEST(a_ping_is_answered),
		WITH_GUEST(frames_of_an_ended_id_are_ignored),
		WITH_GUEST(a_file_operation_runs_beside_executions),
		WITH_GUEST(a_cancelled_file_operation_ends_once),
		cmocka_unit_test(a_failed_allocation_spoils_one_execution_and_says_so),
		cmocka_unit_test(garbage_ends_the_guest),
		cmocka_unit_test(an_oversize_message_ends_the_guest),
		cmocka_unit_test(a_broken_window_ends_the_guest),
		cmocka_unit_test(an_id_in_use_or_zero_ends_the_guest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
