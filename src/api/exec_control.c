/* What can be done to an execution while it runs. */
#include <errno.h>
#include <string.h>

#include "api/bodies.h"
#include "api/call.h"
#include "api/exec_look.h"
#include "api/exec_stream.h"
#include "api/execution_json.h"
#include "api/feed.h"
#include "api/handlers.h"
#include "api/problem.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/signals.h"
#include "loop/loop.h"
#include "net/http.h"
#include "sandbox/exec.h"
#include "json/jw.h"

#define WAIT_DEFAULT_MS 30000u
#define SIGNAL_MAX 64

static void reply_info(struct api_call *c, int status, const struct exec_info *info,
		       const struct output *output)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);
	enum encoding e = ENCODING_TEXT;

	if (!exec_stream_encoding(c, &e))
		return;
	b.max = EXECUTION_JSON_MAX;
	execution_json(&w, info, output, e);
	call_reply(c, status, &w);
}

static bool is_running(struct api_call *c, const struct execution *x, const struct exec_info *info)
{
	if (x && info->state == EXECUTION_RUNNING)
		return true;
	problem_status(c, 409, "the execution has ended");
	return false;
}

/* The services' plain results: what they cannot do to this execution is a conflict. */
static void reply_result(struct api_call *c, int r, const char *what)
{
	struct err err = { 0 };

	if (r == 0)
		return call_reply_empty(c);
	if (r == -EPIPE || r == -ESRCH || r == -ENOTTY)
		return problem_status(c, 409, "the execution has no %s (any more)", what);
	(void)err_sys(&err, r, "%s", what);
	problem_reply(c, &err);
}

/* ---- standard input ---- */

struct input { /* in the request's arena */
	struct api_call *call;
	const char *data;
	size_t len;
	bool eof;
	struct feed *feed; /* borrowed: while it waits */
};

static void input_gone(void *user, struct http_request *r)
{
	struct input *in = user;

	(void)r;
	feed_leave(in->feed);
}

static void input_taken(void *user, int r)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct input *in = user;
	struct jw w = jw_begin(&b);

	if (r < 0)
		return reply_result(in->call, r, "standard input");
	jw_object_begin(&w);
	jw_uint_field(&w, "bytes", in->len);
	jw_bool_field(&w, "eof", in->eof);
	jw_object_end(&w);
	call_reply(in->call, 200, &w);
}

static void input_found(struct api_call *c, struct execution *x, const struct exec_info *info,
			const struct output *output)
{
	struct input *in = c->body;
	int r;

	(void)output;
	if (!is_running(c, x, info))
		return;
	if (info->kind == EXECUTION_CONTEXT) /* its driver takes requests there */
		return problem_status(c, 409, "a context takes code, not standard input");
	r = feed_start(c->api, x, in->data, in->len, in->eof, input_taken, in, &in->feed);
	if (r == 0)
		http_on_gone(c->http, input_gone, in);
	else
		input_taken(in, r > 0 ? 0 : r);
}

static void got_input(void *user, struct http_request *r, const char *data, size_t n)
{
	struct input *in = user;

	(void)r;
	in->data = data;
	in->len = n;
	exec_look(in->call, input_found);
}

void api_exec_stdin(struct api_call *c)
{
	struct input *in = arena_alloc(http_arena(c->http), sizeof(*in));

	if (!in)
		return problem_reply(c, &(struct err){ ENOMEM, "standard input" });
	in->call = c;
	c->body = in;
	if (!call_query_bool(c, "eof", &in->eof))
		return;
	http_body_collect(c->http, FEED_MAX, got_input, in);
}

/* ---- signals, size, end ---- */

/* 0 after an answer. */
static int parse_signal(struct api_call *c, struct jv v)
{
	const char *name = jv_text(v);
	int64_t number = 0;
	int signo = name ? signal_from(name) : 0;

	if (!name && jv_i64(v, &number) == 0 && number > 0 && number <= SIGNAL_MAX)
		signo = (int)number;
	if (signo == 0)
		problem_field(c, "signal", "want a signal such as \"SIGINT\" or 2");
	return signo;
}

static void signal_found(struct api_call *c, struct execution *x, const struct exec_info *info,
			 const struct output *output)
{
	const struct body_signal *body = c->body;

	(void)output;
	if (is_running(c, x, info))
		reply_result(c, exec_signal(x, body->number, body->tree), "process");
}

void api_exec_signal(struct api_call *c)
{
	struct body_signal *body = c->body;
	int number = parse_signal(c, body->signal);

	if (number == 0)
		return;
	body->number = number;
	exec_look(c, signal_found);
}

static void resize_found(struct api_call *c, struct execution *x, const struct exec_info *info,
			 const struct output *output)
{
	const struct body_resize *body = c->body;

	(void)output;
	if (!is_running(c, x, info))
		return;
	if (info->kind != EXECUTION_PTY)
		return problem_status(c, 409, "the execution has no terminal");
	reply_result(c, exec_resize(x, (uint16_t)body->rows, (uint16_t)body->cols), "terminal");
}

void api_exec_resize(struct api_call *c)
{
	exec_look(c, resize_found);
}

/* Cancelling what has ended is no failure: it is what was wanted. */
static void cancel_found(struct api_call *c, struct execution *x, const struct exec_info *info,
			 const struct output *output)
{
	int r = 0;

	(void)output;
	if (x && info->state == EXECUTION_RUNNING)
		r = exec_cancel(x);
	reply_result(c, r == -EPIPE || r == -ESRCH ? 0 : r, "process");
}

void api_exec_cancel(struct api_call *c)
{
	exec_look(c, cancel_found);
}

/* ---- waiting for the end ---- */

struct waiting { /* in the request's arena */
	struct api_call *call;
	struct execution *x;      /* held */
	struct exec_wait *wait;   /* owned; NULL once it has called */
	struct loop_timer *timer; /* owned */
};

static void waiting_done(struct waiting *w)
{
	if (w->wait)
		exec_unwait(w->wait);
	w->timer = loop_timer_free(w->timer);
	exec_unref(w->x);
}

static void wait_gone(void *user, struct http_request *r)
{
	(void)r;
	waiting_done(user);
}

static void reply_waited(struct waiting *w)
{
	struct execution *x = exec_ref(w->x);
	struct exec_info info;

	waiting_done(w);
	exec_info(x, &info);
	reply_info(w->call, info.state == EXECUTION_RUNNING ? 202 : 200, &info, exec_output(x));
	exec_unref(x);
}

static void wait_over(void *user)
{
	reply_waited(user);
}

static void wait_ended(void *user, struct execution *x)
{
	struct waiting *w = user;

	(void)x;
	w->wait = NULL;
	reply_waited(w);
}

static void wait_found(struct api_call *c, struct execution *x, const struct exec_info *info,
		       const struct output *output)
{
	struct waiting *w;
	uint64_t timeout_ms = WAIT_DEFAULT_MS;

	if (!call_query_ms(c, "timeout", &timeout_ms))
		return;
	if (!x || info->state != EXECUTION_RUNNING || timeout_ms == 0)
		return reply_info(c, info->state == EXECUTION_RUNNING ? 202 : 200, info, output);
	w = arena_alloc(http_arena(c->http), sizeof(*w));
	if (!w)
		return problem_reply(c, &(struct err){ ENOMEM, "wait" });
	w->call = c;
	w->x = exec_ref(x);
	w->wait = exec_wait(x, wait_ended, w);
	if (!w->wait || loop_timer_create(c->api->deps.loop, wait_over, w, &w->timer) < 0) {
		waiting_done(w);
		return problem_reply(c, &(struct err){ EAGAIN, "wait: too many wait for it" });
	}
	http_on_gone(c->http, wait_gone, w);
	loop_timer_start(w->timer, timeout_ms, 0);
}

void api_exec_wait(struct api_call *c)
{
	exec_look(c, wait_found);
}
