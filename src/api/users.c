#include "api/users.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/bodies.h"
#include "api/call.h"
#include "api/handlers.h"
#include "api/keys.h"
#include "api/problem.h"
#include "auth/users.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "net/http.h"
#include "outbound/webhooks.h"
#include "sandbox/events.h"
#include "sandbox/sandbox.h"
#include "store/store.h"
#include "json/jw.h"

#define LIST_DEFAULT 100

/* One change of one user on its way: nobody else changes them meanwhile, so that none is lost. */
struct user_write {
	struct list node;
	struct api *api;       /* NULL: the api is gone, only the store still knows of this */
	struct api_call *call; /* NULL: the client is gone */
	int status;            /* of the answer */
	struct user user;      /* what it will be */
};

static void gone(void *user, struct http_request *r)
{
	struct user_write *w = user;

	(void)r;
	w->call = NULL;
}

static void write_free(struct user_write *w)
{
	list_remove(&w->node);
	free(w);
}

void users_forget(struct api *api)
{
	LIST_FOREACH (&api->user_writes, w, struct user_write, node) {
		list_remove(&w->node);
		w->api = NULL; /* the store's answer frees it */
		w->call = NULL;
	}
}

/* NULL after an answer. */
static struct user_write *write_begin(struct api_call *c, const struct user *u, int status)
{
	struct user_write *w;

	LIST_FOREACH (&c->api->user_writes, other, struct user_write, node)
		if (strcmp(other->user.name, u->name) == 0) {
			problem_status(c, 409, "'%s' is being changed just now", u->name);
			return NULL;
		}
	w = calloc(1, sizeof(*w));
	if (!w) {
		problem_reply(c, &(struct err){ ENOMEM, "user" });
		return NULL;
	}
	w->api = c->api;
	w->call = c;
	w->status = status;
	w->user = *u;
	list_push_back(&c->api->user_writes, &w->node);
	return w;
}

/* ---- asking ---- */

static void reply_user(struct api_call *c, int status, const struct user *u)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);

	user_json(&w, c, u);
	call_reply(c, status, &w);
}

/* NULL after 404. */
static const struct user *find(struct api_call *c)
{
	const char *name = call_param(c, "name");
	const struct user *u = users_find(c->api->deps.users, name);

	if (!u)
		problem_status(c, 404, "there is no user '%.64s'", name);
	return u;
}

void api_user_get(struct api_call *c)
{
	const struct user *u = find(c);

	if (u)
		reply_user(c, 200, u);
}

static void listed(void *user, int r, const struct object_row *rows, size_t n, bool more)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct api_call *c = user;
	struct jw w = jw_begin(&b);

	if (r < 0)
		return problem_reply(c, &(struct err){ -r, "users" });
	jw_object_begin(&w);
	jw_key(&w, "items");
	jw_array_begin(&w);
	for (size_t i = 0; i < n; i++) {
		/* What is in force: also of a record that could not be read. */
		const struct user *u = users_find(c->api->deps.users, rows[i].id);

		if (u)
			user_json(&w, c, u);
	}
	jw_array_end(&w);
	call_write_cursor(&w, more, n ? rows[n - 1].created_ms : 0, n ? rows[n - 1].id : "");
	jw_object_end(&w);
	call_reply(c, 200, &w);
}

void api_user_list(struct api_call *c)
{
	const struct store_object_filter f = { .kind = USERS_KIND };
	struct cursor cursor = { 0 };
	uint64_t limit = LIST_DEFAULT;
	int r;

	if (!call_query_u64(c, "limit", &limit) || !call_query_cursor(c, &cursor))
		return;
	r = store_list_objects(c->api->deps.store, &f,
			       &(struct store_cursor){ cursor.before_ms, cursor.before_id },
			       (uint32_t)limit, listed, c);
	if (r < 0)
		problem_reply(c, &(struct err){ -r, "users" });
}

/* ---- writing ---- */

/* Of their own: who is changed may hear of it. */
static void tell(const struct user_write *w, const char *kind)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw j = jw_begin(&b);

	jw_object_begin(&j);
	jw_str_field(&j, "role", role_name(w->user.role));
	jw_str_field(&j, "status", w->user.is_disabled ? "disabled" : "active");
	jw_object_end(&j);
	events_emit(w->api->deps.events, &(struct event){ .kind = kind,
							  .owner = w->user.name,
							  .subject = w->user.name,
							  .text = jw_end(&j) < 0 ? NULL : b.data });
}

/* One who cannot be kept here is not kept in the store either. */
static int take(struct user_write *w, struct err *err)
{
	bool is_new = w->status == 201;
	int r = users_put(w->api->deps.users, &w->user);

	if (r < 0 && is_new)
		(void)store_delete_object(w->api->deps.store, USERS_KIND, w->user.name, NULL, NULL);
	if (r == -E2BIG)
		return err_set(err, E2BIG, "there are %u users, the limit", USERS_MAX);
	if (r < 0)
		return err_sys(err, r, "user");
	call_streams_check(w->api);
	tell(w, is_new ? "user.created" : "user.updated");
	return 0;
}

static void written(void *user, int r)
{
	struct user_write *w = user;
	struct err err = { 0 };

	if (r < 0)
		(void)err_sys(&err, r, "user");
	else if (w->api)
		r = take(w, &err);
	if (w->call && r < 0)
		problem_reply(w->call, &err);
	else if (w->call)
		reply_user(w->call, w->status, &w->user);
	write_free(w);
}

static void put(struct api_call *c, const struct user *u, int status)
{
	_cleanup_(buf_done) struct buf text = { 0 };
	struct user_write *w = write_begin(c, u, status);
	int r;

	if (!w)
		return;
	r = user_write(u, &text);
	if (r == 0)
		r = store_put_object(c->api->deps.store,
				     &(struct object_row){ .kind = USERS_KIND,
							   .id = u->name,
							   .owner = u->name,
							   .text = buf_str(&text),
							   .created_ms = u->created_ms,
							   .updated_ms = u->updated_ms },
				     written, w);
	if (r == 0)
		return http_on_gone(c->http, gone, w);
	write_free(w);
	problem_reply(c, &(struct err){ -r, "user" });
}

static void set_quota(struct user *u, enum quota_kind kind, uint64_t v, uint64_t unset)
{
	if (v == unset)
		return;
	u->quota.v[kind] = v;
	u->own_quota |= 1u << kind;
}

static bool set_rate(struct api_call *c, struct user *u, enum rate_class class, const char *text)
{
	char field[32];

	if (!text)
		return true;
	if (rate_parse(text, &u->rates[class]) == 0) {
		u->own_rates |= 1u << class;
		return true;
	}
	(void)str_format(field, sizeof(field), "rateLimits.%s", rate_class_name(class));
	problem_field(c, field, "%s: want a rate such as 600/m (s, m, h), or 0", field);
	return false;
}

/* What the body says, on top of what is. */
static bool apply(struct api_call *c, struct user *u)
{
	const struct body_user *body = c->body;
	const struct body_quota *q = &body->quota;

	if (body->role >= 0)
		u->role = (enum role)body->role;
	if (body->status >= 0)
		u->is_disabled = body->status == 1;
	if (body->reset_limits)
		u->own_quota = u->own_rates = 0;
	set_quota(u, QUOTA_SANDBOXES, q->sandboxes, BODY_USER_UNSET);
	set_quota(u, QUOTA_CPU, q->cpu_milli, UINT32_MAX);
	set_quota(u, QUOTA_MEMORY, q->memory, BODY_USER_UNSET);
	set_quota(u, QUOTA_DISK, q->disk, BODY_USER_UNSET);
	set_quota(u, QUOTA_EXECUTIONS, q->executions, BODY_USER_UNSET);
	set_quota(u, QUOTA_PIDS, q->pids, BODY_USER_UNSET);
	u->updated_ms = clock_wall_ms();
	return set_rate(c, u, RATE_READ, body->rates.read) &&
	       set_rate(c, u, RATE_WRITE, body->rates.write) &&
	       set_rate(c, u, RATE_EXEC, body->rates.exec) &&
	       set_rate(c, u, RATE_CREATE, body->rates.create);
}

/* Whoever does this stays an admin: there is always one. */
static bool check_self(struct api_call *c, const char *name, bool stays_admin)
{
	if (stays_admin || strcmp(name, c->who->owner) != 0)
		return true;
	problem_status(c, 409, "that would shut yourself out: another admin may do it");
	return false;
}

void api_user_create(struct api_call *c)
{
	const struct body_user *body = c->body;
	struct user u = { .role = ROLE_USER, .created_ms = clock_wall_ms() };

	if (!user_name_is_valid(body->name))
		return problem_field(c, "name", "name: " USER_NAME_WANTED);
	(void)str_copy(u.name, sizeof(u.name), body->name); /* fits: see above */
	if (users_find(c->api->deps.users, u.name))
		return problem_status(c, 409, "there is a user '%s' already", u.name);
	if (apply(c, &u) && check_self(c, u.name, u.role == ROLE_ADMIN && !u.is_disabled))
		put(c, &u, 201);
}

void api_user_patch(struct api_call *c)
{
	const struct user *found = find(c);
	struct user u;

	if (!found)
		return;
	u = *found;
	if (apply(c, &u) && check_self(c, u.name, u.role == ROLE_ADMIN && !u.is_disabled))
		put(c, &u, 200);
}

/* ---- deleting ---- */

static void deleted(void *user, int r)
{
	struct user_write *w = user;
	struct err err = { 0 };

	if (r < 0 && r != -ENOENT)
		(void)err_sys(&err, r, "user"); /* stays shut out, at least until the next start */
	else if (w->api) {
		users_remove(w->api->deps.users, w->user.name);
		tell(w, "user.deleted");
	}
	if (w->call && err.code)
		problem_reply(w->call, &err);
	else if (w->call)
		call_reply_empty(w->call);
	write_free(w);
}

/* Shut out from this moment on. The record goes last: until then it holds off whatever key the
 * store has not forgotten. */
void api_user_delete(struct api_call *c)
{
	const struct user *found = find(c);
	struct user_write *w;
	struct user u;
	int r;

	if (!found || !check_self(c, found->name, false))
		return;
	u = *found;
	u.is_disabled = true;
	w = write_begin(c, &u, 204);
	if (!w)
		return;
	r = users_put(c->api->deps.users, &u);
	if (r == 0)
		r = keys_end_owner(c->api, u.name);
	if (r == 0) {
		sandboxes_end_owner(c->api->deps.sandboxes, u.name, "its owner was deleted");
		webhooks_end_owner(c->api->deps.webhooks, u.name);
		r = store_delete_object(c->api->deps.store, USERS_KIND, u.name, deleted, w);
	}
	if (r == 0)
		return http_on_gone(c->http, gone, w);
	write_free(w);
	problem_reply(c, &(struct err){ -r, "user" });
}
