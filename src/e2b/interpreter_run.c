/* POST /execute: code in a context, told line by line as it goes. A client that leaves interrupts
 * it: that is how the SDKs' timeouts work. */
#include <errno.h>
#include <string.h>

#include "api/call.h"
#include "api/problem.h"
#include "api/routes.h"
#include "api/text.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "config/config.h"
#include "e2b/handlers.h"
#include "e2b/interpreter.h"
#include "e2b/network.h"
#include "e2b/target.h"
#include "loop/loop.h"
#include "net/http.h"
#include "sandbox/sandbox.h"
#include "json/jv_decode.h"
#include "json/jw.h"

#define SILENCE_MS 5000u           /* then a line says that somebody is there */
#define LINE_MAX_BYTES (16u << 20) /* a result, with what JSON makes of it */

struct body_execute {
	const char *code, *context_id, *language;
	struct jv_pairs env;
};

static const struct jv_field execute_fields[] = {
	JV_FIELD("code", STRING, struct body_execute, code, .flags = JV_REQUIRED,
		 .max = CONTEXT_CODE_MAX),
	JV_FIELD("context_id", STRING, struct body_execute, context_id, .flags = JV_NULLABLE),
	JV_FIELD("language", STRING, struct body_execute, language, .flags = JV_NULLABLE,
		 .max = 64),
	JV_FIELD("env_vars", PAIRS, struct body_execute, env, .flags = JV_NULLABLE,
		 .max = SANDBOX_ENV_MAX - NETWORK_VARIABLES, .text_max = CONTEXT_CODE_MAX),
};
const struct route_body e2b_body_execute = {
	.name = "E2bExecuteRequest",
	.fields = execute_fields,
	.count = sizeof(execute_fields) / sizeof(execute_fields[0]),
	.size = sizeof(struct body_execute),
};

struct code_run { /* in the request's arena */
	struct call_stream base;
	struct api_call *call;
	struct context_run *run;    /* borrowed; NULL: has ended */
	struct loop_timer *silence; /* owned */
	enum context_language language;
	struct text_tail tails[2];
	bool is_counted; /* its number was told */
	struct code_wish wish;
	uint16_t proxy; /* port of the way out; 0: there is none */
};

static void leave(struct code_run *run)
{
	if (run->run)
		context_run_leave(TAKE(run->run), true);
	run->silence = loop_timer_free(run->silence);
	call_stream_end(&run->base);
}

static void gone(void *user, struct http_request *r)
{
	(void)r;
	leave(user);
}

static void break_off(struct code_run *run)
{
	struct http_request *r = run->call->http;

	leave(run);
	http_abort(r);
}

static void cut(struct call_stream *base)
{
	break_off(LIST_ENTRY(base, struct code_run, base));
}

/* ---- lines ---- */

/* Ends the object that is one. */
static int send_line(struct code_run *run, struct jw *w)
{
	jw_object_end(w);
	if (jw_end(w) < 0 || buf_putc(w->buf, '\n') < 0)
		return -ENOMEM;
	loop_timer_start(run->silence, SILENCE_MS, SILENCE_MS);
	return http_write(run->call->http, w->buf->data, w->buf->len) < 0 ? -EPIPE : 0;
}

static struct jw line_begin(struct buf *b, const char *type)
{
	struct jw w;

	buf_init(b, LINE_MAX_BYTES);
	w = jw_begin(b);
	jw_object_begin(&w);
	jw_str_field(&w, "type", type);
	return w;
}

static int send_type(struct code_run *run, const char *type)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = line_begin(&b, type);

	return send_line(run, &w);
}

static void on_silence(void *user)
{
	if (send_type(user, "keepalive") < 0)
		break_off(user);
}

static int send_count(struct code_run *run, uint64_t count)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = line_begin(&b, "number_of_executions");

	run->is_counted = true;
	jw_uint_field(&w, "execution_count", count);
	return send_line(run, &w);
}

static int send_piece(struct code_run *run, bool is_err, const char *text, size_t n)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w;

	if (n == 0)
		return 0;
	w = line_begin(&b, is_err ? "stderr" : "stdout");
	jw_key(&w, "text");
	jw_string_n(&w, text, n);
	jw_iso_field(&w, "timestamp", clock_wall_ms());
	return send_line(run, &w);
}

/* Clients know Java's println() as two pieces, a text and the newline behind it. */
static int send_text(struct code_run *run, bool is_err, const struct buf *text)
{
	bool has_end =
		run->language == CONTEXT_JAVA && text->len > 1 && text->data[text->len - 1] == '\n';
	int r = send_piece(run, is_err, text->data, text->len - has_end);

	return r < 0 || !has_end ? r : send_piece(run, is_err, "\n", 1);
}

static int send_output(struct code_run *run, const struct context_event *e)
{
	_cleanup_(buf_done) struct buf text = { 0 };
	bool is_err = e->type == CONTEXT_STDERR;
	int r = text_feed(&run->tails[is_err], e->data, e->len, &text);

	return r < 0 ? r : send_text(run, is_err, &text);
}

static int send_rest(struct code_run *run)
{
	int r = 0;

	for (int i = 0; i < 2 && r == 0; i++) {
		_cleanup_(buf_done) struct buf text = { 0 };

		r = text_end(&run->tails[i], &text);
		if (r == 0)
			r = send_text(run, i == 1, &text);
	}
	return r;
}

static bool is_quote(const struct code_run *run, char c)
{
	return c == '"' || (c == '\'' && run->language == CONTEXT_PYTHON);
}

/* A string of Python or Java is shown without its quotes. */
static void write_shown(const struct code_run *run, struct jw *w, struct jv v)
{
	bool has_quotes = run->language == CONTEXT_PYTHON || run->language == CONTEXT_JAVA;
	struct str s = { 0 };

	if (has_quotes && jv_str(v, &s) == 0 && s.len >= 2 && is_quote(run, s.data[0]) &&
	    s.data[s.len - 1] == s.data[0])
		jw_string_n(w, s.data + 1, s.len - 2);
	else
		jw_value(w, v);
}

/* What the interpreter told: the service has looked at it. */
static int send_members(struct code_run *run, const struct context_event *e)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	bool is_error = e->type == CONTEXT_ERROR;
	struct jw w = line_begin(&b, is_error ? "error" : "result");
	struct jv_doc *doc = NULL;
	int r = jv_parse(e->data, e->len, CONTEXT_RESULTS_MAX, &doc, NULL);

	if (r < 0)
		return r;
	JV_FOREACH (jv_root(doc), it) {
		jw_key_n(&w, it.key.data, it.key.len);
		if (!is_error && str_is(it.key, "text"))
			write_shown(run, &w, it.value);
		else
			jw_value(&w, it.value);
	}
	(void)jv_free(doc);
	if (!is_error)
		jw_bool_field(&w, "is_main_result", e->type == CONTEXT_RESULT);
	return send_line(run, &w);
}

/* What no interpreter has told of itself. */
static int send_failure(struct code_run *run, const struct context_end *end)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	bool is_late = end->status == CONTEXT_TIMED_OUT;
	struct jw w = line_begin(&b, "error");

	jw_str_field(&w, "name", is_late ? "TimeoutError" : "ContextLost");
	jw_str_field(&w, "value", is_late ? "the code ran for longer than it may" : end->reason);
	jw_str_field(&w, "traceback", "");
	return send_line(run, &w);
}

static int send_end(struct code_run *run, const struct context_end *end)
{
	int r = send_rest(run);

	if (r == 0 && (end->status == CONTEXT_LOST || end->status == CONTEXT_TIMED_OUT))
		r = send_failure(run, end);
	return r < 0 ? r : send_type(run, "end_of_execution");
}

/* By a broken stream and a /health of 502 a client learns that its sandbox has ended. */
static bool is_box_gone(const struct code_run *run)
{
	const struct api_call *c = run->call;
	struct sandbox *sb = sandboxes_find(c->api->deps.sandboxes, c->box_id, NULL);
	struct sandbox_info info;

	if (!sb)
		return true;
	sandbox_info(sb, &info);
	return info.state != SANDBOX_RUNNING;
}

static void on_event(void *user, const struct context_event *e)
{
	struct code_run *run = user;
	struct http_request *http = run->call->http;
	bool is_end = e->type == CONTEXT_END;
	int r = 0;

	if (is_end)
		run->run = NULL;
	if (is_end && e->end->status == CONTEXT_LOST && is_box_gone(run))
		return break_off(run);
	if (!run->is_counted && e->count > 0)
		r = send_count(run, e->count);
	if (r < 0)
		return break_off(run);
	if (is_end)
		r = send_end(run, e->end);
	else if (e->type == CONTEXT_STDOUT || e->type == CONTEXT_STDERR)
		r = send_output(run, e);
	else
		r = send_members(run, e);
	if (r < 0)
		return break_off(run);
	if (!is_end)
		return;
	leave(run);
	http_on_gone(http, NULL, NULL);
	http_end(http);
}

/* ---- starting ---- */

static void begin_answer(struct code_run *run)
{
	struct api_call *c = run->call;

	run->base.cut = cut;
	if (!call_stream_begin(c, &run->base, "ndjson", c->box_id))
		return leave(run);
	if (loop_timer_create(c->api->deps.loop, on_silence, run, &run->silence) < 0) {
		leave(run);
		return problem_reply(c, &(struct err){ ENOMEM, "run" });
	}
	http_on_gone(c->http, gone, run);
	http_begin(c->http, 200, "application/x-ndjson", -1);
	loop_timer_start(run->silence, SILENCE_MS, SILENCE_MS);
}

/* The client's, and where the way out is. */
static int fill_env(const struct code_run *run, const struct jv_pairs *own,
		    struct context_code *code)
{
	struct arena *a = http_arena(run->call->http);
	struct sandbox_pair *env = arena_array(a, own->len + NETWORK_VARIABLES, sizeof(*env));
	ssize_t n;

	if (!env)
		return -ENOMEM;
	for (size_t i = 0; i < own->len; i++)
		env[i] = (struct sandbox_pair){ own->items[i].name, own->items[i].value };
	n = network_add_env(env, own->len, run->proxy, a);
	code->env = env;
	code->n_env = n < 0 ? 0 : (size_t)n;
	return n < 0 ? -ENOMEM : 0;
}

static void start(struct api_call *c, struct context *ctx, void *user)
{
	const struct body_execute *body = c->body;
	struct code_run *run = user;
	struct context_code code = {
		.code = body->code,
		.len = strlen(body->code),
		/* How long it may run is the client's to say, by leaving. */
		.timeout_ms = c->api->deps.config->exec_timeout_max_ms,
		.trace = call_trace(c),
	};
	struct context_info info;
	struct err err = { 0 };

	if (!ctx)
		return; /* answered */
	if (fill_env(run, &body->env, &code) < 0)
		return problem_reply(c, &(struct err){ ENOMEM, "run" });
	context_info(ctx, &info);
	run->language = info.language;
	if (!call_stream_may_begin(c, c->box_id))
		return;
	if (context_run(ctx, &code, on_event, run, &run->run, &err) < 0)
		return code_problem(c, &err);
	begin_answer(run);
}

/* Its way out is open, at this port, or it has none. */
static void go(void *user, uint16_t proxy)
{
	struct code_run *run = user;
	struct sandbox *sb = e2b_sandbox(run->call);

	run->proxy = proxy;
	if (sb)
		code_context(run->call, sb, &run->wish, start, run);
}

void e2b_execute(struct api_call *c)
{
	const struct body_execute *body = c->body;
	struct code_run *run = arena_alloc(http_arena(c->http), sizeof(*run));
	struct sandbox *sb;

	if (!run)
		return problem_reply(c, &(struct err){ ENOMEM, "run" });
	if (body->context_id && body->language)
		return problem_status(c, 400, "Only one of context_id or language can be provided");
	run->wish.context_id = body->context_id;
	if (!code_language(c, body->language, &run->wish.language))
		return;
	run->call = c;
	list_init(&run->base.node);
	sb = e2b_sandbox(c);
	if (sb)
		e2b_network_open(c, sb, go, run);
}
