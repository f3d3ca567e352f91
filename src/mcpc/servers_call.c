/* A call of a tool, from the question to the answer: policy, somebody's yes, a server that is
 * there, and then the call itself. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "mcpc/servers_impl.h"
#include "sandbox/audit_log.h"
#include "sandbox/events.h"
#include "telemetry/metrics.h"
#include "json/jw.h"
#include "json/schema_check.h"

#define TIMEOUT_MS 60000u
#define APPROVAL_MS (5u * 60 * 1000)
#define TRACEPARENT_MAX 128
#define LINE_MAX 4096u

enum use_stage { USE_ASKS, USE_WAITS, USE_RUNS };

struct mcpc_use {
	struct list node; /* in server.uses */
	struct server *server;
	struct approval approval;
	enum use_stage stage;
	struct mcpc_call *call;                 /* borrowed; with USE_RUNS */
	struct loop_timer *timer;               /* owned: the end of its time */
	uint64_t begun_at, ends_at, timeout_ms; /* the loop's time */
	struct principal who;
	char sandbox_id[ID_LEN + 1];
	char tool[MCPC_TOOL_NAME_MAX + 1];
	char traceparent[TRACEPARENT_MAX]; /* "": none */
	struct buf arguments;              /* a JSON object */
	mcpc_done_fn done;
	mcpc_progress_fn progress;
	void *user;
};

/* ---- what is noted ---- */

struct note {
	const struct mcpc_servers *all;
	const char *server, *tool, *sandbox_id;
	const struct principal *who;
	const char *outcome;
	uint64_t took_ms;
};

static void note(const struct note *n)
{
	_cleanup_(buf_done) struct buf b = { .max = LINE_MAX };
	const struct mcpc_servers_deps *deps = &n->all->deps;
	struct jw w = jw_begin(&b);
	const char *text;

	jw_object_begin(&w);
	jw_str_field(&w, "keyId", n->who->key_id);
	jw_str_field(&w, "server", n->server);
	jw_str_field(&w, "tool", n->tool);
	jw_str_field(&w, "sandbox", n->sandbox_id);
	jw_str_field(&w, "outcome", n->outcome);
	jw_uint_field(&w, "tookMs", n->took_ms);
	jw_object_end(&w);
	text = jw_end(&w) < 0 ? "{}" : buf_str(&b);
	metrics_inc(deps->metrics, METRIC_TOOL_CALLS, LABELS(n->server, n->outcome));
	if (deps->audit)
		audit_log_append(deps->audit, n->who->owner, "tool", text);
	events_emit(deps->events,
		    &(struct event){ .kind = "tool.called",
				     .owner = n->who->owner,
				     .subject = n->sandbox_id[0] ? n->sandbox_id : n->server,
				     .text = text });
}

static const char *outcome_name(const struct mcpc_outcome *o)
{
	bool is_error = false;

	switch (o->err.code) {
	case 0:
		(void)jv_bool(jv_get(o->result, "isError"), &is_error);
		return is_error ? "tool_error" : "ok";
	case EPERM:
		return "denied";
	case ETIMEDOUT:
		return "timed_out";
	case EPIPE:
		return "lost";
	case ECANCELED:
		return "cancelled";
	default:
		return "failed";
	}
}

static void note_use(const struct mcpc_use *u, const char *outcome)
{
	struct mcpc_servers *all = u->server->all;

	note(&(struct note){ .all = all,
			     .server = u->server->row.name,
			     .tool = u->tool,
			     .sandbox_id = u->sandbox_id,
			     .who = &u->who,
			     .outcome = outcome,
			     .took_ms = loop_now_ms(all->deps.loop) - u->begun_at });
}

/* ---- the end ---- */

static void use_free(struct mcpc_use *u)
{
	if (u->node.next && !list_is_empty(&u->node)) {
		list_remove(&u->node);
		u->server->n_uses--;
		u->server->all->n_uses--;
	}
	approval_end(&u->approval);
	u->timer = loop_timer_free(u->timer);
	buf_done(&u->arguments);
	free(u);
}

static void finish(struct mcpc_use *u, const struct mcpc_outcome *o)
{
	const char *name = outcome_name(o);

	mcpc_done_fn done = u->done;
	void *user = u->user;

	u->server->n_failed += o->err.code != 0;
	note_use(u, name);
	use_free(u);
	done(user, o);
}

static void fail(struct mcpc_use *u, const struct err *err)
{
	struct mcpc_outcome o = { .err = *err };

	finish(u, &o);
}

void server_fail_uses(struct server *s, const struct err *err)
{
	struct list gone = LIST_INIT(gone);

	/* Whoever is told may ask again: that one is not among these. Who is still being asked may
	 * well say yes to a server that is there again. */
	LIST_FOREACH (&s->uses, u, struct mcpc_use, node)
		if (u->stage != USE_ASKS || s->all->is_stopping) {
			list_remove(&u->node);
			list_push_back(&gone, &u->node);
		}
	while (!list_is_empty(&gone)) {
		struct mcpc_use *u = LIST_ENTRY(gone.next, struct mcpc_use, node);

		if (u->call)
			mcpc_cancel(u->call);
		fail(u, err);
	}
}

void server_drop_uses(struct server *s)
{
	LIST_FOREACH (&s->uses, u, struct mcpc_use, node) {
		if (u->call)
			mcpc_cancel(u->call);
		use_free(u);
	}
}

void mcpc_servers_cancel(struct mcpc_use *u)
{
	if (u->call)
		mcpc_cancel(u->call);
	note_use(u, "cancelled");
	use_free(u);
}

/* ---- the call ---- */

static void called(void *user, const struct mcpc_outcome *o)
{
	struct mcpc_use *u = user;

	u->call = NULL;
	finish(u, o);
}

static void progressed(void *user, double at, double total, const char *text)
{
	const struct mcpc_use *u = user;

	if (u->progress)
		u->progress(u->user, at, total, text);
}

static int run(struct mcpc_use *u, struct err *err)
{
	_cleanup_(buf_done) struct buf b = { .max = MCPC_ARGUMENTS_MAX + LINE_MAX };
	uint64_t now = loop_now_ms(u->server->all->deps.loop);
	struct jw w = jw_begin(&b);
	struct mcpc_request req = { .method = "tools/call",
				    .done = called,
				    .progress = u->progress ? progressed : NULL,
				    .user = u,
				    .timeout_ms = u->ends_at > now ? u->ends_at - now : 1,
				    .traceparent = u->traceparent[0] ? u->traceparent : NULL };

	jw_object_begin(&w);
	jw_str_field(&w, "name", u->tool);
	jw_raw_field(&w, "arguments", buf_str(&u->arguments), u->arguments.len);
	jw_object_end(&w);
	if (jw_end(&w) < 0)
		return err_sys(err, ENOMEM, "call");
	req.params = buf_str(&b);
	u->stage = USE_RUNS;
	return mcpc_request(u->server->client, &req, &u->call, err);
}

/* Goes on as far as it can. */
/* What the server's own schema refuses is not sent: whoever wrote it is told what is wrong, and no
 * server has to be trusted to look. */
static int check_arguments(const struct mcpc_use *u, struct err *err)
{
	const struct mcpc_tool *tool =
		mcpc_servers_find(u->server->all, u->server->row.name, u->tool);
	struct jv_doc *doc = NULL;
	int r = 0;

	if (!tool)
		return 0;
	if (jv_parse(u->arguments.data, u->arguments.len, MCPC_ARGUMENTS_MAX, &doc, err) < 0)
		return -EINVAL;
	r = schema_check(tool->input, jv_root(doc), err);
	(void)jv_free(doc);
	return r;
}

static int step(struct mcpc_use *u, struct err *err)
{
	const struct server *s = u->server;
	int r;

	u->stage = USE_WAITS;
	if (s->state == MCPC_SERVER_CONNECTING)
		return 0;
	if (s->state != MCPC_SERVER_READY)
		return err_set(err, EAGAIN, "the server '%s' is not there now%s%.160s", s->row.name,
			       s->err.code ? ": " : "", s->err.code ? s->err.text : "");
	r = check_arguments(u, err);
	return r < 0 ? r : run(u, err);
}

static void go_on(struct mcpc_use *u)
{
	struct err err = { 0 };

	if (step(u, &err) < 0)
		fail(u, &err);
}

void server_ready_uses(struct server *s)
{
	struct list waiting = LIST_INIT(waiting);

	LIST_FOREACH (&s->uses, u, struct mcpc_use, node)
		if (u->stage == USE_WAITS) {
			list_remove(&u->node);
			list_push_back(&waiting, &u->node);
		}
	while (!list_is_empty(&waiting)) {
		struct mcpc_use *u = LIST_ENTRY(waiting.next, struct mcpc_use, node);

		list_remove(&u->node);
		list_push_back(&s->uses, &u->node);
		go_on(u);
	}
}

static void decided(struct approval *a, bool is_yes, const char *content, bool is_late)
{
	struct mcpc_use *u = LIST_ENTRY(a, struct mcpc_use, approval);
	struct err err = { 0 };

	(void)content;
	if (is_yes)
		return go_on(u);
	(void)err_set(&err, EPERM, "the call of %s.%s was %s", u->server->row.name, u->tool,
		      is_late ? "not approved in time" : "not approved");
	fail(u, &err);
}

static void on_late(void *user)
{
	struct mcpc_use *u = user;
	struct err err = { 0 };

	if (u->call)
		mcpc_cancel(u->call);
	u->call = NULL;
	(void)err_set(&err, ETIMEDOUT, "the call of %s.%s took longer than %llu ms",
		      u->server->row.name, u->tool, (unsigned long long)u->timeout_ms);
	fail(u, &err);
}

/* ---- the beginning ---- */

static size_t count_owner(const struct mcpc_servers *all, const char *owner)
{
	size_t n = 0;

	for (size_t i = 0; i < all->n_servers; i++)
		LIST_FOREACH (&all->servers[i].uses, u, struct mcpc_use, node)
			n += strcmp(u->who.owner, owner) == 0;
	return n;
}

static int check_room(const struct mcpc_servers *all, const struct principal *who, struct err *err)
{
	if (all->is_stopping)
		return err_set(err, EAGAIN, "the daemon is ending");
	if (all->deps.audit && !audit_log_is_writable(all->deps.audit))
		return err_set(err, EAGAIN, "the store does not take the audit log's lines");
	if (all->n_uses >= MCPC_USES_MAX || count_owner(all, who->owner) >= MCPC_USES_OWNER_MAX)
		return err_set(err, EAGAIN, "too many calls of tools are under way");
	return 0;
}

static int check_call(const struct server *s, const struct mcpc_tool *tool,
		      const struct mcpc_tool_call *c, struct err *err)
{
	if (!s || s->state == MCPC_SERVER_DISABLED)
		return err_set(err, ENOENT, "there is no server '%.64s'", c->server);
	if (s->state == MCPC_SERVER_FAILED)
		return err_set(err, EAGAIN, "the server '%s' is not configured rightly",
			       s->row.name);
	if (strlen(c->tool) > MCPC_TOOL_NAME_MAX || (!tool && s->state == MCPC_SERVER_READY))
		return err_set(err, ENOENT, "the server '%s' has no tool '%.128s'", s->row.name,
			       c->tool);
	if (server_row_policy(&s->row, c->tool) == MCPC_DENY)
		return err_set(err, EPERM, "the tool %s.%s is not allowed here", s->row.name,
			       c->tool);
	return 0;
}

static int take_arguments(struct mcpc_use *u, const char *json, struct err *err)
{
	struct jv_doc *doc = NULL;
	size_t n;
	int r;

	json = json ? json : "{}";
	n = strlen(json);
	if (n > MCPC_ARGUMENTS_MAX)
		return err_set(err, E2BIG, "arguments: more than %u bytes", MCPC_ARGUMENTS_MAX);
	r = jv_parse(json, n, MCPC_ARGUMENTS_MAX, &doc, err);
	if (r == 0 && jv_kind(jv_root(doc)) != JV_OBJECT)
		r = err_set(err, EINVAL, "arguments: want an object");
	(void)jv_free(doc);
	if (r < 0)
		return r;
	return buf_append(&u->arguments, json, n) < 0 ? err_sys(err, ENOMEM, "arguments") : 0;
}

/* The time of whoever is asked comes on top, unless the caller has said how long is too long. */
static uint64_t time_of(const struct server *s, const struct mcpc_tool_call *c, bool asks)
{
	const struct mcpc_servers_deps *deps = &s->all->deps;
	uint64_t ms = s->row.timeout_ms ? s->row.timeout_ms : deps->timeout_ms;

	if (c->timeout_ms)
		return c->timeout_ms;
	ms = ms ? ms : TIMEOUT_MS;
	return asks ? ms + (deps->approval_ms ? deps->approval_ms : APPROVAL_MS) : ms;
}

static int fill(struct mcpc_use *u, const struct mcpc_tool_call *c, bool asks, struct err *err)
{
	struct server *s = u->server;
	int r = take_arguments(u, c->arguments, err);

	u->who = *c->who;
	(void)str_copy(u->sandbox_id, sizeof(u->sandbox_id), c->sandbox_id ? c->sandbox_id : "");
	(void)str_copy(u->tool, sizeof(u->tool), c->tool);
	(void)str_copy(u->traceparent, sizeof(u->traceparent),
		       c->traceparent ? c->traceparent : "");
	u->done = c->done;
	u->progress = c->progress;
	u->user = c->user;
	u->begun_at = loop_now_ms(s->all->deps.loop);
	u->timeout_ms = time_of(s, c, asks);
	u->ends_at = u->begun_at + u->timeout_ms;
	if (r == 0 && loop_timer_create(s->all->deps.loop, on_late, u, &u->timer) < 0)
		r = err_sys(err, ENOMEM, "call");
	if (r == 0)
		loop_timer_start(u->timer, u->timeout_ms, 0);
	return r;
}

static int ask_first(struct mcpc_use *u, struct err *err)
{
	const struct mcpc_servers_deps *deps = &u->server->all->deps;
	uint64_t ms = deps->approval_ms ? deps->approval_ms : APPROVAL_MS;
	struct mcpc_approval *seen = &u->approval.seen;

	u->stage = USE_ASKS;
	seen->tool = u->tool;
	seen->method = "tools/call";
	seen->arguments = buf_str(&u->arguments);
	seen->owner = u->who.owner;
	seen->sandbox_id = u->sandbox_id;
	u->approval.decided = decided;
	return approval_begin(&u->approval, u->server, ms < u->timeout_ms ? ms : u->timeout_ms,
			      err);
}

static int begin(struct server *s, const struct mcpc_tool_call *c, struct mcpc_use **ret,
		 struct err *err)
{
	bool asks = server_row_policy(&s->row, c->tool) == MCPC_ASK;
	struct mcpc_use *u = calloc(1, sizeof(*u));
	int r;

	if (!u)
		return err_sys(err, ENOMEM, "call");
	u->server = s;
	list_push_back(&s->uses, &u->node);
	s->n_uses++;
	s->all->n_uses++;
	s->n_calls++;
	r = fill(u, c, asks, err);
	if (r == 0 && asks) /* nobody is asked about what would be refused */
		r = check_arguments(u, err);
	if (r == 0)
		r = asks ? ask_first(u, err) : step(u, err);
	if (r < 0)
		use_free(u);
	else if (ret)
		*ret = u;
	return r;
}

int mcpc_servers_call(struct mcpc_servers *all, const struct mcpc_tool_call *c,
		      struct mcpc_use **ret, struct err *err)
{
	struct server *s = servers_by_name(all, c->server);
	const struct mcpc_tool *tool = s ? mcpc_servers_find(all, c->server, c->tool) : NULL;
	int r = check_room(all, c->who, err);

	if (r == 0)
		r = check_call(s, tool, c, err);
	if (r == 0)
		r = begin(s, c, ret, err);
	if (r < 0)
		note(&(struct note){ .all = all,
				     .server = s ? s->row.name : "",
				     .tool = s ? c->tool : "",
				     .sandbox_id = c->sandbox_id ? c->sandbox_id : "",
				     .who = c->who,
				     .outcome = r == -EPERM ? "denied" : "refused" });
	return r;
}
