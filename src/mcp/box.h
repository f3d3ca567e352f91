/* sandbox://ID/files/PATH: a file of a sandbox. Inside of mcp/. */
#pragma once

#include "mcp/resources.h"

struct sandbox;
struct sandbox_info;

#define MCP_BOX_SCHEME "sandbox://"
#define MCP_BOX_FILES "/files"
#define MCP_BOX_FILE_MAX (2u << 20) /* bytes of a file that is given as a resource */
#define MCP_BOX_ENTRIES_MAX 4096u   /* of a directory */
#define MCP_BOX_HOME "/workspace"

struct mcp_box_uri {
	char id[64];
	char path[4096]; /* absolute */
};

/* -EINVAL: it is not one. Any spelling. */
int mcp_box_uri_read(const char *uri, struct mcp_box_uri *ret);
int mcp_box_uri_write(struct buf *b, const char *id, const char *path);
/* The live sandbox, if the caller may see it; NULL. box_id: of an endpoint that is one sandbox's.
 */
struct sandbox *mcp_box_find(struct mcp_server *s, const struct principal *who, const char *box_id,
			     const char *id);
/* Live ones that the caller has: each() is called with the id. */
void mcp_box_each(struct mcp_request *q, void (*each)(void *user, const struct sandbox_info *info),
		  void *user);
/* box_watch.c */
int mcp_box_watch(struct mcp_request *q, const char *uri, struct mcp_wait *wait, struct err *err);
void mcp_box_watches_end(struct mcp_server *s); /* all of them */
