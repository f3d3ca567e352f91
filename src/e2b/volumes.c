/* Volumes of the control plane, and what of it this server does not have. */
#include "sandbox/volume.h"

#include "api/box_auth.h"
#include "api/call.h"
#include "api/object_list.h"
#include "api/problem.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "config/config.h"
#include "e2b/handlers.h"
#include "e2b/sandbox_bodies.h"
#include "net/http.h"
#include "json/jw.h"

#include <errno.h>

#define LIST_MAX 500
/* Their contract says no size; a volume has one from its beginning. */
#define VOLUME_BYTES (1ull << 30)

static void write_volume(struct jw *w, const struct object *o)
{
	jw_object_begin(w);
	jw_str_field(w, "volumeID", o->id);
	jw_str_field(w, "name", o->name);
	jw_object_end(w);
}

static void reply_with_token(struct api_call *c, int status, const struct object *o)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);
	char token[BOX_TOKEN_SIZE];
	int r = box_auth_give(c, BOX_TOKEN_VOLUME, o->id, token);

	if (r < 0 && r != -EPERM)
		return problem_reply(c, &(struct err){ -r, "token" });
	jw_object_begin(&w);
	jw_str_field(&w, "volumeID", o->id);
	jw_str_field(&w, "name", o->name);
	jw_str_field(&w, "token", r == 0 ? token : NULL); /* their contract wants the field */
	jw_object_end(&w);
	call_reply(c, status, &w);
}

static void made(void *user, struct object *o, const struct err *err)
{
	if (err)
		return problem_reply(user, err);
	call_set_subject(user, o->id);
	reply_with_token(user, 201, o);
}

void e2b_volume_create(struct api_call *c)
{
	const struct body_new_volume *body = c->body;

	volume_create(c->api->deps.sandboxes, c->who->owner, body->name, VOLUME_BYTES, made, c);
}

void e2b_volume_list(struct api_call *c)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct object **found = arena_array(http_arena(c->http), LIST_MAX, sizeof(struct object *));
	struct jw w = jw_begin(&b);
	bool more;
	size_t n;

	if (!found)
		return problem_reply(c, &(struct err){ ENOMEM, "volumes" });
	n = objects_list(sandboxes_objects(c->api->deps.sandboxes, OBJECTS_VOLUME),
			 &(struct object_filter){ .owner = c->who->owner }, found, LIST_MAX, &more);
	jw_array_begin(&w);
	for (size_t i = 0; i < n; i++)
		if (found[i]->state == VOLUME_READY)
			write_volume(&w, found[i]);
	jw_array_end(&w);
	call_reply(c, 200, &w);
}

static struct object *find(struct api_call *c)
{
	return object_of_call(c, OBJECTS_VOLUME, "volume", call_param(c, "vid"));
}

void e2b_volume_get(struct api_call *c)
{
	struct object *o = find(c);

	if (o)
		reply_with_token(c, 200, o);
}

void e2b_volume_delete(struct api_call *c)
{
	struct object *o = find(c);

	if (o)
		volume_delete(c->api->deps.sandboxes, o->id, object_removed, c);
}

/* ---- the rest ---- */

/* There is one team to a key: its owner. */
void e2b_team_list(struct api_call *c)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);

	jw_array_begin(&w);
	jw_object_begin(&w);
	jw_str_field(&w, "teamID", c->who->owner);
	jw_str_field(&w, "name", c->who->owner);
	jw_str_field(&w, "apiKey", ""); /* who asks has one; it is told once, when it is made */
	jw_bool_field(&w, "isDefault", true);
	jw_object_end(&w);
	jw_array_end(&w);
	call_reply(c, 200, &w);
}

void e2b_missing(struct api_call *c)
{
	problem_status(c, 501, "this server has no %.100s", http_path(c->http));
}
