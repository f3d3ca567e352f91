/* What is asked of others' tools. */
#include "api/routes.h"
#include "api/tools.h"
#include "json/jv_decode.h"

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define DAY_MS (24ll * 3600 * 1000)

static const char *const decisions[] = { "allow", "deny", NULL };

static const struct jv_field call_fields[] = {
	JV_FIELD("arguments", VALUE, struct body_tool_call, arguments, .flags = JV_NULLABLE,
		 .help = "an object, as the tool's inputSchema wants it"),
	JV_FIELD("timeout", DURATION, struct body_tool_call, timeout_ms, .flags = JV_NULLABLE,
		 .min = 100, .max = DAY_MS, .help = "of all of it, an approval's wait included"),
};
const struct route_body body_tool_call = {
	.name = "ToolCall",
	.fields = call_fields,
	.count = ARRAY_LEN(call_fields),
	.size = sizeof(struct body_tool_call),
	.is_optional = true,
};

static const struct jv_field decision_fields[] = {
	JV_FIELD("decision", CHOICE, struct body_decision, decision, .flags = JV_REQUIRED,
		 .choices = decisions),
	JV_FIELD("content", VALUE, struct body_decision, content, .flags = JV_NULLABLE,
		 .help = "the answer, where a server asks something: an object"),
};
const struct route_body body_decision = {
	.name = "ApprovalDecision",
	.fields = decision_fields,
	.count = ARRAY_LEN(decision_fields),
	.size = sizeof(struct body_decision),
};

static const struct jv_field login_fields[] = {
	JV_FIELD("redirect_uri", STRING, struct body_login, redirect, .flags = JV_REQUIRED,
		 .min = 1, .max = 255,
		 .help = "where the browser comes back to: http://127.0.0.1:PORT/..."),
};
const struct route_body body_login = {
	.name = "ToolServerLogin",
	.fields = login_fields,
	.count = ARRAY_LEN(login_fields),
	.size = sizeof(struct body_login),
};

static const struct jv_field login_finish_fields[] = {
	JV_FIELD("query", STRING, struct body_login_finish, query, .flags = JV_REQUIRED, .min = 1,
		 .max = 8192, .help = "what the browser came back with, behind the '?'"),
};
const struct route_body body_login_finish = {
	.name = "ToolServerLoginFinish",
	.fields = login_finish_fields,
	.count = ARRAY_LEN(login_finish_fields),
	.size = sizeof(struct body_login_finish),
};
