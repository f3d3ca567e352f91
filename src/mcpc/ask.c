/* What a server wants of us: requests of its own in the legacy era, inputs of a request in the
 * modern one. Whoever has the client answers. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/str.h"
#include "mcpc/client_impl.h"
#include "json/jw.h"

#define ASKS_MAX 64u /* open at one server */

static void ask_free(struct mcpc_ask *ask)
{
	list_remove(&ask->node);
	free(ask->key);
	free(ask->method);
	free(ask);
}

static size_t count(const struct mcpc *c)
{
	size_t n = 0;

	LIST_FOREACH (&c->asks, ask, struct mcpc_ask, node)
		n++;
	return n;
}

static struct mcpc_ask *ask_create(struct mcpc *c, const char *method, struct jv params)
{
	struct mcpc_ask *ask = count(c) < ASKS_MAX ? calloc(1, sizeof(*ask)) : NULL;

	if (!ask)
		return NULL;
	list_push_back(&c->asks, &ask->node);
	ask->params = params;
	ask->method = str_dup(str_of(method));
	if (!ask->method) {
		ask_free(ask);
		return NULL;
	}
	return ask;
}

/* ---- the answers ---- */

static void send_answer(struct mcpc *c, const struct buf *text)
{
	struct mcpc_send m = { .method = NULL, .is_modern = c->is_modern };
	struct err err = { 0 };

	if (mcpc_send_text(c, &m, text, &err) < 0)
		log_debug("mcpc", "an answer is lost: %s", err.text);
}

static void send_error(struct mcpc *c, const char *id, long code, const char *text)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);

	rpc_error(&w, id, code, text, NULL);
	if (jw_end(&w) == 0)
		send_answer(c, &b);
}

static void send_result(struct mcpc *c, const char *id, const char *json)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w;

	buf_init(&b, MCPC_MESSAGE_MAX);
	w = jw_begin(&b);
	rpc_result_begin(&w, id);
	jw_raw(&w, json, strlen(json));
	rpc_end(&w);
	if (jw_end(&w) == 0)
		send_answer(c, &b);
	else
		send_error(c, id, RPC_INTERNAL, "the answer is too large");
}

/* All questions of a round have answers: the next one. */
static void go_on(struct mcpc_call *call)
{
	struct err err = { 0 };
	int r = buf_putc(&call->answers, '}');

	if (r < 0)
		r = err_sys(&err, r, "answers to the server");
	else
		r = mcpc_call_send(call, &err);
	if (r < 0)
		mcpc_call_fail_late(call, &err);
}

static void keep_answer(struct mcpc_call *call, const char *key, const char *json)
{
	_cleanup_(buf_done) struct buf name = { 0 };
	struct jw w = jw_begin(&name);

	jw_string(&w, key);
	(void)jw_end(&w);
	(void)buf_putc(&call->answers, call->answers.len == 0 ? '{' : ',');
	(void)buf_append(&call->answers, buf_str(&name), name.len);
	(void)buf_putc(&call->answers, ':');
	(void)buf_puts(&call->answers, json); /* a failure sticks: go_on() sees it */
	if (--call->n_open == 0)
		go_on(call);
}

void mcpc_answer(struct mcpc *c, void *asked, const char *result_json)
{
	struct mcpc_ask *ask = asked;

	list_remove(&ask->node);
	if (ask->call)
		keep_answer(ask->call, ask->key, result_json);
	else if (ask->id[0])
		send_result(c, ask->id, result_json);
	ask_free(ask);
}

void mcpc_refuse(struct mcpc *c, void *asked, long code, const char *text)
{
	struct mcpc_ask *ask = asked;
	struct err err = { 0 };

	list_remove(&ask->node);
	if (ask->call) { /* the modern era has no refusals: the request as a whole is given up */
		(void)err_set(&err, ECANCELED, "the server asks for %.60s: %s", ask->method, text);
		mcpc_call_fail_late(ask->call, &err);
		mcpc_asks_forget(ask->call);
	} else if (ask->id[0]) {
		send_error(c, ask->id, code, text);
	}
	ask_free(ask);
}

/* ---- the questions ---- */

static void tell(struct mcpc *c, struct mcpc_ask *ask)
{
	ask->is_told = true;
	if (c->handlers && c->handlers->asked)
		c->handlers->asked(c->user, c, ask, ask->method, ask->params);
	else
		mcpc_refuse(c, ask, RPC_NO_METHOD, "is not answered here");
}

void mcpc_ask_request(struct mcpc *c, const struct rpc_message *m)
{
	struct mcpc_ask *ask;
	char id[RPC_ID_MAX];

	if (rpc_id(m->id, id, sizeof(id)) < 0)
		return;
	if (strcmp(m->method, "ping") == 0) {
		send_result(c, id, "{}");
		return;
	}
	if (c->is_modern)
		return; /* servers of that era have no requests; nobody would take the answer */
	ask = ask_create(c, m->method, m->params);
	if (!ask) {
		send_error(c, id, RPC_INTERNAL, "too much is asked at once");
		return;
	}
	memcpy(ask->id, id, sizeof(id));
	tell(c, ask);
}

static struct mcpc_ask *find_untold(struct mcpc *c)
{
	LIST_FOREACH (&c->asks, ask, struct mcpc_ask, node)
		if (!ask->is_told)
			return ask;
	return NULL;
}

/* NOTE: called with the client entered, and never from within itself: what is not told yet is of
 * this call. */
int mcpc_ask_inputs(struct mcpc_call *call, struct jv inputs, struct err *err)
{
	struct mcpc *c = call->c;
	struct mcpc_ask *ask;

	call->n_open = 0;
	JV_FOREACH (inputs, it) {
		const char *method = jv_text(jv_get(it.value, "method"));

		ask = method ? ask_create(c, method, jv_get(it.value, "params")) : NULL;
		if (!ask)
			return err_set(err, EPROTO, "inputRequests: want methods, and at most %u",
				       ASKS_MAX);
		ask->call = call;
		call->n_open++;
		ask->key = str_dup(it.key);
		if (!ask->key)
			return err_sys(err, ENOMEM, "inputRequests");
	}
	while (!c->is_freed && (ask = find_untold(c)))
		tell(c, ask);
	return 0;
}

void mcpc_ask_withdrawn(struct mcpc *c, struct jv id)
{
	char text[RPC_ID_MAX];

	if (rpc_id(id, text, sizeof(text)) < 0)
		return;
	LIST_FOREACH (&c->asks, ask, struct mcpc_ask, node)
		if (strcmp(ask->id, text) == 0)
			ask->id[0] = '\0'; /* an answer goes nowhere */
}

void mcpc_asks_forget(struct mcpc_call *call)
{
	LIST_FOREACH (&call->c->asks, ask, struct mcpc_ask, node) {
		if (ask->call != call)
			continue;
		ask->call = NULL;
		if (!ask->is_told)
			ask_free(ask);
	}
}

void mcpc_asks_free(struct mcpc *c)
{
	LIST_FOREACH (&c->asks, ask, struct mcpc_ask, node)
		ask_free(ask);
}
