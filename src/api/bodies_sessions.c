/* Bodies of sessions. */
#include <stddef.h>

#include "api/routes.h"
#include "api/sessions.h"
#include "sandbox/session.h"

const struct route_body body_agent_session = {
	.name = "AgentSessionRequest",
	.fields = session_fields,
	.count = SESSION_FIELDS,
	.size = sizeof(struct session_wish),
	.defaults = &session_defaults,
	.is_optional = true,
};

static const struct jv_field sandbox_fields[] = {
	JV_FIELD("timeout", DURATION, struct body_session_sandbox, timeout_ms, .flags = JV_NULLABLE,
		 .max = SESSION_WAIT_MAX_MS, .help = "how long to wait for it; 5 min"),
};
static const struct body_session_sandbox sandbox_defaults = { SESSION_WAIT_MS };
const struct route_body body_session_sandbox = {
	.name = "SessionSandboxRequest",
	.fields = sandbox_fields,
	.count = sizeof(sandbox_fields) / sizeof(sandbox_fields[0]),
	.size = sizeof(struct body_session_sandbox),
	.defaults = &sandbox_defaults,
	.is_optional = true,
};
