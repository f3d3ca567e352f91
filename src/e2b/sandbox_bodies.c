#include "e2b/sandbox_bodies.h"

#include "e2b/note.h"
#include "sandbox/sandbox.h"
#include "sandbox/snapshot.h"
#include "sandbox/vault.h"
#include "spec/launch.h"

#define LEN(a) (sizeof(a) / sizeof((a)[0]))
#define TIMEOUT_MAX_S 31622400 /* a year; the configuration says what may really be had */
#define VALUE_MAX (32u << 10)
#define BODY(name_, type_, rows_, ...)                                                      \
	{                                                                                   \
		.name = name_, .fields = rows_, .count = LEN(rows_), .size = sizeof(type_), \
		__VA_ARGS__                                                                 \
	}
#define TIMEOUT(type_, ...) \
	JV_FIELD("timeout", U64, type_, timeout_s, .max = TIMEOUT_MAX_S, __VA_ARGS__)

static const struct jv_field resume_policy[] = {
	JV_FIELD("enabled", BOOL, struct body_resume_policy, enabled),
	JV_FIELD("policy", STRING, struct body_resume_policy, policy, .flags = JV_NULLABLE,
		 .max = 32),
};

static const struct jv_field volume_mount[] = {
	JV_FIELD("name", STRING, struct body_volume_mount, name, .flags = JV_REQUIRED, .min = 1,
		 .max = SANDBOX_NAME_MAX),
	JV_FIELD("path", STRING, struct body_volume_mount, path, .flags = JV_REQUIRED, .min = 1,
		 .max = VOLUME_PATH_MAX),
};

static const struct jv_field new_sandbox[] = {
	JV_FIELD("templateID", STRING, struct body_new_sandbox, template, .flags = JV_REQUIRED,
		 .min = 1, .max = NOTE_TEMPLATE_MAX),
	TIMEOUT(struct body_new_sandbox, .flags = JV_NULLABLE),
	JV_FIELD("metadata", PAIRS, struct body_new_sandbox, metadata, .flags = JV_NULLABLE,
		 .max = SANDBOX_METADATA_MAX),
	JV_FIELD("envVars", PAIRS, struct body_new_sandbox, env, .flags = JV_NULLABLE,
		 .max = SANDBOX_ENV_MAX, .text_max = VALUE_MAX),
	JV_FIELD("autoPause", BOOL, struct body_new_sandbox, auto_pause, .flags = JV_NULLABLE),
	JV_FIELD("autoPauseMemory", BOOL, struct body_new_sandbox, auto_pause_memory,
		 .flags = JV_NULLABLE),
	JV_FIELD("autoResume", OBJECT, struct body_new_sandbox, auto_resume, .flags = JV_NULLABLE,
		 .sub = resume_policy, .sub_count = LEN(resume_policy)),
	JV_FIELD("allow_internet_access", BOOL, struct body_new_sandbox, internet,
		 .flags = JV_NULLABLE),
	JV_FIELD("network", VALUE, struct body_new_sandbox, network, .flags = JV_NULLABLE),
	JV_FIELD("iam", VALUE, struct body_new_sandbox, iam, .flags = JV_NULLABLE),
	/* For the program that clients start inside next; a template without it makes them fail. */
	JV_FIELD("mcp", VALUE, struct body_new_sandbox, mcp, .flags = JV_NULLABLE),
	JV_FIELD("volumeMounts", OBJECTS, struct body_new_sandbox, volumes, .flags = JV_NULLABLE,
		 .max = VOLUMES_MAX, .sub = volume_mount, .sub_count = LEN(volume_mount),
		 .size = sizeof(struct body_volume_mount)),
};
/* Both generations differ in what is meant when no time is said. */
static const struct body_new_sandbox sandbox_defaults = { .timeout_s = 15,
							  .auto_pause_memory = true,
							  .internet.said = E2B_UNSAID };
static const struct body_new_sandbox sandbox_defaults_v2 = { .timeout_s = 300,
							     .auto_pause_memory = true,
							     .internet.said = E2B_UNSAID };
const struct route_body e2b_body_sandbox =
	BODY("NewSandbox", struct body_new_sandbox, new_sandbox, .defaults = &sandbox_defaults);
const struct route_body e2b_body_sandbox_v2 = BODY("NewSandboxV2", struct body_new_sandbox,
						   new_sandbox, .defaults = &sandbox_defaults_v2);

#define MEMORY(type_) JV_FIELD("memory", BOOL, type_, memory, .flags = JV_NULLABLE)

static const struct jv_field connect_v1[] = {
	TIMEOUT(struct body_connect, .flags = JV_REQUIRED),
	MEMORY(struct body_connect),
};
static const struct jv_field connect_v2[] = {
	TIMEOUT(struct body_connect, .flags = JV_NULLABLE),
	MEMORY(struct body_connect),
};
static const struct jv_field resume[] = {
	TIMEOUT(struct body_connect, .flags = JV_NULLABLE),
	MEMORY(struct body_connect),
	JV_FIELD("autoPause", BOOL, struct body_connect, auto_pause, .flags = JV_NULLABLE),
};
static const struct body_connect connect_defaults = { .timeout_s = 300,
						      .memory = true,
						      .auto_pause.said = E2B_UNSAID };
static const struct body_connect resume_defaults = { .timeout_s = 15,
						     .memory = true,
						     .auto_pause.said = E2B_UNSAID };
const struct route_body e2b_body_connect =
	BODY("ConnectSandbox", struct body_connect, connect_v1, .defaults = &connect_defaults);
const struct route_body e2b_body_connect_v2 =
	BODY("ConnectSandboxV2", struct body_connect, connect_v2, .defaults = &connect_defaults,
	     .is_optional = true);
const struct route_body e2b_body_resume = BODY("ResumedSandbox", struct body_connect, resume,
					       .defaults = &resume_defaults, .is_optional = true);

static const struct jv_field pause_fields[] = { MEMORY(struct body_pause) };
static const struct body_pause pause_defaults = { .memory = true };
const struct route_body e2b_body_pause =
	BODY("SandboxPauseRequest", struct body_pause, pause_fields, .defaults = &pause_defaults,
	     .is_optional = true);

static const struct jv_field timeout[] = {
	TIMEOUT(struct body_timeout, .flags = JV_REQUIRED),
};
const struct route_body e2b_body_timeout =
	BODY("SandboxTimeoutRequest", struct body_timeout, timeout);

static const struct jv_field refresh[] = {
	JV_FIELD("duration", U64, struct body_timeout, timeout_s, .flags = JV_NULLABLE,
		 .max = 3600),
};
static const struct body_timeout refresh_defaults = { .timeout_s = 15 };
const struct route_body e2b_body_refresh =
	BODY("SandboxRefreshRequest", struct body_timeout, refresh, .defaults = &refresh_defaults,
	     .is_optional = true);

static const struct jv_field fork_fields[] = {
	JV_FIELD("count", U32, struct body_e2b_fork, count, .flags = JV_NULLABLE, .min = 1,
		 .max = FORK_MAX),
	TIMEOUT(struct body_e2b_fork, .flags = JV_NULLABLE),
};
static const struct body_e2b_fork fork_defaults = { .count = 1, .timeout_s = 15 };
const struct route_body e2b_body_fork =
	BODY("SandboxForkRequest", struct body_e2b_fork, fork_fields, .defaults = &fork_defaults,
	     .is_optional = true);

static const struct jv_field snapshot[] = {
	JV_FIELD("name", STRING, struct body_e2b_snapshot, name, .flags = JV_NULLABLE, .min = 1,
		 .max = NOTE_TEMPLATE_MAX),
};
const struct route_body e2b_body_snapshot =
	BODY("SandboxSnapshotRequest", struct body_e2b_snapshot, snapshot, .is_optional = true);

static const struct jv_field volume[] = {
	JV_FIELD("name", STRING, struct body_new_volume, name, .flags = JV_REQUIRED, .min = 1,
		 .max = SANDBOX_NAME_MAX),
};
const struct route_body e2b_body_volume = BODY("NewVolume", struct body_new_volume, volume);

#define SECRET                                                                                 \
	JV_FIELD("value", STRING, struct vault_wish, value, .flags = JV_REQUIRED,              \
		 .max = VAULT_VALUE_MAX),                                                      \
		JV_FIELD("metadata", PAIRS, struct vault_wish, metadata, .flags = JV_NULLABLE, \
			 .max = VAULT_METADATA_MAX, .text_max = VAULT_METADATA_VALUE_MAX)

static const struct jv_field secret[] = {
	JV_FIELD("name", STRING, struct vault_wish, name, .flags = JV_REQUIRED, .min = 1,
		 .max = OBJECT_NAME_MAX),
	SECRET,
};
static const struct jv_field secret_change[] = { SECRET };
static const struct vault_wish secret_defaults = { .metadata.len = VAULT_UNSAID };
const struct route_body e2b_body_secret =
	BODY("NewSecret", struct vault_wish, secret, .defaults = &secret_defaults);
const struct route_body e2b_body_secret_change =
	BODY("SecretUpdate", struct vault_wish, secret_change, .defaults = &secret_defaults);
