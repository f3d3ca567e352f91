#include "mcp/page.h"

#include <string.h>

#include "base/arena.h"
#include "base/encode.h"
#include "base/utf8.h"
#include "mcp/server.h"

#define CURSOR_MAX 4096u

static bool refuse(struct mcp_request *q)
{
	mcp_fail(q, RPC_PARAMS, "cursor: not one that this list has given");
	return false;
}

bool mcp_page_begin(struct mcp_request *q, struct mcp_page *p)
{
	struct jv v = jv_get(q->params, "cursor");
	const char *text = jv_text(v);
	char *key;
	ssize_t n;

	*p = (struct mcp_page){ .after = "", .max = MCP_PAGE_MAX };
	if (jv_kind(v) == JV_ABSENT)
		return true;
	if (!text || jv_len(v) > CURSOR_MAX)
		return refuse(q);
	key = arena_alloc(q->arena, CURSOR_MAX + 1);
	n = key ? decode_base64url(text, jv_len(v), key, CURSOR_MAX) : -1;
	if (n <= 0 || memchr(key, '\0', (size_t)n) || !utf8_is_valid(key, (size_t)n))
		return refuse(q);
	p->after = key; /* the arena's memory is zeroed: it ends there */
	return true;
}

bool mcp_page_takes(struct mcp_page *p, const char *key)
{
	if (strcmp(key, p->after) <= 0)
		return false;
	if (p->n == p->max) {
		p->is_full = true;
		return false;
	}
	p->n++;
	p->last = key;
	return true;
}

void mcp_page_end(struct mcp_request *q, const struct mcp_page *p, struct jw *w)
{
	size_t n = p->last ? strlen(p->last) : 0;
	char *text = p->is_full ? arena_alloc(q->arena, BASE64_SIZE(n)) : NULL;

	if (!text || !p->last)
		return;
	(void)encode_base64url(p->last, n, text);
	jw_str_field(w, "nextCursor", text);
}

bool mcp_page_is_whole(struct mcp_request *q)
{
	return jv_kind(jv_get(q->params, "cursor")) == JV_ABSENT || refuse(q);
}
