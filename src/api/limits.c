#include "api/limits.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/call.h"
#include "api/problem.h"
#include "api/routes.h"
#include "auth/users.h"
#include "base/clock.h"
#include "base/str.h"
#include "config/config.h"
#include "net/http.h"
#include "telemetry/metrics.h"

enum rate_class limits_class(const struct api_route *route)
{
	if (route->rate != ROUTE_RATE_BY_METHOD)
		return (enum rate_class)(route->rate - 1);
	return strcmp(route->route.method, "GET") == 0 || strcmp(route->route.method, "HEAD") == 0
		       ? RATE_READ
		       : RATE_WRITE;
}

struct rate limits_rate(const struct api *api, const char *owner, enum rate_class class)
{
	const struct config *config = api->deps.config;
	const struct rate all[RATE_CLASS_COUNT] = {
		[RATE_READ] = config->rate_read,
		[RATE_WRITE] = config->rate_write,
		[RATE_EXEC] = config->rate_exec,
		[RATE_CREATE] = config->rate_create,
	};
	struct rate rate = all[class];

	users_rate(api->deps.users, owner, class, &rate);
	return rate;
}

bool limits_take(struct api *api, const char *key_id, const char *owner, enum rate_class class,
		 struct bucket_state *ret)
{
	struct rate rate = limits_rate(api, owner, class);
	struct rate all = { rate.count * LIMITS_USER_KEYS, rate.per_ms };
	struct bucket_state of_user;
	char user[OWNER_MAX + 2];
	bool is_let_in;

	if (rate.count == 0)
		return true;
	/* Tokens of an identity provider change all the time: theirs is the owner's. What the key
	 * is refused takes nothing from its user's other keys. */
	if (!buckets_take(api->buckets, key_id[0] ? key_id : owner, class, rate, clock_now_ns(),
			  ret))
		return false;
	(void)snprintf(user, sizeof(user), "@%s", owner);
	is_let_in = buckets_take(api->buckets, user, class, all, clock_now_ns(), &of_user);
	if (!is_let_in || of_user.remaining < ret->remaining)
		*ret = of_user;
	return is_let_in;
}

static void add_number(struct api_call *c, const char *name, uint64_t v)
{
	char text[24];

	if (str_format(text, sizeof(text), "%" PRIu64, v) == 0)
		(void)http_header_add(c->http, name, text);
}

static uint64_t seconds_up(uint64_t ms)
{
	return (ms + 999) / 1000;
}

bool limits_check(struct api_call *c)
{
	enum rate_class class = limits_class(c->route);
	struct rate rate = limits_rate(c->api, c->who->owner, class);
	struct bucket_state s;
	bool is_let_in;

	if (rate.count == 0)
		return true;
	is_let_in = limits_take(c->api, c->who->key_id, c->who->owner, class, &s);
	add_number(c, "X-RateLimit-Limit", rate.count);
	add_number(c, "X-RateLimit-Remaining", s.remaining);
	add_number(c, "X-RateLimit-Reset", seconds_up(s.full_ms));
	if (is_let_in)
		return true;
	metrics_inc(c->api->deps.metrics, METRIC_DENIALS, LABELS("rate_limited"));
	add_number(c, "Retry-After", seconds_up(s.wait_ms));
	problem_status(c, 429,
		       "too many requests of class '%s': %u in %u s for a key, %u for a user "
		       "(rate_%s, or the user's own)",
		       rate_class_name(class), rate.count, rate.per_ms / 1000,
		       rate.count * LIMITS_USER_KEYS, rate_class_name(class));
	return false;
}
