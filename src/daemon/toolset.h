/* What agents are given: tools, skills, others' servers, and MCP in front of it all. */
#pragma once

struct api_door;
struct config;
struct err;
struct loop;
struct mcp_fixtures;
struct mcp_server;
struct mcpc_servers;
struct sandboxes;
struct secret;
struct skills;
struct store;
struct tool_table;
struct tools;

struct app_extras { /* what tests add; `holt` gives none */
	const struct tool_table *const *tools;
	const struct mcp_fixtures *fixtures;
	const struct api_door *door; /* instead of mcp's own */
};

struct toolset_deps { /* borrowed */
	struct loop *loop;
	const struct config *config;
	struct sandboxes *sandboxes;
	const struct store *store;
	const struct secret *secret;
	const struct app_extras *extras; /* NULL */
};

struct toolset { /* owned; zeroed is closed */
	struct skills *skills;
	struct mcpc_servers *servers;
	struct tools *tools;
	struct mcp_server *mcp;
};

int toolset_open(struct toolset *t, const struct toolset_deps *deps, struct err *err);
void toolset_close(struct toolset *t); /* also one that was opened in part */
