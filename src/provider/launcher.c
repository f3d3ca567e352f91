#include "provider/launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/map.h"
#include "base/str.h"
#include "provider/launcher_impl.h"

#define PROGRAM LAUNCHER_PROGRAM
#define ANSWER_MAX 4096 /* no answer is longer: the longest is an error's text */
/* Frames of one dispatch: the socket stays readable, so the next one comes. */
#define TURN_MAX 256
#define DISK_WORK_MS (31u * 60 * 1000) /* a little more than the launcher's own limit */

/* One frame, with the descriptors that came along. */
struct frame {
	struct wire_head head;
	struct rd body;
	int fds[2]; /* owned until taken */
	uint8_t bytes[ANSWER_MAX];
};

static void frame_done(struct frame *f)
{
	for (size_t i = 0; i < 2; i++)
		f->fds[i] = fd_close(f->fds[i]);
}

static void pending_free(struct pending *p)
{
	(void)arena_free(p->strings);
	free(p->items);
	free(p);
}

static void queued_free(struct launcher *l, struct queued *q)
{
	list_remove(&q->node);
	l->queue_bytes -= q->len;
	(void)fd_close(q->fd);
	free(q);
}

static void forget(struct launcher *l, struct pending *p)
{
	list_remove(&p->node);
	(void)map_remove(l->by_id, (const char *)&p->id, sizeof(p->id));
}

/* The one callback of a request. It may make others, so the request is out of the way before. */
static void answer(struct launcher *l, struct pending *p, const struct provider_reply *r)
{
	forget(l, p);
	if (p->cb)
		p->cb(p->user, r);
	pending_free(p);
}

static void refuse(struct launcher *l, struct pending *p, int code, const char *text)
{
	answer(l, p, &(struct provider_reply){ .code = code, .text = text });
}

int launcher_end(struct launcher *l, int code, const char *text)
{
	l->over = code;
	LIST_FOREACH (&l->queue, q, struct queued, node)
		queued_free(l, q);
	while (!list_is_empty(&l->pending))
		refuse(l, LIST_ENTRY(l->pending.next, struct pending, node), code, text);
	return code;
}

static int malformed(struct launcher *l)
{
	return launcher_end(l, -EPROTO, PROGRAM " sent an answer that cannot be read");
}

/* How the launcher ended, for the message: it has written its reason to stderr itself. Its socket
 * closes a moment before it can be waited for; only who may block waits for that moment. */
static int gone(struct launcher *l)
{
	struct err err = { 0 };
	int status = 0;

	if (l->pid <= 0 || waitpid(l->pid, &status, l->waiting ? 0 : WNOHANG) != l->pid)
		return launcher_end(l, -EPIPE, PROGRAM " is gone");
	l->pid = 0;
	if (WIFSIGNALED(status))
		(void)err_set(&err, EPIPE, PROGRAM " was killed by signal %d", WTERMSIG(status));
	else
		(void)err_set(&err, EPIPE, PROGRAM " ended with code %d", WEXITSTATUS(status));
	return launcher_end(l, -EPIPE, err.text);
}

uint32_t launcher_next_id(struct launcher *l)
{
	do
		l->last_id = l->last_id == UINT32_MAX ? 1 : l->last_id + 1;
	while (map_get(l->by_id, (const char *)&l->last_id, sizeof(l->last_id)));
	return l->last_id;
}

static int enqueue(struct launcher *l, const struct ask *a, struct err *err)
{
	size_t len = (size_t)a->size;
	struct queued *q;
	int fd = -1;

	if (l->queue_bytes + len > LAUNCHER_QUEUE_MAX)
		return err_set(err, EAGAIN, PROGRAM " does not keep up: %zu bytes wait for it",
			       l->queue_bytes);
	if (a->fd >= 0 && (fd = fcntl(a->fd, F_DUPFD_CLOEXEC, 0)) < 0)
		return err_sys(err, errno, "request to " PROGRAM);
	q = malloc(sizeof(*q) + len);
	if (!q) {
		(void)fd_close(fd);
		return err_sys(err, ENOMEM, "request to " PROGRAM);
	}
	q->id = a->id;
	q->fd = fd;
	q->len = len;
	memcpy(q->frame, a->frame, len);
	list_push_back(&l->queue, &q->node);
	l->queue_bytes += len;
	return 0;
}

static bool is_hangup(ssize_t n)
{
	return n == -EPIPE || n == -ECONNRESET;
}

static int transmit(struct launcher *l, const struct ask *a, struct err *err)
{
	ssize_t n = -EAGAIN;

	if (list_is_empty(&l->queue))
		n = fd_send(l->sock, a->frame, (size_t)a->size, &a->fd, a->fd >= 0 ? 1 : 0);
	if (n == -EAGAIN)
		return enqueue(l, a, err);
	/* The launcher's last words may still lie in the socket: who reads them tells its end. */
	if (n >= 0 || is_hangup(n))
		return 0;
	return err_sys(err, (int)n, "send to " PROGRAM);
}

static struct pending *add_pending(struct launcher *l, const struct ask *a)
{
	struct pending *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->id = a->id;
	p->type = a->type;
	p->cb = a->cb;
	p->user = a->user;
	p->asked_ms = clock_now_ms();
	if (map_put(l->by_id, (const char *)&p->id, sizeof(p->id), p, NULL) < 0) {
		free(p);
		return NULL;
	}
	list_push_back(&l->pending, &p->node);
	return p;
}

int launcher_ask(struct launcher *l, const struct ask *a, struct err *err)
{
	struct pending *p;
	int r;

	if (a->size < 0)
		return err_sys(err, (int)a->size, "request to " PROGRAM);
	if (l->over)
		return err_set(err, EPIPE, PROGRAM " is gone");
	if (map_len(l->by_id) >= LAUNCHER_PENDING_MAX)
		return err_set(err, EAGAIN, "%u requests wait for " PROGRAM ", no more",
			       LAUNCHER_PENDING_MAX);
	p = add_pending(l, a);
	if (!p)
		return err_sys(err, ENOMEM, "request to " PROGRAM);
	r = transmit(l, a, err);
	if (r < 0) {
		forget(l, p);
		pending_free(p);
	}
	return r;
}

void launcher_flush(struct launcher *l)
{
	while (!list_is_empty(&l->queue)) {
		struct queued *q = LIST_ENTRY(l->queue.next, struct queued, node);
		ssize_t n = fd_send(l->sock, q->frame, q->len, &q->fd, q->fd >= 0 ? 1 : 0);
		struct pending *p = map_get(l->by_id, (const char *)&q->id, sizeof(q->id));

		if (n == -EAGAIN)
			return;
		queued_free(l, q);
		if (n < 0 && !is_hangup(n) && p)
			refuse(l, p, (int)n, "cannot send to " PROGRAM);
	}
}

/* Receives one frame. 1, 0 when none is there, or over. */
static int take_frame(struct launcher *l, struct frame *f)
{
	ssize_t n = -ECONNRESET;

	/* A reset is told before what lies in the socket, once: look again. */
	for (int i = 0; i < 2 && n == -ECONNRESET; i++) {
		size_t nfds = 2;

		n = fd_recv(l->sock, f->bytes, sizeof(f->bytes), f->fds, &nfds);
		for (size_t j = n < 0 ? 0 : nfds; j < 2; j++)
			f->fds[j] = -1;
	}
	if (n == -EAGAIN)
		return 0;
	if (n == 0 || is_hangup(n))
		return gone(l);
	if (n < 0)
		return launcher_end(l, (int)n, "cannot receive from " PROGRAM);
	if (wire_open(f->bytes, (size_t)n, &f->head, &f->body) < 0)
		return launcher_end(l, -EPROTO, PROGRAM " sent a frame of another version?");
	l->has_spoken = true;
	return 1;
}

static void drop_oldest_death(struct launcher *l)
{
	struct death *d = LIST_ENTRY(l->deaths.next, struct death, node);

	list_remove(&d->node);
	l->deaths_len--;
	free(d);
}

static void keep_death(struct launcher *l, const struct death *death)
{
	struct death *d = malloc(sizeof(*d));

	if (!d)
		return;
	*d = *death;
	if (l->deaths_len == LAUNCHER_DEATHS_MAX)
		drop_oldest_death(l);
	list_push_back(&l->deaths, &d->node);
	l->deaths_len++;
}

static int on_died(struct launcher *l, struct rd *body)
{
	struct death d;
	const char *id = rd_str(body);

	d.status = (int)rd_u32(body);
	launch_rd_usage(body, &d.usage);
	if (rd_end(body) < 0 || !id_is_valid(id))
		return malformed(l);
	memcpy(d.id, id, sizeof(d.id)); /* fits: id_is_valid() */
	if (l->on_death)
		l->on_death(l->on_death_user, d.id, d.status, &d.usage);
	else
		keep_death(l, &d);
	return 1;
}

static int on_builds(struct launcher *l, struct rd *body)
{
	if (launch_get_builds(body, &l->builds) < 0)
		return malformed(l);
	if (l->on_builds)
		l->on_builds(l->on_builds_user, &l->builds);
	return 1;
}

bool launcher_pop_death(struct launcher *l, struct death *ret)
{
	if (l->deaths_len == 0)
		return false;
	*ret = *LIST_ENTRY(l->deaths.next, struct death, node);
	drop_oldest_death(l);
	return true;
}

static int on_failed(struct launcher *l, struct frame *f, struct pending *p)
{
	uint32_t code = rd_u32(&f->body);
	const char *text = rd_str(&f->body);

	if (rd_end(&f->body) < 0 || code == 0 || code > 4095)
		return malformed(l);
	if (f->head.id == 0) /* it could not start */
		return launcher_end(l, -(int)code, text);
	if (p)
		refuse(l, p, -(int)code, text);
	return 1;
}

/* One of many: the request goes on waiting. */
static int on_entry(struct launcher *l, struct pending *p, int r)
{
	if (r == -EPROTO)
		return malformed(l);
	if (r < 0)
		refuse(l, p, r, "the list is too long");
	return 1;
}

static int read_box(struct frame *f, struct launcher_box *ret)
{
	struct launch_box b;

	if (launch_get_box(&f->body, &b) < 0 || !id_is_valid(b.id))
		return -EPROTO;
	*ret = (struct launcher_box){ .flags = b.flags,
				      .pid = (pid_t)b.pid,
				      .sock = TAKE_FD(f->fds[0]),
				      .pidfd = TAKE_FD(f->fds[1]),
				      .limits = b.limits };
	memcpy(ret->id, b.id, sizeof(ret->id)); /* fits: id_is_valid() */
	memcpy(ret->step_ns, b.step_ns, sizeof(ret->step_ns));
	(void)str_copy(ret->why, sizeof(ret->why), b.why); /* fits: launch_get_box() */
	return 0;
}

/* Where an answer's parts lie while the callback runs. */
struct parts {
	struct launcher_box box;
	struct layer_info layer;
};

static int read_answer(struct launcher *l, struct frame *f, struct provider_reply *r,
		       struct parts *parts)
{
	switch (f->head.type) {
	case L_INFO:
		return launch_get_info(&f->body, &l->info);
	case L_BOX:
		r->box = &parts->box;
		return read_box(f, r->box);
	case L_GONE:
		(void)rd_str(&f->body);
		launch_rd_usage(&f->body, &r->usage);
		return rd_end(&f->body);
	case L_USED:
		launch_rd_usage(&f->body, &r->usage);
		return rd_end(&f->body);
	case L_POOL_IS:
		return launch_get_pool_state(&f->body, &r->pool);
	case L_LAYER:
		r->layers = &parts->layer;
		r->n_layers = 1;
		return launch_get_layer(&f->body, &parts->layer);
	default:
		return rd_end(&f->body); /* L_OK says nothing but yes */
	}
}

/* What each request is answered with, unless it is refused. */
static const uint16_t answers[] = {
	[L_HELLO] = L_INFO,     [L_TEMPLATE] = L_OK,    [L_POOL] = L_OK,
	[L_CLAIM] = L_BOX,      [L_DESTROY] = L_GONE,   [L_USAGE] = L_USED,
	[L_FREEZE] = L_OK,      [L_LIMITS] = L_OK,      [L_POOL_STATE] = L_POOL_IS,
	[L_LIST] = L_OK,        [L_ATTACH] = L_BOX,     [L_TEMPLATE_DROP] = L_OK,
	[L_SNAPSHOT] = L_LAYER, [L_LAYER_DROP] = L_OK,  [L_LAYERS] = L_OK,
	[L_VOLUME_MAKE] = L_OK, [L_VOLUME_DROP] = L_OK, [L_VOLUMES] = L_OK,
};

static void on_late_box_gone(void *user, const struct provider_reply *r)
{
	(void)user; /* one that could not be destroyed is found by the next sweep */
	(void)r;
}

static int on_answer(struct launcher *l, struct frame *f, struct pending *p)
{
	struct parts parts = { .box = { .sock = -1, .pidfd = -1 } };
	struct provider_reply r = { .text = "" };

	launcher_list_show(p, &r);
	if (f->head.type != answers[p->type])
		return malformed(l);
	/* The kernel drops descriptors that we have no room for, and brings the rest. The box is
	 * there, but out of reach: who asked for it may try again. */
	if (f->head.type == L_BOX && (f->fds[0] < 0 || f->fds[1] < 0)) {
		refuse(l, p, -EAGAIN, "no descriptors are left for the box");
		return 1;
	}
	if (read_answer(l, f, &r, &parts) < 0)
		return malformed(l);
	if (!p->cb && p->type == L_CLAIM) /* nobody would ever destroy it */
		(void)launcher_destroy(l, parts.box.id, on_late_box_gone, NULL, NULL);
	answer(l, p, &r);
	launcher_box_done(&parts.box);
	return 1;
}

int launcher_receive(struct launcher *l)
{
	_cleanup_(frame_done) struct frame f = { .fds = { -1, -1 } };
	struct pending *p;
	int r = l->over ? l->over : take_frame(l, &f);

	if (r <= 0)
		return r;
	if (f.head.type == L_DIED)
		return on_died(l, &f.body);
	if (f.head.type == L_BUILDS)
		return on_builds(l, &f.body);
	p = map_get(l->by_id, (const char *)&f.head.id, sizeof(f.head.id));
	if (f.head.type == L_FAILED)
		return on_failed(l, &f, p);
	if (!p)
		return 1; /* more of a list that was given up */
	if (launcher_list_add(p, f.head.type, &f.body, &r))
		return on_entry(l, p, r);
	return on_answer(l, &f, p);
}

int launcher_dispatch(struct launcher *l)
{
	struct death d;
	int r = 1;

	while (l->on_death && launcher_pop_death(l, &d))
		l->on_death(l->on_death_user, d.id, d.status, &d.usage);
	launcher_flush(l);
	for (int i = 0; i < TURN_MAX && r > 0; i++)
		r = launcher_receive(l);
	return r < 0 ? r : 0;
}

struct launcher *launcher_stop(struct launcher *l)
{
	if (!l)
		return NULL;
	l->sock = fd_close(l->sock);
	launcher_bury(l->pid, LAUNCHER_BURY_MS);
	LIST_FOREACH (&l->queue, q, struct queued, node)
		queued_free(l, q);
	LIST_FOREACH (&l->pending, p, struct pending, node)
		pending_free(p);
	while (l->deaths_len > 0)
		drop_oldest_death(l);
	(void)map_free(l->by_id);
	free(l);
	return NULL;
}

int launcher_fd(const struct launcher *l)
{
	return l->sock;
}

pid_t launcher_pid(const struct launcher *l)
{
	return l->pid;
}

const struct launch_info *launcher_info(const struct launcher *l)
{
	return &l->info;
}

bool launcher_wants_write(const struct launcher *l)
{
	return !list_is_empty(&l->queue);
}

void launcher_on_death(struct launcher *l, provider_death_cb cb, void *user)
{
	l->on_death = cb;
	l->on_death_user = user;
}

void launcher_on_builds(struct launcher *l, provider_builds_cb cb, void *user)
{
	l->on_builds = cb;
	l->on_builds_user = user;
	if (cb && l->builds.given_up > 0)
		cb(user, &l->builds);
}

const struct build_state *launcher_builds(const struct launcher *l)
{
	return &l->builds;
}

/* How many times limit_ms a request may wait. A claim may wait for others and is then built; what
 * ends a box waits for its processes. */
static uint64_t longest_ms(uint16_t type, unsigned limit_ms)
{
	switch (type) {
	case L_CLAIM:
		return 3ull * limit_ms;
	case L_SNAPSHOT:
	case L_LAYER_DROP:
	case L_VOLUME_MAKE:
	case L_VOLUME_DROP:
		return DISK_WORK_MS + limit_ms;
	default:
		return 2ull * limit_ms;
	}
}

static struct pending *find_late(struct launcher *l, unsigned limit_ms)
{
	uint64_t now = clock_now_ms();

	LIST_FOREACH (&l->pending, p, struct pending, node)
		if (p->cb && now - p->asked_ms >= longest_ms(p->type, limit_ms))
			return p;
	return NULL;
}

void launcher_expire(struct launcher *l, unsigned limit_ms)
{
	struct provider_reply r = { .code = -ETIMEDOUT,
				    .text = PROGRAM " has not answered in time" };
	struct pending *p;

	while ((p = find_late(l, limit_ms))) {
		provider_cb cb = p->cb;
		void *user = p->user;

		p->cb = NULL; /* the answer, which still comes one day, finds it here */
		cb(user, &r);
	}
}

void launcher_box_done(struct launcher_box *b)
{
	b->sock = fd_close(b->sock);
	b->pidfd = fd_close(b->pidfd);
}
