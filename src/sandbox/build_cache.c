#include "sandbox/build_cache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/encode.h"
#include "base/log.h"
#include "base/str.h"
#include "sandbox/registry.h"
#include "json/jw.h"

#define ENTRIES_MAX 16384u
#define TEXT_MAX 4096u
#define SWEEP_AT_ONCE 64u

/* ---- as it is kept ---- */

static int read_entry(struct jv o, struct build_entry *e)
{
	const char *owner = jv_text(jv_get(o, "owner"));

	if (!owner || str_copy(e->owner, sizeof(e->owner), owner) < 0)
		return -EINVAL;
	(void)jv_u64(jv_get(o, "bytes"), &e->bytes);
	return layers_read(jv_get(o, "layers"), &e->layers);
}

static int entry_parse(const char *text, void **ret)
{
	struct build_entry *e = calloc(1, sizeof(*e));
	struct jv_doc *doc = NULL;
	int r = e ? jv_parse(text, strlen(text), TEXT_MAX, &doc, NULL) : -ENOMEM;

	if (r == 0)
		r = read_entry(jv_root(doc), e);
	(void)jv_free(doc);
	if (r == 0)
		*ret = e;
	else
		free(e);
	return r == 0 || r == -ENOMEM ? r : -EINVAL;
}

static void entry_changed(struct sandboxes *all, void *before, void *now)
{
	struct build_entry *was = before, *is = now;

	/* NOTE: as with snapshots, the next start counts anew. */
	if (is && layers_hold(all, &is->layers) < 0)
		is->layers.n = 0;
	if (was)
		layers_drop(all, &was->layers);
}

static uint64_t entry_bytes(const void *data)
{
	return ((const struct build_entry *)data)->bytes;
}

const struct object_kind build_entry_kind = {
	.name = "build-layer",
	.noun = "cached step",
	.max = ENTRIES_MAX,
	.owner_max = BUILD_CACHE_OWNER_MAX,
	.parse = entry_parse,
	.free = free,
	.changed = entry_changed,
	.bytes = entry_bytes,
};

static struct objects *table(struct sandboxes *all)
{
	return all->objects[OBJECTS_BUILD_LAYER];
}

/* ---- looking ---- */

const struct build_entry *build_cache_find(struct sandboxes *all, const char *owner,
					   const uint8_t key[HASH_LEN])
{
	char name[2 * HASH_LEN + 1];
	struct object *o;
	struct build_entry *e;

	encode_hex(key, HASH_LEN, name);
	o = objects_by_name(table(all), owner, name);
	e = o ? o->data : NULL;
	if (!e || e->layers.n == 0)
		return NULL;
	e->used_ms = wall_ms(all);
	return e;
}

static int64_t used_at(const struct object *o)
{
	const struct build_entry *e = o->data;

	return e->used_ms ? e->used_ms : o->updated_ms;
}

/* ---- making room ---- */

static void on_removed(void *user, struct object *o, const struct err *err)
{
	(void)user;
	(void)o;
	if (err)
		log_debug("sandbox", "a cached step could not be forgotten: %s", err->text);
}

struct search {
	const char *owner;
	struct object *oldest;
	size_t n;
};

static void look(void *user, struct object *o)
{
	struct search *s = user;

	if (o->is_writing || strcmp(o->owner, s->owner) != 0)
		return;
	s->n++;
	if (!s->oldest || used_at(o) < used_at(s->oldest))
		s->oldest = o;
}

/* False: there is none to remove. */
static bool remove_oldest(struct sandboxes *all, const char *owner, size_t most)
{
	struct search s = { .owner = owner };

	objects_each(table(all), look, &s);
	if (!s.oldest || s.n <= most)
		return false;
	objects_remove(table(all), s.oldest->id, on_removed, NULL);
	return true;
}

static bool is_stale(const struct object *o, const void *now_ms)
{
	return !o->is_writing &&
	       used_at(o) + (int64_t)BUILD_CACHE_DAYS_MS < *(const int64_t *)now_ms;
}

void build_cache_sweep(struct sandboxes *all)
{
	int64_t now = wall_ms(all);

	for (unsigned i = 0; i < SWEEP_AT_ONCE; i++) {
		struct object *o = objects_search(table(all), is_stale, &now);

		if (!o)
			return;
		objects_remove(table(all), o->id, on_removed, NULL);
	}
}

/* ---- forgetting all of it ---- */

struct clearing {
	struct pending pending;
	struct sandboxes *all;
	const char *owner; /* only while it begins; NULL: anybody's */
	size_t left;
	struct err err;
	object_cb cb;
	void *user;
};

static void drop_clearing(struct pending *p)
{
	free(LIST_ENTRY(p, struct clearing, pending));
}

static void on_cleared(void *user, struct object *o, const struct err *err)
{
	struct clearing *c = user;

	(void)o;
	if (err && err->code != EBUSY && err->code != ENOENT) /* somebody else is at it */
		c->err = *err;
	if (--c->left > 0)
		return;
	list_remove(&c->pending.node);
	c->cb(c->user, NULL, c->err.code ? &c->err : NULL);
	free(c);
}

static void clear_one(void *user, struct object *o)
{
	struct clearing *c = user;

	if (c->owner && strcmp(o->owner, c->owner) != 0)
		return;
	c->left++;
	objects_remove(table(c->all), o->id, on_cleared, c);
}

void build_cache_clear(struct sandboxes *all, const char *owner, object_cb cb, void *user)
{
	struct clearing *c = calloc(1, sizeof(*c));

	if (!c) {
		cb(user, NULL, &(struct err){ ENOMEM, "out of memory" });
		return;
	}
	*c = (struct clearing){ .all = all, .owner = owner, .left = 1, .cb = cb, .user = user };
	c->pending.drop = drop_clearing;
	list_push_back(&all->pending, &c->pending.node);
	objects_each(table(all), clear_one, c);
	on_cleared(c, NULL, NULL);
}

/* ---- keeping ---- */

static void on_kept(void *user, struct object *o, const struct err *err)
{
	(void)user;
	(void)o;
	if (err && err->code != EEXIST)
		log_debug("sandbox", "a step was not cached: %s", err->text);
}

static int write_entry(const char *owner, const struct layers *layers, uint64_t bytes,
		       struct buf *b)
{
	struct jw w = jw_begin(b);

	jw_object_begin(&w);
	jw_str_field(&w, "owner", owner);
	jw_uint_field(&w, "bytes", bytes);
	jw_key(&w, "layers");
	layers_write(layers, &w);
	jw_object_end(&w);
	return jw_end(&w);
}

/* Whether there is room: the entry takes it in this very turn. What is removed is counted until the
 * store has forgotten it: who needs the room now is refused, and has it with the next build. */
static int check_disk(struct sandboxes *all, const char *owner, uint64_t bytes, struct err *err)
{
	int r = quota_take(all, owner, QUOTA_DISK, bytes, err);

	if (r < 0)
		(void)remove_oldest(all, owner, 0);
	else
		quota_give(all, owner, QUOTA_DISK, bytes);
	return r;
}

int build_cache_put(struct sandboxes *all, const char *owner, const uint8_t key[HASH_LEN],
		    const struct layers *layers, uint64_t bytes, struct err *err)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	char name[2 * HASH_LEN + 1];
	const struct object *there;
	int r = check_disk(all, owner, bytes, err);

	if (r < 0)
		return r;
	if (write_entry(owner, layers, bytes, &b) < 0)
		return 0;
	encode_hex(key, HASH_LEN, name);
	there = objects_by_name(table(all), owner, name);
	if (there) { /* it was made anew because somebody asked for that */
		objects_change(table(all), there->id, 0, b.data, on_kept, NULL);
		return 0;
	}
	/* Its place is free when the store has forgotten the old one: there is one to spare. */
	(void)remove_oldest(all, owner, BUILD_CACHE_OWNER_MAX - 2);
	objects_add(table(all),
		    &(struct object_put){ .owner = owner, .name = name, .text = b.data }, on_kept,
		    NULL);
	return 0;
}
