/* Contexts of the code interpreter: made, listed, removed, begun anew. */
#include "e2b/interpreter.h"

#include <errno.h>
#include <string.h>

#include "api/call.h"
#include "api/problem.h"
#include "api/routes.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"
#include "e2b/handlers.h"
#include "e2b/target.h"
#include "net/http.h"
#include "json/jv_decode.h"
#include "json/jw.h"

#define CWD_DEFAULT "/home/user"
/* Of the context that a language has without being asked. */
#define DEFAULT_PREFIX "default-"
#define DEFAULT_NAME DEFAULT_PREFIX "%s"

struct body_context {
	const char *language, *cwd;
};

static const struct jv_field context_fields[] = {
	JV_FIELD("language", STRING, struct body_context, language, .flags = JV_NULLABLE,
		 .max = 64),
	JV_FIELD("cwd", STRING, struct body_context, cwd, .flags = JV_NULLABLE, .max = 4095),
};
const struct route_body e2b_body_context = {
	.name = "E2bContextRequest",
	.fields = context_fields,
	.count = sizeof(context_fields) / sizeof(context_fields[0]),
	.size = sizeof(struct body_context),
	.is_optional = true,
};

bool code_language(struct api_call *c, const char *name, enum context_language *ret)
{
	*ret = CONTEXT_PYTHON;
	if (!name || !name[0] || context_language_from(name, ret) == 0)
		return true;
	problem_status(c, 400,
		       "'%.32s' is no language of this interpreter: want python, javascript, "
		       "typescript, bash, r or java",
		       name);
	return false;
}

void code_problem(struct api_call *c, const struct err *err)
{
	problem_reply(c, err);
}

/* ---- a context, and a place for it ---- */

struct making { /* in the request's arena: it waits, also for a client that has left */
	struct api_call *call;
	struct context_request req;
	char name[CONTEXT_NAME_MAX + 1];
	bool is_at_home; /* nobody said where: the home that this template may not have */
	void (*made)(struct making *m, struct context *ctx, const struct err *err);
	code_ready_fn ready;
	void *user;
};

static void make(struct making *m);

static void on_made(void *user, struct context *ctx, const struct err *err)
{
	struct making *m = user;

	if (err && err->code == EINVAL && m->is_at_home) {
		m->is_at_home = false;
		m->req.cwd = "";
		return make(m);
	}
	m->made(m, ctx, err);
}

static void make(struct making *m)
{
	struct sandbox *sb = e2b_sandbox(m->call);

	if (sb)
		context_create(sb, &m->req, on_made, m);
}

static struct making *making_create(struct api_call *c, enum context_language l, const char *cwd)
{
	struct making *m = arena_alloc(http_arena(c->http), sizeof(*m));

	if (!m) {
		problem_reply(c, &(struct err){ ENOMEM, "context" });
		return NULL;
	}
	m->call = c;
	m->req.language = l;
	m->req.name = m->name;
	m->is_at_home = !cwd || !cwd[0];
	m->req.cwd = m->is_at_home ? CWD_DEFAULT : cwd;
	return m;
}

/* ---- the one that code runs in ---- */

static void tell_ready(struct making *m, struct context *ctx, const struct err *err)
{
	if (err)
		code_problem(m->call, err);
	m->ready(m->call, err ? NULL : ctx, m->user);
}

static void on_restarted(void *user, struct context *ctx, const struct err *err)
{
	tell_ready(user, ctx, err);
}

static void set_default_name(struct making *m)
{
	(void)str_format(m->name, sizeof(m->name), DEFAULT_NAME,
			 context_language_name(m->req.language));
}

void code_context(struct api_call *c, struct sandbox *sb, const struct code_wish *wish,
		  code_ready_fn ready, void *user)
{
	struct making *m = making_create(c, wish->language, NULL);
	struct context_info info;
	struct context *ctx;

	if (!m)
		return ready(c, NULL, user);
	m->made = tell_ready;
	m->ready = ready;
	m->user = user;
	set_default_name(m);
	ctx = context_find(sb, wish->context_id ? wish->context_id : m->name);
	if (!ctx && wish->context_id) {
		problem_status(c, 404, "Context %.64s not found", wish->context_id);
		return ready(c, NULL, user);
	}
	if (!ctx)
		return context_create(sb, &m->req, on_made, m);
	context_info(ctx, &info);
	if (info.state == CONTEXT_FAILED)
		context_restart(ctx, on_restarted, m);
	else
		ready(c, ctx, user);
}

/* ---- calls ---- */

static void write_context(struct jw *w, const struct context_info *info)
{
	jw_object_begin(w);
	jw_str_field(w, "id", info->id);
	jw_str_field(w, "language", context_language_name(info->language));
	jw_str_field(w, "cwd", info->cwd[0] ? info->cwd : "/workspace");
	jw_object_end(w);
}

static void reply_made(struct making *m, struct context *ctx, const struct err *err)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);
	struct context_info info;

	if (err)
		return code_problem(m->call, err);
	context_info(ctx, &info);
	write_context(&w, &info);
	call_reply(m->call, 200, &w);
}

void e2b_context_create(struct api_call *c)
{
	const struct body_context *body = c->body;
	enum context_language language;
	struct making *m;

	if (!code_language(c, body->language, &language))
		return;
	m = making_create(c, language, body->cwd);
	if (!m)
		return;
	m->made = reply_made;
	make(m);
}

static bool is_default(const struct context_info *info)
{
	return strncmp(info->name, DEFAULT_PREFIX, strlen(DEFAULT_PREFIX)) == 0;
}

static void write_those(struct jw *w, const struct context_info *infos, size_t n, bool are_defaults)
{
	for (size_t i = 0; i < n; i++)
		if (is_default(&infos[i]) == are_defaults)
			write_context(w, &infos[i]);
}

/* The default ones first, as if they had been there before all others. */
static void reply_list(struct api_call *c, struct sandbox *sb)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct context_info infos[CONTEXTS_MAX];
	size_t n = context_list(sb, infos);
	struct jw w = jw_begin(&b);

	jw_array_begin(&w);
	write_those(&w, infos, n, true);
	write_those(&w, infos, n, false);
	jw_array_end(&w);
	call_reply(c, 200, &w);
}

/* Clients expect these two to be there from the beginning. A template without Node has one. */
static void list_defaults(struct making *m, struct context *ctx, const struct err *err)
{
	static const enum context_language expected[] = { CONTEXT_PYTHON, CONTEXT_JAVASCRIPT };
	struct sandbox *sb = e2b_sandbox(m->call);
	size_t next = ctx || err ? (m->req.language == CONTEXT_PYTHON ? 1 : 2) : 0;

	if (!sb)
		return;
	for (; next < sizeof(expected) / sizeof(expected[0]); next++) {
		m->req.language = expected[next];
		m->req.cwd = CWD_DEFAULT;
		m->is_at_home = true;
		set_default_name(m);
		if (!context_find(sb, m->name))
			return context_create(sb, &m->req, on_made, m);
	}
	reply_list(m->call, sb);
}

void e2b_context_list(struct api_call *c)
{
	struct making *m = making_create(c, CONTEXT_PYTHON, NULL);

	if (!m)
		return;
	m->made = list_defaults;
	list_defaults(m, NULL, NULL);
}

/* NULL after 404 or 502. */
static struct context *find(struct api_call *c)
{
	struct sandbox *sb = e2b_sandbox(c);
	struct context *ctx = sb ? context_find(sb, call_param(c, "cid")) : NULL;

	if (sb && !ctx)
		problem_status(c, 404, "Context %.64s not found", call_param(c, "cid"));
	return ctx;
}

static void reply_null(struct api_call *c)
{
	http_reply(c->http, 200, "application/json", "null", 4);
}

void e2b_context_delete(struct api_call *c)
{
	struct context *ctx = find(c);

	if (!ctx)
		return;
	context_delete(ctx);
	reply_null(c);
}

static void restarted(void *user, struct context *ctx, const struct err *err)
{
	(void)ctx;
	if (err)
		return code_problem(user, err);
	reply_null(user);
}

void e2b_context_restart(struct api_call *c)
{
	struct context *ctx = find(c);

	if (ctx)
		context_restart(ctx, restarted, c);
}

void e2b_code_health(struct api_call *c)
{
	if (e2b_claimed_runs(c))
		http_reply(c->http, 200, "application/json", "\"OK\"", 4);
}
