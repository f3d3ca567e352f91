#include "mcpc/servers_login.h"

#include <errno.h>

#include "mcpc/servers_impl.h"

int mcpc_servers_auth(struct mcpc_servers *all, const char *name, struct mcpc_auth **ret,
		      struct err *err)
{
	struct server *s = servers_by_name(all, name);
	int r;

	if (!s)
		return err_set(err, ENOENT, "there is no server '%.64s'", name);
	if (s->state == MCPC_SERVER_DISABLED || s->state == MCPC_SERVER_FAILED || all->is_stopping)
		return err_set(err, ENOTSUP, "the server '%.64s' is not in use", name);
	r = server_need_auth(s, err);
	if (r < 0)
		return r;
	if (!s->auth)
		return err_set(err, ENOTSUP, "nobody logs in at the server '%.64s': it has no auth",
			       name);
	*ret = s->auth;
	return 0;
}

void mcpc_servers_retry(struct mcpc_servers *all, const char *name)
{
	struct server *s = servers_by_name(all, name);

	if (s && s->state == MCPC_SERVER_WAITING && !all->is_stopping)
		server_connect(s);
}
