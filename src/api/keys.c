#include "api/keys.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/bodies.h"
#include "api/call.h"
#include "api/handlers.h"
#include "api/problem.h"
#include "api/routes.h"
#include "auth/api_key.h"
#include "auth/users.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "net/http.h"
#include "sandbox/events.h"
#include "sandbox/sandbox.h"
#include "store/store.h"
#include "json/jw.h"

#define USED_BATCH 256
#define OWNER_KEYS_MAX 1000u /* more are an admin's to make: the table has an end for all */
/* What a token of one sandbox may be good for. */
#define TOKEN_SCOPES \
	(SCOPE_SANDBOX_READ | SCOPE_EXEC | SCOPE_FILE_READ | SCOPE_FILE_WRITE | SCOPE_PORT)
#define EXPIRED_KEEP_MS 3600000
#define EXPIRED_BATCH 64

struct key_write {
	struct list node;
	struct api *api;       /* NULL: the api is gone, only the store still knows of this */
	struct api_call *call; /* NULL: the client is gone */
	struct key_row row;    /* its texts are below */
	char id[ID_LEN + 1], name[65], owner[OWNER_MAX + 1], sandbox_id[ID_LEN + 1];
	char parent_id[ID_LEN + 1];
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
	w->row.sandbox_id = w->sandbox_id;
	w->row.parent_id = w->parent_id;
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

int keys_check_sandbox(const struct api *api, const char *sandbox_id, struct err *err)
{
	if (sandbox_id[0] == '\0' || sandboxes_find(api->deps.sandboxes, sandbox_id, NULL))
		return 0;
	return err_set(err, EACCES, "the sandbox of this token has ended");
}

struct expired {
	struct api *api;
	int64_t cut_ms;
	size_t n;
	char ids[EXPIRED_BATCH][ID_LEN + 1];
};

/* Those of admins are few, and the last one stays whatever it is worth. */
static void add_expired(void *user, const struct key_row *row)
{
	struct expired *all = user;
	bool is_over = row->expires_ms != 0 && row->expires_ms < all->cut_ms;

	if (keys_check_sandbox(all->api, row->sandbox_id, NULL) < 0 ||
	    auth_keys_is_orphan(all->api->deps.keys, row->id))
		is_over = true;
	if (is_over && row->role != ROLE_ADMIN && all->n < EXPIRED_BATCH)
		(void)str_copy(all->ids[all->n++], sizeof(all->ids[0]), row->id);
}

void keys_expire(struct api *api)
{
	struct expired all = { .api = api, .cut_ms = clock_wall_ms() - EXPIRED_KEEP_MS };

	auth_keys_each(api->deps.keys, add_expired, &all);
	for (size_t i = 0; i < all.n; i++)
		if (store_delete_key(api->deps.store, all.ids[i], NULL, NULL) == 0)
			(void)auth_keys_remove(api->deps.keys, all.ids[i]);
}

static void tell(const struct key_write *k, const char *kind, bool is_new)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);

	jw_object_begin(&w);
	if (is_new) {
		jw_str_field(&w, "name", k->name);
		jw_str_field(&w, "role", role_name((enum role)k->row.role));
		jw_str_field(&w, "sandbox", k->sandbox_id);
	}
	jw_object_end(&w);
	events_emit(k->api->deps.events, &(struct event){ .kind = kind,
							  .owner = k->owner,
							  .subject = k->id,
							  .text = jw_end(&w) < 0 ? NULL : b.data });
}

/* ---- making ---- */

static void reply_made(struct key_write *k)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);

	jw_object_begin(&w);
	keys_write(&w, &k->row);
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
	else if (k->call) {
		tell(k, "key.created", true);
		reply_made(k);
	}
	write_free(k);
}

/* Nobody gives away more than they have. */
static bool check_grant(struct api_call *c, const struct body_key *body)
{
	bool is_own = (c->route->route.flags & ROUTE_OWN) != 0;

	/* Who may make keys has at least the role that one gets by default. */
	if (body->role > (int)c->who->role) {
		problem_status(c, 403, "a key of role '%s' cannot make one of role '%s'",
			       role_name(c->who->role), role_name((enum role)body->role));
		return false;
	}
	if (body->owner && is_own && strcmp(body->owner, c->who->owner) != 0) {
		problem_field(c, "owner", "owner: these are your own keys");
		return false;
	}
	if (body->owner && !user_is_owner(body->owner)) {
		problem_field(c, "owner",
			      "owner: want no control characters, and '~' in names of "
			      "an identity provider's owners alone");
		return false;
	}
	if (body->owner && !principal_owns(c->who, body->owner)) {
		problem_status(c, 403, "only an admin makes keys of another owner");
		return false;
	}
	return true;
}

/* The scopes that a body names; 0: none. */
static bool read_scopes(struct api_call *c, const struct jv_strings *names, unsigned allowed,
			unsigned *ret)
{
	unsigned all = 0, one;

	for (size_t i = 0; i < names->len; i++) {
		if (scope_from(names->items[i], &one) < 0 || one & ~allowed) {
			problem_field(c, "scopes", "scopes: '%.40s' is not to be had here",
				      names->items[i]);
			return false;
		}
		all |= one;
	}
	*ret = all;
	return true;
}

/* In a row, no scopes are all that the role gives: nothing in common must not become that. */
static bool check_any(struct api_call *c, unsigned scopes)
{
	if (scopes != 0)
		return true;
	problem_status(c, 403, "this key has none of the scopes that the new one could have");
	return false;
}

/* What the new key is held to; 0: what its role gives. A key that is narrower than its role makes
 * none that is wider than itself. */
static bool choose_scopes(struct api_call *c, const struct body_key *body, enum role role,
			  uint32_t *ret)
{
	unsigned allowed = scope_of_role(role), asked = 0;
	struct err err = { 0 };

	if (!read_scopes(c, &body->scopes, allowed, &asked))
		return false;
	if (!asked && (allowed & ~c->who->scopes) != 0) {
		asked = allowed & c->who->scopes;
		if (!check_any(c, asked))
			return false;
	} else if (principal_check(c->who, asked, &err) < 0) {
		problem_status(c, 403, "%s", err.text);
		return false;
	}
	*ret = asked;
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

	if (c->who->scopes & SCOPE_ADMIN)
		return true;
	auth_keys_each(c->api->deps.keys, count_key, &count);
	LIST_FOREACH (&c->api->writes, w, struct key_write, node)
		count_key(&count, &w->row);
	if (count.n < OWNER_KEYS_MAX)
		return true;
	problem_status(c, 429, "there are %zu keys of this owner already, the limit", count.n);
	return false;
}

/* What a credential that expires has made ends with it, also when that is revoked. Those of keys
 * that last are on their own: else nobody could replace a key by a newer one. */
static void bind_to_maker(const struct api_call *c, struct key_write *k)
{
	int64_t end = c->who->expires_ms;

	if (end == 0)
		return;
	if (k->row.expires_ms == 0 || k->row.expires_ms > end)
		k->row.expires_ms = end;
	(void)str_copy(k->parent_id, sizeof(k->parent_id), c->who->key_id);
}

/* The row says all but id, hash, maker and texts. */
static void make(struct api_call *c, const struct key_row *row)
{
	struct key_write *k;
	int r;

	if (!check_room(c, row->owner))
		return;
	k = write_create(c);
	if (!k)
		return problem_reply(c, &(struct err){ ENOMEM, "key" });
	id_make(k->id);
	r = api_key_make(k->text, k->row.hash);
	if (r == 0)
		r = str_copy(k->name, sizeof(k->name), row->name);
	if (r == 0)
		r = str_copy(k->owner, sizeof(k->owner), row->owner);
	if (r == 0)
		r = str_copy(k->sandbox_id, sizeof(k->sandbox_id), row->sandbox_id);
	k->row.role = row->role;
	k->row.scopes = row->scopes;
	k->row.created_ms = row->created_ms;
	k->row.expires_ms = row->expires_ms;
	bind_to_maker(c, k);
	if (r == 0)
		r = store_put_key(c->api->deps.store, &k->row, made, k);
	if (r == 0)
		return http_on_gone(c->http, gone, k);
	write_free(k);
	problem_reply(c, &(struct err){ -r, "key" });
}

static int64_t expiry(const struct body_key *body, int64_t now_ms)
{
	return body->expires_in_ms > 0 ? now_ms + (int64_t)body->expires_in_ms : 0;
}

void api_key_create(struct api_call *c)
{
	const struct body_key *body = c->body;
	struct key_row row = { .name = body->name,
			       .owner = body->owner ? body->owner : c->who->owner,
			       .sandbox_id = "",
			       .role = (uint8_t)(body->role < 0 ? ROLE_USER : body->role),
			       .created_ms = clock_wall_ms() };

	row.expires_ms = expiry(body, row.created_ms);
	if (check_grant(c, body) && choose_scopes(c, body, row.role, &row.scopes))
		make(c, &row);
}

/* A token of one sandbox: its owner's, for no longer than the sandbox. */
void api_token_create(struct api_call *c)
{
	const struct body_key *body = c->body;
	struct sandbox *sb;
	struct key_row row = { .name = body->name ? body->name : "token",
			       .role = ROLE_USER,
			       .created_ms = clock_wall_ms() };
	struct sandbox_info info;
	unsigned scopes = 0;
	struct err err = { 0 };

	sb = call_sandbox(c);
	if (!sb || !read_scopes(c, &body->scopes, TOKEN_SCOPES, &scopes))
		return;
	row.scopes = scopes ? scopes : TOKEN_SCOPES & c->who->scopes;
	if (!check_any(c, row.scopes))
		return;
	if (principal_check(c->who, row.scopes, &err) < 0)
		return problem_status(c, 403, "%s", err.text);
	sandbox_info(sb, &info);
	row.owner = info.owner;
	row.sandbox_id = info.id;
	row.expires_ms = expiry(body, row.created_ms);
	if (info.expires_ms && (!row.expires_ms || row.expires_ms > info.expires_ms))
		row.expires_ms = info.expires_ms;
	make(c, &row);
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
	/* One that ends with another is none to rely on. */
	return row->role == ROLE_ADMIN && !row->revoked_ms && row->parent_id[0] == '\0' &&
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
	if (!v->row || !keys_are_seen(c, v->row)) {
		problem_status(c, 404, "there is no key '%.64s'", v->id);
		return false;
	}
	if (v->row->role > c->who->role) {
		problem_status(c, 403, "a key of role '%s' cannot revoke one of role '%s'",
			       role_name(c->who->role), role_name(v->row->role));
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
	else if (k->api) {
		(void)auth_keys_remove(k->api->deps.keys, k->id);
		tell(k, "key.revoked", false);
	}
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

	if (!keys_find_sandbox(c))
		return;
	auth_keys_each(c->api->deps.keys, look, &v);
	if (!may_revoke(c, &v))
		return;
	k = write_create(c);
	if (!k)
		return problem_reply(c, &(struct err){ ENOMEM, "key" });
	r = str_copy(k->id, sizeof(k->id), v.id);
	if (r == 0)
		r = str_copy(k->owner, sizeof(k->owner), v.row->owner);
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

/* ---- the end of a user ---- */

struct owned {
	const char *owner;
	size_t n;
	char ids[EXPIRED_BATCH][ID_LEN + 1];
};

static void add_owned(void *user, const struct key_row *row)
{
	struct owned *all = user;

	if (all->n < EXPIRED_BATCH && strcmp(row->owner, all->owner) == 0)
		(void)str_copy(all->ids[all->n++], sizeof(all->ids[0]), row->id);
}

int keys_end_owner(struct api *api, const char *owner)
{
	struct owned all;
	int r = 0;

	do {
		all = (struct owned){ .owner = owner };
		auth_keys_each(api->deps.keys, add_owned, &all);
		for (size_t i = 0; i < all.n && r == 0; i++) {
			r = store_delete_key(api->deps.store, all.ids[i], NULL, NULL);
			if (r == 0)
				(void)auth_keys_remove(api->deps.keys, all.ids[i]);
		}
	} while (all.n == EXPIRED_BATCH && r == 0);
	call_streams_check(api);
	return r;
}
