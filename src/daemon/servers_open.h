/* Others' MCP servers, as the operator's file has them. */
#pragma once

struct buf;
struct config;
struct err;
struct mcpc_servers;
struct mcpc_servers_deps;

/* While we still may read what is only root's: it may hold secrets. Nothing is configured: ret
 * stays empty. */
int servers_read(const struct config *c, struct buf *ret, struct err *err);
/* deps but for what the configuration says. Rows that are wrong are logged, and the others go on.
 * *ret stays NULL when nothing is configured. json is wiped. */
int servers_open(const struct config *c, const struct mcpc_servers_deps *deps, struct buf *json,
		 struct mcpc_servers **ret, struct err *err);
