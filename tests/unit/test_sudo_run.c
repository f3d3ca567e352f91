/* The other end of `sudo`: one connection, its request, the command and its end. Here as an
 * ordinary process that is asked by this one. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/fd.h"
#include "guest/limits.h"
#include "guest/sudo.h"
#include "spec/guest.h"

#define PATIENCE_S 60

/* ---- limits ---- */

static const char limits_text[] =
	"Limit                     Soft Limit           Hard Limit           Units     \n"
	"Max cpu time              7                    8                    seconds   \n"
	"Max file locks            12                   13                   locks     \n"
	"Max resident set          unlimited            unlimited            bytes     \n";

static void limits_are_found_by_their_label(void **state)
{
	uint64_t soft = 0, hard = 0;

	(void)state;
	assert_int_equal(limits_find(limits_text, "Max cpu time", &soft, &hard), 0);
	assert_true(soft == 7 && hard == 8);
	assert_int_equal(limits_find(limits_text, "Max resident set", &soft, &hard), 0);
	assert_true(soft == RLIM_INFINITY && hard == RLIM_INFINITY);
	assert_int_equal(limits_find(limits_text, "Max open files", &soft, &hard), -EINVAL);
	assert_int_equal(limits_find("Max cpu time", "Max cpu time", &soft, &hard), -EINVAL);
	assert_int_equal(limits_find("Max cpu time  7", "Max cpu time", &soft, &hard), -EINVAL);
	assert_int_equal(limits_find("Max cpu time  7 -1 s", "Max cpu time", &soft, &hard),
			 -EINVAL);
	assert_int_equal(limits_find("Max cpu time  99999999999999999999999999 7", "Max cpu time",
				     &soft, &hard),
			 -EINVAL);
	assert_int_equal(limits_take(limits_text), -EINVAL); /* not without one of them */
}

/* In a process whose own limits are higher. */
static int take(const char *text)
{
	struct rlimit files, locks;

	if (limits_take(text) < 0 || getrlimit(RLIMIT_NOFILE, &files) < 0 ||
	    getrlimit(RLIMIT_LOCKS, &locks) < 0)
		return 1;
	return files.rlim_cur == 77 && files.rlim_max == 78 && locks.rlim_max == 1234 ? 0 : 2;
}

/* The text of one who has them, over a pipe. */
static int tell_limits(int to)
{
	struct rlimit files = { 77, 78 }, locks = { 1234, 1234 };
	char text[LIMITS_TEXT_MAX];

	if (setrlimit(RLIMIT_NOFILE, &files) < 0 || setrlimit(RLIMIT_LOCKS, &locks) < 0 ||
	    fd_read_file_at(AT_FDCWD, "/proc/self/limits", text, sizeof(text)) < 0)
		return 1;
	return fd_write_all(to, text, strlen(text)) < 0;
}

static void expect_success(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void limits_of_another_process_become_ones_own(void **state)
{
	char text[LIMITS_TEXT_MAX] = "";
	pid_t pid;
	int p[2];

	(void)state;
	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0)
		_exit(tell_limits(p[1]));
	(void)close(p[1]);
	assert_true(fd_read_all(p[0], text, sizeof(text) - 1) > 0);
	(void)close(p[0]);
	expect_success(pid);
	pid = fork();
	if (pid == 0)
		_exit(take(text));
	expect_success(pid);
}

/* ---- the server ---- */

struct call {
	int sock, out; /* ours, and what the command says */
	int fds[SUDO_FDS];
	pid_t pid;
	uint8_t frame[1024];
	struct wire_head head;
	struct rd rd;
};

static void call_open(struct call *c)
{
	struct timeval t = { .tv_sec = PATIENCE_S };
	int pair[2], out[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	c->pid = fork();
	assert_true(c->pid >= 0);
	if (c->pid == 0) {
		sigset_t all;

		(void)sigfillset(&all); /* as holt-init has them */
		(void)sigprocmask(SIG_SETMASK, &all, NULL);
		sudo_serve(pair[1], false);
	}
	(void)close(pair[1]);
	c->sock = pair[0];
	assert_int_equal(setsockopt(c->sock, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t)), 0);
	c->out = out[0];
	c->fds[0] = open("/dev/null", O_RDWR | O_CLOEXEC);
	c->fds[1] = out[1];
	c->fds[2] = fcntl(out[1], F_DUPFD_CLOEXEC, 3);
	c->fds[3] = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static void call_close(struct call *c)
{
	int status;

	c->sock = fd_close(c->sock);
	for (int i = 0; i < SUDO_FDS; i++)
		c->fds[i] = fd_close(c->fds[i]);
	c->out = fd_close(c->out);
	assert_int_equal(waitpid(c->pid, &status, 0), c->pid);
	assert_true(WIFEXITED(status)); /* whatever was asked, it was no crash */
}

/* The next frame's type; 0: it has hung up. */
static int hear(struct call *c)
{
	size_t none = 0;
	ssize_t n = fd_recv(c->sock, c->frame, sizeof(c->frame), NULL, &none);

	if (n == -ECONNRESET)
		n = fd_recv(c->sock, c->frame, sizeof(c->frame), NULL, &none);
	assert_true(n >= 0);
	if (n == 0)
		return 0;
	assert_int_equal(wire_open(c->frame, (size_t)n, &c->head, &c->rd), 0);
	return c->head.type;
}

static struct guest_exec request(const char *line, char user[16])
{
	struct guest_exec e = { .kind = EXEC_COMMAND, .cwd = "", .code = "", .tag = "" };

	(void)snprintf(user, 16, "%u", (unsigned)getuid());
	e.user = user;
	e.argv[e.argc++] = "/bin/sh";
	e.argv[e.argc++] = "-c";
	e.argv[e.argc++] = line;
	e.envp[e.envc++] = "X=y";
	return e;
}

static void ask(struct call *c, const struct guest_exec *e)
{
	static uint8_t frame[WIRE_FRAME_MAX];
	long n = guest_put_exec(frame, sizeof(frame), 0, e);

	assert_true(n > 0);
	assert_int_equal(fd_send(c->sock, frame, (size_t)n, c->fds, SUDO_FDS), n);
}

static void begin(struct call *c, const char *line)
{
	char user[16];
	struct guest_exec e = request(line, user);

	call_open(c);
	ask(c, &e);
	assert_int_equal(hear(c), G_STARTED);
}

static void expect_exit(struct call *c, uint32_t code, uint32_t flags)
{
	struct guest_exit end;

	assert_int_equal(hear(c), G_EXIT);
	assert_int_equal(guest_get_exit(&c->rd, &end), 0);
	assert_int_equal(end.code, code);
	assert_int_equal(end.flags, flags);
	assert_int_equal(hear(c), 0);
}

static void expect_said(struct call *c, const char *text)
{
	char said[64] = "";

	(void)fd_close(c->fds[1]);
	(void)fd_close(c->fds[2]);
	c->fds[1] = c->fds[2] = -1;
	assert_true(fd_read_all(c->out, said, sizeof(said) - 1) >= 0);
	assert_string_equal(said, text);
}

static void a_command_runs_with_the_streams_the_place_and_the_variables_it_is_given(void **state)
{
	struct call c;

	(void)state;
	begin(&c, "pwd; echo $X; echo err >&2; ls /proc/self/fd | wc -l; exit 3");
	expect_exit(&c, 3, 0);
	expect_said(&c, "/\ny\nerr\n4\n"); /* three, and the one that ls reads */
	call_close(&c);
}

static void signals_reach_the_command(void **state)
{
	uint8_t frame[32];
	struct call c;
	struct wr w;

	(void)state;
	begin(&c, "exec sleep 1000");
	wire_begin(&w, frame, sizeof(frame), G_SIGNAL, 0);
	wr_u32(&w, SIGTERM);
	wr_u8(&w, 0);
	assert_true(fd_send(c.sock, frame, (size_t)wire_finish(&w), NULL, 0) > 0);
	expect_exit(&c, SIGTERM, EXIT_SIGNALED);
	call_close(&c);
}

static void who_hangs_up_or_talks_nonsense_ends_the_command(void **state)
{
	static const char *const words[] = { NULL, "nonsense" };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct call c;

		begin(&c, "echo ready; exec sleep 1000");
		(void)fd_close(c.fds[1]);
		(void)fd_close(c.fds[2]);
		c.fds[1] = c.fds[2] = -1;
		if (words[i])
			assert_true(fd_send(c.sock, words[i], strlen(words[i]), NULL, 0) > 0);
		else
			assert_int_equal(shutdown(c.sock, SHUT_WR), 0);
		expect_exit(&c, SIGKILL, EXIT_SIGNALED);
		call_close(&c);
	}
}

static void expect_refused(struct call *c, uint32_t code)
{
	assert_int_equal(hear(c), G_ERROR);
	assert_int_equal(rd_u32(&c->rd), code);
	assert_int_equal(hear(c), 0);
	call_close(c);
}

static void what_cannot_be_run_is_told(void **state)
{
	struct guest_exec e;
	char user[16];
	struct call c;

	(void)state;
	e = request("true", user);
	e.argv[0] = "/no/such/program";
	call_open(&c);
	ask(&c, &e);
	expect_refused(&c, ENOENT);
	e = request("true", user);
	e.cwd = "/no/such/directory";
	call_open(&c);
	ask(&c, &e);
	expect_refused(&c, ENOENT);
	e = request("true", user);
	(void)fd_close(c.fds[3]);
	call_open(&c);
	(void)close(c.fds[3]);
	c.fds[3] = open("/dev/null", O_RDWR | O_CLOEXEC); /* no directory */
	ask(&c, &e);
	expect_refused(&c, ENOTDIR);
}

static void requests_that_are_none_are_refused(void **state)
{
	char user[16];
	struct guest_exec e = request("true", user);
	uint8_t frame[1024];
	struct call c;
	long n;

	(void)state;
	call_open(&c); /* without its descriptors */
	n = guest_put_exec(frame, sizeof(frame), 0, &e);
	assert_int_equal(fd_send(c.sock, frame, (size_t)n, c.fds, SUDO_FDS - 1), n);
	expect_refused(&c, EPROTO);
	call_open(&c); /* with one too many */
	{
		int fds[SUDO_FDS + 1] = { c.fds[0], c.fds[1], c.fds[2], c.fds[3], c.fds[0] };

		assert_int_equal(fd_send(c.sock, frame, (size_t)n, fds, SUDO_FDS + 1), n);
	}
	expect_refused(&c, EPROTO);
	call_open(&c); /* cut short */
	assert_int_equal(fd_send(c.sock, frame, (size_t)n - 3, c.fds, SUDO_FDS), n - 3);
	expect_refused(&c, EPROTO);
	call_open(&c); /* another's */
	n = guest_put_raw(frame, sizeof(frame), G_PING, 1, NULL, 0);
	assert_int_equal(fd_send(c.sock, frame, (size_t)n, c.fds, SUDO_FDS), n);
	expect_refused(&c, EPROTO);
	call_open(&c);
	e.kind = EXEC_PYTHON;
	e.code = "1";
	ask(&c, &e);
	expect_refused(&c, EPROTO);
	call_open(&c);
	e = request("true", user);
	e.flags = EXEC_KEEP;
	ask(&c, &e);
	expect_refused(&c, EPROTO);
	call_open(&c); /* gone before it has said a word */
	call_close(&c);
}

static void a_terminal_is_the_commands_own(void **state)
{
	char user[16];
	struct guest_exec e =
		request("test -t 0 && test -t 1 && stty size && echo is $(tty)", user);
	size_t n_fds = 1;
	struct call c;
	int master = -1;
	ssize_t n;

	(void)state;
	e.flags = EXEC_PTY;
	e.rows = 11;
	e.cols = 22;
	e.envp[e.envc++] = "PATH=/usr/bin:/bin";
	call_open(&c);
	(void)dup3(c.fds[0], c.fds[1], O_CLOEXEC); /* only terminals are replaced, and input */
	ask(&c, &e);
	n = fd_recv(c.sock, c.frame, sizeof(c.frame), &master, &n_fds);
	assert_true(n > 0 && n_fds == 1);
	assert_int_equal(wire_open(c.frame, (size_t)n, &c.head, &c.rd), 0);
	assert_int_equal(c.head.type, G_STARTED);
	expect_exit(&c, 1, 0); /* its output was no terminal */
	(void)close(master);
	call_close(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(limits_are_found_by_their_label),
		cmocka_unit_test(limits_of_another_process_become_ones_own),
		cmocka_unit_test(
			a_command_runs_with_the_streams_the_place_and_the_variables_it_is_given),
		cmocka_unit_test(signals_reach_the_command),
		cmocka_unit_test(who_hangs_up_or_talks_nonsense_ends_the_command),
		cmocka_unit_test(what_cannot_be_run_is_told),
		cmocka_unit_test(requests_that_are_none_are_refused),
		cmocka_unit_test(a_terminal_is_the_commands_own),
	};

	(void)signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
