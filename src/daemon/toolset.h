/* What agents are given: tools, skills, others' servers, and MCP in front of it all. */
#pragma once

#include <stdbool.h>

#include "mcpc/stdio_spawn.h"

struct api;
struct api_door;
struct bridges;
struct config;
struct err;
struct loop;
struct mcp_fixtures;
struct mcp_server;
struct mcpc_servers;
struct metrics;
struct sandboxes;
struct secret;
struct skills;
struct store;
struct tool_table;
struct tools;

struct audit_log;
struct buf;
struct courier;
struct events;
struct guard_nets;

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
	struct courier *courier;
	const struct guard_nets *closed; /* addresses that nothing may go to */
	struct events *events;
	struct audit_log *audit;
	struct metrics *metrics;
	struct buf *servers_json;     /* of others' servers; wiped */
	struct stdio_spawner spawner; /* of those on this machine */
};

struct toolset { /* owned; zeroed is closed */
	struct skills *skills;
	struct mcpc_servers *servers;
	struct bridges *bridges; /* NULL without servers */
	struct tools *tools;
	struct mcp_server *mcp;
};

int toolset_open(struct toolset *t, const struct toolset_deps *deps, struct err *err);
/* Servers' sandboxes have a way out by it, where their rows say so. */
void toolset_set_way(struct toolset *t, struct api *api);
void toolset_start(struct toolset *t); /* sandboxes can be made */
/* Ends what was started. False: there is nothing to be waited for, done() does not come. */
bool toolset_stop(struct toolset *t, void (*done)(void *user), void *user);
void toolset_close(struct toolset *t); /* also one that was opened in part */
