/* A new process in new namespaces, on its way to become holt-init. */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "launch/launch.h"
#include "spec/guest.h"

/* Under memory pressure of the whole machine the boxes go first. */
#define OOM_SCORE "500"

/* The launcher writes the id maps: it alone may hand out ranges. */
static int enter_user_namespace(int sock, struct err *err)
{
	char word = 'u';
	ssize_t n;

	if (unshare(CLONE_NEWUSER) < 0)
		return err_sys(err, errno, "user namespace");
	if (send(sock, &word, 1, MSG_NOSIGNAL) != 1)
		return err_sys(err, errno, "ask for id maps");
	do
		n = recv(sock, &word, 1, 0);
	while (n < 0 && errno == EINTR);
	return n == 1 ? 0 : err_set(err, EPIPE, "the launcher is gone");
}

/* By itself, where it was not born into it: with v1 this can wait 10 ms for the kernel, and the
 * launcher has others to serve. The namespace comes after it and so shows a root. */
static int enter_cgroup(struct launch *l, struct box *b, struct err *err)
{
	const struct cgroup_ops *ops = cgroups_ops(l->cgroups);
	int r = ops->spawn_fd(b->cgroup) < 0 ? ops->attach(b->cgroup, 0, err) : 0;

	if (r == 0 && unshare(CLONE_NEWCGROUP) < 0)
		r = err_sys(err, errno, "cgroup namespace");
	return r;
}

static int become_init(struct launch *l, struct box *b, int sock, struct err *err)
{
	int r = enter_cgroup(l, b, err);

	(void)fd_write_file_at(l->proc_fd, "self/oom_score_adj", OOM_SCORE);
	if (r == 0)
		r = box_mount(&b->plan, err);
	if (r == 0)
		r = enter_user_namespace(sock, err);
	if (r == 0)
		r = box_become_root(&b->plan, err);
	if (r == 0)
		r = box_confine(&b->plan, true, err);
	return r < 0 ? r : box_exec_init(&b->plan, sock, -1, err);
}

static void child(struct launch *l, struct box *b, int sock)
{
	char frame[512];
	struct err err = { 0 };
	int r = become_init(l, b, sock, &err);
	long n = guest_put_error(frame, sizeof(frame), 0, -r, err.text);

	if (n > 0)
		(void)send(sock, frame, (size_t)n, MSG_NOSIGNAL);
	_exit(1);
}

static int enter_template(struct launch *l, struct box *b, struct err *err)
{
	int r = b->plan.net == NET_HOST ? netns_enter_host(&l->netns, err)
					: netns_enter_new(&l->netns, err);

	if (r < 0)
		return r;
	if (setns(b->tmpl->mount_ns, CLONE_NEWNS) < 0)
		return err_sys(err, errno, "enter the template's mounts");
	return 0;
}

int spawn_box(struct launch *l, struct box *b, int child_sock, struct err *err)
{
	int cgroup_fd = cgroups_ops(l->cgroups)->spawn_fd(b->cgroup);
	struct clone_args args = {
		.flags = CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS,
		.exit_signal = SIGCHLD,
	};
	int r = enter_template(l, b, err);
	long pid;

	if (r < 0)
		return r;
	if (cgroup_fd >= 0) {
		args.flags |= CLONE_INTO_CGROUP;
		args.cgroup = (uint64_t)cgroup_fd;
	}
	pid = syscall(SYS_clone3, &args, sizeof(args));
	if (pid < 0)
		return err_sys(err, errno, "new process with its namespaces");
	if (pid == 0)
		child(l, b, child_sock);
	b->pid = (pid_t)pid;
	return 0;
}
