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
#include "api/package_plan.h"
#include "api/problem.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/list.h"
#include "base/str.h"
#include "config/config.h"
#include "egress/proxy.h"
#include "net/http.h"
#include "sandbox/events.h"
#include "sandbox/exec.h"
#include "sandbox/ports.h"
#include "sandbox/sandbox.h"
#include "telemetry/trace.h"
#include "json/jw.h"

#define TIMEOUT_MS 600000u

static const struct {
	const char *name;
	size_t offset; /* of the setting */
} managers[PACKAGE_MANAGERS] = {
	[PACKAGE_PIP] = { "pip", offsetof(struct config, registry_pip) },
	[PACKAGE_NPM] = { "npm", offsetof(struct config, registry_npm) },
	[PACKAGE_CARGO] = { "cargo", offsetof(struct config, registry_cargo) },
	[PACKAGE_GO] = { "go", offsetof(struct config, registry_go) },
};

/* From the request to the command's end. */
struct install {
	struct list node; /* of api.installs */
	struct api *api;
	struct api_call *call;  /* NULL once the command runs */
	struct egress *egress;  /* owned */
	struct port_use *way;   /* owned: the listener in the box */
	struct exec_wait *wait; /* owned */
	struct execution *x;    /* held */
	struct span *span;      /* all of it; NULL: in no trace */
	char sandbox_id[ID_LEN + 1], owner[SANDBOX_OWNER_MAX + 1];
};

static void install_free(struct install *i)
{
	if (i->way && i->egress)
		port_use_count(i->way, egress_bytes(i->egress));
	port_use_end(i->way);
	i->egress = egress_free(i->egress);
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

static const struct config_list *registries_of(const struct api *api, int manager)
{
	return (const struct config_list *)(const void *)((const char *)api->deps.config +
							  managers[manager].offset);
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
	jw_str_field(&w, "manager", managers[body->manager].name);
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
	char proxy[32];
	int r;

	(void)str_format(proxy, sizeof(proxy), "http://127.0.0.1:%u", port);
	r = package_plan((enum package_manager)body->manager, body->packages.items,
			 body->packages.len, registries_of(c->api, body->manager)->items[0],
			 arena_strndup(http_arena(c->http), proxy, strlen(proxy)),
			 http_arena(c->http), &plan);
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

static void connected(void *user, int fd)
{
	struct install *i = user;

	egress_accept(i->egress, fd);
}

static void failed(void *user, const struct err *err)
{
	struct install *i = user;
	struct api_call *c = i->call;

	i->way = NULL;
	install_free(i);
	problem_reply_box(c, err);
}

/* The box is gone; the command ends by that. */
static void lost(void *user)
{
	struct install *i = user;

	i->way = NULL;
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

/* A program in the box asked for something else. */
static void refused(void *user, const char *host, uint16_t port, const char *why)
{
	const struct install *i = user;
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);

	jw_object_begin(&w);
	jw_str_field(&w, "host", host);
	jw_uint_field(&w, "port", port);
	jw_str_field(&w, "why", why);
	jw_object_end(&w);
	if (jw_end(&w) == 0)
		events_emit(i->api->deps.events, &(struct event){ .kind = "security.egress_refused",
								  .owner = i->owner,
								  .subject = i->sandbox_id,
								  .text = buf_str(&b) });
}

static int open_way(struct install *i, struct sandbox *sb, int manager, struct err *err)
{
	static const struct port_use_ops ops = { connected, failed, lost, listening };
	const struct config_list *list = registries_of(i->api, manager);
	struct egress_options o = { .loop = i->api->deps.loop, .refused = refused, .user = i };
	int r = 0;

	o.policy.allow_private = i->api->deps.config->registry_allow_private;
	for (size_t k = 0; k < list->len && r == 0; k++)
		r = policy_allow_url(&o.policy, list->items[k], err);
	if (r == 0)
		r = egress_create(&o, &i->egress, err);
	return r < 0 ? r : port_listen(sb, &ops, i, &i->way, err);
}

static bool check(struct api_call *c, const struct body_packages *body)
{
	for (size_t k = 0; k < body->packages.len; k++) {
		if (package_is_good((enum package_manager)body->manager, body->packages.items[k]))
			continue;
		problem_field(c, "packages", "packages: '%.60s' is no name and version for %s",
			      body->packages.items[k], managers[body->manager].name);
		return false;
	}
	if (registries_of(c->api, body->manager)->len > 0)
		return true;
	problem_status(c, 409, "no registry for %s is configured: set registry_%s",
		       managers[body->manager].name, managers[body->manager].name);
	return false;
}

void api_packages_install(struct api_call *c)
{
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
	(void)str_copy(i->owner, sizeof(i->owner), info.owner);
	list_push_back(&c->api->installs, &i->node);
	i->span = span_begin(c->api->deps.tracer, call_trace(c), SPAN_INTERNAL, "package.install");
	span_str(i->span, "holt.sandbox.id", info.id);
	span_str(i->span, "holt.package.manager", managers[body->manager].name);
	span_int(i->span, "holt.package.count", (int64_t)body->packages.len);
	if (open_way(i, sb, body->manager, &err) == 0)
		return;
	i->way = NULL;
	install_free(i);
	problem_reply_box(c, &err);
}

/* ---- what was installed ---- */

#define LIST_MAX 200

static void listed(void *user, const struct exec_info *infos, size_t n, bool more,
		   const struct err *err)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct api_call *c = user;
	struct jw w = jw_begin(&b);

	(void)more;
	if (err)
		return problem_reply(c, err);
	jw_object_begin(&w);
	jw_key(&w, "items");
	jw_array_begin(&w);
	for (size_t k = 0; k < n; k++) {
		if (strncmp(infos[k].content, "{\"manager\":", 11) != 0)
			continue;
		jw_object_begin(&w);
		jw_str_field(&w, "executionId", infos[k].id);
		jw_raw_field(&w, "request", infos[k].content, strlen(infos[k].content));
		jw_bool_field(&w, "running", infos[k].state == EXECUTION_RUNNING);
		jw_bool_field(&w, "installed",
			      infos[k].state == EXECUTION_EXITED && infos[k].exit_code == 0);
		jw_iso_field(&w, "startedAt", infos[k].started_ms);
		jw_object_end(&w);
	}
	jw_array_end(&w);
	jw_object_end(&w);
	call_reply(c, 200, &w);
}

void api_packages_list(struct api_call *c)
{
	struct sandbox *sb = call_sandbox(c);
	struct sandbox_info info;

	if (!sb)
		return;
	sandbox_info(sb, &info);
	exec_list(c->api->deps.sandboxes, info.id, call_owner(c), 0, NULL, LIST_MAX, listed, c);
}
