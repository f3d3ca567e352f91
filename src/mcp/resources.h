/* Resources: what the kinds of them share. Inside of mcp/. */
#pragma once

#include "mcp/server.h"

#define MCP_LISTING_MAX 10000u /* items of a list; what is more is not told */
#define MCP_DIRECTORY "inode/directory"
#define MCP_URI_MAX 8192u /* bytes; longer ones name nothing */

struct mcp_listing { /* arena */
	struct mcp_request *q;
	struct mcp_resource *items;
	size_t n, room;
};

/* Sorts them by address and answers with the page that was asked for. */
void mcp_listing_answer(struct mcp_listing *l);
/* Answers with one content. type NULL: it is not told. Bytes that are no text come as base64. */
void mcp_content_answer(struct mcp_request *q, const char *uri, const char *type, const char *data,
			size_t n);
/* {"uri":...}, in the arena; NULL without memory. */
const char *mcp_uri_data(struct mcp_request *q, const char *uri);

extern const struct mcp_resources mcp_skill_resources, mcp_box_resources;
