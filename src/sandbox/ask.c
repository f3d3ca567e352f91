#include "sandbox/ask.h"

#include <errno.h>
#include <stdlib.h>

#include "base/str.h"
#include "sandbox/layers.h"
#include "sandbox/recipe.h"
#include "sandbox/registry.h"

#define ASKS_MAX 8192u

/* The texts of a claim or a template that has more than most. */
struct ask_texts {
	struct layers layers;
	char preload[RECIPE_PRELOAD_MAX + 1], preload_node[RECIPE_PRELOAD_MAX + 1];
	char writable[TEMPLATE_WRITABLE_MAX + 1];
	char volume_ids[VOLUMES_MAX][ID_LEN + 1];
	char volume_paths[VOLUMES_MAX][VOLUME_PATH_MAX + 1];
};

struct ask_call {
	struct flight flight;
	struct list node; /* in sandboxes.asks */
	enum ask_kind kind;
	char box_id[ID_LEN + 1], disk_id[ID_LEN + 1], tag[TAG_MAX + 1];
	struct launch_spec spec;
	struct template_spec template;
	struct pool_spec pool;
	uint32_t template_id, flags;
	uint64_t bytes;
	struct ask_texts *texts; /* owned or NULL */
	provider_cb then;
	void (*drop)(void *user);
	void *user;
	bool is_impatient, is_waiting, is_second;
	uint64_t until_ms;
};

struct err ask_error(const struct provider_reply *r)
{
	static const int told_as_they_are[] = { ERANGE, EDQUOT, EPIPE,     EAGAIN,
						ENOMEM, EBUSY,  EOPNOTSUPP };
	struct err err = { 0 };
	int code = EREMOTEIO;

	for (size_t i = 0; i < sizeof(told_as_they_are) / sizeof(told_as_they_are[0]); i++)
		if (r->code == -told_as_they_are[i])
			code = -r->code;
	(void)err_set(&err, code, "%s", r->text);
	return err;
}

/* What concerns templates and what lies on disks. */
static int submit_disk(struct ask_call *c, provider_cb cb, struct err *err)
{
	const struct provider *p = &c->flight.all->provider;
	const struct provider_ops *ops = p->ops;
	struct snapshot_spec snapshot = { c->box_id, c->disk_id, c->flags };
	struct volume_spec volume = { c->disk_id, c->bytes };

	switch (c->kind) {
	case ASK_DEFINE:
		return ops->define(p->self, &c->template, -1, cb, c, err);
	case ASK_UNDEFINE:
		return ops->undefine(p->self, c->template_id, cb, c, err);
	case ASK_POOL_SET:
		return ops->pool(p->self, &c->pool, cb, c, err);
	case ASK_SNAPSHOT:
		return ops->snapshot(p->self, &snapshot, cb, c, err);
	case ASK_LAYER_DROP:
		return ops->drop_layer(p->self, c->disk_id, cb, c, err);
	case ASK_LAYERS:
		return ops->layers(p->self, cb, c, err);
	case ASK_VOLUME_MAKE:
		return ops->make_volume(p->self, &volume, cb, c, err);
	case ASK_VOLUME_DROP:
		return ops->drop_volume(p->self, c->disk_id, cb, c, err);
	case ASK_VOLUMES:
		return ops->volumes(p->self, cb, c, err);
	default:
		return -EINVAL;
	}
}

static int submit(struct ask_call *c, provider_cb cb, struct err *err)
{
	const struct provider *p = &c->flight.all->provider;
	const struct provider_ops *ops = p->ops;

	switch (c->kind) {
	case ASK_CLAIM:
		return ops->claim(p->self, &c->spec, cb, c, err);
	case ASK_ATTACH:
		return ops->attach(p->self, c->box_id, cb, c, err);
	case ASK_LIST:
		return ops->list(p->self, cb, c, err);
	case ASK_DESTROY:
		return ops->destroy(p->self, c->box_id, cb, c, err);
	case ASK_FREEZE:
		return ops->freeze(p->self, c->box_id, true, cb, c, err);
	case ASK_THAW:
		return ops->freeze(p->self, c->box_id, false, cb, c, err);
	case ASK_USAGE:
		return ops->usage(p->self, c->box_id, cb, c, err);
	case ASK_POOL:
		return ops->pool_state(p->self, c->template_id, cb, c, err);
	default:
		return submit_disk(c, cb, err);
	}
}

static void ask_free(struct ask_call *c)
{
	free(c->texts);
	free(c);
}

/* Ends the call: out of the tables first, for then() may do anything. */
static void finish(struct ask_call *c, const struct provider_reply *r)
{
	struct sandboxes *all = c->flight.all;

	if (flight_end(&c->flight)) {
		list_remove(&c->node);
		all->n_asks--;
		c->then(c->user, r);
	} else if (c->drop) {
		c->drop(c->user);
	}
	ask_free(c);
}

static void refuse(struct ask_call *c, int code, const char *text)
{
	struct provider_reply r = { .code = code, .text = text };

	finish(c, &r);
}

static void park(struct ask_call *c)
{
	c->is_waiting = true;
	tick_need(c->flight.all);
}

static void on_reply(void *user, const struct provider_reply *r)
{
	struct ask_call *c = user;

	if (c->flight.all && r->code == -EPIPE && !c->is_impatient && !c->is_second) {
		c->is_second = true;
		c->until_ms = now_ms(c->flight.all) + PROVIDER_PATIENCE_MS;
		park(c);
		return;
	}
	finish(c, r);
}

static void start(struct ask_call *c)
{
	struct err err = { 0 };
	int r = -EPIPE;

	c->is_waiting = false;
	if (c->flight.all->has_provider)
		r = submit(c, on_reply, &err);
	if (r == 0)
		return;
	if (r == -EPIPE && !c->is_impatient)
		park(c);
	else
		refuse(c, r, err.code ? err.text : "the launcher is not there");
}

static void copy_layers(struct ask_texts *t, struct layer_list *list)
{
	for (uint32_t i = 0; i < list->count; i++)
		(void)layers_push(&t->layers, list->ids[i]);
	*list = layers_list(&t->layers);
}

static void copy_volumes(struct ask_texts *t, struct launch_spec *spec)
{
	for (uint32_t i = 0; i < spec->n_volumes; i++) {
		struct launch_volume *v = &spec->volumes[i];

		(void)str_copy(t->volume_ids[i], sizeof(t->volume_ids[i]), v->id);
		(void)str_copy(t->volume_paths[i], sizeof(t->volume_paths[i]), v->path);
		v->id = t->volume_ids[i];
		v->path = t->volume_paths[i];
	}
}

/* All that is borrowed for the time of the call; what does not fit was checked before. */
static int copy(struct ask_call *c, const struct ask *a)
{
	bool has_texts =
		a->template || (a->spec && (a->spec->layers.count > 0 || a->spec->n_volumes > 0));

	if (a->box_id)
		(void)str_copy(c->box_id, sizeof(c->box_id), a->box_id);
	if (a->disk_id)
		(void)str_copy(c->disk_id, sizeof(c->disk_id), a->disk_id);
	if (has_texts && !(c->texts = calloc(1, sizeof(*c->texts))))
		return -ENOMEM;
	if (a->spec) {
		c->spec = *a->spec;
		(void)str_copy(c->tag, sizeof(c->tag), a->spec->tag);
		c->spec.tag = c->tag;
	}
	if (a->spec && has_texts) {
		copy_layers(c->texts, &c->spec.layers);
		copy_volumes(c->texts, &c->spec);
	}
	if (a->template) {
		c->template = *a->template;
		copy_layers(c->texts, &c->template.layers);
		(void)str_copy(c->texts->preload, sizeof(c->texts->preload), a->template->preload);
		c->template.preload = c->texts->preload;
		(void)str_copy(c->texts->preload_node, sizeof(c->texts->preload_node),
			       a->template->preload_node ? a->template->preload_node : "");
		c->template.preload_node = c->texts->preload_node;
		(void)str_copy(c->texts->writable, sizeof(c->texts->writable),
			       a->template->writable ? a->template->writable : "");
		c->template.writable = c->texts->writable;
	}
	return 0;
}

void ask_provider(struct sandboxes *all, const struct ask *a, provider_cb then, void *user)
{
	struct ask_call *c = all->n_asks < ASKS_MAX ? calloc(1, sizeof(*c)) : NULL;

	if (!c || copy(c, a) < 0) {
		struct provider_reply r = { .code = -EAGAIN,
					    .text = "too many requests to the launcher wait" };

		free(c);
		then(user, &r);
		return;
	}
	c->kind = a->kind;
	c->pool = a->pool;
	c->template_id = a->template_id;
	c->flags = a->flags;
	c->bytes = a->bytes;
	c->is_impatient = a->is_impatient;
	c->then = then;
	c->drop = a->drop;
	c->user = user;
	c->until_ms = now_ms(all) + PROVIDER_PATIENCE_MS;
	flight_begin(all, &c->flight);
	list_push_back(&all->asks, &c->node);
	all->n_asks++;
	start(c);
}

/* The first that waits no longer than this; NULL. Looked up anew each time, because ending one may
 * begin and end others. */
static struct ask_call *find_waiting(struct sandboxes *all, uint64_t overdue_ms)
{
	LIST_FOREACH (&all->asks, c, struct ask_call, node)
		if (c->is_waiting && c->until_ms <= overdue_ms)
			return c;
	return NULL;
}

void ask_flush(struct sandboxes *all)
{
	struct list todo = LIST_INIT(todo);

	LIST_FOREACH (&all->asks, c, struct ask_call, node)
		if (c->is_waiting) {
			list_remove(&c->node);
			list_push_back(&todo, &c->node);
		}
	while (!list_is_empty(&todo)) {
		struct ask_call *c = LIST_ENTRY(todo.next, struct ask_call, node);

		list_remove(&c->node);
		list_push_back(&all->asks, &c->node);
		start(c);
	}
}

void ask_drop(struct sandboxes *all)
{
	LIST_FOREACH (&all->asks, c, struct ask_call, node) {
		if (!c->is_waiting)
			continue; /* its answer comes, and finds nobody */
		list_remove(&c->node);
		list_remove(&c->flight.node);
		if (c->drop)
			c->drop(c->user);
		ask_free(c);
	}
}

bool ask_expire(struct sandboxes *all)
{
	struct ask_call *c;

	while ((c = find_waiting(all, now_ms(all))))
		refuse(c, -EPIPE, "the launcher is not there");
	return find_waiting(all, UINT64_MAX) != NULL;
}
