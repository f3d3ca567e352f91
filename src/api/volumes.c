/* /volumes: file systems that outlive sandboxes. */
#include "sandbox/volume.h"

#include "api/bodies.h"
#include "api/call.h"
#include "api/handlers.h"
#include "api/object_list.h"
#include "api/problem.h"
#include "json/jw.h"

static void write_volume(struct jw *w, const struct object *o)
{
	static const char *const states[] = { "making", "ready", "leaving" };
	const struct volume *v = o->data;

	jw_object_begin(w);
	jw_str_field(w, "id", o->id);
	jw_str_field(w, "name", o->name);
	jw_str_field(w, "owner", o->owner);
	jw_uint_field(w, "size", v->bytes);
	jw_str_field(w, "status", states[o->state <= VOLUME_LEAVING ? o->state : VOLUME_LEAVING]);
	jw_iso_field(w, "createdAt", o->created_ms);
	jw_object_end(w);
}

static void made(void *user, struct object *o, const struct err *err)
{
	if (err)
		return problem_reply(user, err);
	object_reply(user, 201, o, write_volume);
}

void api_volume_create(struct api_call *c)
{
	const struct body_volume *body = c->body;

	volume_create(c->api->deps.sandboxes, c->who->owner, body->name, body->bytes, made, c);
}

void api_volume_list(struct api_call *c)
{
	object_reply_list(c, OBJECTS_VOLUME, &(struct object_filter){ .owner = call_owner(c) },
			  write_volume);
}

static struct object *find(struct api_call *c)
{
	return object_of_call(c, OBJECTS_VOLUME, "volume", call_param(c, "vid"));
}

void api_volume_get(struct api_call *c)
{
	struct object *o = find(c);

	if (o)
		object_reply(c, 200, o, write_volume);
}

void api_volume_delete(struct api_call *c)
{
	struct object *o = find(c);

	if (o)
		volume_delete(c->api->deps.sandboxes, o->id, object_removed, c);
}
