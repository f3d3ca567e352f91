/* Forks, and snapshots as templates of their own. */
#include "sandbox/snapshot.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "api/call.h"
#include "api/object_list.h"
#include "api/problem.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"
#include "e2b/handlers.h"
#include "e2b/note.h"
#include "e2b/queries.h"
#include "e2b/sandbox_bodies.h"
#include "e2b/sandbox_json.h"
#include "e2b/sandboxes.h"
#include "e2b/snapshots.h"
#include "e2b/template_names.h"
#include "net/http.h"
#include "json/jw.h"

#define PAGE 100
#define SCAN_MAX 500 /* snapshots that are looked at for a page with a filter */

const struct route_query e2b_query_snapshots[] = {
	{ "sandboxID", QUERY_TEXT, 0, 64, NULL, "only those of it" },
	{ "name", QUERY_TEXT, 0, NOTE_TEMPLATE_MAX, NULL, "only the one of that name or id" },
	{ "limit", QUERY_U64, 1, PAGE, NULL, "how many at most" },
	{ "nextToken", QUERY_TEXT, 0, 0, NULL, "X-Next-Token of the page before" },
	{ 0 },
};

/* ---- forks ---- */

static void forked(void *user, struct sandbox *const *made, size_t n, const struct err *err)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct api_call *c = user;
	struct jw w = jw_begin(&b);
	struct sandbox_info info;

	if (err)
		return problem_reply(c, err);
	jw_array_begin(&w);
	for (size_t i = 0; i < n; i++) {
		sandbox_info(made[i], &info);
		jw_object_begin(&w);
		jw_key(&w, "sandbox");
		e2b_write_sandbox(c, &w, &info);
		jw_object_end(&w);
	}
	jw_array_end(&w);
	call_reply(c, 201, &w);
}

void e2b_sandbox_fork(struct api_call *c)
{
	const struct body_e2b_fork *body = c->body;
	struct fork_request req = {
		.count = body->count, .name = "", .key_id = c->who->key_id, .trace = call_trace(c)
	};
	struct sandbox *sb = e2b_find(c);
	struct sandbox_info info;

	if (!sb || !e2b_timeout(c, body->timeout_s, &req.timeout_ms))
		return;
	sandbox_info(sb, &info);
	if (info.state != SANDBOX_RUNNING)
		return problem_status(c, 409, "sandbox '%s' is paused", info.id);
	req.owner = info.owner;
	sandbox_fork(sb, &req, forked, c);
}

/* ---- snapshots ---- */

static void write_snapshot(struct jw *w, const struct object *o)
{
	jw_object_begin(w);
	jw_str_field(w, "snapshotID", o->id);
	jw_key(w, "names");
	jw_array_begin(w);
	if (o->name[0] != '\0')
		jw_string(w, o->name);
	jw_array_end(w);
	jw_object_end(w);
}

static void taken(void *user, struct object *o, const struct err *err)
{
	if (err)
		return problem_reply(user, err);
	call_set_subject(user, o->id);
	object_reply(user, 201, o, write_snapshot);
}

void e2b_snapshot_create(struct api_call *c)
{
	const struct body_e2b_snapshot *body = c->body;
	char name[NOTE_TEMPLATE_MAX + 1] = "";
	struct sandbox *sb = e2b_find(c);

	if (!sb)
		return;
	for (size_t i = 0; body->name && body->name[i]; i++) /* fits: the body's table */
		name[i] = (char)tolower((unsigned char)body->name[i]);
	snapshot_replace(sb, name, taken,
			 c); /* to them a name has builds, of which the last counts */
}

struct wanted {
	const char *sandbox_id;
};

static bool is_wanted(const struct object *o, const struct wanted *want)
{
	const struct snapshot *s = o->data;

	return !want->sandbox_id || strcmp(s->sandbox_id, want->sandbox_id) == 0;
}

static void reply_page(struct api_call *c, struct object *const *found, size_t n, bool more)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);

	jw_array_begin(&w);
	for (size_t i = 0; i < n; i++)
		write_snapshot(&w, found[i]);
	jw_array_end(&w);
	e2b_next_token(c, more && n > 0, n ? found[n - 1]->created_ms : 0,
		       n ? found[n - 1]->id : "");
	call_reply(c, 200, &w);
}

static void list(struct api_call *c, const struct wanted *want, const struct cursor *at,
		 size_t limit)
{
	struct object_filter f = { .owner = c->who->owner,
				   .before_ms = at->before_ms,
				   .before_id = at->before_ms ? at->before_id : NULL };
	size_t cap = want->sandbox_id ? SCAN_MAX : limit, n, kept = 0;
	struct object **found = arena_array(http_arena(c->http), cap, sizeof(struct object *));
	bool more = false;

	if (!found)
		return problem_reply(c, &(struct err){ ENOMEM, "snapshots" });
	n = objects_list(sandboxes_objects(c->api->deps.sandboxes, OBJECTS_SNAPSHOT), &f, found,
			 cap, &more);
	for (size_t i = 0; i < n; i++) {
		if (!is_wanted(found[i], want))
			continue;
		if (kept == limit) {
			more = true;
			break;
		}
		found[kept++] = found[i];
	}
	reply_page(c, found, kept, more);
}

void e2b_snapshot_list(struct api_call *c)
{
	struct cursor cursor = { 0 };
	struct wanted want = { 0 };
	const char *name = NULL;
	struct object *named;
	uint64_t limit = PAGE;

	if (!call_query(c, "sandboxID", &want.sandbox_id) || !call_query(c, "name", &name) ||
	    !call_query_u64(c, "limit", &limit) || !e2b_take_token(c, &cursor))
		return;
	if (!name)
		return list(c, &want, &cursor, limit);
	named = template_names_snapshot(c, name);
	reply_page(c, &named, named && is_wanted(named, &want) ? 1 : 0, false);
}

bool e2b_snapshot_delete(struct api_call *c, const char *name)
{
	struct object *o = template_names_snapshot(c, name);

	if (!o)
		return false;
	objects_remove(sandboxes_objects(c->api->deps.sandboxes, OBJECTS_SNAPSHOT), o->id,
		       object_removed, c);
	return true;
}
