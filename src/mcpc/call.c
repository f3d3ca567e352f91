/* One request and its rounds: sent, answered, timed out, given up. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/str.h"
#include "mcpc/client_impl.h"
#include "mcpc/mirror.h"
#include "json/jw.h"

#define ROUNDS_MAX 16u       /* of one request, of a server that wants ever more answers */
#define STATE_MAX (1u << 20) /* bytes of what a server wants back */
#define HEADERS_BYTES_MAX (1u << 20)
#define PROGRESS_FACTOR \
	60u /* times the time limit: as long as anything takes that makes progress */

CLEANUP_FUNC(struct jv_doc *, jv_free)
CLEANUP_FUNC(struct arena *, arena_free)

void mcpc_call_free(struct mcpc_call *call)
{
	struct mcpc *c = call->c;

	if (map_get(c->calls, call->id, strlen(call->id)) == call)
		(void)map_remove(c->calls, call->id, strlen(call->id));
	if (c->ear == call)
		c->ear = NULL;
	mcpc_asks_forget(call);
	list_remove(&call->node);
	loop_task_cancel(&call->late);
	call->timer = loop_timer_free(call->timer);
	free(call->method);
	free(call->params);
	free(call->traceparent);
	free(call->request_state);
	buf_done(&call->answers);
	free(call);
}

void mcpc_call_end(struct mcpc_call *call, const struct mcpc_outcome *o)
{
	mcpc_done_fn done = call->done;
	void *user = call->user;

	mcpc_call_free(call);
	if (done)
		done(user, o);
}

void mcpc_call_fail(struct mcpc_call *call, const struct err *err)
{
	mcpc_call_end(call, &(struct mcpc_outcome){ .err = *err });
}

static void end_late(void *user)
{
	struct mcpc_call *call = user;
	struct err err = call->failure;

	mcpc_call_fail(call, &err);
}

void mcpc_call_fail_late(struct mcpc_call *call, const struct err *err)
{
	if (map_get(call->c->calls, call->id, strlen(call->id)) == call)
		(void)map_remove(call->c->calls, call->id, strlen(call->id));
	call->state = MCPC_CALL_OVER;
	call->failure = *err;
	loop_timer_stop(call->timer);
	loop_task_post(call->c->loop, &call->late);
}

/* ---- giving up ---- */

/* The server is told, unless it has no part in it now. */
static void tell_cancelled(struct mcpc_call *call, const char *why)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct mcpc *c = call->c;
	struct mcpc_send m = { .method = "notifications/cancelled", .is_modern = call->is_modern };
	struct jw w = jw_begin(&b);

	if (call->state != MCPC_CALL_SENT || !c->t)
		return;
	if (!call->is_greeting && !(call->is_modern && c->t->ops->forget_cancels)) {
		rpc_notification_begin(&w, m.method);
		jw_object_begin(&w);
		jw_raw_field(&w, "requestId", call->id, strlen(call->id));
		jw_str_field(&w, "reason", why);
		jw_object_end(&w);
		rpc_end(&w);
		if (jw_end(&w) == 0)
			(void)mcpc_send_text(c, &m, &b, NULL);
	}
	if (c->t->ops->forget)
		c->t->ops->forget(c->t, call->id);
}

void mcpc_cancel(struct mcpc_call *call)
{
	tell_cancelled(call, "not wanted any more");
	mcpc_call_free(call);
}

static bool is_asked(const struct mcpc *c)
{
	LIST_FOREACH (&c->asks, ask, struct mcpc_ask, node)
		if (ask->id[0])
			return true;
	return false;
}

static void start_timer(struct mcpc_call *call)
{
	uint64_t now = loop_now_ms(call->c->loop), ms = call->timeout_ms;

	if (ms == MCPC_NO_LIMIT)
		return;
	if (now + ms > call->until_ms)
		ms = call->until_ms > now ? call->until_ms - now : 0;
	loop_timer_start(call->timer, ms, 0);
}

static void timed_out(void *user)
{
	struct mcpc_call *call = user;
	struct err err = { 0 };

	/* The server waits for somebody here: it is not what keeps us waiting. */
	if (is_asked(call->c) && loop_now_ms(call->c->loop) < call->until_ms) {
		start_timer(call);
		return;
	}
	(void)err_set(&err, ETIMEDOUT, "%s: no answer in time", call->method);
	tell_cancelled(call, "no answer in time");
	mcpc_call_fail(call, &err);
}

/* ---- sending ---- */

static int set_mirror(struct mcpc_call *call, struct jv params, struct arena *a,
		      struct mcpc_send *m)
{
	const struct mcpc_mirror *mirror = NULL;

	if (call->is_modern && call->c->mirrors && m->name &&
	    strcmp(call->method, "tools/call") == 0)
		mirror = map_get(call->c->mirrors, m->name, strlen(m->name));
	return mirror ? mcpc_mirror_write(mirror, jv_get(params, "arguments"), a, &m->headers) : 0;
}

static int send_parsed(struct mcpc_call *call, struct jv params, struct err *err)
{
	_cleanup_(arena_free_p) struct arena *a = arena_create(HEADERS_BYTES_MAX);
	_cleanup_(buf_done) struct buf text = { 0 };
	struct mcpc_send m = { .id = call->id,
			       .method = call->method,
			       .name = mcpc_name_of(call->method, params),
			       .is_modern = call->is_modern,
			       .version = call->is_modern ? MCPC_MODERN : NULL,
			       .timeout_ms = call->timeout_ms };
	int r = a ? 0 : -ENOMEM;

	buf_init(&text, MCPC_MESSAGE_MAX);
	if (r == 0)
		r = set_mirror(call, params, a, &m);
	if (r == 0)
		r = mcpc_message_write(call, params, &text);
	if (r < 0)
		return err_sys(err, r, "%s", call->method);
	return mcpc_send_text(call->c, &m, &text, err);
}

int mcpc_call_send(struct mcpc_call *call, struct err *err)
{
	_cleanup_(jv_free_p) struct jv_doc *doc = NULL;
	struct mcpc *c = call->c;
	int r = jv_parse(call->params, strlen(call->params), MCPC_MESSAGE_MAX, &doc, err);

	if (r == 0 && jv_kind(jv_root(doc)) != JV_OBJECT)
		r = err_set(err, EINVAL, "params: want an object");
	if (r < 0)
		return r;
	(void)str_format(call->id, sizeof(call->id), "%" PRIu64, ++c->last_id);
	call->is_modern = call->is_greeting ? c->state == MCPC_PROBES : c->is_modern;
	call->state = MCPC_CALL_SENT;
	call->session_no = c->session_no;
	r = map_put(c->calls, call->id, strlen(call->id), call, NULL);
	if (r == -E2BIG)
		return err_set(err, EAGAIN, "%u requests are under way at this server",
			       MCPC_CALLS_MAX);
	if (r < 0)
		return err_sys(err, r, "%s", call->method);
	start_timer(call);
	r = send_parsed(call, jv_root(doc), err);
	if (r < 0)
		(void)map_remove(c->calls, call->id, strlen(call->id));
	return r;
}

static int copy(const char *text, char **ret)
{
	*ret = text ? str_dup(str_of(text)) : NULL;
	return text && !*ret ? -ENOMEM : 0;
}

static int make(struct mcpc *c, const struct mcpc_request *req, struct mcpc_call **ret)
{
	struct mcpc_call *call = calloc(1, sizeof(*call));
	uint64_t now = loop_now_ms(c->loop);
	int r;

	if (!call)
		return -ENOMEM;
	call->c = c;
	list_push_back(&c->all, &call->node);
	loop_task_init(&call->late, end_late, call);
	call->done = req->done;
	call->progress = req->progress;
	call->user = req->user;
	call->timeout_ms = req->timeout_ms ? req->timeout_ms : c->timeout_ms;
	call->until_ms = call->timeout_ms > (UINT64_MAX - now) / PROGRESS_FACTOR
				 ? UINT64_MAX
				 : now + call->timeout_ms * PROGRESS_FACTOR;
	r = copy(req->method, &call->method);
	if (r == 0)
		r = copy(req->params ? req->params : "{}", &call->params);
	if (r == 0)
		r = copy(req->traceparent, &call->traceparent);
	if (r == 0)
		r = loop_timer_create(c->loop, timed_out, call, &call->timer);
	if (r < 0) {
		mcpc_call_free(call);
		return r;
	}
	*ret = call;
	return 0;
}

int mcpc_call_start(struct mcpc *c, const struct mcpc_request *req, bool is_greeting,
		    struct mcpc_call **ret, struct err *err)
{
	struct mcpc_call *call;
	int r = make(c, req, &call);

	if (r < 0)
		return err_sys(err, r, "%s", req->method);
	call->is_greeting = is_greeting;
	if (c->state == MCPC_SHAKES && !is_greeting)
		call->state = MCPC_CALL_WAITS;
	else
		r = mcpc_call_send(call, err);
	if (r < 0) {
		mcpc_call_free(call);
		return r;
	}
	if (ret)
		*ret = call;
	return 0;
}

int mcpc_request(struct mcpc *c, const struct mcpc_request *req, struct mcpc_call **ret,
		 struct err *err)
{
	/* Ready, or (again) about to be. */
	if (c->state != MCPC_READY && !(c->state == MCPC_SHAKES && c->was_ready))
		return err_set(err, EPIPE, "the server is not connected");
	return mcpc_call_start(c, req, false, ret, err);
}

void mcpc_calls_go_on(struct mcpc *c, const struct err *err)
{
	struct err failure;

	LIST_FOREACH (&c->all, call, struct mcpc_call, node) {
		if (call->state != MCPC_CALL_WAITS)
			continue;
		failure = err ? *err : (struct err){ 0 };
		if (err || mcpc_call_send(call, &failure) < 0)
			mcpc_call_fail_late(call, &failure);
	}
}

/* ---- answers ---- */

void mcpc_call_progressed(struct mcpc_call *call, struct jv params)
{
	double at = 0, total = 0;

	start_timer(call);
	(void)jv_double(jv_get(params, "progress"), &at);
	(void)jv_double(jv_get(params, "total"), &total);
	if (call->progress)
		call->progress(call->user, at, total, jv_text(jv_get(params, "message")));
}

static int keep_state(struct mcpc_call *call, struct jv state, struct err *err)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w;

	free(TAKE(call->request_state));
	if (jv_kind(state) == JV_ABSENT)
		return 0;
	if (jv_kind(state) != JV_STRING)
		return err_set(err, EPROTO, "requestState: want a string");
	buf_init(&b, STATE_MAX);
	w = jw_begin(&b);
	jw_value(&w, state);
	if (jw_end(&w) < 0)
		return err_set(err, EPROTO, "requestState: more than %u bytes", STATE_MAX);
	call->request_state = buf_take(&b);
	return 0;
}

/* The server wants something first: the same request again, with that. */
static int another_round(struct mcpc_call *call, struct jv result, struct err *err)
{
	struct jv inputs = jv_get(result, "inputRequests"), state = jv_get(result, "requestState");
	int r;

	if (++call->round > ROUNDS_MAX)
		return err_set(err, EPROTO, "%s: the server has asked %u times", call->method,
			       ROUNDS_MAX);
	if (jv_kind(inputs) != JV_OBJECT && jv_kind(inputs) != JV_ABSENT)
		return err_set(err, EPROTO, "inputRequests: want an object");
	if (jv_kind(inputs) == JV_ABSENT && jv_kind(state) == JV_ABSENT)
		return err_set(err, EPROTO, "input_required: asks for nothing");
	r = keep_state(call, state, err);
	if (r < 0)
		return r;
	(void)map_remove(call->c->calls, call->id, strlen(call->id));
	call->state = MCPC_CALL_ASKS;
	loop_timer_stop(call->timer);
	buf_clear(&call->answers);
	if (jv_len(inputs) == 0)
		return mcpc_call_send(call, err);
	return mcpc_ask_inputs(call, inputs, err);
}

static void take_result(struct mcpc_call *call, struct jv result)
{
	const char *type = jv_text(jv_get(result, "resultType"));
	struct err err = { 0 };

	if (call->is_modern && type && strcmp(type, "input_required") == 0) {
		if (another_round(call, result, &err) < 0)
			mcpc_call_fail(call, &err);
		return;
	}
	/* What an older server does not say is complete. */
	if (call->is_modern && jv_kind(jv_get(result, "resultType")) != JV_ABSENT &&
	    (!type || strcmp(type, "complete") != 0)) {
		(void)err_set(&err, EPROTO, "%s: a result of an unknown kind '%.40s'", call->method,
			      type ? type : "?");
		mcpc_call_fail(call, &err);
		return;
	}
	mcpc_call_end(call, &(struct mcpc_outcome){ .result = result });
}

void mcpc_call_answered(struct mcpc_call *call, const struct rpc_message *m)
{
	struct mcpc_outcome o = { .rpc_code = m->code, .data = m->data };

	call->c->may_renew = true;
	if (m->kind == RPC_RESULT) {
		take_result(call, m->result);
		return;
	}
	(void)err_set(&o.err, EREMOTEIO, "%s", m->text[0] ? m->text : "the server refuses");
	if (o.rpc_code == 0)
		o.rpc_code = RPC_INTERNAL;
	mcpc_call_end(call, &o);
}
