/* Stateful interpreters, and the sessions of a shell, which are contexts of bash. */
#include "api/contexts.h"

#include <errno.h>
#include <string.h>

#include "api/bodies.h"
#include "api/call.h"
#include "api/handlers.h"
#include "api/problem.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "net/http.h"
#include "sandbox/context.h"
#include "sandbox/pairs.h"
#include "json/jw.h"

void context_json(struct jw *w, const struct context_info *info)
{
	jw_object_begin(w);
	jw_str_field(w, "contextId", info->id);
	jw_str_field(w, "sandboxId", info->sandbox_id);
	jw_str_field(w, "executionId", info->execution_id[0] ? info->execution_id : NULL);
	jw_str_field(w, "name", info->name[0] ? info->name : NULL);
	jw_str_field(w, "language", context_language_name(info->language));
	jw_str_field(w, "cwd", info->cwd[0] ? info->cwd : "/workspace");
	jw_str_field(w, "state", context_state_name(info->state));
	jw_str_field(w, "reason", info->reason[0] ? info->reason : NULL);
	jw_iso_field(w, "createdAt", info->created_ms);
	jw_uint_field(w, "runs", info->runs);
	jw_uint_field(w, "queued", info->queued);
	jw_object_end(w);
}

void context_problem(struct api_call *c, const struct err *err)
{
	if (err->code == EAGAIN)
		problem_reply_box(c, err);
	else
		problem_reply(c, err);
}

static void reply(struct api_call *c, int status, struct context *ctx)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);
	struct context_info info;

	context_info(ctx, &info);
	context_json(&w, &info);
	call_reply(c, status, &w);
}

static void created(void *user, struct context *ctx, const struct err *err)
{
	if (err)
		context_problem(user, err);
	else
		reply(user, 201, ctx);
}

static void restarted(void *user, struct context *ctx, const struct err *err)
{
	if (err)
		context_problem(user, err);
	else
		reply(user, 200, ctx);
}

static void create(struct api_call *c, enum context_language language)
{
	const struct body_context *body = c->body;
	struct sandbox *sb;
	struct context_request req = {
		.language = language,
		.name = body->name ? body->name : "",
		.cwd = body->cwd ? body->cwd : "",
		.env = pairs_given(http_arena(c->http), &body->env),
		.n_env = body->env.len,
	};

	sb = call_sandbox(c);
	if (!sb)
		return;
	if (req.n_env > 0 && !req.env)
		return problem_reply(c, &(struct err){ ENOMEM, "context" });
	context_create(sb, &req, created, c);
}

void api_context_create(struct api_call *c)
{
	const struct body_context *body = c->body;
	enum context_language language = CONTEXT_PYTHON;

	if (body->language && context_language_from(body->language, &language) < 0)
		return problem_field(c, "language",
				     "want python, javascript, typescript, bash, r or java");
	create(c, language);
}

void api_session_create(struct api_call *c)
{
	create(c, CONTEXT_BASH);
}

static void list(struct api_call *c, bool is_sessions)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct context_info infos[CONTEXTS_MAX];
	struct sandbox *sb = call_sandbox(c);
	struct jw w = jw_begin(&b);
	size_t n;

	if (!sb)
		return;
	n = context_list(sb, infos);
	jw_object_begin(&w);
	jw_key(&w, "items");
	jw_array_begin(&w);
	for (size_t i = 0; i < n; i++)
		if (!is_sessions || infos[i].language == CONTEXT_BASH)
			context_json(&w, &infos[i]);
	jw_array_end(&w);
	jw_object_end(&w);
	call_reply(c, 200, &w);
}

void api_context_list(struct api_call *c)
{
	list(c, false);
}

void api_session_list(struct api_call *c)
{
	list(c, true);
}

/* NULL after 404. */
static struct context *find(struct api_call *c)
{
	struct sandbox *sb = call_sandbox(c);
	struct context *ctx = sb ? context_find(sb, call_param(c, "cid")) : NULL;

	if (sb && !ctx)
		problem_status(c, 404, "there is no context '%.64s'", call_param(c, "cid"));
	return ctx;
}

void api_context_get(struct api_call *c)
{
	struct context *ctx = find(c);

	if (ctx)
		reply(c, 200, ctx);
}

void api_context_delete(struct api_call *c)
{
	struct context *ctx = find(c);

	if (!ctx)
		return;
	context_delete(ctx);
	call_reply_empty(c);
}

void api_context_interrupt(struct api_call *c)
{
	struct context *ctx = find(c);
	struct err err = { 0 };
	int r;

	if (!ctx)
		return;
	r = context_interrupt(ctx);
	if (r == 0 || r == -ESRCH)
		return call_reply_empty(c);
	(void)err_sys(&err, r, "interrupt");
	problem_reply(c, &err);
}

void api_context_restart(struct api_call *c)
{
	struct context *ctx = find(c);

	if (ctx)
		context_restart(ctx, restarted, c);
}
