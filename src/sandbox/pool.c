#include "sandbox/pool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/str.h"
#include "sandbox/check.h"
#include "sandbox/kit.h"
#include "sandbox/recipe.h"
#include "sandbox/registry.h"
#include "sandbox/slot.h"
#include "json/jw.h"

#define POOLS_MAX 256u
#define WISH_BYTES_MAX (64u << 10)
#define NOBODY "" /* the owner of every pool: names are unique on the machine */

static const char *const levels[] = { "standard", "high", "custom" };

/* ---- as it is kept ---- */

static int write_wish(const struct pool_wish *wish, struct buf *b)
{
	struct jw w = jw_begin(b);

	jw_object_begin(&w);
	jw_str_field(&w, "name", wish->name);
	jw_str_field(&w, "runtime", wish->runtime);
	jw_uint_field(&w, "minSize", wish->min);
	jw_uint_field(&w, "maxSize", wish->max);
	jw_str_field(&w, "securityLevel", levels[wish->level]);
	jw_key(&w, "preloadPackages");
	jw_array_begin(&w);
	for (size_t i = 0; i < wish->preload.len; i++)
		jw_string(&w, wish->preload.items[i]);
	jw_array_end(&w);
	jw_key(&w, "autoScaling");
	jw_object_begin(&w);
	jw_bool_field(&w, "enabled", wish->scaling.enabled);
	jw_uint_field(&w, "targetUtilization", wish->scaling.utilization);
	jw_double_field(&w, "scaleDownDelay", (double)wish->scaling.quiet_ms / 1e3);
	jw_object_end(&w);
	jw_object_end(&w);
	return jw_end(&w);
}

static void pool_free(void *data)
{
	struct pool *p = data;

	(void)arena_free(p->arena);
	free(p);
}

static int pool_parse(const char *text, void **ret)
{
	struct pool *p = calloc(1, sizeof(*p));
	struct jv_doc *doc = NULL;
	int r = p && (p->arena = arena_create(WISH_BYTES_MAX)) ? 0 : -ENOMEM;

	if (r == 0)
		r = jv_parse(text, strlen(text), WISH_BYTES_MAX, &doc, NULL);
	if (r == 0) {
		p->wish = pool_defaults;
		r = jv_decode_known(jv_root(doc), pool_fields, POOL_FIELDS, p->arena, &p->wish,
				    NULL);
	}
	(void)jv_free(doc);
	if (r == 0)
		*ret = p;
	else if (p)
		pool_free(p);
	return r == 0 || r == -ENOMEM ? r : -EINVAL;
}

/* ---- the launcher's side ---- */

static int preload_text(const struct jv_strings *names, char *dst, size_t size)
{
	_cleanup_(buf_done) struct buf b = { 0 };

	for (size_t i = 0; i < names->len; i++)
		(void)buf_printf(&b, "%s%s", i ? "," : "", names->items[i]);
	return b.failed ? -E2BIG : str_copy(dst, size, buf_str(&b));
}

static struct pool_spec spec_of(const struct pool_wish *wish)
{
	const struct pool_scaling *s = &wish->scaling;

	return (struct pool_spec){ .min = wish->min,
				   .max = s->enabled ? wish->max : wish->min,
				   .quiet_ms = (uint32_t)s->quiet_ms,
				   .utilization = s->utilization };
}

static int recipe_of(const char *runtime, struct recipe *ret, struct err *err)
{
	struct kit k = { 0 };

	if (str_copy(k.runtime, sizeof(k.runtime), runtime) < 0)
		return err_set(err, EINVAL, "runtime: there is no '%.60s'", runtime);
	return kit_recipe(&k, ret, err);
}

/* What sandboxes of the template are made of from now on, and how many of it wait. */
static int apply(struct sandboxes *all, struct pool *p, struct err *err)
{
	uint32_t slot, base;
	struct recipe recipe;
	struct pool_spec spec = spec_of(&p->wish), none = { 0 };
	int r = recipe_of(p->wish.runtime, &recipe, err);

	if (r == 0)
		r = slot_hold(all, &recipe, &base, err);
	if (r < 0)
		return r;
	r = preload_text(&p->wish.preload, recipe.preload, sizeof(recipe.preload));
	r = r < 0 ? err_sys(err, r, "preloadPackages") : slot_hold(all, &recipe, &slot, err);
	if (r == 0) {
		p->slot = slot;
		slot_set_pool(all, slot, &spec);
		if (slot != base) /* nobody is served from there any more */
			slot_set_pool(all, base, &none);
	}
	slot_drop(all, base);
	return r;
}

static void unapply(struct sandboxes *all, struct pool *p)
{
	struct recipe recipe;
	struct err err = { 0 };
	uint32_t base;

	if (p->slot == 0)
		return;
	slot_set_pool(all, p->slot, NULL);
	if (recipe_of(p->wish.runtime, &recipe, &err) == 0 &&
	    slot_hold(all, &recipe, &base, &err) == 0) {
		if (base != p->slot)
			slot_set_pool(all, base, NULL);
		slot_drop(all, base);
	}
	slot_drop(all, p->slot);
	p->slot = 0;
}

static void pool_changed(struct sandboxes *all, void *before, void *now)
{
	struct pool *p = now;
	struct err err = { 0 };

	if (before)
		unapply(all, before);
	if (p && apply(all, p, &err) < 0)
		log_warn("sandbox", "the warm pool '%s' is not kept: %s", p->wish.name, err.text);
}

const struct object_kind pool_kind = {
	.name = "pool",
	.noun = "warm pool",
	.max = POOLS_MAX,
	.owner_max = POOLS_MAX,
	.parse = pool_parse,
	.free = pool_free,
	.event = "pool",
	.changed = pool_changed,
};

/* ---- changing ---- */

static bool is_of_template(const struct object *o, const void *arg)
{
	const struct pool *p = o->data;

	return strcmp(p->wish.runtime, arg) == 0;
}

const struct pool *pool_of_template(struct sandboxes *all, const char *template)
{
	struct objects *pools = all->objects[OBJECTS_POOL];
	struct object *o = pools ? objects_search(pools, is_of_template, template) : NULL;

	return o ? o->data : NULL;
}

/* Fills in what was left open. */
static int check_wish(struct sandboxes *all, struct pool_wish *wish, struct err *err)
{
	char preload[RECIPE_PRELOAD_MAX + 1];
	struct template_spec t = { .id = 1, .preload = preload };
	struct recipe recipe;
	int r = check_name(wish->name, err);

	if (r == 0)
		r = recipe_of(wish->runtime, &recipe, err);
	if (r < 0)
		return r;
	wish->runtime = template_find(wish->runtime)->name;
	if (wish->level != LEVEL_STANDARD)
		return err_set(err, EINVAL,
			       "securityLevel: only 'standard' can be had on this server");
	if (wish->max == UINT32_MAX)
		wish->max = wish->min > all->settings.pool_max ? wish->min : all->settings.pool_max;
	if (wish->max < wish->min)
		return err_set(err, EINVAL, "maxSize: want at least minSize");
	if (wish->preload.len > 0 && !(recipe.flags & TEMPLATE_WARM_PYTHON))
		return err_set(err, EINVAL, "preloadPackages: no Python waits in boxes of '%.60s'",
			       wish->runtime);
	r = preload_text(&wish->preload, preload, sizeof(preload));
	if (r < 0)
		return err_set(err, EINVAL, "preloadPackages: too long together");
	r = spec_check_template(&t, err);
	return r < 0 ? err_set(err, EINVAL, "preloadPackages: want names of modules") : 0;
}

void pool_create(struct sandboxes *all, const struct pool_wish *wish, object_cb cb, void *user)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct pool_wish full = *wish;
	struct err err = { 0 };
	int r = check_wish(all, &full, &err);

	if (r == 0 && pool_of_template(all, full.runtime))
		r = err_set(&err, EEXIST, "runtime: '%s' has a warm pool already", full.runtime);
	if (r == 0 && write_wish(&full, &b) < 0)
		r = err_sys(&err, ENOMEM, "warm pool");
	if (r < 0) {
		cb(user, NULL, &err);
		return;
	}
	objects_add(all->objects[OBJECTS_POOL],
		    &(struct object_put){ .owner = NOBODY, .name = full.name, .text = b.data }, cb,
		    user);
}

static int merge(const struct pool_patch *patch, struct arena *a, struct pool_wish *wish,
		 struct err *err)
{
	struct jv_problem problem = { 0 };
	int r = 0;

	if (patch->min != UINT32_MAX)
		wish->min = patch->min;
	if (patch->max != UINT32_MAX)
		wish->max = patch->max;
	if (patch->preload.len != SIZE_MAX)
		wish->preload = patch->preload;
	if (jv_kind(patch->scaling) != JV_ABSENT)
		r = jv_decode(patch->scaling, pool_scaling_fields, POOL_SCALING_FIELDS, a,
			      &wish->scaling, &problem);
	if (r == -ENOMEM)
		return err_sys(err, r, "warm pool");
	return r < 0 ? err_set(err, EINVAL, "autoScaling%s%s: %s", problem.field[0] ? "." : "",
			       problem.field, problem.text)
		     : 0;
}

void pool_change(struct sandboxes *all, const char *id, const struct pool_patch *patch,
		 object_cb cb, void *user)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct object *o = pool_find(all, id);
	struct pool *p = o ? o->data : NULL;
	struct pool_wish full;
	struct err err = { 0 };
	int r;

	if (!p) {
		(void)err_set(&err, ENOENT, "there is no warm pool '%.64s'", id);
		cb(user, NULL, &err);
		return;
	}
	full = p->wish;
	r = merge(patch, p->arena, &full, &err);
	if (r == 0)
		r = check_wish(all, &full, &err);
	if (r == 0 && write_wish(&full, &b) < 0)
		r = err_sys(&err, ENOMEM, "warm pool");
	if (r < 0) {
		cb(user, NULL, &err);
		return;
	}
	objects_change(all->objects[OBJECTS_POOL], o->id, 0, b.data, cb, user);
}

void pool_delete(struct sandboxes *all, const char *id, object_cb cb, void *user)
{
	struct object *o = pool_find(all, id);

	objects_remove(all->objects[OBJECTS_POOL], o ? o->id : id, cb, user);
}

/* ---- looking ---- */

struct object *pool_find(struct sandboxes *all, const char *id_or_name)
{
	return objects_find(all->objects[OBJECTS_POOL], id_or_name, NOBODY);
}
