/* Resources: lists of all kinds together, and the kind that an address belongs to. */
#include "mcp/resources.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/encode.h"
#include "base/err.h"
#include "base/str.h"
#include "base/utf8.h"
#include "mcp/handlers.h"
#include "mcp/page.h"
#include "mcp/server_impl.h"

static const struct mcp_resources *const kinds[] = { &mcp_skill_resources, &mcp_box_resources };
#define N_KINDS (sizeof(kinds) / sizeof(kinds[0]))

/* The i-th kind, those of tests included; NULL behind the last. */
static const struct mcp_resources *kind_at(const struct mcp_server *s, size_t i)
{
	const struct mcp_fixtures *f = s->deps.fixtures;

	if (i < N_KINDS)
		return kinds[i];
	return f && i - N_KINDS < f->n_resources ? &f->resources[i - N_KINDS] : NULL;
}

static const struct mcp_resources *kind_of(const struct mcp_server *s, const char *uri)
{
	const struct mcp_resources *k;

	for (size_t i = 0; (k = kind_at(s, i)) != NULL; i++)
		if (str_starts(str_of(uri), k->scheme))
			return k;
	return NULL;
}

/* ---- answers ---- */

const char *mcp_uri_data(struct mcp_request *q, const char *uri)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);

	jw_object_begin(&w);
	jw_str_field(&w, "uri", uri);
	jw_object_end(&w);
	return jw_end(&w) < 0 ? NULL : arena_strndup(q->arena, b.data, b.len);
}

void mcp_no_resource(struct mcp_request *q, const char *uri)
{
	long code = q->era == MCP_MODERN ? (long)RPC_PARAMS : (long)MCP_NOT_FOUND;

	mcp_fail_data(q, code, "there is no such resource", mcp_uri_data(q, uri));
}

void mcp_content_answer(struct mcp_request *q, const char *uri, const char *type, const char *data,
			size_t n)
{
	bool is_text = !memchr(data, '\0', n) && utf8_is_valid(data, n);
	_free_ char *base64 = is_text ? NULL : malloc(BASE64_SIZE(n));
	struct jw *w;

	if (!is_text && !base64)
		return mcp_fail(q, RPC_INTERNAL, "out of memory");
	w = mcp_result_begin(q);
	jw_key(w, "contents");
	jw_array_begin(w);
	jw_object_begin(w);
	jw_str_field(w, "uri", uri);
	if (type)
		jw_str_field(w, "mimeType", type);
	jw_key(w, is_text ? "text" : "blob");
	if (is_text)
		jw_string_n(w, data, n);
	else
		jw_string_n(w, base64, encode_base64(data, n, base64));
	jw_object_end(w);
	jw_array_end(w);
	mcp_result_end(q);
}

/* ---- lists ---- */

void mcp_listing_add(struct mcp_listing *l, const struct mcp_resource *r)
{
	size_t room = l->room ? 2 * l->room : 64;
	struct mcp_resource *grown;

	if (!r->uri || !r->name || l->n == MCP_LISTING_MAX)
		return;
	if (l->n == l->room) {
		grown = arena_array(l->q->arena, room, sizeof(*grown));
		if (!grown)
			return;
		if (l->n > 0)
			memcpy(grown, l->items, l->n * sizeof(*grown));
		l->items = grown;
		l->room = room;
	}
	l->items[l->n++] = *r;
}

static int by_uri(const void *a, const void *b)
{
	const struct mcp_resource *x = a, *y = b;

	return strcmp(x->uri, y->uri);
}

static void write_resource(struct jw *w, const struct mcp_resource *r)
{
	jw_object_begin(w);
	jw_str_field(w, "uri", r->uri);
	jw_str_field(w, "name", r->name);
	if (r->title)
		jw_str_field(w, "title", r->title);
	if (r->about)
		jw_str_field(w, "description", r->about);
	if (r->type)
		jw_str_field(w, "mimeType", r->type);
	if (r->size >= 0)
		jw_int_field(w, "size", r->size);
	jw_object_end(w);
}

void mcp_listing_answer(struct mcp_listing *l)
{
	struct mcp_page p;
	struct jw *w;

	if (!mcp_page_begin(l->q, &p))
		return;
	if (l->n > 0)
		qsort(l->items, l->n, sizeof(*l->items), by_uri);
	w = mcp_result_begin(l->q);
	jw_key(w, "resources");
	jw_array_begin(w);
	for (size_t i = 0; i < l->n && !p.is_full; i++)
		if (mcp_page_takes(&p, l->items[i].uri))
			write_resource(w, &l->items[i]);
	jw_array_end(w);
	mcp_page_end(l->q, &p, w);
	mcp_result_end(l->q);
}

void mcp_resources_list(struct mcp_request *q)
{
	struct mcp_listing l = { .q = q };
	const struct mcp_resources *k;

	for (size_t i = 0; (k = kind_at(q->server, i)) != NULL; i++)
		if (k->list)
			k->list(q, &l);
	mcp_listing_answer(&l);
}

void mcp_resource_templates(struct mcp_request *q)
{
	const struct mcp_resources *k;
	struct jw *w;

	if (!mcp_page_is_whole(q))
		return;
	w = mcp_result_begin(q);
	jw_key(w, "resourceTemplates");
	jw_array_begin(w);
	for (size_t i = 0; (k = kind_at(q->server, i)) != NULL; i++)
		if (k->templates)
			k->templates(q, w);
	jw_array_end(w);
	mcp_result_end(q);
}

/* ---- one of them ---- */

/* The address that was asked for, and its kind. NULL: answered. */
static const struct mcp_resources *kind_of_call(struct mcp_request *q, const char **ret_uri)
{
	const char *uri = jv_text(jv_get(q->params, "uri"));
	const struct mcp_resources *k;

	if (!uri) {
		mcp_fail(q, RPC_PARAMS, "uri: want a text");
		return NULL;
	}
	k = strlen(uri) <= MCP_URI_MAX ? kind_of(q->server, uri) : NULL;
	if (!k)
		mcp_no_resource(q, uri);
	*ret_uri = uri;
	return k;
}

void mcp_resources_read(struct mcp_request *q)
{
	const char *uri = NULL;
	const struct mcp_resources *k = kind_of_call(q, &uri);

	if (k)
		k->read(q, uri);
}

void mcp_directory_read(struct mcp_request *q)
{
	const char *uri = jv_text(jv_get(q->params, "uri"));
	const struct mcp_resources *k =
		uri && strlen(uri) <= MCP_URI_MAX ? kind_of(q->server, uri) : NULL;

	if (k && k->read_dir)
		k->read_dir(q, uri);
	else
		mcp_fail_data(q, RPC_PARAMS, "there is no such directory",
			      uri ? mcp_uri_data(q, uri) : NULL);
}

/* ---- changes ---- */

/* What is watched before the client hears that it is: what it does right behind the answer must not
 * be missed. */
struct watching { /* arena */
	struct mcp_wait *waits;
	size_t n, pending;
	struct err err; /* the first that cannot be */
	void (*then)(struct mcp_request *q);
};

static void go_on(struct mcp_request *q)
{
	struct watching *g = q->work;

	q->cancelled = NULL;
	g->then(q);
}

/* There is room: watching_create(). */
static void grant(struct mcp_request *q, const char *uri)
{
	if (!mcp_request_has(q, uri))
		q->uris[q->n_uris++] = uri;
}

void mcp_watched(struct mcp_wait *wait, const struct err *err)
{
	struct watching *g = wait->q->work;

	if (err && !g->err.code)
		g->err = *err;
	if (!err)
		grant(wait->q, wait->uri);
	if (--g->pending == 0)
		go_on(wait->q);
}

bool mcp_request_has(const struct mcp_request *q, const char *uri)
{
	for (size_t i = 0; i < q->n_uris; i++)
		if (strcmp(q->uris[i], uri) == 0)
			return true;
	return false;
}

/* Each change looks at all of them. */
bool mcp_may_subscribe(const struct mcp_request *q, size_t more)
{
	const struct mcp_server *s = q->server;
	size_t n = more;

	LIST_FOREACH (&s->sessions, it, struct mcp_session, node)
		n += strcmp(it->owner, q->who.owner) == 0 ? it->n_uris : 0;
	LIST_FOREACH (&s->requests, it, struct mcp_request, node)
		n += strcmp(it->who.owner, q->who.owner) == 0 ? it->n_uris : 0;
	return n <= MCP_SUBSCRIPTIONS_OWNER_MAX;
}

static void refuse_more(struct mcp_request *q)
{
	mcp_fail(q, RPC_PARAMS, "too many subscriptions: %u at the most, of all your clients",
		 MCP_SUBSCRIPTIONS_OWNER_MAX);
}

static void watching_cancelled(struct mcp_request *q)
{
	struct watching *g = q->work;

	for (size_t i = 0; i < g->n; i++)
		list_remove(&g->waits[i].node);
	mcp_drop(q);
}

static struct watching *watching_create(struct mcp_request *q, size_t n,
					void (*then)(struct mcp_request *q))
{
	struct watching *g = arena_alloc(q->arena, sizeof(*g));

	if (!g)
		return NULL;
	g->waits = arena_array(q->arena, n > 0 ? n : 1, sizeof(*g->waits));
	q->uris = arena_array(q->arena, n > 0 ? n : 1, sizeof(*q->uris));
	g->then = then;
	g->pending = 1; /* until all were begun */
	q->work = g;
	q->cancelled = watching_cancelled;
	return g->waits && q->uris ? g : NULL;
}

static void watch(struct mcp_request *q, struct watching *g, const char *uri)
{
	const struct mcp_resources *k = strlen(uri) <= MCP_URI_MAX ? kind_of(q->server, uri) : NULL;
	struct mcp_wait *wait = &g->waits[g->n];
	struct err err = { 0 };
	int r;

	if (!k)
		return;
	*wait = (struct mcp_wait){ .q = q, .uri = uri };
	list_init(&wait->node);
	r = k->watch ? k->watch(q, uri, wait, &err) : 0;
	if (r < 0 && !g->err.code)
		g->err = err;
	if (r == 0)
		grant(q, uri);
	if (r <= 0)
		return;
	g->n++;
	g->pending++;
}

static void all_begun(struct mcp_request *q)
{
	struct watching *g = q->work;

	if (--g->pending == 0)
		go_on(q);
}

/* It is the session's only now: who may not hear of it must not, not even for a moment. */
static void subscribed(struct mcp_request *q)
{
	const struct watching *g = q->work;
	const char *uri = jv_text(jv_get(q->params, "uri"));
	int r;

	if (g->err.code == ENOENT)
		return mcp_no_resource(q, uri);
	if (g->err.code)
		return mcp_fail_data(q, RPC_PARAMS, g->err.text, mcp_uri_data(q, uri));
	r = mcp_session_subscribe(q->session, uri, true);
	if (r == -EAGAIN)
		return mcp_fail(q, RPC_PARAMS, "too many subscriptions: %u at the most",
				MCP_SUBSCRIPTIONS_MAX);
	if (r < 0)
		return mcp_fail(q, RPC_INTERNAL, "out of memory");
	mcp_result_empty(q);
}

void mcp_resources_subscribe(struct mcp_request *q)
{
	struct watching *g;
	const char *uri = NULL;

	if (!kind_of_call(q, &uri))
		return;
	if (!mcp_may_subscribe(q, 1))
		return refuse_more(q);
	g = watching_create(q, 1, subscribed);
	if (!g)
		return mcp_fail(q, RPC_INTERNAL, "out of memory");
	watch(q, g, uri);
	all_begun(q);
}

void mcp_resources_unsubscribe(struct mcp_request *q)
{
	const char *uri = jv_text(jv_get(q->params, "uri"));

	if (!uri)
		return mcp_fail(q, RPC_PARAMS, "uri: want a text");
	(void)mcp_session_subscribe(q->session, uri, false);
	mcp_result_empty(q);
}

/* What cannot be watched is not told of: the client may read it all the same. */
void mcp_watch_listed(struct mcp_request *q, void (*then)(struct mcp_request *q))
{
	struct jv uris = jv_get(jv_get(q->params, "notifications"), "resourceSubscriptions");
	struct watching *g;

	if (!mcp_may_subscribe(q, jv_len(uris)))
		return refuse_more(q);
	g = watching_create(q, jv_len(uris), then);
	if (!g)
		return mcp_fail(q, RPC_INTERNAL, "out of memory");
	JV_FOREACH (uris, it)
		if (jv_text(it.value))
			watch(q, g, jv_text(it.value));
	all_begun(q);
}
