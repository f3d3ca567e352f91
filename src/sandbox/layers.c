#include "sandbox/layers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/map.h"
#include "base/str.h"
#include "sandbox/ask.h"
#include "sandbox/registry.h"
#include "sandbox/slot.h"
#include "json/jw.h"

/* ---- chains ---- */

struct layer_list layers_list(const struct layers *l)
{
	struct layer_list list = { .count = l->n };

	for (size_t i = 0; i < l->n; i++)
		list.ids[i] = l->ids[i];
	return list;
}

bool layers_have(const struct layers *l, const char *id)
{
	for (size_t i = 0; i < l->n; i++)
		if (strcmp(l->ids[i], id) == 0)
			return true;
	return false;
}

bool layers_are_same(const struct layers *a, const struct layers *b)
{
	for (size_t i = 0; i < a->n && i < b->n; i++)
		if (strcmp(a->ids[i], b->ids[i]) != 0)
			return false;
	return a->n == b->n;
}

int layers_push(struct layers *l, const char *id)
{
	if (l->n >= LAYERS_MAX)
		return -E2BIG;
	return str_copy(l->ids[l->n++], ID_LEN + 1, id);
}

void layers_write(const struct layers *l, struct jw *w)
{
	jw_array_begin(w);
	for (size_t i = 0; i < l->n; i++)
		jw_string(w, l->ids[i]);
	jw_array_end(w);
}

int layers_read(struct jv v, struct layers *ret)
{
	*ret = (struct layers){ 0 };
	if (jv_kind(v) == JV_ABSENT)
		return 0;
	if (jv_kind(v) != JV_ARRAY)
		return -EINVAL;
	JV_FOREACH (v, it) {
		const char *id = jv_text(it.value);

		if (!id || !id_is_valid(id) || layers_push(ret, id) < 0)
			return -EINVAL;
	}
	return 0;
}

/* ---- who needs them ---- */

struct layer_use {
	size_t count;
};

static void release(struct sandboxes *all, const char *id)
{
	struct layer_use *use = map_get(all->layers, id, strlen(id));

	if (!use || --use->count > 0)
		return;
	(void)map_remove(all->layers, id, strlen(id));
	free(use);
	slots_forget_layer(all, id);
	layers_discard(all, id);
}

static int hold(struct sandboxes *all, const char *id)
{
	struct layer_use *use = map_get(all->layers, id, strlen(id));
	int r;

	if (use) {
		use->count++;
		return 0;
	}
	use = calloc(1, sizeof(*use));
	if (!use)
		return -ENOMEM;
	use->count = 1;
	r = map_put(all->layers, id, strlen(id), use, NULL);
	if (r < 0)
		free(use);
	return r < 0 ? -ENOMEM : 0;
}

int layers_hold(struct sandboxes *all, const struct layers *l)
{
	for (size_t i = 0; i < l->n; i++) {
		int r = hold(all, l->ids[i]);

		if (r < 0) {
			while (i-- > 0)
				release(all, l->ids[i]);
			return r;
		}
	}
	return 0;
}

void layers_drop(struct sandboxes *all, const struct layers *l)
{
	for (size_t i = l->n; i-- > 0;)
		release(all, l->ids[i]);
}

static void on_dropped(void *user, const struct provider_reply *r)
{
	(void)user; /* what fails is found by the next sweep */
	if (r->code < 0 && r->code != -ENOENT)
		log_debug("sandbox", "a layer could not be dropped: %s", r->text);
}

void layers_discard(struct sandboxes *all, const char *id)
{
	ask_provider(all, &(struct ask){ .kind = ASK_LAYER_DROP, .disk_id = id }, on_dropped, NULL);
}

static void on_listed(void *user, const struct provider_reply *r)
{
	struct sandboxes *all = user;

	for (size_t i = 0; r->code == 0 && i < r->n_layers; i++) {
		const char *id = r->layers[i].id;

		if (!map_get(all->layers, id, strlen(id)))
			layers_discard(all, id);
	}
}

void layers_sweep(struct sandboxes *all)
{
	ask_provider(all, &(struct ask){ .kind = ASK_LAYERS, .is_impatient = true }, on_listed,
		     all);
}

void layers_forget(struct sandboxes *all)
{
	if (all->layers)
		MAP_FOREACH (all->layers, it)
			free(it.value);
	all->layers = map_free(all->layers);
}
