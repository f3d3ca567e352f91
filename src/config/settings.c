#include "config/settings.h"

#include <stdbool.h>
#include <string.h>

#include "base/str.h"
#include "config/config.h"

#define MS_HOUR 3600000ull
#define LEN(a) (sizeof(a) / sizeof((a)[0]))

static const char *const cgroups[] = { "auto", "v1", "v2", "none", NULL };
static const char *const formats[] = { "logfmt", "json", NULL };
static const char *const places[] = { "memory", "disk", NULL };
static const char *const levels[] = { "error", "warn", "info", "debug", NULL };

/* name, NAME, flag, type, member of struct config, further columns */
#define ROW(name_, env_, flag_, type_, member_, ...)                                               \
	{                                                                                          \
		.name = (name_), .env = "HOLT_" env_, .flag = "--" flag_, .type = SETTING_##type_, \
		.offset = offsetof(struct config, member_), __VA_ARGS__                            \
	}

static const struct setting table[] = {
	ROW("config", "CONFIG", "config", PATH, config, .arg = "FILE", .flags = SETTING_NOT_IN_FILE,
	    .help = "file of settings (holt.yaml here, then the system's or yours)"),
	ROW("listen", "LISTEN", "listen", STRING, listen, .arg = "ADDRESS",
	    .standard = "127.0.0.1:8765", .help = "where to serve: HOST:PORT or unix:PATH"),
	ROW("tls_cert", "TLS_CERT", "tls-cert", PATH, tls_cert, .arg = "FILE",
	    .help = "certificate chain (PEM): serve HTTPS"),
	ROW("tls_key", "TLS_KEY", "tls-key", PATH, tls_key, .arg = "FILE",
	    .help = "the certificate's private key (PEM)"),
	ROW("insecure_bind", "INSECURE_BIND", "insecure-bind", BOOL, insecure_bind,
	    .standard = "false", .help = "serve other machines without TLS"),
	ROW("cors_origins", "CORS_ORIGINS", "cors-origins", LIST, cors_origins, .arg = "ORIGIN,...",
	    .standard = "", .help = "web origins whose pages may call the API"),
	ROW("max_connections", "MAX_CONNECTIONS", "max-connections", U32, max_connections,
	    .arg = "COUNT", .standard = "4096", .min = 1, .max = 1000000,
	    .help = "connections at a time"),
	ROW("max_connections_user", "MAX_CONNECTIONS_USER", "max-connections-user", U32,
	    max_connections_user, .arg = "COUNT", .standard = "auto",
	    .flags = SETTING_AUTO | SETTING_NONE, .min = 1, .max = 1000000,
	    .help = "of those, with requests of one user (auto: 1/4 of max_connections)"),
	ROW("max_json", "MAX_JSON", "max-json", SIZE, max_json_bytes, .arg = "SIZE",
	    .standard = "1M", .min = 1 << 10, .max = 64 << 20, .help = "largest JSON request"),
	ROW("max_body", "MAX_BODY", "max-body", SIZE, max_body_bytes, .arg = "SIZE",
	    .standard = "1G", .min = 1 << 10, .max = 1ull << 40, .help = "largest file upload"),
	ROW("body_timeout", "BODY_TIMEOUT", "body-timeout", DURATION, body_timeout_ms,
	    .arg = "TIME", .standard = "1h", .min = 1000, .max = 24 * MS_HOUR,
	    .help = "how long a request's body may take in all"),
	ROW("metrics_public", "METRICS_PUBLIC", "metrics-public", BOOL, metrics_public,
	    .standard = "false", .help = "/metrics needs no key"),

	ROW("domain", "DOMAIN", "domain", STRING, domain, .arg = "NAME", .max = 200,
	    .help = "serve ports also as PORT-SANDBOX.NAME, as they are on PORT-SANDBOX.localhost"),
	ROW("public_url", "PUBLIC_URL", "public-url", STRING, public_url, .arg = "URL", .max = 1024,
	    .help = "what addresses that are given out begin with (none: as the client reached "
		    "us)"),
	ROW("e2b_public_ports", "E2B_PUBLIC_PORTS", "e2b-public-ports", BOOL, e2b_public_ports,
	    .standard = "true",
	    .help = "ports of sandboxes made by E2B's protocol are open to who knows their id"),
	ROW("port_answer_timeout", "PORT_ANSWER_TIMEOUT", "port-answer-timeout", DURATION,
	    port_answer_ms, .arg = "TIME", .standard = "60s", .min = 1000, .max = 24 * MS_HOUR,
	    .help = "how long a program inside may take to begin its answer"),
	ROW("port_idle_timeout", "PORT_IDLE_TIMEOUT", "port-idle-timeout", DURATION, port_idle_ms,
	    .arg = "TIME", .standard = "10m", .min = 1000, .max = 24 * MS_HOUR,
	    .help = "how long a proxied connection may be without a byte"),
	ROW("registry_pip", "REGISTRY_PIP", "registry-pip", LIST, registry_pip, .arg = "URL,...",
	    .standard = "", .help = "pip's index for sandboxes, then other hosts of its files"),
	ROW("registry_npm", "REGISTRY_NPM", "registry-npm", LIST, registry_npm, .arg = "URL,...",
	    .standard = "", .help = "the same of npm"),
	ROW("registry_cargo", "REGISTRY_CARGO", "registry-cargo", LIST, registry_cargo,
	    .arg = "URL,...", .standard = "", .help = "the same of cargo: a sparse index"),
	ROW("registry_go", "REGISTRY_GO", "registry-go", LIST, registry_go, .arg = "URL,...",
	    .standard = "", .help = "the same of go: a module proxy"),
	ROW("registry_allow_private", "REGISTRY_ALLOW_PRIVATE", "registry-allow-private", BOOL,
	    registry_allow_private, .standard = "false",
	    .help = "registries may be on this machine and in private networks"),
	ROW("internet", "INTERNET", "internet", BOOL, internet, .standard = "false",
	    .help = "sandboxes of clients that ask for it reach the internet, through a proxy"),
	ROW("internet_allow_private", "INTERNET_ALLOW_PRIVATE", "internet-allow-private", BOOL,
	    internet_allow_private, .standard = "false",
	    .help = "and this machine and its private networks, too"),
	ROW("dns_servers", "DNS_SERVERS", "dns-servers", LIST, dns_servers, .arg = "ADDRESS,...",
	    .standard = "",
	    .help = "name servers of sandboxes, as 192.0.2.1 or 127.0.0.1:5353; else the "
		    "machine's"),
	ROW("egress_deny", "EGRESS_DENY", "egress-deny", LIST, egress_deny, .arg = "NETWORK,...",
	    .standard = "",
	    .help = "networks that sandboxes, webhooks and OAuth never reach: 192.0.2.0/24"),
	ROW("jwt_issuer", "JWT_ISSUER", "jwt-issuer", STRING, jwt_issuer, .arg = "URL",
	    .help = "identity provider whose access tokens are accepted: their iss"),
	ROW("jwt_audience", "JWT_AUDIENCE", "jwt-audience", STRING, jwt_audience, .arg = "NAME",
	    .help = "their aud: what the provider calls this server"),
	ROW("jwt_jwks", "JWT_JWKS", "jwt-jwks", STRING, jwt_jwks, .arg = "URL|FILE",
	    .help = "the provider's public keys (JWKS)"),
	ROW("jwt_owner_claim", "JWT_OWNER_CLAIM", "jwt-owner-claim", STRING, jwt_owner_claim,
	    .arg = "NAME", .standard = "sub", .max = 255,
	    .help = "claim of a token that names the owner"),
	ROW("jwt_role_claim", "JWT_ROLE_CLAIM", "jwt-role-claim", STRING, jwt_role_claim,
	    .arg = "NAME", .max = 255, .help = "claim that names the role (none: user)"),
	ROW("jwt_admin", "JWT_ADMIN", "jwt-admin", BOOL, jwt_admin, .standard = "false",
	    .help = "a token may make an admin"),
	ROW("jwt_local_owners", "JWT_LOCAL_OWNERS", "jwt-local-owners", LIST, jwt_local_owners,
	    .arg = "NAME,...", .standard = "",
	    .help = "whose tokens mean the local owner of that name, not the provider's"),
	ROW("jwt_skew", "JWT_SKEW", "jwt-skew", DURATION, jwt_skew_ms, .arg = "TIME",
	    .standard = "60s", .max = 600000, .help = "how far the provider's clock may be off"),
	ROW("jwt_refresh", "JWT_REFRESH", "jwt-refresh", DURATION, jwt_refresh_ms, .arg = "TIME",
	    .standard = "30s", .min = 1000, .max = MS_HOUR,
	    .help = "least time between two questions for the provider's keys"),

	ROW("state_dir", "STATE_DIR", "state-dir", PATH, state_dir, .arg = "DIR",
	    .help = "where everything that lasts is kept"),
	ROW("admin_key_file", "ADMIN_KEY_FILE", "admin-key-file", PATH, admin_key_file,
	    .arg = "FILE", .help = "write the first key there instead of showing it"),
	ROW("user", "USER", "user", STRING, user, .arg = "NAME", .max = 32,
	    .help = "account to become when started by root"),
	ROW("cgroup", "CGROUP", "cgroup", CHOICE, cgroup, .arg = "KIND", .standard = "auto",
	    .choices = cgroups, .help = "how limits are enforced"),
	ROW("layers_on", "LAYERS_ON", "layers-on", CHOICE, layers_on, .arg = "PLACE",
	    .standard = "memory", .choices = places,
	    .help = "where sandboxes write; on disk they cost no memory and fork faster (root "
		    "only)"),
	ROW("layers_size", "LAYERS_SIZE", "layers-size", SIZE, layers_bytes, .arg = "SIZE",
	    .standard = "32G", .min = 256 << 20, .max = 1ull << 50,
	    .help = "disk for what all sandboxes write, with layers_on: disk"),
	ROW("log_format", "LOG_FORMAT", "log-format", CHOICE, log_format, .arg = "FORMAT",
	    .standard = "logfmt", .choices = formats, .help = "form of the log's lines"),
	ROW("log_level", "LOG_LEVEL", "log-level", CHOICE, log_level, .arg = "LEVEL",
	    .standard = "info", .choices = levels, .help = "how much is logged"),

	ROW("max_sandboxes", "MAX_SANDBOXES", "max-sandboxes", U32, max_sandboxes, .arg = "COUNT",
	    .standard = "2000", .min = 1, .max = 1000000, .help = "live sandboxes at a time"),
	ROW("max_builds", "MAX_BUILDS", "max-builds", U32, max_builds, .arg = "COUNT",
	    .standard = "2", .min = 1, .max = 1000, .help = "builds of templates at a time"),
	ROW("sandbox_timeout", "SANDBOX_TIMEOUT", "sandbox-timeout", DURATION, sandbox_timeout_ms,
	    .arg = "TIME", .standard = "1h", .min = 1000, .max = 8760 * MS_HOUR,
	    .help = "life of a sandbox that asks for nothing else"),
	ROW("sandbox_timeout_max", "SANDBOX_TIMEOUT_MAX", "sandbox-timeout-max", DURATION,
	    sandbox_timeout_max_ms, .arg = "TIME", .standard = "24h", .min = 1000,
	    .max = 8760 * MS_HOUR, .help = "longest life a sandbox may ask for"),
	ROW("sandbox_idle_timeout", "SANDBOX_IDLE_TIMEOUT", "sandbox-idle-timeout", DURATION,
	    sandbox_idle_timeout_ms, .arg = "TIME", .standard = "0", .max = 8760 * MS_HOUR,
	    .help = "end a sandbox that nobody used for so long (0: never)"),
	ROW("exec_timeout", "EXEC_TIMEOUT", "exec-timeout", DURATION, exec_timeout_ms,
	    .arg = "TIME", .standard = "30s", .min = 1, .max = 8760 * MS_HOUR,
	    .help = "time of an execution that asks for nothing else"),
	ROW("exec_timeout_max", "EXEC_TIMEOUT_MAX", "exec-timeout-max", DURATION,
	    exec_timeout_max_ms, .arg = "TIME", .standard = "1h", .min = 1, .max = 8760 * MS_HOUR,
	    .help = "longest time an execution may ask for"),
	ROW("output_keep", "OUTPUT_KEEP", "output-keep", SIZE, output_keep_bytes, .arg = "SIZE",
	    .standard = "1M", .min = 4 << 10, .max = 64 << 20,
	    .help = "output kept of each execution"),
	ROW("max_output", "MAX_OUTPUT", "max-output", SIZE, max_output_bytes, .arg = "SIZE",
	    .standard = "1G", .min = 1 << 20, .max = 1ull << 44,
	    .help = "output kept of all executions that run; above, less of each"),
	ROW("mcp_output", "MCP_OUTPUT", "mcp-output", SIZE, mcp_output_bytes, .arg = "SIZE",
	    .standard = "32K", .min = 1 << 10, .max = 1 << 20,
	    .help = "output of a tool that a model is given at once; the rest goes to a file"),
	ROW("mcp_resume", "MCP_RESUME", "mcp-resume", DURATION, mcp_resume_ms, .arg = "TIME",
	    .standard = "30s", .min = 100, .max = MS_HOUR,
	    .help = "how long a call over MCP whose client was cut off waits for it to come back"),
	ROW("retention", "RETENTION", "retention", DURATION, retention_ms, .arg = "TIME",
	    .standard = "24h", .max = 87600 * MS_HOUR,
	    .help = "how long ended sandboxes and executions are listed"),
	ROW("audit", "AUDIT", "audit", BOOL, audit, .standard = "true",
	    .help = "write down who changed what and who was refused"),
	ROW("audit_retention", "AUDIT_RETENTION", "audit-retention", DURATION, audit_retention_ms,
	    .arg = "TIME", .standard = "0", .max = 876000 * MS_HOUR,
	    .help = "how long lines of the audit log are kept (0: for ever)"),
	ROW("event_retention", "EVENT_RETENTION", "event-retention", DURATION, event_retention_ms,
	    .arg = "TIME", .standard = "168h", .min = 1000, .max = 87600 * MS_HOUR,
	    .help = "how long events and security events are kept"),
	ROW("otlp_endpoint", "OTLP_ENDPOINT", "otlp-endpoint", STRING, otlp_endpoint, .arg = "URL",
	    .help = "collector of traces, OTLP over HTTP (none: no traces)"),
	/* No flag: as api_key. */
	{ .name = "otlp_headers",
	  .env = "HOLT_OTLP_HEADERS",
	  .type = SETTING_SECRET,
	  .offset = offsetof(struct config, otlp_headers),
	  .arg = "NAME=VALUE,...",
	  .help = "headers of the requests to it, such as a token" },
	ROW("otlp_sample", "OTLP_SAMPLE", "otlp-sample", CPU, otlp_sample_milli, .arg = "SHARE",
	    .standard = "1", .max = 1000, .help = "share of traces that begin here: 0 to 1"),
	ROW("otlp_interval", "OTLP_INTERVAL", "otlp-interval", DURATION, otlp_interval_ms,
	    .arg = "TIME", .standard = "2s", .min = 10, .max = 60000,
	    .help = "how long spans of traces wait to be sent"),
	ROW("otlp_service", "OTLP_SERVICE", "otlp-service", STRING, otlp_service, .arg = "NAME",
	    .standard = "holt", .max = 128, .help = "what traces call this daemon"),
	ROW("webhook_allow_private", "WEBHOOK_ALLOW_PRIVATE", "webhook-allow-private", BOOL,
	    webhook_allow_private, .standard = "false",
	    .help = "webhooks may lead to this machine and its network, and to http://"),
	ROW("webhook_timeout", "WEBHOOK_TIMEOUT", "webhook-timeout", DURATION, webhook_timeout_ms,
	    .arg = "TIME", .standard = "10s", .min = 100, .max = 60000,
	    .help = "how long a webhook's server has for its answer"),
	ROW("webhook_retry", "WEBHOOK_RETRY", "webhook-retry", DURATION, webhook_retry_ms,
	    .arg = "TIME", .standard = "1s", .min = 10, .max = MS_HOUR,
	    .help = "before a failed webhook is tried again; doubled from time to time"),
	ROW("webhook_give_up", "WEBHOOK_GIVE_UP", "webhook-give-up", DURATION, webhook_give_up_ms,
	    .arg = "TIME", .standard = "24h", .min = 100, .max = 720 * MS_HOUR,
	    .help = "how long an event is tried to be sent"),
	ROW("max_store", "MAX_STORE", "max-store", SIZE, max_store_bytes, .arg = "SIZE",
	    .standard = "4G", .min = 16 << 20, .max = 1ull << 44,
	    .help = "size of the database; above, what ended first is forgotten"),
	ROW("images_dir", "IMAGES_DIR", "images-dir", PATH, images_dir, .arg = "DIR",
	    .help = "directory of images that templates can be made of (none: they cannot)"),
	ROW("image_max", "IMAGE_MAX", "image-max", SIZE, image_max_bytes, .arg = "SIZE",
	    .standard = "2G", .min = 1 << 20, .max = 1ull << 39,
	    .help = "largest image, unpacked; it is unpacked in a sandbox's memory"),
	ROW("skills_dir", "SKILLS_DIR", "skills-dir", PATH, skills_dir, .arg = "DIR",
	    .help = "directory of skills, a folder with a SKILL.md each (skills in state_dir)"),
	ROW("mcp_servers_file", "MCP_SERVERS_FILE", "mcp-servers-file", PATH, mcp_servers_file,
	    .arg = "FILE", .help = "MCP servers whose tools are offered: {\"mcpServers\": {...}}"),
	ROW("mcp_call_timeout", "MCP_CALL_TIMEOUT", "mcp-call-timeout", DURATION,
	    mcp_call_timeout_ms, .arg = "TIME", .standard = "60s", .min = 100, .max = 24 * MS_HOUR,
	    .help = "how long a call of their tools may take, unless it says otherwise"),
	ROW("mcp_approval_timeout", "MCP_APPROVAL_TIMEOUT", "mcp-approval-timeout", DURATION,
	    mcp_approval_timeout_ms, .arg = "TIME", .standard = "5m", .min = 1000,
	    .max = 24 * MS_HOUR,
	    .help = "how long a call waits for somebody's approval; then it is denied"),
	ROW("mcp_code_mode", "MCP_CODE_MODE", "mcp-code-mode", BOOL, mcp_code_mode,
	    .standard = "true",
	    .help = "programs of MCP clients' own sandboxes may call them, too"),
	ROW("mcp_box_calls", "MCP_BOX_CALLS", "mcp-box-calls", U32, mcp_box_calls, .arg = "COUNT",
	    .standard = "10000", .min = 1, .max = 100000000,
	    .help = "calls that programs in one sandbox may make of them in an hour"),
	ROW("mcp_box_bytes", "MCP_BOX_BYTES", "mcp-box-bytes", SIZE, mcp_box_bytes, .arg = "SIZE",
	    .standard = "1G", .min = 1 << 10, .max = 1ull << 50,
	    .help = "bytes that these calls may move in an hour, both ways"),
	ROW("limits_memory", "LIMITS_MEMORY", "limits-memory", SIZE, limits.memory_bytes,
	    .arg = "SIZE", .standard = "256M", .min = LIMIT_MEMORY_MIN, .max = LIMIT_MEMORY_MAX,
	    .help = "memory of a sandbox"),
	ROW("limits_cpu", "LIMITS_CPU", "limits-cpu", CPU, limits.cpu_milli, .arg = "CORES",
	    .standard = "0.5", .min = LIMIT_CPU_MIN, .max = LIMIT_CPU_MAX,
	    .help = "processor time of a sandbox"),
	ROW("limits_pids", "LIMITS_PIDS", "limits-pids", U32, limits.pids, .arg = "COUNT",
	    .standard = "64", .min = LIMIT_PIDS_MIN, .max = LIMIT_PIDS_MAX,
	    .help = "processes and threads of a sandbox"),
	ROW("limits_disk", "LIMITS_DISK", "limits-disk", SIZE, limits.disk_bytes, .arg = "SIZE",
	    .standard = "0", .max = LIMIT_MEMORY_MAX,
	    .help = "files of a sandbox (0: 512M, but no more than half of its memory)"),
	ROW("limits_inodes", "LIMITS_INODES", "limits-inodes", U32, limits.inodes, .arg = "COUNT",
	    .standard = "65536", .min = LIMIT_INODES_MIN, .max = LIMIT_INODES_MAX,
	    .help = "number of a sandbox's files"),
	ROW("limits_nofile", "LIMITS_NOFILE", "limits-nofile", U32, limits.nofile, .arg = "COUNT",
	    .standard = "1024", .min = LIMIT_NOFILE_MIN, .max = LIMIT_NOFILE_MAX,
	    .help = "open files of a sandbox's process; without root at most half of ours"),
	ROW("limits_memory_max", "LIMITS_MEMORY_MAX", "limits-memory-max", SIZE,
	    limits_max.memory_bytes, .arg = "SIZE", .standard = "auto", .flags = SETTING_AUTO,
	    .min = LIMIT_MEMORY_MIN, .max = LIMIT_MEMORY_MAX,
	    .help = "most memory that a sandbox may ask for (auto: 3/4 of the machine's)"),
	ROW("limits_cpu_max", "LIMITS_CPU_MAX", "limits-cpu-max", CPU, limits_max.cpu_milli,
	    .arg = "CORES", .standard = "auto", .flags = SETTING_AUTO, .min = LIMIT_CPU_MIN,
	    .max = LIMIT_CPU_MAX, .help = "the same of processor time (auto: all cores)"),
	ROW("limits_pids_max", "LIMITS_PIDS_MAX", "limits-pids-max", U32, limits_max.pids,
	    .arg = "COUNT", .standard = "auto", .flags = SETTING_AUTO, .min = LIMIT_PIDS_MIN,
	    .max = LIMIT_PIDS_MAX,
	    .help = "the same of processes (auto: 1/4 of what the machine can have)"),
	ROW("limits_disk_max", "LIMITS_DISK_MAX", "limits-disk-max", SIZE, limits_max.disk_bytes,
	    .arg = "SIZE", .standard = "auto", .flags = SETTING_AUTO, .min = LIMIT_DISK_MIN,
	    .max = LIMIT_MEMORY_MAX,
	    .help = "the same of files, which are in memory (auto: limits_memory_max)"),
	ROW("limits_inodes_max", "LIMITS_INODES_MAX", "limits-inodes-max", U32, limits_max.inodes,
	    .arg = "COUNT", .standard = "auto", .flags = SETTING_AUTO, .min = LIMIT_INODES_MIN,
	    .max = LIMIT_INODES_MAX,
	    .help = "the same of their number (auto: one for each 4K of limits_memory_max)"),
	ROW("limits_nofile_max", "LIMITS_NOFILE_MAX", "limits-nofile-max", U32, limits_max.nofile,
	    .arg = "COUNT", .standard = "auto", .flags = SETTING_AUTO, .min = LIMIT_NOFILE_MIN,
	    .max = LIMIT_NOFILE_MAX,
	    .help = "the same of open files (auto: 64K; without root half of ours)"),
	ROW("memory_reserve", "MEMORY_RESERVE", "memory-reserve", SIZE, reserve_bytes,
	    .arg = "SIZE", .standard = "auto", .flags = SETTING_AUTO, .max = LIMIT_MEMORY_MAX,
	    .help = "memory that must stay free when a sandbox is made (auto: a tenth)"),
	ROW("commit_memory", "COMMIT_MEMORY", "commit-memory", SIZE, commit_memory_bytes,
	    .arg = "SIZE", .standard = "auto", .flags = SETTING_AUTO | SETTING_NONE, .min = 1,
	    .max = 1ull << 50,
	    .help = "memory promised to all sandboxes (auto: 5/4 max_sandboxes of the default)"),
	ROW("commit_cpu", "COMMIT_CPU", "commit-cpu", CPU, commit_cpu_milli, .arg = "CORES",
	    .standard = "auto", .flags = SETTING_AUTO | SETTING_NONE, .min = 1, .max = 4000000000,
	    .help = "processor time promised to all sandboxes (auto: all cores to each)"),
	ROW("commit_pids", "COMMIT_PIDS", "commit-pids", U32, commit_pids, .arg = "COUNT",
	    .standard = "auto", .flags = SETTING_AUTO | SETTING_NONE, .min = 1, .max = 4000000000,
	    .help = "processes promised to all sandboxes (auto: as commit_memory)"),
	ROW("quota_sandboxes", "QUOTA_SANDBOXES", "quota-sandboxes", U32, quota_sandboxes,
	    .arg = "COUNT", .standard = "auto", .flags = SETTING_AUTO | SETTING_NONE,
	    .max = 1000000,
	    .help = "sandboxes of a user (auto: 1/4 of max_sandboxes; of an admin: no limit)"),
	ROW("quota_cpu", "QUOTA_CPU", "quota-cpu", CPU, quota_cpu_milli, .arg = "CORES",
	    .standard = "auto", .flags = SETTING_AUTO | SETTING_NONE, .max = 1000000000,
	    .help = "processor time of a user's sandboxes (auto: 16 times the cores)"),
	ROW("quota_memory", "QUOTA_MEMORY", "quota-memory", SIZE, quota_memory_bytes, .arg = "SIZE",
	    .standard = "auto", .flags = SETTING_AUTO | SETTING_NONE, .max = 1ull << 50,
	    .help = "memory of a user's sandboxes (auto: half of the machine's, 1G at least)"),
	ROW("quota_disk", "QUOTA_DISK", "quota-disk", SIZE, quota_disk_bytes, .arg = "SIZE",
	    .standard = "auto", .flags = SETTING_AUTO | SETTING_NONE, .max = 1ull << 50,
	    .help = "files of a user (auto: 1/4 of the file system of state_dir, 4G at least)"),
	ROW("quota_executions", "QUOTA_EXECUTIONS", "quota-executions", U32, quota_executions,
	    .arg = "COUNT", .standard = "auto", .flags = SETTING_AUTO | SETTING_NONE,
	    .max = 1000000000,
	    .help = "executions that a user starts in a day, UTC (auto: a million)"),
	ROW("quota_pids", "QUOTA_PIDS", "quota-pids", U32, quota_pids, .arg = "COUNT",
	    .standard = "auto", .flags = SETTING_AUTO | SETTING_NONE, .max = 1000000000,
	    .help = "processes of a user's sandboxes (auto: half of what the machine can have)"),
	ROW("rate_read", "RATE_READ", "rate-read", RATE, rate_read, .arg = "RATE",
	    .standard = "120000/m", .help = "requests of a key that look (0: no limit)"),
	ROW("rate_write", "RATE_WRITE", "rate-write", RATE, rate_write, .arg = "RATE",
	    .standard = "120000/m", .help = "requests of a key that change something"),
	ROW("rate_exec", "RATE_EXEC", "rate-exec", RATE, rate_exec, .arg = "RATE", .standard = "0",
	    .help = "executions that a key starts"),
	ROW("rate_create", "RATE_CREATE", "rate-create", RATE, rate_create, .arg = "RATE",
	    .standard = "0", .help = "sandboxes that a key makes"),
	ROW("launcher_timeout", "LAUNCHER_TIMEOUT", "launcher-timeout", DURATION,
	    launcher_timeout_ms, .arg = "TIME", .standard = "30s", .min = 1000, .max = MS_HOUR,
	    .help = "when a silent launcher is replaced, and the build of a box is given up"),
	ROW("pool_min", "POOL_MIN", "pool-min", U32, pool_min, .arg = "COUNT", .standard = "2",
	    .max = 1000, .help = "finished boxes that always wait"),
	ROW("pool_max", "POOL_MAX", "pool-max", U32, pool_max, .arg = "COUNT", .standard = "16",
	    .max = 1000, .help = "finished boxes that may wait when demand is high"),
	ROW("pool_quiet", "POOL_QUIET", "pool-quiet", DURATION, pool_quiet_ms, .arg = "TIME",
	    .standard = "60s", .min = 1000, .max = 24 * MS_HOUR,
	    .help = "how long demand must have fallen before fewer wait"),

	ROW("url", "URL", "url", STRING, url, .arg = "URL", .standard = "http://127.0.0.1:8765",
	    .help = "the daemon that commands talk to"),
	ROW("api_key_file", "API_KEY_FILE", "api-key-file", PATH, api_key_file, .arg = "FILE",
	    .help = "file with the key they use (holt/key in your configuration directory)"),
	/* No flag: everybody on the machine can read arguments. */
	{ .name = "api_key",
	  .env = "HOLT_API_KEY",
	  .type = SETTING_SECRET,
	  .offset = offsetof(struct config, api_key),
	  .arg = "KEY",
	  .help = "the key itself" },
};

const struct setting *settings_table(size_t *ret_count)
{
	*ret_count = LEN(table);
	return table;
}

/* The three spellings of a row's name. */
enum spelling { BY_NAME, BY_FLAG, BY_ENV };

static const char *spell(const struct setting *s, enum spelling by)
{
	return by == BY_NAME ? s->name : by == BY_FLAG ? s->flag : s->env;
}

static const struct setting *find(const char *word, enum spelling by)
{
	for (size_t i = 0; i < LEN(table); i++)
		if (spell(&table[i], by) && strcmp(spell(&table[i], by), word) == 0)
			return &table[i];
	return NULL;
}

const struct setting *settings_find(const char *name)
{
	return find(name, BY_NAME);
}

const struct setting *settings_find_flag(const char *flag)
{
	return find(flag, BY_FLAG);
}

const struct setting *settings_find_env(const char *env)
{
	return find(env, BY_ENV);
}

const char *settings_nearest(const char *word)
{
	enum spelling by = strncmp(word, "--", 2) == 0      ? BY_FLAG
			   : strncmp(word, "HOLT_", 5) == 0 ? BY_ENV
							    : BY_NAME;
	const char *best = NULL;
	size_t near = 4; /* what differs in more letters is another word */

	for (size_t i = 0; i < LEN(table); i++) {
		const char *with = spell(&table[i], by);
		size_t d = with ? str_distance(word, with) : near;

		if (d < near) {
			near = d;
			best = with;
		}
	}
	return best;
}
