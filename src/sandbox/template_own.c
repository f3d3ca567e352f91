#include "sandbox/template_own.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/parse.h"
#include "base/str.h"
#include "sandbox/check.h"
#include "sandbox/pool.h"
#include "sandbox/registry.h"
#include "sandbox/row.h"
#include "sandbox/snapshot.h"
#include "sandbox/template_alias.h"
#include "json/jw.h"

#define TEMPLATES_MAX 20000u
#define TEMPLATES_OWNER_MAX 10000u
#define VERSION_MAX 1000000u

/* ---- as it is kept ---- */

static void template_free(void *data)
{
	struct template_own *t = data;

	pairs_done(&t->env);
	(void)arena_free(t->arena);
	free(t);
}

static int read_template(struct jv o, struct template_own *t)
{
	const char *base = jv_text(jv_get(o, "base")), *about = jv_text(jv_get(o, "about"));
	const char *source = jv_text(jv_get(o, "source"));
	int r;

	if (!base || !about || str_copy(t->base, sizeof(t->base), base) < 0 ||
	    str_copy(t->about, sizeof(t->about), about) < 0 ||
	    str_copy(t->source, sizeof(t->source), source ? source : "") < 0)
		return -EINVAL;
	t->arena = arena_create(MAKEUP_BYTES_MAX);
	if (!t->arena)
		return -ENOMEM;
	row_read_limits(jv_get(o, "limits"), &t->limits);
	(void)jv_u64(jv_get(o, "bytes"), &t->bytes);
	r = makeup_read(o, t->arena, &t->make);
	if (r == 0)
		r = layers_read(jv_get(o, "layers"), &t->layers);
	return r < 0 ? r : pairs_read(jv_get(o, "env"), &t->env);
}

static int template_parse(const char *text, void **ret)
{
	struct template_own *t = calloc(1, sizeof(*t));
	struct jv_doc *doc = NULL;
	int r = t ? jv_parse(text, strlen(text), OBJECT_TEXT_MAX, &doc, NULL) : -ENOMEM;

	if (r == 0)
		r = read_template(jv_root(doc), t);
	(void)jv_free(doc);
	if (r == 0)
		*ret = t;
	else if (t)
		template_free(t);
	return r == 0 || r == -ENOMEM ? r : -EINVAL;
}

static void template_changed(struct sandboxes *all, void *before, void *now)
{
	struct template_own *was = before, *is = now;

	pools_follow(all);
	/* NOTE: as with snapshots, the next start counts anew. */
	if (is && layers_hold(all, &is->layers) < 0)
		is->layers.n = 0;
	if (was)
		layers_drop(all, &was->layers);
}

static uint64_t template_bytes(const void *data)
{
	return ((const struct template_own *)data)->bytes;
}

const struct object_kind template_kind = {
	.name = "template",
	.noun = "template",
	.max = TEMPLATES_MAX,
	.owner_max = TEMPLATES_OWNER_MAX,
	.parse = template_parse,
	.free = template_free,
	.event = "template",
	.changed = template_changed,
	.bytes = template_bytes,
};

static int write_template(const struct template_own *t, struct buf *b)
{
	struct jw w = jw_begin(b);

	jw_object_begin(&w);
	jw_str_field(&w, "about", t->about);
	jw_str_field(&w, "source", t->source);
	jw_str_field(&w, "base", t->base);
	jw_key(&w, "limits");
	row_write_limits(&t->limits, &w);
	jw_key(&w, "env");
	pairs_write(t->env.items, t->env.len, &w);
	jw_key(&w, "layers");
	layers_write(&t->layers, &w);
	jw_uint_field(&w, "bytes", t->bytes);
	makeup_write(&t->make, &w);
	jw_object_end(&w);
	return jw_end(&w);
}

/* ---- finding ---- */

struct newest {
	const char *owner, *name;
	struct object *found;
	uint64_t version;
};

/* 0: it is none of that name. */
static uint64_t version_of(const struct object *o, const char *owner, const char *name)
{
	size_t len = strlen(name);
	uint64_t version;

	if (strcmp(o->owner, owner) != 0 || strncmp(o->name, name, len) != 0 ||
	    o->name[len] != ':' || parse_u64(o->name + len + 1, 1, VERSION_MAX, &version) < 0)
		return 0;
	return version;
}

static void look(void *user, struct object *o)
{
	struct newest *n = user;
	uint64_t version = version_of(o, n->owner, n->name);

	if (version > n->version) {
		n->version = version;
		n->found = o;
	}
}

static struct newest find_newest(struct sandboxes *all, const char *owner, const char *name)
{
	struct newest n = { .owner = owner, .name = name };

	objects_each(all->objects[OBJECTS_TEMPLATE], look, &n);
	return n;
}

struct next {
	const char *owner, *name;
	uint64_t *version;
};

static bool count(const struct object *o, const void *arg)
{
	const struct next *n = arg;
	uint64_t version = version_of(o, n->owner, n->name);

	if (version >= *n->version)
		*n->version = version + 1;
	return false;
}

/* Behind those that are on their way, too. */
static uint64_t next_version(struct sandboxes *all, const char *owner, const char *name)
{
	uint64_t version = 1;
	struct next n = { owner, name, &version };

	(void)objects_search_all(all->objects[OBJECTS_TEMPLATE], count, &n);
	return version;
}

struct object *template_own_find(struct sandboxes *all, const char *owner, const char *name)
{
	static const char latest[] = ":latest";
	struct object *o = objects_find(all->objects[OBJECTS_TEMPLATE], name, owner);
	char base[OBJECT_NAME_MAX + 1];
	size_t n = strlen(name), tail = sizeof(latest) - 1;

	const struct object *alias;

	if (o || n == 0 || n > OBJECT_NAME_MAX)
		return o;
	alias = alias_find(all, owner, name);
	if (alias) {
		const struct template_alias *a = alias->data;

		return objects_by_name(all->objects[OBJECTS_TEMPLATE], owner, a->template);
	}
	(void)str_copy(base, sizeof(base), name);
	if (n > tail && strcmp(name + n - tail, latest) == 0)
		base[n - tail] = '\0';
	return find_newest(all, owner, base).found;
}

/* ---- making ---- */

static int begin_snapshot(const struct snapshot *s, struct template_own *t,
			  const struct pairs **env, struct err *err)
{
	*env = &s->env;
	t->bytes = s->bytes;
	t->limits = s->limits;
	t->make = s->kit.make;
	t->layers = s->kit.layers;
	for (unsigned i = 0; i < s->layers.n; i++)
		if (layers_push(&t->layers, s->layers.ids[i]) < 0)
			return err_set(err, EINVAL, "snapshot: it has too many layers");
	return str_copy(t->base, sizeof(t->base), s->kit.runtime);
}

static int find_start(struct sandboxes *all, const char *owner, const char *from,
		      struct template_own *t, const struct pairs **env, struct err *err)
{
	const struct template_row *row = template_find(from);
	const struct template_own *own;
	const struct object *o;

	if (row) {
		t->limits = all->settings.limits;
		return str_copy(t->base, sizeof(t->base), row->name);
	}
	o = template_own_find(all, owner, from);
	if (!o)
		return err_set(err, EINVAL, "from: there is no template '%.60s'", from);
	own = o->data;
	*env = &own->env;
	t->limits = own->limits;
	t->bytes = own->bytes;
	t->layers = own->layers;
	t->make = own->make;
	(void)str_copy(t->source, sizeof(t->source), own->source);
	return str_copy(t->base, sizeof(t->base), own->base);
}

int template_begin(struct sandboxes *all, const char *owner, const char *from, const char *snapshot,
		   struct template_own *ret, struct err *err)
{
	struct template_own t = { 0 };
	const struct pairs *env = NULL;
	const struct object *o;
	int r;

	if (snapshot[0] == '\0') {
		r = find_start(all, owner, from, &t, &env, err);
	} else {
		o = objects_find(all->objects[OBJECTS_SNAPSHOT], snapshot, owner);
		r = o ? begin_snapshot(o->data, &t, &env, err)
		      : err_set(err, EINVAL, "snapshot: there is no '%.64s'", snapshot);
	}
	if (r < 0)
		return r;
	if (env && pairs_copy(env->items, env->len, &t.env) < 0)
		return err_sys(err, ENOMEM, "template");
	*ret = t;
	return 0;
}

/* What is said, over what there is. */
static void apply_makeup(struct makeup *m, const struct makeup *said)
{
	if (said->user)
		m->user = said->user;
	if (said->workdir)
		m->workdir = said->workdir;
	if (said->writable_root)
		m->writable_root = true;
	if (said->writable.len > 0)
		m->writable = said->writable;
	if (said->preload.len > 0)
		m->preload = said->preload;
	if (said->preload_node.len > 0)
		m->preload_node = said->preload_node;
	if (said->start.command)
		m->start = said->start;
	if (said->profile > m->profile)
		m->profile = said->profile;
	m->strict |= said->strict;
}

int template_apply(struct template_own *t, const struct template_traits *said, struct err *err)
{
	const struct template_row *row = template_find(t->base);
	struct limits limits = said->limits;
	struct pairs env;
	int r = check_env(said->env, said->n_env, err);

	if (r == 0)
		r = spec_fill_limits(&limits, &t->limits, err);
	if (r < 0)
		return r;
	t->limits = limits;
	if (said->about && str_copy(t->about, sizeof(t->about), said->about) < 0)
		return err_set(err, EINVAL, "description: at most %d bytes", TEMPLATE_ABOUT_MAX);
	if (pairs_merge(t->env.items, t->env.len, said->env, said->n_env, &env) < 0)
		return err_sys(err, ENOMEM, "template");
	pairs_done(&t->env);
	t->env = env;
	apply_makeup(&t->make, &said->make);
	return makeup_check(&t->make, row ? row->flags : 0, err);
}

int template_check_name(const char *name, struct err *err)
{
	int r = check_name(name, err);

	/* Their addresses are others'. */
	if (r == 0 && (strcmp(name, "builds") == 0 || strcmp(name, "files") == 0 ||
		       strcmp(name, "cache") == 0))
		return err_set(err, EINVAL, "name: '%s' has another meaning", name);
	if (r == 0 && (strlen(name) > TEMPLATE_NAME_MAX || template_find(name)))
		r = err_set(err, template_find(name) ? EEXIST : EINVAL,
			    "name: '%.60s' is a built-in template's, or longer than %d", name,
			    TEMPLATE_NAME_MAX);
	return r;
}

/* What is complete and may be called so. */
static int check_model(const char *name, const struct template_own *t, struct err *err)
{
	const struct template_row *row = template_find(t->base);
	int r = template_check_name(name, err);

	if (r == 0 && !row)
		r = err_set(err, EINVAL, "from: there is no template '%.60s'", t->base);
	return r < 0 ? r : makeup_check(&t->make, row->flags, err);
}

void template_put(struct sandboxes *all, const char *owner, const char *name,
		  const struct template_own *t, object_cb cb, void *user)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	char full[OBJECT_NAME_MAX + 1];
	struct err err = { 0 };
	int r = check_model(name, t, &err);

	if (r == 0 && write_template(t, &b) < 0)
		r = err_sys(&err, ENOMEM, "template");
	if (r < 0) {
		cb(user, NULL, &err);
		return;
	}
	(void)str_format(full, sizeof(full), "%s:%llu", name,
			 (unsigned long long)next_version(all, owner, name));
	objects_add(all->objects[OBJECTS_TEMPLATE],
		    &(struct object_put){ .owner = owner, .name = full, .text = b.data }, cb, user);
}

void template_create(struct sandboxes *all, const struct template_wish *wish, object_cb cb,
		     void *user)
{
	struct template_own t = { 0 };
	struct err err = { 0 };
	int r = template_check_name(wish->name, &err);

	if (r == 0)
		r = template_begin(all, wish->owner, wish->from, wish->snapshot, &t, &err);
	if (r == 0)
		r = check_limits(&all->settings, &wish->said.limits, &err);
	if (r == 0)
		r = template_apply(&t, &wish->said, &err);
	if (r < 0)
		cb(user, NULL, &err);
	else
		template_put(all, wish->owner, wish->name, &t, cb, user);
	pairs_done(&t.env);
}

void template_delete(struct sandboxes *all, const char *id, object_cb cb, void *user)
{
	struct objects *t = all->objects[OBJECTS_TEMPLATE];
	const struct object *o = objects_find(t, id, NULL);
	struct err err = { 0 };

	if (o && alias_check_removal(all, o, &err) < 0)
		cb(user, NULL, &err);
	else
		objects_remove(t, id, cb, user);
}
