/* /snapshots, and fork: what sandboxes have written, kept and used again. */
#include "sandbox/snapshot.h"

#include <errno.h>
#include <inttypes.h>

#include "api/bodies.h"
#include "api/call.h"
#include "api/handlers.h"
#include "api/object_list.h"
#include "api/problem.h"
#include "api/sandbox_json.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "config/config.h"
#include "net/http.h"
#include "json/jw.h"

static void write_snapshot(struct jw *w, const struct object *o)
{
	const struct snapshot *s = o->data;

	jw_object_begin(w);
	jw_str_field(w, "id", o->id);
	if (o->name[0] != '\0')
		jw_str_field(w, "name", o->name);
	else
		jw_null_field(w, "name");
	jw_str_field(w, "owner", o->owner);
	jw_str_field(w, "sandboxId", s->sandbox_id);
	jw_str_field(w, "template", s->template);
	jw_uint_field(w, "size", s->bytes);
	jw_uint_field(w, "files", s->inodes);
	jw_uint_field(w, "skipped", s->skipped);
	jw_uint_field(w, "layers", s->layers.n);
	jw_key(w, "metadata");
	pairs_write(s->metadata.items, s->metadata.len, w);
	jw_iso_field(w, "createdAt", o->created_ms);
	jw_object_end(w);
}

static void taken(void *user, struct object *o, const struct err *err)
{
	if (err)
		return problem_reply(user, err);
	object_reply(user, 201, o, write_snapshot);
}

void api_snapshot_create(struct api_call *c)
{
	const struct body_snapshot *body = c->body;
	struct sandbox *sb = call_sandbox(c);

	if (sb)
		snapshot_create(sb, body->name ? body->name : "", taken, c);
}

void api_snapshot_list(struct api_call *c)
{
	object_reply_list(c, OBJECTS_SNAPSHOT, &(struct object_filter){ .owner = call_owner(c) },
			  write_snapshot);
}

static struct object *find(struct api_call *c)
{
	return object_of_call(c, OBJECTS_SNAPSHOT, "snapshot", call_param(c, "sid"));
}

void api_snapshot_get(struct api_call *c)
{
	struct object *o = find(c);

	if (o)
		object_reply(c, 200, o, write_snapshot);
}

void api_snapshot_delete(struct api_call *c)
{
	struct object *o = find(c);

	if (o)
		objects_remove(sandboxes_objects(c->api->deps.sandboxes, OBJECTS_SNAPSHOT), o->id,
			       object_removed, c);
}

static void forked(void *user, struct sandbox *const *made, size_t n, const struct err *err)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);
	struct sandbox_info info;

	if (err)
		return problem_reply(user, err);
	jw_object_begin(&w);
	jw_key(&w, "items");
	jw_array_begin(&w);
	for (size_t i = 0; i < n; i++) {
		sandbox_info(made[i], &info);
		sandbox_json(&w, &info);
	}
	jw_array_end(&w);
	jw_object_end(&w);
	call_reply(user, 201, &w);
}

void api_sandbox_fork(struct api_call *c)
{
	const struct body_fork *body = c->body;
	uint64_t max = c->api->deps.config->sandbox_timeout_max_ms;
	struct sandbox *sb = call_sandbox(c);
	struct sandbox_info info;

	if (!sb)
		return;
	if (body->timeout_ms > max)
		return problem_field(c, "timeout",
				     "timeout: want at most %" PRIu64
				     " seconds (sandbox_timeout_max)",
				     max / 1000);
	sandbox_info(sb, &info);
	sandbox_fork(sb,
		     &(struct fork_request){ .count = body->count,
					     .name = body->name ? body->name : "",
					     .owner = info.owner,
					     .key_id = c->who->key_id,
					     .timeout_ms = body->timeout_ms,
					     .trace = call_trace(c) },
		     forked, c);
}
