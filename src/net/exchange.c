#include "net/exchange.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/fd.h"
#include "loop/loop.h"
#include "net/cors.h"
#include "net/http1.h"
#include "net/server.h"
#include "net/tls_session.h"

#define OUT_HIGH ((size_t)64 << 10) /* the next request waits until less output is pending */
#define BODY_KEEP ((size_t)64 << 10)
#define EXTRA_MAX ((size_t)64 << 10)
#define STUCK_MS 1000 /* output that does not move for so long */

static const struct conn_ops http_ops;

static struct http_request *request_of(const struct conn *c)
{
	return LIST_ENTRY(c, struct http_request, c);
}

struct http_request *exchange_create(struct http_server *s, int fd, struct tls_session *tls)
{
	struct http_request *r = calloc(1, sizeof(*r));

	if (r) {
		r->parser = http1_create(&s->o.limits);
		r->arena = arena_create(s->o.limits.arena_max);
	}
	if (!r || !r->parser || !r->arena) {
		(void)fd_close(fd);
		(void)tls_session_free(tls);
		if (r) {
			(void)http1_free(r->parser);
			(void)arena_free(r->arena);
		}
		free(r);
		return NULL;
	}
	buf_init(&r->extra, EXTRA_MAX);
	r->head = http1_head(r->parser);
	if (conn_init(&r->c, s, &http_ops, fd, tls) < 0) {
		exchange_free(&r->c);
		return NULL;
	}
	conn_set_low_water(&r->c, OUT_HIGH);
	return r;
}

void exchange_free(struct conn *c)
{
	struct http_request *r = request_of(c);

	assert(!r->active);
	conn_done(c);
	(void)http1_free(r->parser);
	(void)arena_free(r->arena);
	buf_done(&r->body);
	buf_done(&r->extra);
	free(r);
}

void exchange_forget(struct conn *c)
{
	request_of(c)->active = false;
	exchange_free(c);
}

/* A clean slate for the next request; memory is kept. */
static void reset(struct http_request *r)
{
	memset(r->user, 0, sizeof(r->user));
	r->complete = r->reported = r->is_bad = r->body_told = r->body_paused = false;
	r->body_too_big = r->continued = r->chunked = r->no_body = r->close_after = false;
	r->body_mode = BODY_UNTAKEN;
	r->answer = ANSWER_NONE;
	r->status = 0;
	r->discarded = 0;
	r->sent = 0;
	r->left = 0;
	r->gone = r->drained = NULL;
	r->tick = NULL;
	buf_clear(&r->extra);
	if (r->body.cap > BODY_KEEP)
		buf_done(&r->body);
	else
		buf_clear(&r->body);
	arena_reset(r->arena);
}

static void report(struct http_request *r)
{
	const struct http_server *s = r->c.server;

	if (r->reported)
		return;
	r->reported = true;
	if (s->o.done)
		s->o.done(s->o.user, r, r->status ? r->status : 499, r->sent,
			  (clock_now_ns() - r->start_ns) / 1000);
}

void exchange_over(struct http_request *r)
{
	struct conn *c = &r->c;

	report(r);
	r->active = false;
	r->gone = r->drained = NULL;
	r->tick = NULL;
	if (c->state == CONN_CLOSED) {
		server_rebury(c->server, c); /* its client left long ago */
		return;
	}
	c->since_ms = loop_now_ms(c->loop);
	conn_set_low_water(c, OUT_HIGH);
	if (r->close_after || c->server->draining)
		conn_finish(c, r->is_bad || (!r->complete && r->head->body_length != 0));
	else if (c->in.len > 0)
		conn_resume(c);
}

/* A body that nobody took is read away when it is short, to keep the connection. */
void exchange_answered(struct http_request *r)
{
	const struct http_limits *limits;

	r->answer = ANSWER_ENDED;
	if (r->complete || r->c.state == CONN_CLOSED || r->close_after) {
		exchange_over(r);
		return;
	}
	limits = &r->c.server->o.limits;
	if (r->head->body_length > (int64_t)limits->drain_max ||
	    (r->head->expects_continue && !r->continued)) {
		r->close_after = true;
		exchange_over(r);
		return;
	}
	r->body_mode = BODY_DISCARD;
	r->body_paused = false;
	r->c.since_ms = loop_now_ms(r->c.loop);
	conn_resume(&r->c);
}

void exchange_upgrade(struct http_request *r, const struct conn_ops *ops)
{
	r->close_after = false;
	r->gone = r->drained = NULL;
	answer_upgrade(r);
	r->c.ops = ops;
}

void exchange_leave_upgrade(struct http_request *r, bool linger)
{
	r->c.ops = &http_ops;
	r->answer = ANSWER_ENDED;
	r->close_after = true;
	r->is_bad = linger;
	exchange_over(r);
}

void exchange_tell_gone(struct http_request *r)
{
	void (*gone)(void *user, struct http_request *r) = r->gone;

	r->gone = r->drained = NULL;
	r->tick = NULL;
	if (r->body_mode == BODY_STREAM && !r->body_told)
		r->body_ops.gone(r->body_user, r);
	r->body_told = true;
	if (gone)
		gone(r->gone_user, r);
}

static bool waits_for_body(const struct http_request *r)
{
	return (r->body_mode == BODY_STREAM || r->body_mode == BODY_COLLECT) && !r->body_told;
}

bool exchange_is_forgotten(struct conn *c)
{
	struct http_request *r = request_of(c);

	if (r->active && (waits_for_body(r) || r->gone)) {
		exchange_tell_gone(r);
		report(r);
		r->active = false;
	}
	return !r->active;
}

bool exchange_is_quiet(const struct conn *c, uint64_t now_ms)
{
	if (c->state == CONN_LINGERING)
		return true;
	if (conn_pending(c) > 0 && now_ms - c->output_ms < STUCK_MS)
		return false;
	return exchange_is_answered(c);
}

bool exchange_is_answered(const struct conn *c)
{
	const struct http_request *r = request_of(c);

	return !r->active || r->answer == ANSWER_ENDED;
}

void exchange_refuse(struct http_request *r, int status, const char *message)
{
	const struct http_server_options *o = &r->c.server->o;

	r->active = r->is_bad = true;
	r->close_after = true;
	buf_clear(&r->extra);
	if (!o->refuse || !o->refuse(o->user, r, status, message))
		http_reply_error(r, status, "invalid_request", message);
}

/* A request that broke the rules or a limit on the way. */
static void on_bad(struct http_request *r, int status, const char *message)
{
	if (r->active && r->answer == ANSWER_ENDED) {
		r->close_after = r->is_bad = true;
		exchange_over(r);
		return;
	}
	if (r->active && r->answer == ANSWER_BEGUN) {
		conn_lose(&r->c);
		return;
	}
	if (r->active) {
		exchange_tell_gone(r);
	} else {
		reset(r);
		r->start_ns = clock_now_ns();
		id_next(&r->c.server->ids, r->id);
	}
	exchange_refuse(r, status, message);
}

static void on_head(struct http_request *r)
{
	struct http_server *s = r->c.server;

	reset(r);
	r->active = true;
	r->start_ns = clock_now_ns();
	id_next(&s->ids, r->id);
	r->close_after = !r->head->keep_alive;
	if (s->o.cors && cors_answer(r, s->o.cors))
		return;
	s->o.handle(s->o.user, r);
}

static void on_data(struct http_request *r, struct str piece)
{
	switch (r->body_mode) {
	case BODY_STREAM:
		r->body_ops.data(r->body_user, r, piece.data, piece.len);
		break;
	case BODY_COLLECT:
		if (piece.len > r->body_max - r->body.len)
			on_bad(r, 413, "the request's body is too long");
		else if (buf_append(&r->body, piece.data, piece.len) < 0)
			on_bad(r, 500, "out of memory");
		break;
	case BODY_DISCARD:
		r->discarded += piece.len;
		if (r->discarded > r->c.server->o.limits.drain_max)
			on_bad(r, 413, "the request's body is too long");
		break;
	case BODY_UNTAKEN:
		assert(!"a body is not read before somebody takes it");
	}
}

static bool can_tell_end(const struct http_request *r)
{
	return r->active && r->complete && !r->body_told && !r->body_paused &&
	       (r->body_mode == BODY_COLLECT || r->body_mode == BODY_STREAM);
}

static void tell_end(struct http_request *r)
{
	r->body_told = true;
	if (r->body_mode == BODY_STREAM)
		r->body_ops.end(r->body_user, r);
	else
		r->body_got(r->body_user, r, buf_str(&r->body), r->body.len);
}

static void on_complete(struct http_request *r)
{
	r->complete = true;
	if (r->answer == ANSWER_ENDED)
		exchange_over(r);
}

static bool can_parse(const struct http_request *r)
{
	if (!r->active)
		return conn_pending(&r->c) <= OUT_HIGH;
	if (r->complete)
		return false;
	if (r->head->body_length == 0)
		return true;
	return r->body_mode != BODY_UNTAKEN && !r->body_paused;
}

/* One step; false when there is nothing to do before more bytes or calls come. */
static bool step(struct http_request *r, const char **data, size_t *n)
{
	struct str piece = { 0 };

	if (r->c.state != CONN_OPEN || r->c.ops != &http_ops)
		return false;
	if (r->active && r->body_too_big) {
		on_bad(r, 413, "the request's body is too long");
		return true;
	}
	if (can_tell_end(r)) {
		tell_end(r);
		return true;
	}
	if (!can_parse(r))
		return false;
	switch (http1_next(r->parser, data, n, &piece)) {
	case HTTP1_MORE:
		return false;
	case HTTP1_HEAD:
		on_head(r);
		break;
	case HTTP1_DATA:
		on_data(r, piece);
		break;
	case HTTP1_END:
		on_complete(r);
		break;
	case HTTP1_BAD:
		on_bad(r, http1_status(r->parser), http1_reason(r->parser));
		break;
	}
	return true;
}

static size_t http_input(struct conn *c, const char *data, size_t n)
{
	struct http_request *r = request_of(c);
	size_t left = n;

	/* The clock of a head runs from its first byte, that of a body from its last one. */
	if (r->active || http1_is_idle(r->parser))
		c->since_ms = loop_now_ms(c->loop);
	while (step(r, &data, &left))
		;
	return n - left;
}

static bool http_wants(const struct conn *c)
{
	return can_parse(request_of(c));
}

static bool http_is_over(const struct conn *c)
{
	const struct http_request *r = request_of(c);

	return !r->active && http1_is_idle(r->parser) && c->in.len == 0;
}

static void http_drained(struct conn *c)
{
	struct http_request *r = request_of(c);

	if (r->active && r->drained)
		r->drained(r->drained_user, r);
	else
		conn_resume(c);
}

static void http_gone(struct conn *c)
{
	struct http_request *r = request_of(c);

	if (!r->active)
		return;
	if (r->answer != ANSWER_ENDED && !r->gone && !waits_for_body(r)) {
		report(r); /* stays for its handler, who does not know */
		return;
	}
	if (r->answer != ANSWER_ENDED)
		exchange_tell_gone(r);
	exchange_over(r);
}

static void http_tick(struct conn *c, uint64_t now_ms)
{
	const struct http_limits *limits = &c->server->o.limits;
	struct http_request *r = request_of(c);
	uint64_t waited = now_ms - c->since_ms;

	/* Not when the answer ends: whoever gave it has what is there in his hands still. */
	if (!r->active && arena_used(r->arena) > 0)
		arena_reset(r->arena);
	if (!r->active && http1_is_idle(r->parser)) {
		if (waited >= limits->idle_ms && conn_pending(c) == 0)
			conn_close(c);
	} else if (!r->active) {
		if (waited >= limits->head_ms)
			on_bad(r, 408, "the request's head took too long");
	} else if (can_parse(r)) {
		if (waited >= limits->body_ms)
			on_bad(r, 408, "the request's body stopped coming");
		else if ((clock_now_ns() - r->start_ns) / 1000000 >= limits->whole_ms)
			on_bad(r, 408, "the request's body took too long");
	} else if (r->tick) {
		r->tick(r, now_ms);
	}
}

static void http_leave(struct conn *c)
{
	struct http_request *r = request_of(c);

	if (!r->active && http1_is_idle(r->parser))
		conn_finish(c, false);
	else
		r->close_after = true;
}

static const struct conn_ops http_ops = {
	.input = http_input,
	.wants = http_wants,
	.is_over = http_is_over,
	.drained = http_drained,
	.gone = http_gone,
	.tick = http_tick,
	.leave = http_leave,
};
