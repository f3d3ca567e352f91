/* Others' MCP servers for tests of the api: one of them, with one tool, and one call that waits. */
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "mcpc/servers.h"
#include "mcpc/servers_login.h"
#include "tools/bridge.h"
#include "json/jw.h"

void mcpc_servers_each(const struct mcpc_servers *all,
		       void (*fn)(void *user, const struct mcpc_server_info *info), void *user)
{
	(void)all;
	fn(user, &(struct mcpc_server_info){ .name = "it",
					     .transport = "stdio",
					     .place = "sandbox",
					     .state = MCPC_SERVER_READY,
					     .error = "",
					     .program = "it",
					     .n_tools = 1 });
}

void mcpc_servers_search(const struct mcpc_servers *all, const char *server, const char *query,
			 size_t limit, mcpc_tool_fn fn, void *user)
{
	(void)all, (void)server, (void)query, (void)limit;
	(void)fn(user, &(struct mcpc_tool){ .server = "it", .name = "echo" });
}

void mcpc_tool_write(struct jw *w, const struct mcpc_tool *tool, enum mcpc_detail detail)
{
	(void)detail;
	jw_object_begin(w);
	jw_str_field(w, "server", tool->server);
	jw_str_field(w, "name", tool->name);
	jw_object_end(w);
}

int mcpc_servers_call(struct mcpc_servers *all, const struct mcpc_tool_call *call,
		      struct mcpc_use **ret, struct err *err)
{
	(void)all, (void)ret;
	return err_set(err, ENOENT, "there is no server '%.64s'", call->server);
}

void mcpc_servers_cancel(struct mcpc_use *use)
{
	(void)use;
}

void mcpc_approvals_each(const struct mcpc_servers *all, const char *owner,
			 void (*fn)(void *user, const struct mcpc_approval *a), void *user)
{
	(void)all, (void)owner;
	fn(user, &(struct mcpc_approval){ .id = "aaaaaaaaaaaaaaaaaaaa",
					  .server = "it",
					  .tool = "echo",
					  .method = "tools/call",
					  .arguments = "{}",
					  .owner = "ann",
					  .sandbox_id = "" });
}

int mcpc_approval_decide(struct mcpc_servers *all, const char *id, const char *owner, bool is_yes,
			 const char *content, const struct principal *by, struct err *err)
{
	(void)all, (void)id, (void)owner, (void)is_yes, (void)content, (void)by;
	return err_set(err, ENOENT, "nothing of that id waits for an approval");
}

int mcpc_servers_auth(struct mcpc_servers *all, const char *server, struct mcpc_auth **ret,
		      struct err *err)
{
	(void)all, (void)ret;
	return err_set(err, ENOENT, "there is no server '%.64s'", server);
}

void mcpc_servers_retry(struct mcpc_servers *all, const char *server)
{
	(void)all, (void)server;
}

/* Sandboxes that are played have no programs. */
void bridges_settle(struct bridges *all, const char *sandbox_id, void (*done)(void *user),
		    void *user)
{
	(void)all, (void)sandbox_id;
	done(user);
}
