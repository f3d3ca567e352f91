/* Somebody logs in at a configured server: the way to its auth (auth.h). */
#pragma once

struct err;
struct mcpc_auth;
struct mcpc_servers;

/* Borrowed, as long as the servers run. -ENOENT: no such server; -ENOTSUP: it has no auth, or is
 * disabled; what is wrong with its row. */
int mcpc_servers_auth(struct mcpc_servers *all, const char *server, struct mcpc_auth **ret,
		      struct err *err);
/* There is a token now: a server that waits to be tried again is tried at once. */
void mcpc_servers_retry(struct mcpc_servers *all, const char *server);
