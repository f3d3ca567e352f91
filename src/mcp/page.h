/* A page of a list whose items come in ascending order of a key. A cursor is the last key that was
 * given, so a list that changes meanwhile loses nothing and repeats nothing. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct jw;
struct mcp_request;

#define MCP_PAGE_MAX 100u

struct mcp_page {
	const char *after; /* "": from the beginning */
	size_t n, max;
	const char *last; /* NULL: none was given */
	bool is_full;     /* there are others behind it */
};

/* Reads params.cursor. False: it is no good one, and the request is answered. */
bool mcp_page_begin(struct mcp_request *q, struct mcp_page *p);
/* Whether the item is on this page. The key must live until mcp_page_end(). */
bool mcp_page_takes(struct mcp_page *p, const char *key);
/* nextCursor, where there is more. */
void mcp_page_end(struct mcp_request *q, const struct mcp_page *p, struct jw *w);
/* Of a list that is always whole: there is no cursor that it has given. False: answered. */
bool mcp_page_is_whole(struct mcp_request *q);
