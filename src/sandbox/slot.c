#include "sandbox/slot.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/str.h"
#include "sandbox/ask.h"
#include "sandbox/registry.h"

struct slot {
	struct recipe recipe;
	struct pool_spec pool;
	bool is_used, has_pool;
	unsigned held;
	uint64_t used_at; /* when it was last let go */
	struct err err;   /* of the launcher; code 0: none */
};

/* The first ones are the built-in templates': whoever starts the launcher tells it of them. */
struct slots {
	struct slot *items[TEMPLATE_MAX + 1]; /* owned; NULL: free. By number, from 1 on */
};

static bool is_builtin(uint32_t id)
{
	const struct template_row *rows;
	size_t n;

	rows = template_rows(&n);
	for (size_t i = 0; i < n; i++)
		if (rows[i].id == id)
			return true;
	return false;
}

static struct slot *add(struct slots *s, uint32_t id, const struct recipe *r)
{
	struct slot *slot = calloc(1, sizeof(*slot));

	if (!slot)
		return NULL;
	slot->recipe = *r;
	s->items[id] = slot;
	return slot;
}

struct slots *slots_create(void)
{
	struct slots *s = calloc(1, sizeof(*s));
	const struct template_row *rows;
	size_t n;

	rows = template_rows(&n);
	for (size_t i = 0; s && i < n; i++) {
		struct recipe r = { .root = ROOT_HOST, .flags = rows[i].flags };

		if (!add(s, rows[i].id, &r))
			s = slots_free(s);
	}
	return s;
}

struct slots *slots_free(struct slots *s)
{
	if (!s)
		return NULL;
	for (uint32_t i = 1; i <= TEMPLATE_MAX; i++)
		free(s->items[i]);
	free(s);
	return NULL;
}

/* ---- telling the launcher ---- */

static struct slot *slot_at(const struct sandboxes *all, uint32_t id)
{
	return id >= 1 && id <= TEMPLATE_MAX ? all->slots->items[id] : NULL;
}

struct telling {
	struct sandboxes *all;
	uint32_t id;
};

static void forget_telling(void *user)
{
	free(user);
}

static void on_told(void *user, const struct provider_reply *r)
{
	struct telling *t = user;
	struct slot *slot = slot_at(t->all, t->id);

	/* The first one says why: who has no template cannot have its pool either. */
	if (slot && r->code < 0 && r->code != -EPIPE && slot->err.code == 0) {
		(void)err_set(&slot->err, -r->code, "%s", r->text);
		log_warn("sandbox", "the launcher does not take template %u: %s", t->id, r->text);
	}
	free(t);
}

static void tell(struct sandboxes *all, uint32_t id, const struct ask *ask)
{
	struct telling *t = malloc(sizeof(*t));
	struct ask a = *ask;

	if (!t)
		return; /* it is told again with the next launcher */
	*t = (struct telling){ all, id };
	a.is_impatient = true;
	a.drop = forget_telling;
	ask_provider(all, &a, on_told, t);
}

static void tell_template(struct sandboxes *all, uint32_t id, struct slot *slot)
{
	const struct recipe *r = &slot->recipe;
	struct template_spec t = { .id = id,
				   .root = r->root,
				   .level = LEVEL_STANDARD,
				   .net = NET_NONE,
				   .flags = r->flags,
				   .limits = all->settings.limits,
				   .preload = r->preload,
				   .preload_node = r->preload_node,
				   .writable = r->writable,
				   .layers = layers_list(&r->layers) };

	slot->err = (struct err){ 0 };
	tell(all, id, &(struct ask){ .kind = ASK_DEFINE, .template = &t });
}

static void tell_pool(struct sandboxes *all, uint32_t id, const struct slot *slot)
{
	const struct sandbox_settings *s = &all->settings;
	bool is_default = template_find("")->id == id;
	/* Of what has files of its own there are many, each used seldom: nothing waits unasked. */
	struct pool_spec p = { .min = is_default ? s->pool_min : 0,
			       .max = slot->recipe.layers.n > 0 ? 0 : s->pool_max,
			       .quiet_ms = s->pool_quiet_ms };

	if (slot->has_pool)
		p = slot->pool;
	p.template_id = id;
	tell(all, id, &(struct ask){ .kind = ASK_POOL_SET, .pool = p });
}

void slots_tell(struct sandboxes *all)
{
	for (uint32_t id = 1; id <= TEMPLATE_MAX; id++) {
		struct slot *slot = slot_at(all, id);

		if (!slot)
			continue;
		if (!is_builtin(id) && slot->held == 0) {
			free(slot); /* nobody waits for it */
			all->slots->items[id] = NULL;
			continue;
		}
		if (!is_builtin(id))
			tell_template(all, id, slot);
		if (!is_builtin(id) || slot->has_pool)
			tell_pool(all, id, slot);
	}
}

/* ---- who has which ---- */

static bool is_same(const struct recipe *a, const struct recipe *b)
{
	return a->root == b->root && a->flags == b->flags && strcmp(a->preload, b->preload) == 0 &&
	       strcmp(a->preload_node, b->preload_node) == 0 &&
	       strcmp(a->writable, b->writable) == 0 && layers_are_same(&a->layers, &b->layers);
}

/* A free number, or that of the one that was let go first; 0: none. */
static uint32_t find_room(struct sandboxes *all)
{
	const struct slot *first = NULL;
	uint32_t oldest = 0;

	for (uint32_t id = 1; id <= TEMPLATE_MAX; id++) {
		const struct slot *slot = slot_at(all, id);

		if (!slot)
			return id;
		if (slot->held == 0 && !is_builtin(id) &&
		    (!first || slot->used_at < first->used_at)) {
			first = slot;
			oldest = id;
		}
	}
	if (oldest > 0) {
		free(all->slots->items[oldest]);
		all->slots->items[oldest] = NULL;
	}
	return oldest;
}

int slot_hold(struct sandboxes *all, const struct recipe *r, uint32_t *ret_id, struct err *err)
{
	struct slot *slot;
	uint32_t id;

	for (id = 1; id <= TEMPLATE_MAX; id++) {
		slot = slot_at(all, id);
		if (slot && is_same(&slot->recipe, r)) {
			slot->held++;
			*ret_id = id;
			return 0;
		}
	}
	id = find_room(all);
	if (id == 0)
		return err_set(err, EDQUOT, "%u different templates are in use already, the limit",
			       TEMPLATE_MAX);
	slot = add(all->slots, id, r);
	if (!slot)
		return err_sys(err, ENOMEM, "template");
	slot->held = 1;
	tell_template(all, id, slot);
	tell_pool(all, id, slot);
	*ret_id = id;
	return 0;
}

uint32_t slot_again(struct sandboxes *all, uint32_t id)
{
	struct slot *slot = slot_at(all, id);

	assert(slot); /* the caller holds it already */
	slot->held++;
	return id;
}

void slot_drop(struct sandboxes *all, uint32_t id)
{
	struct slot *slot = slot_at(all, id);

	if (!slot || slot->held == 0)
		return;
	slot->held--;
	slot->used_at = now_ms(all);
}

/* The launcher must not keep it in use. */
void slots_forget_layer(struct sandboxes *all, const char *layer_id)
{
	for (uint32_t id = 1; id <= TEMPLATE_MAX; id++) {
		struct slot *slot = slot_at(all, id);

		if (!slot || slot->held > 0 || !layers_have(&slot->recipe.layers, layer_id))
			continue;
		free(slot);
		all->slots->items[id] = NULL;
		tell(all, id, &(struct ask){ .kind = ASK_UNDEFINE, .template_id = id });
	}
}

void slot_set_pool(struct sandboxes *all, uint32_t id, const struct pool_spec *pool)
{
	struct slot *slot = slot_at(all, id);

	if (!slot)
		return;
	slot->has_pool = pool != NULL;
	if (pool)
		slot->pool = *pool;
	tell_pool(all, id, slot);
}

uint32_t slots_waiting_max(const struct sandboxes *all)
{
	uint32_t n = all->settings.pool_min;

	for (uint32_t id = 1; id <= TEMPLATE_MAX; id++) {
		const struct slot *slot = slot_at(all, id);

		if (slot && slot->has_pool)
			n += slot->pool.max;
	}
	return n;
}

int slot_error(const struct sandboxes *all, uint32_t id, struct err *err)
{
	const struct slot *slot = slot_at(all, id);

	return slot && slot->err.code ? err_copy(err, &slot->err) : 0;
}
