/* The door: Streamable HTTP of both eras on one address. What a message says decides its era: those
 * of the modern one say so in the head and in _meta. */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "api/body.h"
#include "api/call.h"
#include "api/problem.h"
#include "api/queries.h"
#include "api/routes.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "config/config.h"
#include "mcp/guard.h"
#include "mcp/metadata.h"
#include "mcp/server_impl.h"
#include "net/http.h"
#include "net/sse.h"
#include "tools/toolbox.h"

#define SESSION "Mcp-Session-Id"
#define SANDBOX "Holt-Sandbox"
#define VERSION "MCP-Protocol-Version"
#define META_VERSION "io.modelcontextprotocol/protocolVersion"
#define REFUSED -32000 /* what HTTP says no to, before there is a message */

struct post { /* arena: a POST on its way; gone with the answer */
	struct api_call *call;
	struct mcp_server *server;
	const char *base;
	char box_id[ID_LEN + 1];
	struct mcp_session *session;
	bool takes_sse;
};

struct watch { /* arena: a stream that lasts ends with the key that opened it */
	struct call_stream base;
	struct mcp_stream *stream;
};

/* ---- errors that are HTTP's ---- */

static void reply_error(struct api_call *c, int status, struct jv id, long code, const char *text,
			const char *data)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);
	char id_text[RPC_ID_MAX];
	bool has_id = rpc_id(id, id_text, sizeof(id_text)) == 0;

	rpc_error(&w, has_id ? id_text : NULL, code, text, data);
	if (jw_end(&w) < 0)
		return http_reply_error(c->http, status, "internal_error", "out of memory");
	http_reply(c->http, status, "application/json", b.data, b.len);
}

static void refuse(struct api_call *c, int status, const char *code, const char *message,
		   const char *field)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);

	jw_object_begin(&w);
	jw_str_field(&w, "code", code);
	if (field)
		jw_str_field(&w, "field", field);
	jw_object_end(&w);
	(void)jw_end(&w);
	if (status == 401)
		mcp_metadata_challenge(c);
	reply_error(c, status, (struct jv){ NULL }, REFUSED, message, buf_str(&b));
}

static void no(struct api_call *c, int status, const char *text)
{
	reply_error(c, status, (struct jv){ NULL }, REFUSED, text, NULL);
}

/* ---- whose it is ---- */

/* A token of one sandbox is good for that one, here as at its own address. False: answered. */
static bool find_box(struct api_call *c, char ret[ID_LEN + 1])
{
	const char *name = call_param(c, "id");
	struct sandbox *sb;

	if (name[0] == '\0')
		return str_copy(ret, ID_LEN + 1, c->who->sandbox_id) == 0;
	sb = call_find_sandbox(c);
	if (!sb) {
		no(c, 404, "there is no such sandbox");
		return false;
	}
	return str_copy(ret, ID_LEN + 1, sandbox_id(sb)) == 0;
}

static bool may_enter(struct api_call *c, char box_id[ID_LEN + 1])
{
	if (!mcp_guard(c)) {
		no(c, 403, "requests from this origin or for this host are refused");
		return false;
	}
	return find_box(c, box_id);
}

/* False: answered. */
static bool find_session(struct api_call *c, struct mcp_server *s, const char *box_id,
			 struct mcp_session **ret)
{
	const char *id = http_header(c->http, SESSION);

	if (!id) {
		no(c, 400, "the header " SESSION " is wanted: initialize first");
		return false;
	}
	*ret = mcp_session_find(s, id, c->who, box_id);
	if (!*ret) {
		no(c, 404, "there is no such session: initialize anew");
		return false;
	}
	return true;
}

/* ---- the modern era ---- */

static bool is_modern(struct api_call *c, const struct rpc_message *m)
{
	const char *version = http_header(c->http, VERSION);

	if (version && strcmp(version, MCP_MODERN_VERSION) == 0)
		return true;
	return jv_kind(jv_get(jv_get(m->params, "_meta"), META_VERSION)) != JV_ABSENT;
}

static void cut(struct call_stream *base)
{
	mcp_stream_cut(((struct watch *)(void *)base)->stream);
}

/* NULL: answered. */
static struct watch *watch(struct api_call *c, const char *name)
{
	struct watch *w = arena_alloc(http_arena(c->http), sizeof(*w));

	if (!w) {
		no(c, 503, "out of memory");
		return NULL;
	}
	w->base.cut = cut;
	return call_stream_begin(c, &w->base, "mcp", name) ? w : NULL;
}

/* Its stream is there: the end of one is the end of the other. */
static void attach(struct watch *w, struct mcp_stream *t)
{
	w->stream = t;
	t->watch = &w->base;
}

static void post_modern(struct post *p, const struct rpc_message *m, struct jv_doc **doc)
{
	struct api_call *c = p->call;
	struct mcp_head head = { http_header(c->http, VERSION), http_header(c->http, "Mcp-Method"),
				 http_header(c->http, "Mcp-Name"), c->http };
	struct mcp_call call = { .who = c->who,
				 .base = p->base,
				 .box_id = p->box_id,
				 .era = MCP_MODERN,
				 .version = MCP_MODERN_VERSION };
	const char *text, *data;
	struct mcp_said said;
	struct watch *w = NULL;
	long code;

	if (m->kind != RPC_REQUEST)
		return http_reply(c->http, 202, NULL, NULL, 0);
	code = mcp_head_check(p->server, &head, m, p->box_id[0] != '\0', http_arena(c->http), &said,
			      &text, &data);
	if (code)
		return reply_error(c, 400, m->id, code, text, data);
	if (strcmp(m->method, "subscriptions/listen") == 0) {
		w = watch(c, http_request_id(c->http));
		if (!w)
			return;
	}
	call.client = said.client;
	call.log_level = said.log_level;
	call.stream = mcp_stream_open(p->server, NULL, c->http, p->takes_sse);
	if (!call.stream) {
		if (w)
			call_stream_end(&w->base);
		return no(c, 503, "out of memory");
	}
	if (w)
		attach(w, call.stream);
	call.stream->n_open = 1;
	mcp_begin(p->server, &call, TAKE(*doc), m);
}

/* ---- the legacy era ---- */

/* The version that both speak: the client's, or our newest. */
static const char *agree(const char *version)
{
	for (size_t i = 0; mcp_versions[i] && version; i++)
		if (strcmp(mcp_versions[i], version) == 0)
			return mcp_versions[i];
	return MCP_LEGACY_VERSION;
}

static const char *const box_choices[] = { "key", "session", NULL };

/* Whether the session is to have a sandbox of its own, by the address or the head. False: answered.
 */
static bool wants_own_box(struct api_call *c, bool *ret)
{
	const char *which = http_header(c->http, SANDBOX);

	if (!call_query(c, "sandbox", &which))
		return false;
	*ret = which && strcmp(which, box_choices[1]) == 0;
	if (!which || *ret || strcmp(which, box_choices[0]) == 0)
		return true;
	no(c, 400, SANDBOX ": want key or session");
	return false;
}

/* False: answered. */
static bool begin_session(struct post *p, const struct rpc_message *m)
{
	const char *version = jv_text(jv_get(m->params, "protocolVersion"));
	struct mcp_session_wish wish = {
		.client = mcp_client_of(jv_get(m->params, "capabilities")),
	};
	struct err err = { 0 };

	if (!wants_own_box(p->call, &wish.has_own_box))
		return false;
	if (!version) {
		reply_error(p->call, 400, m->id, RPC_PARAMS, "protocolVersion: wanted", NULL);
		return false;
	}
	if (mcp_session_create(p->server, p->call->who, p->box_id, agree(version), &wish,
			       &p->session, &err) < 0) {
		reply_error(p->call, err.code == EAGAIN ? 429 : 503, m->id, REFUSED, err.text,
			    NULL);
		return false;
	}
	return true;
}

static void cancel(struct mcp_session *n, struct jv params)
{
	char id[RPC_ID_MAX];

	if (rpc_id(jv_get(params, "requestId"), id, sizeof(id)) < 0)
		return;
	LIST_FOREACH (&n->server->requests, q, struct mcp_request, node) {
		if (q->session == n && strcmp(q->id, id) == 0)
			return mcp_cancel(q);
	}
}

/* What needs no answer. */
static void take(struct mcp_session *n, const struct rpc_message *m)
{
	if (m->kind == RPC_RESULT || m->kind == RPC_ERROR)
		mcp_answered(n, m);
	else if (strcmp(m->method, "notifications/cancelled") == 0)
		cancel(n, m->params);
}

static struct mcp_call legacy_call(const struct post *p)
{
	return (struct mcp_call){ .who = p->call->who,
				  .base = p->base,
				  .box_id = p->box_id,
				  .session = p->session,
				  .era = MCP_LEGACY,
				  .version = p->session->version,
				  .client = p->session->client,
				  .log_level = p->session->log_level };
}

static bool is_version(const char *version)
{
	return !version || strcmp(agree(version), version) == 0;
}

static void post_legacy(struct post *p, const struct rpc_message *m, struct jv_doc **doc)
{
	struct api_call *c = p->call;
	bool is_first = m->kind == RPC_REQUEST && strcmp(m->method, "initialize") == 0;
	struct mcp_call call;

	if (!is_first && !is_version(http_header(c->http, VERSION)))
		return reply_error(c, 400, m->id, REFUSED,
				   "this version of the protocol is not spoken here", NULL);
	if (is_first ? !begin_session(p, m) : !find_session(c, p->server, p->box_id, &p->session))
		return;
	if (m->kind != RPC_REQUEST) {
		take(p->session, m);
		return http_reply(c->http, 202, NULL, NULL, 0);
	}
	call = legacy_call(p);
	call.stream = mcp_stream_open(p->server, p->session, c->http, p->takes_sse);
	if (!call.stream)
		return no(c, 503, "out of memory");
	call.stream->n_open = 1;
	mcp_begin(p->server, &call, TAKE(*doc), m);
}

/* ---- batches: of 2025-03-26 alone ---- */

/* Each message has a document of its own, as each has a life of its own. */
static int copy_of(struct jv v, struct jv_doc **ret)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);
	int r;

	jw_value(&w, v);
	r = jw_end(&w);
	return r < 0 ? r : jv_parse(b.data, b.len, b.len, ret, NULL);
}

static unsigned count_requests(struct jv batch)
{
	struct rpc_message m;
	unsigned n = 0;

	JV_FOREACH (batch, it)
		n += rpc_read(it.value, &m, NULL) == 0 && m.kind == RPC_REQUEST;
	return n;
}

static void begin_batch(struct post *p, struct jv batch, struct mcp_call *call)
{
	JV_FOREACH (batch, it) {
		struct jv_doc *doc = NULL;
		struct rpc_message m;

		if (rpc_read(it.value, &m, NULL) < 0)
			continue;
		if (m.kind != RPC_REQUEST)
			take(p->session, &m);
		else if (copy_of(it.value, &doc) == 0 && rpc_read(jv_root(doc), &m, NULL) == 0)
			mcp_begin(p->server, call, doc, &m);
		else
			mcp_stream_drop(call->stream);
	}
}

static void post_batch(struct post *p, struct jv batch)
{
	struct api_call *c = p->call;
	struct mcp_call call;
	unsigned n;

	if (!find_session(c, p->server, p->box_id, &p->session))
		return;
	if (strcmp(p->session->version, "2025-03-26") != 0)
		return no(c, 400, "this version of the protocol has no batches");
	if (jv_len(batch) == 0 || jv_len(batch) > MCP_BATCH_MAX)
		return no(c, 400, "a batch has 1 to 32 messages");
	n = count_requests(batch);
	call = legacy_call(p);
	if (n == 0) {
		begin_batch(p, batch, &call);
		return http_reply(c->http, 202, NULL, NULL, 0);
	}
	if (!p->takes_sse)
		return no(c, 406, "a batch is answered by text/event-stream");
	call.stream = mcp_stream_open(p->server, p->session, c->http, true);
	if (!call.stream)
		return no(c, 503, "out of memory");
	call.stream->is_batch = true;
	call.stream->n_open = n;
	begin_batch(p, batch, &call);
}

/* ---- the methods of HTTP ---- */

/* For log and trace: only of tools that there are, whatever a client calls them. */
static void note_tool(struct api_call *c, const struct post *p, const struct rpc_message *m)
{
	const char *name = jv_text(jv_get(m->params, "name"));

	if (strcmp(m->method, "tools/call") == 0 && name &&
	    tools_find(p->server->deps.tools, p->box_id[0] != '\0', name))
		(void)str_copy(c->tool, sizeof(c->tool), name);
}

static void got_message(struct api_call *c, const void *user, struct jv_doc **doc)
{
	struct post *p = c->body;
	struct rpc_message m;
	struct err err = { 0 };

	(void)user;
	if (jv_kind(jv_root(*doc)) == JV_ARRAY)
		return post_batch(p, jv_root(*doc));
	if (rpc_read(jv_root(*doc), &m, &err) < 0)
		return reply_error(c, 400, m.id, RPC_INVALID, err.text, NULL);
	if (m.method) {
		call_set_subject(c, m.method);
		note_tool(c, p, &m);
	}
	if (is_modern(c, &m))
		post_modern(p, &m, doc);
	else
		post_legacy(p, &m, doc);
}

static void refuse_body(struct api_call *c, const struct err *err, const char *field)
{
	(void)field;
	if (err->code == ENOMEM)
		return no(c, 503, "out of memory");
	reply_error(c, 400, (struct jv){ NULL }, RPC_PARSE, err->text, NULL);
}

static bool is_json(const char *type)
{
	return type && strncasecmp(type, "application/json", strlen("application/json")) == 0;
}

static bool takes(const struct api_call *c, const char *type)
{
	const char *accept = http_header(c->http, "Accept");

	return !accept || strstr(accept, "*/*") || call_accepts(c, type);
}

static void mcp_post(struct api_call *c)
{
	struct post *p = arena_alloc(http_arena(c->http), sizeof(*p));

	if (!p)
		return no(c, 503, "out of memory");
	p->call = c;
	p->server = c->api->deps.mcp;
	p->base = call_base(c);
	if (!p->base)
		return no(c, 503, "out of memory");
	if (!may_enter(c, p->box_id))
		return;
	if (!is_json(http_header(c->http, "Content-Type")))
		return no(c, 415, "the body must be application/json");
	if (!takes(c, "application/json") && !takes(c, "text/event-stream"))
		return no(c, 406, "answers are application/json or text/event-stream");
	p->takes_sse = http_header(c->http, "Accept") && takes(c, "text/event-stream");
	c->body = p;
	body_take(c, &(struct body_plan){
			     .max = MCP_BODY_MAX, .got = got_message, .refuse = refuse_body });
}

/* What the server says by itself, or the rest of what it was saying. */
static void open_stream(struct api_call *c, struct mcp_server *s, struct mcp_session *n)
{
	const char *last = sse_last_id(c->http);
	struct mcp_stream *t = n->common;
	uint64_t seen = UINT64_MAX;
	struct watch *w;

	if (last) {
		t = mcp_session_stream(n, last, &seen);
		if (!t || !mcp_stream_has(t, seen))
			return no(c, 400, "what comes behind this event is not kept any more");
	} else if (t && t->http) {
		return no(c, 409, "this session has such a stream already");
	}
	w = watch(c, n->home);
	if (!w)
		return;
	if (!t) {
		t = mcp_stream_open(s, n, c->http, true);
		if (!t) {
			call_stream_end(&w->base);
			return no(c, 503, "out of memory");
		}
		t->is_common = true;
		n->common = t;
	}
	mcp_stream_resume(t, c->http, &w->base, seen);
	w->stream = t;
}

/* What only a session has: without its header there is nothing but POST here. NULL: answered. */
static struct mcp_session *enter_session(struct api_call *c)
{
	struct mcp_session *n = NULL;
	char box_id[ID_LEN + 1];

	if (!may_enter(c, box_id))
		return NULL;
	if (!http_header(c->http, SESSION)) {
		(void)http_header_add(c->http, "Allow", "POST");
		no(c, 405, "this is a session's: initialize first");
		return NULL;
	}
	return find_session(c, c->api->deps.mcp, box_id, &n) ? n : NULL;
}

static void mcp_get(struct api_call *c)
{
	struct mcp_session *n = enter_session(c);

	if (!n)
		return;
	if (!call_accepts(c, "text/event-stream"))
		return no(c, 406, "the answer is text/event-stream");
	open_stream(c, n->server, n);
}

static void mcp_delete(struct api_call *c)
{
	struct mcp_session *n = enter_session(c);

	if (!n)
		return;
	mcp_session_end(n, c->who);
	call_reply_empty(c);
}

/* ---- the door ---- */

#define ROW(method, pattern, flags, handle_, ...)                                               \
	{                                                                                       \
		.route = { method, pattern, SCOPE_NONE, flags }, .handle = handle_, __VA_ARGS__ \
	}

static const struct route_query query_post[] = {
	{ "sandbox", QUERY_CHOICE, 0, 0, box_choices,
	  "of initialize: in which sandbox the session works, the key's or one of its own" },
	{ 0 },
};

static const struct api_route rows[] = {
	ROW("POST", "/mcp", 0, mcp_post, .rate = ROUTE_RATE_EXEC, .query = query_post),
	ROW("GET", "/mcp", 0, mcp_get),
	ROW("DELETE", "/mcp", 0, mcp_delete),
	ROW("POST", "/sandboxes/:id/mcp", 0, mcp_post, .rate = ROUTE_RATE_EXEC,
	    .query = query_post),
	ROW("GET", "/sandboxes/:id/mcp", 0, mcp_get),
	ROW("DELETE", "/sandboxes/:id/mcp", 0, mcp_delete),
	ROW("GET", MCP_METADATA_PATH, ROUTE_PUBLIC, mcp_metadata),
	ROW("GET", MCP_METADATA_PATH "/mcp", ROUTE_PUBLIC, mcp_metadata),
	ROW("GET", MCP_METADATA_PATH "/sandboxes/:id/mcp", ROUTE_PUBLIC, mcp_metadata),
};

static const struct api_route_table table = { rows, sizeof(rows) / sizeof(rows[0]) };

static bool claims(struct api_call *c)
{
	struct str path = str_of(http_path(c->http));

	return c->api->deps.mcp && (str_is(path, "/mcp") || str_starts(path, MCP_METADATA_PATH) ||
				    (str_starts(path, "/sandboxes/") && str_ends(path, "/mcp")));
}

const struct api_door mcp_door = {
	.name = "mcp",
	.table = &table,
	.claims = claims,
	.refuse = refuse,
};
