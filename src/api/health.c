#include "api/health.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/call.h"
#include "api/handlers.h"
#include "api/pool.h"
#include "api/problem.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/list.h"
#include "base/log.h"
#include "loop/loop.h"
#include "net/http.h"
#include "sandbox/quota.h"
#include "sandbox/sandbox.h"
#include "store/store.h"
#include "telemetry/metrics.h"
#include "telemetry/process.h"
#include "json/jw.h"

#define READY_GOOD_MS 1000
#define READY_WAIT_MS 3000 /* for the store's answer */

struct ready {
	struct api *api; /* NULL: freed while the store was being asked */
	bool is_asking;
	bool is_known;
	uint64_t asked_ms;
	int store;               /* 0 or why it cannot be written to */
	struct loop_timer *late; /* owned: the store takes too long to say */
	struct list waiting;     /* struct waiter, in their requests' arenas */
};

struct waiter {
	struct list node;
	struct api_call *call;
	bool with_version;
};

static void on_late(void *user);

struct ready *ready_create(struct api *api)
{
	struct ready *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->api = api;
	list_init(&r->waiting);
	if (loop_timer_create(api->deps.loop, on_late, r, &r->late) < 0) {
		free(r);
		return NULL;
	}
	return r;
}

struct ready *ready_free(struct ready *r)
{
	if (!r)
		return NULL;
	r->api = NULL;
	r->late = loop_timer_free(r->late);
	if (!r->is_asking) /* else the store's answer, which always comes, frees it */
		free(r);
	return NULL;
}

void api_healthz(struct api_call *c)
{
	static const char text[] =
		"{\"status\":\"ok\",\"service\":\"holt\",\"version\":\"" HOLT_VERSION "\"}";

	http_reply(c->http, 200, "application/json", text, sizeof(text) - 1);
}

/* Said without a key: what a build hangs in is in the log and in the pools' state. */
static const char *tell_launcher(const struct sandboxes_stats *s)
{
	if (!s->is_ready)
		return "not ready";
	if (s->builds->late > 0)
		return "no box can be built at present";
	return s->builds->uncounted > 0 ? "file locks of boxes are not counted at present" : "ok";
}

static void answer(struct api_call *c, int store, bool with_version)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);
	struct sandboxes_stats stats;
	const char *launcher;
	bool ok;

	sandboxes_stats(c->api->deps.sandboxes, &stats);
	launcher = tell_launcher(&stats);
	ok = strcmp(launcher, "ok") == 0 && store == 0;
	jw_object_begin(&w);
	jw_str_field(&w, "status", ok ? "ok" : "unavailable");
	if (with_version)
		jw_str_field(&w, "version", HOLT_VERSION);
	jw_key(&w, "checks");
	jw_object_begin(&w);
	jw_str_field(&w, "launcher", launcher);
	jw_str_field(&w, "store",
		     store == 0 ? "ok" : problem_text(problem_find(-store, PROBLEM_HERE), NULL));
	jw_object_end(&w);
	jw_object_end(&w);
	if (!ok)
		(void)http_header_add(c->http, "Retry-After", "1");
	call_reply(c, ok ? 200 : 503, &w);
}

static void know(struct ready *r, int result)
{
	struct list waiting;

	if (result < 0 && result != r->store)
		log_warn("api", "the store cannot be written to: error %d", -result);
	r->is_known = true;
	r->asked_ms = clock_now_ms();
	r->store = result;
	/* Answered from a list of its own: an answer may bring the next request at once. */
	list_init(&waiting);
	while (!list_is_empty(&r->waiting)) {
		struct list *node = r->waiting.next;

		list_remove(node);
		list_push_back(&waiting, node);
	}
	LIST_FOREACH (&waiting, w, struct waiter, node) {
		list_remove(&w->node);
		answer(w->call, result, w->with_version);
	}
}

/* A disk that hangs holds up whoever writes to it, but not whoever asks. */
static void on_late(void *user)
{
	know(user, -ETIMEDOUT);
}

static void asked(void *user, int result)
{
	struct ready *r = user;

	r->is_asking = false;
	if (!r->api) {
		free(r);
		return;
	}
	loop_timer_stop(r->late);
	know(r, result);
}

static void gone(void *user, struct http_request *r)
{
	struct waiter *w = user;

	(void)r;
	list_remove(&w->node);
}

static void check(struct api_call *c, bool with_version)
{
	struct ready *r = c->api->ready;
	struct waiter *w;
	int asking;

	if (r->is_known && clock_now_ms() - r->asked_ms < READY_GOOD_MS)
		return answer(c, r->store, with_version);
	if (!r->is_asking) {
		asking = store_probe(c->api->deps.store, asked, r);
		if (asking < 0)
			return answer(c, asking, with_version);
		r->is_asking = true;
	}
	if (list_is_empty(&r->waiting)) /* the first who waits has waited longest */
		loop_timer_start(r->late, READY_WAIT_MS, 0);
	w = arena_alloc(http_arena(c->http), sizeof(*w));
	if (!w)
		return problem_reply(c, &(struct err){ ENOMEM, "readiness" });
	w->call = c;
	w->with_version = with_version;
	list_push_back(&r->waiting, &w->node);
	http_on_gone(c->http, gone, w);
}

void api_readyz(struct api_call *c)
{
	check(c, false);
}

void api_health(struct api_call *c)
{
	check(c, true);
}

/* The pools have been asked: their gauges are up to date. */
static void render(struct api_call *c, const struct pool_row *rows, size_t n)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	int r;

	(void)rows;
	(void)n;
	process_sample(c->api->deps.metrics);
	metrics_set(c->api->deps.metrics, METRIC_HTTP_CONNECTIONS, LABELS(),
		    http_connections(c->http));
	r = metrics_render(c->api->deps.metrics, &b);
	if (r < 0)
		return problem_reply(c, &(struct err){ -r, "metrics" });
	http_reply(c->http, 200, METRICS_CONTENT_TYPE, buf_str(&b), b.len);
}

static void put_own(struct buf *b, const char *name, const char *help, const struct quota *q)
{
	(void)buf_printf(b, "# HELP %s %s\n# TYPE %s gauge\n", name, help, name);
	for (int i = 0; i < QUOTA_COUNT; i++)
		(void)buf_printf(b, "%s{kind=\"%s\"} %.15g\n", name, quota_name((enum quota_kind)i),
				 (double)q->v[i] / (i == QUOTA_CPU ? 1000 : 1));
}

/* The machine's, and with them those of all others, are for admins. */
static void reply_own(struct api_call *c)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct quota limits, used;

	quota_of(c->api->deps.sandboxes, c->who->owner, &limits, &used);
	put_own(&b, "holt_user_quota", "What the caller may have; 0: no limit.", &limits);
	put_own(&b, "holt_user_use", "What the caller has.", &used);
	if (b.failed)
		return problem_reply(c, &(struct err){ ENOMEM, "metrics" });
	http_reply(c->http, 200, METRICS_CONTENT_TYPE, buf_str(&b), b.len);
}

void api_metrics(struct api_call *c)
{
	bool is_known = c->who->owner[0] != '\0'; /* else the setting opens them to everybody */

	if (!c->api->deps.metrics)
		return problem_status(c, 404, "metrics are not kept here");
	if (is_known && c->who->role != ROLE_ADMIN)
		return reply_own(c);
	pool_ask(c, render);
}
