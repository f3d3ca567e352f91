/* /templates/NAME/aliases: other names of versions. */
#include <string.h>

#include "api/bodies.h"
#include "api/call.h"
#include "api/handlers.h"
#include "api/object_list.h"
#include "api/problem.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "sandbox/template_alias.h"
#include "json/jw.h"

static void write_alias(struct jw *w, const struct object *o)
{
	const struct template_alias *a = o->data;

	jw_object_begin(w);
	jw_str_field(w, "name", o->name);
	jw_str_field(w, "alias", o->name + strcspn(o->name, ":") + 1);
	jw_str_field(w, "template", a->template);
	jw_iso_field(w, "createdAt", o->created_ms);
	jw_iso_field(w, "updatedAt", o->updated_ms);
	jw_object_end(w);
}

static void set(void *user, struct object *o, const struct err *err)
{
	if (err)
		return problem_reply(user, err);
	object_reply(user, 200, o, write_alias);
}

void api_alias_put(struct api_call *c)
{
	const struct body_alias *body = c->body;

	alias_put(c->api->deps.sandboxes, c->who->owner, call_param(c, "name"),
		  call_param(c, "alias"), body->version, set, c);
}

struct listing {
	struct jw *w;
	const char *owner, *name;
};

static void write_if_of(void *user, struct object *o)
{
	const struct listing *l = user;
	size_t n = strlen(l->name);

	if (strcmp(o->owner, l->owner) == 0 && strncmp(o->name, l->name, n) == 0 &&
	    o->name[n] == ':')
		write_alias(l->w, o);
}

void api_alias_list(struct api_call *c)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);
	struct listing l = { &w, c->who->owner, call_param(c, "name") };

	jw_object_begin(&w);
	jw_key(&w, "items");
	jw_array_begin(&w);
	objects_each(sandboxes_objects(c->api->deps.sandboxes, OBJECTS_ALIAS), write_if_of, &l);
	jw_array_end(&w);
	jw_object_end(&w);
	call_reply(c, 200, &w);
}

void api_alias_delete(struct api_call *c)
{
	struct sandboxes *all = c->api->deps.sandboxes;
	char full[OBJECT_NAME_MAX + 1];
	const struct object *o = NULL;

	if (str_format(full, sizeof(full), "%s:%s", call_param(c, "name"),
		       call_param(c, "alias")) == 0)
		o = alias_find(all, c->who->owner, full);
	if (!o)
		return problem_status(c, 404, "there is no alias '%.64s'", call_param(c, "alias"));
	objects_remove(sandboxes_objects(all, OBJECTS_ALIAS), o->id, object_removed, c);
}
