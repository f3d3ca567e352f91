/* Tags of templates: names for versions, which are aliases here. */
#include <errno.h>
#include <string.h>

#include "api/call.h"
#include "api/problem.h"
#include "api/routes.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/str.h"
#include "e2b/handlers.h"
#include "e2b/templates.h"
#include "net/http.h"
#include "sandbox/build.h"
#include "sandbox/template_alias.h"
#include "json/jw.h"

struct body_tags {
	const char *name; /* "target" of those that are set */
	struct jv_strings tags;
};
static const struct jv_field put_fields[] = {
	JV_FIELD("target", STRING, struct body_tags, name, .flags = JV_REQUIRED, .min = 1,
		 .max = 255),
	JV_FIELD("tags", STRINGS, struct body_tags, tags, .flags = JV_REQUIRED, .min = 1,
		 .max = BUILD_TAGS_MAX),
};
static const struct jv_field delete_fields[] = {
	JV_FIELD("name", STRING, struct body_tags, name, .flags = JV_REQUIRED, .min = 1,
		 .max = 255),
	JV_FIELD("tags", STRINGS, struct body_tags, tags, .flags = JV_REQUIRED, .min = 1,
		 .max = BUILD_TAGS_MAX),
};
const struct route_body e2b_body_tags_put = {
	.name = "E2bTagsRequest",
	.fields = put_fields,
	.count = 2,
	.size = sizeof(struct body_tags),
};
const struct route_body e2b_body_tags_delete = {
	.name = "E2bTagsRemoval",
	.fields = delete_fields,
	.count = 2,
	.size = sizeof(struct body_tags),
};

struct tagging { /* in the request's arena: it waits, also for a client that has left */
	struct api_call *call;
	struct template_ref ref;
	uint64_t version;
	char build_id[BUILD_UUID_SIZE];
	size_t at; /* the next tag */
};

/* "team/name:tag" names a tag, too. */
static const char *bare_tag(const char *tag)
{
	const char *colon = strrchr(tag, ':');

	return colon ? colon + 1 : tag;
}

/* Each is a tag, or one of this very template; false after an answer. */
static bool check_tags(struct api_call *c, const struct template_ref *target)
{
	const struct body_tags *body = c->body;
	struct template_ref ref;

	for (size_t i = 0; i < body->tags.len; i++) {
		const char *tag = body->tags.items[i];

		if (template_tag_is_default(bare_tag(tag))) {
			problem_field(c, "tags", "tags: '%s' is always the newest build", tag);
			return false;
		}
		if (tag[0] == '\0' || (strchr(tag, ':') && (!template_ref_parse(tag, &ref) ||
							    strcmp(ref.name, target->name) != 0 ||
							    strcmp(ref.tag, bare_tag(tag)) != 0))) {
			problem_field(c, "tags", "tags: '%.64s': want a tag, or %s:tag", tag,
				      target->name);
			return false;
		}
	}
	return true;
}

/* NULL after an answer. */
static struct tagging *tagging_create(struct api_call *c)
{
	const struct body_tags *body = c->body;
	struct tagging *t = arena_alloc(http_arena(c->http), sizeof(*t));
	const struct object *o;

	if (!t) {
		problem_reply(c, &(struct err){ ENOMEM, "tags" });
		return NULL;
	}
	t->call = c;
	if (!template_ref_parse(body->name, &t->ref)) {
		problem_status(c, 400, "'%.64s': want a template's name, or name:tag", body->name);
		return NULL;
	}
	if (!check_tags(c, &t->ref))
		return NULL;
	o = template_ref_find(c, &t->ref);
	if (!o || parse_u64(o->name + strlen(t->ref.name) + 1, 1, UINT64_MAX, &t->version) < 0) {
		problem_status(c, 404, "template '%.64s' not found", body->name);
		return NULL;
	}
	template_build_id(c, o, t->build_id);
	return t;
}

static void reply_tagged(struct tagging *t)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	const struct body_tags *body = t->call->body;
	struct jw w = jw_begin(&b);

	jw_object_begin(&w);
	jw_str_field(&w, "buildID", t->build_id);
	jw_key(&w, "tags");
	jw_array_begin(&w);
	for (size_t i = 0; i < body->tags.len; i++)
		jw_string(&w, bare_tag(body->tags.items[i]));
	jw_array_end(&w);
	jw_object_end(&w);
	call_reply(t->call, 201, &w);
}

static void tag_next(void *user, struct object *o, const struct err *err)
{
	struct tagging *t = user;
	struct api_call *c = t->call;
	const struct body_tags *body = c->body;

	(void)o;
	if (err)
		return problem_reply(c, err);
	if (t->at == body->tags.len)
		return reply_tagged(t);
	alias_put(c->api->deps.sandboxes, c->who->owner, t->ref.name,
		  bare_tag(body->tags.items[t->at++]), t->version, tag_next, t);
}

void e2b_tags_put(struct api_call *c)
{
	struct tagging *t = tagging_create(c);

	if (t)
		tag_next(t, NULL, NULL);
}

static struct object *find_tag(struct tagging *t, const char *tag)
{
	char full[OBJECT_NAME_MAX + 1];

	if (str_format(full, sizeof(full), "%s:%s", t->ref.name, bare_tag(tag)) < 0)
		return NULL;
	return alias_find(t->call->api->deps.sandboxes, t->call->who->owner, full);
}

static void untag_next(void *user, struct object *gone, const struct err *err)
{
	struct tagging *t = user;
	struct api_call *c = t->call;
	const struct body_tags *body = c->body;
	const struct object *o = NULL;

	(void)gone;
	if (err && err->code != ENOENT)
		return problem_reply(c, err);
	while (t->at < body->tags.len && !o)
		o = find_tag(t, body->tags.items[t->at++]);
	if (!o)
		return call_reply_empty(c);
	objects_remove(sandboxes_objects(c->api->deps.sandboxes, OBJECTS_ALIAS), o->id, untag_next,
		       t);
}

void e2b_tags_delete(struct api_call *c)
{
	const struct body_tags *body = c->body;
	struct tagging *t = tagging_create(c);

	if (!t)
		return;
	for (size_t i = 0; i < body->tags.len; i++)
		if (!find_tag(t, body->tags.items[i]))
			return problem_status(c, 404, "tag '%.64s' not found", body->tags.items[i]);
	untag_next(t, NULL, NULL);
}

struct listing {
	struct api_call *call;
	struct jw *w;
	const char *name;
};

static void write_tag(struct listing *l, const char *tag, const struct object *version,
		      int64_t since_ms)
{
	jw_object_begin(l->w);
	jw_str_field(l->w, "tag", tag);
	template_write_build(l->w, l->call, version);
	jw_iso_field(l->w, "createdAt", since_ms);
	jw_object_end(l->w);
}

static void write_if_of(void *user, struct object *o)
{
	struct listing *l = user;
	size_t n = strlen(l->name);
	const struct object *version;
	struct template_ref ref;

	if (strcmp(o->owner, l->call->who->owner) != 0 || strncmp(o->name, l->name, n) != 0 ||
	    o->name[n] != ':' || !template_ref_parse(o->name, &ref))
		return;
	version = template_ref_find(l->call, &ref);
	if (version)
		write_tag(l, ref.tag, version, o->updated_ms);
}

void e2b_tags_list(struct api_call *c)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);
	struct template_ref ref;
	struct listing l = { c, &w, ref.name };
	const struct object *o = NULL;

	if (template_ref_parse(call_param(c, "tid"), &ref)) {
		ref.tag[0] = '\0';
		o = template_ref_find(c, &ref);
	}
	if (!o)
		return problem_status(c, 404, "template '%.64s' not found", call_param(c, "tid"));
	jw_array_begin(&w);
	write_tag(&l, "default", o, o->created_ms);
	objects_each(sandboxes_objects(c->api->deps.sandboxes, OBJECTS_ALIAS), write_if_of, &l);
	jw_array_end(&w);
	call_reply(c, 200, &w);
}
