#include "daemon/toolset.h"

#include "api/server_way.h"
#include "daemon/servers_open.h"
#include "daemon/skills_open.h"
#include "mcp/server.h"
#include "mcpc/servers.h"
#include "tools/bridge.h"
#include "tools/skills.h"
#include "tools/toolbox.h"

static void skills_changed(void *user)
{
	struct toolset *t = user;

	skills_log(t->skills);
	mcp_skills_changed(t->mcp);
}

static int open_servers(struct toolset *t, const struct toolset_deps *deps, struct err *err)
{
	const struct mcpc_servers_deps servers = { .loop = deps->loop,
						   .sandboxes = deps->sandboxes,
						   .courier = deps->courier,
						   .closed = deps->closed,
						   .events = deps->events,
						   .audit = deps->audit,
						   .metrics = deps->metrics,
						   .spawner = deps->spawner,
						   .version = HOLT_VERSION };

	return servers_open(deps->config, &servers, deps->servers_json, &t->servers, err);
}

static int open_bridges(struct toolset *t, const struct toolset_deps *deps, struct err *err)
{
	const struct bridges_deps bridges = { .loop = deps->loop,
					      .config = deps->config,
					      .sandboxes = deps->sandboxes,
					      .servers = t->servers,
					      .events = deps->events };

	return t->servers ? bridges_create(&bridges, &t->bridges, err) : 0;
}

int toolset_open(struct toolset *t, const struct toolset_deps *deps, struct err *err)
{
	const struct app_extras *extras = deps->extras;
	struct tools_deps tools = { .loop = deps->loop,
				    .config = deps->config,
				    .sandboxes = deps->sandboxes,
				    .store = deps->store,
				    .secret = deps->secret,
				    .audit = deps->audit,
				    .more = extras ? extras->tools : NULL };
	struct mcp_deps mcp = { .loop = deps->loop,
				.config = deps->config,
				.sandboxes = deps->sandboxes,
				.secret = deps->secret,
				.fixtures = extras ? extras->fixtures : NULL };
	int r = open_servers(t, deps, err);

	if (r == 0)
		r = open_bridges(t, deps, err);
	tools.servers = t->servers;
	tools.bridges = t->bridges;
	if (r == 0)
		r = skills_open(deps->loop, deps->config, &t->skills, err);

	tools.skills = mcp.skills = t->skills;
	if (r == 0)
		r = tools_create(&tools, &t->tools, err);
	mcp.tools = t->tools;
	if (r == 0)
		r = mcp_server_create(&mcp, &t->mcp, err);
	if (r == 0)
		skills_on_change(t->skills, skills_changed, t);
	return r;
}

void toolset_set_way(struct toolset *t, struct api *api)
{
	const struct stdio_way way = api_server_way(api);

	if (t->servers)
		mcpc_servers_set_way(t->servers, &way);
}

void toolset_start(struct toolset *t)
{
	if (t->servers)
		mcpc_servers_start(t->servers);
}

bool toolset_stop(struct toolset *t, void (*done)(void *user), void *user)
{
	if (t->servers)
		mcpc_servers_stop(t->servers, done, user);
	return t->servers != NULL;
}

void toolset_close(struct toolset *t)
{
	t->mcp = mcp_server_free(t->mcp);
	t->tools = tools_free(t->tools);
	t->skills = skills_free(t->skills);
	t->bridges = bridges_free(t->bridges);
	t->servers = mcpc_servers_free(t->servers);
}
