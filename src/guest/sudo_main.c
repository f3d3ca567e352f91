/* `sudo` in a box: says to holt-init what to run, and stands for it until it has ended. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include "guest/sudo.h"
#include "guest/user.h"
#include "spec/guest.h"

#define NAME "sudo"
#define ONLY_USER "1000" /* USER_DEFAULT */
#define SERVER_MS 1000   /* he ends at once */
#define FAILED 1         /* as other sudos end when the command does not begin */

/* Passed on to the command; to its whole group where a terminal would have told all. */
static const struct {
	int signo;
	uint8_t is_tree;
} passed[] = {
	{ SIGHUP, 1 },  { SIGINT, 1 },  { SIGQUIT, 1 }, { SIGTSTP, 1 }, { SIGCONT, 1 },
	{ SIGTERM, 0 }, { SIGUSR1, 0 }, { SIGUSR2, 0 }, { SIGALRM, 0 }, { SIGPIPE, 0 },
};
#define PASSED (sizeof(passed) / sizeof(passed[0]))

bool sudo_is_name(const char *argv0)
{
	const char *slash = strrchr(argv0, '/');

	return strcmp(slash ? slash + 1 : argv0, NAME) == 0;
}

static int fail(const char *text)
{
	(void)fprintf(stderr, NAME ": %s\n", text);
	return FAILED;
}

static int open_signals(void)
{
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGWINCH);
	for (size_t i = 0; i < PASSED; i++)
		(void)sigaddset(&set, passed[i].signo);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void send_signal(int conn, int signo, uint8_t is_tree)
{
	uint8_t frame[32];
	struct wr w;

	wire_begin(&w, frame, sizeof(frame), G_SIGNAL, 0);
	wr_u32(&w, (uint32_t)signo);
	wr_u8(&w, is_tree);
	(void)fd_send(conn, frame, (size_t)wire_finish(&w), NULL, 0);
}

static void on_signal(int conn, int signals, const struct sudo_tty *t)
{
	struct signalfd_siginfo info;

	if (read(signals, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return;
	if (info.ssi_signo == SIGWINCH)
		sudo_tty_resize(t);
	for (size_t i = 0; i < PASSED; i++)
		if ((uint32_t)passed[i].signo == info.ssi_signo)
			send_signal(conn, passed[i].signo, passed[i].is_tree);
	if (info.ssi_signo == SIGTSTP)
		(void)raise(SIGSTOP);
}

/* What ends the command ends us in the same way. */
static int end_like(const struct guest_exit *e)
{
	sigset_t set;

	if (!(e->flags & EXIT_SIGNALED))
		return (int)e->code;
	(void)signal((int)e->code, SIG_DFL);
	(void)sigemptyset(&set);
	(void)sigaddset(&set, (int)e->code);
	(void)sigprocmask(SIG_UNBLOCK, &set, NULL);
	(void)raise((int)e->code);
	return 128 + (int)e->code;
}

/* A reset comes in front of frames that can still be read. */
static ssize_t receive(int conn, void *frame, size_t size, int *fd, size_t *n_fds)
{
	ssize_t n = fd_recv(conn, frame, size, fd, n_fds);

	if (n != -ECONNRESET)
		return n;
	*n_fds = 1;
	return fd_recv(conn, frame, size, fd, n_fds);
}

struct stay {
	int conn, signals;   /* borrowed */
	int server;          /* owned: a pidfd of who serves us; -1: not known yet */
	const char *program; /* borrowed */
	struct sudo_tty tty;
};

static void on_started(struct stay *s, struct rd *rd, int master)
{
	s->server = (int)syscall(SYS_pidfd_open, (pid_t)rd_u32(rd), 0);
	sudo_tty_begin(&s->tty, master);
}

/* Who looks for what an execution has left behind when we have ended must not find him. */
static void wait_for_server(struct stay *s)
{
	struct pollfd p = { .fd = s->server, .events = POLLIN };

	if (s->server >= 0)
		(void)poll(&p, 1, SERVER_MS);
	s->server = fd_close(s->server);
}

/* One frame; true when it was the last, and then *ret is how we end. */
static bool on_frame(struct stay *s, int *ret)
{
	uint8_t frame[1024];
	int master = -1;
	size_t n_fds = 1;
	ssize_t n = receive(s->conn, frame, sizeof(frame), &master, &n_fds);
	struct guest_exit end;
	struct wire_head head;
	struct rd rd;

	if (n <= 0 || wire_open(frame, (size_t)n, &head, &rd) < 0) {
		sudo_tty_end(&s->tty);
		*ret = fail("who ran the command is gone");
		return true;
	}
	if (head.type == G_STARTED) {
		on_started(s, &rd, master);
		return false;
	}
	sudo_tty_end(&s->tty);
	wait_for_server(s);
	if (head.type == G_EXIT && guest_get_exit(&rd, &end) == 0) {
		*ret = end_like(&end);
	} else if (rd_u32(&rd) == ENOENT && s->program) {
		(void)fprintf(stderr, NAME ": %s: command not found\n", s->program);
		*ret = FAILED;
	} else {
		*ret = fail(rd_str(&rd));
	}
	return true;
}

static int stay(struct stay *s)
{
	int ret = FAILED;

	for (;;) {
		struct sudo_ready ready = sudo_tty_wait(&s->tty, s->conn, s->signals);

		if (ready.signals)
			on_signal(s->conn, s->signals, &s->tty);
		if (ready.conn && on_frame(s, &ret))
			return ret;
	}
}

static int dial(struct err *err)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX, .sun_path = SUDO_PATH };
	_close_ int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (struct sockaddr *)&name, sizeof(name)) < 0)
		return err_set(err, errno, "nobody in this box may become root");
	return TAKE_FD(fd);
}

/* Of which there are no more than the machine gives: without privilege, one. */
static bool has_root(void)
{
	char text[256];

	if (fd_read_file_at(AT_FDCWD, "/proc/self/uid_map", text, sizeof(text)) < 0)
		return true;
	return text[strspn(text, " \t")] == '0';
}

/* Who is asked for must be there all the same. */
static int take_only_user(struct sudo_args *a, struct err *err)
{
	struct user u;
	int r = user_load(a->user[0] == '#' ? a->user + 1 : a->user, &u, err);

	if (r < 0 || u.uid == getuid())
		return r;
	(void)fprintf(stderr, NAME ": this box has one user: no change to '%s'\n", a->user);
	a->user = "#" ONLY_USER;
	return 0;
}

static int ask(int conn, const struct guest_exec *e, struct err *err)
{
	_free_ uint8_t *frame = malloc(WIRE_FRAME_MAX);
	_close_ int here = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	_close_ int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int fds[SUDO_FDS] = { 0, 1, 2, here };
	long n = frame ? guest_put_exec(frame, WIRE_FRAME_MAX, 0, e) : -ENOMEM;

	if (n < 0)
		return err_set(err, (int)-n, "the command and its variables are too long");
	if (here < 0)
		return err_sys(err, errno, "the working directory");
	for (int i = 0; i < 3; i++)
		if (fcntl(i, F_GETFD) < 0)
			fds[i] = null;
	n = fd_send(conn, frame, (size_t)n, fds, SUDO_FDS);
	/* Who refuses need not have heard us out; what he said can be read. */
	return n < 0 && n != -EPIPE ? err_sys(err, (int)n, "ask for the command") : 0;
}

static int run(struct sudo_args *a, const char *const *now)
{
	_free_ struct sudo_text *text = sudo_text_create();
	struct err err = { 0 };
	_close_ int conn = dial(&err), signals = -1;
	struct guest_exec e;

	if (conn < 0)
		return fail(err.text);
	if (!text)
		return fail(strerror(ENOMEM));
	if (!has_root() && take_only_user(a, &err) < 0)
		return fail(err.text);
	if (sudo_fill(a, now, text, &e, &err) < 0)
		return fail(err.text);
	if (!a->is_background && sudo_tty_is_wanted())
		e.flags |= EXEC_PTY;
	signals = open_signals();
	if (signals < 0 || ask(conn, &e, &err) < 0)
		return fail(signals < 0 ? strerror(errno) : err.text);
	return stay(&(struct stay){
		.conn = conn,
		.signals = signals,
		.server = -1,
		.program = e.argv[0],
		.tty = { .master = -1 },
	});
}

int sudo_main(int argc, char **argv)
{
	struct err err = { 0 };
	struct sudo_args a;

	if (sudo_parse_args(argc, (const char *const *)argv, &a, &err) < 0)
		return fail(err.text);
	switch (a.mode) {
	case SUDO_HELP:
		(void)puts("usage: sudo [-EHbins] [-D dir] [-u user] [NAME=value] [command]");
		return 0;
	case SUDO_VERSION:
		(void)puts("sudo of a Holt box: asks nothing, and gives what the box has");
		return 0;
	case SUDO_LIST:
		(void)puts("(ALL : ALL) NOPASSWD: ALL");
		return 0;
	case SUDO_VALIDATE:
		return 0;
	default:
		if (a.is_background && fork() != 0)
			return 0;
		return run(&a, (const char *const *)environ);
	}
}
