#include "net/tunnel.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "net/exchange.h"
#include "net/server.h"

struct tunnel {
	struct http_request *r; /* borrowed: it lives as long as we */
	const struct tunnel_ops *ops;
	void *user;
	bool is_paused;
};

static struct tunnel *tunnel_of(const struct conn *c)
{
	return LIST_ENTRY(c, struct http_request, c)->tunnel;
}

static void leave(struct tunnel *t)
{
	struct http_request *r = t->r;

	r->tunnel = NULL;
	free(t);
	exchange_leave_upgrade(r, false);
}

static size_t tunnel_input(struct conn *c, const char *data, size_t n)
{
	struct tunnel *t = tunnel_of(c);

	if (t->is_paused)
		return 0;
	if (n > 0)
		t->ops->data(t->user, data, n); /* t may be gone */
	return n;
}

static bool tunnel_wants(const struct conn *c)
{
	return !tunnel_of(c)->is_paused;
}

static bool tunnel_is_over(const struct conn *c)
{
	(void)c;
	return false;
}

static void tunnel_drained(struct conn *c)
{
	struct tunnel *t = tunnel_of(c);

	t->ops->drained(t->user);
}

static void tunnel_gone(struct conn *c)
{
	struct tunnel *t = tunnel_of(c);

	t->ops->gone(t->user);
	leave(t);
}

static void tunnel_tick(struct conn *c, uint64_t now_ms)
{
	(void)c; /* how long it may be quiet is its users' */
	(void)now_ms;
}

static void tunnel_leave(struct conn *c)
{
	conn_fail(c);
}

static const struct conn_ops tunnel_conn_ops = {
	.input = tunnel_input,
	.wants = tunnel_wants,
	.is_over = tunnel_is_over,
	.drained = tunnel_drained,
	.gone = tunnel_gone,
	.tick = tunnel_tick,
	.leave = tunnel_leave,
};

struct tunnel *tunnel_open(struct http_request *r, const struct tunnel_ops *ops, void *user)
{
	struct tunnel *t = r->c.state == CONN_OPEN ? calloc(1, sizeof(*t)) : NULL;

	if (!t) {
		http_reply_error(r, 503, "service_unavailable", "there is no memory left for this");
		return NULL;
	}
	t->r = r;
	t->ops = ops;
	t->user = user;
	r->tunnel = t;
	exchange_upgrade(r, &tunnel_conn_ops);
	conn_set_low_water(&r->c, TUNNEL_LOW);
	conn_resume(&r->c); /* what came behind the request is for the other end */
	return t;
}

ssize_t tunnel_write(struct tunnel *t, const void *data, size_t n)
{
	struct conn *c = &t->r->c;

	if (c->state != CONN_OPEN)
		return -EPIPE;
	if (conn_pending(c) + n > c->server->o.limits.pending_max) {
		conn_fail(c);
		return -ENOBUFS;
	}
	conn_queue(c, data, n);
	return (ssize_t)conn_pending(c);
}

void tunnel_pause(struct tunnel *t, bool on)
{
	if (t->is_paused == on)
		return;
	t->is_paused = on;
	if (!on)
		conn_resume(&t->r->c);
}

void tunnel_close(struct tunnel *t)
{
	leave(t);
}
