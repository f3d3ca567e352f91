#include "daemon/servers_open.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "config/config.h"
#include "daemon/starter.h"
#include "mcpc/servers.h"

int servers_read(const struct config *c, struct buf *ret, struct err *err)
{
	return c->mcp_servers_file ? config_read_file(c->mcp_servers_file, ret, err) : 0;
}

static void tell(void *user, const struct mcpc_server_info *i)
{
	(void)user;
	if (i->state == MCPC_SERVER_FAILED)
		log_error("mcp", "server '%s' is left out: %s", i->name, i->error);
	else if (i->error[0])
		log_warn("mcp", "server '%s': %s", i->name, i->error);
}

int servers_open(const struct config *c, const struct mcpc_servers_deps *deps, struct buf *json,
		 struct mcpc_servers **ret, struct err *err)
{
	struct mcpc_servers_deps all = *deps;
	struct err why = { 0 };
	int r;

	if (!c->mcp_servers_file)
		return 0;
	all.life_ms = c->sandbox_timeout_max_ms;
	all.timeout_ms = c->mcp_call_timeout_ms;
	all.approval_ms = c->mcp_approval_timeout_ms;
	all.variable = starter_variable;
	r = mcpc_servers_create(&all, buf_str(json), json->len, ret, &why);
	if (json->data)
		explicit_bzero(json->data, json->len);
	buf_done(json);
	if (r < 0)
		return err_set(err, -r, "%.100s: %.120s", c->mcp_servers_file, why.text);
	mcpc_servers_each(*ret, tell, NULL);
	return 0;
}
