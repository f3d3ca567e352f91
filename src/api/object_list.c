#include "api/object_list.h"

#include <errno.h>

#include "api/call.h"
#include "api/problem.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "net/http.h"
#include "json/jw.h"

#define LIST_DEFAULT 50
#define LIST_BYTES (4u << 20) /* a page ends early above this */

void object_reply_list(struct api_call *c, enum object_set set, const struct object_filter *filter,
		       object_write_fn write)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct object_filter f = *filter;
	struct cursor cursor = { 0 };
	uint64_t limit = LIST_DEFAULT;
	struct object **found;
	struct jw w = jw_begin(&b);
	size_t n, told = 0;
	bool more;

	if (!call_query_u64(c, "limit", &limit) || !call_query_cursor(c, &cursor))
		return;
	f.before_ms = cursor.before_ms;
	f.before_id = cursor.before_ms ? cursor.before_id : NULL;
	found = arena_array(http_arena(c->http), limit, sizeof(struct object *));
	if (!found)
		return problem_reply(c, &(struct err){ ENOMEM, "list" });
	n = objects_list(sandboxes_objects(c->api->deps.sandboxes, set), &f, found, limit, &more);
	jw_object_begin(&w);
	jw_key(&w, "items");
	jw_array_begin(&w);
	for (; told < n && b.len < LIST_BYTES; told++)
		write(&w, found[told]);
	jw_array_end(&w);
	call_write_cursor(&w, (more || told < n) && told > 0,
			  told ? found[told - 1]->created_ms : 0, told ? found[told - 1]->id : "");
	jw_object_end(&w);
	call_reply(c, 200, &w);
}

void object_reply(struct api_call *c, int status, const struct object *o, object_write_fn write)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);

	write(&w, o);
	call_reply(c, status, &w);
}

struct object *object_of_call(struct api_call *c, enum object_set set, const char *noun,
			      const char *id_or_name)
{
	struct objects *t = sandboxes_objects(c->api->deps.sandboxes, set);
	/* As with sandboxes: an admin's own goes before another owner's. */
	struct object *o = objects_find(t, id_or_name, c->who->owner);

	if (!o && !call_owner(c))
		o = objects_find(t, id_or_name, NULL);
	if (!o)
		problem_status(c, 404, "there is no %s '%.64s'", noun, id_or_name);
	return o;
}

void object_removed(void *call, struct object *o, const struct err *err)
{
	(void)o;
	if (err)
		return problem_reply(call, err);
	call_reply_empty(call);
}
