/* Others' MCP servers, as the operator has configured them: kept connected, what they offer known,
 * and calls of their tools made under the operator's policy. Who calls gives arguments and hears of
 * the end; credentials stay here. Servers are connected to at the start, each by itself; one that
 * is lost is tried again, less and less often. On the loop; nothing calls back from inside the call
 * that asks for it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "auth/principal.h"
#include "base/cleanup.h"
#include "base/id.h"
#include "base/list.h"
#include "mcpc/mcpc.h"
#include "mcpc/stdio_spawn.h"
#include "json/jv.h"

struct audit_log;
struct courier;
struct events;
struct guard_nets;
struct jw;
struct mcpc_servers; /* opaque */
struct mcpc_use;     /* opaque: one call of a tool, with all that has to come before it */
struct metrics;
struct sandboxes;

#define MCPC_SERVERS_MAX 64u
#define MCPC_SERVERS_JSON_MAX (256u << 10) /* bytes of the configuration */
#define MCPC_SERVER_NAME_MAX 64u
#define MCPC_TOOL_NAME_MAX 128u
#define MCPC_TOOLS_MAX 1024u          /* of one server; more are left off */
#define MCPC_TOOL_MAX (64u << 10)     /* bytes of one in a list; a larger one is left off */
#define MCPC_ARGUMENTS_MAX (4u << 20) /* bytes */
#define MCPC_USES_MAX 512u            /* under way, of all servers */
#define MCPC_USES_OWNER_MAX 128u      /* of one owner */
#define MCPC_APPROVALS_MAX 256u       /* that wait */
#define MCPC_RETRY_MIN_MS 1000u       /* before a server is tried again: doubled each time, */
#define MCPC_RETRY_MAX_MS 60000u      /* up to this */

struct mcpc_servers_deps { /* all borrowed, outlive the servers */
	struct loop *loop;
	struct sandboxes *sandboxes;
	struct courier *courier;         /* NULL: no servers over HTTP */
	const struct guard_nets *closed; /* addresses that no server may name; NULL: none */
	struct events *events;           /* NULL: none are told */
	struct audit_log *audit;         /* NULL: nothing is noted */
	struct metrics *metrics;         /* NULL: nothing is counted */
	const char *version;             /* of us */
	uint64_t life_ms;                /* of a server's sandbox: what it may live at the most */
	uint64_t timeout_ms;  /* of a call that says none, and whose row does not; 0: 60 s */
	uint64_t approval_ms; /* how long somebody may be asked; 0: 5 min */
	/* What ${NAME} stands for; NULL: nothing. */
	const char *(*variable)(void *user, const char *name);
	void *user;
	struct stdio_spawner
		spawner; /* of servers on this machine; zeroed: they are our children */
};

/* json: {"mcpServers": {...}}; NULL: there are none. -EINVAL, -E2BIG: it is no such thing. A server
 * whose row is wrong is there and says so. */
int mcpc_servers_create(const struct mcpc_servers_deps *deps, const char *json, size_t n,
			struct mcpc_servers **ret, struct err *err);
/* The files that the configuration names and that are read while it is in force. What is no such
 * configuration has none. */
void mcpc_servers_files(const char *json, size_t n, void (*fn)(void *user, const char *path),
			void *user);
/* Who leads out of servers' sandboxes (stdio.h); before the start. */
struct stdio_way;
void mcpc_servers_set_way(struct mcpc_servers *all, const struct stdio_way *way);
void mcpc_servers_start(struct mcpc_servers *all); /* connects; sandboxes can be made */
/* Ends all that was started. done() comes soon, in any case, once, not from inside the call. */
void mcpc_servers_stop(struct mcpc_servers *all, void (*done)(void *user), void *user);
/* Whoever has not been told is not told. Takes NULL, returns NULL. */
struct mcpc_servers *mcpc_servers_free(struct mcpc_servers *all);
CLEANUP_FUNC(struct mcpc_servers *, mcpc_servers_free)

/* ---- what there is ---- */

enum mcpc_server_state {
	MCPC_SERVER_DISABLED,
	MCPC_SERVER_FAILED, /* its row is wrong: nothing is tried */
	MCPC_SERVER_CONNECTING,
	MCPC_SERVER_READY,
	MCPC_SERVER_WAITING, /* it was lost, or could not be reached: tried again later */
	MCPC_SERVER_STATE_COUNT
};
extern const char *const mcpc_server_states[MCPC_SERVER_STATE_COUNT + 1]; /* ended by NULL */

struct mcpc_server_info { /* borrowed */
	const char *name;
	const char *transport; /* "stdio", "http" */
	const char *place;     /* "sandbox", "host", "remote" */
	enum mcpc_server_state state;
	const char *error;   /* why it is not ready, or what of the row is passed over; "" */
	const char *program; /* as the server calls itself; "" */
	bool is_modern;
	size_t n_tools, n_resources, n_prompts;
	size_t n_left_off; /* tools that are too large, too deep, too many, or wrong */
	unsigned restarts; /* since the start */
	uint64_t retry_ms; /* until it is tried again; 0: it is not waiting */
	int64_t since_ms;  /* wall clock: in this state */
	uint64_t n_calls, n_failed;
	size_t n_under_way;
};
void mcpc_servers_each(const struct mcpc_servers *all,
		       void (*fn)(void *user, const struct mcpc_server_info *info), void *user);
bool mcpc_servers_any(const struct mcpc_servers *all); /* at least one that is not disabled */

enum mcpc_policy { MCPC_ALLOW, MCPC_ASK, MCPC_DENY };
extern const char *const mcpc_policies[4]; /* ended by NULL */

struct mcpc_tool { /* borrowed until the list changes */
	const char *server, *name;
	const char *title, *about; /* "": none */
	struct jv input, output;   /* schemas; output may be absent */
	struct jv annotations;     /* may be absent */
	enum mcpc_policy policy;
};
/* In the order of the configuration, then of the servers' lists; without those that are denied.
 * fn returns false to end it. server NULL: of all. */
typedef bool (*mcpc_tool_fn)(void *user, const struct mcpc_tool *tool);
void mcpc_servers_tools(const struct mcpc_servers *all, const char *server, mcpc_tool_fn fn,
			void *user);
const struct mcpc_tool *mcpc_servers_find(const struct mcpc_servers *all, const char *server,
					  const char *tool); /* NULL; also denied ones */

enum mcpc_detail { MCPC_NAME, MCPC_SUMMARY, MCPC_FULL };
extern const char *const mcpc_details[4]; /* ended by NULL */
/* The best first, by the words of the query in names, descriptions and parameters; an empty query
 * is all of them, in their order. At most `limit`. */
void mcpc_servers_search(const struct mcpc_servers *all, const char *server, const char *query,
			 size_t limit, mcpc_tool_fn fn, void *user);
/* An object: server, name; title, description, policy; inputSchema, outputSchema, annotations. */
void mcpc_tool_write(struct jw *w, const struct mcpc_tool *tool, enum mcpc_detail detail);

struct mcpc_watch {
	struct list node;
	/* Its tools are others, or it has come or gone. */
	void (*changed)(void *user, const char *server);
	void *user;
};
void mcpc_servers_watch(struct mcpc_servers *all, struct mcpc_watch *w);
void mcpc_servers_unwatch(struct mcpc_watch *w);

/* ---- calls ---- */

struct mcpc_tool_call { /* borrowed for the call */
	const char *server, *tool;
	const char *arguments;       /* JSON object; NULL: {} */
	const struct principal *who; /* whose call it is */
	const char *sandbox_id;      /* what it comes from; NULL or "": no sandbox */
	uint64_t timeout_ms;         /* of all of it, an approval's wait included; 0: the row's */
	const char *traceparent;     /* NULL: none */
	/* Once, unless it is cancelled. o->err: EPERM (somebody said no, or nobody yes), ETIMEDOUT,
	 * EPIPE (the server was lost), EAGAIN (it is not there now), EPROTO ... The result is the
	 * server's own ({"content": ..., "isError": ...}). */
	mcpc_done_fn done;
	mcpc_progress_fn progress; /* NULL: not wanted */
	void *user;
};
/* -ENOENT (no such server or tool), -EPERM (the policy denies it), -EINVAL, -E2BIG (arguments),
 * -EAGAIN (too many under way, or the server is not there now): done() does not come. Each call,
 * also a refused one, has a line in the audit log and an event. */
int mcpc_servers_call(struct mcpc_servers *all, const struct mcpc_tool_call *call,
		      struct mcpc_use **ret, struct err *err);
void mcpc_servers_cancel(struct mcpc_use *use); /* the server is told; done() does not come */

/* ---- approvals: what somebody has to say yes or no to ---- */

struct mcpc_approval { /* borrowed */
	char id[ID_LEN + 1];
	const char *server;
	const char *tool;      /* "": the server itself asks something */
	const char *method;    /* "tools/call", "elicitation/create", "sampling/createMessage" */
	const char *arguments; /* JSON: of the call, or what it asks */
	const char *owner;     /* whose call it is; "": only admins see it */
	const char *sandbox_id;
	int64_t created_ms, expires_ms; /* wall clock; then it is as good as denied */
};
/* Oldest first. owner NULL: everybody's. */
void mcpc_approvals_each(const struct mcpc_servers *all, const char *owner,
			 void (*fn)(void *user, const struct mcpc_approval *a), void *user);
/* content: what is answered to the server that asks, as JSON; NULL: none. by: who decides. -ENOENT,
 * -EINVAL (such a question wants content). */
int mcpc_approval_decide(struct mcpc_servers *all, const char *id, const char *owner, bool is_yes,
			 const char *content, const struct principal *by, struct err *err);
