/* The table: what can be asked for, in which era, and who answers. */
#include <string.h>

#include "mcp/handlers.h"
#include "mcp/server_impl.h"

#define LEGACY (1u << MCP_LEGACY)
#define MODERN (1u << MCP_MODERN)
#define BOTH (LEGACY | MODERN)

static const struct mcp_method methods[] = {
	{ "initialize", LEGACY, mcp_initialize, false, false },
	{ "ping", LEGACY, mcp_result_empty, false, false },
	{ "logging/setLevel", LEGACY, mcp_set_level, false, false },
	{ "server/discover", MODERN, mcp_discover, true, false },
	{ "subscriptions/listen", MODERN, mcp_listen, false, false },
	{ "tools/list", BOTH, mcp_tools_list, true, false },
	{ "tools/call", BOTH, mcp_tools_call, false, true },
	{ "tasks/get", MODERN, mcp_tasks_get, false, false },
	{ "tasks/update", MODERN, mcp_tasks_update, false, false },
	{ "tasks/cancel", MODERN, mcp_tasks_cancel, false, false },
	{ "prompts/list", BOTH, mcp_prompts_list, true, false },
	{ "prompts/get", BOTH, mcp_prompts_get, false, true },
	{ "resources/list", BOTH, mcp_resources_list, true, false },
	{ "resources/templates/list", BOTH, mcp_resource_templates, true, false },
	{ "resources/read", BOTH, mcp_resources_read, true, true },
	{ "resources/subscribe", LEGACY, mcp_resources_subscribe, false, false },
	{ "resources/unsubscribe", LEGACY, mcp_resources_unsubscribe, false, false },
	{ "resources/directory/read", BOTH, mcp_directory_read, true, false },
	{ "skills/list", BOTH, mcp_skills_list, true, false },
	{ "skills/get", BOTH, mcp_skills_get, true, false },
	{ "completion/complete", BOTH, mcp_complete, false, false },
};

const struct mcp_method *mcp_method_find(const char *name, enum mcp_era era)
{
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
		if (methods[i].eras & (1u << era) && strcmp(methods[i].name, name) == 0)
			return &methods[i];
	return NULL;
}
