/* /api/sessions: sessions of agents, and the sandbox of each. The paths, the words of the bodies
 * and the envelope of the answers are kagent's (docs/decisions/0050-sessions.md). */
#include "sandbox/session.h"

#include <errno.h>
#include <string.h>

#include "api/box_auth.h"
#include "api/call.h"
#include "api/handlers.h"
#include "api/problem.h"
#include "api/sessions.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"
#include "net/http.h"
#include "json/jw.h"

#define LIST_DEFAULT 500
#define LIST_BYTES (4u << 20) /* a page ends early above this */

static void write_session(struct jw *w, const struct object *o)
{
	const struct session *s = o->data;

	jw_object_begin(w);
	jw_str_field(w, "id", o->name);
	jw_str_field(w, "uid", o->id);
	jw_str_field(w, "owner", o->owner);
	session_write(&s->wish, w, false);
	jw_iso_field(w, "created_at", o->created_ms);
	jw_iso_field(w, "updated_at", o->updated_ms);
	jw_object_end(w);
}

/* {"error":false,"message":...,"data": and what follows; reply() ends it. */
static void begin(struct jw *w, const char *message)
{
	jw_object_begin(w);
	jw_bool_field(w, "error", false);
	jw_str_field(w, "message", message);
	jw_key(w, "data");
}

static void reply(struct api_call *c, int status, struct jw *w)
{
	jw_object_end(w);
	call_reply(c, status, w);
}

/* Which of the caller's own users is meant; NULL: it does not matter. False: answered. */
static bool take_user(struct api_call *c, const char **ret)
{
	*ret = http_header(c->http, "X-User-ID");
	if (!call_query(c, "user_id", ret))
		return false;
	if (*ret && (*ret)[0] == '\0')
		*ret = NULL;
	return true;
}

static bool is_of_user(const struct object *o, const char *user)
{
	const struct session *s = o->data;

	return !user || strcmp(s->wish.user, user) == 0;
}

/* NULL after an answer. */
static struct object *find(struct api_call *c)
{
	struct sandboxes *all = c->api->deps.sandboxes;
	const char *id = call_param(c, "sid"), *user;
	struct object *o;

	if (!take_user(c, &user))
		return NULL;
	o = session_find(all, c->who->owner, id);
	/* Ids are an owner's: others' are found by what is unique here. */
	if (!o && !call_owner(c))
		o = session_find_any(all, id);
	if (o && is_of_user(o, user))
		return o;
	problem_status(c, 404, "there is no session '%.64s'", id);
	return NULL;
}

/* ---- making, looking, ending ---- */

static void made(void *user, struct object *o, const struct err *err)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);
	struct api_call *c = user;

	if (err)
		return problem_reply(c, err);
	call_set_subject(c, o->name);
	begin(&w, "the session was made");
	write_session(&w, o);
	reply(c, 201, &w);
}

void api_agent_session_create(struct api_call *c)
{
	struct session_wish wish = *(const struct session_wish *)c->body;

	if (!wish.user && !take_user(c, &wish.user))
		return;
	if (wish.user && strlen(wish.user) > SESSION_TEXT_MAX)
		return problem_field(c, "user_id", "user_id: want at most %d bytes",
				     SESSION_TEXT_MAX);
	session_add(c->api->deps.sandboxes, c->who->owner, &wish, made, c);
}

static void write_page(struct api_call *c, struct object **found, size_t n, bool more,
		       const char *user)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);
	size_t told = 0;

	begin(&w, "the sessions");
	jw_array_begin(&w);
	for (; told < n && b.len < LIST_BYTES; told++)
		if (found[told]->state == SESSION_OPEN && is_of_user(found[told], user))
			write_session(&w, found[told]);
	jw_array_end(&w);
	call_write_cursor(&w, (more || told < n) && told > 0,
			  told ? found[told - 1]->created_ms : 0, told ? found[told - 1]->id : "");
	reply(c, 200, &w);
}

void api_agent_session_list(struct api_call *c)
{
	struct objects *all = sandboxes_objects(c->api->deps.sandboxes, OBJECTS_SESSION);
	struct object_filter f = { .owner = call_owner(c) };
	uint64_t limit = LIST_DEFAULT;
	struct cursor cursor = { 0 };
	struct object **found;
	const char *user;
	size_t n;
	bool more;

	if (!take_user(c, &user) || !call_query_u64(c, "limit", &limit) ||
	    !call_query_cursor(c, &cursor))
		return;
	f.before_ms = cursor.before_ms;
	f.before_id = cursor.before_ms ? cursor.before_id : NULL;
	found = arena_array(http_arena(c->http), limit, sizeof(struct object *));
	if (!found)
		return problem_reply(c, &(struct err){ ENOMEM, "list" });
	n = objects_list(all, &f, found, limit, &more);
	write_page(c, found, n, more, user);
}

void api_agent_session_get(struct api_call *c)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);
	struct object *o = find(c);

	if (!o)
		return;
	begin(&w, "the session");
	jw_object_begin(&w);
	jw_key(&w, "session");
	write_session(&w, o);
	jw_key(&w, "events"); /* what is said in a session is not kept here */
	jw_array_begin(&w);
	jw_array_end(&w);
	jw_object_end(&w);
	reply(c, 200, &w);
}

static void ended(void *user, struct object *o, const struct err *err)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);

	(void)o;
	if (err)
		return problem_reply(user, err);
	begin(&w, "the session and its sandbox have ended");
	jw_object_begin(&w);
	jw_object_end(&w);
	reply(user, 200, &w);
}

void api_agent_session_delete(struct api_call *c)
{
	struct object *o = find(c);

	if (o)
		session_end(c->api->deps.sandboxes, o, ended, c);
}

/* ---- its sandbox ---- */

/* What opens the sandbox is for those who could do as much without it. */
static int write_headers(struct api_call *c, struct jw *w, const char *id)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	int r = box_auth_write(c, id, &b);

	jw_key(w, "headers");
	jw_object_begin(w);
	if (r == 0)
		jw_str_field(w, "Authorization", buf_str(&b));
	jw_object_end(w);
	if (b.data)
		explicit_bzero(b.data, b.len);
	return r == -EPERM ? 0 : r;
}

/* created NULL: it was not asked for. */
static void reply_sandbox(struct api_call *c, const struct sandbox *sb, const bool *created)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);
	const char *base = call_base(c), *url;
	struct sandbox_info info;

	sandbox_info(sb, &info);
	url = base ? arena_printf(http_arena(c->http), "%s/sandboxes/%s/mcp", base, info.id) : NULL;
	if (!url)
		return problem_reply(c, &(struct err){ ENOMEM, "address" });
	jw_object_begin(&w);
	jw_str_field(&w, "sandbox_id", info.id);
	jw_str_field(&w, "mcp_url", url);
	jw_str_field(&w, "protocol", "streamable-http");
	if (write_headers(c, &w, info.id) < 0)
		return problem_reply(c, &(struct err){ EIO, "token" });
	jw_bool_field(&w, "ready", info.state == SANDBOX_RUNNING);
	if (created)
		jw_bool_field(&w, "created", *created);
	jw_object_end(&w);
	(void)http_header_add(c->http, "Cache-Control", "no-store"); /* the token */
	call_reply(c, 200, &w);
	if (b.data)
		explicit_bzero(b.data, b.len);
}

static struct object *find_workspace(struct api_call *c)
{
	struct object *o = find(c);
	const struct session *s = o ? o->data : NULL;

	if (!s || s->wish.workspace.enabled)
		return o;
	problem_status(c, 400, "the session has no workspace: it is not enabled");
	return NULL;
}

static void given(void *user, struct sandbox *sb, const struct err *err)
{
	struct api_call *c = user;
	struct sandbox_info info;
	bool is_new;

	if (err)
		return problem_reply(c, err);
	sandbox_info(sb, &info);
	is_new = !info.is_existing;
	call_set_subject(c, info.id);
	reply_sandbox(c, sb, &is_new);
}

void api_agent_session_provision(struct api_call *c)
{
	const struct body_session_sandbox *body = c->body;
	uint64_t wait_ms = body->timeout_ms;
	struct object *o;

	if (!call_query_ms(c, "timeout", &wait_ms))
		return;
	o = find_workspace(c);
	if (o)
		session_provision(c->api->deps.sandboxes, o, c->who->key_id, wait_ms, given, c);
}

void api_agent_session_sandbox(struct api_call *c)
{
	struct object *o = find_workspace(c);
	struct sandbox *sb = o ? session_sandbox(c->api->deps.sandboxes, o) : NULL;

	if (sb)
		reply_sandbox(c, sb, NULL);
	else if (o)
		problem_status(c, 404, "the session has no sandbox: POST makes one");
}
