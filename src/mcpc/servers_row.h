/* A server as the operator has written it down: the shape that hosts of MCP have in common, and
 * what we add to it. Sans-I/O. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "mcpc/servers.h"
#include "mcpc/stdio.h"
#include "sandbox/volume.h"
#include "spec/launch.h"
#include "json/jv_decode.h"

struct arena;

#define SERVER_ARGS_MAX 128
#define SERVER_ENV_MAX 128
#define SERVER_TEXT_MAX (16u << 10) /* bytes of one text, expanded */
#define SERVER_ROOTS_MAX 16
#define SERVER_GLOBS_MAX 128
#define SERVER_HOSTS_MAX 64  /* of its network */
#define SERVER_OWNER "admin" /* whose sandboxes servers run in, unless the row says another */

enum server_answer { SERVER_DECLINES, SERVER_ASKS };

struct server_globs {
	struct jv_strings allow, ask, deny;
};

struct server_row { /* all of it in the arena */
	const char *name;
	/* A process: */
	const char *command; /* NULL: none */
	struct jv_strings args;
	struct jv_pairs env;
	const char *cwd;
	bool is_on_host;
	const char *template, *snapshot, *owner; /* "": the default, none */
	struct limits limits;
	struct volume_mounts volumes;
	struct stdio_network network;
	/* Or a server over HTTP: */
	const char *url; /* NULL: none */
	struct jv_pairs headers;
	struct jv auth; /* borrowed from the document; absent: none */
	/* Of both: */
	bool is_disabled;
	uint64_t timeout_ms; /* 0: not said */
	struct server_globs tools;
	int elicitation, sampling; /* enum server_answer */
	struct jv roots;           /* borrowed; absent: none */
	char unknown[96];          /* a field that nothing reads; "": none */
};

/* name and what stands behind it. -EINVAL, -E2BIG ("env.TOKEN: why"), -ENOMEM. ret->name is set in
 * any case, and is_disabled where it could be read. */
int server_row_read(struct str name, struct jv v, const struct mcpc_servers_deps *deps,
		    struct arena *a, struct server_row *ret, struct err *err);
/* What is started of a row that has a command; all of it borrowed, also argv. */
struct stdio_spec server_row_spec(const struct server_row *row,
				  const char *argv[SERVER_ARGS_MAX + 1]);
/* What the row says of a tool: deny comes before ask, and ask before allow; where something is
 * allowed by name, the rest is not. */
enum mcpc_policy server_row_policy(const struct server_row *row, const char *tool);
/* ${NAME}, ${env:NAME} and ${NAME:-instead}. -EINVAL, -E2BIG, -ENOMEM; err names no field. */
int server_row_expand(const char *text, const struct mcpc_servers_deps *deps, struct arena *a,
		      const char **ret, struct err *err);
