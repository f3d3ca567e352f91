/* /warmpools: how many finished boxes of a template wait. */
#include <errno.h>
#include <string.h>

#include "api/call.h"
#include "api/handlers.h"
#include "api/object_list.h"
#include "api/pool.h"
#include "api/problem.h"
#include "auth/principal.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "net/http.h"
#include "sandbox/pool.h"
#include "sandbox/sandbox.h"
#include "json/jw.h"

static const char *const levels[] = { "standard", "high", "custom" };

static void write_scaling(struct jw *w, const struct pool_scaling *s)
{
	jw_key(w, "autoScaling");
	jw_object_begin(w);
	jw_bool_field(w, "enabled", s->enabled);
	jw_uint_field(w, "targetUtilization", s->utilization);
	jw_double_field(w, "scaleDownDelay", (double)s->quiet_ms / 1e3);
	jw_object_end(w);
}

static void write_pool(struct jw *w, const struct object *o)
{
	const struct pool *p = o->data;

	jw_object_begin(w);
	jw_str_field(w, "id", o->id);
	jw_str_field(w, "name", o->name);
	jw_str_field(w, "runtime", p->wish.runtime);
	jw_str_field(w, "template", p->wish.runtime);
	if (p->wish.owner && p->wish.owner[0] != '\0')
		jw_str_field(w, "owner", p->wish.owner);
	else
		jw_null_field(w, "owner");
	jw_uint_field(w, "minSize", p->wish.min);
	jw_uint_field(w, "maxSize", p->wish.max);
	jw_str_field(w, "securityLevel", levels[p->wish.level]);
	jw_key(w, "preloadPackages");
	jw_array_begin(w);
	for (size_t i = 0; i < p->wish.preload.len; i++)
		jw_string(w, p->wish.preload.items[i]);
	jw_array_end(w);
	write_scaling(w, &p->wish.scaling);
	jw_iso_field(w, "createdAt", o->created_ms);
	jw_iso_field(w, "updatedAt", o->updated_ms);
	jw_object_end(w);
}

static void made(void *user, struct object *o, const struct err *err)
{
	if (err)
		return problem_reply(user, err);
	object_reply(user, 201, o, write_pool);
}

static void changed(void *user, struct object *o, const struct err *err)
{
	if (err)
		return problem_reply(user, err);
	object_reply(user, 200, o, write_pool);
}

static struct object *find(struct api_call *c)
{
	struct object *o = pool_find(c->api->deps.sandboxes, call_param(c, "id"));

	if (!o)
		problem_status(c, 404, "there is no warm pool '%.64s'", call_param(c, "id"));
	return o;
}

void api_warmpool_create(struct api_call *c)
{
	struct pool_wish wish = *(const struct pool_wish *)c->body;

	if (!wish.owner)
		wish.owner = c->who->owner;
	pool_create(c->api->deps.sandboxes, &wish, made, c);
}

void api_warmpool_list(struct api_call *c)
{
	object_reply_list(c, OBJECTS_POOL, &(struct object_filter){ 0 }, write_pool);
}

void api_warmpool_get(struct api_call *c)
{
	struct object *o = find(c);

	if (o)
		object_reply(c, 200, o, write_pool);
}

void api_warmpool_patch(struct api_call *c)
{
	struct object *o = find(c);

	if (o)
		pool_change(c->api->deps.sandboxes, o->id, c->body, changed, c);
}

void api_warmpool_delete(struct api_call *c)
{
	struct object *o = find(c);

	if (o)
		pool_delete(c->api->deps.sandboxes, o->id, object_removed, c);
}

/* What all owners take together, and what went wrong where on the machine. */
static void write_counts(struct jw *w, const struct pool_state *s)
{
	uint64_t claims = s->hits + s->misses;

	jw_uint_field(w, "ready", s->ready);
	jw_uint_field(w, "building", s->building);
	jw_uint_field(w, "claimed", s->claimed);
	jw_uint_field(w, "target", s->target);
	jw_uint_field(w, "hits", s->hits);
	jw_uint_field(w, "misses", s->misses);
	if (claims > 0)
		jw_double_field(w, "hitRate", (double)s->hits / (double)claims);
	else
		jw_null_field(w, "hitRate");
	jw_double_field(w, "timeToReadyMs", (double)s->make_us / 1e3);
	jw_uint_field(w, "availablePods", s->ready);
	jw_uint_field(w, "assignedPods", s->claimed);
	jw_uint_field(w, "pendingPods", s->building);
	pool_put_builds(w, s);
}

/* As /metrics has it: figures of the machine are for admins, by a key that may read them. */
static bool sees_machine(const struct principal *who)
{
	return who->role == ROLE_ADMIN && (who->scopes & SCOPE_METRICS);
}

static void told(void *user, const struct pool_state *s, const struct err *err)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	const struct api_call *c = user;
	struct jw w = jw_begin(&b);

	if (err)
		return problem_reply(user, err);
	jw_object_begin(&w);
	jw_bool_field(&w, "available", s->ready > 0);
	if (sees_machine(c->who))
		write_counts(&w, s);
	jw_object_end(&w);
	call_reply(user, 200, &w);
}

void api_warmpool_status(struct api_call *c)
{
	struct object *o = find(c);
	const struct pool *p = o ? o->data : NULL;

	if (p)
		pool_state(c->api->deps.sandboxes, p, told, c);
}
