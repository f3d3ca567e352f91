#include "sandbox/objects.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/map.h"
#include "base/str.h"
#include "sandbox/announce.h"
#include "sandbox/objects_impl.h"
#include "sandbox/quota.h"
#include "sandbox/registry.h"
#include "store/store.h"

#define NAME_KEY_MAX (OBJECT_OWNER_MAX + OBJECT_NAME_MAX + 2)

static void changed(struct objects *t, void *before, void *now)
{
	if (t->kind->changed)
		t->kind->changed(t->all, before, now);
}

static uint64_t bytes_of(const struct objects *t, const struct object *o)
{
	return t->kind->bytes ? t->kind->bytes(o->data) : 0;
}

/* ---- the table ---- */

static void object_free(const struct object_kind *kind, struct object *o)
{
	if (!o)
		return;
	if (o->data)
		kind->free(o->data);
	if (o->text) /* some keep a secret in it */
		explicit_bzero(o->text, strlen(o->text));
	free(o->text);
	free(o);
}

/* As in registry.c: between owner and name stands what neither can hold. */
static size_t name_key(char key[NAME_KEY_MAX], const char *owner, const char *name)
{
	size_t begin = strlen(owner) + 1, n = strlen(name);

	if (n == 0 || begin + n > NAME_KEY_MAX)
		return 0;
	memcpy(key, owner, begin);
	memcpy(key + begin, name, n);
	return begin + n;
}

static int link_object(struct objects *t, struct object *o)
{
	char key[NAME_KEY_MAX];
	size_t n = name_key(key, o->owner, o->name);
	int r = map_put(t->by_id, o->id, strlen(o->id), o, NULL);

	if (r == 0 && n > 0)
		r = map_put(t->by_name, key, n, o, NULL);
	if (r < 0) {
		(void)map_remove(t->by_id, o->id, strlen(o->id));
		return r;
	}
	list_push_back(&t->list, &o->node);
	return 0;
}

static void unlink_object(struct objects *t, struct object *o)
{
	char key[NAME_KEY_MAX];
	size_t n = name_key(key, o->owner, o->name);

	list_remove(&o->node);
	(void)map_remove(t->by_id, o->id, strlen(o->id));
	if (n > 0 && map_get(t->by_name, key, n) == o)
		(void)map_remove(t->by_name, key, n);
	quota_give(t->all, o->owner, QUOTA_DISK, bytes_of(t, o));
	if (!o->is_new)
		usage_keep(t->all, o->owner, bytes_of(t, o), 0);
	object_free(t->kind, o);
}

/* -EINVAL, -E2BIG, -ENOMEM. */
static int make(struct objects *t, const struct object_put *put, struct object **ret)
{
	struct object *o = calloc(1, sizeof(*o));
	int r = o ? 0 : -ENOMEM;

	if (r == 0 && put->id)
		r = str_copy(o->id, sizeof(o->id), put->id);
	else if (r == 0)
		id_make(o->id);
	if (r == 0)
		r = str_copy(o->owner, sizeof(o->owner), put->owner);
	if (r == 0)
		r = str_copy(o->name, sizeof(o->name), put->name);
	if (r == 0 && !(o->text = str_dup(str_of(put->text))))
		r = -ENOMEM;
	if (r == 0)
		r = t->kind->parse(o->text, &o->data);
	if (r < 0) {
		object_free(t->kind, o);
		return r;
	}
	o->state = put->state;
	*ret = o;
	return 0;
}

struct loading {
	struct objects *t;
	int r;
};

static void loaded(struct objects *t, struct object *o)
{
	quota_charge(t->all, o->owner, QUOTA_DISK, bytes_of(t, o));
	usage_keep(t->all, o->owner, 0, bytes_of(t, o));
	changed(t, NULL, o->data);
}

static void on_row(void *user, const struct object_row *row)
{
	struct loading *l = user;
	struct object_put put = { row->id, row->owner, row->name, row->state, row->text };
	struct object *o = NULL;
	int r = make(l->t, &put, &o);

	if (r == 0) {
		o->created_ms = row->created_ms;
		o->updated_ms = row->updated_ms;
		r = link_object(l->t, o);
		if (r < 0)
			object_free(l->t->kind, o);
		else
			loaded(l->t, o);
	}
	if (r == -EINVAL || r == -E2BIG)
		log_warn("sandbox", "%s %s is left out: its record is damaged", l->t->kind->noun,
			 row->id);
	else if (r < 0)
		l->r = r;
}

int objects_create(struct sandboxes *all, const struct object_kind *kind, struct objects **ret,
		   struct err *err)
{
	struct objects *t = calloc(1, sizeof(*t));
	struct loading l = { .t = t };
	int r;

	if (!t)
		return err_sys(err, ENOMEM, "%ss", kind->noun);
	t->all = all;
	t->kind = kind;
	list_init(&t->list);
	t->by_id = map_create(kind->max + 1);
	t->by_name = map_create(kind->max + 1);
	if (!t->by_id || !t->by_name)
		r = err_sys(err, ENOMEM, "%ss", kind->noun);
	else
		r = store_load_objects(all->store, kind->name, on_row, &l, err);
	if (r == 0 && l.r < 0)
		r = err_sys(err, l.r, "load %ss", kind->noun);
	if (r < 0) {
		(void)objects_free(t);
		return r;
	}
	*ret = t;
	return 0;
}

struct objects *objects_free(struct objects *t)
{
	if (!t)
		return NULL;
	LIST_FOREACH (&t->list, o, struct object, node)
		object_free(t->kind, o);
	(void)map_free(t->by_id);
	(void)map_free(t->by_name);
	free(t);
	return NULL;
}

/* ---- looking ---- */

struct object *objects_by_name(struct objects *t, const char *owner, const char *name)
{
	char key[NAME_KEY_MAX];
	size_t n = name_key(key, owner, name);
	struct object *o = n > 0 ? map_get(t->by_name, key, n) : NULL;

	return o && !o->is_new ? o : NULL;
}

struct object *objects_find(struct objects *t, const char *id_or_name, const char *owner)
{
	struct object *o = map_get(t->by_id, id_or_name, strlen(id_or_name));

	if (o && (o->is_new || (owner && strcmp(o->owner, owner) != 0)))
		o = NULL;
	return o || !owner ? o : objects_by_name(t, owner, id_or_name);
}

/* ---- changing ---- */

struct object_write {
	struct flight flight;
	struct objects *t;              /* borrowed: good while the flight's registry is */
	const struct object_kind *kind; /* borrowed, for ever */
	struct object *o;               /* borrowed: marked, so nobody removes it */
	struct object *fresh;           /* owned: what it is replaced with; NULL */
	bool is_removal;
	object_cb cb;
	void *user;
};

static void write_free(struct object_write *w)
{
	object_free(w->kind, w->fresh);
	free(w);
}

/* What was written is so from now on. */
static void apply(struct object_write *w)
{
	struct object *o = w->o, *f = w->fresh;
	uint64_t before = o->is_new ? 0 : bytes_of(w->t, o), now = bytes_of(w->t, f ? f : o);
	char *text = o->text;
	void *data = o->data;

	o->is_new = o->is_writing = false;
	usage_keep(w->t->all, o->owner, before, now);
	if (!f)
		return;
	quota_give(w->t->all, o->owner, QUOTA_DISK, before);
	quota_charge(w->t->all, o->owner, QUOTA_DISK, now);
	o->state = f->state;
	o->updated_ms = f->updated_ms;
	o->text = f->text;
	o->data = f->data;
	f->text = text;
	f->data = data;
}

static bool is_there(const struct object_kind *kind, const struct object *o)
{
	return !o->is_new && (!kind->is_there || kind->is_there(o->state));
}

static void announce(const struct objects *t, const struct object *o, bool was, bool is)
{
	if (t->kind->event && (was || is))
		announce_object(t->all, t->kind->event,
				!was  ? "created"
				: !is ? "deleted"
				      : "updated",
				o);
}

static void dropped(void *user, struct object *o, const struct err *err)
{
	const struct objects *t = user;

	(void)o;
	if (err)
		log_warn("sandbox", "a %s of a deleted owner stays: %s", t->kind->noun, err->text);
}

/* Unless it is being written: finish() comes back to it then. */
static void drop(struct objects *t, const char *id)
{
	const struct object *o = objects_find(t, id, NULL);

	if (o && !o->is_writing)
		objects_remove(t, id, dropped, t);
}

static void finish(struct object_write *w, int r)
{
	bool is_dropped = w->o->is_unwanted && !w->is_removal;
	char id[ID_LEN + 1];
	struct objects *t = w->t;
	struct err err = { 0 };
	bool was = is_there(t->kind, w->o);

	(void)str_copy(id, sizeof(id), w->o->id);
	if (r == -ENOENT && w->is_removal)
		r = 0;
	if (r < 0) {
		if (r == -EEXIST)
			(void)err_set(&err, EEXIST, "name: '%s' is taken", w->o->name);
		else
			(void)err_sys(&err, r, "the store could not take the %s", t->kind->noun);
		w->o->is_writing = false;
		if (w->o->is_new)
			unlink_object(t, w->o);
		w->cb(w->user, NULL, &err);
	} else if (w->is_removal) {
		changed(t, w->o->data, NULL);
		announce(t, w->o, was, false);
		unlink_object(t, w->o);
		w->cb(w->user, NULL, NULL);
	} else {
		apply(w);
		changed(t, w->fresh ? w->fresh->data : NULL, w->o->data);
		announce(t, w->o, was, is_there(t->kind, w->o));
		w->cb(w->user, w->o, NULL);
	}
	write_free(w);
	if (is_dropped)
		drop(t, id);
}

static void on_written(void *user, int r)
{
	struct object_write *w = user;

	if (flight_end(&w->flight))
		finish(w, r);
	else
		write_free(w);
}

static int submit(struct object_write *w)
{
	const struct object *o = w->o, *now = w->fresh ? w->fresh : w->o;
	const struct store *st = w->t->all->store;
	struct object_row row = { .kind = w->t->kind->name,
				  .id = o->id,
				  .owner = o->owner,
				  .name = o->name,
				  .state = now->state,
				  .text = now->text,
				  .created_ms = o->created_ms,
				  .updated_ms = now->updated_ms };

	if (w->is_removal)
		return store_delete_object(st, row.kind, row.id, on_written, w);
	return store_put_object(st, &row, on_written, w);
}

static void begin(struct object_write *w)
{
	int r;

	w->o->is_writing = true;
	r = submit(w);
	if (r < 0)
		finish(w, r);
	else
		flight_begin(w->t->all, &w->flight);
}

static int count_owner(const struct objects *t, const char *owner, struct err *err)
{
	size_t n = 0;

	if (map_len(t->by_id) >= t->kind->max)
		return err_set(err, EDQUOT, "there are %zu %ss already, the limit", t->kind->max,
			       t->kind->noun);
	LIST_FOREACH (&t->list, o, struct object, node)
		n += strcmp(o->owner, owner) == 0;
	if (n >= t->kind->owner_max)
		return err_set(err, EDQUOT, "this owner has %zu %ss already, the limit", n,
			       t->kind->noun);
	return 0;
}

static int add(struct objects *t, const struct object_put *put, struct object_write *w,
	       struct err *err)
{
	char key[NAME_KEY_MAX];
	size_t n = name_key(key, put->owner, put->name);
	int r = count_owner(t, put->owner, err);

	if (r < 0)
		return r;
	if (n > 0 && map_get(t->by_name, key, n))
		return err_set(err, EEXIST, "name: '%s' is taken", put->name);
	r = make(t, put, &w->o);
	if (r < 0)
		return err_sys(err, r, "%s", t->kind->noun);
	r = quota_take(t->all, put->owner, QUOTA_DISK, bytes_of(t, w->o), err);
	if (r == 0 && (r = link_object(t, w->o)) < 0) {
		quota_give(t->all, put->owner, QUOTA_DISK, bytes_of(t, w->o));
		(void)err_sys(err, r, "%s", t->kind->noun);
	}
	if (r < 0) {
		object_free(t->kind, w->o);
		return r;
	}
	w->o->is_new = true;
	w->o->created_ms = w->o->updated_ms = wall_ms(t->all);
	return 0;
}

static struct object_write *write_create(struct objects *t, object_cb cb, void *user)
{
	struct object_write *w = calloc(1, sizeof(*w));
	struct err err = { 0 };

	if (w) {
		w->t = t;
		w->kind = t->kind;
		w->cb = cb;
		w->user = user;
		return w;
	}
	(void)err_sys(&err, ENOMEM, "%s", t->kind->noun);
	cb(user, NULL, &err);
	return NULL;
}

static void refuse(struct object_write *w, const struct err *err)
{
	w->cb(w->user, NULL, err);
	write_free(w);
}

void objects_add(struct objects *t, const struct object_put *put, object_cb cb, void *user)
{
	struct object_write *w = write_create(t, cb, user);
	struct err err = { 0 };

	if (!w)
		return;
	if (add(t, put, w, &err) < 0)
		refuse(w, &err);
	else
		begin(w);
}

/* The object that is to be changed; NULL: *err says why not. */
static struct object *find_idle(struct objects *t, const char *id, struct err *err)
{
	struct object *o = objects_find(t, id, NULL);

	if (o && !o->is_writing)
		return o;
	if (o)
		(void)err_set(err, EBUSY, "the %s is being changed", t->kind->noun);
	else
		(void)err_set(err, ENOENT, "there is no %s '%.64s'", t->kind->noun, id);
	return NULL;
}

void objects_change(struct objects *t, const char *id, uint32_t state, const char *text,
		    object_cb cb, void *user)
{
	struct object_write *w = write_create(t, cb, user);
	struct object_put put = { .state = state, .text = text };
	struct err err = { 0 };
	int r;

	if (!w)
		return;
	w->o = find_idle(t, id, &err);
	if (!w->o) {
		refuse(w, &err);
		return;
	}
	put.id = w->o->id;
	put.owner = w->o->owner;
	put.name = w->o->name;
	r = make(t, &put, &w->fresh);
	if (r < 0) {
		(void)err_sys(&err, r, "%s", t->kind->noun);
		refuse(w, &err);
		return;
	}
	w->fresh->updated_ms = wall_ms(t->all);
	begin(w);
}

void objects_remove(struct objects *t, const char *id, object_cb cb, void *user)
{
	struct object_write *w = write_create(t, cb, user);
	struct err err = { 0 };

	if (!w)
		return;
	w->is_removal = true;
	w->o = find_idle(t, id, &err);
	if (!w->o)
		refuse(w, &err);
	else
		begin(w);
}

void objects_end_owner(struct objects *t, const char *owner)
{
	LIST_FOREACH (&t->list, o, struct object, node)
		if (strcmp(o->owner, owner) == 0) {
			o->is_unwanted = true;
			drop(t, o->id);
		}
}
