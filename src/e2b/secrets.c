/* Secrets of the control plane: a table that is written and never read out. */
#include "sandbox/vault.h"

#include <errno.h>

#include "api/call.h"
#include "api/object_list.h"
#include "api/problem.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"
#include "e2b/handlers.h"
#include "e2b/queries.h"
#include "e2b/sandbox_bodies.h"
#include "e2b/sandboxes.h"
#include "net/http.h"
#include "json/jw.h"

#define PAGE 100

const struct route_query e2b_query_secrets[] = {
	{ "limit", QUERY_U64, 1, PAGE, NULL, "how many at most" },
	{ "nextToken", QUERY_TEXT, 0, 0, NULL, "X-Next-Token of the page before" },
	{ 0 },
};

static void write_secret(struct jw *w, const struct object *o)
{
	char id[sizeof(VAULT_ID_PREFIX) + ID_LEN] = "";
	const struct vault_secret *s = o->data;

	(void)str_format(id, sizeof(id), "%s%s", VAULT_ID_PREFIX, o->id);
	jw_object_begin(w);
	jw_str_field(w, "secretID", id);
	jw_str_field(w, "name", o->name);
	jw_uint_field(w, "currentVersion", s->version);
	jw_key(w, "metadata");
	jw_object_begin(w);
	for (size_t i = 0; i < s->metadata.len; i++)
		jw_str_field(w, s->metadata.items[i].name, s->metadata.items[i].value);
	jw_object_end(w);
	jw_iso_field(w, "createdAt", o->created_ms);
	jw_iso_field(w, "updatedAt", o->updated_ms);
	jw_object_end(w);
}

/* NULL after 404. An admin, too, has own ones only. */
static struct object *find(struct api_call *c)
{
	const char *said = call_param(c, "sid");
	struct object *o = vault_find(c->api->deps.sandboxes, c->who->owner, said);

	if (!o)
		problem_status(c, 404, "there is no secret '%.64s'", said);
	return o;
}

static void made(void *user, struct object *o, const struct err *err)
{
	if (err)
		return problem_reply(user, err);
	call_set_subject(user, o->id);
	object_reply(user, 201, o, write_secret);
}

void e2b_secret_create(struct api_call *c)
{
	vault_add(c->api->deps.sandboxes, c->who->owner, c->body, made, c);
}

static void changed(void *user, struct object *o, const struct err *err)
{
	if (err)
		return problem_reply(user, err);
	object_reply(user, 200, o, write_secret);
}

void e2b_secret_change(struct api_call *c)
{
	struct object *o = find(c);

	if (o)
		vault_change(c->api->deps.sandboxes, o->id, c->body, changed, c);
}

void e2b_secret_get(struct api_call *c)
{
	struct object *o = find(c);

	if (o)
		object_reply(c, 200, o, write_secret);
}

void e2b_secret_delete(struct api_call *c)
{
	struct object *o = find(c);

	if (o)
		vault_remove(c->api->deps.sandboxes, o->id, object_removed, c);
}

void e2b_secret_list(struct api_call *c)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct object_filter f = { .owner = c->who->owner };
	struct object **found;
	struct cursor at = { 0 };
	struct jw w = jw_begin(&b);
	uint64_t limit = PAGE;
	bool more = false;
	size_t n;

	if (!call_query_u64(c, "limit", &limit) || !e2b_take_token(c, &at))
		return;
	found = arena_array(http_arena(c->http), limit, sizeof(struct object *));
	if (!found)
		return problem_reply(c, &(struct err){ ENOMEM, "secrets" });
	f.before_ms = at.before_ms;
	f.before_id = at.before_ms ? at.before_id : NULL;
	n = objects_list(sandboxes_objects(c->api->deps.sandboxes, OBJECTS_SECRET), &f, found,
			 limit, &more);
	jw_array_begin(&w);
	for (size_t i = 0; i < n; i++)
		write_secret(&w, found[i]);
	jw_array_end(&w);
	e2b_next_token(c, more && n > 0, n ? found[n - 1]->created_ms : 0,
		       n ? found[n - 1]->id : "");
	call_reply(c, 200, &w);
}
