/* The client: what comes from the transport, and who it is for. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/map.h"
#include "base/str.h"
#include "mcpc/client_impl.h"
#include "json/jw.h"

#define TIMEOUT_MS 60000u

CLEANUP_FUNC(struct jv_doc *, jv_free)

void mcpc_enter(struct mcpc *c)
{
	c->busy++;
}

static void destroy(struct mcpc *c)
{
	c->calls = map_free(c->calls);
	c->hello = jv_free(c->hello);
	free(c->name);
	free(c->version);
	free(c->offers);
	free(c->only_version);
	free(c);
}

void mcpc_leave(struct mcpc *c)
{
	if (--c->busy == 0 && c->is_freed)
		destroy(c);
}

struct mcpc *mcpc_free(struct mcpc *c)
{
	if (!c)
		return NULL;
	loop_task_cancel(&c->late);
	mcpc_asks_free(c);
	LIST_FOREACH (&c->all, call, struct mcpc_call, node)
		mcpc_call_free(call);
	mcpc_pagings_free(c);
	mcpc_mirrors_free(c);
	c->ear_timer = loop_timer_free(c->ear_timer);
	if (c->t)
		c->t->ops->close(TAKE(c->t));
	c->is_freed = true;
	if (c->busy == 0)
		destroy(c);
	return NULL;
}

int mcpc_send_text(struct mcpc *c, struct mcpc_send *m, const struct buf *text, struct err *err)
{
	if (text->failed || text->len > MCPC_MESSAGE_MAX)
		return err_set(err, E2BIG, "the message has more than %u bytes", MCPC_MESSAGE_MAX);
	if (!c->t)
		return err_set(err, EPIPE, "the server is gone");
	m->text = text->data;
	m->len = text->len;
	if (c->protocol[0])
		m->version = c->protocol;
	return c->t->ops->send(c->t, m, err);
}

/* ---- what comes ---- */

static struct mcpc_call *find_call(struct mcpc *c, struct jv id)
{
	char text[RPC_ID_MAX];

	if (rpc_id(id, text, sizeof(text)) < 0)
		return NULL;
	return map_get(c->calls, text, strlen(text));
}

static void on_progress(struct mcpc *c, struct jv params)
{
	struct mcpc_call *call = find_call(c, jv_get(params, "progressToken"));

	if (call)
		mcpc_call_progressed(call, params);
}

static void on_cancelled(struct mcpc *c, struct jv params)
{
	mcpc_ask_withdrawn(c, jv_get(params, "requestId"));
}

static void on_log(struct mcpc *c, struct jv params)
{
	const char *level = jv_text(jv_get(params, "level"));

	if (c->handlers && c->handlers->logged)
		c->handlers->logged(c->user, c, level ? level : "info", jv_get(params, "data"));
}

static void on_updated(struct mcpc *c, struct jv params)
{
	const char *uri = jv_text(jv_get(params, "uri"));

	if (uri && c->handlers && c->handlers->updated)
		c->handlers->updated(c->user, c, uri);
}

static const struct {
	const char *method;
	void (*take)(struct mcpc *c, struct jv params);
} notices[] = {
	{ "notifications/progress", on_progress },
	{ "notifications/cancelled", on_cancelled },
	{ "notifications/message", on_log },
	{ "notifications/resources/updated", on_updated },
};

static void take_notice(struct mcpc *c, const struct rpc_message *m)
{
	for (size_t i = 0; i < sizeof(notices) / sizeof(notices[0]); i++)
		if (strcmp(m->method, notices[i].method) == 0) {
			notices[i].take(c, m->params);
			return;
		}
	if (str_ends(str_of(m->method), "/list_changed") && c->handlers && c->handlers->changed)
		c->handlers->changed(c->user, c, m->method);
}

static void take_message(struct mcpc *c, struct jv v)
{
	struct rpc_message m;
	struct mcpc_call *call;
	struct err err = { 0 };

	if (rpc_read(v, &m, &err) < 0) {
		log_debug("mcpc", "a message that is none: %s", err.text);
		call = jv_kind(jv_get(v, "method")) == JV_ABSENT ? find_call(c, m.id) : NULL;
		err.code = EPROTO;
		if (call)
			mcpc_call_fail(call, &err);
		return;
	}
	switch (m.kind) {
	case RPC_REQUEST:
		mcpc_ask_request(c, &m);
		break;
	case RPC_NOTIFICATION:
		take_notice(c, &m);
		break;
	case RPC_RESULT:
	case RPC_ERROR:
		call = find_call(c, m.id);
		if (call)
			mcpc_call_answered(call, &m);
	}
}

static void on_message(void *user, const char *text, size_t n)
{
	_cleanup_(jv_free_p) struct jv_doc *doc = NULL;
	struct mcpc *c = user;
	struct err err = { 0 };

	if (jv_parse(text, n, MCPC_MESSAGE_MAX, &doc, &err) < 0) {
		log_debug("mcpc", "a message that is no JSON: %s", err.text);
		return;
	}
	mcpc_enter(c);
	if (jv_kind(jv_root(doc)) == JV_ARRAY) { /* 2025-03-26 had batches */
		JV_FOREACH (jv_root(doc), it)
			if (!c->is_freed)
				take_message(c, it.value);
	} else {
		take_message(c, jv_root(doc));
	}
	mcpc_leave(c);
}

/* A refusal in HTTP may carry an answer in JSON-RPC; of a server that knows no id any more, too. */
static bool take_refusal(struct mcpc_call *call, const char *body, size_t n)
{
	_cleanup_(jv_free_p) struct jv_doc *doc = NULL;
	struct rpc_message m;
	struct err ignored = { 0 };

	if (n == 0 || jv_parse(body, n, MCPC_MESSAGE_MAX, &doc, &ignored) < 0)
		return false;
	if (rpc_read(jv_root(doc), &m, &ignored) < 0 || m.kind != RPC_ERROR)
		return false;
	mcpc_call_answered(call, &m);
	return true;
}

static void on_failed(void *user, const char *id, int status, const char *body, size_t n,
		      const struct err *err)
{
	struct mcpc *c = user;
	struct mcpc_call *call = map_get(c->calls, id, strlen(id));
	struct err failure = err ? *err : (struct err){ 0 };

	if (!call)
		return;
	mcpc_enter(c);
	if (status == 404 && !call->is_modern && !call->is_greeting) {
		(void)map_remove(c->calls, call->id, strlen(call->id));
		call->state = MCPC_CALL_WAITS;
		if (mcpc_renew(c, call, &failure) < 0)
			mcpc_call_fail(call, &failure);
	} else if (status == 401 || status == 403 || !take_refusal(call, body, n)) {
		if (failure.code == 0)
			(void)err_set(&failure, EREMOTEIO, "the server answered with status %d",
				      status);
		mcpc_call_fail(call, &failure);
	}
	mcpc_leave(c);
}

static void on_lost(void *user, const struct err *err)
{
	struct mcpc *c = user;
	bool was_ready = c->state == MCPC_READY;
	struct err gone = { 0 };

	(void)err_set(&gone, EPIPE, "%s", err && err->text[0] ? err->text : "the server is gone");
	mcpc_enter(c);
	c->state = MCPC_FAILED;
	while (!c->is_freed && !list_is_empty(&c->all))
		mcpc_call_fail(LIST_ENTRY(c->all.next, struct mcpc_call, node), &gone);
	if (!c->is_freed && was_ready && c->handlers && c->handlers->lost)
		c->handlers->lost(c->user, c, &gone);
	mcpc_leave(c);
}

static const struct mcpc_transport_events events = {
	.message = on_message,
	.failed = on_failed,
	.lost = on_lost,
};

/* ---- making one ---- */

static int copy(const char *text, char **ret)
{
	*ret = text ? str_dup(str_of(text)) : NULL;
	return text && !*ret ? -ENOMEM : 0;
}

/* Told in the turn after the one that asked. */
static void tell_ready(void *user)
{
	struct mcpc *c = user;
	void (*ready)(void *user, const struct err *err) = TAKE(c->ready);

	if (ready)
		ready(c->ready_user, &c->failure);
	else if (c->handlers && c->handlers->lost)
		c->handlers->lost(c->user, c, &c->failure);
}

int mcpc_create(const struct mcpc_options *o, struct mcpc_transport *t, struct mcpc **ret,
		struct err *err)
{
	_cleanup_(mcpc_free_p) struct mcpc *c = calloc(1, sizeof(*c));

	if (!c) {
		t->ops->close(t);
		return err_sys(err, ENOMEM, "MCP client");
	}
	list_init(&c->all);
	list_init(&c->asks);
	list_init(&c->pagings);
	loop_task_init(&c->late, tell_ready, c);
	c->t = t;
	t->events = &events;
	t->user = c;
	c->loop = o->loop;
	c->handlers = o->handlers;
	c->user = o->user;
	c->timeout_ms = o->timeout_ms ? o->timeout_ms : TIMEOUT_MS;
	c->calls = map_create(MCPC_CALLS_MAX);
	if (!c->calls || copy(o->name, &c->name) < 0 || copy(o->version, &c->version) < 0 ||
	    copy(o->capabilities ? o->capabilities : "{}", &c->offers) < 0 ||
	    copy(o->only_version, &c->only_version) < 0)
		return err_sys(err, ENOMEM, "MCP client");
	*ret = TAKE(c);
	return 0;
}

bool mcpc_is_modern(const struct mcpc *c)
{
	return c->is_modern;
}

const char *mcpc_server_name(const struct mcpc *c)
{
	struct jv hello = c->hello ? jv_root(c->hello) : (struct jv){ 0 };
	struct jv info = jv_get(hello, "serverInfo");
	const char *name;

	if (jv_kind(info) == JV_ABSENT)
		info = jv_get(jv_get(hello, "_meta"), MCPC_META "serverInfo");
	name = jv_text(jv_get(info, "name"));
	return name ? name : "";
}

bool mcpc_offers(const struct mcpc *c, const char *capability)
{
	struct jv hello = c->hello ? jv_root(c->hello) : (struct jv){ 0 };

	return jv_kind(jv_get(jv_get(hello, "capabilities"), capability)) == JV_OBJECT;
}
