/* Sessions of agents. */
#include "api/schemas_impl.h"
#include "sandbox/lifecycle.h"

static const char *const protocols[] = { "streamable-http", NULL };

#define ENVELOPE \
	FIELD("error", BOOL, .help = "false: errors have another shape"), FIELD("message", STRING)

static const struct schema_field resources[] = {
	FIELD("cpu", NUMBER, .optional = 1, .help = "cores"),
	FIELD("memory", INT, .optional = 1, .help = "bytes"),
	FIELD("disk", INT, .optional = 1, .help = "bytes"),
	FIELD("pids", INT, .optional = 1),
};

static const struct schema_field workspace[] = {
	FIELD("enabled", BOOL),
	FIELD("template", STRING | NIL, .help = "null: the default"),
	FIELD("resources", OBJECT, .ref = "SessionResources"),
	FIELD("timeout", NUMBER | NIL, .help = "seconds to live of its sandbox"),
	FIELD("idle_timeout", NUMBER | NIL),
	FIELD("on_timeout", STRING, .choices = lapse_names),
	FIELD("env_names", STRINGS, .help = "values are never told"),
	FIELD("metadata", MAP),
};

static const struct schema_field session[] = {
	FIELD("id", STRING),
	FIELD("uid", STRING, .help = "unique among all owners"),
	FIELD("owner", STRING),
	FIELD("name", STRING | NIL),
	FIELD("agent_ref", STRING | NIL),
	FIELD("user_id", STRING, .help = "a user of its owner's"),
	FIELD("workspace", OBJECT, .ref = "SessionWorkspace"),
	FIELD("metadata", MAP),
	FIELD("created_at", TIME),
	FIELD("updated_at", TIME),
};

static const struct schema_field made[] = {
	ENVELOPE,
	FIELD("data", OBJECT, .ref = "AgentSession"),
};

static const struct schema_field listed[] = {
	ENVELOPE,
	FIELD("data", LIST, .ref = "AgentSession"),
	NEXT,
};

static const struct schema_field shown_data[] = {
	FIELD("session", OBJECT, .ref = "AgentSession"),
	FIELD("events", STRINGS, .help = "none: what is said in a session is not kept here"),
};
static const struct schema_field shown[] = {
	ENVELOPE,
	FIELD("data", OBJECT, .ref = "AgentSessionData"),
};

static const struct schema_field ended[] = {
	ENVELOPE,
	FIELD("data", MAP, .help = "{}"),
};

static const struct schema_field sandbox[] = {
	FIELD("sandbox_id", STRING),
	FIELD("mcp_url", STRING, .help = "its MCP server"),
	FIELD("protocol", STRING, .choices = protocols),
	FIELD("headers", MAP,
	      .help = "what to send there: a token that opens this sandbox and nothing else"),
	FIELD("ready", BOOL),
	FIELD("created", BOOL, .optional = 1,
	      .help = "of POST. true: it was made just now, and is empty"),
};

static const struct schema list[] = {
	SCHEMA("SessionResources", "What was asked for; the rest is the template's", resources),
	SCHEMA("SessionWorkspace", "What a session's sandbox is made of", workspace),
	SCHEMA("AgentSession", "A session of an agent", session),
	SCHEMA("AgentSessionAnswer", "A session that was made", made),
	SCHEMA("AgentSessionList", "Sessions, newest first", listed),
	SCHEMA("AgentSessionData", "A session and what was said in it", shown_data),
	SCHEMA("AgentSessionShown", "One session", shown),
	SCHEMA("AgentSessionEnded", "A session has ended", ended),
	SCHEMA("SessionSandbox", "The sandbox of a session, and how to reach it", sandbox),
};

const struct schema_group schemas_sessions = { list, ARRAY_LEN(list) };
