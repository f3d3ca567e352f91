#include "sandbox/credential.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "json/jv.h"

/* Whoever keeps it knows what is in it; here it is an object, and that is all. */
static int credential_parse(const char *text, void **ret)
{
	struct jv_doc *doc = NULL;
	int r = jv_parse(text, strlen(text), CREDENTIAL_BYTES_MAX, &doc, NULL);

	if (r == 0 && jv_kind(jv_root(doc)) != JV_OBJECT)
		r = -EINVAL;
	doc = jv_free(doc);
	if (r < 0)
		return r == -ENOMEM ? r : -EINVAL;
	*ret = calloc(1, 1);
	return *ret ? 0 : -ENOMEM;
}

const struct object_kind credential_kind = {
	.name = "credential",
	.noun = "credential",
	.max = CREDENTIAL_MAX,
	.owner_max = CREDENTIAL_MAX,
	.parse = credential_parse,
	.free = free,
};

static struct object *find(struct sandboxes *all, const char *name)
{
	return objects_by_name(sandboxes_objects(all, OBJECTS_CREDENTIAL), CREDENTIAL_OWNER, name);
}

const char *credential_find(struct sandboxes *all, const char *name)
{
	const struct object *o = find(all, name);

	return o && !o->is_new && !o->is_unwanted ? o->text : NULL;
}

void credential_put(struct sandboxes *all, const char *name, const char *text, object_cb cb,
		    void *user)
{
	struct objects *t = sandboxes_objects(all, OBJECTS_CREDENTIAL);
	const struct object *o = find(all, name);
	struct object_put put = { .owner = CREDENTIAL_OWNER, .name = name, .text = text };

	if (o && text)
		objects_change(t, o->id, 0, text, cb, user);
	else if (o)
		objects_remove(t, o->id, cb, user);
	else if (text)
		objects_add(t, &put, cb, user);
	else
		cb(user, NULL, NULL);
}
