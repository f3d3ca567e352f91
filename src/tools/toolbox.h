/* The tools that there are, and calls of them. */
#pragma once

#include "base/cleanup.h"
#include "tools/tool.h"

struct bridges;
struct audit_log;
struct config;
struct events;
struct loop;
struct mcpc_servers;
struct sandboxes;
struct secret;
struct skills;
struct store;

#define TOOLS_TABLES_MAX 16u

struct tools_deps { /* all borrowed, outlive the tools */
	struct loop *loop;
	const struct config *config;
	struct sandboxes *sandboxes;
	const struct store *store;
	struct skills *skills;        /* NULL: there are none */
	struct mcpc_servers *servers; /* others' tools; NULL: none */
	struct bridges *bridges;      /* programs' way to them; NULL: none */
	const struct secret *secret;  /* what addresses are signed with; NULL: none are given */
	struct audit_log *audit;      /* NULL: nothing is noted */
	const struct tool_table *const *more; /* beside our own, ended by NULL; NULL: none */
};

int tools_create(const struct tools_deps *deps, struct tools **ret, struct err *err);
/* No call may be left. */
struct tools *tools_free(struct tools *all); /* takes NULL, returns NULL */
CLEANUP_FUNC(struct tools *, tools_free)
const struct tools_deps *tools_deps(const struct tools *all);

/* In a fixed order, those that such a caller may use. */
typedef void (*tools_each_fn)(void *user, const struct tool *tool);
void tools_each(struct tools *all, bool is_bound, tools_each_fn fn, void *user);
const struct tool *tools_find(struct tools *all, bool is_bound, const char *name); /* NULL */
/* The members of a tool as MCP lists it: name, title, description, inputSchema, outputSchema,
 * annotations. */
void tools_write(struct tools *all, struct jw *w, const struct tool *tool, bool is_bound);

/* Checks the arguments (absent: {}), finds or makes the sandbox, runs. ops->done() comes once,
 * later. t is filled in as tool.h says; the document of `arguments` outlives it. */
void tools_call(struct tool_call *t, const struct tool *tool, struct jv arguments);
/* Nobody wants it any more: what runs is ended, with all that it started. done() comes. */
void tools_cancel(struct tool_call *t);
/* Nobody waits any more, and done() does not come. What runs (an execution_id says so) goes on,
 * what else is under way ends. Of one that still waits for its sandbox only when the loop does not
 * turn again. */
void tools_leave(struct tool_call *t);
/* The process ends: lets go of everything at once; what runs goes on, and done() does not come. */
void tools_drop(struct tool_call *t);
void tool_call_done(struct tool_call *t); /* frees its buffers */

/* The end of an execution as `exec` tells it, for whoever asks later: fills content and structured
 * of a call that runs nothing. done() comes; TOOL_FAILED: there is no such execution. */
void tools_execution(struct tool_call *t, const char *sandbox_id, const char *execution_id);
