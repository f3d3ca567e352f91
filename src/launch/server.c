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
#include "launch/server.h"
#include "launch/sysdirs.h"
#include "launch/zygote.h"

#define FRAME 2048 /* larger than any message but a template's, and enough for that */
#define SEND_MS 2000
#define LATER 1 /* of a handler: the request is asked again, see server_again() */
#define LATER_MAX 1024

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

void server_send(struct launch *l, const void *frame, long n)
{
	send_frame(l, frame, n, NULL, 0);
}

void server_ok(struct launch *l, uint32_t id)
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
		.id = b->id,
		.flags = b->flags,
		.pid = (uint32_t)b->pid,
		.limits = b->plan.limits,
		.why = b->why,
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

struct template *server_template(struct launch *l, uint32_t id, struct err *err)
{
	if (id == 0 || id > TEMPLATE_MAX || l->templates[id].mount_ns < 0) {
		(void)err_set(err, ENOENT, "template %u is not defined", id);
		return NULL;
	}
	return &l->templates[id];
}

static int check_nofile(const struct launch *l, const struct limits *limits, struct err *err)
{
	uint32_t max = spec_nofile_max(l->rootless);

	if (limits->nofile <= max)
		return 0;
	return err_set(err, ERANGE, "nofile is %u, at most %u without root", limits->nofile, max);
}

int server_fill_limits(const struct launch *l, struct limits *limits, const struct limits *base,
		       struct err *err)
{
	struct limits filled = *limits;
	int r = spec_fill_limits(&filled, base, err);

	if (r == 0)
		r = spec_check_max(&filled, &l->most, err);
	if (r == 0)
		*limits = filled;
	return r;
}

/* What the claim names and what the template has; NULL in *ret: nothing. */
static int use_disk(struct launch *l, const struct template *t, const struct launch_spec *s,
		    struct disk_use **ret, struct err *err)
{
	struct disk_use *u;
	int r;

	*ret = NULL;
	if (s->layers.count == 0 && s->n_volumes == 0)
		return 0;
	r = disk_check(l, err);
	if (r < 0)
		return r;
	u = calloc(1, sizeof(*u));
	if (!u)
		return err_sys(err, ENOMEM, "layers of a box");
	r = disk_use_template(l, u, t, err);
	if (r == 0)
		r = disk_use_layers(l, u, &s->layers, err);
	if (r < 0) {
		(void)disk_use_free(l, u);
		return r;
	}
	for (uint32_t i = 0; i < s->n_volumes; i++) {
		struct disk_volume *v = &u->volumes[u->n_volumes++];

		*v = (struct disk_volume){ .read_only = s->volumes[i].read_only, .fd = -1 };
		(void)str_copy(v->id, sizeof(v->id), s->volumes[i].id); /* fit: they were checked */
		(void)str_copy(v->path, sizeof(v->path), s->volumes[i].path);
	}
	*ret = u;
	return 0;
}

static int claim_disk(struct launch *l, struct template *t, const struct launch_spec *s,
		      const struct claim *claim, struct err *err)
{
	int r;

	if (s->n_volumes == 0)
		return boxes_create(l, t, &s->limits, claim, err);
	r = volume_claim(l, t, &s->limits, claim, err);
	if (r < 0)
		(void)disk_use_free(l, claim->disk);
	return r;
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
	t = server_template(l, spec.template_id, err);
	if (!t)
		return -ENOENT;
	if (sysdirs_are_coming(l, t) ||
	    (t->ready_count == 0 && builds_check(l, NULL) == BUILDS_AGAIN))
		return LATER;
	r = server_fill_limits(l, &spec.limits, &t->spec.limits, err);
	if (r == 0)
		r = check_nofile(l, &spec.limits, err);
	claim = (struct claim){ q->id, spec.tag, NULL };
	if (r == 0)
		r = use_disk(l, t, &spec, &claim.disk, err);
	if (r < 0)
		return r;
	l->claims++;
	l->busy_ms = clock_now_ms();
	if (claim.disk)
		t->missed[MISS_OWN_FILES]++;
	else if (!(spec.flags & LAUNCH_COLD))
		b = pool_take(l, t, &spec.limits);
	if (!b)
		r = builds_check(l, err);
	if (r < 0) {
		(void)disk_use_free(l, claim.disk);
		return r == BUILDS_AGAIN ? LATER : r;
	}
	if (!b)
		return claim_disk(l, t, &spec, &claim, err);
	boxes_claim(l, b, &claim);
	return 0;
}

struct box *server_claimed(struct launch *l, const char *id, struct err *err)
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
	struct box *b = rd_end(q->r) < 0 ? NULL : boxes_find(l, id);

	if (b && b->state == BOX_DYING && b->destroy_id) {
		/* It takes long, and is asked for again: the last who asked hears of its end. */
		(void)err_set(err, EBUSY, "box '%.20s' has not ended yet", id);
		server_failed(l, b->destroy_id, err);
		b->destroy_id = q->id;
		return 0;
	}
	b = rd_end(q->r) < 0 ? NULL : server_claimed(l, id, err);
	if (!b)
		return err_result(err, EPROTO);
	b->destroy_id = q->id;
	l->busy_ms = clock_now_ms();
	boxes_destroy(l, b);
	return 0;
}

static int on_usage(struct launch *l, struct request *q, struct err *err)
{
	const char *id = rd_str(q->r);
	struct box *b = rd_end(q->r) < 0 ? NULL : server_claimed(l, id, err);
	struct box_usage usage = { 0 };
	char frame[256];
	struct wr w;
	int r;

	if (!b)
		return err_result(err, EPROTO);
	r = cgroup_ops_of(b->cell.cgroup)->usage(b->cell.cgroup, &usage, err);
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
	struct box *b = rd_end(q->r) < 0 ? NULL : server_claimed(l, id, err);
	int r;

	if (!b)
		return err_result(err, EPROTO);
	if (cgroup_missing_of(b->cell.cgroup) & CONTROLLER_FREEZER)
		return err_set(err, ENOTSUP, "pause needs a cgroup freezer: see holt doctor");
	/* A seed that were frozen on its way in would keep our locks beyond our end. */
	r = spawn_seed_is_in(&b->cell);
	if (r < 0)
		return err_sys(err, r, "pause");
	if (!b->held) /* else it stands still, and goes on or not when its snapshot is taken */
		r = cgroup_ops_of(b->cell.cgroup)->freeze(b->cell.cgroup, on, err);
	if (r < 0)
		return r;
	b->frozen = on;
	if (b->held)
		(void)persist_update(l, b, NULL);
	server_ok(l, q->id);
	return 0;
}

static int on_limits(struct launch *l, struct request *q, struct err *err)
{
	const char *id = rd_str(q->r);
	struct limits before, limits = { 0 };
	struct box *b;
	int r;

	launch_rd_limits(q->r, &limits);
	b = rd_end(q->r) < 0 ? NULL : server_claimed(l, id, err);
	if (!b)
		return err_result(err, EPROTO);
	before = b->plan.limits;
	r = server_fill_limits(l, &limits, &before, err);
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
		r = cgroup_ops_of(b->cell.cgroup)->limit(b->cell.cgroup, &limits, err);
	if (r < 0) {
		b->plan.limits = before;
		(void)persist_update(l, b, NULL);
		return r;
	}
	server_ok(l, q->id);
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
	server_ok(l, q->id);
	return 0;
}

static int on_attach(struct launch *l, struct request *q, struct err *err)
{
	const char *id = rd_str(q->r);
	struct box *b = rd_end(q->r) < 0 ? NULL : server_claimed(l, id, err);
	_close_ int sock = -1;

	if (!b)
		return err_result(err, EPROTO);
	sock = persist_connect(l, b, err);
	if (sock < 0)
		return sock;
	(void)server_box(l, b, q->id, sock);
	return 0;
}

static int (*const handlers[])(struct launch *, struct request *, struct err *) = {
	[L_HELLO] = on_hello,
	[L_TEMPLATE] = server_on_template,
	[L_POOL] = server_on_pool,
	[L_CLAIM] = on_claim,
	[L_DESTROY] = on_destroy,
	[L_USAGE] = on_usage,
	[L_FREEZE] = on_freeze,
	[L_LIMITS] = on_limits,
	[L_POOL_STATE] = server_on_pool_state,
	[L_LIST] = on_list,
	[L_ATTACH] = on_attach,
	[L_TEMPLATE_DROP] = server_on_template_drop,
	[L_SNAPSHOT] = server_on_snapshot,
	[L_LAYER_DROP] = server_on_layer_drop,
	[L_LAYERS] = server_on_layers,
	[L_VOLUME_MAKE] = server_on_volume_make,
	[L_VOLUME_DROP] = server_on_volume_drop,
	[L_VOLUMES] = server_on_volumes,
};

/* A request as it came, to be asked again. */
struct later {
	struct list node;
	uint64_t until_ms;
	size_t size;
	char msg[];
};

static int keep(struct launch *l, const void *msg, size_t n, uint64_t until_ms, struct err *err)
{
	struct later *x;

	if (l->later_count >= LATER_MAX)
		return err_set(err, EAGAIN, "%d claims wait already, no more", LATER_MAX);
	x = malloc(sizeof(*x) + n);
	if (!x)
		return err_sys(err, ENOMEM, "claim");
	x->size = n;
	x->until_ms = until_ms;
	memcpy(x->msg, msg, n);
	list_push_back(&l->later, &x->node);
	l->later_count++;
	return 0;
}

static void handle(struct launch *l, const void *msg, size_t n, int fd, uint64_t until_ms)
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
	if (r == LATER)
		r = keep(l, msg, n, until_ms, &err);
	if (r < 0 && err.code == 0)
		(void)err_sys(&err, -r, "request type %u", head.type);
	if (r < 0)
		server_failed(l, head.id, &err);
}

void server_again(struct launch *l)
{
	struct list all;

	list_init(&all);
	LIST_FOREACH (&l->later, x, struct later, node) {
		list_remove(&x->node);
		list_push_back(&all, &x->node);
	}
	l->later_count = 0;
	LIST_FOREACH (&all, x, struct later, node) {
		list_remove(&x->node);
		if (!l->closing)
			handle(l, x->msg, x->size, -1, x->until_ms);
		free(x);
	}
}

void server_expire(struct launch *l)
{
	uint64_t now = clock_now_ms();
	struct err err = { 0 };

	(void)err_set(&err, EAGAIN, "a box could not be begun in %u ms: too much is under way",
		      l->builds.limit_ms);
	LIST_FOREACH (&l->later, x, struct later, node) {
		struct wire_head head = { 0 };
		struct rd payload;

		if (now < x->until_ms)
			continue;
		if (wire_open(x->msg, x->size, &head, &payload) == 0)
			server_failed(l, head.id, &err);
		list_remove(&x->node);
		l->later_count--;
		free(x);
	}
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
			handle(l, msg, (size_t)n, fd, clock_now_ms() + l->builds.limit_ms);
	}
}
