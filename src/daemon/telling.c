#include "daemon/telling.h"

#include "config/config.h"
#include "outbound/courier.h"
#include "outbound/jwks_source.h"

int telling_open(struct telling *t, const struct telling_deps *deps, struct err *err)
{
	const struct config *c = deps->config;
	int r = courier_create(deps->loop, &t->courier, err);

	if (r == 0 && c->jwt_jwks)
		r = jwks_source_create(deps->loop, t->courier, c->jwt_jwks, &t->jwks, err);
	return r;
}

void telling_close(struct telling *t)
{
	t->courier = courier_free(t->courier); /* first: it calls nobody back any more */
	t->jwks = jwks_source_free(t->jwks);
}
