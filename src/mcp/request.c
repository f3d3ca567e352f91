/* What a request says: results, errors, notices on the way. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "mcp/server_impl.h"

#define META "io.modelcontextprotocol/"

const char *const mcp_levels[] = { "debug",    "info",  "notice",    "warning", "error",
				   "critical", "alert", "emergency", NULL };

int mcp_level_from(const char *name)
{
	for (int i = 0; name && mcp_levels[i]; i++)
		if (strcmp(mcp_levels[i], name) == 0)
			return i;
	return -1;
}

/* One message is written at a time, and sent before the next begins. */
static struct jw *begin(struct mcp_server *s)
{
	buf_clear(&s->out);
	s->w = jw_begin(&s->out);
	return &s->w;
}

/* The request is over with this. */
static void answer(struct mcp_request *q, long code)
{
	struct mcp_server *s = q->server;
	struct mcp_stream *t = q->stream;

	if (jw_end(&s->w) < 0) {
		rpc_error(begin(s), q->id, RPC_INTERNAL, "the answer is too large", NULL);
		code = RPC_INTERNAL;
		if (jw_end(&s->w) < 0)
			buf_clear(&s->out);
	}
	q->stream = NULL;
	mcp_request_free(q);
	if (t)
		mcp_stream_answer(t, buf_str(&s->out), s->out.len, code);
}

struct jw *mcp_result_begin(struct mcp_request *q)
{
	struct jw *w = begin(q->server);

	rpc_result_begin(w, q->id);
	jw_object_begin(w);
	return w;
}

/* What every result of the modern era has; a handler that is no "complete" one has said so. */
static void write_result_meta(struct mcp_request *q, struct jw *w, const char *type)
{
	if (q->era != MCP_MODERN)
		return;
	if (type)
		jw_str_field(w, "resultType", type);
	if (q->row && q->row->is_cached) {
		jw_uint_field(w, "ttlMs", MCP_TTL_MS);
		jw_str_field(w, "cacheScope", "private");
	}
	jw_key(w, "_meta");
	jw_object_begin(w);
	jw_key(w, META "serverInfo");
	mcp_server_info(w);
	jw_object_end(w);
}

static void result_end(struct mcp_request *q, const char *type)
{
	struct jw *w = &q->server->w;

	write_result_meta(q, w, type);
	jw_object_end(w);
	rpc_end(w);
	answer(q, 0);
}

void mcp_result_end(struct mcp_request *q)
{
	result_end(q, "complete");
}

void mcp_result_end_as(struct mcp_request *q, const char *type)
{
	result_end(q, type);
}

void mcp_result_empty(struct mcp_request *q)
{
	(void)mcp_result_begin(q);
	mcp_result_end(q);
}

void mcp_fail_data(struct mcp_request *q, long code, const char *text, const char *data)
{
	rpc_error(begin(q->server), q->id, code, text, data);
	answer(q, code);
}

void mcp_fail(struct mcp_request *q, long code, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	mcp_fail_data(q, code, text, NULL);
}

void mcp_fail_client(struct mcp_request *q, unsigned missing)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);

	jw_object_begin(&w);
	jw_key(&w, "requiredCapabilities");
	mcp_client_names(&w, missing);
	jw_object_end(&w);
	(void)jw_end(&w);
	mcp_fail_data(q, MCP_NEEDS_CLIENT, "the client has not declared what this needs",
		      buf_str(&b));
}

void mcp_drop(struct mcp_request *q)
{
	struct mcp_stream *t = q->stream;

	q->stream = NULL;
	mcp_request_free(q);
	if (t)
		mcp_stream_drop(t);
}

/* ---- on its way ---- */

struct jw *mcp_notice_begin(struct mcp_request *q, const char *method)
{
	struct jw *w = begin(q->server);

	rpc_notification_begin(w, method);
	jw_object_begin(w);
	return w;
}

/* What a listener hears says which of its requests it belongs to. */
static void write_notice_meta(struct mcp_request *q, struct jw *w)
{
	if (!q->is_listening)
		return;
	jw_key(w, "_meta");
	jw_object_begin(w);
	jw_raw_field(w, META "subscriptionId", q->id, strlen(q->id));
	jw_object_end(w);
}

void mcp_notice_end(struct mcp_request *q)
{
	struct mcp_server *s = q->server;

	write_notice_meta(q, &s->w);
	jw_object_end(&s->w);
	rpc_end(&s->w);
	if (jw_end(&s->w) == 0 && q->stream && !q->is_cancelled)
		mcp_stream_send(q->stream, s->out.data, s->out.len);
}

bool mcp_has_progress(const struct mcp_request *q)
{
	enum jv_kind kind = jv_kind(jv_get(q->meta, "progressToken"));

	return (kind == JV_STRING || kind == JV_NUMBER) && q->stream && q->stream->takes_sse;
}

void mcp_progress(struct mcp_request *q, double at, double total, const char *text)
{
	struct jw *w;

	if (!mcp_has_progress(q))
		return;
	w = mcp_notice_begin(q, "notifications/progress");
	jw_key(w, "progressToken");
	jw_value(w, jv_get(q->meta, "progressToken"));
	jw_double_field(w, "progress", at);
	if (total > 0)
		jw_double_field(w, "total", total);
	if (text)
		jw_str_field(w, "message", text);
	mcp_notice_end(q);
}

void mcp_log(struct mcp_request *q, const char *level, const char *logger, const char *json)
{
	int at = q->session ? q->session->log_level : q->log_level;
	struct jw *w;

	if (at < 0 || mcp_level_from(level) < at || !q->stream || !q->stream->takes_sse)
		return;
	w = mcp_notice_begin(q, "notifications/message");
	jw_str_field(w, "level", level);
	if (logger)
		jw_str_field(w, "logger", logger);
	jw_raw_field(w, "data", json, strlen(json));
	mcp_notice_end(q);
}
