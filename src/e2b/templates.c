/* Templates that are there: listed, looked at, deleted, found by name. */
#include "e2b/templates.h"

#include <errno.h>
#include <string.h>

#include "api/call.h"
#include "api/problem.h"
#include "api/routes.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"
#include "e2b/e2b.h"
#include "e2b/handlers.h"
#include "e2b/snapshots.h"
#include "e2b/template_names.h"
#include "net/http.h"
#include "sandbox/build.h"
#include "sandbox/template.h"
#include "sandbox/template_alias.h"
#include "sandbox/template_own.h"
#include "json/jw.h"

#define MIB (1024u * 1024)

/* ---- names ---- */

bool template_ref_parse(const char *text, struct template_ref *ret)
{
	const char *slash = strrchr(text, '/'), *begin = slash ? slash + 1 : text;
	size_t n = strcspn(begin, ":");

	*ret = (struct template_ref){ 0 };
	if (n == 0 || (begin[n] && !begin[n + 1]))
		return false;
	if (str_format(ret->name, sizeof(ret->name), "%.*s", (int)n, begin) < 0 ||
	    (begin[n] && str_copy(ret->tag, sizeof(ret->tag), begin + n + 1) < 0))
		return false;
	for (char *p = ret->name; *p; p++)
		*p = *p >= 'A' && *p <= 'Z' ? (char)(*p | 0x20) : *p;
	if (template_tag_is_default(ret->tag))
		ret->tag[0] = '\0';
	return true;
}

bool template_tag_is_default(const char *tag)
{
	return strcmp(tag, "default") == 0;
}

struct object *template_ref_find(struct api_call *c, const struct template_ref *ref)
{
	char full[2 * OBJECT_NAME_MAX + 2];

	if (str_format(full, sizeof(full), "%s%s%s", ref->name, ref->tag[0] ? ":" : "", ref->tag) <
	    0)
		return NULL;
	return template_own_find(c->api->deps.sandboxes, c->who->owner, full);
}

/* "web" of "web:3"; whether two are versions of one. */
static bool is_version_of(const struct object *o, const char *owner, const char *name)
{
	size_t n = strlen(name);

	return strcmp(o->owner, owner) == 0 && strncmp(o->name, name, n) == 0 && o->name[n] == ':';
}

struct maker { /* of a version: the newest, as numbers are given anew when all were deleted */
	const struct object *version, *build;
};

static void look_for_maker(void *user, struct object *o)
{
	struct maker *m = user;
	const struct build *b = o->data;

	if (strcmp(o->owner, m->version->owner) == 0 &&
	    strcmp(b->template, m->version->name) == 0 &&
	    (!m->build || o->created_ms >= m->build->created_ms))
		m->build = o;
}

void template_build_id(struct api_call *c, const struct object *version, char ret[BUILD_UUID_SIZE])
{
	struct maker m = { .version = version };

	objects_each(sandboxes_objects(c->api->deps.sandboxes, OBJECTS_BUILD), look_for_maker, &m);
	build_id_write(m.build ? m.build->id : version->id, ret);
}

void template_write_build(struct jw *w, struct api_call *c, const struct object *version)
{
	char uuid[BUILD_UUID_SIZE];

	template_build_id(c, version, uuid);
	jw_str_field(w, "buildID", uuid);
}

struct object *template_build_find(struct api_call *c)
{
	const char *text = call_param(c, "bid");
	char id[ID_LEN + 1];

	return objects_find(sandboxes_objects(c->api->deps.sandboxes, OBJECTS_BUILD),
			    build_id_read(text, id) ? id : text, c->who->owner);
}

/* The version that the path names; NULL after 404. */
static struct object *find(struct api_call *c, const char *text, struct template_ref *ref)
{
	struct object *o = template_ref_parse(text, ref) ? template_ref_find(c, ref) : NULL;

	if (!o)
		problem_status(c, 404, "template '%.64s' not found", text);
	return o;
}

/* ---- as JSON ---- */

static void write_names(struct jw *w, const char *name)
{
	jw_key(w, "names");
	jw_array_begin(w);
	jw_string(w, name);
	jw_array_end(w);
	jw_key(w, "aliases");
	jw_array_begin(w);
	jw_string(w, name);
	jw_array_end(w);
}

static void write_size(struct jw *w, const struct template_own *t)
{
	jw_uint_field(w, "cpuCount", (t->limits.cpu_milli + 999) / 1000);
	jw_uint_field(w, "memoryMB", t->limits.memory_bytes / MIB);
	jw_uint_field(w, "diskSizeMB", t->limits.disk_bytes / MIB);
	jw_str_field(w, "envdVersion", E2B_ENVD_VERSION);
}

static void write_use(struct jw *w)
{
	jw_bool_field(w, "public", false);
	jw_null_field(w, "lastSpawnedAt");
	jw_uint_field(w, "spawnCount", 0);
}

struct versions {
	struct api_call *call;
	struct jw *w;
	const char *name;
	size_t n;
};

static void count_version(void *user, struct object *o)
{
	struct versions *v = user;

	v->n += is_version_of(o, v->call->who->owner, v->name);
}

static struct objects *table(struct api_call *c)
{
	return sandboxes_objects(c->api->deps.sandboxes, OBJECTS_TEMPLATE);
}

static void write_template(struct versions *v, const struct object *o)
{
	struct jw *w = v->w;

	jw_object_begin(w);
	jw_str_field(w, "templateID", v->name);
	template_write_build(w, v->call, o);
	write_names(w, v->name);
	write_size(w, o->data);
	write_use(w);
	jw_iso_field(w, "createdAt", o->created_ms);
	jw_iso_field(w, "updatedAt", o->updated_ms);
	jw_null_field(w, "createdBy");
	v->n = 0;
	objects_each(table(v->call), count_version, v);
	jw_uint_field(w, "buildCount", v->n);
	jw_str_field(w, "buildStatus", "ready");
	jw_object_end(w);
}

/* Each name once, by its newest version. */
static void write_newest(void *user, struct object *o)
{
	const struct versions *all = user;
	struct api_call *c = all->call;
	struct template_ref ref;
	struct versions one = { .call = c, .w = all->w, .name = ref.name };

	if (strcmp(o->owner, c->who->owner) != 0 || !template_ref_parse(o->name, &ref))
		return;
	ref.tag[0] = '\0';
	if (template_ref_find(c, &ref) == o)
		write_template(&one, o);
}

void e2b_template_list(struct api_call *c)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);
	struct versions v = { .call = c, .w = &w };

	jw_array_begin(&w);
	objects_each(table(c), write_newest, &v);
	jw_array_end(&w);
	call_reply(c, 200, &w);
}

static void write_version(void *user, struct object *o)
{
	struct versions *v = user;

	if (!is_version_of(o, v->call->who->owner, v->name))
		return;
	jw_object_begin(v->w);
	template_write_build(v->w, v->call, o);
	jw_str_field(v->w, "status", "ready");
	jw_iso_field(v->w, "createdAt", o->created_ms);
	jw_iso_field(v->w, "updatedAt", o->updated_ms);
	jw_iso_field(v->w, "finishedAt", o->created_ms);
	write_size(v->w, o->data);
	jw_object_end(v->w);
}

void e2b_template_get(struct api_call *c)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);
	struct template_ref ref;
	struct object *o = find(c, call_param(c, "tid"), &ref);
	struct versions v = { .call = c, .w = &w, .name = ref.name };

	if (!o)
		return;
	jw_object_begin(&w);
	jw_str_field(&w, "templateID", ref.name);
	write_names(&w, ref.name);
	write_use(&w);
	jw_iso_field(&w, "createdAt", o->created_ms);
	jw_iso_field(&w, "updatedAt", o->updated_ms);
	jw_key(&w, "builds");
	jw_array_begin(&w);
	objects_each(table(c), write_version, &v);
	jw_array_end(&w);
	jw_object_end(&w);
	call_reply(c, 200, &w);
}

void e2b_template_alias(struct api_call *c)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);
	const char *alias = call_param(c, "alias");
	bool is_ours = template_names_own(alias) || template_find(alias);
	struct template_ref ref = { 0 };

	if (!is_ours && !find(c, alias, &ref))
		return;
	jw_object_begin(&w);
	jw_str_field(&w, "templateID", is_ours ? alias : ref.name);
	jw_bool_field(&w, "public", is_ours);
	jw_object_end(&w);
	call_reply(c, 200, &w);
}

/* ---- changing ---- */

struct body_patch {
	bool is_public;
};
static const struct jv_field patch_fields[] = {
	JV_FIELD("public", BOOL, struct body_patch, is_public),
};
const struct route_body e2b_body_template_patch = {
	.name = "E2bTemplatePatch",
	.fields = patch_fields,
	.count = sizeof(patch_fields) / sizeof(patch_fields[0]),
	.size = sizeof(struct body_patch),
	.is_optional = true,
};

void e2b_template_patch(struct api_call *c)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	const struct body_patch *body = c->body;
	struct jw w = jw_begin(&b);
	struct template_ref ref;

	if (!find(c, call_param(c, "tid"), &ref))
		return;
	if (body->is_public)
		return problem_field(c, "public", "public: a template is its owner's alone here");
	jw_object_begin(&w);
	write_names(&w, ref.name);
	jw_object_end(&w);
	call_reply(c, 200, &w);
}

/* Its tags first: no version goes while one stands for it. */
struct removal { /* in the request's arena: it waits, also for a client that has left */
	struct api_call *call;
	struct template_ref ref;
};

static bool is_of_removal(const struct object *o, const void *arg)
{
	const struct removal *r = arg;

	return is_version_of(o, r->call->who->owner, r->ref.name);
}

static void remove_next(void *user, struct object *gone, const struct err *err)
{
	struct removal *r = user;
	struct sandboxes *all = r->call->api->deps.sandboxes;
	struct objects *aliases = sandboxes_objects(all, OBJECTS_ALIAS);
	const struct object *o;

	(void)gone;
	if (err && err->code != ENOENT)
		return problem_reply(r->call, err);
	o = objects_search(aliases, is_of_removal, r);
	if (o)
		return objects_remove(aliases, o->id, remove_next, r);
	o = objects_search(table(r->call), is_of_removal, r);
	if (o)
		return template_delete(all, o->id, remove_next, r);
	call_reply_empty(r->call);
}

void e2b_template_delete(struct api_call *c)
{
	struct removal *r = arena_alloc(http_arena(c->http), sizeof(*r));

	if (!r)
		return problem_reply(c, &(struct err){ ENOMEM, "template" });
	r->call = c;
	if (e2b_snapshot_delete(c, call_param(c, "tid")) || !find(c, call_param(c, "tid"), &r->ref))
		return;
	remove_next(r, NULL, NULL);
}
