#include "sandbox/template_alias.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "sandbox/check.h"
#include "sandbox/pool.h"
#include "sandbox/registry.h"
#include "sandbox/template_own.h"
#include "json/jv.h"
#include "json/jw.h"

#define ALIASES_MAX 20000u
#define ALIASES_OWNER_MAX 1000u

/* ---- as it is kept ---- */

static int parse(const char *text, void **ret)
{
	struct template_alias *a = calloc(1, sizeof(*a));
	struct jv_doc *doc = NULL;
	const char *template = NULL;
	int r = a ? jv_parse(text, strlen(text), OBJECT_TEXT_MAX, &doc, NULL) : -ENOMEM;

	if (r == 0)
		template = jv_text(jv_get(jv_root(doc), "template"));
	if (r == 0)
		r = template ? str_copy(a->template, sizeof(a->template), template) : -EINVAL;
	(void)jv_free(doc);
	if (r == 0)
		*ret = a;
	else
		free(a);
	return r == 0 || r == -ENOMEM ? r : -EINVAL;
}

static void alias_changed(struct sandboxes *all, void *before, void *now)
{
	(void)before;
	(void)now;
	pools_follow(all);
}

const struct object_kind alias_kind = {
	.name = "template_alias",
	.noun = "alias",
	.max = ALIASES_MAX,
	.owner_max = ALIASES_OWNER_MAX,
	.parse = parse,
	.free = free,
	.changed = alias_changed,
};

static int write_text(const char *template, struct buf *b)
{
	struct jw w = jw_begin(b);

	jw_object_begin(&w);
	jw_str_field(&w, "template", template);
	jw_object_end(&w);
	return jw_end(&w);
}

/* ---- looking ---- */

struct object *alias_find(struct sandboxes *all, const char *owner, const char *full)
{
	return objects_by_name(all->objects[OBJECTS_ALIAS], owner, full);
}

static bool points_to(const struct object *o, const void *arg)
{
	const struct template_alias *a = o->data;
	const struct object *t = arg;

	return strcmp(o->owner, t->owner) == 0 && strcmp(a->template, t->name) == 0;
}

struct object *alias_of(struct sandboxes *all, const struct object *template)
{
	return objects_search(all->objects[OBJECTS_ALIAS], points_to, template);
}

/* One of the same template whose new place is not known yet. */
static bool is_moving(const struct object *o, const void *arg)
{
	const struct object *t = arg;
	size_t n = strcspn(t->name, ":") + 1;

	return o->is_writing && strcmp(o->owner, t->owner) == 0 &&
	       strncmp(o->name, t->name, n) == 0;
}

int alias_check_removal(struct sandboxes *all, const struct object *template, struct err *err)
{
	const struct object *o = alias_of(all, template);

	if (o)
		return err_set(err, EBUSY, "the alias '%s' stands for it: move or remove it first",
			       o->name);
	if (objects_search_all(all->objects[OBJECTS_ALIAS], is_moving, template))
		return err_set(err, EBUSY, "an alias of this template is just being set");
	return 0;
}

/* ---- setting ---- */

int alias_check_name(const char *alias, struct err *err)
{
	int r = check_name(alias, err);

	if (r == 0 && (alias[0] < 'a' || alias[0] > 'z' || strlen(alias) > TEMPLATE_NAME_MAX))
		r = err_set(err, EINVAL,
			    "alias: want a name that begins with a letter, at most %d long",
			    TEMPLATE_NAME_MAX);
	return r;
}

/* The version that it is to stand for. */
static int find_target(struct sandboxes *all, const char *owner, const char *name, uint64_t version,
		       const struct object **ret, struct err *err)
{
	char full[OBJECT_NAME_MAX + 1];
	const struct object *o = NULL;

	if (str_format(full, sizeof(full), "%s:%llu", name, (unsigned long long)version) == 0)
		o = objects_by_name(all->objects[OBJECTS_TEMPLATE], owner, full);
	if (!o)
		return err_set(err, ENOENT, "there is no template '%.60s' with version %llu", name,
			       (unsigned long long)version);
	if (o->is_writing)
		return err_set(err, EBUSY, "the template '%s' is just being removed", o->name);
	*ret = o;
	return 0;
}

void alias_put(struct sandboxes *all, const char *owner, const char *name, const char *alias,
	       uint64_t version, object_cb cb, void *user)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct objects *t = all->objects[OBJECTS_ALIAS];
	const struct object *target = NULL, *there;
	char full[OBJECT_NAME_MAX + 1] = "";
	struct err err = { 0 };
	int r = alias_check_name(alias, &err);

	if (r == 0)
		r = find_target(all, owner, name, version, &target, &err);
	if (r == 0 && (str_format(full, sizeof(full), "%s:%s", name, alias) < 0 ||
		       write_text(target->name, &b) < 0))
		r = err_sys(&err, ENOMEM, "alias");
	if (r < 0) {
		cb(user, NULL, &err);
		return;
	}
	there = alias_find(all, owner, full);
	if (there)
		objects_change(t, there->id, 0, b.data, cb, user);
	else
		objects_add(t, &(struct object_put){ .owner = owner, .name = full, .text = b.data },
			    cb, user);
}
