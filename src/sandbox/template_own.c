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
#include "sandbox/registry.h"
#include "sandbox/row.h"
#include "sandbox/snapshot.h"
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

static void look(void *user, struct object *o)
{
	struct newest *n = user;
	size_t len = strlen(n->name);
	uint64_t version;

	if (strcmp(o->owner, n->owner) == 0 && strncmp(o->name, n->name, len) == 0 &&
	    o->name[len] == ':' && parse_u64(o->name + len + 1, 1, VERSION_MAX, &version) == 0 &&
	    version > n->version) {
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

struct object *template_own_find(struct sandboxes *all, const char *owner, const char *name)
{
	static const char latest[] = ":latest";
	struct object *o = objects_find(all->objects[OBJECTS_TEMPLATE], name, owner);
	char base[OBJECT_NAME_MAX + 1];
	size_t n = strlen(name), tail = sizeof(latest) - 1;

	if (o || n == 0 || n > OBJECT_NAME_MAX)
		return o;
	(void)str_copy(base, sizeof(base), name);
	if (n > tail && strcmp(name + n - tail, latest) == 0)
		base[n - tail] = '\0';
	return find_newest(all, owner, base).found;
}

/* ---- making ---- */

/* What it begins with. */
static int find_start(struct sandboxes *all, const struct template_wish *wish,
		      struct template_own *t, const struct pairs **env, struct err *err)
{
	const struct template_row *row = template_find(wish->from);
	const struct template_own *own;
	const struct snapshot *s;
	const struct object *o;

	if (wish->snapshot[0] != '\0') {
		o = objects_find(all->objects[OBJECTS_SNAPSHOT], wish->snapshot, wish->owner);
		if (!o)
			return err_set(err, EINVAL, "snapshot: there is no '%.64s'",
				       wish->snapshot);
		s = o->data;
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
	if (row) {
		t->limits = all->settings.limits;
		return str_copy(t->base, sizeof(t->base), row->name);
	}
	o = template_own_find(all, wish->owner, wish->from);
	if (!o)
		return err_set(err, EINVAL, "from: there is no template '%.60s'", wish->from);
	own = o->data;
	*env = &own->env;
	t->limits = own->limits;
	t->bytes = own->bytes;
	t->layers = own->layers;
	t->make = own->make;
	(void)str_copy(t->source, sizeof(t->source), own->source);
	return str_copy(t->base, sizeof(t->base), own->base);
}

int template_check_name(const char *name, struct err *err)
{
	int r = check_name(name, err);

	if (r == 0 && (strlen(name) > TEMPLATE_NAME_MAX || template_find(name)))
		r = err_set(err, template_find(name) ? EEXIST : EINVAL,
			    "name: '%.60s' is a built-in template's, or longer than %d", name,
			    TEMPLATE_NAME_MAX);
	return r;
}

static int fill(struct sandboxes *all, const struct template_wish *wish, struct template_own *t,
		struct err *err)
{
	const struct pairs *env = NULL;
	struct limits limits = wish->limits;
	int r = template_check_name(wish->name, err);

	if (r == 0)
		r = check_env(wish->env, wish->n_env, err);
	if (r == 0)
		r = find_start(all, wish, t, &env, err);
	if (r == 0)
		r = spec_fill_limits(&limits, &t->limits, err);
	if (r < 0)
		return r;
	t->limits = limits;
	r = str_copy(t->about, sizeof(t->about), wish->about);
	if (r == 0)
		r = pairs_merge(env ? env->items : NULL, env ? env->len : 0, wish->env, wish->n_env,
				&t->env);
	return r < 0 ? err_sys(err, r, "template") : 0;
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
			 (unsigned long long)find_newest(all, owner, name).version + 1);
	objects_add(all->objects[OBJECTS_TEMPLATE],
		    &(struct object_put){ .owner = owner, .name = full, .text = b.data }, cb, user);
}

void template_create(struct sandboxes *all, const struct template_wish *wish, object_cb cb,
		     void *user)
{
	struct template_own t = { 0 };
	struct err err = { 0 };

	if (fill(all, wish, &t, &err) < 0)
		cb(user, NULL, &err);
	else
		template_put(all, wish->owner, wish->name, &t, cb, user);
	pairs_done(&t.env);
}
