/* Builds of templates: asked for, begun when their files are there, and followed by asking. */
#include <errno.h>
#include <string.h>

#include "api/call.h"
#include "api/problem.h"
#include "api/queries.h"
#include "api/routes.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"
#include "e2b/handlers.h"
#include "e2b/templates.h"
#include "net/http.h"
#include "sandbox/build.h"
#include "json/jw.h"

#define MIB (1024ull * 1024)

/* ---- bodies ---- */

struct body_request {
	const char *name, *alias;
	struct jv_strings tags;
	uint32_t cpus, memory_mb, disk_mb;
};
static const struct jv_field request_fields[] = {
	JV_FIELD("name", STRING, struct body_request, name, .flags = JV_NULLABLE, .max = 255),
	JV_FIELD("alias", STRING, struct body_request, alias, .flags = JV_NULLABLE, .max = 255),
	JV_FIELD("tags", STRINGS, struct body_request, tags, .flags = JV_NULLABLE,
		 .max = BUILD_TAGS_MAX - 1),
	JV_FIELD("cpuCount", U32, struct body_request, cpus, .flags = JV_NULLABLE, .min = 1,
		 .max = 1024),
	JV_FIELD("memoryMB", U32, struct body_request, memory_mb, .flags = JV_NULLABLE, .min = 1,
		 .max = 1 << 24),
	JV_FIELD("minFreeDiskMb", U32, struct body_request, disk_mb, .flags = JV_NULLABLE, .min = 1,
		 .max = 1 << 24),
};
const struct route_body e2b_body_build_request = {
	.name = "E2bBuildRequest",
	.fields = request_fields,
	.count = sizeof(request_fields) / sizeof(request_fields[0]),
	.size = sizeof(struct body_request),
};

struct body_start {
	const char *image, *template;
	bool force;
	struct jv_objects steps;
	const char *start, *ready;
};
static const struct jv_field step_fields[] = {
	JV_FIELD("type", STRING, struct body_step, type, .flags = JV_REQUIRED, .max = 32),
	JV_FIELD("args", STRINGS, struct body_step, args, .flags = JV_NULLABLE,
		 .max = BUILD_ARGS_MAX, .text_max = BUILD_ARG_MAX),
	JV_FIELD("filesHash", STRING, struct body_step, files, .flags = JV_NULLABLE, .max = 128),
	JV_FIELD("force", BOOL, struct body_step, force, .flags = JV_NULLABLE),
};
static const struct jv_field start_fields[] = {
	JV_FIELD("fromImage", STRING, struct body_start, image, .flags = JV_NULLABLE, .max = 512),
	JV_FIELD("fromTemplate", STRING, struct body_start, template, .flags = JV_NULLABLE,
		 .max = 255),
	JV_FIELD("force", BOOL, struct body_start, force, .flags = JV_NULLABLE),
	JV_FIELD("steps", OBJECTS, struct body_start, steps, .max = BUILD_STEPS_MAX,
		 .size = sizeof(struct body_step), .sub = step_fields,
		 .sub_count = sizeof(step_fields) / sizeof(step_fields[0])),
	JV_FIELD("startCmd", STRING, struct body_start, start, .flags = JV_NULLABLE,
		 .max = MAKEUP_COMMAND_MAX),
	JV_FIELD("readyCmd", STRING, struct body_start, ready, .flags = JV_NULLABLE,
		 .max = MAKEUP_COMMAND_MAX),
};
const struct route_body e2b_body_build_start = {
	.name = "E2bBuildStart",
	.fields = start_fields,
	.count = sizeof(start_fields) / sizeof(start_fields[0]),
	.size = sizeof(struct body_start),
};

/* ---- asking for one ---- */

static void write_tags(struct jw *w, const struct jv_strings *tags)
{
	jw_key(w, "tags");
	jw_array_begin(w);
	for (size_t i = 0; i < tags->len; i++)
		jw_string(w, tags->items[i]);
	if (tags->len == 0)
		jw_string(w, "default");
	jw_array_end(w);
}

static void reserved(void *user, struct object *o, const struct err *err)
{
	_cleanup_(buf_done) struct buf buf = { 0 };
	struct jw w = jw_begin(&buf);
	char uuid[BUILD_UUID_SIZE];
	const struct build *b;

	if (err)
		return problem_reply(user, err);
	b = o->data;
	build_id_write(o->id, uuid);
	jw_object_begin(&w);
	jw_str_field(&w, "templateID", b->name);
	jw_str_field(&w, "buildID", uuid);
	jw_bool_field(&w, "public", false);
	for (int i = 0; i < 2; i++) {
		jw_key(&w, i == 0 ? "names" : "aliases");
		jw_array_begin(&w);
		jw_string(&w, b->name);
		jw_array_end(&w);
	}
	write_tags(&w, &b->tags);
	jw_object_end(&w);
	call_reply(user, 202, &w);
}

/* Those of the list, and the one behind the name. */
static bool gather_tags(struct api_call *c, const struct template_ref *ref, struct jv_strings *ret)
{
	const struct body_request *body = c->body;
	const char **items = arena_array(http_arena(c->http), body->tags.len + 1, sizeof(*items));
	size_t n = 0;

	if (!items) {
		problem_reply(c, &(struct err){ ENOMEM, "tags" });
		return false;
	}
	for (size_t i = 0; i < body->tags.len; i++)
		if (!template_tag_is_default(body->tags.items[i]))
			items[n++] = body->tags.items[i];
	if (ref->tag[0])
		items[n++] = ref->tag;
	*ret = (struct jv_strings){ items, n };
	return true;
}

void e2b_build_request(struct api_call *c)
{
	const struct body_request *body = c->body;
	const char *name = body->name ? body->name : body->alias;
	struct template_ref ref = { 0 };
	struct build_reservation r = { .owner = c->who->owner,
				       .name = ref.name,
				       .limits = { .cpu_milli = body->cpus * 1000,
						   .memory_bytes = body->memory_mb * MIB,
						   .disk_bytes = body->disk_mb * MIB } };

	/* The published clients always send sizes of their own, 2 cores and 1 GiB at least. */
	spec_clamp_limits(&r.limits, sandboxes_limits_max(c->api->deps.sandboxes));
	if (!name || !template_ref_parse(name, &ref) || ref.name[0] == '\0')
		return problem_field(c, "name", "name: want the template's name");
	if (gather_tags(c, &ref, &r.tags))
		build_reserve(c->api->deps.sandboxes, &r, reserved, c);
}

/* ---- beginning ---- */

/* NULL after 404: another owner's, or another template's. */
static struct object *find(struct api_call *c)
{
	struct object *o = template_build_find(c);
	const struct build *b = o ? o->data : NULL;
	struct template_ref ref;

	if (b && template_ref_parse(call_param(c, "tid"), &ref) && strcmp(b->name, ref.name) == 0)
		return o;
	problem_status(c, 404, "build '%.64s' of template '%.64s' not found", call_param(c, "bid"),
		       call_param(c, "tid"));
	return NULL;
}

static void begun(void *user, struct object *o, const struct err *err)
{
	struct api_call *c = user;

	(void)o;
	if (err)
		return problem_reply(c, err);
	http_reply(c->http, 202, NULL, NULL, 0);
}

void e2b_build_start(struct api_call *c)
{
	const struct body_start *body = c->body;
	const struct object *o = find(c);
	const struct build *b = o ? o->data : NULL;
	struct build_wish wish = { .owner = c->who->owner,
				   .key_id = c->who->key_id,
				   .trace = call_trace(c) };

	if (!b)
		return;
	wish.id = o->id;
	wish.name = b->name;
	wish.tags = b->tags;
	wish.said.limits = b->limits;
	if (body->start || body->ready) {
		/* Nothing to start can be waited for all the same. */
		wish.said.make.start.command = body->start && body->start[0] ? body->start : ":";
		wish.said.make.start.ready_command = body->ready;
	}
	if (template_base_find(c, body->template, body->image, &wish) &&
	    template_steps(c, &body->steps, body->force, &wish))
		build_create(c->api->deps.sandboxes, &wish, begun, c);
}
