/* Starting executions, and looking at them. */
#include <errno.h>
#include <string.h>

#include "api/bodies.h"
#include "api/call.h"
#include "api/contexts.h"
#include "api/exec_look.h"
#include "api/exec_plan.h"
#include "api/exec_stream.h"
#include "api/execution_json.h"
#include "api/executions.h"
#include "api/feed.h"
#include "api/handlers.h"
#include "api/problem.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "net/http.h"
#include "sandbox/exec.h"
#include "json/jw.h"

#define LIST_DEFAULT 50

struct run { /* in the request's arena */
	struct api_call *call;
	struct exec_plan plan;
	struct exec_stream_options stream;
	bool background, is_stream;
	struct execution *x;    /* held while the client waits for its end */
	struct exec_wait *wait; /* owned */
	void (*began)(void *user, struct execution *x); /* NULL: nobody asks */
	void *user;
};

static void reply_result(struct api_call *c, int status, const struct exec_info *info,
			 const struct output *output, enum encoding e)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);

	b.max = EXECUTION_JSON_MAX;
	execution_json(&w, info, output, e);
	call_reply(c, status, &w);
}

/* ---- starting ---- */

static void ended(void *user, struct execution *x)
{
	struct run *run = user;
	struct exec_info info;

	exec_info(x, &info);
	reply_result(run->call, 200, &info, exec_output(x), run->stream.encoding);
	exec_unref(x); /* held by the run, which went with the answer */
}

/* The execution belongs to its sandbox and goes on, unless the client said otherwise. */
static void gone(void *user, struct http_request *r)
{
	struct run *run = user;

	(void)r;
	exec_unwait(run->wait);
	if (run->stream.cancel_on_gone)
		(void)exec_cancel(run->x);
	exec_unref(run->x);
}

static void wait_for(struct run *run, struct execution *x)
{
	run->x = exec_ref(x);
	run->wait = exec_wait(x, ended, run);
	if (run->wait)
		return http_on_gone(run->call->http, gone, run);
	(void)exec_cancel(x); /* who is told that there is no memory will try again */
	exec_unref(x);
	problem_reply(run->call, &(struct err){ ENOMEM, "execution" });
}

static void reply_started(struct run *run, struct execution *x)
{
	struct exec_info info;
	char path[192];

	exec_info(x, &info);
	if (str_format(path, sizeof(path), "/api/v1/sandboxes/%s/executions/%s", info.sandbox_id,
		       info.id) == 0)
		(void)http_header_add(run->call->http, "Location", path);
	reply_result(run->call, 202, &info, exec_output(x), run->stream.encoding);
}

static void started(void *user, struct execution *x, const struct err *err)
{
	struct run *run = user;
	const struct exec_plan *plan = &run->plan;
	struct exec_info info;
	int r = 0;

	if (run->began)
		run->began(run->user, err ? NULL : x);
	if (err)
		return problem_reply(run->call, err);
	exec_info(x, &info);
	call_set_subject(run->call, info.id);
	if (plan->stdin_text)
		r = feed_start(run->call->api, x, plan->stdin_text, plan->stdin_len, true, NULL,
			       NULL, NULL);
	if (r < 0 && r != -EPIPE && r != -ESRCH) { /* one that is over needs no input */
		(void)exec_cancel(x);
		return problem_reply(run->call, &(struct err){ -r, "standard input" });
	}
	if (run->background)
		return reply_started(run, x);
	if (run->is_stream)
		return exec_stream_follow(run->call, x, &run->stream);
	wait_for(run, x);
}

void executions_run(struct api_call *c, struct sandbox *sb, const struct exec_request *req,
		    bool stream, void (*began)(void *user, struct execution *x), void *user)
{
	struct run *run = arena_alloc(http_arena(c->http), sizeof(*run));
	struct sandbox_info info;

	sandbox_info(sb, &info);
	if (!run || !exec_stream_encoding(c, &run->stream.encoding) ||
	    (stream && !call_stream_may_begin(c, info.id))) {
		began(user, NULL);
		if (!run)
			problem_reply(c, &(struct err){ ENOMEM, "execution" });
		return;
	}
	run->call = c;
	run->plan.req = *req;
	if (!run->plan.req.trace)
		run->plan.req.trace = call_trace(c);
	run->is_stream = stream || call_accepts(c, "text/event-stream");
	run->stream.is_new = true;
	run->began = began;
	run->user = user;
	exec_start(sb, &run->plan.req, started, run);
}

void api_exec_start(struct api_call *c)
{
	struct body_exec *body = c->body;
	struct jv_problem problem = { 0 };
	struct run *run = arena_alloc(http_arena(c->http), sizeof(*run));
	struct sandbox_info info;
	struct sandbox *sb;
	int r;

	if (body->context_id)
		return context_execute(c, body);
	if (!run)
		return problem_reply(c, &(struct err){ ENOMEM, "execution" });
	if (call_accepts(c, "text/event-stream"))
		body->stream = true;
	r = exec_plan(body, c->api->deps.config, http_arena(c->http), &run->plan, &problem);
	if (r == -EINVAL)
		return problem_field(c, problem.field, "%s: %s", problem.field, problem.text);
	if (r < 0)
		return problem_reply(c, &(struct err){ -r, "execution" });
	run->call = c;
	run->background = body->background;
	run->is_stream = body->stream;
	run->stream.cancel_on_gone = body->cancel_on_disconnect;
	run->stream.is_new = true;
	if (!exec_stream_encoding(c, &run->stream.encoding))
		return;
	sb = call_sandbox(c);
	if (!sb)
		return;
	sandbox_info(sb, &info);
	run->plan.req.trace = call_trace(c);
	if (!run->is_stream || call_stream_may_begin(c, info.id))
		exec_start(sb, &run->plan.req, started, run);
}

/* ---- looking ---- */

static void found(struct api_call *c, struct execution *x, const struct exec_info *info,
		  const struct output *output)
{
	enum encoding e = ENCODING_TEXT;

	(void)x;
	if (exec_stream_encoding(c, &e))
		reply_result(c, 200, info, output, e);
}

void api_exec_get(struct api_call *c)
{
	exec_look(c, found);
}

static void listed(void *user, const struct exec_info *infos, size_t n, bool more,
		   const struct err *err)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct api_call *c = user;
	struct jw w = jw_begin(&b);

	if (err)
		return problem_reply(c, err);
	jw_object_begin(&w);
	jw_key(&w, "items");
	jw_array_begin(&w);
	for (size_t i = 0; i < n; i++) {
		jw_object_begin(&w);
		execution_json_fields(&w, &infos[i]);
		jw_object_end(&w);
	}
	jw_array_end(&w);
	call_write_cursor(&w, more && n > 0, n ? infos[n - 1].started_ms : 0,
			  n ? infos[n - 1].id : "");
	jw_object_end(&w);
	call_reply(c, 200, &w);
}

static void list(struct api_call *c, const char *sandbox_id)
{
	struct cursor cursor = { 0 };
	uint64_t limit = LIST_DEFAULT;

	if (!call_query_u64(c, "limit", &limit) || !call_query_cursor(c, &cursor))
		return;
	exec_list(c->api->deps.sandboxes, sandbox_id, call_owner(c), cursor.before_ms,
		  cursor.before_ms ? cursor.before_id : NULL, limit, listed, c);
}

static void got_ended(void *user, const struct sandbox_info *info, const struct err *err)
{
	if (err)
		return problem_reply(user, err);
	list(user, info->id);
}

/* Of an ended sandbox too; one that is not there has no list, not an empty one. */
void api_exec_list(struct api_call *c)
{
	struct sandbox *sb = call_find_sandbox(c);
	struct sandbox_info info;

	if (!sb)
		return sandbox_get(c->api->deps.sandboxes, call_param(c, "id"), call_owner(c),
				   got_ended, c);
	sandbox_info(sb, &info);
	list(c, info.id);
}
