/* The dispatcher: route, authentication, scope, body, handler, in this order and for every request.
 */
#include "api/api.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "api/audit.h"
#include "api/body.h"
#include "api/build_way.h"
#include "api/call.h"
#include "api/call_auth.h"
#include "api/feed.h"
#include "api/health.h"
#include "api/keys.h"
#include "api/network.h"
#include "api/open_calls.h"
#include "api/packages.h"
#include "api/problem.h"
#include "api/proxy.h"
#include "api/queries.h"
#include "api/routes.h"
#include "api/server_way.h"
#include "api/stream.h"
#include "api/users.h"
#include "auth/buckets.h"
#include "auth/rate_limit.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "config/config.h"
#include "loop/loop.h"
#include "net/http.h"
#include "telemetry/access_log.h"
#include "telemetry/metrics.h"
#include "json/jv_decode.h"

#define SLOT_CALL 0 /* of http_user(): ours */

#define STREAMS_EVERY_MS 1000u /* how long a stream may outlive its key or token */

/* Which were used is written down; those that have expired go, and before what they had opened. */
static void look_at_keys(void *user)
{
	keys_note_used(user);
	call_streams_check(user);
	keys_expire(user);
}

static void look_at_streams(void *user)
{
	call_streams_check(user);
}

static int open_doors(struct api *api, struct err *err)
{
	const struct api_door *const *doors = api->deps.doors;
	int r = 0;

	for (size_t i = 0; r == 0 && doors && doors[i]; i++) {
		assert(i < API_DOORS_MAX);
		if (doors[i]->table)
			r = router_create(&doors[i]->table->rows[0].route, doors[i]->table->count,
					  sizeof(struct api_route), &api->door_routers[i], err);
	}
	return r;
}

int api_create(const struct api_deps *deps, struct api **ret, struct err *err)
{
	_cleanup_(api_free_p) struct api *api = calloc(1, sizeof(*api));
	const struct api_route *rows;
	size_t n;
	int r;

	if (!api)
		return err_sys(err, ENOMEM, "api");
	api->deps = *deps;
	list_init(&api->streams);
	list_init(&api->writes);
	list_init(&api->user_writes);
	list_init(&api->feeds);
	list_init(&api->orphans);
	api->failures =
		rate_limit_create(RATE_LIMIT_PEERS, RATE_LIMIT_FAILURES, RATE_LIMIT_WINDOW_MS);
	api->buckets = buckets_create(BUCKETS_MAX);
	api->open_calls = open_calls_create(deps->conns_max, deps->config->max_connections_user);
	list_init(&api->installs);
	list_init(&api->networks);
	list_init(&api->leadings);
	api->proxies = proxies_create(api);
	api->ready = ready_create(api);
	if (!api->failures || !api->buckets || !api->open_calls || !api->proxies || !api->ready)
		return err_sys(err, ENOMEM, "api");
	rows = routes_table(&n);
	r = router_create(&rows[0].route, n, sizeof(rows[0]), &api->router, err);
	if (r == 0)
		r = open_doors(api, err);
	if (r < 0)
		return r;
	r = loop_timer_create(deps->loop, look_at_keys, api, &api->used);
	if (r == 0)
		r = loop_timer_create(deps->loop, look_at_streams, api, &api->overstay);
	if (r < 0)
		return err_sys(err, r, "api");
	loop_timer_start(api->used, KEYS_USED_EVERY_MS, KEYS_USED_EVERY_MS);
	build_way_offer(api);
	loop_timer_start(api->overstay, STREAMS_EVERY_MS, STREAMS_EVERY_MS);
	*ret = TAKE(api);
	return 0;
}

struct api *api_free(struct api *api)
{
	if (!api)
		return NULL;
	api->used = loop_timer_free(api->used);
	api->overstay = loop_timer_free(api->overstay);
	keys_forget(api);
	users_forget(api);
	feed_forget(api);
	network_forget(api);
	server_ways_forget(api);
	stream_forget(api);
	buf_done(&api->openapi);
	packages_forget(api);
	build_way_forget(api);
	(void)proxies_free(api->proxies);
	(void)ready_free(api->ready);
	(void)rate_limit_free(api->failures);
	(void)buckets_free(api->buckets);
	(void)open_calls_free(api->open_calls);
	(void)router_free(api->router);
	for (size_t i = 0; i < API_DOORS_MAX; i++)
		(void)router_free(api->door_routers[i]);
	free(api);
	return NULL;
}

static bool is_public(const struct api_call *c)
{
	unsigned flags = c->route->route.flags;

	return flags & ROUTE_PUBLIC ||
	       (flags & ROUTE_METRICS && c->api->deps.config->metrics_public);
}

static bool is_json(const char *type)
{
	struct str rest = str_of(type), name;

	if (!str_split(&rest, ';', &name))
		return false;
	name = str_trim(name);
	return name.len == strlen("application/json") &&
	       strncasecmp(name.data, "application/json", name.len) == 0;
}

static void got_body(struct api_call *c, const void *user, struct jv_doc **doc)
{
	(void)user, (void)doc;
	c->route->handle(c);
}

static void take_body(struct api_call *c)
{
	if (http_body_length(c->http) != 0 && !is_json(http_header(c->http, "Content-Type")))
		return problem_status(c, 415, "the body must be application/json");
	body_take(c, &(struct body_plan){ .max = c->api->deps.config->max_json_bytes,
					  .table = *c->route->body,
					  .takes_unknown = c->door,
					  .got = got_body });
}

/* A port's own credentials are its handler's to look at; a key is a key. */
static bool is_port_without_key(const struct api_call *c)
{
	const char *token;

	if (!(c->route->route.flags & ROUTE_PORT) || http_header(c->http, "Authorization") ||
	    http_header(c->http, "X-API-Key"))
		return false;
	return !(c->route->route.flags & ROUTE_SOCKET) || http_query(c->http, "token", &token) == 0;
}

static void go_on(struct api_call *c)
{
	if (c->route->body)
		take_body(c);
	else
		c->route->handle(c);
}

static void admit(struct api_call *c)
{
	bool has_key = !is_public(c) && !is_port_without_key(c);

	/* It waited for a key or for its sandbox, and nothing of it was begun. */
	if (c->is_over)
		return problem_status(c, 503, "the client has left");
	call_trace_asked(c);
	if (has_key && (!call_authenticate(c, admit) || !open_calls_begin(c, c->who->owner)))
		return;
	if (has_key)
		call_trace_known(c);
	if (query_check(c) && audit_may_begin(c) && !call_wakes(c, go_on))
		go_on(c);
}

/* The first that claims it, or ours. */
static const struct router *find_door(struct api_call *c)
{
	const struct api_door *const *doors = c->api->deps.doors;

	for (size_t i = 0; doors && doors[i]; i++) {
		if (!doors[i]->claims(c))
			continue;
		c->door = doors[i];
		return c->api->door_routers[i];
	}
	return c->api->router;
}

static bool find_route(struct api_call *c, const struct router *table)
{
	const char *path = http_path(c->http);
	int r = -ENOENT;

	if (table)
		r = router_find(table, http_method(c->http), path, http_arena(c->http), &c->match);

	/* NOTE: the row begins with what the router gives back. */
	c->route = r == 0 ? (const struct api_route *)(const void *)c->match.route : NULL;
	if (r < 0 && c->door && c->door->other) {
		c->door->other(c);
	} else if (r == -ENOENT) {
		problem_status(c, 404, "there is nothing at '%.100s'", path);
	} else if (r == -ENOTSUP) {
		(void)http_header_add(c->http, "Allow", c->match.allow);
		problem_status(c, 405, "%s is not possible here", http_method(c->http));
	} else if (r == -EINVAL) {
		problem_status(c, 400, "the path is not well-formed");
	} else if (r < 0) {
		problem_reply(c, &(struct err){ .code = -r });
	}
	return r == 0;
}

void api_handle(void *user, struct http_request *r)
{
	struct api *api = user;
	struct api_call *c = arena_alloc(http_arena(r), sizeof(*c));
	const struct router *table;

	if (!c)
		return http_reply_error(r, 503, "service_unavailable", "out of memory");
	c->api = api;
	c->http = r;
	call_auth_init(c);
	http_user_set(r, SLOT_CALL, c);
	metrics_add(api->deps.metrics, METRIC_HTTP_IN_FLIGHT, LABELS(), 1);
	call_trace_begin(c);
	table = find_door(c);
	if (!c->door && proxy_handle_host(c))
		return;
	if (find_route(c, table))
		admit(c);
}

static const char *status_class(int status)
{
	static const char *const names[] = { "1xx", "2xx", "3xx", "4xx", "5xx" };

	return status >= 100 && status < 600 ? names[status / 100 - 1] : "other";
}

/* Each protocol has its own words, also for what HTTP itself refuses. */
bool api_refuse(void *user, struct http_request *r, int status, const char *message)
{
	struct api_call *c = http_user(r, SLOT_CALL);

	(void)user;
	if (!c)
		return false;
	problem_status(c, status, "%s", message);
	return true;
}

void api_crowded(void *user, bool is_refused)
{
	const struct api *api = user;

	metrics_inc(api->deps.metrics, METRIC_DENIALS,
		    LABELS(is_refused ? "no_connection" : "idle_connection"));
}

void api_done(void *user, const struct http_request *r, int status, uint64_t bytes,
	      uint64_t took_us)
{
	struct api *api = user;
	struct api_call *c = http_user(r, SLOT_CALL);
	const struct route *route = c && c->route ? &c->route->route : NULL;
	char trace_id[TRACE_ID_SIZE] = "";

	metrics_observe(api->deps.metrics, METRIC_HTTP_REQUEST_SECONDS,
			LABELS(route ? route->pattern : "none", route ? route->method : "none",
			       status_class(status)),
			(double)took_us / 1e6);
	if (c)
		metrics_add(api->deps.metrics, METRIC_HTTP_IN_FLIGHT, LABELS(), -1);
	audit_note(c, r, status);
	if (c) {
		c->is_over = true;
		open_calls_end(c);
		call_trace_end(c, status);
		(void)call_trace_id(c, trace_id);
	}
	access_log_write(&(struct access_entry){
		.request_id = http_request_id(r),
		.client_id = http_client_request_id(r),
		.peer = http_peer(r),
		.method = http_method(r),
		.path = http_path(r),
		.key_id = c && c->who->key_id[0] ? c->who->key_id : NULL,
		.trace_id = trace_id[0] ? trace_id : NULL,
		.tool = c && c->tool[0] ? c->tool : NULL,
		.status = status,
		.bytes_out = bytes,
		.took_us = took_us,
	});
}
