#include "egress/proxy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/list.h"
#include "base/str.h"
#include "loop/loop.h"
#include "loop/resolve.h"
#include "net/http.h"
#include "net/http1.h"
#include "net/sock.h"

#define PENDING_MAX ((size_t)1 << 20)
#define HIGH ((size_t)256 << 10)
#define TICK_MS 1000u
#define HTTP_PORT 80

static const struct http_limits limits = { .line_max = 8u << 10,
					   .head_max = 32u << 10,
					   .headers_max = 100 };

struct egress {
	struct egress_options o;
	struct list trips; /* struct trip */
	unsigned count;
	uint64_t bytes;
	struct loop_timer *tick; /* owned */
};

enum trip_state {
	TRIP_HEAD, /* reads the request */
	TRIP_RESOLVING,
	TRIP_CONNECTING,
	TRIP_OPEN, /* bytes go both ways */
	TRIP_OVER, /* what is left to say is being sent */
};

struct trip {
	struct list node;
	struct egress *e;       /* borrowed */
	struct sock *inner;     /* owned: the program's */
	struct sock *outer;     /* owned: the registry's; NULL: none yet */
	struct http1 *parser;   /* owned */
	struct resolve *lookup; /* owned: while it resolves */
	struct loop_io *io;     /* owned, with fd: while it connects */
	int fd;
	enum trip_state state;
	bool is_connect;
	bool has_body; /* of a request that is not a CONNECT */
	bool is_inner_over, is_outer_over;
	struct buf first; /* what goes to the registry first: a head, or what came behind CONNECT */
	char host[POLICY_HOST_MAX + 1];
	uint16_t port;
	uint64_t since_ms;
};

static void trip_free(struct trip *t)
{
	if (t->lookup)
		resolve_cancel(t->lookup);
	t->io = loop_io_free(t->io);
	t->fd = fd_close(t->fd);
	t->inner = sock_free(t->inner);
	t->outer = sock_free(t->outer);
	(void)http1_free(t->parser);
	buf_done(&t->first);
	list_remove(&t->node);
	t->e->count--;
	free(t);
}

/* An answer of ours is the last thing that the program hears. */
static void answer(struct trip *t, int status, const char *why)
{
	_cleanup_(buf_done) struct buf b = { 0 };

	if (t->state == TRIP_OVER)
		return;
	t->state = TRIP_OVER;
	t->outer = sock_free(t->outer);
	(void)buf_printf(&b,
			 "HTTP/1.1 %d %s\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\n"
			 "Connection: close\r\n\r\n%s",
			 status, http_status_text(status), strlen(why), why);
	(void)sock_write(t->inner, buf_str(&b), b.len);
	sock_shutdown(t->inner);
}

static void refuse(struct trip *t, const char *why)
{
	if (t->e->o.refused)
		t->e->o.refused(t->e->o.user, t->host, t->port, why);
	answer(t, 403, why);
}

/* ---- bytes both ways ---- */

/* False: the trip is over. */
static bool count(struct trip *t, size_t n)
{
	t->since_ms = loop_now_ms(t->e->o.loop);
	t->e->bytes += n;
	if (t->e->bytes <= t->e->o.bytes_max)
		return true;
	trip_free(t);
	return false;
}

static void pass(struct trip *t, struct sock *from, struct sock *to, const char *data, size_t n)
{
	if (!count(t, n))
		return;
	if (sock_write(to, data, n) < 0)
		return; /* broken: it says so by itself */
	if (sock_pending(to) > HIGH)
		sock_pause(from, true);
}

static void outer_input(void *user, const char *data, size_t n)
{
	struct trip *t = user;

	pass(t, t->outer, t->inner, data, n);
}

static void outer_drained(void *user)
{
	struct trip *t = user;

	sock_pause(t->inner, false);
}

static void outer_ended(void *user, int r)
{
	struct trip *t = user;

	t->is_outer_over = true;
	if (r < 0 || t->is_inner_over || !t->is_connect) {
		/* What it has said is still to be read. */
		t->state = TRIP_OVER;
		t->outer = sock_free(t->outer);
	}
	sock_shutdown(t->inner);
	if (t->state == TRIP_OVER && (r < 0 || sock_pending(t->inner) == 0))
		trip_free(t);
}

static const struct sock_ops outer_ops = { outer_input, outer_drained, outer_ended };

static void go(struct trip *t)
{
	static const char established[] = "HTTP/1.1 200 Connection established\r\n\r\n";

	t->io = loop_io_free(t->io);
	if (sock_create(t->e->o.loop, TAKE_FD(t->fd), PENDING_MAX, &outer_ops, t, &t->outer) < 0)
		return answer(t, 502, "no memory for the connection");
	t->state = TRIP_OPEN;
	t->since_ms = loop_now_ms(t->e->o.loop);
	if (t->is_connect)
		(void)sock_write(t->inner, established, sizeof(established) - 1);
	if (t->first.len > 0) {
		if (!count(t, t->first.len))
			return;
		(void)sock_write(t->outer, t->first.data, t->first.len);
	}
	sock_pause(t->inner, false);
}

/* ---- out ---- */

static void on_connected(void *user, unsigned events)
{
	struct trip *t = user;
	socklen_t size = sizeof(int);
	int code = 0;

	(void)events;
	if (getsockopt(t->fd, SOL_SOCKET, SO_ERROR, &code, &size) < 0)
		code = errno;
	if (code == 0)
		return go(t);
	t->io = loop_io_free(t->io);
	t->fd = fd_close(t->fd);
	answer(t, 502, "the host cannot be reached");
}

static void dial(struct trip *t, const union resolve_address *a)
{
	int r;

	t->fd = socket(a->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	r = t->fd < 0 ? -errno
	    : connect(t->fd, &a->any, a->any.sa_family == AF_INET ? sizeof(a->v4) : sizeof(a->v6)) <
			    0
		    ? -errno
		    : 0;
	if (r < 0 && r != -EINPROGRESS)
		return answer(t, 502, "the host cannot be reached");
	t->state = TRIP_CONNECTING;
	r = loop_io_create(t->e->o.loop, t->fd, on_connected, t, &t->io);
	if (r == 0)
		r = loop_io_want(t->io, LOOP_WRITE);
	if (r < 0)
		answer(t, 502, "no memory for the connection");
}

/* The first address that may be gone to. What a name says is worth nothing: its address counts. */
static void on_found(void *user, int code, const union resolve_address *a, size_t n)
{
	struct trip *t = user;
	size_t i = 0;

	t->lookup = NULL;
	while (i < n && !policy_allows_address(&t->e->o.policy, t->host, &a[i].any))
		i++;
	if (code == -ETIMEDOUT)
		answer(t, 504, "the host's name was not found in time");
	else if (code < 0)
		answer(t, 502, "the host's name is not known");
	else if (i == n)
		refuse(t, t->e->o.policy.rules
				  ? "this host may not be reached from here"
				  : "the registry's address is not of the public internet");
	else
		dial(t, &a[i]);
}

static void look_up(struct trip *t)
{
	const struct egress_options *o = &t->e->o;
	struct err err = { 0 };

	t->state = TRIP_RESOLVING;
	sock_pause(t->inner, true);
	if (resolver_ask(o->resolver, o->owner ? o->owner : "", t->host, t->port, on_found, t,
			 &t->lookup, &err) < 0)
		answer(t, 503, err.text);
}

/* ---- the request ---- */

static bool is_of_connection(const char *name)
{
	static const char *const names[] = {
		"connection", "keep-alive", "proxy-connection", "proxy-authorization", "te",
		"upgrade",    "host"
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcasecmp(name, names[i]) == 0)
			return true;
	return false;
}

/* One request, one connection: what follows it goes nowhere. */
static int put_head(struct trip *t, const struct http1_head *h)
{
	struct buf *b = &t->first;

	(void)buf_printf(b, "%s %s%s%s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n", h->method,
			 h->path, h->query[0] ? "?" : "", h->query, http1_header(h, "host"));
	for (unsigned i = 0; i < h->count; i++)
		if (!is_of_connection(h->fields[i].name))
			(void)buf_printf(b, "%s: %s\r\n", h->fields[i].name, h->fields[i].value);
	return buf_puts(b, "\r\n");
}

static void on_head(struct trip *t, const struct http1_head *h)
{
	const char *authority = h->path;

	t->is_connect = strcmp(h->method, "CONNECT") == 0;
	if (!t->is_connect) {
		if (!h->is_absolute)
			return answer(t, 400, "this is a proxy");
		authority = http1_header(h, "host");
	}
	if (policy_split(authority, t->host, &t->port) < 0 || (t->is_connect && t->port == 0))
		return answer(t, 400, "the request names no host");
	if (t->port == 0)
		t->port = HTTP_PORT;
	if (!policy_allows(&t->e->o.policy, t->host, t->port))
		return refuse(t, "this host and port are not among the configured registries");
	/* What comes behind the head goes on as it is, but to a registry nothing does. */
	t->has_body = !t->is_connect && h->body_length != 0;
	if (t->has_body && !t->e->o.policy.rules)
		return answer(t, 413, "a request to a registry has no body");
	if (!t->is_connect && put_head(t, h) < 0)
		return answer(t, 503, "no memory for the request");
	look_up(t);
}

static void read_head(struct trip *t, const char *data, size_t n)
{
	struct str piece;
	enum http1_event ev = HTTP1_MORE;

	while (t->state == TRIP_HEAD) {
		ev = http1_next(t->parser, &data, &n, &piece);
		if (ev == HTTP1_HEAD)
			on_head(t, http1_head(t->parser));
		else if (ev == HTTP1_BAD)
			answer(t, 400, http1_reason(t->parser));
		else
			break;
	}
	/* What came behind a CONNECT is for the other end. */
	if (t->state == TRIP_RESOLVING && (t->is_connect || t->has_body)) {
		if (t->is_connect)
			(void)http1_next(t->parser, &data, &n, &piece); /* the head's end */
		if (n > 0 && buf_append(&t->first, data, n) < 0)
			answer(t, 503, "no memory for the request");
	}
}

static void inner_input(void *user, const char *data, size_t n)
{
	struct trip *t = user;

	if (t->state == TRIP_HEAD)
		read_head(t, data, n);
	else if (t->state == TRIP_OPEN && (t->is_connect || t->has_body))
		pass(t, t->inner, t->outer, data, n);
	/* else: what nobody asked for */
}

static void inner_drained(void *user)
{
	struct trip *t = user;

	if (t->outer)
		sock_pause(t->outer, false);
}

static void inner_ended(void *user, int r)
{
	struct trip *t = user;

	t->is_inner_over = true;
	if (r < 0 || t->state != TRIP_OPEN || t->is_outer_over)
		trip_free(t);
	else if (t->is_connect || t->has_body)
		sock_shutdown(t->outer);
}

void egress_accept(struct egress *e, int fd)
{
	static const struct sock_ops ops = { inner_input, inner_drained, inner_ended };
	struct trip *t = e->count < EGRESS_CONNS_MAX ? calloc(1, sizeof(*t)) : NULL;

	if (!t) {
		(void)fd_close(fd);
		return;
	}
	t->e = e;
	t->fd = -1;
	t->since_ms = loop_now_ms(e->o.loop);
	buf_init(&t->first, (size_t)128 << 10);
	list_push_back(&e->trips, &t->node);
	e->count++;
	t->parser = http1_create_proxy(&limits);
	if (sock_create(e->o.loop, fd, PENDING_MAX, &ops, t, &t->inner) < 0 || !t->parser)
		trip_free(t);
}

/* ---- the whole ---- */

static void on_tick(void *user)
{
	struct egress *e = user;
	uint64_t now = loop_now_ms(e->o.loop);

	LIST_FOREACH (&e->trips, t, struct trip, node)
		if (now - t->since_ms >= EGRESS_IDLE_MS ||
		    (t->state == TRIP_OVER && sock_pending(t->inner) == 0 &&
		     now - t->since_ms >= 2 * TICK_MS))
			trip_free(t);
}

int egress_create(const struct egress_options *o, struct egress **ret, struct err *err)
{
	struct egress *e = calloc(1, sizeof(*e));
	int r = e ? loop_timer_create(o->loop, on_tick, e, &e->tick) : -ENOMEM;

	if (r < 0) {
		free(e);
		return err_sys(err, r, "egress");
	}
	e->o = *o;
	list_init(&e->trips);
	loop_timer_start(e->tick, TICK_MS, TICK_MS);
	*ret = e;
	return 0;
}

static void cut_all(struct egress *e)
{
	LIST_FOREACH (&e->trips, t, struct trip, node)
		trip_free(t);
}

struct egress *egress_free(struct egress *e)
{
	if (!e)
		return NULL;
	cut_all(e);
	e->tick = loop_timer_free(e->tick);
	free(e);
	return NULL;
}

uint64_t egress_bytes(const struct egress *e)
{
	return e->bytes;
}

void egress_set_rules(struct egress *e, const struct egress_rules *rules)
{
	e->o.policy.rules = rules;
	cut_all(e);
}
