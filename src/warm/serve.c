#include "warm/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include "launch/box.h"
#include "launch/mounts.h"
#include "launch/netns.h"
#include "launch/zygote.h"
#include "spec/guest.h"
#include "spec/warm.h"
#include "warm/python.h"
#include "warm/worker.h"

#define REAP_MS 50

/* One box to be made, in the process that makes it. */
struct job {
	struct zygote_make make;
	int fds[ZYGOTE_FDS]; /* owned; -1: did not come */
};

/* Says one word to the launcher, which learns from the kernel who spoke, and waits for its leave.
 */
static int ask(int sock, char word, struct err *err)
{
	if (fd_send(sock, &word, 1, NULL, 0) == 1 && fd_recv(sock, &word, 1, NULL, NULL) == 1)
		return 0;
	return err_set(err, EPIPE, "the launcher is gone");
}

/* Programs expect localhost to work, also without a network. */
static int loopback_up(void)
{
	struct ifreq req = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
	_close_ int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	return sock < 0 || ioctl(sock, SIOCSIFFLAGS, &req) < 0 ? -errno : 0;
}

/* As launch/netns.c does it for all others; where it cannot be set, the kernel's limit holds. */
static void bound_lingering(void)
{
	(void)fd_write_file_at(AT_FDCWD, "/proc/sys/net/ipv4/tcp_max_tw_buckets",
			       NETNS_LINGERING_MAX);
}

static int limit_watches(struct err *err)
{
	_close_ int proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);

	return proc < 0 ? err_sys(err, errno, "/proc") : box_limit_watches(proc, err);
}

/* The box's user namespace comes first, and gives the right to all the others. */
static int make_namespaces(struct job *j, struct err *err)
{
	int flags = CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP | CLONE_NEWPID;
	bool has_net = j->make.plan.net == NET_NONE;
	int r;

	if (unshare(CLONE_NEWUSER) < 0)
		return err_sys(err, errno, "user namespace");
	r = ask(j->fds[ZYGOTE_SOCK], ZYGOTE_MAPS, err);
	if (r == 0)
		r = limit_watches(err);
	if (r == 0)
		r = box_become_root(&j->make.plan, err);
	if (r < 0)
		return r;
	if (unshare(flags | (has_net ? CLONE_NEWNET : 0)) < 0)
		return err_sys(err, errno, "namespaces");
	if (has_net)
		bound_lingering();
	r = has_net ? loopback_up() : 0;
	return r < 0 ? err_sys(err, r, "loopback device") : 0;
}

/* The box is built in a copy of the template's tree that the launcher made for it: the mounts of
 * our own are locked together in a new user namespace, and no overlay could be made of them. Our
 * own tree, with the /proc that allows to mount another, lies on top of that copy meanwhile:
 * entering the box's root takes it off, and the copy itself is taken off here. */
static int make_root(struct job *j, struct err *err)
{
	int r = mounts_attach(j->fds[ZYGOTE_TREE], ZYGOTE_STAGE, err);

	if (r < 0)
		return r;
	if (chdir(ZYGOTE_STAGE) < 0 || syscall(SYS_pivot_root, ".", ".") < 0)
		return err_sys(err, errno, "enter the template's tree");
	r = box_mount(&j->make.plan, err);
	if (r == 0 && umount2("/", MNT_DETACH) < 0)
		r = err_sys(err, errno, "take off the template's tree");
	return r;
}

/* PID 1 of the box: forks the in-box template, then is holt-init. Both stand behind the same walls,
 * and behind one and the same of each: Landlock lets nobody signal past his own, and holt-init must
 * be able to end what the template forks. */
static int become_init(struct python *py, struct job *j, struct err *err)
{
	int pair[2], r;
	pid_t pid;

	r = ask(j->fds[ZYGOTE_SOCK], ZYGOTE_INIT_IS, err);
	if (r == 0)
		r = make_root(j, err);
	if (r == 0)
		r = box_confine(&j->make.plan, true, err);
	if (r < 0)
		return r;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(err, errno, "interpreter's socket");
	pid = fork();
	if (pid < 0)
		return err_sys(err, errno, "fork the interpreter");
	if (pid == 0)
		worker_serve(py, pair[1]);
	return box_exec_init(&j->make.plan, j->fds[ZYGOTE_SOCK], pair[0], err);
}

static _Noreturn void give_up(struct job *j, const struct err *err)
{
	char frame[512];
	long n = guest_put_error(frame, sizeof(frame), 0, err->code, err->text);

	if (n > 0)
		(void)fd_send(j->fds[ZYGOTE_SOCK], frame, (size_t)n, NULL, 0);
	_exit(1);
}

/* In a child of the template interpreter's. Its own child is the box; it ends at once, so that the
 * launcher, which is the reaper of all orphans, becomes the box's parent. */
static _Noreturn void make_box(struct python *py, struct job *j)
{
	struct err err = { 0 };
	pid_t pid;

	(void)close(SERVE_FD);
	j->make.plan.init_fd = j->fds[ZYGOTE_INIT];
	j->make.plan.dev_fd = j->fds[ZYGOTE_DEV] < 0 ? 0 : j->fds[ZYGOTE_DEV];
	j->make.plan.room_fd = j->fds[ZYGOTE_ROOM] < 0 ? 0 : j->fds[ZYGOTE_ROOM];
	j->make.plan.filter = j->make.filter;
	if (make_namespaces(j, &err) < 0)
		give_up(j, &err);
	pid = fork();
	if (pid < 0) {
		(void)err_sys(&err, errno, "first process of the box");
		give_up(j, &err);
	}
	if (pid == 0) {
		(void)become_init(py, j, &err);
		give_up(j, &err);
	}
	_exit(0);
}

static int receive(struct job *j)
{
	size_t nfds = ZYGOTE_FDS;
	ssize_t n = fd_recv(SERVE_FD, &j->make, sizeof(j->make), j->fds, &nfds);

	if (n <= 0)
		return n < 0 ? (int)n : -EPIPE;
	for (size_t i = nfds; i < ZYGOTE_FDS; i++)
		j->fds[i] = -1;
	if ((size_t)n != sizeof(j->make) || nfds < ZYGOTE_DEV ||
	    j->make.plan.filter_len > SECCOMP_INSN_MAX)
		return -EPROTO;
	return 0;
}

/* Children are short-lived; while there are any, they are looked after every now and then. */
static void wait_for_order(unsigned *children)
{
	struct pollfd p = { .fd = SERVE_FD, .events = POLLIN };

	while (poll(&p, 1, *children ? REAP_MS : -1) <= 0 || p.revents == 0)
		while (*children && waitpid(-1, NULL, WNOHANG) > 0)
			--*children;
}

int serve_boxes(struct python *py)
{
	struct job j;
	unsigned children = 0;
	char word = ZYGOTE_READY;

	if (fd_send(SERVE_FD, &word, 1, NULL, 0) != 1)
		return 1;
	for (;;) {
		pid_t pid;

		wait_for_order(&children);
		if (receive(&j) < 0)
			return 0;
		pid = fork();
		if (pid == 0)
			make_box(py, &j);
		children += pid > 0;
		for (int i = 0; i < ZYGOTE_FDS; i++)
			(void)fd_close(
				j.fds[i]); /* a failed fork is seen as the end of the socket */
	}
}

int serve_failed(const struct err *err)
{
	struct warm_failed f = { .code = err->code };

	(void)str_format(f.text, sizeof(f.text), "%.*s", (int)sizeof(f.text) - 1, err->text);
	(void)fd_send(SERVE_FD, &f, sizeof(f), NULL, 0);
	return 1;
}
