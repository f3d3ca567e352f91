/* Layers, volumes and templates of the fake: entries of tables. */
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/str.h"
#include "provider/fake_impl.h"

struct fake_layer *fake_find_layer(struct fake *f, const char *layer_id)
{
	for (size_t i = 0; i < FAKE_LAYERS_MAX; i++)
		if (strcmp(f->layers[i].id, layer_id) == 0)
			return &f->layers[i];
	return NULL;
}

struct fake_volume *fake_find_volume(struct fake *f, const char *volume_id)
{
	for (size_t i = 0; i < FAKE_VOLUMES_MAX; i++)
		if (strcmp(f->volumes[i].id, volume_id) == 0)
			return &f->volumes[i];
	return NULL;
}

static bool names(const char ids[][ID_LEN + 1], uint32_t count, const char *id)
{
	for (uint32_t i = 0; i < count; i++)
		if (strcmp(ids[i], id) == 0)
			return true;
	return false;
}

static const char *holder(const struct fake *f, const char *volume_id)
{
	for (size_t i = 0; i < FAKE_BOXES_MAX; i++)
		if (f->boxes[i].id[0] &&
		    names(f->boxes[i].volumes, f->boxes[i].n_volumes, volume_id))
			return f->boxes[i].id;
	return "";
}

static bool layer_is_used(const struct fake *f, const char *id)
{
	for (size_t i = 0; i < FAKE_BOXES_MAX; i++)
		if (f->boxes[i].id[0] && names(f->boxes[i].layers, f->boxes[i].n_layers, id))
			return true;
	for (size_t i = 0; i <= TEMPLATE_MAX; i++)
		if (f->templates[i].defined &&
		    names(f->templates[i].layers, f->templates[i].n_layers, id))
			return true;
	return false;
}

static void note_layers(struct fake_call *c, const struct layer_list *l)
{
	c->n_layers = l->count;
	for (uint32_t i = 0; i < l->count; i++)
		(void)str_copy(c->layer_ids[i], sizeof(c->layer_ids[i]), l->ids[i]);
}

void fake_note_disk(struct fake_call *c, const struct launch_spec *spec)
{
	note_layers(c, &spec->layers);
	c->n_volumes = spec->n_volumes;
	for (uint32_t i = 0; i < spec->n_volumes; i++)
		(void)str_copy(c->volume_ids[i], sizeof(c->volume_ids[i]), spec->volumes[i].id);
}

int fake_check_disk(struct fake *f, const struct fake_call *c, struct err *err)
{
	for (uint32_t i = 0; i < c->n_layers; i++)
		if (!fake_find_layer(f, c->layer_ids[i]))
			return err_set(err, ENOENT, "no layer '%s'", c->layer_ids[i]);
	for (uint32_t i = 0; i < c->n_volumes; i++) {
		if (!fake_find_volume(f, c->volume_ids[i]))
			return err_set(err, ENOENT, "no volume '%s'", c->volume_ids[i]);
		if (holder(f, c->volume_ids[i])[0])
			return err_set(err, EBUSY, "box %s has volume %s",
				       holder(f, c->volume_ids[i]), c->volume_ids[i]);
	}
	return 0;
}

void fake_use_disk(const struct fake_call *c, struct fake_box *box)
{
	box->n_layers = c->n_layers;
	memcpy(box->layers, c->layer_ids, sizeof(box->layers));
	box->n_volumes = c->n_volumes;
	memcpy(box->volumes, c->volume_ids, sizeof(box->volumes));
}

static int do_define(struct fake *f, struct fake_call *c, struct provider_reply *r, struct err *err)
{
	struct fake_template *t = &f->templates[c->template_id];
	int e = fake_check_disk(f, c, err);

	(void)r;
	if (e < 0)
		return e;
	*t = (struct fake_template){ .defined = true, .n_layers = c->n_layers };
	memcpy(t->layers, c->layer_ids, sizeof(t->layers));
	return 0;
}

int fake_define(void *self, const struct template_spec *t, int dir_fd, provider_cb cb, void *user,
		struct err *err)
{
	struct fake_call c = { .name = "define", .effect = do_define, .cb = cb, .user = user };
	int r = spec_check_template(t, err);

	(void)dir_fd;
	if (r < 0)
		return r;
	c.template_id = t->id;
	note_layers(&c, &t->layers);
	return fake_enqueue(self, &c, err);
}

static int check_defined(struct fake *f, uint32_t id, struct err *err)
{
	if (id >= 1 && id <= TEMPLATE_MAX && f->templates[id].defined)
		return 0;
	return err_set(err, ENOENT, "template %u is not defined", id);
}

static int do_undefine(struct fake *f, struct fake_call *c, struct provider_reply *r,
		       struct err *err)
{
	int e = check_defined(f, c->template_id, err);

	(void)r;
	if (e == 0)
		f->templates[c->template_id] = (struct fake_template){ 0 };
	return e;
}

int fake_undefine(void *self, uint32_t template_id, provider_cb cb, void *user, struct err *err)
{
	struct fake_call c = { .name = "undefine", .effect = do_undefine, .cb = cb, .user = user };

	c.template_id = template_id;
	return fake_enqueue(self, &c, err);
}

static int do_pool(struct fake *f, struct fake_call *c, struct provider_reply *r, struct err *err)
{
	int e = check_defined(f, c->pool.template_id, err);

	(void)r;
	if (e == 0)
		f->templates[c->pool.template_id].pool = c->pool;
	return e;
}

int fake_pool(void *self, const struct pool_spec *p, provider_cb cb, void *user, struct err *err)
{
	struct fake_call c = { .name = "pool", .effect = do_pool, .cb = cb, .user = user };

	c.pool = *p;
	return fake_enqueue(self, &c, err);
}

static void show_layer(const struct fake *f, const struct fake_layer *l, struct layer_info *ret)
{
	*ret = (struct layer_info){ .id = l->id,
				    .bytes = f->layer_bytes,
				    .inodes = 1,
				    .whole = l->whole,
				    .used = layer_is_used(f, l->id) };
}

static int do_snapshot(struct fake *f, struct fake_call *c, struct provider_reply *r,
		       struct err *err)
{
	struct fake_box *box = fake_box_of(f, c, err);
	struct fake_layer *l = fake_find_layer(f, "");

	if (!box)
		return -ENOENT;
	if (fake_find_layer(f, c->disk_id))
		return err_set(err, EEXIST, "layer %s is there already", c->disk_id);
	if (!l)
		return err_set(err, ENOSPC, "no more than %d layers", FAKE_LAYERS_MAX);
	memcpy(l->id, c->disk_id, sizeof(l->id));
	memcpy(l->box_id, box->id, sizeof(l->box_id));
	l->whole = c->flags & SNAPSHOT_WHOLE || box->n_layers == LAYERS_MAX;
	show_layer(f, l, &c->layers[0]);
	r->layers = c->layers;
	r->n_layers = 1;
	return 0;
}

int fake_snapshot(void *self, const struct snapshot_spec *s, provider_cb cb, void *user,
		  struct err *err)
{
	struct fake_call c = { .name = "snapshot", .effect = do_snapshot, .cb = cb, .user = user };
	int r = spec_check_snapshot(s, err);

	if (r < 0)
		return r;
	(void)str_copy(c.box_id, sizeof(c.box_id), s->box_id); /* fit: they were checked */
	(void)str_copy(c.disk_id, sizeof(c.disk_id), s->layer_id);
	c.flags = s->flags;
	return fake_enqueue(self, &c, err);
}

/* The same for a call about one layer or volume. */
static int enqueue_disk(struct fake *f, struct fake_call *c, const char *id, struct err *err)
{
	if (!id_is_valid(id))
		return err_set(err, EINVAL, "'%.60s' is not an id", id);
	(void)str_copy(c->disk_id, sizeof(c->disk_id), id);
	return fake_enqueue(f, c, err);
}

static int do_drop_layer(struct fake *f, struct fake_call *c, struct provider_reply *r,
			 struct err *err)
{
	struct fake_layer *l = fake_find_layer(f, c->disk_id);

	(void)r;
	if (!l)
		return err_set(err, ENOENT, "no layer '%s'", c->disk_id);
	if (layer_is_used(f, l->id))
		return err_set(err, EBUSY, "layer %s is in use", l->id);
	*l = (struct fake_layer){ 0 };
	return 0;
}

int fake_drop_layer(void *self, const char *layer_id, provider_cb cb, void *user, struct err *err)
{
	struct fake_call c = { .name = "drop", .effect = do_drop_layer, .cb = cb, .user = user };

	return enqueue_disk(self, &c, layer_id, err);
}

static int do_layers(struct fake *f, struct fake_call *c, struct provider_reply *r, struct err *err)
{
	(void)err;
	for (size_t i = 0; i < FAKE_LAYERS_MAX; i++)
		if (f->layers[i].id[0])
			show_layer(f, &f->layers[i], &c->layers[r->n_layers++]);
	r->layers = c->layers;
	return 0;
}

int fake_layers(void *self, provider_cb cb, void *user, struct err *err)
{
	struct fake_call c = { .name = "layers", .effect = do_layers, .cb = cb, .user = user };

	return fake_enqueue(self, &c, err);
}

static int do_make_volume(struct fake *f, struct fake_call *c, struct provider_reply *r,
			  struct err *err)
{
	struct fake_volume *v = fake_find_volume(f, "");

	(void)r;
	if (fake_find_volume(f, c->disk_id))
		return err_set(err, EEXIST, "volume %s is there already", c->disk_id);
	if (!v)
		return err_set(err, ENOSPC, "no more than %d volumes", FAKE_VOLUMES_MAX);
	memcpy(v->id, c->disk_id, sizeof(v->id));
	v->bytes = c->bytes;
	return 0;
}

int fake_make_volume(void *self, const struct volume_spec *v, provider_cb cb, void *user,
		     struct err *err)
{
	struct fake_call c = { .name = "volume", .effect = do_make_volume, .cb = cb, .user = user };
	int r = spec_check_volume(v, err);

	c.bytes = v->bytes;
	return r < 0 ? r : enqueue_disk(self, &c, v->id, err);
}

static int do_drop_volume(struct fake *f, struct fake_call *c, struct provider_reply *r,
			  struct err *err)
{
	struct fake_volume *v = fake_find_volume(f, c->disk_id);

	(void)r;
	if (!v)
		return err_set(err, ENOENT, "no volume '%s'", c->disk_id);
	if (holder(f, v->id)[0])
		return err_set(err, EBUSY, "box %s has volume %s", holder(f, v->id), v->id);
	*v = (struct fake_volume){ 0 };
	return 0;
}

int fake_drop_volume(void *self, const char *volume_id, provider_cb cb, void *user, struct err *err)
{
	struct fake_call c = { .name = "drop", .effect = do_drop_volume, .cb = cb, .user = user };

	return enqueue_disk(self, &c, volume_id, err);
}

static int do_volumes(struct fake *f, struct fake_call *c, struct provider_reply *r,
		      struct err *err)
{
	(void)err;
	for (size_t i = 0; i < FAKE_VOLUMES_MAX; i++)
		if (f->volumes[i].id[0])
			c->volumes[r->n_volumes++] =
				(struct volume_info){ .id = f->volumes[i].id,
						      .box_id = holder(f, f->volumes[i].id),
						      .bytes = f->volumes[i].bytes };
	r->volumes = c->volumes;
	return 0;
}

int fake_volumes(void *self, provider_cb cb, void *user, struct err *err)
{
	struct fake_call c = { .name = "volumes", .effect = do_volumes, .cb = cb, .user = user };

	return fake_enqueue(self, &c, err);
}
