#include "e2b/rpc.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "api/body.h"
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

static bool open_envelope(struct api_call *c, struct str *data)
{
	struct connect_envelope e = { 0 };
	ssize_t used = connect_next(data->data, data->len, RPC_MESSAGE_MAX, &e);

	if (used < 0 || (size_t)used != data->len || e.is_end || !e.data) {
		rpc_fail(c, CONNECT_INVALID_ARGUMENT, "the body is not one message in an envelope");
		return false;
	}
	*data = (struct str){ e.data, e.len };
	return true;
}

static void refuse_message(struct api_call *c, const struct err *err, const char *field)
{
	if (err->code == ENOMEM)
		return rpc_fail(c, CONNECT_UNAVAILABLE, "out of memory");
	rpc_fail(c, CONNECT_INVALID_ARGUMENT, "%s%s", field[0] ? "" : "the message: ", err->text);
}

static void got_message(struct api_call *c, const void *user, struct jv_doc **doc)
{
	const struct rpc_method *m = user;

	(void)doc;
	m->handle(c);
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
	bool is_stream = m->kind == CONNECT_STREAM;

	if (!rpc_takes(c, m->kind))
		return;
	body_take(c, &(struct body_plan){ .max = RPC_MESSAGE_MAX + (is_stream ? CONNECT_HEAD : 0),
					  .table = { .fields = m->fields,
						     .count = m->count,
						     .size = m->size,
						     .defaults = m->defaults },
					  .takes_unknown = true,
					  .unwrap = is_stream ? open_envelope : NULL,
					  .got = got_message,
					  .refuse = refuse_message,
					  .user = m });
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
