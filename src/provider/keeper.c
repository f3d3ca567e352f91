#include "provider/keeper.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"
#include "provider/keeper_impl.h"

#define CLIENT_WAIT_MS 15000u
#define FIRST_DELAY_MS 100u /* between the first two launchers; doubles from one to the next */
#define LAST_DELAY_MS 1000u
#define STEADY_MS 10000u  /* a launcher that lived as long was none of a row of failures */
#define FAREWELL_MS 3000u /* for the launcher to end, once the daemon has */

struct keeper {
	const struct launcher_options *options;
	int sock;       /* owned: the daemon's requests; -1 once it has closed its end */
	int signal_fd;  /* owned */
	pid_t daemon;   /* 0 once it has ended */
	int status;     /* of its end */
	pid_t launcher; /* 0: none */
	bool is_killed; /* the launcher, by us */
	bool is_asked;
	uint8_t number; /* of the request that waits */
	uint64_t started_ms;
	unsigned delay_ms; /* from that start to the next */
};

/* Forwards what the service manager says to the one who heeds it. What the terminal sent, it has
 * sent to the daemon too: twice would mean something else. */
static void forward(const struct keeper *k, const struct signalfd_siginfo *info)
{
	bool is_from_terminal = info->ssi_code == SI_KERNEL && getpgid(k->daemon) == getpgrp();

	if (k->daemon > 0 && !is_from_terminal)
		(void)kill(k->daemon, (int)info->ssi_signo);
}

static void report_end(const char *who, int status)
{
	if (WIFSIGNALED(status))
		log_error("keeper", "%s was killed by signal %d (%s)", who, WTERMSIG(status),
			  strsignal(WTERMSIG(status)));
}

/* Everybody who was ours to wait for: as PID 1 of a container that is more than these two. */
static void reap(struct keeper *k)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid == k->daemon) {
			k->daemon = 0;
			k->status = status;
			report_end("the daemon", status);
		} else if (pid == k->launcher) {
			k->launcher = 0;
			if (!k->is_killed)
				report_end("holt-launch", status);
		}
	}
}

static void on_signals(struct keeper *k)
{
	struct signalfd_siginfo info;

	while (read(k->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		if (info.ssi_signo != SIGCHLD)
			forward(k, &info);
	reap(k);
}

/* The daemon is not trusted: all it can say is one byte. */
static void on_request(struct keeper *k)
{
	size_t nfds = 0;
	uint8_t number;
	ssize_t n = fd_recv(k->sock, &number, 1, NULL, &nfds);

	if (n == 1) {
		k->is_asked = true;
		k->number = number;
	} else if (n != -EAGAIN && n != -EMSGSIZE) {
		k->sock = fd_close(k->sock);
	}
}

static void send_answer(const struct keeper *k, const struct err *err, int sock)
{
	struct keeper_answer a;

	memset(&a, 0, sizeof(a));
	a.number = k->number;
	a.code = -err->code;
	a.pid = k->launcher;
	(void)str_copy(a.text, sizeof(a.text), err->text);
	/* Nobody there, or not reading: the launcher then finds its socket closed. */
	(void)fd_send(k->sock, &a, sizeof(a), &sock, sock >= 0 ? 1 : 0);
}

static void start_launcher(struct keeper *k)
{
	uint64_t now = clock_now_ms();
	struct err err = { 0 };
	_close_ int sock = -1;

	if (now - k->started_ms >= STEADY_MS)
		k->delay_ms = 0;
	k->delay_ms = k->delay_ms == 0 ? FIRST_DELAY_MS : k->delay_ms * 2;
	if (k->delay_ms > LAST_DELAY_MS)
		k->delay_ms = LAST_DELAY_MS;
	k->started_ms = now;
	k->is_killed = false;
	k->is_asked = false;
	if (launcher_spawn(k->options, &sock, &k->launcher, &err) < 0)
		k->launcher = 0;
	send_answer(k, &err, sock);
}

/* How long until a launcher may be started; 0: now. */
static uint64_t delay_left(const struct keeper *k)
{
	uint64_t passed = clock_now_ms() - k->started_ms;

	return passed >= k->delay_ms ? 0 : k->delay_ms - passed;
}

/* There is never more than one: the former goes first, and is waited for. */
static void try_launcher(struct keeper *k)
{
	if (k->launcher > 0) {
		k->is_killed = true;
		(void)kill(k->launcher, SIGKILL);
	} else if (delay_left(k) == 0) {
		start_launcher(k);
	}
}

/* One request at a time: while it waits, the next stays in the socket. */
static void turn(struct keeper *k, int timeout_ms)
{
	struct pollfd p[2] = {
		{ .fd = k->signal_fd, .events = POLLIN },
		{ .fd = k->is_asked ? -1 : k->sock, .events = POLLIN },
	};

	if (poll(p, 2, timeout_ms) <= 0)
		return;
	if (p[0].revents)
		on_signals(k);
	if (p[1].revents)
		on_request(k);
}

static int serve(struct keeper *k)
{
	uint64_t end_ms;

	reap(k); /* SIGCHLD's default action, once set, forgets one that came before */
	while (k->daemon > 0) {
		bool is_delayed = k->is_asked && k->launcher == 0;

		turn(k, is_delayed ? (int)delay_left(k) : -1);
		if (k->is_asked && k->daemon > 0)
			try_launcher(k);
	}
	/* The launcher has found its socket closed. It needs no help to end, but who starts the
	 * next daemon when we have ended should find nothing of this one. */
	end_ms = clock_now_ms() + FAREWELL_MS;
	for (uint64_t now; k->launcher > 0 && (now = clock_now_ms()) < end_ms;)
		turn(k, (int)(end_ms - now));
	return WIFSIGNALED(k->status) ? 128 + WTERMSIG(k->status) : WEXITSTATUS(k->status);
}

static void fill_signals(sigset_t *set)
{
	(void)sigemptyset(set);
	(void)sigaddset(set, SIGCHLD);
	(void)sigaddset(set, SIGTERM);
	(void)sigaddset(set, SIGINT);
	(void)sigaddset(set, SIGHUP);
}

/* The parent from here to its end. It is nearly always root and stays it, so it holds and does next
 * to nothing. */
static _Noreturn void be_keeper(const struct launcher_options *o, int sock, int state, pid_t daemon)
{
	struct keeper k = { .options = o, .sock = sock, .daemon = daemon };
	sigset_t set;

	fill_signals(&set);
	(void)signal(SIGCHLD, SIG_DFL);
	(void)signal(SIGPIPE, SIG_IGN);
	(void)prctl(PR_SET_NAME, "holt-keeper", 0, 0, 0);
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	(void)clearenv();
	(void)chdir("/");
	(void)fd_nonblock(sock, true);
	k.signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (k.signal_fd < 0) {
		/* The daemon finds nobody at its socket and says so. */
		log_error("keeper", "signals: %s", strerror(errno));
		_exit(1);
	}
	fd_close_others(STDERR_FILENO + 1, (const int[]){ sock, k.signal_fd, state }, 3);
	_exit(serve(&k));
}

int keeper_start(const struct launcher_options *o, struct keeper_client *ret, struct err *err)
{
	_close_ int state = o->persistent ? o->state_fd : -1, near = -1, far = -1;
	sigset_t set, old;
	int pair[2];
	pid_t keeper = getpid(), pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(err, errno, "socketpair");
	near = pair[0];
	far = pair[1];
	/* Blocked before the fork: what comes from now on waits for the keeper to forward it. */
	fill_signals(&set);
	(void)sigprocmask(SIG_BLOCK, &set, &old);
	pid = fork();
	if (pid > 0)
		be_keeper(o, far, state, pid);
	(void)sigprocmask(SIG_SETMASK, &old, NULL);
	if (pid < 0)
		return err_sys(err, errno, "fork");
	(void)prctl(PR_SET_NAME, "holt", 0, 0, 0); /* of who was started as /proc/self/exe, too */
	(void)fd_nonblock(near, true);
	*ret = (struct keeper_client){ .sock = TAKE_FD(near),
				       .keeper = keeper,
				       .wait_ms = CLIENT_WAIT_MS };
	return 0;
}
