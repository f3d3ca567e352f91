/* What the client asks for: one frame in, one answer out. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/map.h"
#include "base/str.h"
#include "launch/launch.h"
#include "launch/template.h"
#include "launch/zygote.h"

#define FRAME 2048 /* larger than any message but a template's, and enough for that */
#define SEND_MS 2000

/* A client that asks for many answers at once may be slower to read than we are to write. */
static bool wait_for_room(const struct launch *l)
{
	struct pollfd p = { .fd = l->sock, .events = POLLOUT };

	return poll(&p, 1, SEND_MS) == 1 && !(p.revents & (POLLERR | POLLHUP));
}

static void send_frame(struct launch *l, const void *frame, long n, const int *fds, size_t nfds)
{
	ssize_t r;

	do
		r = n < 0 ? n : fd_send(l->sock, frame, (size_t)n, fds, nfds);
	while (r == -EAGAIN && wait_for_room(l));
	/* A client that is gone is noticed where its socket is read. */
	if (r < 0)
		log_debug("launch", "answer not sent: %s", strerror((int)-r));
}

static void send_ok(struct launch *l, uint32_t id)
{
	char frame[64];
	struct wr w;

	wire_begin(&w, frame, sizeof(frame), L_OK, id);
	send_frame(l, frame, wire_finish(&w), NULL, 0);
}

void server_failed(struct launch *l, uint32_t id, const struct err *err)
{
	char frame[512];
	struct wr w;

	wire_begin(&w, frame, sizeof(frame), L_FAILED, id);
	wr_u32(&w, (uint32_t)err->code);
	wr_str(&w, err->text);
	send_frame(l, frame, wire_finish(&w), NULL, 0);
}

/* By what stands for the process: of an adopted box the pid may be another's. */
static int open_process(const struct box *b)
{
	int fd = b->pidfd < 0 ? (int)syscall(SYS_pidfd_open, b->pid, 0)
			      : fcntl(b->pidfd, F_DUPFD_CLOEXEC, 3);

	return fd < 0 ? -errno : fd;
}

int server_box(struct launch *l, struct box *b, uint32_t id, int sock)
{
	char frame[FRAME];
	struct launch_box box = {
		.id = b->id, .flags = b->flags, .pid = (uint32_t)b->pid, .limits = b->plan.limits
	};
	_close_ int pidfd = open_process(b);
	int fds[2] = { sock, pidfd };

	if (pidfd < 0) {
		struct err err = { 0 };
		int r = err_sys(&err, pidfd, "pidfd of the box");

		server_failed(l, id, &err);
		return r;
	}
	for (int i = 0; i < STEP_COUNT; i++) /* a waiting box took its time before the claim */
		box.step_ns[i] = b->flags & BOX_WARM && i != STEP_LIMITS ? 0 : b->step_ns[i];
	send_frame(l, frame, launch_put_box(frame, sizeof(frame), id, &box), fds, 2);
	return 0;
}

void server_gone(struct launch *l, struct box *b, uint32_t type, int status,
		 const struct box_usage *usage)
{
	char frame[256];
	struct wr w;

	wire_begin(&w, frame, sizeof(frame), (uint16_t)type, b->destroy_id);
	wr_str(&w, b->id);
	if (type == L_DIED)
		wr_u32(&w, (uint32_t)status);
	launch_wr_usage(&w, usage);
	send_frame(l, frame, wire_finish(&w), NULL, 0);
}

struct request {
	uint32_t id;
	struct rd *r;
	int fd; /* passed along; -1: none */
};

static int on_hello(struct launch *l, struct request *q, struct err *err)
{
	char frame[FRAME];
	struct launch_info info = { .version = WIRE_VERSION,
				    .rootless = l->rootless,
				    .cgroup = (uint8_t)cgroups_ops(l->cgroups)->kind,
				    .landlock_abi = l->landlock_abi,
				    .cgroup_missing = cgroups_missing(l->cgroups),
				    .persistent = state_is_open(&l->state) };

	(void)err;
	(void)str_copy(info.cgroup_why, sizeof(info.cgroup_why), cgroups_why(l->cgroups));
	send_frame(l, frame, launch_put_info(frame, sizeof(frame), q->id, &info), NULL, 0);
	return 0;
}

static struct template *find_template(struct launch *l, uint32_t id, struct err *err)
{
	if (id == 0 || id > TEMPLATE_MAX || l->templates[id].mount_ns < 0) {
		(void)err_set(err, ENOENT, "template %u is not defined", id);
		return NULL;
	}
	return &l->templates[id];
}

/* Boxes of the old definition that wait would be handed out as the new one: they go. */
static void replace_template(struct launch *l, struct template *t, const struct template_spec *spec,
			     char *preload, int mount_ns)
{
	if (t->mount_ns >= 0) {
		LIST_FOREACH (&t->ready, b, struct box, pool_link)
			boxes_destroy(l, b);
		zygote_stop(l, t);
		(void)close(t->mount_ns);
		free(t->preload);
	}
	t->spec = *spec;
	t->preload = preload;
	t->spec.preload = preload;
	t->mount_ns = mount_ns;
	t->profile = spec->level == LEVEL_HIGH || (spec->flags & TEMPLATE_STRICT_CALLS)
			     ? PROFILE_HIGH
			     : PROFILE_STANDARD;
	t->failures = 0;
	poolsize_init(&t->size, 0, 0, 0);
}

static int on_template(struct launch *l, struct request *q, struct err *err)
{
	struct template_context ctx = { l->view_ns, l->rootless };
	struct template_spec spec;
	_free_ char *preload = NULL;
	int r = launch_get_template(q->r, &spec);

	if (r == 0 && spec.limits.nofile == 0)
		spec.limits.nofile = spec_nofile_default(l->rootless);
	if (r == 0)
		r = spec_fill_limits(&spec.limits, NULL, err);
	if (r == 0)
		r = spec_check_template(&spec, err);
	if (r == 0 && (spec.root == ROOT_DIR) != (q->fd >= 0))
		r = err_set(err, EINVAL, "a directory template needs one directory, others none");
	if (r < 0)
		return r;
	preload = str_dup(str_of(spec.preload));
	if (!preload)
		return err_sys(err, ENOMEM, "template");
	if (setns(l->view_ns, CLONE_NEWNS) < 0)
		return err_sys(err, errno, "enter the machine's mounts");
	r = template_build(&ctx, &spec, q->fd, err);
	if (r < 0)
		return r;
	replace_template(l, &l->templates[spec.id], &spec, TAKE(preload), r);
	/* Without it boxes have no Python waiting, which their flags say. */
	r = zygote_start(l, &l->templates[spec.id], err);
	if (r < 0)
		log_warn("launch", "warm Python: %s", err->text);
	send_ok(l, q->id);
	return 0;
}

static int on_pool(struct launch *l, struct request *q, struct err *err)
{
	struct pool_spec spec;
	struct template *t;
	int r = launch_get_pool(q->r, &spec);

	if (r < 0)
		return r;
	t = find_template(l, spec.template_id, err);
	if (!t)
		return -ENOENT;
	poolsize_init(&t->size, spec.min, spec.max, spec.quiet_ms);
	if (spec.utilization > 0)
		t->size.utilization = spec.utilization;
	t->failures = 0;
	send_ok(l, q->id);
	return 0;
}

static int on_pool_state(struct launch *l, struct request *q, struct err *err)
{
	uint32_t id = rd_u32(q->r);
	struct template *t = rd_end(q->r) < 0 ? NULL : find_template(l, id, err);
	struct pool_state s;
	char frame[256];

	if (!t)
		return err->code ? -err->code : -EPROTO;
	s = (struct pool_state){
		t->ready_count,   t->building_count,
		t->claimed_count, t->size.max ? poolsize_target(&t->size, clock_now_ms()) : 0,
		t->hits,          t->misses,
		t->size.make_us
	};
	send_frame(l, frame, launch_put_pool_state(frame, sizeof(frame), q->id, &s), NULL, 0);
	return 0;
}

static int check_nofile(const struct launch *l, const struct limits *limits, struct err *err)
{
	uint32_t max = spec_nofile_max(l->rootless);

	if (limits->nofile <= max)
		return 0;
	return err_set(err, ERANGE, "nofile is %u, at most %u without root", limits->nofile, max);
}

static int on_claim(struct launch *l, struct request *q, struct err *err)
{
	struct launch_spec spec;
	struct claim claim;
	struct template *t;
	struct box *b = NULL;
	int r = launch_get_claim(q->r, &spec);

	if (r < 0)
		return r;
	t = find_template(l, spec.template_id, err);
	if (!t)
		return -ENOENT;
	r = spec_fill_limits(&spec.limits, &t->spec.limits, err);
	if (r == 0)
		r = check_nofile(l, &spec.limits, err);
	if (r < 0)
		return r;
	l->claims++;
	l->busy_ms = clock_now_ms();
	if (!(spec.flags & LAUNCH_COLD))
		b = pool_take(l, t, &spec.limits);
	claim = (struct claim){ q->id, spec.tag };
	if (!b)
		return boxes_create(l, t, &spec.limits, &claim, err);
	boxes_claim(l, b, &claim);
	return 0;
}

static struct box *claimed_box(struct launch *l, const char *id, struct err *err)
{
	struct box *b = boxes_find(l, id);

	if (b && b->state == BOX_CLAIMED)
		return b;
	(void)err_set(err, ENOENT, "no box '%.20s'", id);
	return NULL;
}

static int on_destroy(struct launch *l, struct request *q, struct err *err)
{
	const char *id = rd_str(q->r);
	struct box *b = rd_end(q->r) < 0 ? NULL : claimed_box(l, id, err);

	if (!b)
		return err->code ? -err->code : -EPROTO;
	b->destroy_id = q->id;
	l->busy_ms = clock_now_ms();
	boxes_destroy(l, b);
	return 0;
}

static int on_usage(struct launch *l, struct request *q, struct err *err)
{
	const char *id = rd_str(q->r);
	struct box *b = rd_end(q->r) < 0 ? NULL : claimed_box(l, id, err);
	struct box_usage usage = { 0 };
	char frame[256];
	struct wr w;
	int r;

	if (!b)
		return err->code ? -err->code : -EPROTO;
	r = cgroups_ops(l->cgroups)->usage(b->cell.cgroup, &usage, err);
	if (r < 0)
		return r;
	wire_begin(&w, frame, sizeof(frame), L_USED, q->id);
	launch_wr_usage(&w, &usage);
	send_frame(l, frame, wire_finish(&w), NULL, 0);
	return 0;
}

static int on_freeze(struct launch *l, struct request *q, struct err *err)
{
	const char *id = rd_str(q->r);
	bool on = rd_u8(q->r) != 0;
	struct box *b = rd_end(q->r) < 0 ? NULL : claimed_box(l, id, err);
	int r;

	if (!b)
		return err->code ? -err->code : -EPROTO;
	if (cgroups_missing(l->cgroups) & CONTROLLER_FREEZER)
		return err_set(err, ENOTSUP, "pause needs a cgroup freezer: see holt doctor");
	/* A seed that were frozen on its way in would keep our locks beyond our end. */
	r = spawn_seed_is_in(&b->cell);
	if (r < 0)
		return err_sys(err, r, "pause");
	r = cgroups_ops(l->cgroups)->freeze(b->cell.cgroup, on, err);
	if (r < 0)
		return r;
	b->frozen = on;
	send_ok(l, q->id);
	return 0;
}

static int on_limits(struct launch *l, struct request *q, struct err *err)
{
	const char *id = rd_str(q->r);
	struct limits before, limits = { 0 };
	struct box *b;
	int r;

	launch_rd_limits(q->r, &limits);
	b = rd_end(q->r) < 0 ? NULL : claimed_box(l, id, err);
	if (!b)
		return err->code ? -err->code : -EPROTO;
	before = b->plan.limits;
	r = spec_fill_limits(&limits, &before, err);
	if (r == 0 &&
	    (limits.disk_bytes != b->plan.limits.disk_bytes ||
	     limits.inodes != b->plan.limits.inodes || limits.nofile != b->plan.limits.nofile))
		r = err_set(err, EINVAL, "disk, inodes and open files of a live box are fixed");
	if (r < 0)
		return r;
	/* Written down first: whoever takes the box over makes the record true. */
	b->plan.limits = limits;
	r = persist_update(l, b, err);
	if (r == 0)
		r = cgroups_ops(l->cgroups)->limit(b->cell.cgroup, &limits, err);
	if (r < 0) {
		b->plan.limits = before;
		(void)persist_update(l, b, NULL);
		return r;
	}
	send_ok(l, q->id);
	return 0;
}

static int on_list(struct launch *l, struct request *q, struct err *err)
{
	(void)err;
	if (rd_end(q->r) < 0)
		return -EPROTO;
	MAP_FOREACH (l->by_id, it) {
		const struct box *b = it.value;
		struct launch_box_info info = { .id = b->id,
						.tag = b->tag,
						.flags = b->flags,
						.pid = (uint32_t)b->pid,
						.limits = b->plan.limits,
						.frozen = b->frozen,
						.adopted = b->pidfd >= 0 };
		char frame[512];

		if (b->state == BOX_CLAIMED)
			send_frame(l, frame,
				   launch_put_box_info(frame, sizeof(frame), q->id, &info), NULL,
				   0);
	}
	send_ok(l, q->id);
	return 0;
}

static int on_attach(struct launch *l, struct request *q, struct err *err)
{
	const char *id = rd_str(q->r);
	struct box *b = rd_end(q->r) < 0 ? NULL : claimed_box(l, id, err);
	_close_ int sock = -1;

	if (!b)
		return err->code ? -err->code : -EPROTO;
	sock = persist_connect(l, b, err);
	if (sock < 0)
		return sock;
	(void)server_box(l, b, q->id, sock);
	return 0;
}

static int (*const handlers[])(struct launch *, struct request *, struct err *) = {
	[L_HELLO] = on_hello,   [L_TEMPLATE] = on_template, [L_POOL] = on_pool,
	[L_CLAIM] = on_claim,   [L_DESTROY] = on_destroy,   [L_USAGE] = on_usage,
	[L_FREEZE] = on_freeze, [L_LIMITS] = on_limits,     [L_POOL_STATE] = on_pool_state,
	[L_LIST] = on_list,     [L_ATTACH] = on_attach,
};

static void handle(struct launch *l, const void *msg, size_t n, int fd)
{
	struct wire_head head = { 0 };
	struct rd payload;
	struct err err = { 0 };
	int r = wire_open(msg, n, &head, &payload);
	struct request q = { head.id, &payload, fd };

	if (r == 0 && (head.type >= sizeof(handlers) / sizeof(handlers[0]) || !handlers[head.type]))
		r = err_set(&err, ENOSYS, "request type %u is not known", head.type);
	if (r == 0)
		r = handlers[head.type](l, &q, &err);
	if (r < 0 && err.code == 0)
		(void)err_sys(&err, -r, "request type %u", head.type);
	if (r < 0)
		server_failed(l, head.id, &err);
}

void server_ready(struct launch *l, struct source *self)
{
	char msg[FRAME];
	int fds[1];

	(void)self;
	for (;;) {
		size_t nfds = 1;
		ssize_t n = fd_recv(l->sock, msg, sizeof(msg), fds, &nfds);
		_close_ int fd = n >= 0 && nfds > 0 ? fds[0] : -1;

		if (n == -EAGAIN)
			return;
		if (n <= 0 && n != -EMSGSIZE) {
			l->closing = true; /* the client is gone, and with it every reason to be */
			return;
		}
		if (n > 0)
			handle(l, msg, (size_t)n, fd);
	}
}
