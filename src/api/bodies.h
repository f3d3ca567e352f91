/* What clients send, decoded: one struct and one table for each JSON body. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "api/routes.h"
#include "sandbox/makeup.h"
#include "sandbox/profile.h"
#include "json/jv_decode.h"

struct sandbox_pair;

struct body_mount {
	const char *name, *path;
	bool read_only;
};

struct body_sandbox {
	const char *template, *runtime, *name; /* NULL: absent */
	bool get_or_create, use_warm_pool;
	int level; /* enum profile_id */
	struct body_security {
		const char *chosen[PROFILE_KEY_COUNT]; /* of a custom one; NULL: absent */
	} security;
	const char *snapshot;      /* NULL: absent */
	struct jv_objects volumes; /* struct body_mount */
	uint64_t timeout_ms, idle_ms;
	int on_timeout; /* enum lapse */
	bool auto_resume;
	struct body_resources {
		uint32_t cpu_milli, pids;
		uint64_t memory_bytes, disk_bytes;
	} resources;
	struct jv_pairs env, metadata;
	struct jv network, tools;
};

#define BODY_UNSAID 2

struct body_patch {
	uint64_t timeout_ms;      /* 0: absent */
	struct jv_pairs metadata; /* len SIZE_MAX: absent */
	int on_timeout;           /* enum lapse; -1: absent */
	union {
		bool on;
		uint8_t said; /* BODY_UNSAID: absent */
	} auto_resume;
};

struct body_snapshot {
	const char *name; /* NULL: none */
};

struct body_volume {
	const char *name;
	uint64_t bytes;
};

/* What can be said of a template. */
struct body_traits {
	const char *about; /* NULL: absent, as all texts */
	struct body_resources resources;
	struct jv_pairs env;
	int level; /* enum profile_id */
	struct body_security security;
	struct makeup make;
};
#define BODY_ENV_VALUE_MAX (32u << 10)
#define BODY_RESOURCES_FIELDS 4
extern const struct jv_field body_resources_fields[BODY_RESOURCES_FIELDS];
#define BODY_SECURITY_FIELDS PROFILE_KEY_COUNT
extern const struct jv_field body_security_fields[BODY_SECURITY_FIELDS];
#define BODY_TRAITS_ROWS(struct_, member_)                                                      \
	JV_FIELD("description", STRING, struct_, member_.about, .flags = JV_NULLABLE,           \
		 .max = TEMPLATE_ABOUT_MAX),                                                    \
		JV_FIELD("resources", OBJECT, struct_, member_.resources, .flags = JV_NULLABLE, \
			 .sub = body_resources_fields, .sub_count = BODY_RESOURCES_FIELDS),     \
		JV_FIELD("env", PAIRS, struct_, member_.env, .flags = JV_NULLABLE,              \
			 .max = SANDBOX_ENV_MAX, .text_max = BODY_ENV_VALUE_MAX),               \
		JV_FIELD("securityLevel", CHOICE, struct_, member_.level,                       \
			 .choices = profile_names,                                              \
			 .help = "sandboxes of it are never less strict"),                      \
		JV_FIELD("security", OBJECT, struct_, member_.security, .flags = JV_NULLABLE,   \
			 .sub = body_security_fields, .sub_count = BODY_SECURITY_FIELDS,        \
			 .help = "with securityLevel custom: see /profiles"),                   \
		MAKEUP_ROWS(struct_, member_.make)

struct body_template {
	const char *name, *from, *snapshot; /* but for name: NULL: absent */
	struct body_traits traits;
};

struct body_alias {
	uint32_t version;
};

struct body_build {
	const char *name, *from, *snapshot; /* but for name: NULL: absent */
	struct body_root {
		int kind;         /* enum root_source */
		const char *path; /* NULL: absent */
	} root;
	struct body_traits traits;
	struct jv_objects steps; /* struct build_step */
	struct body_build_packages {
		struct jv_strings pip, npm;
	} packages;
};

struct body_fork {
	uint32_t count;
	const char *name; /* NULL: none */
	uint64_t timeout_ms;
};

enum body_exec_type { BODY_EXEC_CODE, BODY_EXEC_COMMAND };

struct body_exec {
	int type; /* of /execute: enum body_exec_type */
	const char *content, *command, *code, *language, *cwd, *user;
	const char *context_id; /* of /execute; NULL: none */
	struct jv_strings argv;
	struct jv_pairs env;
	uint64_t timeout_ms;
	struct jv stdin_value; /* a text, or whether it stays open */
	bool background, stream, cancel_on_disconnect, pty;
	uint32_t rows, cols;
};

struct body_context { /* and a session, which has no language */
	const char *language, *name, *cwd;
	struct jv_pairs env;
};

struct body_run {
	const char *code; /* a session's command */
	struct jv_pairs env;
	uint64_t timeout_ms;
	bool stream, cancel_on_disconnect;
};

struct body_signal {
	struct jv signal; /* "SIGINT", "INT" or 2; only while the handler is called */
	int number;       /* filled in from it */
	bool tree;
};

struct body_resize {
	uint32_t rows, cols;
};

enum body_file_op { BODY_FILE_MKDIR, BODY_FILE_MOVE };

struct body_file {
	int op; /* enum body_file_op */
	const char *mode, *to;
};

struct body_key {
	const char *name, *owner;
	int role; /* enum role */
	uint64_t expires_in_ms;
	struct jv_strings scopes;
};

#define BODY_USER_UNSET UINT64_MAX

struct body_user {
	const char *name;
	int role;   /* enum role; -1: absent */
	int status; /* 0: active, 1: disabled, -1: absent */
	bool reset_limits;
	struct body_quota { /* BODY_USER_UNSET: absent */
		uint64_t sandboxes, memory, disk, executions, pids;
		uint32_t cpu_milli; /* UINT32_MAX: absent */
	} quota;
	struct body_rates {
		const char *read, *write, *exec, *create; /* NULL: absent */
	} rates;
};

struct body_packages {
	int manager; /* enum package_manager */
	struct jv_strings packages;
	bool stream;
	uint64_t timeout_ms;
};

extern const struct route_body body_packages;

struct body_port {
	uint32_t port;
	bool is_public, wake;
};

extern const struct route_body body_port;
extern const struct route_body body_snapshot, body_fork, body_volume, body_template, body_alias,
	body_build;
extern const struct route_body body_pool, body_pool_patch;       /* structs of sandbox/pool.h */
extern const struct route_body body_webhook, body_webhook_patch; /* of sandbox/webhook.h */
extern const struct route_body body_sandbox, body_patch, body_execute, body_execution, body_signal,
	body_resize, body_context, body_session, body_run, body_session_run, body_file, body_key,
	body_token, body_user, body_user_patch;

/* What a profile asks of the launcher: enum template_flag. False after 400. */
bool call_profile(struct api_call *c, int level, const struct body_security *security,
		  uint32_t *ret);
