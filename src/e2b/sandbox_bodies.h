/* What E2B's clients send about sandboxes, decoded; fields that are not here are passed over. */
#pragma once

#include "api/routes.h"
#include "json/jv_decode.h"

struct body_resume_policy {
	bool enabled;
	const char *policy; /* as it was said before: "any" */
};

struct body_new_sandbox {
	const char *template;
	uint64_t timeout_s;
	struct jv_pairs metadata, env;
	bool auto_pause, auto_pause_memory;
	struct body_resume_policy auto_resume;
	union {
		bool on;
		uint8_t said; /* 2: absent */
	} internet;
	struct jv network, iam, mcp;
	struct jv_objects volumes; /* struct body_volume_mount */
};

struct body_volume_mount {
	const char *name, *path;
};

struct body_connect { /* and a deprecated resume */
	uint64_t timeout_s;
	bool memory;
	union {
		bool on;
		uint8_t said; /* 2: absent */
	} auto_pause;
};

struct body_pause {
	bool memory;
};

struct body_timeout {
	uint64_t timeout_s;
};

struct body_network {
	struct jv allow_out, deny_out, rules, proxy, internet; /* a copy of the whole is wanted */
};

struct body_e2b_fork {
	uint32_t count;
	uint64_t timeout_s;
};

struct body_e2b_snapshot {
	const char *name; /* NULL: none */
};

struct body_new_volume {
	const char *name;
};

#define E2B_UNSAID 2

extern const struct route_body e2b_body_sandbox, e2b_body_sandbox_v2, e2b_body_connect,
	e2b_body_connect_v2, e2b_body_resume, e2b_body_pause, e2b_body_timeout, e2b_body_refresh,
	e2b_body_fork, e2b_body_snapshot, e2b_body_volume, e2b_body_secret, e2b_body_secret_change;
