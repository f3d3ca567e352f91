/* Questions to the client in the middle of a request. In the legacy era they are requests of ours
 * on its stream; in the modern one the request ends with them, and comes again with the answers.
 * For a handler both are the same: it is called again. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "mcp/server_impl.h"

#define ASK_ID_SIZE 48

struct asked { /* arena: a question that was sent */
	struct list node;
	const char *key;
	char id[ASK_ID_SIZE];
	const char *answer; /* JSON; NULL: none yet */
};

/* ---- the modern era ---- */

void mcp_asks_write(struct jw *w, const struct list *asks)
{
	jw_key(w, "inputRequests");
	jw_object_begin(w);
	LIST_FOREACH (asks, a, struct tool_ask, node) {
		jw_key(w, a->key);
		jw_object_begin(w);
		jw_str_field(w, "method", a->method);
		jw_raw_field(w, "params", a->params, strlen(a->params));
		jw_object_end(w);
	}
	jw_object_end(w);
}

static void ask_by_result(struct mcp_request *q, const char *state)
{
	_cleanup_(buf_done) struct buf sealed = { 0 };
	struct jw *w;

	if (mcp_state_seal(q, state, &sealed) < 0)
		return mcp_fail(q, RPC_INTERNAL, "the state could not be sealed");
	w = mcp_result_begin(q);
	if (!list_is_empty(&q->asks))
		mcp_asks_write(w, &q->asks);
	jw_str_field(w, "requestState", buf_str(&sealed));
	mcp_result_end_as(q, "input_required");
}

/* ---- the legacy era ---- */

/* The questions that were asked are in q->asked; those to come are in q->asks. */
static struct asked *ask_one(struct mcp_request *q, const struct tool_ask *ask)
{
	struct asked *a = arena_alloc(q->arena, sizeof(*a));
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w;

	if (!a)
		return NULL;
	a->key = ask->key;
	if (str_format(a->id, sizeof(a->id), "\"holt-%" PRIu64 "\"", ++q->session->n_asked) < 0)
		return NULL;
	w = jw_begin(&b);
	rpc_request_begin(&w, a->id, ask->method);
	jw_raw(&w, ask->params, strlen(ask->params));
	rpc_end(&w);
	if (jw_end(&w) < 0 || !q->stream)
		return NULL;
	mcp_stream_send(q->stream, b.data, b.len);
	return a;
}

static void ask_by_request(struct mcp_request *q, const char *state)
{
	const char *kept = arena_strndup(q->arena, state, strlen(state));

	if (!kept || !q->stream || !q->stream->takes_sse || list_is_empty(&q->asks))
		return mcp_fail(q, RPC_INTERNAL, "the client cannot be asked on this stream");
	q->state = kept;
	LIST_FOREACH (&q->asks, ask, struct tool_ask, node) {
		struct asked *a = ask_one(q, ask);

		if (!a)
			return mcp_fail(q, RPC_INTERNAL, "out of memory");
		list_push_back(&q->asked, &a->node);
		q->n_asked++;
	}
	list_init(&q->asks);
}

void mcp_asks(struct mcp_request *q, const char *state)
{
	if (!q->row->may_ask)
		return mcp_fail(q, RPC_INTERNAL, "this cannot ask");
	if (q->era == MCP_MODERN)
		ask_by_result(q, state);
	else
		ask_by_request(q, state);
}

/* All that was ever answered for this request. */
static int gather(struct mcp_request *q)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jv_doc *doc = NULL;
	struct jw w = jw_begin(&b);
	int r;

	jw_object_begin(&w);
	LIST_FOREACH (&q->asked, a, struct asked, node)
		if (a->answer)
			jw_raw_field(&w, a->key, a->answer, strlen(a->answer));
	jw_object_end(&w);
	r = jw_end(&w);
	if (r == 0)
		r = jv_parse(b.data, b.len, b.len, &doc, NULL);
	if (r < 0)
		return r;
	(void)jv_free(q->answers_doc);
	q->answers_doc = doc;
	q->answers = jv_root(doc);
	return 0;
}

/* An error is an answer, too: a refusal. */
static const char *answer_text(struct mcp_request *q, const struct rpc_message *m)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);

	if (m->kind == RPC_RESULT) {
		jw_value(&w, m->result);
	} else {
		jw_object_begin(&w);
		jw_key(&w, "error");
		jw_object_begin(&w);
		jw_int_field(&w, "code", m->code);
		jw_str_field(&w, "message", m->text);
		jw_object_end(&w);
		jw_object_end(&w);
	}
	return jw_end(&w) < 0 ? NULL : arena_strndup(q->arena, b.data, b.len);
}

static struct asked *find(struct mcp_request *q, const char *id)
{
	LIST_FOREACH (&q->asked, a, struct asked, node)
		if (!a->answer && strcmp(a->id, id) == 0)
			return a;
	return NULL;
}

void mcp_answered(struct mcp_session *n, const struct rpc_message *m)
{
	char id[RPC_ID_MAX];

	if (rpc_id(m->id, id, sizeof(id)) < 0)
		return;
	LIST_FOREACH (&n->server->requests, q, struct mcp_request, node) {
		struct asked *a = q->session == n ? find(q, id) : NULL;

		if (!a)
			continue;
		a->answer = answer_text(q, m);
		if (!a->answer)
			return mcp_fail(q, RPC_INTERNAL, "out of memory");
		if (--q->n_asked > 0)
			return;
		if (gather(q) < 0)
			return mcp_fail(q, RPC_INTERNAL, "out of memory");
		q->row->handle(q);
		return;
	}
}
