/* Bodies of /api/sessions; that of a session itself is sandbox/session.h's. */
#pragma once

#include <stdint.h>

struct route_body;

struct body_session_sandbox {
	uint64_t timeout_ms;
};
extern const struct route_body body_agent_session, body_session_sandbox;
