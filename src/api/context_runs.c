/* Code in a context: its events gathered up as JSON, or told one by one (SSE). How much there can
 * be of them is bounded by the service. */
#include <errno.h>
#include <string.h>

#include "api/bodies.h"
#include "api/call.h"
#include "api/contexts.h"
#include "api/execution_json.h"
#include "api/handlers.h"
#include "api/problem.h"
#include "api/text.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "net/http.h"
#include "net/sse.h"
#include "sandbox/context.h"
#include "sandbox/pairs.h"
#include "json/jw.h"

struct run { /* in the request's arena */
	struct call_stream base;
	struct api_call *call;
	struct context_run *run; /* borrowed; NULL: has ended */
	struct sse *sse;         /* NULL: one answer at the end */
	bool is_stream, cancel_on_gone;
	bool is_execution; /* answers as /execute does */
	struct text_tail tails[2];
	struct buf out[2];  /* owned */
	struct buf results; /* owned: a JSON list, not closed */
	struct buf error;   /* owned: JSON; the first counts */
	bool has_failed;    /* out of memory on the way */
	const char *language;
	char id[ID_LEN + 1], context_id[ID_LEN + 1], sandbox_id[ID_LEN + 1];
	char execution_id[ID_LEN + 1];
};

static void run_done(struct run *run)
{
	call_stream_end(&run->base);
	buf_done(&run->out[0]);
	buf_done(&run->out[1]);
	buf_done(&run->results);
	buf_done(&run->error);
}

/* Nobody listens any more. */
static void leave(struct run *run, bool cancel)
{
	if (run->run)
		context_run_leave(TAKE(run->run), cancel);
	run_done(run);
}

static void gone(void *user, struct http_request *r)
{
	struct run *run = user;

	(void)r;
	leave(run, run->cancel_on_gone);
}

static void break_off(struct run *run)
{
	struct http_request *r = run->call->http;

	leave(run, run->cancel_on_gone);
	http_abort(r);
}

static void cut(struct call_stream *base)
{
	break_off(LIST_ENTRY(base, struct run, base));
}

/* ---- as JSON ---- */

static void write_text(struct run *run, struct jw *w, int stream)
{
	jw_key(w, stream_name(stream));
	jw_string_n(w, buf_str(&run->out[stream - 1]), run->out[stream - 1].len);
}

static void write_told(struct run *run, struct jw *w)
{
	if (buf_puts(&run->results, run->results.len > 0 ? "]" : "[]") < 0)
		w->failed = -ENOMEM;
	jw_raw_field(w, "results", buf_str(&run->results), run->results.len);
	if (run->error.len > 0)
		jw_raw_field(w, "error", run->error.data, run->error.len);
	else
		jw_null_field(w, "error");
	write_text(run, w, 1);
	write_text(run, w, 2);
}

static void write_end(const struct run *run, struct jw *w, const struct context_end *end)
{
	jw_str_field(w, "runId", run->id);
	jw_str_field(w, "contextId", run->context_id);
	jw_str_field(w, "sandboxId", run->sandbox_id);
	jw_str_field(w, "language", run->language);
	jw_str_field(w, "status", context_status_name(end->status));
	jw_str_field(w, "reason", end->reason[0] ? end->reason : NULL);
	jw_iso_field(w, "startedAt", end->started_ms);
	jw_double_field(w, "durationMs", (double)end->wall_us / 1e3);
	if (end->count > 0)
		jw_uint_field(w, "executionCount", end->count);
	else
		jw_null_field(w, "executionCount");
	if (end->exit_code >= 0)
		jw_int_field(w, "exitCode", end->exit_code);
	else
		jw_null_field(w, "exitCode");
	jw_str_field(w, "cwd", end->cwd[0] ? end->cwd : NULL);
	jw_bool_field(w, "timedOut", end->status == CONTEXT_TIMED_OUT);
	jw_bool_field(w, "truncated", end->truncated);
	jw_bool_field(w, "stateLost", end->state_lost);
}

/* The fields of an execution, as far as a run has them. */
static void write_execution(const struct run *run, struct jw *w, const struct context_end *end)
{
	static const char *const statuses[CONTEXT_STATUS_COUNT] = {
		[CONTEXT_OK] = "completed",          [CONTEXT_RAISED] = "completed",
		[CONTEXT_INTERRUPTED] = "cancelled", [CONTEXT_TIMED_OUT] = "timeout",
		[CONTEXT_LOST] = "interrupted",
	};
	int64_t code = end->exit_code >= 0 ? end->exit_code : end->status != CONTEXT_OK;

	jw_str_field(w, "executionId", run->execution_id);
	jw_str_field(w, "sandboxId", run->sandbox_id);
	jw_str_field(w, "kind", "context");
	jw_str_field(w, "status", statuses[end->status]);
	jw_str_field(w, "reason", end->reason[0] ? end->reason : NULL);
	jw_iso_field(w, "startedAt", end->started_ms);
	jw_iso_field(w, "completedAt", end->started_ms + (int64_t)(end->wall_us / 1000));
	if (end->status == CONTEXT_LOST)
		jw_null_field(w, "exitCode");
	else
		jw_int_field(w, "exitCode", code);
	jw_null_field(w, "signal");
	jw_bool_field(w, "timedOut", end->status == CONTEXT_TIMED_OUT);
	jw_bool_field(w, "truncated", end->truncated);
	jw_bool_field(w, "oomKilled", false);
	jw_bool_field(w, "cancelled", end->status == CONTEXT_INTERRUPTED);
	jw_bool_field(w, "leftovers", false);
	jw_bool_field(w, "warm", true);
	jw_bool_field(w, "background", false);
	jw_double_field(w, "durationMs", (double)end->wall_us / 1e3);
	jw_double_field(w, "cpuMs", 0);
	jw_uint_field(w, "peakMemoryBytes", 0);
	jw_uint_field(w, "outputBytes", run->out[0].len + run->out[1].len);
	jw_uint_field(w, "omittedBytes", 0);
	jw_str_field(w, "contextId", run->context_id);
	jw_bool_field(w, "stateLost", end->state_lost);
}

static void write_summary(const struct run *run, struct jw *w, const struct context_end *end)
{
	if (run->is_execution)
		write_execution(run, w, end);
	else
		write_end(run, w, end);
}

static void reply(struct run *run, const struct context_end *end)
{
	_cleanup_(buf_done) struct buf b = { .max = EXECUTION_JSON_MAX };
	struct api_call *c = run->call;
	struct jw w = jw_begin(&b);

	if (run->has_failed) {
		run_done(run);
		return problem_reply(c, &(struct err){ ENOMEM, "run" });
	}
	jw_object_begin(&w);
	write_summary(run, &w, end);
	write_told(run, &w);
	jw_object_end(&w);
	run_done(run);
	call_reply(c, 200, &w);
}

/* {"isMain":...,} and the members that the interpreter told. */
static int add_value(struct buf *b, bool is_main, const char *data, size_t n)
{
	const char *members = memchr(data, '{', n); /* it is there: the service has looked */

	(void)buf_printf(b, "{\"isMain\":%s,", is_main ? "true" : "false");
	return members ? buf_append(b, members + 1, n - (size_t)(members + 1 - data)) : -EINVAL;
}

static int gather(struct run *run, const struct context_event *e)
{
	switch (e->type) {
	case CONTEXT_STDOUT:
	case CONTEXT_STDERR:
		return buf_append(&run->out[e->type == CONTEXT_STDERR], e->data, e->len);
	case CONTEXT_RESULT:
	case CONTEXT_DISPLAY:
		(void)buf_putc(&run->results, run->results.len > 0 ? ',' : '[');
		return add_value(&run->results, e->type == CONTEXT_RESULT, e->data, e->len);
	case CONTEXT_ERROR:
		return run->error.len > 0 ? 0 : buf_append(&run->error, e->data, e->len);
	case CONTEXT_END:
		return 0;
	}
	return 0;
}

/* ---- as events ---- */

static int send(struct run *run, const char *name, const struct buf *b)
{
	if (b->failed)
		return -ENOMEM;
	return sse_event(run->sse, NULL, name, b->data, b->len) < 0 ? -EPIPE : 0;
}

static int send_text(struct run *run, int stream, const char *data, size_t n)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);
	int r;

	jw_object_begin(&w);
	jw_key(&w, "text");
	jw_string_n(&w, data, n);
	jw_object_end(&w);
	r = jw_end(&w);
	return r < 0 ? r : send(run, stream_name(stream), &b);
}

static int send_output(struct run *run, int stream, const char *data, size_t n)
{
	_cleanup_(buf_done) struct buf text = { 0 };
	int r = text_feed(&run->tails[stream - 1], data, n, &text);

	return r < 0 || text.len == 0 ? r : send_text(run, stream, text.data, text.len);
}

static int send_value(struct run *run, const struct context_event *e)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	bool is_main = e->type == CONTEXT_RESULT;
	int r = e->type == CONTEXT_ERROR ? buf_append(&b, e->data, e->len)
					 : add_value(&b, is_main, e->data, e->len);

	if (r < 0)
		return r;
	return send(run, e->type == CONTEXT_ERROR ? "error" : is_main ? "result" : "display", &b);
}

static int send_end(struct run *run, const struct context_end *end)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);
	int r = 0;

	for (int i = 0; i < 2 && r == 0; i++)
		if (run->tails[i].len > 0) /* a sequence that never became whole */
			r = send_text(run, i + 1, run->tails[i].data, run->tails[i].len);
	if (r < 0)
		return r;
	jw_object_begin(&w);
	write_summary(run, &w, end);
	jw_object_end(&w);
	r = jw_end(&w);
	return r < 0 ? r : send(run, "end", &b);
}

static void tell(struct run *run, const struct context_event *e)
{
	struct sse *sse = run->sse;
	int r;

	if (e->type == CONTEXT_END)
		r = send_end(run, e->end);
	else if (e->type == CONTEXT_STDOUT || e->type == CONTEXT_STDERR)
		r = send_output(run, e->type == CONTEXT_STDERR ? 2 : 1, e->data, e->len);
	else
		r = send_value(run, e);
	if (r < 0)
		return break_off(run);
	if (e->type != CONTEXT_END)
		return;
	run_done(run);
	sse_end(sse);
}

static void on_event(void *user, const struct context_event *e)
{
	struct run *run = user;

	if (e->type == CONTEXT_END)
		run->run = NULL;
	if (run->is_stream)
		return tell(run, e);
	if (gather(run, e) < 0)
		run->has_failed = true;
	if (e->type == CONTEXT_END)
		reply(run, e->end);
}

/* ---- starting ---- */

static int send_start(struct run *run)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);
	int r;

	jw_object_begin(&w);
	jw_str_field(&w, "runId", run->id);
	jw_str_field(&w, "contextId", run->context_id);
	jw_str_field(&w, "sandboxId", run->sandbox_id);
	jw_object_end(&w);
	r = jw_end(&w);
	return r < 0 ? r : send(run, "start", &b);
}

static void begin_stream(struct run *run)
{
	struct api_call *c = run->call;

	run->base.cut = cut;
	if (!call_stream_begin(c, &run->base, "sse", run->sandbox_id))
		return leave(run, true);
	run->sse = sse_begin(c->http);
	if (!run->sse) {
		leave(run, true);
		return problem_reply(c, &(struct err){ ENOMEM, "stream" });
	}
	http_on_gone(c->http, gone, run);
	if (send_start(run) < 0)
		break_off(run);
}

static void start(struct run *run, const char *context, const struct context_code *code)
{
	struct api_call *c = run->call;
	struct sandbox *sb = call_sandbox(c);
	struct context *ctx = sb ? context_find(sb, context) : NULL;
	struct context_info info;
	struct err err = { 0 };

	if (!sb)
		return;
	if (!ctx)
		return problem_status(c, 404, "there is no context '%.64s'", context);
	context_info(ctx, &info);
	(void)str_copy(run->context_id, sizeof(run->context_id), info.id);
	(void)str_copy(run->sandbox_id, sizeof(run->sandbox_id), info.sandbox_id);
	(void)str_copy(run->execution_id, sizeof(run->execution_id), info.execution_id);
	run->language = context_language_name(info.language);
	list_init(&run->base.node);
	if (run->is_stream && !call_stream_may_begin(c, info.sandbox_id))
		return;
	if (context_run(ctx, code, on_event, run, &run->run, &err) < 0)
		return context_problem(c, &err);
	(void)str_copy(run->id, sizeof(run->id), context_run_id(run->run));
	if (run->is_stream)
		begin_stream(run);
	else
		http_on_gone(c->http, gone, run);
}

static struct run *run_create(struct api_call *c, bool stream, bool cancel_on_gone)
{
	struct run *run = arena_alloc(http_arena(c->http), sizeof(*run));

	if (!run) {
		problem_reply(c, &(struct err){ ENOMEM, "run" });
		return NULL;
	}
	run->call = c;
	run->is_stream = stream || call_accepts(c, "text/event-stream");
	run->cancel_on_gone = cancel_on_gone;
	run->results.max = 2 * CONTEXT_RESULTS_MAX;
	return run;
}

void api_context_run(struct api_call *c)
{
	const struct body_run *body = c->body;
	struct run *run = run_create(c, body->stream, body->cancel_on_disconnect);
	struct context_code code = {
		.code = body->code,
		.len = strlen(body->code),
		.env = pairs_given(http_arena(c->http), &body->env),
		.n_env = body->env.len,
		.timeout_ms = body->timeout_ms,
		.trace = call_trace(c),
	};

	if (!run)
		return;
	if (code.n_env > 0 && !code.env)
		return problem_reply(c, &(struct err){ ENOMEM, "run" });
	start(run, call_param(c, "cid"), &code);
}

void context_execute(struct api_call *c, const struct body_exec *body)
{
	struct run *run;

	if (body->background || body->cwd || body->env.len > 0 ||
	    jv_kind(body->stdin_value) != JV_ABSENT)
		return problem_field(c, "contextId",
				     "does not go together with background, cwd, env and stdin");
	run = run_create(c, body->stream, body->cancel_on_disconnect);
	if (!run)
		return;
	run->is_execution = true;
	start(run, body->context_id,
	      &(struct context_code){ .code = body->content,
				      .len = strlen(body->content),
				      .timeout_ms = body->timeout_ms,
				      .trace = call_trace(c) });
}
