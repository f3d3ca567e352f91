/* Addresses of sandboxes' files, and whose they are. */
#include "mcp/box.h"

#include <errno.h>
#include <string.h>

#include "auth/principal.h"
#include "base/arena.h"
#include "base/str.h"
#include "httpc/url.h"
#include "mcp/server_impl.h"
#include "net/percent.h"

int mcp_box_uri_read(const char *uri, struct mcp_box_uri *ret)
{
	struct str s = str_of(uri), id;
	const char *rest;
	ssize_t n;

	if (!str_starts(s, MCP_BOX_SCHEME) || strpbrk(uri, "?#"))
		return -EINVAL;
	id.data = uri + strlen(MCP_BOX_SCHEME);
	id.len = strcspn(id.data, "/");
	rest = id.data + id.len;
	if (id.len == 0 || id.len >= sizeof(ret->id) ||
	    !str_starts(str_of(rest), MCP_BOX_FILES "/"))
		return -EINVAL;
	rest += strlen(MCP_BOX_FILES);
	if (strlen(rest) >= sizeof(ret->path) || percent_decode(id, false, ret->id) < 0)
		return -EINVAL;
	n = percent_decode(str_of(rest), false, ret->path);
	while (n > 1 && ret->path[n - 1] == '/')
		ret->path[--n] = '\0';
	return n < 0 ? -EINVAL : 0;
}

int mcp_box_uri_write(struct buf *b, const char *id, const char *path)
{
	(void)buf_printf(b, MCP_BOX_SCHEME "%s" MCP_BOX_FILES, id);
	return url_escape_path(b, path);
}

struct sandbox *mcp_box_find(struct mcp_server *s, const struct principal *who, const char *box_id,
			     const char *id)
{
	struct sandbox *sb = sandboxes_find(s->deps.sandboxes, id, who->owner);
	struct sandbox_info info;

	if (!sb && who->scopes & SCOPE_ADMIN)
		sb = sandboxes_find(s->deps.sandboxes, id, NULL);
	if (!sb)
		return NULL;
	if (box_id[0] != '\0' && strcmp(sandbox_id(sb), box_id) != 0)
		return NULL;
	sandbox_info(sb, &info);
	return principal_may_enter(who, info.owner, info.id) ? sb : NULL;
}

struct looking {
	const struct mcp_request *q;
	void (*each)(void *user, const struct sandbox_info *info);
	void *user;
};

static bool look(void *user, const struct sandbox *sb)
{
	struct looking *l = user;
	const struct mcp_request *q = l->q;
	struct sandbox_info info;

	sandbox_info(sb, &info);
	if (info.is_internal || strcmp(info.owner, q->who.owner) != 0)
		return false;
	if (q->box_id[0] != '\0' && strcmp(info.id, q->box_id) != 0)
		return false;
	if (principal_may_enter(&q->who, info.owner, info.id))
		l->each(l->user, &info);
	return false; /* all of them are wanted */
}

void mcp_box_each(struct mcp_request *q, void (*each)(void *user, const struct sandbox_info *info),
		  void *user)
{
	struct looking l = { q, each, user };

	if (principal_check(&q->who, SCOPE_SANDBOX_READ, NULL) == 0)
		(void)sandboxes_search(q->server->deps.sandboxes, look, &l);
}
