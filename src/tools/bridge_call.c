/* Requests of a program in a box: what is asked for, and whether it may be had. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"
#include "config/config.h"
#include "sandbox/events.h"
#include "sandbox/grant.h"
#include "tools/bridge_impl.h"
#include "json/jw.h"
#include "json/rpc.h"

#define TEXT_MAX 512u

void bridge_refuse(struct bridge_conn *c, const char *id, long code, const char *text)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);

	rpc_error(&w, id, code, text, NULL);
	if (jw_end(&w) == 0)
		bridge_conn_say(c, &b);
	else
		c->is_bad = true;
}

/* ---- budgets ---- */

static void renew(struct bridge *b)
{
	uint64_t now = loop_now_ms(b->all->deps.loop);

	if (b->budget.calls == 0 || now - b->budget.since_ms >= BRIDGE_PERIOD_MS)
		b->budget = (struct bridge_budget){ .since_ms = now };
}

static void tell_spent(struct bridge *b, const char *what, uint64_t limit, uint64_t used)
{
	_cleanup_(buf_done) struct buf text = { 0 };
	struct jw w = jw_begin(&text);

	if (b->budget.is_told)
		return;
	b->budget.is_told = true;
	jw_object_begin(&w);
	jw_str_field(&w, "quota", what);
	jw_uint_field(&w, "limit", limit);
	jw_uint_field(&w, "used", used);
	jw_object_end(&w);
	if (jw_end(&w) == 0)
		events_emit(b->all->deps.events, &(struct event){ .kind = "quota.exceeded",
								  .owner = b->who.owner,
								  .subject = bridge_sandbox(b),
								  .text = buf_str(&text) });
}

/* Everything that is asked counts, also what is refused. NULL, or what is spent. */
static const char *spend(struct bridge *b, size_t bytes)
{
	const struct config *config = b->all->deps.config;

	renew(b);
	if (b->budget.calls >= config->mcp_box_calls) {
		tell_spent(b, "toolCalls", config->mcp_box_calls, b->budget.calls);
		return "this sandbox has asked for as much of tools as it may in an hour";
	}
	if (b->budget.bytes + bytes > config->mcp_box_bytes) {
		tell_spent(b, "toolBytes", config->mcp_box_bytes, b->budget.bytes);
		return "this sandbox has moved all the bytes that its calls may move in an hour";
	}
	b->budget.calls++;
	b->budget.bytes += bytes;
	return NULL;
}

/* ---- tools/call ---- */

void bridge_call_free(struct bridge_call *call)
{
	struct bridge *b = call->conn->b;

	if (call->use)
		mcpc_servers_cancel(call->use);
	list_remove(&call->node);
	b->n_calls--;
	bridge_note_use(b);
	free(call);
}

static void say_outcome(struct bridge_call *call, const struct mcpc_outcome *o)
{
	_cleanup_(buf_done) struct buf b = { .max = BRIDGE_RESULT_MAX };
	struct jw w = jw_begin(&b);

	bridge_write_outcome(&w, call->id, o, call->is_plain);
	if (jw_end(&w) < 0)
		return bridge_refuse(call->conn, call->id, BRIDGE_LARGE,
				     "the answer is too large to be passed on");
	call->conn->b->budget.bytes += b.len;
	bridge_conn_say(call->conn, &b);
}

static void called(void *user, const struct mcpc_outcome *o)
{
	struct bridge_call *call = user;
	struct bridge *b = call->conn->b;

	call->use = NULL;
	say_outcome(call, o);
	bridge_call_free(call);
	bridge_go_on(b);
}

struct ask {
	struct bridge_conn *conn;
	const char *id;
	char server[MCPC_SERVER_NAME_MAX + 1];
	const char *tool;
	struct jv arguments;
	bool is_plain;
};

static bool is_there(const struct ask *a, const char *server, const char *tool)
{
	const struct bridge *b = a->conn->b;

	return grant_has(b->grant, server) && mcpc_servers_find(b->all->deps.servers, server, tool);
}

/* "server.tool", where either may have further dots. */
static bool split(struct ask *a, const char *whole)
{
	for (const char *dot = strchr(whole, '.'); dot; dot = strchr(dot + 1, '.')) {
		size_t n = (size_t)(dot - whole);

		if (n == 0 || n >= sizeof(a->server))
			continue;
		memcpy(a->server, whole, n);
		a->server[n] = '\0';
		a->tool = dot + 1;
		if (is_there(a, a->server, a->tool))
			return true;
	}
	return false;
}

/* What the grant does not name is as if it were not there. */
static bool find_tool(struct ask *a, const char *server, const char *name)
{
	if (!server)
		return split(a, name);
	a->tool = name;
	return str_copy(a->server, sizeof(a->server), server) == 0 &&
	       is_there(a, a->server, a->tool);
}

static int start(const struct ask *a, struct bridge_call *call, struct err *err)
{
	_cleanup_(buf_done) struct buf args = { .max = MCPC_ARGUMENTS_MAX };
	struct bridge *b = a->conn->b;
	struct mcpc_tool_call ask = { .server = a->server,
				      .tool = a->tool,
				      .who = &b->who,
				      .sandbox_id = bridge_sandbox(b),
				      .done = called,
				      .user = call };
	struct jw w = jw_begin(&args);

	if (jv_kind(a->arguments) != JV_ABSENT) {
		jw_value(&w, a->arguments);
		if (jw_end(&w) < 0)
			return err_set(err, E2BIG, "the arguments are too long");
		ask.arguments = buf_str(&args);
	}
	return mcpc_servers_call(b->all->deps.servers, &ask, &call->use, err);
}

static void begin(const struct ask *a)
{
	struct bridge_call *call = calloc(1, sizeof(*call) + strlen(a->id) + 1);
	struct bridge *b = a->conn->b;
	struct err err = { 0 };
	int r;

	if (!call)
		return bridge_refuse(a->conn, a->id, RPC_INTERNAL, "out of memory");
	memcpy(call->id, a->id, strlen(a->id) + 1);
	call->conn = a->conn;
	call->is_plain = a->is_plain;
	list_push_back(&a->conn->calls, &call->node);
	b->n_calls++;
	bridge_note_use(b);
	r = start(a, call, &err);
	if (r == 0)
		return;
	call->use = NULL;
	bridge_call_free(call);
	bridge_refuse(a->conn, a->id, bridge_code(-r, RPC_PARAMS), err.text);
}

static bool is_plain(struct jv params)
{
	bool plain = false;

	(void)jv_bool(jv_get(params, "plain"), &plain);
	return plain;
}

static void on_call(struct bridge_conn *c, const char *id, struct jv params)
{
	const char *name = jv_text(jv_get(params, "name"));
	struct jv server = jv_get(params, "server");
	struct ask a = { .conn = c,
			 .id = id,
			 .arguments = jv_get(params, "arguments"),
			 .is_plain = is_plain(params) };
	char text[TEXT_MAX];

	if (!name || (jv_kind(server) != JV_ABSENT && !jv_text(server)))
		return bridge_refuse(c, id, RPC_PARAMS, "want the names of a server and a tool");
	if (jv_kind(a.arguments) != JV_ABSENT && jv_kind(a.arguments) != JV_OBJECT)
		return bridge_refuse(c, id, RPC_PARAMS, "arguments: want an object");
	if (find_tool(&a, jv_text(server), name))
		return begin(&a);
	(void)str_format(text, sizeof(text), "there is no tool '%.120s%s%.120s' for this sandbox",
			 jv_text(server) ? jv_text(server) : "", jv_text(server) ? "." : "", name);
	bridge_refuse(c, id, RPC_PARAMS, text);
}

/* ---- looking ---- */

static int find_choice(const char *const *names, const char *name)
{
	for (int i = 0; names[i]; i++)
		if (strcmp(names[i], name) == 0)
			return i;
	return -1;
}

static void answer_query(struct bridge_conn *c, const char *id, const struct bridge_query *q)
{
	_cleanup_(buf_done) struct buf b = { .max = BRIDGE_RESULT_MAX };
	struct jw w = jw_begin(&b);

	bridge_write_tools(&w, id, q);
	if (jw_end(&w) == 0)
		bridge_conn_say(c, &b);
	else
		bridge_refuse(c, id, BRIDGE_LARGE, "the answer is too large: ask for less");
}

static void on_search(struct bridge_conn *c, const char *id, struct jv params)
{
	const char *query = jv_text(jv_get(params, "query"));
	const char *detail = jv_text(jv_get(params, "detail"));
	struct bridge_query q = { .b = c->b,
				  .query = query ? query : "",
				  .server = jv_text(jv_get(params, "server")),
				  .detail = MCPC_SUMMARY,
				  .limit = BRIDGE_FOUND_MAX,
				  .is_plain = is_plain(params) };
	int choice = detail ? find_choice(mcpc_details, detail) : MCPC_SUMMARY;

	if (choice < 0)
		return bridge_refuse(c, id, RPC_PARAMS, "detail: want name, summary or full");
	q.detail = (enum mcpc_detail)choice;
	(void)jv_u64(jv_get(params, "limit"), &q.limit);
	if (q.limit == 0 || q.limit > BRIDGE_FOUND_MAX)
		q.limit = BRIDGE_FOUND_MAX;
	answer_query(c, id, &q);
}

/* All of them, by name; a server's with all that is known. */
static void on_list(struct bridge_conn *c, const char *id, struct jv params)
{
	const char *server = jv_text(jv_get(params, "server"));
	struct bridge_query q = { .b = c->b,
				  .query = "",
				  .server = server,
				  .detail = server ? MCPC_FULL : MCPC_NAME,
				  .limit = STUBS_TOOLS_MAX,
				  .is_plain = is_plain(params) };

	answer_query(c, id, &q);
}

static void on_ping(struct bridge_conn *c, const char *id, struct jv params)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);

	(void)params;
	rpc_result_begin(&w, id);
	jw_object_begin(&w);
	jw_object_end(&w);
	rpc_end(&w);
	if (jw_end(&w) == 0)
		bridge_conn_say(c, &b);
}

/* ---- any of them ---- */

static const struct {
	const char *method;
	void (*take)(struct bridge_conn *c, const char *id, struct jv params);
} methods[] = {
	{ "tools/call", on_call },
	{ "tools/search", on_search },
	{ "tools/list", on_list },
	{ "ping", on_ping },
};

static void take_request(struct bridge_conn *c, const struct rpc_message *m)
{
	char id[RPC_ID_MAX + 1];

	if (rpc_id(m->id, id, sizeof(id)) < 0)
		return bridge_refuse(c, NULL, RPC_INVALID, "the id is too long");
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
		if (strcmp(methods[i].method, m->method) == 0)
			return methods[i].take(c, id, m->params);
	bridge_refuse(c, id, RPC_NO_METHOD, "there is no such method");
}

void bridge_take(struct bridge_conn *c, const char *line, size_t n)
{
	struct jv_doc *doc = NULL;
	struct rpc_message m;
	struct err err = { 0 };
	const char *spent = spend(c->b, n);
	int r = 0;

	if (spent) { /* it is not even read, so that nothing can be had for it */
		bridge_refuse(c, NULL, BRIDGE_SPENT, spent);
		c->is_bad = true;
		return;
	}
	r = jv_parse(line, n, BRIDGE_LINE_MAX, &doc, &err);
	if (r < 0)
		bridge_refuse(c, NULL, RPC_PARSE, err.text);
	else if (rpc_read(jv_root(doc), &m, &err) < 0)
		bridge_refuse(c, NULL, RPC_INVALID, err.text);
	else if (m.kind == RPC_REQUEST)
		take_request(c, &m);
	/* Nothing is ever asked of a program: what answers or tells is passed over. */
	(void)jv_free(doc);
}
