#include "api/call_auth.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "api/box_auth.h"
#include "api/call.h"
#include "api/keys.h"
#include "api/limits.h"
#include "api/problem.h"
#include "api/routes.h"
#include "api/token.h"
#include "auth/api_key.h"
#include "auth/rate_limit.h"
#include "auth/users.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "net/http.h"
#include "telemetry/metrics.h"

void call_auth_init(struct api_call *c)
{
	static const struct principal nobody = { 0 };

	c->who = &nobody;
	c->box_id = nobody.sandbox_id;
}

int call_admit(struct api_call *c, const struct principal *verified, struct err *err)
{
	struct principal *who = arena_alloc(http_arena(c->http), sizeof(*who));
	int r;

	if (!who)
		return err_sys(err, ENOMEM, "caller");
	*who = *verified;
	r = users_admit(c->api->deps.users, who, err);
	if (r == 0)
		r = keys_check_sandbox(c->api, who->sandbox_id, err);
	if (r < 0)
		return r;
	c->who = who;
	c->box_id = who->sandbox_id;
	return 0;
}

static void deny(struct api_call *c, const char *reason)
{
	metrics_inc(c->api->deps.metrics, METRIC_DENIALS, LABELS(reason));
}

/* A good key is let in whatever others at the same address did: behind a proxy they share one, and
 * 160 bits are not guessed. What the limit holds back is noise. */
static void refuse(struct api_call *c, const struct err *err)
{
	uint64_t now = clock_now_ms();
	uint64_t wait = rate_limit_wait_ms(c->api->failures, http_peer(c->http), now);
	char after[24];

	if (wait == 0) {
		(void)rate_limit_fail(c->api->failures, http_peer(c->http), now);
		deny(c, "unauthenticated");
		return problem_status(c, 401, "%s", err->text);
	}
	deny(c, "rate_limited");
	if (str_format(after, sizeof(after), "%" PRIu64, (wait + 999) / 1000) == 0)
		(void)http_header_add(c->http, "Retry-After", after);
	problem_status(c, 429, "too many requests from here had no valid key");
}

static int check_header(struct api_call *c, const char *token, void (*again)(struct api_call *c),
			struct principal *ret, struct err *err)
{
	struct auth_keys *keys = c->api->deps.keys;
	const char *bearer = http_header(c->http, "Authorization");
	const char *key = http_header(c->http, "X-API-Key");
	const char *jwt = token_of(c, bearer, token);
	const char *box = box_auth_token(bearer, token);

	if (c->door && c->door->authenticate)
		return c->door->authenticate(c, again, ret, err);
	if (box_auth_is_signed(c))
		return box_auth_check_signed(c, ret, err);
	if (box && !key)
		return box_auth_check(c, box, ret, err);
	if ((jwt || box) && key)
		return err_set(err, EACCES, "a token and an API key were given");
	if (jwt)
		return token_check(c, jwt, again, ret, err);
	if (token)
		return auth_check_token(keys, token, ret, err);
	return auth_check(keys, bearer, key, ret, err);
}

static bool is_of_box(const struct api_route *route)
{
	size_t n = strlen(ROUTES_BOX);
	const char *pattern = route->route.pattern;

	return strncmp(pattern, ROUTES_BOX, n) == 0 && (pattern[n] == '\0' || pattern[n] == '/');
}

/* A token of one sandbox is good for that one alone; whether there are others it does not learn.
 * Who it is may always be asked. A door that authenticates for itself knows one sandbox only: that
 * of the token. */
static bool check_sandbox(struct api_call *c)
{
	if (c->who->sandbox_id[0] == '\0' || c->route->route.scope == SCOPE_NONE ||
	    (c->door && c->door->authenticate))
		return true;
	if (!is_of_box(c->route)) {
		deny(c, "forbidden");
		problem_status(c, 403, "this token is good for one sandbox only");
		return false;
	}
	if (call_is_within(c))
		return true;
	deny(c, "forbidden");
	c->is_foreign = true;
	problem_status(c, 404, "there is no sandbox '%.64s'", call_param(c, "id"));
	return false;
}

bool call_authenticate(struct api_call *c, void (*again)(struct api_call *c))
{
	const char *bearer = http_header(c->http, "Authorization");
	const char *key = http_header(c->http, "X-API-Key");
	struct principal verified = { 0 };
	const char *token = NULL;
	struct err err = { 0 };
	int r;

	if (!bearer && !key && c->route->route.flags & ROUTE_SOCKET &&
	    http_query(c->http, "token", &token) < 0) {
		problem_status(c, 400, "a query parameter is not well-formed");
		return false;
	}
	r = check_header(c, token, again, &verified, &err);
	if (r == -EINPROGRESS)
		return false;
	if (r == 0)
		r = call_admit(c, &verified, &err);
	if (r < 0) {
		refuse(c, &err);
		return false;
	}
	if (principal_check(c->who, c->route->route.scope, &err) < 0) {
		deny(c, "forbidden");
		problem_status(c, 403, "%s", err.text);
		return false;
	}
	return check_sandbox(c) && limits_check(c);
}
