#include "api/keys.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/bodies.h"
#include "api/call.h"
#include "api/handlers.h"
#include "api/problem.h"
#include "auth/api_key.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "net/http.h"
#include "store/store.h"
#include "json/jw.h"

#define LIST_DEFAULT 100
#define USED_BATCH 256
#define OWNER_KEYS_MAX 1000u /* more are an admin's to make: the table has an end for all */
#define EXPIRED_KEEP_MS 3600000
#define EXPIRED_BATCH 64

struct key_write {
	struct list node;
	struct api *api;       /* NULL: the api is gone, only the store still knows of this */
	struct api_call *call; /* NULL: the client is gone */
	struct key_row row;    /* its texts are below */
	char id[ID_LEN + 1], name[65], owner[OWNER_MAX + 1];
	char text[API_KEY_SIZE]; /* the key itself: shown once */
};

static void gone(void *user, struct http_request *r)
{
	struct key_write *w = user;

	(void)r;
	w->call = NULL;
}

static struct key_write *write_create(struct api_call *c)
{
	struct key_write *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->api = c->api;
	w->call = c;
	w->row.id = w->id;
	w->row.name = w->name;
	w->row.owner = w->owner;
	list_push_back(&c->api->writes, &w->node);
	return w;
}

static void write_free(struct key_write *w)
{
	list_remove(&w->node);
	explicit_bzero(w, sizeof(*w));
	free(w);
}

void keys_forget(struct api *api)
{
	LIST_FOREACH (&api->writes, w, struct key_write, node) {
		list_remove(&w->node);
		w->api = NULL; /* the store's answer frees it */
		w->call = NULL;
	}
}

void keys_note_used(void *user)
{
	struct api *api = user;
	struct auth_used used[USED_BATCH];
	size_t n = auth_keys_take_used(api->deps.keys, used, USED_BATCH);

	for (size_t i = 0; i < n; i++)
		(void)store_touch_key(api->deps.store, used[i].key_id, used[i].last_used_ms, NULL,
				      NULL);
}

struct expired {
	int64_t cut_ms;
	size_t n;
	char ids[EXPIRED_BATCH][ID_LEN + 1];
};

/* Those of admins are few, and the last one stays whatever it is worth. */
static void add_expired(void *user, const struct key_row *row)
{
	struct expired *all = user;

	if (row->expires_ms != 0 && row->expires_ms < all->cut_ms && row->role != ROLE_ADMIN &&
	    all->n < EXPIRED_BATCH)
		(void)str_copy(all->ids[all->n++], sizeof(all->ids[0]), row->id);
}

void keys_expire(struct api *api)
{
	struct expired all = { .cut_ms = clock_wall_ms() - EXPIRED_KEEP_MS };

	auth_keys_each(api->deps.keys, add_expired, &all);
	for (size_t i = 0; i < all.n; i++)
		if (store_delete_key(api->deps.store, all.ids[i], NULL, NULL) == 0)
			(void)auth_keys_remove(api->deps.keys, all.ids[i]);
}

static void write_key_fields(struct jw *w, const struct key_row *row)
{
	jw_str_field(w, "id", row->id);
	jw_str_field(w, "name", row->name);
	jw_str_field(w, "role", role_name(row->role));
	jw_str_field(w, "owner", row->owner);
	jw_iso_field(w, "createdAt", row->created_ms);
	jw_iso_field(w, "expiresAt", row->expires_ms);
	jw_iso_field(w, "lastUsedAt", row->last_used_ms);
}

/* ---- making ---- */

static void reply_made(struct key_write *k)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);

	jw_object_begin(&w);
	write_key_fields(&w, &k->row);
	jw_str_field(&w, "key", k->text);
	jw_object_end(&w);
	call_reply(k->call, 201, &w);
	explicit_bzero(b.data, b.len);
}

static void made(void *user, int r)
{
	struct key_write *k = user;
	struct err err = { 0 };

	if (r < 0)
		(void)err_sys(&err, r, "key");
	else if (k->call)
		r = auth_keys_put(k->api->deps.keys, &k->row, &err);
	if (k->api && (!k->call || err.code)) /* nobody has it, or could use it: better none */
		(void)store_delete_key(k->api->deps.store, k->id, NULL, NULL);
	if (k->call && r < 0)
		problem_reply(k->call, &err);
	else if (k->call)
		reply_made(k);
	write_free(k);
}

/* Nobody gives away more than they have. */
static bool check_grant(struct api_call *c, const struct body_key *body)
{
	/* Who may make keys has at least the role that one gets by default. */
	if (body->role > (int)c->who.role) {
		problem_status(c, 403, "a key of role '%s' cannot make one of role '%s'",
			       role_name(c->who.role), role_name((enum role)body->role));
		return false;
	}
	if (body->owner && !principal_owns(&c->who, body->owner)) {
		problem_status(c, 403, "only an admin makes keys of another owner");
		return false;
	}
	return true;
}

struct count {
	const char *owner;
	size_t n;
};

static void count_key(void *user, const struct key_row *row)
{
	struct count *count = user;

	count->n += strcmp(row->owner, count->owner) == 0;
}

static bool check_room(struct api_call *c, const char *owner)
{
	struct count count = { .owner = owner };

	if (c->who.scopes & SCOPE_ADMIN)
		return true;
	auth_keys_each(c->api->deps.keys, count_key, &count);
	LIST_FOREACH (&c->api->writes, w, struct key_write, node)
		count_key(&count, &w->row);
	if (count.n < OWNER_KEYS_MAX)
		return true;
	problem_status(c, 429, "there are %zu keys of this owner already, the limit", count.n);
	return false;
}

void api_key_create(struct api_call *c)
{
	const struct body_key *body = c->body;
	const char *owner = body->owner ? body->owner : c->who.owner;
	struct key_write *k;
	int r;

	if (!check_grant(c, body) || !check_room(c, owner))
		return;
	k = write_create(c);
	if (!k)
		return problem_reply(c, &(struct err){ ENOMEM, "key" });
	id_make(k->id);
	r = api_key_make(k->text, k->row.hash);
	if (r == 0)
		r = str_copy(k->name, sizeof(k->name), body->name);
	if (r == 0)
		r = str_copy(k->owner, sizeof(k->owner), owner);
	k->row.role = (uint8_t)(body->role < 0 ? ROLE_USER : body->role);
	k->row.created_ms = clock_wall_ms();
	if (body->expires_in_ms > 0)
		k->row.expires_ms = k->row.created_ms + (int64_t)body->expires_in_ms;
	if (r == 0)
		r = store_put_key(c->api->deps.store, &k->row, made, k);
	if (r == 0)
		return http_on_gone(c->http, gone, k);
	write_free(k);
	problem_reply(c, &(struct err){ -r, "key" });
}

/* ---- looking ---- */

struct collect {
	const struct api_call *call;
	struct cursor cursor;
	struct key_row *rows; /* owned; the texts are the table's */
	size_t n, cap;
	int failed;
};

/* Newest first. */
static int compare(const void *pa, const void *pb)
{
	const struct key_row *a = pa, *b = pb;

	if (a->created_ms != b->created_ms)
		return a->created_ms < b->created_ms ? 1 : -1;
	return -strcmp(a->id, b->id);
}

static void collect(void *user, const struct key_row *row)
{
	struct collect *all = user;
	const struct key_row after = {
		.created_ms = all->cursor.before_ms,
		.id = all->cursor.before_id,
	};

	if (row->revoked_ms || !principal_owns(&all->call->who, row->owner))
		return;
	if (all->cursor.before_ms && compare(row, &after) <= 0)
		return;
	if (all->n == all->cap) {
		size_t cap = all->cap ? 2 * all->cap : 64;
		struct key_row *rows = reallocarray(all->rows, cap, sizeof(*rows));

		if (!rows) {
			all->failed = -ENOMEM;
			return;
		}
		all->rows = rows;
		all->cap = cap;
	}
	all->rows[all->n++] = *row;
}

static void reply_list(struct api_call *c, const struct collect *all, size_t limit)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);
	size_t n = all->n < limit ? all->n : limit;

	jw_object_begin(&w);
	jw_key(&w, "items");
	jw_array_begin(&w);
	for (size_t i = 0; i < n; i++) {
		jw_object_begin(&w);
		write_key_fields(&w, &all->rows[i]);
		jw_object_end(&w);
	}
	jw_array_end(&w);
	call_write_cursor(&w, n < all->n, n ? all->rows[n - 1].created_ms : 0,
			  n ? all->rows[n - 1].id : "");
	jw_object_end(&w);
	call_reply(c, 200, &w);
}

void api_key_list(struct api_call *c)
{
	struct collect all = { .call = c };
	uint64_t limit = LIST_DEFAULT;

	if (!call_query_u64(c, "limit", &limit) || !call_query_cursor(c, &all.cursor))
		return;
	auth_keys_each(c->api->deps.keys, collect, &all);
	if (all.failed) {
		problem_reply(c, &(struct err){ -all.failed, "keys" });
	} else {
		if (all.n > 0)
			qsort(all.rows, all.n, sizeof(*all.rows), compare);
		reply_list(c, &all, limit);
	}
	free(all.rows);
}

void api_user(struct api_call *c)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);

	jw_object_begin(&w);
	jw_str_field(&w, "owner", c->who.owner);
	jw_str_field(&w, "role", role_name(c->who.role));
	jw_str_field(&w, "keyId", c->who.key_id);
	jw_key(&w, "scopes");
	jw_array_begin(&w);
	for (unsigned bit = 1; bit & SCOPE_ALL; bit <<= 1)
		if (c->who.scopes & bit)
			jw_string(&w, scope_name((enum scope)bit));
	jw_array_end(&w);
	jw_object_end(&w);
	call_reply(c, 200, &w);
}

/* ---- revoking ---- */

struct revoke {
	const char *id;
	const struct key_row *row; /* borrowed from the table; NULL: not there */
	size_t admins;             /* other keys of admins that can be used */
	int64_t now_ms;
};

static bool is_usable_admin(const struct key_row *row, int64_t now_ms)
{
	return row->role == ROLE_ADMIN && !row->revoked_ms &&
	       (row->expires_ms == 0 || row->expires_ms > now_ms);
}

static void look(void *user, const struct key_row *row)
{
	struct revoke *v = user;

	if (strcmp(row->id, v->id) == 0)
		v->row = row;
	else if (is_usable_admin(row, v->now_ms))
		v->admins++;
}

static bool may_revoke(struct api_call *c, const struct revoke *v)
{
	if (!v->row || !principal_owns(&c->who, v->row->owner)) {
		problem_status(c, 404, "there is no key '%.64s'", v->id);
		return false;
	}
	if (v->row->role > c->who.role) {
		problem_status(c, 403, "a key of role '%s' cannot revoke one of role '%s'",
			       role_name(c->who.role), role_name(v->row->role));
		return false;
	}
	if (is_usable_admin(v->row, v->now_ms) && v->admins == 0) {
		problem_status(c, 409, "this is the last admin key: make another one first");
		return false;
	}
	return true;
}

static void revoked(void *user, int r)
{
	struct key_write *k = user;
	struct err err = { 0 };

	if (r < 0 && r != -ENOENT)
		(void)err_sys(&err, r, "key"); /* it stays refused, at least until the next start */
	else if (k->api)
		(void)auth_keys_remove(k->api->deps.keys, k->id);
	if (k->call && err.code)
		problem_reply(k->call, &err);
	else if (k->call)
		call_reply_empty(k->call);
	write_free(k);
}

void api_key_revoke(struct api_call *c)
{
	struct revoke v = { .id = call_param(c, "kid"), .now_ms = clock_wall_ms() };
	struct key_write *k;
	int r;

	auth_keys_each(c->api->deps.keys, look, &v);
	if (!may_revoke(c, &v))
		return;
	k = write_create(c);
	if (!k)
		return problem_reply(c, &(struct err){ ENOMEM, "key" });
	r = str_copy(k->id, sizeof(k->id), v.id);
	/* Refused from this moment on, whatever becomes of the write. */
	if (r == 0)
		r = auth_keys_revoke(c->api->deps.keys, v.id, v.now_ms);
	call_streams_check(c->api);
	if (r == 0)
		r = store_delete_key(c->api->deps.store, k->id, revoked, k);
	if (r == 0)
		return http_on_gone(c->http, gone, k);
	write_free(k);
	problem_reply(c, &(struct err){ -r, "key" });
}
