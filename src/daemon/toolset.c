#include "daemon/toolset.h"

#include "daemon/skills_open.h"
#include "mcp/server.h"
#include "tools/skills.h"
#include "tools/toolbox.h"

/* Their names stand in a tool's description, too. */
static void skills_changed(void *user)
{
	struct toolset *t = user;

	skills_log(t->skills);
	mcp_server_changed(t->mcp, MCP_CHANGE_TOOLS | MCP_CHANGE_RESOURCES);
}

int toolset_open(struct toolset *t, const struct toolset_deps *deps, struct err *err)
{
	const struct app_extras *extras = deps->extras;
	struct tools_deps tools = { .loop = deps->loop,
				    .config = deps->config,
				    .sandboxes = deps->sandboxes,
				    .store = deps->store,
				    .servers = t->servers,
				    .secret = deps->secret,
				    .more = extras ? extras->tools : NULL };
	struct mcp_deps mcp = { .loop = deps->loop,
				.config = deps->config,
				.sandboxes = deps->sandboxes,
				.secret = deps->secret,
				.fixtures = extras ? extras->fixtures : NULL };
	int r = skills_open(deps->loop, deps->config, &t->skills, err);

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

void toolset_close(struct toolset *t)
{
	t->mcp = mcp_server_free(t->mcp);
	t->tools = tools_free(t->tools);
	t->skills = skills_free(t->skills);
}
