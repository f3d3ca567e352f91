#include "launch/zygote.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/map.h"
#include "base/str.h"
#include "launch/image.h"
#include "launch/launch.h"
#include "launch/mounts.h"
#include "launch/process.h"
#include "launch/template_etc.h"
#include "launch/zygote_child.h"
#include "spec/guest.h"
#include "spec/warm.h"

#define ZYGOTE_CPU_MILLI 4000u
#define ZYGOTE_MEMORY (1ull << 30)
#define FAILURES_MAX 3 /* interpreters in a row that did not come up: then boxes have none */

struct zygote {
	struct source source;  /* first */
	struct template *tmpl; /* borrowed */
	pid_t pid;
	int sock;         /* owned */
	struct cell cell; /* owned: its control group */
	unsigned served;
	unsigned
		unborn; /* boxes that it still makes: until then its cgroup holds their processes */
	bool is_ready;
	uint64_t began_ms;
	struct list link; /* among the retired */
};

/* One that serves and one that is to follow it. */
struct pair {
	struct zygote *now, *next; /* owned */
	unsigned failures;
};

struct zygotes {
	uint32_t uid_base;                   /* the ids of all template interpreters */
	struct pair pairs[TEMPLATE_MAX + 1]; /* by template */
	struct list retired; /* of struct zygote: serve no more and have not ended yet */
};

static struct pair *pair_of(const struct launch *l, const struct template *t)
{
	return &l->zygotes->pairs[t - l->templates];
}

int zygotes_open(struct launch *l, struct err *err)
{
	struct zygotes *z = calloc(1, sizeof(*z));
	int r;

	if (!z)
		return err_sys(err, ENOMEM, "warm interpreters");
	l->zygotes = z;
	list_init(&z->retired);
	r = l->lib_fd = image_load("holt-warm.so", err);
	if (r < 0) /* not installed: boxes then have no waiting Python */
		l->lib_fd = -1;
	r = r < 0 && r != -ENOENT ? r : 0;
	return r == 0 && !l->rootless ? ids_take(&l->ids, &z->uid_base, err) : r;
}

static void zygote_free(struct launch *l, struct zygote *z)
{
	list_remove(&z->link);
	cell_done(l, &z->cell);
	free(z);
}

static void free_if_over(struct launch *l, struct zygote *z)
{
	if (z->pid == 0 && z->unborn == 0)
		zygote_free(l, z);
}

/* No more boxes from this one. It serves what it has been told, finds its socket closed and ends;
 * the rest follows when it is reaped. */
static void retire(struct launch *l, struct zygote *z)
{
	if (z->sock >= 0)
		launch_unwatch(l, z->sock);
	z->sock = fd_close(z->sock);
	list_push_back(&l->zygotes->retired, &z->link);
	free_if_over(l, z);
}

/* At the end of the launcher: what has not ended by itself is ended. */
static void reap_retired(struct launch *l)
{
	LIST_FOREACH (&l->zygotes->retired, z, struct zygote, link) {
		if (z->pid > 0) {
			(void)kill(z->pid, SIGKILL);
			(void)process_reap(z->pid, PROCESS_KILLED_MS);
		}
		zygote_free(l, z);
	}
}

void zygotes_close(struct launch *l)
{
	if (!l->zygotes)
		return;
	for (unsigned i = 1; i <= TEMPLATE_MAX; i++)
		zygote_stop(l, &l->templates[i]);
	reap_retired(l);
	l->lib_fd = fd_close(l->lib_fd);
	if (l->zygotes->uid_base)
		ids_give(&l->ids, l->zygotes->uid_base);
	free(TAKE(l->zygotes));
}

/* Takes it out of its place; the other one moves up. */
static void remove_zygote(struct launch *l, struct zygote *z)
{
	struct pair *p = pair_of(l, z->tmpl);

	if (p->now == z)
		p->now = TAKE(p->next);
	else if (p->next == z)
		p->next = NULL;
	retire(l, z);
}

/* It never became ready. One that cannot import what it should will not the next time either. */
static void failed(struct launch *l, struct zygote *z, struct warm_failed *f, bool has_said)
{
	struct pair *p = pair_of(l, z->tmpl);

	f->text[has_said ? sizeof(f->text) - 1 : 0] = '\0';
	p->failures = has_said && f->code == ENOPKG ? FAILURES_MAX : p->failures + 1;
	if (has_said)
		(void)str_format(z->tmpl->why, sizeof(z->tmpl->why), "%.*s", WHY_MAX, f->text);
}

/* It speaks once, when it is ready or cannot be; afterwards only its end can be heard. */
static void on_zygote(struct launch *l, struct source *self)
{
	struct zygote *z = (struct zygote *)self;
	struct warm_failed said = { 0 };
	ssize_t n = recv(z->sock, &said, sizeof(said), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n == 1 && *(char *)&said == ZYGOTE_READY) {
		z->is_ready = true;
		z->tmpl->why[0] = '\0';
		return;
	}
	if (!z->is_ready)
		failed(l, z, &said, n == (ssize_t)sizeof(said));
	log_warn("launch", "warm Python: %s", n > 0 && said.text[0] ? said.text : "ended");
	remove_zygote(l, z);
}

static int fork_zygote(struct launch *l, struct zygote *z, struct err *err)
{
	struct template *t = z->tmpl;
	struct zygote_child how = {
		.mount_ns = t->mount_ns,
		.on_host_net = t->spec.net == NET_HOST,
		.lib_fd = l->lib_fd,
		.preload = t->preload,
		.plan = { .limits = t->spec.limits,
			  .rootless = l->rootless,
			  .unenforced = cgroups_missing(l->cgroups),
			  .uid_base = l->zygotes->uid_base,
			  .filter = l->filters[PROFILE_ZYGOTE].insn,
			  .filter_len = l->filters[PROFILE_ZYGOTE].len },
	};
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(err, errno, "warm Python");
	z->sock = pair[0];
	how.sock = pair[1];
	z->pid = fork();
	if (z->pid == 0) {
		(void)cgroup_ops_of(z->cell.cgroup)->attach(z->cell.cgroup, 0, NULL);
		(void)fd_write_file_at(l->proc_fd, "self/oom_score_adj", "500");
		zygote_child_run(&how);
	}
	(void)close(pair[1]);
	return z->pid < 0 ? err_sys(err, errno, "warm Python") : 0;
}

static int zygote_create(struct launch *l, struct template *t, struct zygote **ret, struct err *err)
{
	struct zygote *z = calloc(1, sizeof(*z));
	struct limits limits = t->spec.limits;
	int r;

	if (!z)
		return err_sys(err, ENOMEM, "warm Python");
	z->source.ready = on_zygote;
	z->began_ms = clock_now_ms();
	z->tmpl = t;
	z->sock = -1;
	z->cell = CELL_NONE;
	list_init(&z->link);
	/* It holds every module the template preloads, and boxes wait for it: a box's share of the
	 * processor would make them wait longer. */
	limits.cpu_milli = ZYGOTE_CPU_MILLI;
	if (limits.memory_bytes < ZYGOTE_MEMORY)
		limits.memory_bytes = ZYGOTE_MEMORY;
	r = cell_take(l, &limits, &z->cell, err);
	if (r == 0)
		r = fork_zygote(l, z, err);
	if (r == 0)
		r = launch_watch(l, z->sock, &z->source, err);
	if (r < 0) {
		retire(l, z);
		return r;
	}
	*ret = z;
	return 0;
}

/* Keeps one that serves and, once that has served half of its boxes, one to follow it. */
static int keep_up(struct launch *l, struct template *t, struct err *err)
{
	struct pair *p = pair_of(l, t);

	if (p->failures >= FAILURES_MAX)
		return -EAGAIN;
	if (!p->now)
		return zygote_create(l, t, &p->now, err);
	if (!p->next && p->now->served >= ZYGOTE_BOXES_MAX / 2)
		return zygote_create(l, t, &p->next, err);
	return 0;
}

int zygote_start(struct launch *l, struct template *t, struct err *err)
{
	pair_of(l, t)->failures = 0;
	if (!(t->spec.flags & TEMPLATE_WARM_PYTHON) || l->lib_fd < 0)
		return 0;
	return keep_up(l, t, err);
}

void zygote_stop(struct launch *l, struct template *t)
{
	struct pair *p = pair_of(l, t);

	if (p->now)
		retire(l, TAKE(p->now));
	if (p->next)
		retire(l, TAKE(p->next));
}

bool zygote_is_coming(const struct launch *l, const struct template *t)
{
	const struct pair *p = pair_of(l, t);

	return p->now && !p->now->is_ready;
}

pid_t zygote_pid(const struct zygote *z)
{
	return z ? z->pid : 0;
}

void zygote_kill(struct launch *l, struct zygote *z)
{
	if (!z)
		return;
	if (z->pid > 0)
		(void)kill(z->pid, SIGKILL);
	if (z->sock >= 0) /* else it serves no other already */
		remove_zygote(l, z);
}

static struct zygote *coming(const struct pair *p)
{
	if (p->now && !p->now->is_ready)
		return p->now;
	return p->next && !p->next->is_ready ? p->next : NULL;
}

bool zygotes_are_coming(const struct launch *l)
{
	for (unsigned i = 1; i <= TEMPLATE_MAX; i++)
		if (coming(&l->zygotes->pairs[i]))
			return true;
	return false;
}

void zygotes_expire(struct launch *l, uint32_t limit_ms)
{
	uint64_t now = clock_now_ms();

	for (unsigned i = 1; i <= TEMPLATE_MAX; i++) {
		struct pair *p = &l->zygotes->pairs[i];
		struct zygote *z = coming(p);
		char detail[PROCESS_DETAIL_MAX];

		if (!z || now < z->began_ms + limit_ms)
			continue;
		process_describe(l->proc_fd, z->pid, detail, sizeof(detail));
		log_error("launch", "warm Python is given up after %u ms; process %d: %s", limit_ms,
			  (int)z->pid, detail);
		p->failures++;
		zygote_kill(l, z);
	}
}

bool zygote_reaped(struct launch *l, pid_t pid)
{
	for (unsigned i = 1; i <= TEMPLATE_MAX; i++) {
		struct pair *p = &l->zygotes->pairs[i];
		struct zygote *both[] = { p->now, p->next };

		for (int k = 0; k < 2; k++) {
			if (both[k] && cell_lose_seed(&both[k]->cell, pid))
				return true;
			if (!both[k] || both[k]->pid != pid)
				continue;
			both[k]->pid = 0; /* what it said last is still to be read */
			return true;
		}
	}
	LIST_FOREACH (&l->zygotes->retired, z, struct zygote, link) {
		if (cell_lose_seed(&z->cell, pid))
			return true;
		if (z->pid != pid)
			continue;
		z->pid = 0;
		free_if_over(l, z);
		return true;
	}
	return false;
}

/* A copy of the template's tree, mounted nowhere yet. */
static int copy_tree(const struct launch *l, const struct template *t, struct err *err)
{
	int fd;

	if (setns(t->mount_ns, CLONE_NEWNS) < 0)
		return err_sys(err, errno, "enter the template");
	fd = mounts_clone(AT_FDCWD, "/", 1, err);
	if (setns(l->view_ns, CLONE_NEWNS) < 0 && fd >= 0) {
		(void)close(fd);
		return err_sys(err, errno, "leave the template");
	}
	return fd;
}

static int send_make(struct launch *l, struct zygote *z, struct box *b, int child_sock,
		     struct err *err)
{
	struct zygote_make make = { .plan = b->plan };
	_close_ int tree = copy_tree(l, b->tmpl, err);
	_close_ int dev = tree < 0 || l->rootless ? -1 : template_make_dev(err);
	int fds[ZYGOTE_FDS] = { child_sock, l->init_fd, tree, dev, b->room_fd };
	size_t nfds = dev < 0 ? ZYGOTE_DEV : b->room_fd < 0 ? ZYGOTE_ROOM : ZYGOTE_FDS;
	ssize_t n;

	if (tree < 0)
		return tree;
	if (dev < 0 && !l->rootless)
		return dev;
	if (setsockopt(b->sock, SOL_SOCKET, SO_PASSCRED, &(int){ 1 }, sizeof(int)) < 0)
		return err_sys(err, errno, "control socket");
	make.plan.nested = 1;
	memcpy(make.filter, b->plan.filter, b->plan.filter_len * sizeof(make.filter[0]));
	n = fd_send(z->sock, &make, sizeof(make), fds, nfds);
	return n < 0 ? err_sys(err, (int)n, "warm Python") : 0;
}

int zygote_spawn(struct launch *l, struct box *b, int child_sock, struct err *err)
{
	struct pair *p = pair_of(l, b->tmpl);
	struct zygote *z = p->now;
	int r;

	if (!(b->tmpl->spec.flags & TEMPLATE_WARM_PYTHON) || l->lib_fd < 0)
		return -EAGAIN;
	if (!z || !z->is_ready) {
		(void)keep_up(l, b->tmpl, NULL);
		return -EAGAIN;
	}
	r = send_make(l, z, b, child_sock, err);
	if (r < 0) {
		remove_zygote(l, z);
		return -EAGAIN;
	}
	b->plan.nested = 1;
	b->zygote = z;
	z->unborn++;
	if (++z->served >= ZYGOTE_BOXES_MAX)
		remove_zygote(l, z);
	(void)keep_up(l, b->tmpl, NULL);
	return 0;
}

/* The box has no more to do with its interpreter. */
static void born(struct launch *l, struct box *b)
{
	struct zygote *z = TAKE(b->zygote);

	if (!z)
		return;
	z->unborn--;
	if (z->sock < 0)
		free_if_over(l, z);
}

void zygote_failed(struct launch *l, struct box *b)
{
	born(l, b);
	if (++pair_of(l, b->tmpl)->failures >= FAILURES_MAX)
		zygote_stop(l, b->tmpl);
}

void zygote_worked(struct launch *l, struct box *b)
{
	pair_of(l, b->tmpl)->failures = 0;
}

/* In a process of its own: entering a control group can take the kernel 10 ms. */
static int give_maps(struct launch *l, struct box *b, pid_t pid, struct err *err)
{
	pid_t helper = fork();

	if (helper < 0)
		return err_sys(err, errno, "helper for id maps");
	if (helper > 0)
		return 0;
	if (boxes_write_maps(l, &b->plan, pid, NULL) < 0 ||
	    cgroup_ops_of(b->cell.cgroup)->attach(b->cell.cgroup, pid, NULL) < 0 ||
	    send(b->sock, "g", 1, MSG_NOSIGNAL) != 1)
		(void)shutdown(b->sock, SHUT_RDWR); /* the launcher sees it and the process too */
	_exit(0);
}

/* From here on the box is a process like any other's: a child of ours that the reaper knows. */
static int adopt(struct launch *l, struct box *b, pid_t pid, struct err *err)
{
	if (kill(pid, 0) < 0)
		return err_set(err, ECHILD, "the box's first process has ended");
	(void)setsockopt(b->sock, SOL_SOCKET, SO_PASSCRED, &(int){ 0 }, sizeof(int));
	b->pid = pid;
	born(l, b);
	if (map_put(l->by_pid, (const char *)&b->pid, sizeof(b->pid), b, NULL) < 0) {
		(void)kill(pid, SIGKILL);
		b->pid = 0;
		return err_sys(err, ENOMEM, "box");
	}
	return send(b->sock, "g", 1, MSG_NOSIGNAL) == 1 ? 0 : err_sys(err, errno, "box");
}

/* The last words of a process that could not make the box. */
static int why_not(const void *message, size_t n, struct err *err)
{
	struct wire_head head;
	struct rd payload;
	uint32_t code;

	if (wire_open(message, n, &head, &payload) < 0 || head.type != G_ERROR)
		return err_set(err, ECHILD, "the warm Python could not make it");
	code = rd_u32(&payload);
	return err_set(err, code ? (int)code : EIO, "%s", rd_str(&payload));
}

/* A message and the sender's pid, by the kernel's word; 0 when it has none for us. */
static ssize_t recv_from_pid(int sock, void *data, size_t n, pid_t *ret_pid)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(struct ucred))];
	struct iovec io = { data, n };
	struct msghdr msg = { .msg_iov = &io,
			      .msg_iovlen = 1,
			      .msg_control = control,
			      .msg_controllen = sizeof(control) };
	ssize_t got = recvmsg(sock, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	struct cmsghdr *c = got < 0 ? NULL : CMSG_FIRSTHDR(&msg);

	*ret_pid = 0;
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_CREDENTIALS) {
		struct ucred who;

		memcpy(&who, CMSG_DATA(c), sizeof(who));
		*ret_pid = who.pid;
	}
	return got < 0 ? -errno : got;
}

int zygote_heard(struct launch *l, struct box *b, struct err *err)
{
	char message[512];
	pid_t pid;
	ssize_t n = recv_from_pid(b->sock, message, sizeof(message), &pid);

	if (n == -EAGAIN || n == -EINTR)
		return 1;
	if (n != 1)
		return why_not(message, n > 0 ? (size_t)n : 0, err);
	if (message[0] == ZYGOTE_MAPS && pid > 1)
		return give_maps(l, b, pid, err);
	if (message[0] == ZYGOTE_INIT_IS && pid > 1)
		return adopt(l, b, pid, err);
	return err_set(err, EPROTO, "the warm Python said what it should not");
}
