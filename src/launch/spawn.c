/* A new process in new namespaces, on its way to become holt-init: cloned by the launcher, or by a
 * seed that already is in the box's cgroup. */
#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "launch/launch.h"
#include "spec/guest.h"

/* Under memory pressure of the whole machine the boxes go first. */
#define OOM_SCORE "500"

/* What the new process works with; descriptors are borrowed. */
enum spawn_fd { FD_SOCK, FD_MOUNTS, FD_NET, FD_USER, FD_COUNT };
struct order {
	struct box_plan plan;
	uint8_t profile;
};

static int become_init(struct launch *l, const struct order *o, const int fds[FD_COUNT],
		       struct err *err)
{
	const struct box_plan *plan = &o->plan;
	int r = 0;

	/* After the cgroup, so that the box sees a root and not where it is. */
	if (unshare(CLONE_NEWCGROUP) < 0)
		r = err_sys(err, errno, "cgroup namespace");
	(void)fd_write_file_at(l->proc_fd, "self/oom_score_adj", OOM_SCORE);
	if (r == 0)
		r = box_mount(plan, err);
	/* Last of the namespaces: the others are not the box's own to command. */
	if (r == 0 && setns(fds[FD_USER], CLONE_NEWUSER) < 0)
		r = err_sys(err, errno, "user namespace");
	if (r == 0)
		r = box_become_root(plan, err);
	if (r == 0)
		r = box_confine(plan, true, err);
	return r < 0 ? r : box_exec_init(plan, fds[FD_SOCK], -1, err);
}

static void child(struct launch *l, const struct order *o, const int fds[FD_COUNT])
{
	char frame[512];
	struct err err = { 0 };
	int r = become_init(l, o, fds, &err);
	long n = guest_put_error(frame, sizeof(frame), 0, -r, err.text);

	if (n > 0)
		(void)send(fds[FD_SOCK], frame, (size_t)n, MSG_NOSIGNAL);
	_exit(1);
}

/* -errno, or the new process: always a child of the launcher. */
static long clone_box(struct launch *l, const struct order *o, const int fds[FD_COUNT],
		      const struct clone_args *how)
{
	struct clone_args args = *how;
	long pid;

	args.flags |= CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS;
	if (setns(fds[FD_NET], CLONE_NEWNET) < 0 || setns(fds[FD_MOUNTS], CLONE_NEWNS) < 0)
		return -errno;
	pid = syscall(SYS_clone3, &args, sizeof(args));
	if (pid == 0)
		child(l, o, fds);
	return pid < 0 ? -errno : pid;
}

/* Waits in its cgroup for orders, with no descriptor but the few it needs: one more end of a box's
 * socket would keep that box alive. */
void spawn_seed(struct launch *l, struct cgroup *cg, int sock)
{
	struct clone_args how = { .flags = CLONE_PARENT };
	int keep[] = { sock, l->proc_fd, l->init_fd };
	long pid = cgroups_ops(l->cgroups)->attach(cg, 0, NULL);

	/* What it clones has this session keyring, empty and without a way to reach it. */
	(void)syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL, 0, 0, 0);
	for (int i = 0; i < 3; i++)
		keep[i] = fcntl(keep[i], F_DUPFD_CLOEXEC, 10000);
	for (int i = 0; i < 3; i++)
		if (dup3(keep[i], 3 + i, O_CLOEXEC) < 0)
			_exit(1);
	if (syscall(SYS_close_range, 6, ~0u, 0) < 0)
		_exit(1);
	l->proc_fd = 4;
	l->init_fd = 5;
	for (;;) {
		struct order o;
		int fds[FD_COUNT];
		size_t nfds = FD_COUNT;
		ssize_t n = fd_recv(3, &o, sizeof(o), fds, &nfds);

		if (n != (ssize_t)sizeof(o) || nfds != FD_COUNT)
			_exit(0); /* the launcher is gone or has no more use for us */
		o.plan.init_fd = l->init_fd;
		o.plan.filter = l->filters[o.profile].insn;
		if (pid >= 0)
			pid = clone_box(l, &o, fds, &how);
		for (int i = 0; i < FD_COUNT; i++)
			(void)close(fds[i]);
		(void)fd_send(3, &pid, sizeof(pid), NULL, 0);
	}
}

static long order_seed(struct cell *cell, const struct order *o, const int fds[FD_COUNT])
{
	long pid = -EPIPE;
	size_t none = 0;

	if (fd_send(cell->seed_sock, o, sizeof(*o), fds, FD_COUNT) != (ssize_t)sizeof(*o) ||
	    fd_recv(cell->seed_sock, &pid, sizeof(pid), NULL, &none) != (ssize_t)sizeof(pid))
		return -EPIPE;
	return pid;
}

static long clone_here(struct launch *l, struct box *b, const struct order *o,
		       const int fds[FD_COUNT])
{
	struct clone_args how = { .exit_signal = SIGCHLD };
	int cgroup_fd = cgroups_ops(l->cgroups)->spawn_fd(b->cell.cgroup);

	if (cgroup_fd >= 0) {
		how.flags = CLONE_INTO_CGROUP;
		how.cgroup = (uint64_t)cgroup_fd;
	}
	return clone_box(l, o, fds, &how);
}

int spawn_box(struct launch *l, struct box *b, int child_sock, struct err *err)
{
	struct order o = { .plan = b->plan, .profile = b->tmpl->profile };
	_close_ int net = b->plan.net == NET_HOST ? fcntl(l->netns.host_fd, F_DUPFD_CLOEXEC, 3)
						  : netns_take(&l->netns, err);
	int fds[FD_COUNT] = { child_sock, b->tmpl->mount_ns, net, b->cell.user_ns };
	long pid;

	if (net < 0)
		return err->code ? -err->code : err_sys(err, errno, "the machine's network");
	pid = b->cell.seed > 0 ? order_seed(&b->cell, &o, fds) : clone_here(l, b, &o, fds);
	if (pid < 0)
		return err_sys(err, (int)pid, "new process with its namespaces");
	b->pid = (pid_t)pid;
	b->cell.user_ns = fd_close(b->cell.user_ns); /* kept by the box */
	return 0;
}
