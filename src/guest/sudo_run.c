/* One command of sudo's, from its request to its end: a process between holt-init and the command.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include "guest/limits.h"
#include "guest/pty.h"
#include "guest/spawn.h"
#include "guest/sudo.h"
#include "guest/user.h"
#include "spec/guest.h"

#define CONN 3
#define PATIENCE_MS 10000 /* for the request */
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

static void say(long n, const void *frame, const int *fds, size_t n_fds)
{
	if (n > 0)
		(void)fd_send(CONN, frame, (size_t)n, fds, n_fds);
}

static _Noreturn void refuse(int code, const char *text)
{
	uint8_t frame[512];

	say(guest_put_error(frame, sizeof(frame), 0, code, text), frame, NULL, 0);
	_exit(1);
}

/* Nothing of holt-init's is open here but /dev/null. */
static void keep_only(int conn)
{
	if ((conn != CONN && dup3(conn, CONN, O_CLOEXEC) < 0) ||
	    syscall(SYS_close_range, CONN + 1, ~0u, 0) < 0)
		_exit(1);
}

/* The pid could be another's by now; this is him, or nobody. */
static int open_caller(pid_t pid)
{
	socklen_t size = sizeof(int);
	int fd = -1;

	if (getsockopt(CONN, SOL_SOCKET, SO_PEERPIDFD, &fd, &size) == 0)
		return fd;
	return (int)syscall(SYS_pidfd_open, pid, 0); /* a kernel before 6.5 */
}

static bool has_ended(int pidfd)
{
	struct pollfd p = { .fd = pidfd, .events = POLLIN };

	return poll(&p, 1, 0) != 0;
}

/* We become a part of the caller's execution: its mark is in its limits. When he has ended before
 * we had them, what ends his execution would not have found us. */
static void join_caller(void)
{
	struct ucred who = { .pid = -1, .uid = (uid_t)-1 };
	socklen_t size = sizeof(who);
	char path[32], text[LIMITS_TEXT_MAX];
	int pidfd;

	if (getsockopt(CONN, SOL_SOCKET, SO_PEERCRED, &who, &size) < 0)
		refuse(errno, "the caller is not known");
	/* holt-init's own user is root, or, in a box of one user, that one. */
	if (who.uid != getuid() && who.uid != USER_DEFAULT)
		refuse(EACCES, "this user may not become another");
	pidfd = open_caller(who.pid);
	if (pidfd < 0 || str_format(path, sizeof(path), "/proc/%d/limits", (int)who.pid) < 0 ||
	    fd_read_file_at(AT_FDCWD, path, text, sizeof(text)) < 0 || limits_take(text) < 0 ||
	    has_ended(pidfd))
		refuse(ESRCH, "the caller is gone");
	(void)close(pidfd);
	(void)fd_write_file_at(AT_FDCWD, "/proc/self/oom_score_adj", "1000");
}

/* The request; its strings stay in the frame. There is room for all descriptors that may come: one
 * too many is not closed by us, who might have to wait for it, but by our end. */
static void receive(void *frame, struct guest_exec *ret, int fds[FD_PASS_MAX])
{
	struct pollfd p = { .fd = CONN, .events = POLLIN };
	size_t n_fds = FD_PASS_MAX;
	struct wire_head head;
	struct rd rd;
	ssize_t n;

	if (poll(&p, 1, PATIENCE_MS) != 1)
		refuse(ETIMEDOUT, "no request came");
	n = fd_recv(CONN, frame, WIRE_FRAME_MAX, fds, &n_fds);
	if (n <= 0)
		_exit(1);
	if (n_fds != SUDO_FDS || wire_open(frame, (size_t)n, &head, &rd) < 0 ||
	    head.type != G_EXEC || guest_get_exec(&rd, ret) < 0 || ret->kind != EXEC_COMMAND ||
	    (ret->flags & ~EXEC_PTY) != 0)
		refuse(EPROTO, "the request is not well-formed");
}

/* A terminal of the command's own in place of the caller's; the master. */
static int open_terminal(const struct guest_exec *e, const struct user *u, int fds[SUDO_FDS])
{
	struct err err = { 0 };
	int master, slave;

	if (pty_open(u, e->rows, e->cols, &master, &slave, &err) < 0)
		refuse(err.code, err.text);
	for (int i = 0; i < 3; i++)
		if (i == 0 || isatty(fds[i]))
			fds[i] = slave;
	return master;
}

static pid_t start(const struct guest_exec *e, int fds[SUDO_FDS])
{
	struct spawn_plan plan = { .argv = e->argv,
				   .envp = e->envp,
				   .cwd = e->cwd,
				   .flags = e->flags,
				   .fds = fds,
				   .cwd_fd = fds[3] };
	struct spawned s = { 0 };
	struct err err = { 0 };
	int master = -1;
	uint8_t frame[32];
	struct user u;
	struct wr w;

	if (user_load(e->user, &u, &err) < 0)
		refuse(err.code, err.text);
	plan.user = &u;
	if (e->flags & EXEC_PTY)
		master = open_terminal(e, &u, fds);
	if (spawn_start(&plan, &s, &err) < 0)
		refuse(err.code, err.text);
	wire_begin(&w, frame, sizeof(frame), G_STARTED, 0);
	wr_u32(&w, (uint32_t)getpid()); /* who ends after us leaves nobody behind */
	wr_u8(&w, 0);
	say(wire_finish(&w), frame, &master, master >= 0 ? 1 : 0);
	/* The streams are the command's: who waits for their end does not wait for us. */
	(void)syscall(SYS_close_range, CONN + 1, ~0u, 0);
	return s.pid;
}

/* The command is the leader of a session, and so of a group. False: the caller is gone. */
static bool pass_signal(pid_t pid)
{
	uint8_t frame[64];
	size_t none = 0;
	ssize_t n = fd_recv(CONN, frame, sizeof(frame), NULL, &none);
	struct wire_head head;
	uint32_t signo;
	uint8_t is_tree;
	struct rd rd;

	if (n <= 0 || wire_open(frame, (size_t)n, &head, &rd) < 0 || head.type != G_SIGNAL)
		return false;
	signo = rd_u32(&rd);
	is_tree = rd_u8(&rd);
	if (rd_end(&rd) < 0 || signo < 1 || signo > 64)
		return false;
	(void)kill(is_tree ? -pid : pid, (int)signo);
	return true;
}

static void say_exit(int status)
{
	struct guest_exit e = { .code = (uint32_t)(WIFSIGNALED(status) ? WTERMSIG(status)
								       : WEXITSTATUS(status)),
				.flags = WIFSIGNALED(status) ? EXIT_SIGNALED : 0 };
	uint8_t frame[128];

	say(guest_put_exit(frame, sizeof(frame), 0, &e), frame, NULL, 0);
}

static int open_children(void)
{
	sigset_t child;

	(void)sigemptyset(&child);
	(void)sigaddset(&child, SIGCHLD);
	return signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK); /* all are blocked */
}

static void see_through(pid_t pid)
{
	struct pollfd p[] = { { .fd = open_children(), .events = POLLIN },
			      { .fd = CONN, .events = POLLIN } };
	struct signalfd_siginfo info;
	int status;

	while (waitpid(pid, &status, WNOHANG) != pid) {
		if (poll(p, 2, p[0].fd < 0 ? 100 : -1) < 0 && errno != EINTR)
			return;
		if (p[0].revents && read(p[0].fd, &info, sizeof(info)) < 0 && errno != EAGAIN)
			return;
		if (p[1].revents && !pass_signal(pid)) {
			(void)kill(-pid, SIGKILL);
			p[1].fd = -1;
		}
	}
	say_exit(status);
}

_Noreturn void sudo_serve(int conn, bool is_full)
{
	_Alignas(8) uint8_t frame[WIRE_FRAME_MAX];
	struct guest_exec e;
	int fds[FD_PASS_MAX];

	keep_only(conn);
	if (is_full)
		refuse(EAGAIN, "too many commands at once");
	join_caller();
	receive(frame, &e, fds);
	see_through(start(&e, fds));
	_exit(0);
}
