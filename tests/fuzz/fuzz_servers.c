/* A file of MCP servers in the first line, and behind it what one of them says that its tools are.
 * What is kept of that is found and written as JSON that others can read. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "fuzz.h"
#include "loop/loop.h"
#include "mcpc/servers_impl.h"
#include "json/jw.h"

#define ITEM_DEPTH 4 /* levels that an answer puts around a tool */

static const char *variable(void *user, const char *name)
{
	(void)user;
	return strcmp(name, "SET") == 0 ? "value" : NULL;
}

static bool check_tool(void *user, const struct mcpc_tool *tool)
{
	static const char deep[] = "[[[[", shut[] = "]]]]";
	struct buf b = { 0 };
	struct jw w = jw_begin(&b);
	struct jv_doc *doc = NULL;
	struct err err = { 0 };

	(void)user;
	MUST(tool->policy != MCPC_DENY);
	MUST(strlen(tool->name) > 0 && strlen(tool->name) <= MCPC_TOOL_NAME_MAX);
	mcpc_tool_write(&w, tool, MCPC_FULL);
	MUST(jw_end(&w) == 0);
	MUST(buf_puts(&b, shut) == 0);
	MUST(buf_reserve(&b, ITEM_DEPTH) == 0);
	memmove(b.data + ITEM_DEPTH, b.data, b.len);
	memcpy(b.data, deep, ITEM_DEPTH);
	b.len += ITEM_DEPTH;
	MUST(jv_parse(b.data, b.len, b.len, &doc, &err) == 0);
	(void)jv_free(doc);
	buf_done(&b);
	return true;
}

static void see(void *user, const struct mcpc_server_info *info)
{
	(void)user;
	MUST(strlen(info->name) <= MCPC_SERVER_NAME_MAX);
	MUST(info->state != MCPC_SERVER_FAILED || info->error[0] != '\0');
}

static void try_tools(struct mcpc_servers *all, const char *data, size_t n)
{
	struct jv_doc *doc = NULL;
	struct err err = { 0 };

	if (jv_parse(data, n, MCPC_MESSAGE_MAX, &doc, &err) < 0)
		return;
	(void)server_take_tools(&all->servers[0], jv_root(doc), &err);
	(void)jv_free(doc); /* what is kept is a copy */
	mcpc_servers_tools(all, NULL, check_tool, NULL);
	mcpc_servers_search(all, NULL, "read a file", 10, check_tool, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data, *end = size ? memchr(text, '\n', size) : NULL;
	size_t first = end ? (size_t)(end - text) : size;
	struct mcpc_servers_deps deps = { .variable = variable };
	struct mcpc_servers *all = NULL;
	struct err err = { 0 };

	MUST(loop_create(&deps.loop, &err) == 0);
	if (mcpc_servers_create(&deps, text ? text : "", first, &all, &err) == 0) {
		mcpc_servers_each(all, see, NULL);
		if (end && all->n_servers > 0)
			try_tools(all, end + 1, size - first - 1);
	} else {
		MUST(err.code != 0);
	}
	all = mcpc_servers_free(all);
	(void)loop_free(deps.loop);
	return 0;
}
