#include "api/proxy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/call.h"
#include "api/lanes.h"
#include "api/problem.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/list.h"
#include "config/config.h"
#include "loop/loop.h"
#include "net/http.h"
#include "net/http1.h"
#include "net/tunnel.h"
#include "net/upstream.h"
#include "sandbox/ports.h"
#include "sandbox/sandbox.h"
#include "telemetry/trace.h"

#define TICK_MS 1000u
#define HIGH ((size_t)256 << 10) /* bytes that one side has not taken: the other waits */
#define HEAD_MAX ((size_t)128 << 10)

struct proxies {
	struct api *api;         /* borrowed */
	struct list all;         /* struct proxy */
	struct lanes *lanes;     /* owned */
	struct loop_timer *tick; /* owned */
};

enum proxy_state {
	PROXY_CONNECTING, /* or waking the sandbox */
	PROXY_ASKED,      /* the answer's head is awaited */
	PROXY_ANSWERING,
	PROXY_TUNNEL,
};

/* One request on its way through. */
struct proxy {
	struct list node;
	struct proxies *all;
	struct api_call *call; /* its request's, as long as it has one: not of a tunnel */
	struct lane *lane;     /* owned; NULL: none (any more) */
	struct tunnel *tunnel; /* owned by its connection */
	struct proxy_target target;
	struct call_stream stream; /* it ends with its key, or its sandbox's owner */
	struct span *span;         /* NULL: in no trace */
	char sandbox_id[ID_LEN + 1];
	const char *key; /* of a WebSocket, borrowed from the request; NULL: it is none */
	enum proxy_state state;
	uint64_t since_ms; /* the last byte either way */
	bool is_reused;    /* the lane had rested: it may have been closed meanwhile */
	bool is_taking;    /* the request's body is being passed on */
};

static void connect_now(struct proxy *p, struct sandbox *sb, bool is_fresh);

static uint64_t now_ms(const struct proxy *p)
{
	return loop_now_ms(p->all->api->deps.loop);
}

/* The request, if it has one still, has been answered. */
static void proxy_free(struct proxy *p, bool can_reuse)
{
	lane_close(p->lane, can_reuse);
	call_stream_end(&p->stream);
	list_remove(&p->node);
	span_end(p->span);
	free(p);
}

static void end_call(struct proxy *p)
{
	struct api_call *c = p->call;

	proxy_free(p, false);
	http_on_gone(c->http, NULL, NULL);
}

/* ---- what goes wrong ---- */

static void bad_gateway(struct proxy *p, int status, const char *what)
{
	struct api_call *c = p->call;
	unsigned port = p->target.port;

	span_fail(p->span, what);
	if (p->state == PROXY_TUNNEL) {
		tunnel_close(p->tunnel);
		proxy_free(p, false);
	} else if (p->state == PROXY_ANSWERING) {
		/* The client must not take it for all. */
		end_call(p);
		http_abort(c->http);
	} else {
		end_call(p);
		http_header_clear(c->http);
		call_trace_header(c);
		problem_status(c, status, "port %u: %s", port, what);
	}
}

static void lane_failed(void *user, const struct err *err)
{
	struct proxy *p = user;
	struct api_call *c = p->call;
	unsigned port = p->target.port;

	p->lane = NULL;
	end_call(p);
	proxy_reply_unreached(c, port, err);
}

static void lane_ended(void *user)
{
	struct proxy *p = user;

	p->lane = NULL;
	bad_gateway(p, 502, "the sandbox ended, or the port was closed");
}

/* ---- from the box ---- */

static void pause_box(struct proxy *p, size_t pending)
{
	if (pending > HIGH)
		upstream_pause(lane_upstream(p->lane), true);
}

static void client_drained(void *user, struct http_request *r)
{
	struct proxy *p = user;

	(void)r;
	p->since_ms = now_ms(p);
	if (p->lane)
		upstream_pause(lane_upstream(p->lane), false);
}

static void tunnel_drained(void *user)
{
	client_drained(user, NULL);
}

static void tunnel_data(void *user, const void *data, size_t n)
{
	struct proxy *p = user;
	struct upstream *u = lane_upstream(p->lane);

	p->since_ms = now_ms(p);
	if (upstream_write(u, data, n, false) < 0)
		return; /* broken: it says so by itself */
	if (upstream_pending(u) > HIGH)
		tunnel_pause(p->tunnel, true);
}

static void tunnel_gone(void *user)
{
	proxy_free(user, false);
}

static void cut(struct call_stream *s)
{
	bad_gateway(LIST_ENTRY(s, struct proxy, stream), 401, CALL_KEY_ENDED);
}

/* With a key a tunnel is one of its sandbox's streams. False: answered, and the proxy is gone. */
static bool count_stream(struct proxy *p)
{
	struct api_call *c = p->call;

	if (c->who->owner[0] == '\0')
		return true;
	http_on_gone(c->http, NULL, NULL); /* not to be touched any more once it is answered */
	if (!call_stream_may_begin(c, p->sandbox_id)) {
		proxy_free(p, false);
		return false;
	}
	memcpy(p->stream.sandbox_id, p->sandbox_id, sizeof(p->sandbox_id));
	return true;
}

static void on_switch(struct proxy *p, const struct http1_head *head)
{
	static const struct tunnel_ops ops = { tunnel_data, tunnel_drained, tunnel_gone };
	struct api_call *c = p->call;

	if (!p->key)
		return bad_gateway(p, 502, "it switched to a protocol that nobody asked for");
	if (!count_stream(p))
		return;
	if (proxy_add_switch(c->http, p->key, head) < 0)
		return bad_gateway(p, 502, "its answer to the WebSocket is not right");
	p->tunnel = tunnel_open(c->http, &ops, p);
	p->call = NULL;
	p->key = NULL;
	if (p->tunnel)
		p->state = PROXY_TUNNEL;
	else
		proxy_free(p, false); /* answered */
}

static void on_head(void *user, const struct http1_head *head)
{
	struct proxy *p = user;
	struct http_request *r = p->call->http;

	p->since_ms = now_ms(p);
	span_int(p->span, "http.response.status_code", head->status);
	if (head->status == 101)
		return on_switch(p, head);
	if (proxy_add_answer(r, &p->target, head) < 0)
		return bad_gateway(p, 502, "its answer has a header that cannot be");
	p->state = PROXY_ANSWERING;
	http_begin(r, head->status, NULL, head->body_length);
	http_on_drain(r, HIGH / 4, client_drained, p);
}

static void on_data(void *user, const char *data, size_t n)
{
	struct proxy *p = user;
	ssize_t pending;

	p->since_ms = now_ms(p);
	if (p->state == PROXY_TUNNEL)
		pending = tunnel_write(p->tunnel, data, n);
	else
		pending = http_write(p->call->http, data, n);
	if (pending > 0)
		pause_box(p, (size_t)pending);
}

static void on_end(void *user, bool can_reuse)
{
	struct proxy *p = user;
	struct http_request *r;

	if (p->state == PROXY_TUNNEL) {
		tunnel_close(p->tunnel);
		proxy_free(p, false);
		return;
	}
	r = p->call->http;
	http_on_gone(r, NULL, NULL);
	proxy_free(p, can_reuse);
	http_end(r);
}

static void box_drained(void *user)
{
	struct proxy *p = user;

	p->since_ms = now_ms(p);
	if (p->state == PROXY_TUNNEL)
		tunnel_pause(p->tunnel, false);
	else if (p->is_taking)
		http_body_pause(p->call->http, false);
}

static bool is_repeatable(const struct proxy *p)
{
	const char *method = http_method(p->call->http);

	return p->is_reused && upstream_is_silent(lane_upstream(p->lane)) &&
	       http_body_length(p->call->http) == 0 &&
	       (strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0);
}

static void on_failed(void *user, int code, const char *why)
{
	struct proxy *p = user;
	struct sandbox *sb;

	/* A connection that had rested was closed just when it was wanted. */
	if (p->state == PROXY_ASKED && code == -ECONNRESET && is_repeatable(p)) {
		sb = sandboxes_find(p->all->api->deps.sandboxes, p->sandbox_id, NULL);
		lane_close(TAKE(p->lane), false);
		if (sb)
			return connect_now(p, sb, true);
	}
	bad_gateway(p, 502,
		    p->state == PROXY_ASKED && code == -ECONNRESET
			    ? "the connection was closed before an answer"
			    : why);
}

/* ---- to the box ---- */

static void body_data(void *user, struct http_request *r, const char *data, size_t n)
{
	struct proxy *p = user;
	struct upstream *u = lane_upstream(p->lane);

	p->since_ms = now_ms(p);
	if (upstream_write(u, data, n, http_body_length(r) < 0) < 0)
		return; /* broken: it says so by itself */
	if (upstream_pending(u) > HIGH)
		http_body_pause(r, true);
}

static void body_end(void *user, struct http_request *r)
{
	struct proxy *p = user;

	p->is_taking = false;
	upstream_write_end(lane_upstream(p->lane), http_body_length(r) < 0);
}

static void body_gone(void *user, struct http_request *r)
{
	(void)user; /* client_gone() follows */
	(void)r;
}

static void lane_ready(void *user)
{
	static const struct upstream_ops ops = { on_head, on_data, on_end, box_drained, on_failed };
	static const struct http_body_ops body_ops = { body_data, body_end, body_gone };
	struct proxy *p = user;
	struct http_request *r = p->call->http;
	_cleanup_(buf_done) struct buf b = { 0 };
	int e;

	buf_init(&b, HEAD_MAX);
	e = proxy_write_request(r, p->all->api->deps.config, &p->target, p->key != NULL, &b);
	p->state = PROXY_ASKED;
	p->since_ms = now_ms(p);
	if (e == 0)
		e = upstream_begin(lane_upstream(p->lane), &ops, p,
				   strcmp(http_method(r), "HEAD") == 0, b.data, b.len);
	if (e < 0)
		return bad_gateway(p, 502, "the request could not be sent");
	if (http_body_length(r) == 0) {
		upstream_write_end(lane_upstream(p->lane), false);
	} else if (!p->is_taking) {
		p->is_taking = true;
		http_body_stream(r, &body_ops, p);
	}
}

static void connect_now(struct proxy *p, struct sandbox *sb, bool is_fresh)
{
	static const struct lane_ops ops = { lane_ready, lane_failed, lane_ended };
	struct api_call *c = p->call;
	struct err err = { 0 };
	int r;

	p->state = PROXY_CONNECTING;
	p->since_ms = now_ms(p);
	r = lane_open(p->all->lanes, sb, p->target.port, is_fresh, &ops, p, &p->lane, &err);
	p->is_reused = r == 1;
	if (r < 0) {
		p->lane = NULL;
		end_call(p);
		problem_reply_box(c, &err);
	} else if (r == 1) {
		lane_ready(p);
	}
}

/* ---- beginning ---- */

static void client_gone(void *user, struct http_request *r)
{
	(void)r;
	proxy_free(user, false);
}

static void trace(struct proxy *p)
{
	struct api_call *c = p->call;

	p->target.trace = call_trace(c);
	if (!p->target.trace)
		return;
	c->trace.is_known = true; /* the door has let it in */
	p->target.tracestate = c->trace.state;
	p->span = span_begin(c->api->deps.tracer, p->target.trace, SPAN_CLIENT, "proxy");
	span_str(p->span, "holt.sandbox.id", p->sandbox_id);
	span_int(p->span, "server.port", p->target.port);
	span_str(p->span, "http.request.method", http_method(c->http));
	if (p->span)
		p->target.trace = span_context(p->span);
}

static void begin(struct api_call *c, struct sandbox *sb, const struct proxy_target *target)
{
	struct proxies *all = c->api->proxies;
	struct proxy *p = calloc(1, sizeof(*p));
	struct sandbox_info info;

	if (!p)
		return problem_reply(c, &(struct err){ ENOMEM, "proxy" });
	sandbox_info(sb, &info);
	memcpy(p->sandbox_id, info.id, strlen(info.id) + 1); /* ids have one length */
	p->all = all;
	p->call = c;
	p->target = *target;
	p->key = proxy_websocket_key(c->http);
	p->stream.cut = cut;
	call_stream_watch(c, &p->stream, "port", info.owner);
	list_push_back(&all->all, &p->node);
	http_on_gone(c->http, client_gone, p);
	trace(p);
	connect_now(p, sb, false);
}

void proxy_start(struct api_call *c, struct sandbox *sb, const struct port_info *port,
		 const struct proxy_target *target)
{
	proxy_wake(c, sb, port, target, begin);
}

/* ---- deadlines ---- */

/* NULL: none is over its time. */
static struct proxy *find_late(const struct proxies *all, uint64_t now)
{
	const struct config *c = all->api->deps.config;

	LIST_FOREACH (&all->all, p, struct proxy, node) {
		uint64_t limit = p->state == PROXY_TUNNEL || p->state == PROXY_ANSWERING
					 ? c->port_idle_ms
					 : c->port_answer_ms;

		if (now - p->since_ms >= limit)
			return p;
	}
	return NULL;
}

static const char *why_late(const struct proxy *p)
{
	if (p->state == PROXY_CONNECTING)
		return "the connection was not accepted in time";
	if (!upstream_is_silent(lane_upstream(p->lane)))
		return "its answer stopped within the head";
	return p->is_taking ? "the request was not taken in time" : "there was no answer in time";
}

static void on_tick(void *user)
{
	struct proxies *all = user;
	uint64_t now = loop_now_ms(all->api->deps.loop);
	struct proxy *p;

	while ((p = find_late(all, now)))
		bad_gateway(p, 504, why_late(p));
	LIST_FOREACH (&all->all, one, struct proxy, node)
		lane_count(one->lane);
	lanes_tick(all->lanes, now);
}

struct proxies *proxies_create(struct api *api)
{
	struct proxies *all = calloc(1, sizeof(*all));

	if (!all)
		return NULL;
	all->api = api;
	list_init(&all->all);
	all->lanes = lanes_create(api->deps.loop);
	if (!all->lanes || loop_timer_create(api->deps.loop, on_tick, all, &all->tick) < 0)
		return proxies_free(all);
	loop_timer_start(all->tick, TICK_MS, TICK_MS);
	return all;
}

struct proxies *proxies_free(struct proxies *all)
{
	if (!all)
		return NULL;
	LIST_FOREACH (&all->all, p, struct proxy, node)
		proxy_free(p, false); /* their requests are forgotten with the server */
	(void)lanes_free(all->lanes);
	(void)loop_timer_free(all->tick);
	free(all);
	return NULL;
}
