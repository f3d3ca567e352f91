#include "mcpc/servers.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "mcpc/auth_row.h"
#include "mcpc/servers_impl.h"

#define ARENA_MAX (8u << 20)
#define WHY_SIZE sizeof(((struct err *)0)->text)

static int add_server(struct mcpc_servers *all, struct str name, struct jv row, struct err *err)
{
	struct server *s = &all->servers[all->n_servers];
	int r;

	s->all = all;
	s->since_ms = clock_wall_ms();
	list_init(&s->uses);
	list_init(&s->asks);
	r = server_row_read(name, row, &all->deps, all->arena, &s->row, &s->err);
	all->n_servers++;
	if (r == -ENOMEM)
		return err_sys(err, ENOMEM, "servers");
	if (r == 0 && servers_by_name(all, s->row.name) != s)
		r = err_set(&s->err, EINVAL, "another server has that name");
	if (r == 0 && s->row.url && !all->deps.courier)
		r = err_set(&s->err, EINVAL, "url: there are no servers over HTTP here");
	s->state = s->row.is_disabled ? MCPC_SERVER_DISABLED
		   : r < 0            ? MCPC_SERVER_FAILED
				      : MCPC_SERVER_WAITING;
	return 0;
}

static int read_rows(struct mcpc_servers *all, const char *json, size_t n, struct err *err)
{
	struct jv rows;
	int r = jv_parse(json, n, MCPC_SERVERS_JSON_MAX, &all->doc, err);

	if (r < 0)
		return r;
	rows = jv_get(jv_root(all->doc), "mcpServers");
	if (jv_kind(rows) != JV_OBJECT)
		return err_set(err, EINVAL, "want {\"mcpServers\": {\"NAME\": {...}}}");
	if (jv_len(rows) > MCPC_SERVERS_MAX)
		return err_set(err, E2BIG, "more than %u servers", MCPC_SERVERS_MAX);
	all->servers = calloc(jv_len(rows) + 1, sizeof(*all->servers));
	if (!all->servers)
		return err_sys(err, ENOMEM, "servers");
	JV_FOREACH (rows, it) {
		r = add_server(all, it.key, it.value, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static void tell_stopped(void *user)
{
	struct mcpc_servers *all = user;

	void (*stopped)(void *) = all->stopped;

	all->stopped = NULL;
	if (stopped)
		stopped(all->stopped_user);
}

int mcpc_servers_create(const struct mcpc_servers_deps *deps, const char *json, size_t n,
			struct mcpc_servers **ret, struct err *err)
{
	_cleanup_(mcpc_servers_free_p) struct mcpc_servers *all = calloc(1, sizeof(*all));
	int r;

	if (!all)
		return err_sys(err, ENOMEM, "servers");
	all->deps = *deps;
	list_init(&all->watches);
	list_init(&all->approvals);
	stdio_yard_init(&all->yard, deps->loop, deps->sandboxes);
	all->yard.life_ms = deps->life_ms;
	all->yard.spawner = deps->spawner;
	loop_task_init(&all->stopped_soon, tell_stopped, all);
	all->arena = arena_create(ARENA_MAX);
	r = all->arena ? 0 : err_sys(err, ENOMEM, "servers");
	if (r == 0 && json)
		r = read_rows(all, json, n, err);
	if (r == 0)
		*ret = TAKE(all);
	return r;
}

void mcpc_servers_files(const char *json, size_t n, void (*fn)(void *user, const char *path),
			void *user)
{
	struct jv_doc *doc = NULL;

	if (jv_parse(json, n, MCPC_SERVERS_JSON_MAX, &doc, NULL) < 0)
		return;
	JV_FOREACH (jv_get(jv_root(doc), "mcpServers"), it) {
		struct jv auth = jv_get(it.value, "auth");

		for (size_t i = 0; auth_row_files[i]; i++)
			if (jv_text(jv_get(auth, auth_row_files[i])))
				fn(user, jv_text(jv_get(auth, auth_row_files[i])));
	}
	(void)jv_free(doc);
}

void mcpc_servers_set_way(struct mcpc_servers *all, const struct stdio_way *way)
{
	all->yard.way = *way;
}

static void start_one(struct server *s)
{
	if (jv_kind(s->row.auth) != JV_ABSENT &&
	    mcpc_auth_from_row(&s->row, &s->all->deps, &s->auth, &s->err) < 0) {
		s->state = MCPC_SERVER_FAILED;
		log_debug("mcpc", "%s: %s", s->row.name, s->err.text);
		return;
	}
	server_connect(s);
}

void mcpc_servers_start(struct mcpc_servers *all)
{
	if (all->is_started || all->is_stopping)
		return;
	all->is_started = true;
	for (size_t i = 0; i < all->n_servers; i++)
		if (all->servers[i].state == MCPC_SERVER_WAITING)
			start_one(&all->servers[i]);
}

static void yard_is_empty(void *user)
{
	struct mcpc_servers *all = user;

	loop_task_post(all->deps.loop, &all->stopped_soon);
}

void mcpc_servers_stop(struct mcpc_servers *all, void (*done)(void *user), void *user)
{
	static const struct err ending = { ECANCELED, "the daemon is ending" };

	all->is_stopping = true;
	all->stopped = done;
	all->stopped_user = user;
	for (size_t i = 0; i < all->n_servers; i++) {
		server_fail_uses(&all->servers[i], &ending);
		server_disconnect(&all->servers[i]);
	}
	all->yard.empty = yard_is_empty;
	all->yard.user = all;
	if (list_is_empty(&all->yard.all) ||
	    loop_timer_create(all->deps.loop, yard_is_empty, all, &all->patience) < 0)
		yard_is_empty(all);
	else
		loop_timer_start(all->patience, SERVERS_STOP_MS, 0);
}

struct mcpc_servers *mcpc_servers_free(struct mcpc_servers *all)
{
	if (!all)
		return NULL;
	all->yard.empty = NULL;
	loop_task_cancel(&all->stopped_soon);
	all->patience = loop_timer_free(all->patience);
	for (size_t i = 0; i < all->n_servers; i++) {
		struct server *s = &all->servers[i];

		server_drop_uses(s);
		server_disconnect(s);
		server_drop_tools(s);
		s->timer = loop_timer_free(s->timer);
	}
	stdio_yard_done(&all->yard);
	free(all->servers);
	all->doc = jv_free(all->doc);
	all->arena = arena_free(all->arena);
	free(all);
	return NULL;
}

/* ---- looking ---- */

struct server *servers_by_name(const struct mcpc_servers *all, const char *name)
{
	for (size_t i = 0; i < all->n_servers; i++)
		if (strcmp(all->servers[i].row.name, name) == 0)
			return &all->servers[i];
	return NULL;
}

bool mcpc_servers_any(const struct mcpc_servers *all)
{
	for (size_t i = 0; all && i < all->n_servers; i++)
		if (all->servers[i].state > MCPC_SERVER_FAILED)
			return true;
	return false;
}

static const char *why_of(const struct server *s, char scratch[WHY_SIZE])
{
	if (s->err.code)
		return s->err.text;
	if (!s->row.unknown[0])
		return "";
	(void)snprintf(scratch, WHY_SIZE, "%s: is passed over", s->row.unknown);
	return scratch;
}

static void fill(const struct server *s, char scratch[WHY_SIZE], struct mcpc_server_info *ret)
{
	uint64_t now = loop_now_ms(s->all->deps.loop);

	*ret = (struct mcpc_server_info){
		.name = s->row.name,
		.transport = s->row.url ? "http" : "stdio",
		.place = s->row.url          ? "remote"
			 : s->row.is_on_host ? "host"
					     : "sandbox",
		.state = s->state,
		.error = why_of(s, scratch),
		.program = s->client ? mcpc_server_name(s->client) : "",
		.is_modern = s->client && mcpc_is_modern(s->client),
		.n_tools = s->n_tools,
		.n_resources = s->counts[SERVER_RESOURCES],
		.n_prompts = s->counts[SERVER_PROMPTS],
		.n_left_off = s->n_left_off,
		.restarts = s->restarts,
		.retry_ms = s->state == MCPC_SERVER_WAITING && s->retry_at > now ? s->retry_at - now
										 : 0,
		.since_ms = s->since_ms,
		.n_calls = s->n_calls,
		.n_failed = s->n_failed,
		.n_under_way = s->n_uses,
	};
}

void mcpc_servers_each(const struct mcpc_servers *all,
		       void (*fn)(void *user, const struct mcpc_server_info *info), void *user)
{
	for (size_t i = 0; i < all->n_servers; i++) {
		struct mcpc_server_info info;
		char scratch[WHY_SIZE];

		fill(&all->servers[i], scratch, &info);
		fn(user, &info);
	}
}

void mcpc_servers_watch(struct mcpc_servers *all, struct mcpc_watch *w)
{
	list_push_back(&all->watches, &w->node);
}

void mcpc_servers_unwatch(struct mcpc_watch *w)
{
	if (w->node.next)
		list_remove(&w->node);
}

void servers_changed(struct server *s)
{
	LIST_FOREACH (&s->all->watches, w, struct mcpc_watch, node)
		w->changed(w->user, s->row.name);
}
