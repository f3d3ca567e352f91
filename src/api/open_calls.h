/* Calls that are under way, by owner. Each one holds a connection until its answer has ended:
 * waits, streams (SSE, WebSocket, terminals, proxied ports, MCP), uploads and downloads alike. One
 * owner has a share of them; users who have many leave some to admins and to users who have few,
 * and everybody leaves some to health checks and to who is not known yet. Calls to a port without a
 * key are its sandbox's owner's; those and the ones with a token of a sandbox leave some of the
 * share to the owner's keys. */
#pragma once

#include <stdbool.h>

struct api_call;
struct open_calls; /* opaque */
struct open_owner; /* opaque: one owner's */

struct open_as { /* what it was counted as */
	bool is_admin, is_visit;
};

/* conns_max: connections of the server, 0: no limit; owner_max: calls of one owner, the same. NULL
 * without memory. */
struct open_calls *open_calls_create(unsigned conns_max, unsigned owner_max);
struct open_calls *open_calls_free(struct open_calls *all); /* takes NULL, returns NULL */

/* Counts the call, once: a second time is nothing. False after 429 (the owner has as many as it may
 * have) or 503 (all together have), with Retry-After. */
bool open_calls_begin(struct api_call *c, const char *owner);
/* The call is over, also one that was never counted. */
void open_calls_end(const struct api_call *c);
