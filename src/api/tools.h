/* Bodies of calls of others' tools, and of decisions about them. */
#pragma once

#include <stdint.h>

#include "json/jv.h"

struct route_body;

struct body_tool_call {
	struct jv arguments; /* absent: {} */
	uint64_t timeout_ms; /* 0: the server's */
};

enum body_verdict { BODY_ALLOW, BODY_DENY };

struct body_decision {
	int decision;      /* enum body_verdict */
	struct jv content; /* absent: none */
};

struct body_login {
	const char *redirect;
};

struct body_login_finish {
	const char *query;
};

extern const struct route_body body_tool_call, body_decision, body_login, body_login_finish;
