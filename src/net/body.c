/* Taking a request's body. */
#include <assert.h>

#include "loop/loop.h"
#include "net/exchange.h"
#include "net/http1.h"
#include "net/server.h"

int64_t http_body_length(const struct http_request *r)
{
	return r->head->body_length;
}

/* The client may wait for a sign that its body is wanted. One that already sends needs none. */
static void take(struct http_request *r, enum body_mode mode)
{
	static const char sign[] = "HTTP/1.1 100 Continue\r\n\r\n";

	assert(r->active && r->body_mode == BODY_UNTAKEN && r->answer != ANSWER_ENDED);
	r->body_mode = mode;
	if (r->c.state == CONN_CLOSED) {
		server_rebury(r->c.server, &r->c); /* finds out at the end of the turn */
		return;
	}
	r->c.since_ms = loop_now_ms(r->c.loop);
	if (r->head->expects_continue && !r->body_too_big && r->answer == ANSWER_NONE) {
		r->continued = true;
		if (r->c.in.len == 0)
			conn_queue(&r->c, sign, sizeof(sign) - 1);
	}
	conn_resume(&r->c);
}

void http_body_collect(struct http_request *r, size_t max,
		       void (*got)(void *user, struct http_request *r, const char *data, size_t n),
		       void *user)
{
	int64_t length = r->head->body_length;

	r->body_got = got;
	r->body_user = user;
	r->body_max = r->body.max = max < BUF_MAX ? max : BUF_MAX;
	r->body_too_big = length > 0 && (uint64_t)length > r->body_max;
	if (length > 0 && !r->body_too_big)
		(void)buf_reserve(&r->body, length < 64 << 10 ? (size_t)length : 64 << 10);
	take(r, BODY_COLLECT);
}

void http_body_stream(struct http_request *r, const struct http_body_ops *ops, void *user)
{
	assert(ops->data && ops->end && ops->gone);
	r->body_ops = *ops;
	r->body_user = user;
	take(r, BODY_STREAM);
}

void http_body_pause(struct http_request *r, bool on)
{
	assert(r->body_mode == BODY_STREAM || !on);
	if (r->body_paused == on)
		return;
	r->body_paused = on;
	r->c.since_ms = loop_now_ms(r->c.loop);
	if (!on)
		conn_resume(&r->c);
}
