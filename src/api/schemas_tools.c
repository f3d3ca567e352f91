/* Others' servers, their tools, and what waits for a yes. */
#include "api/schemas_impl.h"
#include "mcpc/servers.h"

static const char *const transports[] = { "stdio", "http", NULL };
static const char *const places[] = { "sandbox", "host", "remote", NULL };
static const char *const eras[] = { "legacy", "modern", NULL };
static const char *const policies[] = { "allow", "ask", NULL };
static const char *const methods[] = { "tools/call", "elicitation/create", "sampling/createMessage",
				       NULL };

static const struct schema_field server[] = {
	FIELD("name", STRING),
	FIELD("transport", STRING, .choices = transports),
	FIELD("place", STRING, .choices = places, .help = "where it runs"),
	FIELD("status", STRING, .choices = mcpc_server_states,
	      .help = "failed: what is configured is wrong; waiting: it is tried again"),
	FIELD("error", STRING | NIL, .help = "why it is not ready; for admins"),
	FIELD("program", STRING, .help = "as it calls itself"),
	FIELD("era", STRING | NIL, .choices = eras, .help = "of MCP; null: not known"),
	FIELD("tools", INT),
	FIELD("resources", INT),
	FIELD("prompts", INT),
	FIELD("leftOff", INT, .help = "tools that are too large, or too many"),
	FIELD("restarts", INT),
	FIELD("retryInMs", INT | NIL, .help = "null: it does not wait"),
	FIELD("since", TIME, .help = "it is in this state"),
	FIELD("calls", INT),
	FIELD("failed", INT, .help = "of the calls"),
	FIELD("underWay", INT),
};

static const struct schema_field opened[] = {
	FIELD("url", STRING, .help = "to be opened in a browser on the caller's machine"),
};

static const struct schema_field server_list[] = {
	FIELD("items", LIST, .ref = "ToolServer"),
};

static const struct schema_field tool[] = {
	FIELD("server", STRING),
	FIELD("name", STRING),
	FIELD("title", STRING, .optional = 1),
	FIELD("description", STRING, .optional = 1),
	FIELD("policy", STRING, .choices = policies, .optional = 1,
	      .help = "ask: somebody has to say yes to each call"),
	FIELD("inputSchema", OBJECT, .optional = 1),
	FIELD("outputSchema", OBJECT, .optional = 1),
	FIELD("annotations", OBJECT, .optional = 1, .help = "what the server says of it"),
};

static const struct schema_field skill_summary[] = {
	FIELD("name", STRING),
	FIELD("description", STRING),
	FIELD("files", INT),
	FIELD("bytes", INT, .help = "of all files"),
};

static const struct schema_field skill_problem[] = {
	FIELD("name", STRING, .help = "of the folder; empty: all of them"),
	FIELD("reason", STRING),
};

static const struct schema_field skill_list[] = {
	FIELD("items", LIST, .ref = "SkillSummary"),
	FIELD("problems", LIST, .ref = "SkillProblem", .help = "what was left out; for admins"),
};

static const struct schema_field skill_file[] = {
	FIELD("path", STRING),
	FIELD("size", INT),
	FIELD("sha256", STRING),
	FIELD("mimeType", STRING),
};

static const struct schema_field skill[] = {
	FIELD("name", STRING),
	FIELD("description", STRING),
	FIELD("files", INT),
	FIELD("bytes", INT, .help = "of all files"),
	FIELD("frontmatter", OBJECT, .help = "the head of its SKILL.md, all of it"),
	FIELD("text", STRING, .help = "its SKILL.md"),
	FIELD("contents", LIST, .ref = "SkillFile"),
};

static const struct schema_field tool_list[] = {
	FIELD("items", LIST, .ref = "Tool"),
};

static const struct schema_field result[] = {
	FIELD("content", LIST, .help = "blocks, as MCP has them"),
	FIELD("structuredContent", SCHEMA_ANY, .optional = 1),
	FIELD("isError", BOOL, .help = "the tool has failed; content says why"),
};

static const struct schema_field approval[] = {
	FIELD("id", STRING),
	FIELD("server", STRING),
	FIELD("tool", STRING, .help = "empty: the server itself asks"),
	FIELD("method", STRING, .choices = methods),
	FIELD("arguments", OBJECT, .help = "of the call, or what is asked"),
	FIELD("owner", STRING, .help = "whose call it is"),
	FIELD("sandbox", STRING, .help = "that it comes from; empty: from none"),
	FIELD("createdAt", TIME),
	FIELD("expiresAt", TIME, .help = "then it is denied"),
};

static const struct schema_field approval_list[] = {
	FIELD("items", LIST, .ref = "Approval"),
};

static const struct schema list[] = {
	SCHEMA("SkillSummary", "A skill, in a list", skill_summary),
	SCHEMA("SkillProblem", "A folder that was left out", skill_problem),
	SCHEMA("SkillList", "Skills, by name", skill_list),
	SCHEMA("SkillFile", "A file of a skill", skill_file),
	SCHEMA("Skill", "Instructions for a kind of task, and files that they speak of", skill),
	SCHEMA("ToolServer", "An MCP server that the operator has configured", server),
	SCHEMA("ToolServerOpened", "Where to log in", opened),
	SCHEMA("ToolServerList", "The servers, as they are configured", server_list),
	SCHEMA("Tool", "A tool of such a server, in as much detail as was asked for", tool),
	SCHEMA("ToolList", "Tools, the best first", tool_list),
	SCHEMA("ToolResult", "What came of a call", result),
	SCHEMA("Approval", "A call, or a server's question, that waits for somebody", approval),
	SCHEMA("ApprovalList", "What waits, the oldest first", approval_list),
};

const struct schema_group schemas_tools = { list, ARRAY_LEN(list) };
