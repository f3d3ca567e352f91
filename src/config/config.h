/* The settings in force. holt.yaml < .env < HOLT_* environment < flags; each value remembers where
 * it comes from. Strict: an unknown key or a bad value in a file is an error with its line. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/rate.h"
#include "config/settings.h"
#include "spec/launch.h"

struct arena;
struct buf;
struct err;
struct secret;

#define CONFIG_FILE_MAX (256u << 10) /* bytes of holt.yaml and of .env */
#define CONFIG_WARNINGS_MAX 16u

struct config_list {
	const char *const *items;
	size_t len;
};

/* The values of SETTING_CHOICE; the names are in settings.c. */
enum config_cgroup { CONFIG_CGROUP_AUTO, CONFIG_CGROUP_V1, CONFIG_CGROUP_V2, CONFIG_CGROUP_NONE };
enum config_place { CONFIG_MEMORY, CONFIG_DISK };

enum config_origin { ORIGIN_DEFAULT, ORIGIN_FILE, ORIGIN_DOTENV, ORIGIN_ENV, ORIGIN_FLAG };

struct config_source {
	enum config_origin origin;
	const char *where; /* "holt.yaml:12", "HOLT_LISTEN", "--listen"; NULL for a default */
	bool local; /* from a file in the working directory, which anybody may have put there */
};

/* All strings are the config's own. A timeout of 0 is none; units are in the names. */
struct config {
	/* the daemon's doors */
	const char *listen;
	const char *tls_cert, *tls_key; /* NULL: no TLS */
	bool insecure_bind;
	struct config_list cors_origins;
	uint32_t max_connections, max_connections_user;
	uint64_t max_json_bytes, max_body_bytes, body_timeout_ms;
	bool metrics_public;
	bool e2b_public_ports;
	const char *domain;     /* of ports by host name; NULL: none */
	const char *public_url; /* what clients reach us by; NULL: as they say */
	uint64_t port_answer_ms, port_idle_ms;
	/* of packages: the index, and further hosts that it names; none: not configured */
	struct config_list registry_pip, registry_npm, registry_cargo, registry_go;
	bool registry_allow_private;
	bool internet, internet_allow_private; /* network.h */
	struct config_list egress_deny;        /* httpc/guard.h */
	struct config_list dns_servers;        /* loop/resolve.h */
	/* an identity provider; NULL: none */
	const char *jwt_issuer, *jwt_audience, *jwt_jwks;
	const char *jwt_owner_claim;
	const char *jwt_role_claim; /* NULL: every token is a user's */
	bool jwt_admin;
	struct config_list jwt_local_owners;
	uint64_t jwt_skew_ms, jwt_refresh_ms;
	/* what is written down and told */
	bool audit;
	uint64_t audit_retention_ms; /* 0: for ever */
	uint64_t event_retention_ms;
	const char *otlp_endpoint;   /* NULL: no traces */
	struct secret *otlp_headers; /* NULL: none */
	uint32_t otlp_sample_milli;
	uint64_t otlp_interval_ms;
	const char *otlp_service;
	bool webhook_allow_private;
	uint64_t webhook_timeout_ms, webhook_retry_ms, webhook_give_up_ms;
	/* the daemon itself */
	const char *config; /* the file that was read; NULL: none */
	const char *state_dir;
	const char *admin_key_file; /* NULL: the first key is shown instead */
	const char *user;           /* to become when started by root; NULL: not said */
	int cgroup;                 /* enum config_cgroup */
	int layers_on;              /* enum config_place */
	uint64_t layers_bytes;      /* of the image, when that is the disk */
	int log_format;             /* enum log_format */
	int log_level;              /* enum log_level */
	/* sandboxes */
	uint32_t max_sandboxes;
	uint32_t max_builds;
	uint64_t sandbox_timeout_ms, sandbox_timeout_max_ms, sandbox_idle_timeout_ms;
	uint64_t exec_timeout_ms, exec_timeout_max_ms;
	uint64_t output_keep_bytes, max_output_bytes;
	uint64_t mcp_output_bytes; /* of each stream of a tool's result */
	uint64_t mcp_resume_ms;    /* how long what was cut off waits for its client */
	uint64_t retention_ms;
	uint64_t max_store_bytes;
	const char *images_dir;       /* NULL: none */
	const char *skills_dir;       /* NULL: "skills" in state_dir */
	const char *mcp_servers_file; /* NULL: none */
	uint64_t mcp_call_timeout_ms, mcp_approval_timeout_ms;
	bool mcp_code_mode;     /* sandboxes of MCP's clients may call others' tools */
	uint32_t mcp_box_calls; /* of programs in one sandbox, in an hour */
	uint64_t mcp_box_bytes; /* the same, both ways */
	uint64_t image_max_bytes;
	struct limits limits;     /* of a sandbox that asks for nothing else */
	struct limits limits_max; /* the most of one sandbox */
	uint64_t reserve_bytes, commit_memory_bytes;
	uint32_t commit_cpu_milli, commit_pids;
	uint32_t processes_max; /* that all the machine may have; derived only */
	/* every user that has no other ones; 0: no limit */
	uint32_t quota_sandboxes, quota_cpu_milli, quota_executions, quota_pids;
	uint64_t quota_memory_bytes, quota_disk_bytes;
	/* Bits 1 << enum quota_kind: those that nobody set. An admin is not held to them. */
	unsigned quota_auto;
	struct rate rate_read, rate_write, rate_exec, rate_create; /* of each key */
	uint64_t launcher_timeout_ms;
	uint32_t pool_min, pool_max;
	uint64_t pool_quiet_ms;
	/* clients */
	const char *url;
	const char *api_key_file;
	struct secret *api_key; /* NULL: none */

	struct config_source *sources;             /* one for each row of settings_table() */
	const char *warnings[CONFIG_WARNINGS_MAX]; /* for the log, once it is set up */
	size_t warning_count;
	struct arena *arena; /* owns all of the above but the secrets */
};

/* What a command line said: settings only, by their flag. A bool's value may be NULL: true. */
struct config_flag {
	const char *flag; /* "--listen" */
	const char *value;
};

struct config_args {
	const struct config_flag *flags;
	size_t flag_count;
	char *const *env; /* NULL: the process's own */
	const char
		*dir; /* where ./holt.yaml and .env are looked for; NULL: the working directory */
};

/* Reads everything there is and checks each value by itself; args may be NULL. -EINVAL for what is
 * wrong, -ENOENT for a named file that is not there, -EPERM for a file that anybody may write and
 * for a key that a local file would send elsewhere, -E2BIG, -EACCES, -ENOMEM ... */
int config_load(const struct config_args *args, struct config **ret, struct err *err);
struct config *config_free(struct config *c); /* takes NULL, returns NULL */
CLEANUP_FUNC(struct config *, config_free)

/* What does not go together, for the daemon: half of TLS, a listener that others reach without TLS,
 * bounds that contradict. -EINVAL. */
int config_check(const struct config *c, struct err *err);
/* A file that a setting names, as its own are read: -EPERM when anybody may write it, -E2BIG, ...
 */
int config_read_file(const char *path, struct buf *ret, struct err *err);
/* Whether only this machine can reach the address ("127.0.0.1:80", "[::1]:80", "localhost:80",
 * "unix:/run/holt"). */
bool config_is_loopback(const char *listen);

/* `holt config show`: name, value, origin; secrets as ***. */
int config_print(const struct config *c, bool json, FILE *out);
