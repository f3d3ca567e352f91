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
#include "sandbox/template_own.h"
#include "json/jw.h"

#define POOLS_MAX 256u
#define WISH_BYTES_MAX (64u << 10)
#define NOBODY "" /* the owner of every pool: names are unique on the machine */

static const char *const levels[] = { "standard", "high", "custom" };

/* ---- as it is kept ---- */

/* "": its template is built in. */
static const char *owner_of(const struct pool_wish *wish)
{
	return wish->owner && !template_find(wish->runtime) ? wish->owner : "";
}

static int write_wish(const struct pool_wish *wish, struct buf *b)
{
	struct jw w = jw_begin(b);

	jw_object_begin(&w);
	jw_str_field(&w, "name", wish->name);
	jw_str_field(&w, "runtime", wish->runtime);
	jw_str_field(&w, "owner", owner_of(wish));
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

static int recipe_of(struct sandboxes *all, const struct pool_wish *wish, struct recipe *ret,
		     struct err *err)
{
	const struct template_row *row = template_find(wish->runtime);
	const struct object *o = NULL;
	struct layers rest = { 0 };
	struct kit k = { 0 };

	if (row)
		(void)str_copy(k.runtime, sizeof(k.runtime), row->name);
	else if ((o = template_own_find(all, owner_of(wish), wish->runtime)))
		k = kit_of_template(o->data, &rest);
	else
		return err_set(err, EINVAL, "runtime: there is no '%.60s'", wish->runtime);
	if (rest.n > 0)
		return err_set(err, EINVAL, "runtime: '%.60s' has more than %d layers of files",
			       wish->runtime, KIT_LAYERS_MAX);
	return kit_recipe(&k, ret, err);
}

/* The same, with what the pool adds to it. */
static int full_recipe(struct sandboxes *all, const struct pool_wish *wish, struct recipe *ret,
		       struct err *err)
{
	int r = recipe_of(all, wish, ret, err);

	if (r == 0 && wish->preload.len > 0)
		r = preload_text(&wish->preload, ret->preload, sizeof(ret->preload));
	return r < 0 && !err_code(err) ? err_sys(err, r, "preloadPackages") : r;
}

/* What sandboxes of the template are made of from now on, and how many of it wait. */
static int apply(struct sandboxes *all, struct pool *p, struct err *err)
{
	uint32_t slot, base;
	struct recipe recipe, full;
	struct pool_spec spec = spec_of(&p->wish), none = { 0 };
	int r = recipe_of(all, &p->wish, &recipe, err);

	if (r == 0)
		r = full_recipe(all, &p->wish, &full, err);
	if (r == 0)
		r = slot_hold(all, &recipe, &base, err);
	if (r < 0)
		return r;
	r = slot_hold(all, &full, &slot, err);
	if (r == 0 && layers_hold(all, &full.layers) < 0) {
		slot_drop(all, slot);
		r = err_sys(err, ENOMEM, "warm pool");
	}
	if (r == 0) {
		p->layers = full.layers;
		p->slot = slot;
		slot_set_pool(all, slot, &spec);
		if (slot != base) { /* nobody is served from there any more */
			slot_set_pool(all, base, &none);
			p->base = slot_again(all, base);
		}
	}
	slot_drop(all, base);
	return r;
}

static void unapply(struct sandboxes *all, struct pool *p)
{
	if (p->slot == 0)
		return;
	slot_set_pool(all, p->slot, NULL);
	slot_drop(all, p->slot);
	if (p->base > 0) {
		slot_set_pool(all, p->base, NULL);
		slot_drop(all, p->base);
	}
	p->slot = p->base = 0;
	layers_drop(all, &p->layers); /* behind the slots: they keep no layer in use */
	p->layers.n = 0;
}

static void pool_changed(struct sandboxes *all, void *before, void *now)
{
	struct pool *p = now;
	struct err err = { 0 };

	if (before)
		unapply(all, before);
	if (!all->objects[OBJECTS_TEMPLATE])
		return; /* pools_loaded() is to come */
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

/* ---- following ---- */

static void follow(void *user, struct object *o)
{
	struct sandboxes *all = user;
	struct pool *p = o->data;
	struct recipe recipe;
	struct err err = { 0 };
	uint32_t slot = 0;

	if (full_recipe(all, &p->wish, &recipe, &err) < 0) {
		unapply(all, p); /* its template is gone */
		return;
	}
	if (slot_hold(all, &recipe, &slot, &err) == 0 && slot != p->slot) {
		unapply(all, p);
		(void)apply(all, p, &err);
	}
	slot_drop(all, slot);
	if (err.code)
		log_warn("sandbox", "the warm pool '%s' is not kept: %s", p->wish.name, err.text);
}

void pools_loaded(struct sandboxes *all)
{
	objects_each(all->objects[OBJECTS_POOL], follow, all);
}

static void run_follow(struct later *l, bool is_over)
{
	struct sandboxes *all = LIST_ENTRY(l, struct sandboxes, pools_later);

	list_init(&l->node);
	if (!is_over)
		pools_loaded(all);
}

void pools_follow(struct sandboxes *all)
{
	if (all->objects[OBJECTS_POOL] && list_is_empty(&all->pools_later.node))
		later_post(all, &all->pools_later, run_follow);
}

/* ---- changing ---- */

static bool is_of_template(const struct object *o, const void *arg)
{
	const struct pool *p = o->data;

	return owner_of(&p->wish)[0] == '\0' && strcmp(p->wish.runtime, arg) == 0;
}

const struct pool *pool_of_template(struct sandboxes *all, const char *template)
{
	struct objects *pools = all->objects[OBJECTS_POOL];
	struct object *o = pools ? objects_search(pools, is_of_template, template) : NULL;

	return o ? o->data : NULL;
}

static bool has_slot(const struct object *o, const void *arg)
{
	const struct pool *p = o->data;

	return p->slot == *(const uint32_t *)arg;
}

/* The pool that boxes of this one would wait in, too: what is the same shares it. */
static int check_alone(struct sandboxes *all, const struct pool_wish *wish, struct err *err)
{
	const struct object *o = NULL;
	struct recipe recipe;
	uint32_t slot = 0;
	int r = full_recipe(all, wish, &recipe, err);

	if (r == 0)
		r = slot_hold(all, &recipe, &slot, err);
	if (r == 0)
		o = objects_search(all->objects[OBJECTS_POOL], has_slot, &slot);
	slot_drop(all, slot);
	if (o || (r == 0 && owner_of(wish)[0] == '\0' && pool_of_template(all, wish->runtime)))
		r = err_set(err, EEXIST, "runtime: '%s' has a warm pool already", wish->runtime);
	return r;
}

static int check_preload(const struct pool_wish *wish, const struct recipe *recipe, struct err *err)
{
	char preload[RECIPE_PRELOAD_MAX + 1];
	struct template_spec t = { .id = 1, .preload = preload };

	if (wish->preload.len == 0)
		return 0;
	if (owner_of(wish)[0] != '\0')
		return err_set(err, EINVAL,
			       "preloadPackages: a template that is not built in has its own");
	if (!(recipe->flags & TEMPLATE_WARM_PYTHON))
		return err_set(err, EINVAL, "preloadPackages: no Python waits in boxes of '%.60s'",
			       wish->runtime);
	if (preload_text(&wish->preload, preload, sizeof(preload)) < 0)
		return err_set(err, EINVAL, "preloadPackages: too long together");
	return spec_check_template(&t, err) < 0
		       ? err_set(err, EINVAL, "preloadPackages: want names of modules")
		       : 0;
}

/* Fills in what was left open. */
static int check_wish(struct sandboxes *all, struct pool_wish *wish, struct err *err)
{
	const struct template_row *row = template_find(wish->runtime);
	struct recipe recipe;
	int r = check_name(wish->name, err);

	if (r == 0)
		r = recipe_of(all, wish, &recipe, err);
	if (r < 0)
		return r;
	if (row)
		wish->runtime = row->name;
	if (wish->level != LEVEL_STANDARD)
		return err_set(err, EINVAL,
			       "securityLevel: only 'standard' can be had on this server");
	if (wish->max == UINT32_MAX)
		wish->max = wish->min > all->settings.pool_max ? wish->min : all->settings.pool_max;
	if (wish->max < wish->min)
		return err_set(err, EINVAL, "maxSize: want at least minSize");
	return check_preload(wish, &recipe, err);
}

void pool_create(struct sandboxes *all, const struct pool_wish *wish, object_cb cb, void *user)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct pool_wish full = *wish;
	struct err err = { 0 };
	int r = check_wish(all, &full, &err);

	if (r == 0)
		r = capacity_admit_waiting(all, full.max, &err);
	if (r == 0)
		r = check_alone(all, &full, &err);
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
	if (r == 0 && full.max > p->wish.max)
		r = capacity_admit_waiting(all, full.max - p->wish.max, &err);
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
