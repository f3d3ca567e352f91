#include "sandbox/volume.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/str.h"
#include "sandbox/ask.h"
#include "sandbox/check.h"
#include "sandbox/registry.h"
#include "sandbox/volume_box.h"
#include "json/jw.h"

#define VOLUMES_ALL_MAX 10000u
#define VOLUMES_OWNER_MAX 100u
#define TEXT_MAX 256u

/* ---- as it is kept ---- */

static int volume_parse(const char *text, void **ret)
{
	struct volume *v = calloc(1, sizeof(*v));
	struct jv_doc *doc = NULL;
	int r = v ? jv_parse(text, strlen(text), TEXT_MAX, &doc, NULL) : -ENOMEM;

	if (r == 0)
		r = jv_u64(jv_get(jv_root(doc), "size"), &v->bytes);
	(void)jv_free(doc);
	if (r == 0)
		*ret = v;
	else
		free(v);
	return r == 0 || r == -ENOMEM ? r : -EINVAL;
}

static bool volume_is_there(uint32_t state)
{
	return state == VOLUME_READY;
}

static uint64_t volume_bytes(const void *data)
{
	return ((const struct volume *)data)->bytes;
}

const struct object_kind volume_kind = {
	.name = "volume",
	.noun = "volume",
	.max = VOLUMES_ALL_MAX,
	.owner_max = VOLUMES_OWNER_MAX,
	.parse = volume_parse,
	.free = free,
	.event = "volume",
	.is_there = volume_is_there,
	.bytes = volume_bytes,
};

void volumes_write(const struct volume_mounts *m, struct jw *w)
{
	jw_array_begin(w);
	for (size_t i = 0; i < m->n; i++) {
		jw_object_begin(w);
		jw_str_field(w, "id", m->items[i].id);
		jw_str_field(w, "name", m->items[i].name);
		jw_str_field(w, "path", m->items[i].path);
		jw_bool_field(w, "readOnly", m->items[i].read_only);
		jw_object_end(w);
	}
	jw_array_end(w);
}

int volumes_read(struct jv v, struct volume_mounts *ret)
{
	*ret = (struct volume_mounts){ 0 };
	JV_FOREACH (v, it) {
		struct volume_mount *m = &ret->items[ret->n];
		const char *id = jv_text(jv_get(it.value, "id"));
		const char *name = jv_text(jv_get(it.value, "name"));
		const char *path = jv_text(jv_get(it.value, "path"));

		if (ret->n >= VOLUMES_MAX || !id || !id_is_valid(id) || !name || !path ||
		    str_copy(m->name, sizeof(m->name), name) < 0 ||
		    str_copy(m->path, sizeof(m->path), path) < 0)
			return -EINVAL;
		(void)str_copy(m->id, sizeof(m->id), id);
		(void)jv_bool(jv_get(it.value, "readOnly"), &m->read_only);
		ret->n++;
	}
	return 0;
}

/* ---- who has them ---- */

const char *volume_path(const struct sandbox *sb, const char *id)
{
	for (size_t i = 0; i < sb->volumes.n; i++)
		if (strcmp(sb->volumes.items[i].id, id) == 0)
			return sb->volumes.items[i].path;
	return NULL;
}

/* Boxes of our own do not count: they give way. */
static const struct sandbox *find_holder(struct sandboxes *all, const char *id,
					 const struct sandbox *but)
{
	LIST_FOREACH (&all->sandboxes, sb, struct sandbox, node)
		if (sb != but && !sb->is_internal && state_is_live(sb->state) &&
		    sb->state != SANDBOX_SUSPENDED && volume_path(sb, id))
			return sb;
	return NULL;
}

const char *volume_holder(struct sandboxes *all, const char *id)
{
	const struct sandbox *sb = find_holder(all, id, NULL);

	return sb ? sb->id : NULL;
}

int volumes_check(struct sandbox *sb, struct err *err)
{
	for (size_t i = 0; i < sb->volumes.n; i++) {
		const struct volume_mount *m = &sb->volumes.items[i];
		const struct sandbox *other = find_holder(sb->all, m->id, sb);
		const struct object *o =
			objects_find(sb->all->objects[OBJECTS_VOLUME], m->id, NULL);

		if (!o || o->state != VOLUME_READY)
			return err_set(err, EBUSY, "the volume '%.64s' is gone", m->name);
		if (other)
			return err_set(err, EBUSY, "the volume '%.64s' is in use by sandbox %s",
				       m->name, other->id);
	}
	return 0;
}

int volumes_resolve(struct sandboxes *all, const char *owner, struct volume_mounts *m,
		    struct err *err)
{
	for (size_t i = 0; i < m->n; i++) {
		struct volume_mount *one = &m->items[i];
		const struct object *o =
			objects_find(all->objects[OBJECTS_VOLUME], one->name, owner);

		if (!o || o->state != VOLUME_READY)
			return err_set(err, EINVAL, "volumes: there is no '%.64s'", one->name);
		(void)str_copy(one->id, sizeof(one->id), o->id);
		(void)str_copy(one->name, sizeof(one->name), o->name);
		if (!spec_volume_path_is_valid(one->path))
			return err_set(err, EINVAL,
				       "volumes: want a path below /workspace, or /mnt/NAME");
		for (size_t k = 0; k < i; k++)
			if (strcmp(m->items[k].id, one->id) == 0 ||
			    strcmp(m->items[k].path, one->path) == 0)
				return err_set(err, EINVAL, "volumes: '%.64s' is there twice",
					       one->name);
	}
	return 0;
}

void volumes_fill_spec(const struct volume_mounts *m, struct launch_spec *spec)
{
	spec->n_volumes = m->n;
	for (size_t i = 0; i < m->n; i++)
		spec->volumes[i] = (struct launch_volume){ m->items[i].id, m->items[i].path,
							   m->items[i].read_only };
}

/* ---- making and removing ---- */

struct volume_op {
	struct pending pending;
	struct sandboxes *all;
	char id[ID_LEN + 1];
	uint64_t bytes;
	struct err err; /* what the caller is told when the undoing is over */
	object_cb cb;
	void *user;
};

static void drop_op(struct pending *p)
{
	free(LIST_ENTRY(p, struct volume_op, pending));
}

static struct volume_op *op_create(struct sandboxes *all, object_cb cb, void *user)
{
	struct volume_op *op = calloc(1, sizeof(*op));

	if (!op) {
		cb(user, NULL, &(struct err){ ENOMEM, "out of memory" });
		return NULL;
	}
	op->all = all;
	op->cb = cb;
	op->user = user;
	op->pending.drop = drop_op;
	list_push_back(&all->pending, &op->pending.node);
	return op;
}

static void finish(struct volume_op *op, struct object *o, const struct err *err)
{
	list_remove(&op->pending.node);
	op->cb(op->user, o, err);
	free(op);
}

static void on_done(void *user, struct object *o, const struct err *err)
{
	struct volume_op *op = user;

	finish(op, o, op->err.code ? &op->err : err);
}

static void on_dropped(void *user, const struct provider_reply *r)
{
	struct volume_op *op = user;
	struct err err = { 0 };

	if (r->code < 0 && r->code != -ENOENT && !op->err.code) {
		err = ask_error(r); /* it is tried again when the launcher is new */
		finish(op, NULL, &err);
		return;
	}
	objects_remove(op->all->objects[OBJECTS_VOLUME], op->id, on_done, op);
}

static void drop(void *user)
{
	struct volume_op *op = user;

	ask_provider(
		op->all,
		&(struct ask){ .kind = ASK_VOLUME_DROP, .disk_id = op->id, .is_impatient = true },
		on_dropped, op);
}

static void on_made(void *user, const struct provider_reply *r)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct volume_op *op = user;

	if (r->code < 0) {
		op->err = ask_error(r);
		drop(op);
		return;
	}
	if (buf_printf(&b, "{\"size\":%llu}", (unsigned long long)op->bytes) < 0) {
		(void)err_sys(&op->err, ENOMEM, "volume");
		drop(op);
		return;
	}
	objects_change(op->all->objects[OBJECTS_VOLUME], op->id, VOLUME_READY, b.data, on_done, op);
}

static void on_added(void *user, struct object *o, const struct err *err)
{
	struct volume_op *op = user;

	if (err) {
		finish(op, NULL, err);
		return;
	}
	(void)str_copy(op->id, sizeof(op->id), o->id);
	ask_provider(op->all,
		     &(struct ask){ .kind = ASK_VOLUME_MAKE,
				    .disk_id = op->id,
				    .bytes = op->bytes,
				    .is_impatient = true },
		     on_made, op);
}

void volume_create(struct sandboxes *all, const char *owner, const char *name, uint64_t bytes,
		   object_cb cb, void *user)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct volume_op *op;
	struct err err = { 0 };
	int r = check_name(name, &err);

	if (r == 0 && (bytes < VOLUME_BYTES_MIN || bytes > VOLUME_BYTES_MAX))
		r = err_set(&err, EINVAL, "size: want %llu to %llu bytes", VOLUME_BYTES_MIN,
			    VOLUME_BYTES_MAX);
	if (r == 0 && buf_printf(&b, "{\"size\":%llu}", (unsigned long long)bytes) < 0)
		r = err_sys(&err, ENOMEM, "volume");
	if (r < 0) {
		cb(user, NULL, &err);
		return;
	}
	op = op_create(all, cb, user);
	if (!op)
		return;
	op->bytes = bytes;
	objects_add(all->objects[OBJECTS_VOLUME],
		    &(struct object_put){
			    .owner = owner, .name = name, .state = VOLUME_MAKING, .text = b.data },
		    on_added, op);
}

static void on_leaving(void *user, struct object *o, const struct err *err)
{
	struct volume_op *op = user;
	struct volume_mounts m = { .n = 1 };

	(void)o;
	if (err) {
		finish(op, NULL, err);
		return;
	}
	(void)str_copy(m.items[0].id, sizeof(m.items[0].id), op->id);
	if (!volume_boxes_end(op->all, &m, NULL, drop, op))
		drop(op);
}

void volume_delete(struct sandboxes *all, const char *id, object_cb cb, void *user)
{
	const struct object *o = objects_find(all->objects[OBJECTS_VOLUME], id, NULL);
	const char *holder = o ? volume_holder(all, o->id) : NULL;
	struct volume_op *op;
	struct err err = { 0 };

	if (!o)
		(void)err_set(&err, ENOENT, "there is no volume '%.64s'", id);
	else if (holder)
		(void)err_set(&err, EBUSY, "the volume is in use by sandbox %s", holder);
	if (err.code) {
		cb(user, NULL, &err);
		return;
	}
	op = op_create(all, cb, user);
	if (!op)
		return;
	(void)str_copy(op->id, sizeof(op->id), o->id);
	objects_change(all->objects[OBJECTS_VOLUME], op->id, VOLUME_LEAVING, o->text, on_leaving,
		       op);
}

static void on_settled(void *user, struct object *o, const struct err *err)
{
	(void)user;
	(void)o;
	if (err)
		log_debug("sandbox", "a volume could not be undone: %s", err->text);
}

static void settle_one(void *user, struct object *o)
{
	struct sandboxes *all = user;
	struct volume_op *op;

	if (o->state == VOLUME_READY || o->is_writing)
		return;
	LIST_FOREACH (&all->pending, p, struct pending, node)
		if (p->drop == drop_op &&
		    strcmp(LIST_ENTRY(p, struct volume_op, pending)->id, o->id) == 0)
			return; /* somebody is at it */
	op = op_create(all, on_settled, NULL);
	if (!op)
		return;
	(void)str_copy(op->id, sizeof(op->id), o->id);
	drop(op);
}

void volumes_settle(struct sandboxes *all)
{
	objects_each(all->objects[OBJECTS_VOLUME], settle_one, all);
}
