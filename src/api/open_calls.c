#include "api/open_calls.h"

#include <stdlib.h>
#include <string.h>

#include "api/call.h"
#include "api/problem.h"
#include "base/map.h"
#include "base/str.h"
#include "net/http.h"
#include "telemetry/metrics.h"

/* Parts of all connections: users who have many leave the one, everybody the other. */
#define USERS_LEAVE 8u
#define ALL_LEAVE 16u
#define FEW 8u          /* calls of one owner */
#define VISITS_LEAVE 4u /* the part of an owner's share that is for the owner's own keys */

struct open_owner {
	unsigned count, visits;
	char name[OWNER_MAX + 1];
};

struct open_calls {
	struct map *owners;      /* owned; so are the values */
	unsigned users, all;     /* calls of users, and of admins too */
	unsigned users_max, max; /* of these; 0: no limit */
	unsigned owner_max, visits_max;
};

struct open_calls *open_calls_create(unsigned conns_max, unsigned owner_max)
{
	struct open_calls *o = calloc(1, sizeof(*o));

	if (!o)
		return NULL;
	o->owners = map_create(conns_max > 0 ? conns_max : 1u << 20);
	if (!o->owners)
		return open_calls_free(o);
	o->users_max = conns_max - conns_max / USERS_LEAVE;
	o->max = conns_max - conns_max / ALL_LEAVE;
	o->owner_max = owner_max;
	o->visits_max = owner_max > 1 ? owner_max - (owner_max + VISITS_LEAVE - 1) / VISITS_LEAVE
				      : owner_max;
	return o;
}

struct open_calls *open_calls_free(struct open_calls *o)
{
	if (!o)
		return NULL;
	if (o->owners)
		MAP_FOREACH (o->owners, it)
			free(it.value);
	(void)map_free(o->owners);
	free(o);
	return NULL;
}

static bool refuse_call(struct api_call *c, int status, const char *reason, const char *why)
{
	metrics_inc(c->api->deps.metrics, METRIC_DENIALS, LABELS(reason));
	(void)http_header_add(c->http, "Retry-After", "1");
	problem_status(c, status, "%s", why);
	return false;
}

static struct open_owner *find_or_add_owner(struct open_calls *o, const char *name)
{
	struct open_owner *one = map_get(o->owners, name, strlen(name));

	if (one)
		return one;
	one = calloc(1, sizeof(*one));
	if (!one)
		return NULL;
	(void)str_format(one->name, sizeof(one->name), "%.*s", OWNER_MAX, name);
	if (map_put(o->owners, one->name, strlen(one->name), one, NULL) == 0)
		return one;
	free(one);
	return NULL;
}

static bool is_admin(const struct api_call *c)
{
	return c->who->scopes & SCOPE_ADMIN;
}

/* By what others have too: a port without a key, or a token of one sandbox, which programs inside
 * may hold. They must not keep the owner from ending them. */
static bool is_visit(const struct api_call *c)
{
	return c->who->owner[0] == '\0' || c->who->sandbox_id[0] != '\0';
}

static bool is_full(const struct open_calls *o, const struct open_owner *one,
		    const struct open_as *as)
{
	unsigned n = as->is_visit ? one->count : one->count - one->visits;

	if (o->max > 0 && o->all >= o->max)
		return true;
	return !as->is_admin && n >= FEW && o->users_max > 0 && o->users >= o->users_max;
}

static bool has_share(const struct open_calls *o, const struct open_owner *one,
		      const struct open_as *as)
{
	if (as->is_admin || o->owner_max == 0)
		return true;
	return one->count < o->owner_max && (!as->is_visit || one->visits < o->visits_max);
}

/* One that was only looked for is not kept. */
static void forget_empty(struct open_calls *o, struct open_owner *one)
{
	if (one->count == 0)
		free(map_remove(o->owners, one->name, strlen(one->name)));
}

bool open_calls_begin(struct api_call *c, const char *owner)
{
	struct open_calls *o = c->api->open_calls;
	const struct open_as as = { .is_admin = is_admin(c), .is_visit = is_visit(c) };
	struct open_owner *one;

	if (c->opened)
		return true;
	one = find_or_add_owner(o, owner);
	if (!one)
		return refuse_call(c, 503, "connections", "there is no memory left for this");
	if (is_full(o, one, &as)) {
		forget_empty(o, one);
		return refuse_call(c, 503, "connections", "too many requests are under way");
	}
	if (!has_share(o, one, &as))
		return refuse_call(c, 429, "owner_connections",
				   "too many requests of this owner are under way "
				   "(max_connections_user)");
	one->count++;
	one->visits += as.is_visit;
	o->all++;
	o->users += !as.is_admin;
	c->opened = one;
	c->opened_as = as;
	return true;
}

void open_calls_end(const struct api_call *c)
{
	struct open_calls *o = c->api->open_calls;
	struct open_owner *one = c->opened;

	if (!one)
		return;
	o->all--;
	o->users -= !c->opened_as.is_admin;
	one->count--;
	one->visits -= c->opened_as.is_visit;
	forget_empty(o, one);
}
