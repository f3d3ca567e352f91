/* /tools and /approvals: what others' MCP servers offer, calls of it, and who says yes to them. */
#include <errno.h>
#include <string.h>

#include "api/call.h"
#include "api/handlers.h"
#include "api/problem.h"
#include "api/tools.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"
#include "mcpc/servers.h"
#include "net/http.h"
#include "json/jw.h"

#define LIST_USUAL 100u

static struct mcpc_servers *servers_of(const struct api_call *c)
{
	return c->api->deps.servers;
}

/* {"items": [...]}, each written by whoever gets the writer. */
struct listing {
	struct api_call *call;
	struct jw *w;
	int detail;                 /* enum mcpc_detail */
	const char *query, *server; /* server NULL: of all */
	uint64_t limit;
};

static void reply_items(struct api_call *c, struct listing *l, void (*each)(struct listing *l))
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);

	l->call = c;
	l->w = &w;
	jw_object_begin(&w);
	jw_key(&w, "items");
	jw_array_begin(&w);
	if (servers_of(c))
		each(l);
	jw_array_end(&w);
	jw_object_end(&w);
	call_reply(c, 200, &w);
}

/* ---- servers ---- */

static void write_server(void *user, const struct mcpc_server_info *i)
{
	const struct listing *l = user;
	bool is_admin = l->call->who->role == ROLE_ADMIN;
	struct jw *w = l->w;

	jw_object_begin(w);
	jw_str_field(w, "name", i->name);
	jw_str_field(w, "transport", i->transport);
	jw_str_field(w, "place", i->place);
	jw_str_field(w, "status", mcpc_server_states[i->state]);
	/* It may hold what a program has said, which is for whoever runs it. */
	jw_str_field(w, "error", is_admin && i->error[0] ? i->error : NULL);
	jw_str_field(w, "program", i->program);
	jw_str_field(w, "era",
		     i->state != MCPC_SERVER_READY ? NULL
		     : i->is_modern                ? "modern"
						   : "legacy");
	jw_uint_field(w, "tools", i->n_tools);
	jw_uint_field(w, "resources", i->n_resources);
	jw_uint_field(w, "prompts", i->n_prompts);
	jw_uint_field(w, "leftOff", i->n_left_off);
	jw_uint_field(w, "restarts", i->restarts);
	if (i->retry_ms)
		jw_uint_field(w, "retryInMs", i->retry_ms);
	else
		jw_null_field(w, "retryInMs");
	jw_iso_field(w, "since", i->since_ms);
	jw_uint_field(w, "calls", i->n_calls);
	jw_uint_field(w, "failed", i->n_failed);
	jw_uint_field(w, "underWay", i->n_under_way);
	jw_object_end(w);
}

static void each_server(struct listing *l)
{
	mcpc_servers_each(servers_of(l->call), write_server, l);
}

void api_tool_servers(struct api_call *c)
{
	struct listing l = { 0 };

	reply_items(c, &l, each_server);
}

/* ---- tools ---- */

static bool write_tool(void *user, const struct mcpc_tool *tool)
{
	const struct listing *l = user;

	mcpc_tool_write(l->w, tool, (enum mcpc_detail)l->detail);
	return true;
}

static void each_tool(struct listing *l)
{
	mcpc_servers_search(servers_of(l->call), l->server, l->query, (size_t)l->limit, write_tool,
			    l);
}

void api_tool_list(struct api_call *c)
{
	struct listing l = { .detail = MCPC_SUMMARY, .query = "", .limit = LIST_USUAL };
	const char *detail = NULL;

	if (!call_query(c, "detail", &detail) || !call_query(c, "query", &l.query) ||
	    !call_query(c, "server", &l.server) || !call_query_u64(c, "limit", &l.limit))
		return;
	for (int i = 0; detail && mcpc_details[i]; i++)
		if (strcmp(detail, mcpc_details[i]) == 0)
			l.detail = i;
	reply_items(c, &l, each_tool);
}

/* ---- calls ---- */

struct tool_use { /* in the request's arena */
	struct api_call *call;
	struct mcpc_use *use; /* NULL: over */
};

static void gone(void *user, struct http_request *r)
{
	struct tool_use *u = user;

	(void)r;
	if (u->use)
		mcpc_servers_cancel(u->use);
	u->use = NULL;
}

/* What a server does wrong is not for our own table: the client is told in the server's words. */
static void reply_failure(struct api_call *c, const struct mcpc_outcome *o)
{
	if (o->rpc_code == RPC_PARAMS)
		problem_field(c, "arguments", "%s", o->err.text);
	else if (o->rpc_code != 0 || o->err.code == EPIPE || o->err.code == EPROTO)
		problem_status(c, 502, "%s", o->err.text);
	else if (o->err.code == ETIMEDOUT)
		problem_status(c, 504, "%s", o->err.text);
	else if (o->err.code == EAGAIN)
		problem_status(c, 503, "%s", o->err.text);
	else
		problem_reply(c, &o->err);
}

static void write_result(struct jw *w, struct jv result)
{
	struct jv content = jv_get(result, "content"), more = jv_get(result, "structuredContent");
	bool is_error = false;

	(void)jv_bool(jv_get(result, "isError"), &is_error);
	jw_object_begin(w);
	jw_key(w, "content");
	if (jv_kind(content) == JV_ARRAY)
		jw_value(w, content);
	else
		jw_raw(w, "[]", 2);
	if (jv_kind(more) != JV_ABSENT) {
		jw_key(w, "structuredContent");
		jw_value(w, more);
	}
	jw_bool_field(w, "isError", is_error);
	jw_object_end(w);
}

static void called(void *user, const struct mcpc_outcome *o)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);
	struct tool_use *u = user;

	u->use = NULL;
	if (o->err.code)
		return reply_failure(u->call, o);
	write_result(&w, o->result);
	call_reply(u->call, 200, &w);
}

/* What stands there, as JSON of its own; NULL: nothing. */
static int take_json(struct jv v, struct buf *b, const char **ret)
{
	struct jw w = jw_begin(b);

	*ret = NULL;
	if (jv_kind(v) == JV_ABSENT || jv_kind(v) == JV_NULL)
		return 0;
	jw_value(&w, v);
	*ret = buf_str(b);
	return jw_end(&w);
}

void api_tool_call(struct api_call *c)
{
	_cleanup_(buf_done) struct buf arguments = { 0 };
	const struct body_tool_call *body = c->body;
	struct tool_use *u = arena_alloc(http_arena(c->http), sizeof(*u));
	struct mcpc_tool_call call = { .server = call_param(c, "server"),
				       .tool = call_param(c, "tool"),
				       .who = c->who,
				       .sandbox_id = c->who->sandbox_id,
				       .timeout_ms = body->timeout_ms,
				       .done = called,
				       .user = u };
	struct mcpc_outcome o = { 0 };

	if (!servers_of(c))
		return problem_status(c, 404, "there is no server '%.64s'", call.server);
	if (!u || take_json(body->arguments, &arguments, &call.arguments) < 0)
		return problem_reply(c, &(struct err){ ENOMEM, "call" });
	u->call = c;
	if (mcpc_servers_call(servers_of(c), &call, &u->use, &o.err) < 0)
		return reply_failure(c, &o);
	http_on_gone(c->http, gone, u);
}

/* ---- approvals ---- */

static void write_approval(void *user, const struct mcpc_approval *a)
{
	const struct listing *l = user;
	struct jw *w = l->w;

	jw_object_begin(w);
	jw_str_field(w, "id", a->id);
	jw_str_field(w, "server", a->server);
	jw_str_field(w, "tool", a->tool);
	jw_str_field(w, "method", a->method);
	jw_raw_field(w, "arguments", a->arguments, strlen(a->arguments));
	jw_str_field(w, "owner", a->owner);
	jw_str_field(w, "sandbox", a->sandbox_id);
	jw_iso_field(w, "createdAt", a->created_ms);
	jw_iso_field(w, "expiresAt", a->expires_ms);
	jw_object_end(w);
}

static void each_approval(struct listing *l)
{
	mcpc_approvals_each(servers_of(l->call), call_owner(l->call), write_approval, l);
}

void api_approval_list(struct api_call *c)
{
	struct listing l = { 0 };

	reply_items(c, &l, each_approval);
}

void api_approval_decide(struct api_call *c)
{
	_cleanup_(buf_done) struct buf content = { 0 };
	const struct body_decision *body = c->body;
	struct err err = { 0 };
	const char *text;

	if (!servers_of(c))
		return problem_status(c, 404, "nothing of that id waits for an approval");
	if (take_json(body->content, &content, &text) < 0)
		return problem_reply(c, &(struct err){ ENOMEM, "approval" });
	if (text && jv_kind(body->content) != JV_OBJECT)
		return problem_field(c, "content", "want an object");
	if (mcpc_approval_decide(servers_of(c), call_param(c, "aid"), call_owner(c),
				 body->decision == BODY_ALLOW, text, c->who, &err) < 0)
		return problem_reply(c, &err);
	call_reply_empty(c);
}
