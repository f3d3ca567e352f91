#include "sandbox/kit.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "sandbox/pool.h"
#include "sandbox/recipe.h"
#include "sandbox/slot.h"
#include "sandbox/template.h"
#include "sandbox/template_own.h"
#include "json/jw.h"

struct kit kit_of_template(const struct template_own *t, struct layers *ret_rest)
{
	struct kit k = { .make = t->make, .layers = t->layers };

	*ret_rest = (struct layers){ 0 };
	(void)str_copy(k.runtime, sizeof(k.runtime), t->base);
	if (k.layers.n > KIT_LAYERS_MAX) {
		for (unsigned i = KIT_LAYERS_MAX; i < k.layers.n; i++)
			(void)layers_push(ret_rest, t->layers.ids[i]);
		k.layers.n = KIT_LAYERS_MAX;
	}
	return k;
}

int kit_copy(const struct kit *k, struct kit *ret)
{
	struct kit to = *k;
	int r = 0;

	to.arena = NULL;
	if (!makeup_is_plain(&k->make)) {
		to.arena = arena_create(MAKEUP_BYTES_MAX);
		r = to.arena ? makeup_copy(&k->make, to.arena, &to.make) : -ENOMEM;
	} else {
		to.make = (struct makeup){ 0 };
	}
	if (r < 0)
		to.arena = arena_free(to.arena);
	else
		*ret = to;
	return r;
}

void kit_done(struct kit *k)
{
	k->arena = arena_free(k->arena);
	k->make = (struct makeup){ 0 };
}

void kit_write(const struct kit *k, struct jw *w)
{
	jw_str_field(w, "runtime", k->runtime);
	jw_key(w, "base");
	layers_write(&k->layers, w);
	makeup_write(&k->make, w);
}

int kit_read(struct jv object, struct kit *ret)
{
	const char *runtime = jv_text(jv_get(object, "runtime"));
	struct kit k = { .arena = arena_create(MAKEUP_BYTES_MAX) };
	int r = k.arena ? 0 : -ENOMEM;

	if (r == 0 && (!runtime || str_copy(k.runtime, sizeof(k.runtime), runtime) < 0))
		r = -EINVAL;
	if (r == 0)
		r = layers_read(jv_get(object, "base"), &k.layers);
	if (r == 0)
		r = makeup_read(object, k.arena, &k.make);
	if (r == 0 && makeup_is_plain(&k.make))
		kit_done(&k);
	if (r < 0)
		(void)arena_free(k.arena);
	else
		*ret = k;
	return r;
}

/* ---- boxes of it ---- */

int kit_recipe(const struct kit *k, struct recipe *ret, struct err *err)
{
	const struct template_row *t = template_find(k->runtime);
	const struct makeup *m = &k->make;
	int r;

	if (!t)
		return err_set(err, EINVAL, "template: there is no '%.60s'", k->runtime);
	*ret = (struct recipe){ .root = m->root,
				.flags = t->flags | m->strict |
					 (kit_snapshot_flags(k) ? TEMPLATE_WRITABLE_ROOT : 0),
				.layers = k->layers };
	/* All of it can be written to already. */
	r = t->flags & TEMPLATE_WRITABLE_ROOT
		    ? 0
		    : makeup_writable(m, ret->writable, sizeof(ret->writable));
	if (r == 0)
		r = makeup_preload(&m->preload, ret->preload, sizeof(ret->preload));
	if (r == 0)
		r = makeup_preload(&m->preload_node, ret->preload_node, sizeof(ret->preload_node));
	if (m->preload.len + m->preload_node.len > 0)
		ret->flags |= TEMPLATE_OWN_PRELOAD;
	return r < 0 ? err_sys(err, r, "preload") : 0;
}

int kit_slot(struct sandboxes *all, const struct kit *k, uint32_t strict, uint32_t *ret,
	     struct err *err)
{
	const struct pool *p = pool_of_template(all, k->runtime);
	bool is_plain = k->layers.n == 0 && makeup_needs_no_box(&k->make);
	struct recipe recipe;
	int r;

	if (p && p->slot > 0 && strict == 0 && is_plain) {
		*ret = slot_again(all, p->slot);
		return 0;
	}
	r = kit_recipe(k, &recipe, err);
	if (r < 0)
		return r;
	recipe.flags |= strict;
	return slot_hold(all, &recipe, ret, err);
}

uint32_t kit_snapshot_flags(const struct kit *k)
{
	const struct template_row *t = template_find(k->runtime);

	if (t && (t->flags & TEMPLATE_WRITABLE_ROOT))
		return SNAPSHOT_ROOT;
	return k->make.writable_root || k->make.writable.len > 0 ? SNAPSHOT_ROOT : 0;
}
