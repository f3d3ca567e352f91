#include "api/build_way.h"

#include <errno.h>
#include <stdlib.h>

#include "api/call.h"
#include "api/network.h"
#include "api/package_way.h"
#include "api/way.h"
#include "base/arena.h"
#include "base/err.h"
#include "config/config.h"
#include "egress/policy.h"
#include "egress/rules.h"
#include "sandbox/build.h"
#include "sandbox/exec.h"
#include "sandbox/sandbox.h"

#define PLAN_MAX (256u << 10)

struct build_way {
	struct list node; /* in api.package_ways, or self-linked */
	struct api *api;
	struct way *way;            /* owned */
	struct egress_rules *rules; /* owned: of RUN; NULL */
	enum package_manager manager;
	struct jv_strings packages; /* of the step, which outlives it */
	const char *file;           /* instead of these; NULL */
	void (*ready)(void *arg, const struct exec_request *req, const struct err *err);
	void *arg;
};

static enum package_manager manager_of(int type)
{
	return type == BUILD_NPM ? PACKAGE_NPM : PACKAGE_PIP;
}

static int check(void *user, int type, const struct jv_strings *packages, struct err *err)
{
	return package_check(user, manager_of(type), packages->items, packages->len, err);
}

static void close_way(struct build_way *w)
{
	if (w) {
		list_remove(&w->node);
		way_close(w->way);
		(void)rules_free(w->rules);
	}
	free(w);
}

static void failed(void *user, const struct err *err)
{
	struct build_way *w = user;

	w->ready(w->arg, NULL, err);
}

static void opened(void *user, uint16_t port)
{
	struct build_way *w = user;
	struct arena *a = arena_create(PLAN_MAX);
	struct package_plan plan;
	struct exec_request req = { 0 };
	int r = -ENOMEM;

	if (a && w->file)
		r = package_way_plan_file(w->api, w->manager, w->file, port, a, &plan);
	else if (a)
		r = package_way_plan(w->api, w->manager, w->packages.items, w->packages.len, port,
				     a, &plan);

	if (r < 0) {
		(void)arena_free(a);
		w->ready(w->arg, NULL, &(struct err){ ENOMEM, "packages" });
		return;
	}
	req.argv = plan.argv;
	req.argc = plan.argc;
	req.env = plan.env;
	req.n_env = plan.n_env;
	req.cwd = plan.cwd;
	w->ready(w->arg, &req, NULL); /* w may be gone */
	(void)arena_free(a);
}

static void opened_run(void *user, uint16_t port)
{
	struct build_way *w = user;
	struct arena *a = arena_create(PLAN_MAX);
	struct sandbox_pair env[NETWORK_VARIABLES];
	ssize_t n = a ? network_add_env(env, 0, port, a) : -ENOMEM;
	struct exec_request req = { .env = env, .n_env = n < 0 ? 0 : (size_t)n };

	w->ready(w->arg, &req, n < 0 ? &(struct err){ ENOMEM, "way out" } : NULL);
	(void)arena_free(a);
}

/* Wherever the operator lets sandboxes go. */
static int open_run(struct build_way *w, struct sandbox *sb, struct err *err)
{
	static const struct way_ops ops = { .open = opened_run, .failed = failed };
	const struct config *config = w->api->deps.config;
	struct egress_policy policy = { .allow_private = config->internet_allow_private,
					.closed = w->api->deps.closed };
	int r;

	if (!config->internet)
		return err_set(err, EOPNOTSUPP, "there is no way out");
	r = network_rules(&(struct network_terms){ .is_open = true }, &w->rules, err);
	policy.rules = w->rules;
	return r < 0 ? r : way_open(w->api, sb, &policy, false, &ops, w, &w->way, err);
}

static int open_way(void *user, struct sandbox *sb, int type, const struct jv_strings *packages,
		    void (*ready)(void *arg, const struct exec_request *req, const struct err *err),
		    void *arg, struct build_way **ret, struct err *err)
{
	static const struct way_ops ops = { .open = opened, .failed = failed };
	struct build_way *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return err_sys(err, ENOMEM, "packages");
	*w = (struct build_way){ .api = user,
				 .manager = manager_of(type),
				 .packages = *packages,
				 .ready = ready,
				 .arg = arg };
	list_init(&w->node);
	if (type == BUILD_RUN)
		r = open_run(w, sb, err);
	else
		r = package_way_open(user, sb, w->manager, &ops, w, &w->way, err);
	if (r < 0)
		close_way(w);
	else
		*ret = w;
	return r;
}

static int open_packages(void *user, struct sandbox *sb, const struct package_want *want,
			 void (*ready)(void *arg, const struct exec_request *req,
				       const struct err *err),
			 void *arg, struct build_way **ret, struct err *err)
{
	static const struct way_ops ops = { .open = opened, .failed = failed };
	struct api *api = user;
	enum package_manager m = (enum package_manager)want->manager;
	struct build_way *w;
	int r = package_check(api, m, want->packages.items, want->packages.len, err);

	if (r < 0)
		return r;
	w = calloc(1, sizeof(*w));
	if (!w)
		return err_sys(err, ENOMEM, "packages");
	*w = (struct build_way){ .api = api,
				 .manager = m,
				 .packages = want->packages,
				 .file = want->file,
				 .ready = ready,
				 .arg = arg };
	list_push_back(&api->package_ways, &w->node);
	r = package_way_open(api, sb, m, &ops, w, &w->way, err);
	if (r < 0)
		close_way(w);
	else
		*ret = w;
	return r;
}

void build_way_offer(struct api *api)
{
	list_init(&api->package_ways);
	api->build_network = (struct build_network){ .open = open_way,
						     .open_packages = open_packages,
						     .close = close_way,
						     .check = check,
						     .user = api };
	builds_set_network(api->deps.sandboxes, &api->build_network);
}

void build_way_forget(struct api *api)
{
	if (!api->build_network.open)
		return;
	builds_set_network(api->deps.sandboxes, NULL);
	/* Whoever opened one lets go of it later. */
	LIST_FOREACH (&api->package_ways, w, struct build_way, node) {
		way_close(TAKE(w->way));
		list_remove(&w->node);
		list_init(&w->node);
	}
}
