/* /templates/builds: templates by steps. */
#include "sandbox/build.h"

#include <errno.h>
#include <string.h>

#include "api/bodies.h"
#include "api/build_json.h"
#include "api/call.h"
#include "api/handlers.h"
#include "api/object_list.h"
#include "api/problem.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "net/http.h"
#include "sandbox/build_cache.h"
#include "sandbox/output.h"
#include "sandbox/template_own.h"
#include "json/jw.h"

#define TAIL_MAX (16u << 10) /* bytes of a step's output in an answer */

/* ---- answers ---- */

static void write_output(struct jw *w, const struct build_step *s)
{
	_cleanup_(buf_done) struct buf text = { 0 };
	struct output_chunk chunk;
	uint64_t end = s->output ? s->omitted + output_end(s->output) : s->omitted, gap;
	uint64_t from = end > TAIL_MAX ? end - TAIL_MAX : 0, begin = end;

	for (uint64_t at = from; build_step_read(s, at, &chunk, &gap); at = chunk.seq + chunk.len) {
		if (at == from)
			begin = chunk.seq;
		if (buf_append(&text, chunk.data, chunk.len) < 0)
			w->failed = -ENOMEM;
	}
	jw_key(w, "output");
	jw_string_n(w, buf_str(&text), text.len);
	jw_uint_field(w, "outputOmitted", begin);
}

void build_json_step(struct jw *w, const struct build_step *s, bool with_output)
{
	jw_object_begin(w);
	jw_str_field(w, "type", build_step_names[s->type]);
	jw_key(w, "args");
	jw_array_begin(w);
	for (size_t i = 0; i < s->args.len; i++)
		jw_string(w, s->args.items[i]);
	jw_array_end(w);
	jw_str_field(w, "status", build_step_states[s->state]);
	jw_bool_field(w, "cached", s->is_cached);
	jw_uint_field(w, "durationMs", s->ms);
	if (with_output) {
		write_output(w, s);
	} else {
		jw_null_field(w, "output");
		jw_uint_field(w, "outputOmitted", 0);
	}
	jw_object_end(w);
}

static void write_build(struct jw *w, const struct object *o, bool with_output)
{
	const struct build *b = o->data;

	jw_object_begin(w);
	jw_str_field(w, "id", o->id);
	jw_str_field(w, "name", b->name);
	jw_str_field(w, "status", build_status_names[b->status]);
	jw_str_field(w, "from", b->from);
	jw_str_field(w, "template", b->template[0] ? b->template : NULL);
	jw_str_field(w, "reason", b->reason[0] ? b->reason : NULL);
	jw_key(w, "steps");
	jw_array_begin(w);
	for (size_t i = 0; i < b->n_steps; i++)
		build_json_step(w, &b->steps[i], with_output);
	jw_array_end(w);
	jw_iso_field(w, "createdAt", o->created_ms);
	jw_iso_field(w, "startedAt", (int64_t)b->started_ms);
	jw_iso_field(w, "endedAt", (int64_t)b->ended_ms);
	jw_object_end(w);
}

static void write_whole(struct jw *w, const struct object *o)
{
	write_build(w, o, true);
}

static void write_short(struct jw *w, const struct object *o)
{
	write_build(w, o, false);
}

/* ---- a new one ---- */

/* Packages are steps like others, and come first: the rest may need them. */
static bool gather_steps(struct api_call *c, const struct body_build *body, struct build_wish *wish)
{
	const struct {
		int type;
		const struct jv_strings *names;
	} packages[] = { { BUILD_PIP, &body->packages.pip }, { BUILD_NPM, &body->packages.npm } };
	struct build_step *steps =
		arena_array(http_arena(c->http), body->steps.len + 2, sizeof(*steps));
	size_t n = 0;

	if (!steps) {
		problem_reply(c, &(struct err){ ENOMEM, "steps" });
		return false;
	}
	for (size_t i = 0; i < 2; i++)
		if (packages[i].names->len > 0)
			steps[n++] = (struct build_step){ .type = packages[i].type,
							  .args = *packages[i].names };
	if (body->steps.len > 0)
		memcpy(steps + n, body->steps.items, body->steps.len * sizeof(*steps));
	wish->steps = steps;
	wish->n_steps = n + body->steps.len;
	if (wish->n_steps <= BUILD_STEPS_MAX)
		return true;
	problem_field(c, "steps", "at most %d, with those of packages", BUILD_STEPS_MAX);
	return false;
}

static void made(void *user, struct object *o, const struct err *err)
{
	struct api_call *c = user;

	if (err)
		return problem_reply(c, err);
	object_reply(c, 202, o, write_whole);
}

/* Files of the machine, which whoever made the key may not have meant. */
static bool may_use_images(struct api_call *c)
{
	struct err err = { 0 };

	if (principal_check(c->who, SCOPE_IMAGE, &err) == 0)
		return true;
	problem_reply(c, &err);
	return false;
}

void api_build_create(struct api_call *c)
{
	const struct body_build *body = c->body;
	struct build_wish wish = { .owner = c->who->owner,
				   .key_id = c->who->key_id,
				   .name = body->name,
				   .from = body->from ? body->from : "",
				   .snapshot = body->snapshot ? body->snapshot : "",
				   .trace = call_trace(c) };

	if (!!body->from + !!body->snapshot + !!body->root.path > 1)
		return problem_field(c, "root", "from, snapshot and root exclude each other");
	if (body->root.path && !may_use_images(c))
		return;
	if (body->root.path) { /* nothing of a built-in template waits in an image's boxes */
		wish.from = "bash";
		wish.root = body->root.path;
		wish.root_kind = (enum root_source)body->root.kind;
	}
	if (api_template_traits(c, &body->traits, &wish.said) && gather_steps(c, body, &wish))
		build_create(c->api->deps.sandboxes, &wish, made, c);
}

/* ---- those that are there ---- */

struct object *build_of_call(struct api_call *c)
{
	return object_of_call(c, OBJECTS_BUILD, "build", call_param(c, "bid"));
}

void api_build_list(struct api_call *c)
{
	object_reply_list(c, OBJECTS_BUILD, &(struct object_filter){ .owner = call_owner(c) },
			  write_short);
}

void api_build_get(struct api_call *c)
{
	struct object *o = build_of_call(c);

	if (o)
		object_reply(c, 200, o, write_whole);
}

void api_build_delete(struct api_call *c)
{
	struct object *o = build_of_call(c);

	if (o)
		build_delete(c->api->deps.sandboxes, o->id, object_removed, c);
}

void api_build_cache_delete(struct api_call *c)
{
	build_cache_clear(c->api->deps.sandboxes, c->who->owner, object_removed, c);
}
