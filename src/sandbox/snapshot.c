#include "sandbox/snapshot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "sandbox/check.h"
#include "sandbox/registry.h"
#include "sandbox/row.h"
#include "json/jw.h"

#define SNAPSHOTS_MAX 20000u
#define SNAPSHOTS_OWNER_MAX 10000u

/* ---- as it is kept ---- */

static void snapshot_free(void *data)
{
	struct snapshot *s = data;

	pairs_done(&s->env);
	pairs_done(&s->metadata);
	kit_done(&s->kit);
	free(s);
}

static int read_snapshot(struct jv o, struct snapshot *s)
{
	const char *template = jv_text(jv_get(o, "template"));
	const char *sandbox_id = jv_text(jv_get(o, "sandboxId"));
	uint64_t inodes = 0, skipped = 0;
	int r;

	if (!template || !sandbox_id || str_copy(s->template, sizeof(s->template), template) < 0 ||
	    str_copy(s->sandbox_id, sizeof(s->sandbox_id), sandbox_id) < 0)
		return -EINVAL;
	row_read_limits(jv_get(o, "limits"), &s->limits);
	(void)jv_u64(jv_get(o, "bytes"), &s->bytes);
	(void)jv_u64(jv_get(o, "inodes"), &inodes);
	(void)jv_u64(jv_get(o, "skipped"), &skipped);
	s->inodes = (uint32_t)inodes;
	s->skipped = (uint32_t)skipped;
	r = jv_kind(jv_get(o, "runtime")) == JV_ABSENT
		    ? str_copy(s->kit.runtime, sizeof(s->kit.runtime), template)
		    : kit_read(o, &s->kit);
	if (r == 0)
		r = layers_read(jv_get(o, "layers"), &s->layers);
	if (r == 0)
		r = pairs_read(jv_get(o, "env"), &s->env);
	return r < 0 ? r : pairs_read(jv_get(o, "metadata"), &s->metadata);
}

static int snapshot_parse(const char *text, void **ret)
{
	struct snapshot *s = calloc(1, sizeof(*s));
	struct jv_doc *doc = NULL;
	int r = s ? jv_parse(text, strlen(text), OBJECT_TEXT_MAX, &doc, NULL) : -ENOMEM;

	if (r == 0)
		r = read_snapshot(jv_root(doc), s);
	(void)jv_free(doc);
	if (r == 0)
		*ret = s;
	else if (s)
		snapshot_free(s);
	return r == 0 || r == -ENOMEM ? r : -EINVAL;
}

static void snapshot_changed(struct sandboxes *all, void *before, void *now)
{
	struct snapshot *was = before, *is = now;

	/* NOTE: without memory its layers are not counted here; the launcher keeps what is in
	 * use, and the next start counts anew. */
	if (is && layers_hold(all, &is->layers) < 0)
		is->layers.n = 0;
	if (is && layers_hold(all, &is->kit.layers) < 0)
		is->kit.layers.n = 0;
	if (was) {
		layers_drop(all, &was->layers);
		layers_drop(all, &was->kit.layers);
	}
}

static uint64_t snapshot_bytes(const void *data)
{
	return ((const struct snapshot *)data)->bytes;
}

const struct object_kind snapshot_kind = {
	.name = "snapshot",
	.noun = "snapshot",
	.max = SNAPSHOTS_MAX,
	.owner_max = SNAPSHOTS_OWNER_MAX,
	.parse = snapshot_parse,
	.free = snapshot_free,
	.event = "snapshot",
	.changed = snapshot_changed,
	.bytes = snapshot_bytes,
};

static int write_snapshot(const struct sandbox *sb, const struct layers *chain,
			  const struct layer_info *info, struct buf *b)
{
	struct jw w = jw_begin(b);

	jw_object_begin(&w);
	jw_str_field(&w, "sandboxId", sb->id);
	jw_str_field(&w, "template", sb->template);
	kit_write(&sb->kit, &w);
	jw_key(&w, "limits");
	row_write_limits(&sb->limits, &w);
	jw_key(&w, "env");
	pairs_write(sb->env.items, sb->env.len, &w);
	jw_key(&w, "metadata");
	pairs_write(sb->metadata.items, sb->metadata.len, &w);
	jw_key(&w, "layers");
	layers_write(chain, &w);
	jw_uint_field(&w, "bytes", info ? info->bytes : 0);
	jw_uint_field(&w, "inodes", info ? info->inodes : 0);
	jw_uint_field(&w, "skipped", info ? info->skipped : 0);
	jw_object_end(&w);
	return jw_end(&w);
}

/* ---- taking one ---- */

struct snapshot_op {
	struct pending pending;
	struct sandbox *sb;  /* owned reference */
	struct layers chain; /* held until the object does */
	char name[SANDBOX_NAME_MAX + 1];
	bool replaces; /* one of that name, if there is one by then */
	object_cb cb;
	void *user;
};

static void drop_op(struct pending *p)
{
	free(LIST_ENTRY(p, struct snapshot_op, pending)); /* the sandbox goes with the registry */
}

static void finish(struct snapshot_op *op, struct object *o, const struct err *err)
{
	list_remove(&op->pending.node);
	op->cb(op->user, o, err);
	layers_drop(op->sb->all, &op->chain);
	sandbox_unref(op->sb);
	free(op);
}

/* When the store has not taken it, its layer is nobody's from here on, and goes. */
static void on_put(void *user, struct object *o, const struct err *err)
{
	finish(user, o, err);
}

/* One that is replaced is there, as it was, until the store has the other. */
static void put(struct snapshot_op *op, const char *text)
{
	struct objects *t = op->sb->all->objects[OBJECTS_SNAPSHOT];
	const struct object *old =
		op->replaces && op->name[0] ? objects_by_name(t, op->sb->owner, op->name) : NULL;

	if (old)
		objects_change(t, old->id, old->state, text, on_put, op);
	else
		objects_add(t,
			    &(struct object_put){
				    .owner = op->sb->owner, .name = op->name, .text = text },
			    on_put, op);
}

static void on_layer(void *user, const struct layers *chain, const struct layer_info *info,
		     const struct err *err)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct snapshot_op *op = user;
	struct sandbox *sb = op->sb;
	struct err failed = { 0 };

	if (!err && (write_snapshot(sb, chain, info, &b) < 0 || layers_hold(sb->all, chain) < 0))
		(void)err_sys(&failed, ENOMEM, "snapshot");
	if (err || failed.code) {
		finish(op, NULL, err ? err : &failed);
		return;
	}
	op->chain = *chain;
	put(op, b.data);
}

static void take(struct sandbox *sb, const char *name, bool replaces, object_cb cb, void *user)
{
	struct objects *t = sb->all->objects[OBJECTS_SNAPSHOT];
	struct snapshot_op *op = NULL;
	struct err err = { 0 };
	int r = check_name(name, &err);

	/* Before the box is bothered. */
	if (r == 0 && !replaces && name[0] != '\0' && objects_by_name(t, sb->owner, name))
		r = err_set(&err, EEXIST, "name: '%s' is taken", name);
	if (r == 0 && !(op = calloc(1, sizeof(*op))))
		(void)err_sys(&err, ENOMEM, "snapshot");
	if (!op) {
		cb(user, NULL, &err);
		return;
	}
	op->sb = sandbox_ref(sb);
	(void)str_copy(op->name, sizeof(op->name), name);
	op->replaces = replaces;
	op->cb = cb;
	op->user = user;
	op->pending.drop = drop_op;
	list_push_back(&sb->all->pending, &op->pending.node);
	layer_take(sb, 0, on_layer, op);
}

void snapshot_create(struct sandbox *sb, const char *name, object_cb cb, void *user)
{
	take(sb, name, false, cb, user);
}

void snapshot_replace(struct sandbox *sb, const char *name, object_cb cb, void *user)
{
	take(sb, name, true, cb, user);
}
