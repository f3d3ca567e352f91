#include "api/call.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "api/keys.h"
#include "api/problem.h"
#include "api/queries.h"
#include "api/routes.h"
#include "auth/api_key.h"
#include "auth/users.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/str.h"
#include "config/config.h"
#include "net/http.h"
#include "sandbox/sandbox.h"
#include "telemetry/metrics.h"
#include "json/jv.h"
#include "json/jw.h"

#define LARGE (4u << 20) /* bytes of an answer: above, it goes out in pieces */
#define LARGE_PIECE (1u << 20)

const char *call_param(const struct api_call *c, const char *name)
{
	const char *value = router_param(&c->match, name);

	if (!value && strcmp(name, "id") == 0)
		return c->box_id;
	return value ? value : "";
}

const char *call_owner(const struct api_call *c)
{
	return c->who->scopes & SCOPE_ADMIN ? NULL : c->who->owner;
}

/* What uses a sandbox, and is no mere look at it. */
static bool is_use(const struct api_call *c)
{
	return c->route->route.scope & (SCOPE_EXEC | SCOPE_FILE_READ | SCOPE_FILE_WRITE);
}

struct sandbox *call_look_up(struct api_call *c, const char *id)
{
	struct sandboxes *all = c->api->deps.sandboxes;
	/* An admin's own sandbox of that name goes before another owner's. */
	struct sandbox *sb = sandboxes_find(all, id, c->who->owner);
	struct sandbox_info info;

	if (!sb && !call_owner(c))
		sb = sandboxes_find(all, id, NULL);
	if (sb) {
		sandbox_info(sb, &info);
		if (!principal_may_enter(c->who, info.owner, info.id))
			sb = NULL;
	}
	c->is_foreign = !sb && sandboxes_find(all, id, NULL);
	return sb;
}

struct sandbox *call_find_sandbox(struct api_call *c)
{
	struct sandbox *sb = call_look_up(c, call_param(c, "id"));

	if (sb && is_use(c))
		sandbox_touch(sb);
	return sb;
}

struct waking { /* arena: the request waits, also for a client that has left */
	struct api_call *call;
	void (*go)(struct api_call *c);
};

static void woken(void *user, struct sandbox *sb, const struct err *err)
{
	struct waking *w = user;

	(void)sb;
	if (err)
		return problem_reply(w->call, err);
	w->go(w->call);
}

bool call_wakes(struct api_call *c, void (*go)(struct api_call *c))
{
	struct sandbox *sb = !c->door && is_use(c) ? call_look_up(c, call_param(c, "id")) : NULL;
	struct waking *w;

	if (!sb || !sandbox_wakes(sb))
		return false;
	w = arena_alloc(http_arena(c->http), sizeof(*w));
	if (!w) {
		problem_reply(c, &(struct err){ ENOMEM, "wake the sandbox" });
		return true;
	}
	*w = (struct waking){ c, go };
	sandbox_wake(sb, woken, w);
	return true;
}

bool call_is_within(const struct api_call *c)
{
	const char *id = call_param(c, "id");
	struct sandbox *sb = sandboxes_find(c->api->deps.sandboxes, id, c->who->owner);
	struct sandbox_info info;

	if (!sb)
		return strcmp(id, c->who->sandbox_id) == 0;
	sandbox_info(sb, &info);
	return strcmp(info.id, c->who->sandbox_id) == 0;
}

struct sandbox *call_sandbox(struct api_call *c)
{
	struct sandbox *sb = call_find_sandbox(c);

	if (!sb)
		problem_status(c, 404, "there is no sandbox '%.64s'", call_param(c, "id"));
	return sb;
}

/* A name or address and perhaps a port: what else a Host header may say goes nowhere. */
static bool host_is_plain(const char *host)
{
	return host[0] != '\0' &&
	       host[strspn(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				 "0123456789.-_:[]")] == '\0';
}

const char *call_base(struct api_call *c)
{
	const char *url = c->api->deps.config->public_url;
	const char *host = http_header(c->http, "Host");

	if (url && url[0] != '\0')
		return url;
	return arena_printf(http_arena(c->http), "%s://%s", http_is_tls(c->http) ? "https" : "http",
			    host && host_is_plain(host) ? host : "localhost");
}

bool call_query(struct api_call *c, const char *name, const char **ret)
{
	int r;

	if (!query_find(c->route, name)) { /* a bug of ours, and the first test finds it */
		problem_reply(c, &(struct err){ ENOSYS, "a query parameter is in no table" });
		return false;
	}
	r = http_query(c->http, name, ret);
	if (r == -EINVAL)
		problem_status(c, 400, "a query parameter is not well-formed");
	else if (r < 0)
		problem_reply(c, &(struct err){ .code = -r });
	return r >= 0;
}

/* 1: there is a value, 0: absent, -1: answered. */
static int query(struct api_call *c, const char *name, const char **ret)
{
	const char *value = NULL;

	if (!call_query(c, name, &value))
		return -1;
	*ret = value;
	return value != NULL;
}

bool call_query_bool(struct api_call *c, const char *name, bool *ret)
{
	const char *value;
	int r = query(c, name, &value), on;

	if (r <= 0)
		return r == 0;
	if (parse_bool(value, &on) < 0) {
		problem_field(c, name, "want true or false");
		return false;
	}
	*ret = on;
	return true;
}

bool call_query_u64(struct api_call *c, const char *name, uint64_t *ret)
{
	const char *value;
	int r = query(c, name, &value);

	if (r <= 0)
		return r == 0;
	if (parse_u64(value, 0, UINT64_MAX, ret) < 0) {
		problem_field(c, name, "want a number");
		return false;
	}
	return true;
}

bool call_query_ms(struct api_call *c, const char *name, uint64_t *ret_ms)
{
	const char *value;
	int r = query(c, name, &value);

	if (r <= 0)
		return r == 0;
	if (parse_duration(value, 0, INT64_MAX, ret_ms) < 0) {
		problem_field(c, name, "want a time");
		return false;
	}
	return true;
}

bool call_query_cursor(struct api_call *c, struct cursor *ret)
{
	const char *value;
	int r = query(c, "cursor", &value);

	if (r <= 0)
		return r == 0;
	if (cursor_parse(value, ret) == 0)
		return true;
	problem_field(c, "cursor", "want a cursor as an earlier answer gave it");
	return false;
}

void call_write_cursor(struct jw *w, bool more, int64_t before_ms, const char *before_id)
{
	char text[CURSOR_SIZE];

	if (more && cursor_format(before_ms, before_id, text) == 0)
		jw_str_field(w, "nextCursor", text);
	else
		jw_null_field(w, "nextCursor");
}

bool call_accepts(const struct api_call *c, const char *type)
{
	struct str rest = str_of(http_header(c->http, "Accept")), one, name;

	while (str_split(&rest, ',', &one)) {
		if (!str_split(&one, ';', &name))
			continue;
		name = str_trim(name);
		if (name.len == strlen(type) && strncasecmp(name.data, type, name.len) == 0)
			return true;
	}
	return false;
}

/* An answer that is larger than what may wait for a client at once goes out in pieces. */
struct large {
	struct buf b; /* owned */
	size_t at;
};

static void large_done(struct large *l)
{
	buf_done(&l->b);
}

static void large_gone(void *user, struct http_request *r)
{
	(void)r;
	large_done(user);
}

static void large_send(void *user, struct http_request *r)
{
	struct large *l = user;

	while (l->at < l->b.len && http_pending(r) < LARGE_PIECE) {
		size_t left = l->b.len - l->at, n = left < LARGE_PIECE ? left : LARGE_PIECE;

		if (http_write(r, l->b.data + l->at, n) < 0)
			return; /* the client is gone, and large_gone() comes by and by */
		l->at += n;
	}
	if (l->at < l->b.len)
		return;
	large_done(l);
	http_end(r);
}

static void reply_large(struct api_call *c, int status, struct buf *b)
{
	struct large *l = arena_alloc(http_arena(c->http), sizeof(*l));

	if (!l)
		return problem_reply(c, &(struct err){ ENOMEM, "the answer" });
	l->b = *b;
	*b = (struct buf){ 0 };
	http_begin(c->http, status, "application/json", (int64_t)l->b.len);
	http_on_gone(c->http, large_gone, l);
	http_on_drain(c->http, LARGE_PIECE / 4, large_send, l);
	large_send(l, c->http);
}

void call_set_subject(struct api_call *c, const char *id)
{
	(void)snprintf(c->subject, sizeof(c->subject), "%s", id);
}

/* From the answer itself, so that no handler can forget it. */
static void find_subject(struct api_call *c, const struct buf *b)
{
	static const char *const names[] = { "id", "contextId", "executionId", "name" };
	struct jv_doc *doc = NULL;
	struct jv root;
	uint64_t port;

	if (c->subject[0] != '\0' || jv_parse(b->data, b->len, LARGE, &doc, NULL) < 0)
		return;
	root = jv_root(doc);
	if (jv_kind(jv_get(root, "items")) == JV_ARRAY)
		root = jv_at(jv_get(root, "items"), 0);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && c->subject[0] == '\0'; i++)
		if (jv_text(jv_get(root, names[i])))
			call_set_subject(c, jv_text(jv_get(root, names[i])));
	if (c->subject[0] == '\0' && jv_u64(jv_get(root, "port"), &port) == 0)
		(void)snprintf(c->subject, sizeof(c->subject), "%llu", (unsigned long long)port);
	(void)jv_free(doc);
}

void call_reply(struct api_call *c, int status, struct jw *w)
{
	int r = jw_end(w);

	if (r < 0)
		return problem_reply(c, &(struct err){ -r, "the answer does not fit" });
	if (w->buf->len > LARGE)
		return reply_large(c, status, w->buf);
	if (status == 201 || status == 202)
		find_subject(c, w->buf);
	http_reply(c->http, status, "application/json", w->buf->data, w->buf->len);
}

void call_reply_empty(struct api_call *c)
{
	http_reply(c->http, 204, NULL, NULL, 0);
}

/* Whether who opened it may go on. */
static bool is_good(const struct api *api, const char *key_id, int64_t expires_ms,
		    const char *owner)
{
	if (!users_is_good(api->deps.users, owner))
		return false;
	return key_id[0] ? auth_keys_is_good(api->deps.keys, key_id) : expires_ms > clock_wall_ms();
}

bool call_stream_may_begin(struct api_call *c, const char *sandbox_id)
{
	unsigned n = 0;

	/* What had to happen first may have taken a while. */
	if (!is_good(c->api, c->who->key_id, c->who->expires_ms, c->who->owner)) {
		problem_status(c, 401, "%s", CALL_KEY_ENDED);
		return false;
	}
	LIST_FOREACH (&c->api->streams, other, struct call_stream, node)
		n += strcmp(other->sandbox_id, sandbox_id) == 0;
	if (n >= CALL_STREAMS_MAX) {
		(void)http_header_add(c->http, "Retry-After", "1");
		problem_status(c, 429, "this sandbox has %u open streams already", n);
		return false;
	}
	return true;
}

bool call_stream_begin(struct api_call *c, struct call_stream *s, const char *kind,
		       const char *sandbox_id)
{
	if (!call_stream_may_begin(c, sandbox_id))
		return false;
	call_stream_watch(c, s, kind, c->who->owner);
	(void)str_copy(s->sandbox_id, sizeof(s->sandbox_id), sandbox_id);
	return true;
}

void call_stream_watch(struct api_call *c, struct call_stream *s, const char *kind,
		       const char *owner)
{
	bool has_key = c->who->owner[0] != '\0';

	s->api = c->api;
	s->kind = kind;
	(void)str_copy(s->key_id, sizeof(s->key_id), c->who->key_id);
	(void)str_copy(s->bound_id, sizeof(s->bound_id), c->who->sandbox_id);
	(void)str_copy(s->owner, sizeof(s->owner), has_key ? c->who->owner : owner);
	s->expires_ms = has_key ? c->who->expires_ms : INT64_MAX;
	list_push_back(&c->api->streams, &s->node);
	metrics_add(c->api->deps.metrics, METRIC_STREAM_SUBSCRIBERS, LABELS(kind), 1);
}

void call_stream_end(struct call_stream *s)
{
	if (!s->kind)
		return;
	list_remove(&s->node);
	metrics_add(s->api->deps.metrics, METRIC_STREAM_SUBSCRIBERS, LABELS(s->kind), -1);
	s->kind = NULL;
}

void call_streams_check(struct api *api)
{
	LIST_FOREACH (&api->streams, s, struct call_stream, node)
		if (!is_good(api, s->key_id, s->expires_ms, s->owner) ||
		    keys_check_sandbox(api, s->bound_id, NULL) < 0)
			s->cut(s);
}
