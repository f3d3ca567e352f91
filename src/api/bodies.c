#include "api/bodies.h"

#include <stddef.h>

#include "api/package_plan.h"
#include "auth/scope.h"
#include "base/arena.h"
#include "sandbox/context.h"
#include "sandbox/pool.h"
#include "sandbox/profile.h"
#include "sandbox/sandbox.h"
#include "sandbox/snapshot.h"
#include "sandbox/webhook.h"
#include "spec/guest.h"
#include "spec/launch.h"

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define TEXT_MAX (1 << 20) /* no more than a JSON body anyway */
#define METADATA_VALUE_MAX 1024u
#define SCOPES_MAX 16
#define SECOND 1000
#define YEAR (366ll * 24 * 3600 * SECOND)

#define FIELD(name_, type_, struct_, member, ...)                       \
	{                                                               \
		.name = name_, .type = JV_TYPE_##type_,                 \
		.offset = offsetof(struct struct_, member), __VA_ARGS__ \
	}

const struct jv_field body_resources_fields[BODY_RESOURCES_FIELDS] = {
	FIELD("cpu", CPU, body_resources, cpu_milli, .min = LIMIT_CPU_MIN, .max = LIMIT_CPU_MAX),
	FIELD("memory", SIZE, body_resources, memory_bytes, .min = LIMIT_MEMORY_MIN,
	      .max = LIMIT_MEMORY_MAX),
	FIELD("disk", SIZE, body_resources, disk_bytes, .min = LIMIT_DISK_MIN,
	      .max = LIMIT_MEMORY_MAX),
	FIELD("pids", U32, body_resources, pids, .min = LIMIT_PIDS_MIN, .max = LIMIT_PIDS_MAX),
};

#define SECURITY(name_, key_) FIELD(name_, STRING, body_security, chosen[key_], .min = 1, .max = 32)
const struct jv_field body_security_fields[BODY_SECURITY_FIELDS] = {
	SECURITY("engine", PROFILE_ENGINE),
	SECURITY("syscalls", PROFILE_SYSCALLS),
	SECURITY("proc", PROFILE_PROC),
	SECURITY("network", PROFILE_NETWORK),
	SECURITY("capabilities", PROFILE_CAPABILITIES),
	SECURITY("privileges", PROFILE_PRIVILEGES),
	SECURITY("root", PROFILE_ROOT),
};

static const struct jv_field mounts[] = {
	FIELD("name", STRING, body_mount, name, .flags = JV_REQUIRED, .min = 1,
	      .max = SANDBOX_NAME_MAX),
	FIELD("path", STRING, body_mount, path, .flags = JV_REQUIRED, .min = 1,
	      .max = VOLUME_PATH_MAX),
	FIELD("readOnly", BOOL, body_mount, read_only),
};

static const struct jv_field sandbox_fields[] = {
	FIELD("template", STRING, body_sandbox, template, .max = 128,
	      .help = "python (default), node, bash, base, or one of your own"),
	FIELD("runtime", STRING, body_sandbox, runtime, .max = 128,
	      .help = "another word for template"),
	FIELD("volumes", OBJECTS, body_sandbox, volumes, .flags = JV_NULLABLE, .max = VOLUMES_MAX,
	      .sub = mounts, .sub_count = ARRAY_LEN(mounts), .size = sizeof(struct body_mount)),
	FIELD("snapshot", STRING, body_sandbox, snapshot, .flags = JV_NULLABLE, .min = 1,
	      .max = SANDBOX_NAME_MAX),
	FIELD("name", STRING, body_sandbox, name, .flags = JV_NULLABLE, .min = 1,
	      .max = SANDBOX_NAME_MAX,
	      .help = "[a-z0-9][a-z0-9._-]*, unique among the owner's live sandboxes"),
	FIELD("getOrCreate", BOOL, body_sandbox, get_or_create,
	      .help = "with a name: the live one of that name if there is one"),
	FIELD("securityLevel", CHOICE, body_sandbox, level, .choices = profile_names,
	      .help = "standard unless given"),
	FIELD("security", OBJECT, body_sandbox, security, .flags = JV_NULLABLE,
	      .sub = body_security_fields, .sub_count = BODY_SECURITY_FIELDS,
	      .help = "with securityLevel custom: see /profiles"),
	FIELD("timeout", DURATION, body_sandbox, timeout_ms, .flags = JV_NULLABLE, .min = SECOND,
	      .max = YEAR, .help = "time to live"),
	FIELD("idleTimeout", DURATION, body_sandbox, idle_ms, .flags = JV_NULLABLE, .min = SECOND,
	      .max = YEAR, .help = "ends it when nothing happened for so long"),
	FIELD("onTimeout", CHOICE, body_sandbox, on_timeout, .choices = lapse_names,
	      .help = "what its end of time does, also by idleness: delete unless given"),
	FIELD("autoResume", BOOL, body_sandbox, auto_resume,
	      .help = "what is wanted of it wakes it when it is paused or stopped"),
	FIELD("resources", OBJECT, body_sandbox, resources, .flags = JV_NULLABLE,
	      .sub = body_resources_fields, .sub_count = BODY_RESOURCES_FIELDS),
	FIELD("env", PAIRS, body_sandbox, env, .flags = JV_NULLABLE, .max = SANDBOX_ENV_MAX,
	      .text_max = BODY_ENV_VALUE_MAX, .help = "environment on top of what is there"),
	FIELD("metadata", PAIRS, body_sandbox, metadata, .flags = JV_NULLABLE,
	      .max = SANDBOX_METADATA_MAX, .text_max = METADATA_VALUE_MAX,
	      .help = "for finding it again"),
	FIELD("useWarmPool", BOOL, body_sandbox, use_warm_pool,
	      .help = "true unless given; false: built anew"),
	FIELD("networkAccess", VALUE, body_sandbox, network, .flags = JV_NULLABLE,
	      .help = "\"none\" or null"),
	FIELD("tools", VALUE, body_sandbox, tools, .flags = JV_NULLABLE,
	      .help = "true, or names of servers whose tools its programs may call"),
};
static const struct body_sandbox sandbox_defaults = { .use_warm_pool = true };
const struct route_body body_sandbox = {
	.name = "SandboxRequest",
	.fields = sandbox_fields,
	.count = ARRAY_LEN(sandbox_fields),
	.size = sizeof(struct body_sandbox),
	.defaults = &sandbox_defaults,
	.is_optional = true,
};

static const struct jv_field patch_fields[] = {
	FIELD("timeout", DURATION, body_patch, timeout_ms, .min = SECOND, .max = YEAR,
	      .help = "time to live from now on"),
	FIELD("metadata", PAIRS, body_patch, metadata, .max = SANDBOX_METADATA_MAX,
	      .text_max = METADATA_VALUE_MAX, .help = "replaces all of it"),
	FIELD("onTimeout", CHOICE, body_patch, on_timeout, .choices = lapse_names),
	FIELD("autoResume", BOOL, body_patch, auto_resume),
};
static const struct body_patch patch_defaults = { .metadata.len = SIZE_MAX,
						  .on_timeout = -1,
						  .auto_resume.said = BODY_UNSAID };
const struct route_body body_patch = {
	.name = "SandboxPatch",
	.fields = patch_fields,
	.count = ARRAY_LEN(patch_fields),
	.size = sizeof(struct body_patch),
	.defaults = &patch_defaults,
};

static const char *const exec_types[] = { "code", "command", NULL };

static const struct jv_field execute_fields[] = {
	FIELD("type", CHOICE, body_exec, type, .flags = JV_REQUIRED, .choices = exec_types,
	      .help = "what content is"),
	FIELD("content", STRING, body_exec, content, .flags = JV_REQUIRED, .min = 1,
	      .max = TEXT_MAX, .help = "the code, or the command for a shell"),
	FIELD("language", STRING, body_exec, language, .flags = JV_NULLABLE, .max = 32,
	      .help = "of code: python, javascript, bash"),
	FIELD("cwd", STRING, body_exec, cwd, .flags = JV_NULLABLE, .help = "where it runs"),
	FIELD("env", PAIRS, body_exec, env, .flags = JV_NULLABLE, .max = SANDBOX_ENV_MAX,
	      .text_max = BODY_ENV_VALUE_MAX, .help = "environment on top of what is there"),
	FIELD("timeout", DURATION, body_exec, timeout_ms, .flags = JV_NULLABLE, .min = 1,
	      .max = YEAR, .help = "then it is ended"),
	FIELD("stdin", VALUE, body_exec, stdin_value, .flags = JV_NULLABLE,
	      .help = "a text, then the end; true keeps it open"),
	FIELD("background", BOOL, body_exec, background, .help = "answer at once"),
	FIELD("stream", BOOL, body_exec, stream, .help = "answer as events"),
	FIELD("cancelOnDisconnect", BOOL, body_exec, cancel_on_disconnect,
	      .help = "a client that leaves ends it"),
	FIELD("contextId", STRING, body_exec, context_id, .flags = JV_NULLABLE, .min = 1,
	      .max = CONTEXT_NAME_MAX, .help = "a context to run it in, by id or name"),
};
const struct route_body body_execute = {
	.name = "ExecuteRequest",
	.fields = execute_fields,
	.count = ARRAY_LEN(execute_fields),
	.size = sizeof(struct body_exec),
};

static const struct jv_field execution_fields[] = {
	FIELD("command", STRING, body_exec, command, .min = 1, .max = TEXT_MAX,
	      .help = "for a shell"),
	FIELD("argv", STRINGS, body_exec, argv, .min = 1, .max = GUEST_ARGS_MAX,
	      .text_max = TEXT_MAX, .help = "a program and its arguments, no shell"),
	FIELD("code", STRING, body_exec, code, .min = 1, .max = TEXT_MAX, .help = "with language"),
	FIELD("language", STRING, body_exec, language, .flags = JV_NULLABLE, .max = 32,
	      .help = "of code: python, javascript, bash"),
	FIELD("cwd", STRING, body_exec, cwd, .flags = JV_NULLABLE, .help = "where it runs"),
	FIELD("user", STRING, body_exec, user, .flags = JV_NULLABLE, .max = 64,
	      .help = "name or number in the box"),
	FIELD("env", PAIRS, body_exec, env, .flags = JV_NULLABLE, .max = SANDBOX_ENV_MAX,
	      .text_max = BODY_ENV_VALUE_MAX, .help = "environment on top of what is there"),
	FIELD("timeout", DURATION, body_exec, timeout_ms, .flags = JV_NULLABLE, .min = 1,
	      .max = YEAR, .help = "then it is ended"),
	FIELD("stdin", VALUE, body_exec, stdin_value, .flags = JV_NULLABLE,
	      .help = "a text, then the end; true keeps it open"),
	FIELD("background", BOOL, body_exec, background, .help = "answer at once"),
	FIELD("stream", BOOL, body_exec, stream, .help = "answer as events"),
	FIELD("cancelOnDisconnect", BOOL, body_exec, cancel_on_disconnect,
	      .help = "a client that leaves ends it"),
	FIELD("pty", BOOL, body_exec, pty, .help = "with a terminal"),
	FIELD("rows", U32, body_exec, rows, .min = 1, .max = UINT16_MAX),
	FIELD("cols", U32, body_exec, cols, .min = 1, .max = UINT16_MAX),
};
static const struct body_exec execution_defaults = { .type = -1 };
const struct route_body body_execution = {
	.name = "ExecutionRequest",
	.fields = execution_fields,
	.count = ARRAY_LEN(execution_fields),
	.size = sizeof(struct body_exec),
	.defaults = &execution_defaults,
};

#define CONTEXT_FIELDS                                                                     \
	FIELD("name", STRING, body_context, name, .flags = JV_NULLABLE, .min = 1,          \
	      .max = CONTEXT_NAME_MAX, .help = "unique in the sandbox"),                   \
		FIELD("cwd", STRING, body_context, cwd, .flags = JV_NULLABLE, .max = 4095, \
		      .help = "where it begins"),                                          \
		FIELD("env", PAIRS, body_context, env, .flags = JV_NULLABLE,               \
		      .max = SANDBOX_ENV_MAX, .text_max = BODY_ENV_VALUE_MAX,              \
		      .help = "environment on top of what is there")

static const struct jv_field context_fields[] = {
	FIELD("language", STRING, body_context, language, .flags = JV_NULLABLE, .max = 32,
	      .help = "python (the default), javascript, typescript, bash, r or java"),
	CONTEXT_FIELDS,
};
const struct route_body body_context = {
	.name = "ContextRequest",
	.fields = context_fields,
	.count = ARRAY_LEN(context_fields),
	.size = sizeof(struct body_context),
	.is_optional = true,
};
static const struct jv_field session_fields[] = { CONTEXT_FIELDS };
const struct route_body body_session = {
	.name = "SessionRequest",
	.fields = session_fields,
	.count = ARRAY_LEN(session_fields),
	.size = sizeof(struct body_context),
	.is_optional = true,
};

#define RUN_FIELDS(name)                                                                         \
	FIELD(name, STRING, body_run, code, .flags = JV_REQUIRED, .max = CONTEXT_CODE_MAX,       \
	      .help = "what is run"),                                                            \
		FIELD("env", PAIRS, body_run, env, .flags = JV_NULLABLE, .max = SANDBOX_ENV_MAX, \
		      .help = "variables of this run alone"),                                    \
		FIELD("timeout", DURATION, body_run, timeout_ms, .flags = JV_NULLABLE, .min = 1, \
		      .max = YEAR, .help = "then it is interrupted"),                            \
		FIELD("stream", BOOL, body_run, stream, .help = "answer as events"),             \
		FIELD("cancelOnDisconnect", BOOL, body_run, cancel_on_disconnect,                \
		      .help = "a client that leaves interrupts it")

static const struct jv_field run_fields[] = { RUN_FIELDS("code") };
const struct route_body body_run = {
	.name = "ContextRunRequest",
	.fields = run_fields,
	.count = ARRAY_LEN(run_fields),
	.size = sizeof(struct body_run),
};
static const struct jv_field session_run_fields[] = { RUN_FIELDS("command") };
const struct route_body body_session_run = {
	.name = "SessionRunRequest",
	.fields = session_run_fields,
	.count = ARRAY_LEN(session_run_fields),
	.size = sizeof(struct body_run),
};

static const struct jv_field signal_fields[] = {
	FIELD("signal", VALUE, body_signal, signal, .flags = JV_REQUIRED,
	      .help = "\"SIGINT\", \"INT\" or 2"),
	FIELD("tree", BOOL, body_signal, tree, .help = "to everything it started"),
};
const struct route_body body_signal = {
	.name = "SignalRequest",
	.fields = signal_fields,
	.count = ARRAY_LEN(signal_fields),
	.size = sizeof(struct body_signal),
};

static const struct jv_field resize_fields[] = {
	FIELD("rows", U32, body_resize, rows, .flags = JV_REQUIRED, .min = 1, .max = UINT16_MAX),
	FIELD("cols", U32, body_resize, cols, .flags = JV_REQUIRED, .min = 1, .max = UINT16_MAX),
};
const struct route_body body_resize = {
	.name = "ResizeRequest",
	.fields = resize_fields,
	.count = ARRAY_LEN(resize_fields),
	.size = sizeof(struct body_resize),
};

static const char *const file_ops[] = { "mkdir", "move", NULL };

static const struct jv_field file_fields[] = {
	FIELD("op", CHOICE, body_file, op, .flags = JV_REQUIRED, .choices = file_ops,
	      .help = "what to do"),
	FIELD("mode", STRING, body_file, mode, .min = 1, .max = 8, .help = "octal, of a directory"),
	FIELD("to", STRING, body_file, to, .min = 1, .max = 4096, .help = "where to move it"),
};
const struct route_body body_file = {
	.name = "FileRequest",
	.fields = file_fields,
	.count = ARRAY_LEN(file_fields),
	.size = sizeof(struct body_file),
};

static const char *const roles[] = {
	[ROLE_VIEWER] = "viewer",
	[ROLE_USER] = "user",
	[ROLE_ADMIN] = "admin",
	[ROLE_COUNT] = NULL,
};

static const struct jv_field key_fields[] = {
	FIELD("name", STRING, body_key, name, .flags = JV_REQUIRED, .min = 1, .max = 64,
	      .help = "for people"),
	FIELD("role", CHOICE, body_key, role, .choices = roles),
	FIELD("owner", STRING, body_key, owner, .min = 1, .max = SANDBOX_OWNER_MAX,
	      .help = "the caller's own unless given"),
	FIELD("scopes", STRINGS, body_key, scopes, .min = 1, .max = SCOPES_MAX, .text_max = 32,
	      .help = "no more than these of what the role gives; none: all of it"),
	FIELD("expiresIn", DURATION, body_key, expires_in_ms, .flags = JV_NULLABLE, .min = SECOND,
	      .max = 10 * YEAR, .help = "it never expires unless given"),
};
static const struct body_key key_defaults = { .role = -1 };
const struct route_body body_key = {
	.name = "KeyRequest",
	.fields = key_fields,
	.count = ARRAY_LEN(key_fields),
	.size = sizeof(struct body_key),
	.defaults = &key_defaults,
};

static const char *const package_managers[] = { "pip", "npm", "cargo", "go", NULL };

static const struct jv_field packages_fields[] = {
	FIELD("manager", CHOICE, body_packages, manager, .flags = JV_REQUIRED,
	      .choices = package_managers),
	FIELD("packages", STRINGS, body_packages, packages, .flags = JV_REQUIRED, .min = 1,
	      .max = PACKAGES_MAX, .text_max = PACKAGE_TEXT_MAX,
	      .help = "names, with versions as the manager writes them"),
	FIELD("stream", BOOL, body_packages, stream),
	FIELD("timeout", DURATION, body_packages, timeout_ms, .flags = JV_NULLABLE, .min = 1,
	      .max = YEAR),
};
const struct route_body body_packages = {
	.name = "PackagesRequest",
	.fields = packages_fields,
	.count = ARRAY_LEN(packages_fields),
	.size = sizeof(struct body_packages),
};

static const struct jv_field port_fields[] = {
	FIELD("port", U32, body_port, port, .flags = JV_REQUIRED, .min = 1, .max = UINT16_MAX),
	FIELD("public", BOOL, body_port, is_public, .help = "anybody may reach it"),
	FIELD("wake", BOOL, body_port, wake, .help = "a request resumes the paused sandbox"),
};
const struct route_body body_port = {
	.name = "PortRequest",
	.fields = port_fields,
	.count = ARRAY_LEN(port_fields),
	.size = sizeof(struct body_port),
};

static const struct jv_field snapshot_fields[] = {
	FIELD("name", STRING, body_snapshot, name, .flags = JV_NULLABLE, .min = 1,
	      .max = SANDBOX_NAME_MAX),
};
const struct route_body body_snapshot = {
	.name = "SnapshotRequest",
	.fields = snapshot_fields,
	.count = ARRAY_LEN(snapshot_fields),
	.size = sizeof(struct body_snapshot),
	.is_optional = true,
};

static const struct jv_field volume_fields[] = {
	FIELD("name", STRING, body_volume, name, .flags = JV_REQUIRED, .min = 1,
	      .max = SANDBOX_NAME_MAX),
	FIELD("size", SIZE, body_volume, bytes, .flags = JV_REQUIRED, .min = VOLUME_BYTES_MIN,
	      .max = VOLUME_BYTES_MAX),
};
const struct route_body body_volume = {
	.name = "VolumeRequest",
	.fields = volume_fields,
	.count = ARRAY_LEN(volume_fields),
	.size = sizeof(struct body_volume),
};

static const struct jv_field fork_fields[] = {
	FIELD("count", U32, body_fork, count, .min = 1, .max = FORK_MAX),
	FIELD("name", STRING, body_fork, name, .flags = JV_NULLABLE, .min = 1,
	      .max = SANDBOX_NAME_MAX - 3),
	FIELD("timeout", DURATION, body_fork, timeout_ms, .flags = JV_NULLABLE, .min = SECOND,
	      .max = YEAR),
};
static const struct body_fork fork_defaults = { .count = 1 };
const struct route_body body_fork = {
	.name = "ForkRequest",
	.fields = fork_fields,
	.count = ARRAY_LEN(fork_fields),
	.size = sizeof(struct body_fork),
	.defaults = &fork_defaults,
	.is_optional = true,
};

static const struct jv_field token_fields[] = {
	FIELD("name", STRING, body_key, name, .min = 1, .max = 64),
	FIELD("scopes", STRINGS, body_key, scopes, .min = 1, .max = SCOPES_MAX, .text_max = 32,
	      .help = "of sandbox:read, exec, file:read, file:write and port; none: all of them"),
	FIELD("expiresIn", DURATION, body_key, expires_in_ms, .flags = JV_NULLABLE, .min = SECOND,
	      .max = 10 * YEAR, .help = "no later than the sandbox"),
};
const struct route_body body_token = {
	.name = "TokenRequest",
	.fields = token_fields,
	.count = ARRAY_LEN(token_fields),
	.size = sizeof(struct body_key),
	.is_optional = true,
};

static const struct jv_field quota_fields[] = {
	FIELD("sandboxes", U64, body_quota, sandboxes, .max = 1000000000),
	FIELD("cpu", CPU, body_quota, cpu_milli, .max = 1000000000),
	FIELD("memory", SIZE, body_quota, memory, .max = 1ll << 50),
	FIELD("disk", SIZE, body_quota, disk, .max = 1ll << 50),
	FIELD("executions", U64, body_quota, executions, .max = 1000000000),
	FIELD("pids", U64, body_quota, pids, .max = 1000000000),
};

static const struct jv_field rate_fields[] = {
	FIELD("read", STRING, body_rates, read, .max = 16, .help = "such as 600/m; 0: no limit"),
	FIELD("write", STRING, body_rates, write, .max = 16),
	FIELD("exec", STRING, body_rates, exec, .max = 16),
	FIELD("create", STRING, body_rates, create, .max = 16),
};

static const char *const user_states[] = { "active", "disabled", NULL };

/* The first is the name, which does not change later. */
static const struct jv_field user_fields[] = {
	FIELD("name", STRING, body_user, name, .flags = JV_REQUIRED, .min = 1,
	      .max = SANDBOX_OWNER_MAX),
	FIELD("role", CHOICE, body_user, role, .choices = roles),
	FIELD("status", CHOICE, body_user, status, .choices = user_states),
	FIELD("quota", OBJECT, body_user, quota, .sub = quota_fields,
	      .sub_count = ARRAY_LEN(quota_fields), .help = "0: no limit; absent: everybody's"),
	FIELD("rateLimits", OBJECT, body_user, rates, .sub = rate_fields,
	      .sub_count = ARRAY_LEN(rate_fields)),
	FIELD("resetLimits", BOOL, body_user, reset_limits,
	      .help = "quota and rateLimits that are not in the body are everybody's again"),
};
static const struct body_user user_defaults = {
	.role = -1,
	.status = -1,
	.quota = { BODY_USER_UNSET, BODY_USER_UNSET, BODY_USER_UNSET, BODY_USER_UNSET,
		   BODY_USER_UNSET, UINT32_MAX },
};
const struct route_body body_user = {
	.name = "UserRequest",
	.fields = user_fields,
	.count = ARRAY_LEN(user_fields),
	.size = sizeof(struct body_user),
	.defaults = &user_defaults,
};
const struct route_body body_user_patch = {
	.name = "UserPatch",
	.fields = user_fields + 1,
	.count = ARRAY_LEN(user_fields) - 1,
	.size = sizeof(struct body_user),
	.defaults = &user_defaults,
};

const struct route_body body_pool = {
	.name = "WarmPoolRequest",
	.fields = pool_fields,
	.count = POOL_FIELDS,
	.size = sizeof(struct pool_wish),
	.defaults = &pool_defaults,
};
const struct route_body body_pool_patch = {
	.name = "WarmPoolPatch",
	.fields = pool_patch_fields,
	.count = POOL_PATCH_FIELDS,
	.size = sizeof(struct pool_patch),
	.defaults = &pool_patch_defaults,
};

const struct route_body body_webhook = {
	.name = "WebhookRequest",
	.fields = webhook_fields,
	.count = WEBHOOK_FIELDS,
	.size = sizeof(struct webhook_wish),
	.defaults = &webhook_defaults,
};
const struct route_body body_webhook_patch = {
	.name = "WebhookPatch",
	.fields = webhook_patch_fields,
	.count = WEBHOOK_PATCH_FIELDS,
	.size = sizeof(struct webhook_patch),
	.defaults = &webhook_patch_defaults,
};
