#include "e2b/rpc.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "api/call.h"
#include "api/problem.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"
#include "net/http.h"
#include "json/jv_decode.h"
#include "json/jw.h"

#define TEXT_MAX 512u

/* ---- answers ---- */

static bool is_stream(const struct api_call *c)
{
	enum connect_kind kind = CONNECT_UNARY;

	return connect_kind_of(http_header(c->http, "content-type"), &kind) == 0 &&
	       kind == CONNECT_STREAM;
}

void rpc_begin(struct api_call *c)
{
	http_begin(c->http, 200, CONNECT_TYPE_STREAM, -1);
}

static void send_error(struct api_call *c, int status, enum connect_code code, const char *text)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);

	connect_write_error(&w, code, text);
	if (jw_end(&w) < 0)
		return http_reply(c->http, status, NULL, NULL, 0);
	http_reply(c->http, status, CONNECT_TYPE_UNARY, b.data, b.len);
}

static void send_end(struct api_call *c, enum connect_code code, const char *text)
{
	_cleanup_(buf_done) struct buf b = { 0 };

	if (connect_put_end(&b, code, text) < 0)
		return http_reply(c->http, 503, NULL, NULL, 0);
	rpc_begin(c);
	(void)http_write(c->http, b.data, b.len); /* a client that has gone misses nothing */
	http_end(c->http);
}

void rpc_fail(struct api_call *c, enum connect_code code, const char *fmt, ...)
{
	char text[TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap); /* a long one is cut */
	va_end(ap);
	if (is_stream(c))
		return send_end(c, code, text);
	send_error(c, connect_status(code), code, text);
}

/* Who may not ask, and what is not there to be asked, is told by the status alone, also on a
 * stream: so do those in front of a real one. */
void rpc_refuse(struct api_call *c, int status, const char *message)
{
	enum connect_code code = connect_code_of(status);

	if (is_stream(c) && status != 401 && status != 502)
		return send_end(c, code, message);
	send_error(c, status, code, message);
}

void rpc_refuse_unknown(struct api_call *c)
{
	char text[TEXT_MAX];

	(void)snprintf(text, sizeof(text), "there is no call '%.200s'", http_path(c->http));
	send_error(c, 404, CONNECT_UNIMPLEMENTED, text);
}

void rpc_reply(struct api_call *c, struct jw *w)
{
	call_reply(c, 200, w);
}

void rpc_reply_empty(struct api_call *c)
{
	http_reply(c->http, 200, CONNECT_TYPE_UNARY, "{}", 2);
}

/* ---- messages ---- */

struct taking { /* in the request's arena */
	struct api_call *call;
	const struct rpc_method *method;
};

static void decode(struct api_call *c, const struct rpc_method *m, const char *data, size_t n)
{
	struct arena *a = http_arena(c->http);
	struct jv_problem problem = { 0 };
	struct jv_doc *doc = NULL;
	struct err err = { 0 };
	int r = jv_parse(data, n, RPC_MESSAGE_MAX, &doc, &err);

	c->body = arena_alloc(a, m->size);
	if (r == -ENOMEM || !c->body) {
		(void)jv_free(doc);
		return rpc_fail(c, CONNECT_UNAVAILABLE, "out of memory");
	}
	if (r < 0)
		return rpc_fail(c, CONNECT_INVALID_ARGUMENT, "the message: %s", err.text);
	if (m->defaults)
		memcpy(c->body, m->defaults, m->size);
	r = jv_decode_known(jv_root(doc), m->fields, m->count, a, c->body, &problem);
	if (r == 0)
		m->handle(c);
	else if (r == -ENOMEM)
		rpc_fail(c, CONNECT_UNAVAILABLE, "out of memory");
	else
		rpc_fail(c, CONNECT_INVALID_ARGUMENT, "%s%s%s", problem.field,
			 problem.field[0] ? ": " : "", problem.text);
	(void)jv_free(doc);
}

static void got(void *user, struct http_request *r, const char *data, size_t n)
{
	struct taking *t = user;
	struct connect_envelope e = { .data = data, .len = n };
	ssize_t used = (ssize_t)n;

	(void)r;
	if (t->method->kind == CONNECT_STREAM)
		used = connect_next(data, n, RPC_MESSAGE_MAX, &e);
	if (used < 0 || (size_t)used != n || e.is_end || (n == 0 && !e.data))
		return rpc_fail(t->call, CONNECT_INVALID_ARGUMENT,
				"the body is not one message in an envelope");
	decode(t->call, t->method, e.data, e.len);
}

bool rpc_takes(struct api_call *c, enum connect_kind want)
{
	enum connect_kind kind = CONNECT_UNARY;

	if (connect_kind_of(http_header(c->http, "content-type"), &kind) == 0 && kind == want)
		return true;
	(void)http_header_add(c->http, "Accept-Post",
			      want == CONNECT_STREAM ? CONNECT_TYPE_STREAM : CONNECT_TYPE_UNARY);
	send_error(c, 415, CONNECT_UNKNOWN, "this call takes JSON messages only");
	return false;
}

void rpc_take(struct api_call *c, const struct rpc_method *m)
{
	struct taking *t = arena_alloc(http_arena(c->http), sizeof(*t));

	if (!rpc_takes(c, m->kind))
		return;
	if (!t)
		return rpc_fail(c, CONNECT_UNAVAILABLE, "out of memory");
	t->call = c;
	t->method = m;
	http_body_collect(c->http, RPC_MESSAGE_MAX + CONNECT_HEAD, got, t);
}

const char *rpc_user(struct api_call *c)
{
	char *user = arena_alloc(http_arena(c->http), CONNECT_USER_MAX + 1);

	if (!user) {
		rpc_fail(c, CONNECT_UNAVAILABLE, "out of memory");
		return NULL;
	}
	if (connect_user(http_header(c->http, "authorization"), user) < 0) {
		rpc_fail(c, CONNECT_UNAUTHENTICATED, "Authorization: want Basic with a user name");
		return NULL;
	}
	return user;
}
