#include "api/lanes.h"

#include <errno.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/list.h"
#include "loop/loop.h"
#include "net/http.h"
#include "net/upstream.h"
#include "sandbox/ports.h"

#define REST_MS 4000u     /* less than what common servers wait for the next request */
#define RESTING_MAX 1024u /* of all ports */
#define RESTING_PORT_MAX 64u

/* What a program in a box may say in front of an answer's body. */
static const struct http_limits limits = { .line_max = 8u << 10,
					   .head_max = 64u << 10,
					   .headers_max = 200 };

struct lanes {
	struct loop *loop;   /* borrowed */
	struct list resting; /* struct lane; the newest first */
	unsigned count;      /* of them */
};

struct lane {
	struct list node;
	struct lanes *all;       /* borrowed */
	struct port_use *use;    /* owned; NULL: gone */
	struct upstream *stream; /* owned; NULL: not yet connected */
	const struct lane_ops *ops;
	void *user;
	uint64_t since_ms;
	bool is_resting;
};

struct lanes *lanes_create(struct loop *l)
{
	struct lanes *all = calloc(1, sizeof(*all));

	if (!all)
		return NULL;
	all->loop = l;
	list_init(&all->resting);
	return all;
}

void lane_count(struct lane *l)
{
	if (l && l->use && l->stream)
		port_use_count(l->use, upstream_bytes(l->stream));
}

static void lane_free(struct lane *l)
{
	lane_count(l);
	if (l->is_resting)
		l->all->count--;
	list_remove(&l->node);
	port_use_end(l->use);
	(void)upstream_free(l->stream);
	free(l);
}

struct lanes *lanes_free(struct lanes *all)
{
	if (!all)
		return NULL;
	LIST_FOREACH (&all->resting, l, struct lane, node)
		lane_free(l);
	free(all);
	return NULL;
}

void lanes_tick(struct lanes *all, uint64_t now_ms)
{
	LIST_FOREACH (&all->resting, l, struct lane, node)
		if (now_ms - l->since_ms >= REST_MS)
			lane_free(l);
}

static void on_connected(void *user, int fd)
{
	struct lane *l = user;
	const struct lane_ops *ops = l->ops;
	struct err err = { 0 };
	void *to = l->user;
	int r = upstream_create(l->all->loop, fd, &limits, &l->stream);

	if (r == 0) {
		ops->ready(to);
		return;
	}
	lane_free(l);
	(void)err_sys(&err, r, "connection to the port");
	ops->failed(to, &err);
}

static void on_failed(void *user, const struct err *err)
{
	struct lane *l = user;
	const struct lane_ops *ops = l->ops;
	void *to = l->user;

	l->use = NULL;
	lane_free(l);
	ops->failed(to, err);
}

static void on_ended(void *user)
{
	struct lane *l = user;
	const struct lane_ops *ops = l->is_resting ? NULL : l->ops;
	void *to = l->user;

	l->use = NULL;
	lane_free(l);
	if (ops)
		ops->ended(to);
}

static const struct port_use_ops use_ops = { .connected = on_connected,
					     .failed = on_failed,
					     .ended = on_ended };

static struct lane *take_resting(struct lanes *all, const struct sandbox *sb, uint16_t port)
{
	LIST_FOREACH (&all->resting, l, struct lane, node) {
		if (!port_use_is_of(l->use, sb, port))
			continue;
		list_remove(&l->node);
		l->is_resting = false;
		all->count--;
		port_use_set_busy(l->use, true);
		return l;
	}
	return NULL;
}

int lane_open(struct lanes *all, struct sandbox *sb, uint16_t port, bool is_fresh,
	      const struct lane_ops *ops, void *user, struct lane **ret, struct err *err)
{
	int r = port_check(sb, err);
	struct lane *l = is_fresh || r < 0 ? NULL : take_resting(all, sb, port);
	bool is_found = l != NULL;

	if (r < 0)
		return r;
	if (!l)
		l = calloc(1, sizeof(*l));
	if (!l)
		return err_sys(err, ENOMEM, "connection to the port");
	l->all = all;
	l->ops = ops;
	l->user = user;
	*ret = l;
	if (is_found)
		return 1;
	list_init(&l->node);
	r = port_dial(sb, port, &use_ops, l, &l->use, err);
	if (r < 0)
		free(l);
	return r;
}

struct upstream *lane_upstream(struct lane *l)
{
	return l->stream;
}

static void on_lost(void *user)
{
	lane_free(user);
}

static unsigned count_of(const struct lanes *all, const struct lane *like)
{
	unsigned n = 0;

	LIST_FOREACH (&all->resting, l, struct lane, node)
		n += port_use_is_same(l->use, like->use);
	return n;
}

void lane_close(struct lane *l, bool can_reuse)
{
	struct lanes *all;

	if (!l)
		return;
	all = l->all;
	if (!can_reuse || all->count >= RESTING_MAX || count_of(all, l) >= RESTING_PORT_MAX) {
		lane_free(l);
		return;
	}
	l->is_resting = true;
	l->since_ms = loop_now_ms(all->loop);
	list_push_front(&all->resting, &l->node);
	all->count++;
	port_use_set_busy(l->use, false);
	upstream_rest(l->stream, on_lost, l);
}
