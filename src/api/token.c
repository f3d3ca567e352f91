#include "api/token.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "api/call.h"
#include "auth/jwt.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "config/config.h"
#include "net/http.h"
#include "outbound/jwks_source.h"

struct token_wait {
	struct jwks_wait wait;
	void (*again)(struct api_call *c);
	struct api_call *call;
};

const char *token_of(const struct api_call *c, const char *authorization, const char *query)
{
	const char *text = query;

	if (authorization) {
		if (strncasecmp(authorization, "Bearer ", 7) != 0)
			return NULL;
		text = authorization + 7 + strspn(authorization + 7, " ");
	}
	return c->api->deps.jwks && text && jwt_is_like(text) ? text : NULL;
}

static void looked(void *user)
{
	struct token_wait *w = user;

	w->again(w->call);
}

static int wait_for_key(struct api_call *c, void (*again)(struct api_call *c), struct err *err)
{
	struct token_wait *w = arena_alloc(http_arena(c->http), sizeof(*w));

	if (!w)
		return err_sys(err, ENOMEM, "token");
	w->wait.done = looked;
	w->wait.user = w;
	w->again = again;
	w->call = c;
	c->has_waited = true;
	if (jwks_source_refresh(c->api->deps.jwks, &w->wait))
		return -EINPROGRESS;
	return err_set(err, EACCES, "the token's key is not known");
}

int token_check(struct api_call *c, const char *token, void (*again)(struct api_call *c),
		struct principal *ret, struct err *err)
{
	const struct config *cfg = c->api->deps.config;
	struct jwt_rules rules = { .issuer = cfg->jwt_issuer,
				   .audience = cfg->jwt_audience,
				   .owner_claim = cfg->jwt_owner_claim,
				   .role_claim = cfg->jwt_role_claim,
				   .may_be_admin = cfg->jwt_admin,
				   .local_owners = cfg->jwt_local_owners.items,
				   .skew_s = (int64_t)(cfg->jwt_skew_ms / 1000) };
	int r = jwt_check(token, jwks_source_keys(c->api->deps.jwks), &rules,
			  clock_wall_ms() / 1000, ret, err);

	if (r == -EAGAIN && !c->has_waited)
		return wait_for_key(c, again, err);
	return r == -EAGAIN ? -EACCES : r;
}
