#include "daemon/toolset.h"

#include "mcp/server.h"
#include "tools/toolbox.h"

int toolset_open(struct toolset *t, const struct toolset_deps *deps, struct err *err)
{
	const struct app_extras *extras = deps->extras;
	struct tools_deps tools = { .loop = deps->loop,
				    .config = deps->config,
				    .sandboxes = deps->sandboxes,
				    .store = deps->store,
				    .skills = t->skills,
				    .servers = t->servers,
				    .secret = deps->secret,
				    .more = extras ? extras->tools : NULL };
	struct mcp_deps mcp = { .loop = deps->loop,
				.config = deps->config,
				.sandboxes = deps->sandboxes,
				.skills = t->skills,
				.secret = deps->secret,
				.fixtures = extras ? extras->fixtures : NULL };
	int r = tools_create(&tools, &t->tools, err);

	mcp.tools = t->tools;
	if (r == 0)
		r = mcp_server_create(&mcp, &t->mcp, err);
	return r;
}

void toolset_close(struct toolset *t)
{
	t->mcp = mcp_server_free(t->mcp);
	t->tools = tools_free(t->tools);
}
