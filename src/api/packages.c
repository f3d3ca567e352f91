/* Packages: a manager's command in the box, with a way out to its registry while it runs and for
 * nothing else. */
#include "api/packages.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/bodies.h"
#include "api/call.h"
#include "api/executions.h"
#include "api/handlers.h"
#include "api/package_way.h"
#include "api/problem.h"
#include "api/way.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/list.h"
#include "base/str.h"
#include "config/config.h"
#include "net/http.h"
#include "sandbox/exec.h"
#include "sandbox/sandbox.h"
#include "telemetry/trace.h"
#include "json/jw.h"

#define TIMEOUT_MS 600000u

/* From the request to the command's end. */
struct install {
	struct list node; /* of api.installs */
	struct api *api;
	struct api_call *call;  /* NULL once the command runs */
	struct way *way;        /* owned */
	struct exec_wait *wait; /* owned */
	struct execution *x;    /* held */
	struct span *span;      /* all of it; NULL: in no trace */
	char sandbox_id[ID_LEN + 1];
};

static void install_free(struct install *i)
{
	way_close(i->way);
	if (i->wait)
		exec_unwait(i->wait);
	if (i->x)
		exec_unref(i->x);
	list_remove(&i->node);
	span_end(i->span);
	free(i);
}

void packages_forget(struct api *api)
{
	LIST_FOREACH (&api->installs, i, struct install, node)
		install_free(i);
}

/* ---- the command ---- */

static void ended(void *user, struct execution *x)
{
	struct install *i = user;

	(void)x;
	i->wait = NULL;
	install_free(i);
}

static void began(void *user, struct execution *x)
{
	struct install *i = user;

	i->call = NULL;
	if (x) {
		i->x = exec_ref(x);
		i->wait = exec_wait(x, ended, i);
	}
	if (!i->wait) /* without it the way out would stay open */
		install_free(i);
}

/* What is recorded of it. */
static int write_content(struct buf *b, const struct body_packages *body)
{
	struct jw w = jw_begin(b);

	jw_object_begin(&w);
	jw_str_field(&w, "manager", package_names[body->manager]);
	jw_key(&w, "packages");
	jw_array_begin(&w);
	for (size_t k = 0; k < body->packages.len; k++)
		jw_string(&w, body->packages.items[k]);
	jw_array_end(&w);
	jw_object_end(&w);
	return jw_end(&w);
}

static int run(struct install *i, struct sandbox *sb, uint16_t port)
{
	struct api_call *c = i->call;
	const struct body_packages *body = c->body;
	const struct config *config = c->api->deps.config;
	_cleanup_(buf_done) struct buf content = { 0 };
	struct package_plan plan;
	struct exec_request req = { .kind = EXECUTION_COMMAND, .user = "" };
	uint64_t most = config->exec_timeout_max_ms;
	int r = package_way_plan(c->api, (enum package_manager)body->manager, body->packages.items,
				 body->packages.len, port, http_arena(c->http), &plan);

	if (r == 0)
		r = write_content(&content, body);
	if (r < 0)
		return r;
	req.trace = span_context(i->span);
	req.argv = plan.argv;
	req.argc = plan.argc;
	req.env = plan.env;
	req.n_env = plan.n_env;
	req.cwd = plan.cwd;
	req.timeout_ms = body->timeout_ms    ? body->timeout_ms
			 : most < TIMEOUT_MS ? most
					     : TIMEOUT_MS;
	req.content = arena_strndup(http_arena(c->http), buf_str(&content), content.len);
	executions_run(c, sb, &req, body->stream, began, i);
	return 0;
}

/* ---- the way out ---- */

static void failed(void *user, const struct err *err)
{
	struct install *i = user;
	struct api_call *c = i->call;

	install_free(i);
	problem_reply_box(c, err);
}

static void listening(void *user, uint16_t port)
{
	struct install *i = user;
	struct api_call *c = i->call;
	struct sandbox *sb = sandboxes_find(i->api->deps.sandboxes, i->sandbox_id, NULL);
	int r = sb ? run(i, sb, port) : -EPIPE;

	if (r == 0)
		return;
	install_free(i);
	problem_reply(c, &(struct err){ -r, "packages" });
}

static bool check(struct api_call *c, const struct body_packages *body)
{
	struct err err = { 0 };
	int r = package_check(c->api, (enum package_manager)body->manager, body->packages.items,
			      body->packages.len, &err);

	if (r == -EINVAL)
		problem_field(c, "packages", "%s", err.text);
	else if (r < 0)
		problem_status(c, 409, "%s", err.text);
	return r == 0;
}

void api_packages_install(struct api_call *c)
{
	static const struct way_ops ops = { .open = listening, .failed = failed };
	const struct body_packages *body = c->body;
	struct sandbox_info info;
	struct err err = { 0 };
	struct install *i;
	struct sandbox *sb;

	if (!check(c, body))
		return;
	sb = call_sandbox(c);
	if (!sb)
		return;
	i = calloc(1, sizeof(*i));
	if (!i)
		return problem_reply(c, &(struct err){ ENOMEM, "packages" });
	sandbox_info(sb, &info);
	i->api = c->api;
	i->call = c;
	(void)str_copy(i->sandbox_id, sizeof(i->sandbox_id), info.id);
	list_push_back(&c->api->installs, &i->node);
	i->span = span_begin(c->api->deps.tracer, call_trace(c), SPAN_INTERNAL, "package.install");
	span_str(i->span, "holt.sandbox.id", info.id);
	span_str(i->span, "holt.package.manager", package_names[body->manager]);
	span_int(i->span, "holt.package.count", (int64_t)body->packages.len);
	if (package_way_open(c->api, sb, (enum package_manager)body->manager, &ops, i, &i->way,
			     &err) == 0)
		return;
	install_free(i);
	problem_reply_box(c, &err);
}

/* ---- what was installed ---- */

#define LIST_DEFAULT 50
#define LOOK_AT 1000u /* executions at a time: installations are few among many */

struct listing {
	struct api_call *call;
	char sandbox_id[ID_LEN + 1];
	struct buf b; /* owned */
	struct jw w;
	uint64_t limit, n;
	struct cursor last; /* that was written */
};

static void write_install(struct listing *l, const struct exec_info *x)
{
	jw_object_begin(&l->w);
	jw_str_field(&l->w, "executionId", x->id);
	jw_raw_field(&l->w, "request", x->content, strlen(x->content));
	jw_bool_field(&l->w, "running", x->state == EXECUTION_RUNNING);
	jw_bool_field(&l->w, "installed", x->state == EXECUTION_EXITED && x->exit_code == 0);
	jw_iso_field(&l->w, "startedAt", x->started_ms);
	jw_object_end(&l->w);
	l->last.before_ms = x->started_ms;
	(void)str_copy(l->last.before_id, sizeof(l->last.before_id), x->id);
	l->n++;
}

static void reply_list(struct listing *l, bool more)
{
	_cleanup_(buf_done) struct buf buf;
	struct jw w;

	jw_array_end(&l->w);
	call_write_cursor(&l->w, more, l->last.before_ms, l->last.before_id);
	jw_object_end(&l->w);
	buf = l->b; /* the listing itself goes with its request */
	w = l->w;
	w.buf = &buf;
	call_reply(l->call, 200, &w);
}

static void look(struct listing *l, int64_t before_ms, const char *before_id);

static void listed(void *user, const struct exec_info *infos, size_t n, bool more,
		   const struct err *err)
{
	struct listing *l = user;

	for (size_t i = 0; i < n; i++) {
		if (strncmp(infos[i].content, "{\"manager\":", 11) != 0)
			continue;
		if (l->n == l->limit)
			return reply_list(l, true);
		write_install(l, &infos[i]);
	}
	if (!err && more && n > 0)
		return look(l, infos[n - 1].started_ms, infos[n - 1].id);
	if (!err)
		return reply_list(l, false);
	buf_done(&l->b);
	problem_reply(l->call, err);
}

static void look(struct listing *l, int64_t before_ms, const char *before_id)
{
	struct api_call *c = l->call;

	exec_list(c->api->deps.sandboxes, l->sandbox_id, call_owner(c), before_ms, before_id,
		  LOOK_AT, listed, l);
}

void api_packages_list(struct api_call *c)
{
	struct sandbox *sb = call_sandbox(c);
	struct cursor cursor = { 0 };
	uint64_t limit = LIST_DEFAULT;
	struct sandbox_info info;
	struct listing *l;

	if (!sb || !call_query_u64(c, "limit", &limit) || !call_query_cursor(c, &cursor))
		return;
	l = arena_alloc(http_arena(c->http), sizeof(*l));
	if (!l)
		return problem_reply(c, &(struct err){ ENOMEM, "packages" });
	sandbox_info(sb, &info);
	l->call = c;
	l->limit = limit;
	(void)str_copy(l->sandbox_id, sizeof(l->sandbox_id), info.id);
	l->w = jw_begin(&l->b);
	jw_object_begin(&l->w);
	jw_key(&l->w, "items");
	jw_array_begin(&l->w);
	look(l, cursor.before_ms, cursor.before_ms ? cursor.before_id : NULL);
}
