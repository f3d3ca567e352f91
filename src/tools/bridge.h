/* Tools for programs in sandboxes: behind the socket of each sandbox with a grant, calls of others'
 * servers (mcpc/servers.h), which have their policy, approvals, credentials and audit; and the
 * files with which programs make them (stubs.h), put into the box.
 *
 * On the socket: JSON-RPC, a message a line. tools/call {server, name, arguments} has the server's
 * own result; tools/search {query, detail, server, limit}, tools/list {server}, ping. With
 * "plain": true a result is {"isError", "text"}, in this order, for who has no JSON at hand. What
 * comes is a hostile box's: lines, connections, calls and bytes are bounded, and who does not read
 * is not read. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

struct bridges; /* opaque */
struct config;
struct err;
struct events;
struct loop;
struct mcpc_servers;
struct sandboxes;

#define BRIDGE_LINE_MAX                                                             \
	((4u << 20) + (64u << 10))    /* bytes of a request: arguments and the rest \
				       */
#define BRIDGE_WAITING_MAX (8u << 20) /* bytes of requests that are not whole, of one sandbox */
#define BRIDGE_RESULT_MAX (4u << 20)  /* bytes of an answer */
#define BRIDGE_OUT_MAX (1u << 20)     /* bytes not taken, of a sandbox: then no more is read */
#define BRIDGE_CONNS_MAX 64u          /* of one sandbox */
#define BRIDGE_CALLS_MAX 8u           /* under way, of one sandbox; more wait */
#define BRIDGE_FOUND_MAX 100u         /* tools that one search tells */
#define BRIDGE_PERIOD_MS (60u * 60 * 1000) /* of which the budgets are */

enum bridge_code { /* of errors, beside rpc.h's and the servers' own */
		   BRIDGE_DENIED = -32001,
		   BRIDGE_SPENT = -32002, /* a budget */
		   BRIDGE_BUSY =
			   -32003, /* the server is not there now, or too much is asked of it */
		   BRIDGE_LATE = -32004,
		   BRIDGE_LOST = -32005,
		   BRIDGE_LARGE = -32006, /* the answer */
};

struct bridges_deps { /* all borrowed, outlive the bridges */
	struct loop *loop;
	const struct config *config;
	struct sandboxes *sandboxes;
	struct mcpc_servers *servers;
	struct events *events; /* NULL: none are told */
};

/* From then on, sandboxes that are reached have what their grant says. */
int bridges_create(const struct bridges_deps *deps, struct bridges **ret, struct err *err);
struct bridges *bridges_free(struct bridges *all); /* takes NULL, returns NULL */
CLEANUP_FUNC(struct bridges *, bridges_free)

/* Calls done(), at once or later: the files of this sandbox are there, or not to be waited for. Not
 * when all of it ends before. */
void bridges_settle(struct bridges *all, const char *sandbox_id, void (*done)(void *user),
		    void *user);
