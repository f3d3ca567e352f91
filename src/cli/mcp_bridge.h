/* MCP on standard input and output for a server behind a transport: messages go through as they
 * are, both eras, both ways. What one side does with streams, sessions and headers the other does
 * not see. Knows no descriptors. */
#pragma once

#include <stddef.h>

#include "base/cleanup.h"

struct mcp_bridge; /* opaque */
struct err;
struct mcpc_transport;

#define MCP_BRIDGE_PENDING_MAX 1024u

struct mcp_bridge_ops {
	/* One message for the client, without its line's end. */
	void (*line)(void *user, const char *text, size_t n);
	/* The client has said its last, and has its answers. Once. */
	void (*over)(void *user);
};

/* Takes the transport, also when it fails. */
int mcp_bridge_create(struct mcpc_transport *t, const struct mcp_bridge_ops *ops, void *user,
		      struct mcp_bridge **ret, struct err *err);
struct mcp_bridge *mcp_bridge_free(struct mcp_bridge *b); /* takes NULL, returns NULL */
CLEANUP_FUNC(struct mcp_bridge *, mcp_bridge_free)
/* Bytes of the client, in whatever pieces. */
void mcp_bridge_feed(struct mcp_bridge *b, const char *data, size_t n);
void mcp_bridge_end(struct mcp_bridge *b); /* there are no more */
