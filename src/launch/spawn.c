/* A new process in new namespaces, on its way to become holt-init: cloned by the launcher, or by a
 * seed that already is in the box's cgroup. */
#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"
#include "launch/fittings.h"
#include "launch/launch.h"
#include "launch/process.h"
#include "launch/sysdirs.h"
#include "spec/guest.h"

#define CHILD_STACK (64u << 10)

/* What the new process works with; descriptors are borrowed. */
enum spawn_fd { FD_SOCK, FD_MOUNTS, FD_NET, FD_USER, FD_COUNT };
/* Layers, volumes and a room follow. */
#define FDS_MAX (FD_COUNT + BOX_LAYERS_MAX + VOLUMES_MAX + 1)

struct order {
	struct box_plan plan;
	uint8_t profile;
};

static int become_init(const struct order *o, const int fds[FD_COUNT], struct err *err)
{
	const struct box_plan *plan = &o->plan;
	int r = 0;

	/* After the cgroup, so that the box sees a root and not where it is. */
	if (unshare(CLONE_NEWCGROUP) < 0)
		r = err_sys(err, errno, "cgroup namespace");
	/* Not before the clone: who has left the machine's network may not be able to come back. */
	if (r == 0 && plan->net == NET_NONE && setns(fds[FD_NET], CLONE_NEWNET) < 0)
		r = err_sys(err, errno, "network namespace");
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

static void child(const struct order *o, const int fds[FD_COUNT])
{
	char frame[512];
	struct err err = { 0 };
	int r = become_init(o, fds, &err);
	long n = guest_put_error(frame, sizeof(frame), 0, -r, err.text);

	if (n > 0)
		(void)send(fds[FD_SOCK], frame, (size_t)n, MSG_NOSIGNAL);
	_exit(1);
}

#define NAMESPACES (CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS)

static int enter_template(const int fds[FD_COUNT])
{
	return setns(fds[FD_MOUNTS], CLONE_NEWNS) < 0 ? -errno : 0;
}

/* What a seed's child is given, and the stack it runs on. */
struct birth {
	struct order order;
	int fds[FDS_MAX];
	_Alignas(16) char stack[CHILD_STACK];
};

static int born(void *arg)
{
	struct birth *b = arg;

	child(&b->order, b->fds);
	return 1;
}

/* The child runs in the seed's memory until it is holt-init: nothing is copied, nothing faults. The
 * seed meanwhile only waits, and its next order comes after that box has ended. CLONE_PARENT: the
 * box is the launcher's child. */
static long clone_from_seed(struct birth *b)
{
	long r = enter_template(b->fds);

	if (r < 0)
		return r;
#if defined(__SANITIZE_ADDRESS__) /* a stack that is left without return would stay poisoned */
	r = syscall(SYS_clone3, &(struct clone_args){ .flags = CLONE_PARENT | NAMESPACES },
		    sizeof(struct clone_args));
	if (r == 0)
		(void)born(b);
#else
	r = clone(born, b->stack + sizeof(b->stack), CLONE_PARENT | CLONE_VM | NAMESPACES, b);
#endif
	return r < 0 ? -errno : r;
}

/* Leaves a seed with nothing open but its socket, /proc, holt-init and holt-warm.so: one more end
 * of a box's socket would keep that box alive. */
static int keep_only(int sock, struct launch *l)
{
	int keep[] = { sock, l->proc_fd, l->init_fd, l->lib_fd };
	int n = l->lib_fd < 0 ? 3 : 4;

	for (int i = 0; i < n; i++)
		keep[i] = fcntl(keep[i], F_DUPFD_CLOEXEC, 16);
	for (int i = 0; i < n; i++)
		if (keep[i] < 0 || dup3(keep[i], 3 + i, O_CLOEXEC) < 0)
			return -errno;
	l->proc_fd = 4;
	l->init_fd = 5;
	l->lib_fd = n == 4 ? 6 : -1;
	return syscall(SYS_close_range, 3 + n, ~0u, 0) < 0 ? -errno : 0;
}

static size_t count_fds(const struct box_plan *plan)
{
	return (size_t)FD_COUNT + plan->n_layers + plan->n_volumes + (plan->room_fd ? 1 : 0);
}

/* What layers, volumes and a room are called here. */
static void number_fds(struct box_plan *plan, const int fds[FDS_MAX])
{
	for (int i = 0; i < plan->n_layers; i++)
		plan->layer_fds[i] = fds[FD_COUNT + i];
	for (int i = 0; i < plan->n_volumes; i++)
		plan->volume_fds[i] = fds[FD_COUNT + plan->n_layers + i];
	if (plan->room_fd)
		plan->room_fd = fds[FD_COUNT + plan->n_layers + plan->n_volumes];
}

/* Waits in its cgroup for orders. */
void spawn_seed(struct launch *l, struct cgroup *cg, int sock)
{
	struct birth *b = malloc(sizeof(*b));
	long pid = cgroup_ops_of(cg)->attach(cg, 0, NULL); /* said first: 0, or why not */

	/* What it clones has this session keyring, empty and without a way to reach it. */
	(void)syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL, 0, 0, 0);
	if (!b || keep_only(sock, l) < 0 || fd_send(3, &pid, sizeof(pid), NULL, 0) < 0 || pid < 0)
		_exit(1); /* whoever asks again hears the end: waiting, both would wait for good */
	memset(b->stack, 0, sizeof(b->stack)); /* touched now, not by the first box */
	for (;;) {
		size_t nfds = FDS_MAX;
		ssize_t n = fd_recv(3, &b->order, sizeof(b->order), b->fds, &nfds);

		if (n != (ssize_t)sizeof(b->order) || nfds != count_fds(&b->order.plan))
			_exit(0); /* the launcher is gone or has no more use for us */
		b->order.plan.init_fd = l->init_fd;
		if (b->order.plan.lib_fd >= 0)
			b->order.plan.lib_fd = l->lib_fd;
		b->order.plan.filter = l->filters[b->order.profile].insn;
		number_fds(&b->order.plan, b->fds);
		pid = clone_from_seed(b);
		(void)fd_send(3, &pid, sizeof(pid), NULL, 0);
		for (size_t i = 0; i < nfds; i++)
			(void)close(b->fds[i]);
	}
}

static long hear_seed(struct cell *cell)
{
	long said = -EPIPE;
	size_t none = 0;

	if (process_hear(cell->seed_sock, PROCESS_HELPER_MS) < 0) {
		cell->seed_is_late = true;
		return -ETIMEDOUT;
	}
	if (fd_recv(cell->seed_sock, &said, sizeof(said), NULL, &none) != (ssize_t)sizeof(said)) {
		cell->seed_is_late = true; /* it has ended, or is about to: not taken again */
		return -EPIPE;
	}
	return said;
}

int spawn_seed_is_in(struct cell *cell)
{
	long r = cell->seed == 0 || cell->seed_is_in ? 0 : hear_seed(cell);

	cell->seed_is_in = r == 0;
	return (int)r;
}

static long order_seed(struct cell *cell, const struct order *o, const int *fds)
{
	long r = spawn_seed_is_in(cell);

	if (r < 0)
		return r;
	if (fd_send(cell->seed_sock, o, sizeof(*o), fds, count_fds(&o->plan)) !=
	    (ssize_t)sizeof(*o))
		return -EPIPE;
	return hear_seed(cell);
}

static long clone_here(struct box *b, const struct order *o, const int fds[FD_COUNT])
{
	int cgroup_fd = cgroup_ops_of(b->cell.cgroup)->spawn_fd(b->cell.cgroup);
	struct clone_args args = { .flags = NAMESPACES, .exit_signal = SIGCHLD };
	long pid = enter_template(fds);

	if (pid < 0)
		return pid;
	if (cgroup_fd >= 0) {
		args.flags |= CLONE_INTO_CGROUP;
		args.cgroup = (uint64_t)cgroup_fd;
	}
	pid = syscall(SYS_clone3, &args, sizeof(args));
	if (pid == 0)
		child(o, fds);
	return pid < 0 ? -errno : pid;
}

/* EACCES is v2's word when its groups are another part of the tree than ours and not ours to cross
 * to: the boxes that are there were started from there. */
static int explain_clone(int r, struct err *err)
{
	if (r == -EACCES)
		return err_set(err, EACCES,
			       "the control group of the boxes cannot be entered from here: start "
			       "this where it was started before, as with systemd-run --user "
			       "--scope -p Delegate=yes");
	return err_sys(err, r, "new process with its namespaces");
}

/* The mounts of layers are ours until the box has its own of them. */
static void drop_disk(const struct box_plan *plan, int *fds)
{
	for (int i = 0; i < plan->n_layers; i++)
		fds[FD_COUNT + i] = fd_close(fds[FD_COUNT + i]);
}

/* Below all layers: directories that the box's root may write to. */
static int add_sysdirs(struct launch *l, struct box *b, struct box_plan *plan, int *fds,
		       struct err *err)
{
	struct err why = { 0 };
	int r;

	if (!sysdirs_are_for(l, &b->tmpl->spec))
		return 0;
	r = sysdirs_mount(l, &b->cell, &why);
	if (r == -EOPNOTSUPP) { /* as if there were none */
		if (!l->sysdirs_failed)
			log_warn("launch", "the root of boxes cannot write to /usr: %s", why.text);
		l->sysdirs_failed = true;
		return 0;
	}
	if (r < 0)
		return err_copy(err, &why);
	fds[FD_COUNT + plan->n_layers++] = r;
	return 0;
}

/* Below those: what such a template has beside the machine's programs. */
static int add_fittings(struct launch *l, struct box *b, struct box_plan *plan, int *fds,
			struct err *err)
{
	int r;

	if (!(b->tmpl->spec.flags & TEMPLATE_SUDO))
		return 0;
	r = fittings_mount(l, b->tmpl, &b->cell, err);
	if (r >= 0)
		fds[FD_COUNT + plan->n_layers++] = r;
	return r < 0 ? r : 0;
}

static int add_disk(struct launch *l, struct box *b, struct box_plan *plan, int *fds,
		    struct err *err)
{
	struct disk_use *u = b->disk;
	bool has_image = plan->root == ROOT_LAYERS; /* which is the first, below all else */
	int r = has_image ? 0 : add_fittings(l, b, plan, fds, err);

	if (r == 0)
		r = add_sysdirs(l, b, plan, fds, err);
	for (uint32_t i = 0; u && i < u->n_layers && r >= 0; i++) {
		r = disk_mount_layer(l, u->layers[i], &b->cell, err);
		if (r >= 0)
			fds[FD_COUNT + plan->n_layers++] = r;
		if (r >= 0 && i == 0 && has_image)
			r = add_fittings(l, b, plan, fds, err);
	}
	for (uint32_t i = 0; u && i < u->n_volumes && r >= 0; i++) {
		r = disk_map_volume(l, &u->volumes[i], &b->cell, err);
		fds[FD_COUNT + plan->n_layers + plan->n_volumes] = u->volumes[i].fd;
		(void)str_copy(plan->volume_paths[plan->n_volumes++], VOLUME_PATH_MAX + 1,
			       u->volumes[i].path);
	}
	if (r < 0) {
		drop_disk(plan, fds);
		return r;
	}
	if (b->room_fd >= 0)
		fds[FD_COUNT + plan->n_layers + plan->n_volumes] = plan->room_fd = b->room_fd;
	number_fds(plan, fds);
	return 0;
}

int spawn_box(struct launch *l, struct box *b, int child_sock, struct err *err)
{
	struct order o = { .plan = b->plan, .profile = b->tmpl->profile };
	_close_ int net = b->plan.net == NET_HOST ? fcntl(l->netns.host_fd, F_DUPFD_CLOEXEC, 3)
						  : netns_take(&l->netns, err);
	int fds[FDS_MAX] = { child_sock, b->tmpl->mount_ns, net, b->cell.user_ns };
	long pid;

	if (net < 0)
		return err_code(err) ? err_result(err, EIO)
				     : err_sys(err, errno, "the machine's network");
	pid = add_disk(l, b, &o.plan, fds, err);
	if (pid < 0)
		return (int)pid;
	pid = b->cell.seed != 0 ? order_seed(&b->cell, &o, fds) : clone_here(b, &o, fds);
	drop_disk(&o.plan, fds);
	if (pid < 0)
		return explain_clone((int)pid, err);
	b->pid = (pid_t)pid;
	b->cell.user_ns = fd_close(b->cell.user_ns); /* kept by the box */
	return 0;
}
