/* search_tools: what programs in the sandbox may call of others' servers (bridge.h). A model need
 * not know all of them: it looks for what it wants, and code calls it. */
#include "auth/scope.h"
#include "mcpc/servers.h"
#include "sandbox/grant.h"
#include "sandbox/sandbox.h"
#include "tools/impl.h"
#include "json/jw.h"

#define LIMIT 20u
#define LIMIT_MAX 100u
#define QUERY_MAX 1024u

struct search_args {
	const char *query, *server;
	int detail; /* enum mcpc_detail */
	uint32_t limit;
};

static const struct jv_field fields[] = {
	JV_FIELD("query", STRING, struct search_args, query, .max = QUERY_MAX,
		 .help = "words; without any, all tools"),
	JV_FIELD("detail", CHOICE, struct search_args, detail, .choices = mcpc_details,
		 .help = "name, summary (with descriptions, unless given) or full (with schemas)"),
	JV_FIELD("server", STRING, struct search_args, server, .max = MCPC_SERVER_NAME_MAX,
		 .help = "only its tools"),
	JV_FIELD("limit", U32, struct search_args, limit, .min = 1, .max = LIMIT_MAX,
		 .help = "tools to tell; 20 unless given"),
};
static const struct search_args defaults = { .detail = MCPC_SUMMARY, .limit = LIMIT };

struct telling {
	struct jw *w;
	const struct search_args *a;
	const char *grant;
	uint32_t n;
	bool has_more;
};

static bool tell(void *user, const struct mcpc_tool *tool)
{
	struct telling *t = user;

	if (!grant_has(t->grant, tool->server))
		return true;
	if (t->n == t->a->limit) {
		t->has_more = true;
		return false;
	}
	mcpc_tool_write(t->w, tool, (enum mcpc_detail)t->a->detail);
	t->n++;
	return true;
}

/* Who is bound to a sandbox finds what that one may call; else it is one's own sandbox that calls,
 * and it may call all. */
static const char *grant_of(const struct tool_call *t)
{
	const struct sandbox *sb = t->is_bound ? tool_find_box(t) : NULL;
	struct sandbox_info info;

	if (!t->is_bound)
		return "true";
	if (!sb)
		return "";
	sandbox_info(sb, &info);
	return info.grant;
}

static void run(struct tool_call *t)
{
	const struct search_args *a = t->args;
	struct jw w = jw_begin(&t->structured);
	struct telling telling = { .w = &w, .a = a, .grant = grant_of(t) };

	jw_object_begin(&w);
	jw_key(&w, "tools");
	jw_array_begin(&w);
	mcpc_servers_search(t->all->deps.servers, a->server, a->query ? a->query : "", SIZE_MAX,
			    tell, &telling);
	jw_array_end(&w);
	jw_bool_field(&w, "truncated", telling.has_more);
	jw_object_end(&w);
	tool_end(t, &w);
}

static bool has_servers(const struct tools *all)
{
	return all->deps.servers && all->deps.bridges && mcpc_servers_any(all->deps.servers);
}

static const struct tool rows[] = {
	{
		.name = "search_tools",
		.title = "Find tools for code",
		.about = "Finds tools of connected servers. Code in the sandbox calls them, so "
			 "that results need not pass through you: in Python "
			 "`from holt_tools.SERVER import TOOL` and `TOOL(name=value)`, in "
			 "JavaScript `import { TOOL } from \"/holt/tools/SERVER/index.mjs\"` and "
			 "`await TOOL({ name: value })`, in a shell "
			 "`holt-call SERVER.TOOL '{\"name\": \"value\"}'`. /holt/tools has a file "
			 "for each.",
		TOOL_IN(fields, search_args),
		.defaults = &defaults,
		.out_json = "{\"type\":\"object\",\"properties\":{\"tools\":{\"type\":\"array\","
			    "\"items\":{\"type\":\"object\"}},\"truncated\":{\"type\":\"boolean\","
			    "\"description\":\"there are more\"}},\"required\":[\"tools\","
			    "\"truncated\"]}",
		.hints = TOOL_READ_ONLY | TOOL_IDEMPOTENT,
		.flags = TOOL_HIDDEN,
		.scopes = SCOPE_EXEC, /* who runs code may know what that may call */
		.is_there = has_servers,
		.run = run,
	},
};

const struct tool_table tools_search_table = { rows, TOOL_ARRAY_LEN(rows) };
