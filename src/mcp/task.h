/* A call of a tool that goes on when its request has been answered: the extension
 * io.modelcontextprotocol/tasks. One that runs an execution is named by it, which is in the store
 * before the client hears the name: such a task is found again by another life of this process. */
#pragma once

#include "mcp/server_impl.h"
#include "tools/tool.h"

#define MCP_TASKS_OWNER_MAX 256u    /* of one owner; above, calls are waited for */
#define MCP_TASKS_BYTES (64u << 20) /* of all results that are kept; above, the same */
#define MCP_TASK_SOON_MS 500u       /* a call that takes longer becomes a task; */
#define MCP_TASK_BOX_MS 3000u       /* of those in a sandbox this long: most end before */
#define MCP_TASK_TTL_MS 7200000u    /* how long one is kept, at least */
#define MCP_TASK_KEEP_MS 300000u    /* and how long behind its end */
#define MCP_TASK_POLL_MS 1000u
#define MCP_TASK_ID_MAX 64u

enum task_status { TASK_WORKING, TASK_INPUT, TASK_COMPLETED, TASK_FAILED, TASK_CANCELLED };

struct mcp_task {
	struct list node; /* in its server */
	struct mcp_server *server;
	struct mcp_request *q; /* who waits for it; NULL: it is a task by now */
	char id[MCP_TASK_ID_MAX + 1];
	const struct tool *tool;
	struct tool_call t;
	struct arena *arena;        /* owned */
	struct jv_doc *doc;         /* owned: {"arguments","answers"} */
	struct jv_doc *answers_doc; /* owned: all answers so far; NULL */
	struct loop_timer *timer;   /* owned: until it becomes a task */
	enum task_status status;
	bool is_cancelled; /* is being ended */
	int64_t created_ms, updated_ms;
	uint64_t expires_ms; /* clock_now_ms(); 0: it has not ended */
};

/* ---- task.c ---- */

/* Whether another may be made. */
bool mcp_task_room(const struct mcp_request *q);
/* Runs the tool: the request is answered with its result, or with a task. */
void mcp_task_start(struct mcp_request *q, const struct tool *tool, struct jv arguments);
void mcp_task_cancel(struct mcp_task *k);
/* Answers to what it asks; it goes on when all of them are there. -ENOMEM. */
int mcp_task_update(struct mcp_task *k, struct jv answers);
void mcp_tasks_tick(struct mcp_server *s, uint64_t now_ms);
void mcp_tasks_end(struct mcp_server *s);

/* ---- tasks.c ---- */

struct task_head { /* what every message about a task has */
	const char *id;
	enum task_status status;
	int64_t created_ms, updated_ms;
};
void mcp_task_write(struct jw *w, const struct task_head *h);
void mcp_task_tell(struct mcp_task *k); /* to those who listen */
