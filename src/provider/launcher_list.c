/* Answers of many frames: what a list names is kept until the last has come. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "provider/launcher_impl.h"

#define STRINGS_MAX (LAUNCHER_LIST_MAX * 128) /* of one list: two short strings an entry */

union entry {
	struct launch_box_info box;
	struct layer_info layer;
	struct volume_info volume;
};

static int get_box(struct rd *r, union entry *ret)
{
	return launch_get_box_info(r, &ret->box);
}

static int get_layer(struct rd *r, union entry *ret)
{
	return launch_get_layer(r, &ret->layer);
}

static int get_volume(struct rd *r, union entry *ret)
{
	return launch_get_volume_info(r, &ret->volume);
}

static const struct kind {
	uint16_t request, frame;
	size_t size;
	int (*get)(struct rd *r, union entry *ret);
	size_t strings[2]; /* where they are in an entry; twice the same: there is one */
} kinds[] = {
	{ L_LIST,
	  L_BOX_IS,
	  sizeof(struct launch_box_info),
	  get_box,
	  { offsetof(struct launch_box_info, id), offsetof(struct launch_box_info, tag) } },
	{ L_LAYERS,
	  L_LAYER,
	  sizeof(struct layer_info),
	  get_layer,
	  { offsetof(struct layer_info, id), offsetof(struct layer_info, id) } },
	{ L_VOLUMES,
	  L_VOLUME_IS,
	  sizeof(struct volume_info),
	  get_volume,
	  { offsetof(struct volume_info, id), offsetof(struct volume_info, box_id) } },
};

static int make_room(struct pending *p, size_t size)
{
	size_t cap = p->cap_items ? p->cap_items * 2 : 16;
	void *more;

	if (p->n_items == LAUNCHER_LIST_MAX)
		return -E2BIG;
	if (!p->strings && !(p->strings = arena_create(STRINGS_MAX)))
		return -ENOMEM;
	if (p->n_items < p->cap_items)
		return 0;
	more = reallocarray(p->items, cap, size);
	if (!more)
		return -ENOMEM;
	p->items = more;
	p->cap_items = cap;
	return 0;
}

static int keep_string(struct pending *p, union entry *e, size_t at)
{
	const char *s;

	memcpy(&s, (const char *)e + at, sizeof(s));
	s = arena_strndup(p->strings, s, strlen(s));
	memcpy((char *)e + at, &s, sizeof(s));
	return s ? 0 : -ENOMEM;
}

static int add(struct pending *p, const struct kind *k, union entry *e)
{
	int r = make_room(p, k->size);

	if (r == 0)
		r = keep_string(p, e, k->strings[0]);
	if (r == 0 && k->strings[1] != k->strings[0])
		r = keep_string(p, e, k->strings[1]);
	if (r == 0)
		memcpy((char *)p->items + p->n_items++ * k->size, e, k->size);
	return r;
}

bool launcher_list_add(struct pending *p, uint16_t frame_type, struct rd *body, int *ret)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		union entry e;

		if (kinds[i].request != p->type || kinds[i].frame != frame_type)
			continue;
		*ret = kinds[i].get(body, &e) < 0 ? -EPROTO : add(p, &kinds[i], &e);
		return true;
	}
	return false;
}

void launcher_list_show(const struct pending *p, struct provider_reply *r)
{
	if (p->type == L_LIST) {
		r->boxes = p->items;
		r->n_boxes = p->n_items;
	} else if (p->type == L_LAYERS) {
		r->layers = p->items;
		r->n_layers = p->n_items;
	} else if (p->type == L_VOLUMES) {
		r->volumes = p->items;
		r->n_volumes = p->n_items;
	}
}
