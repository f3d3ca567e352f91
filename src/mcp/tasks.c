/* tasks/get, tasks/update, tasks/cancel: of tasks in memory, and of executions that were tasks in
 * an earlier life of this process. */
#include <errno.h>
#include <string.h>

#include "auth/principal.h"
#include "auth/scope.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "mcp/handlers.h"
#include "mcp/task.h"
#include "sandbox/exec.h"
#include "tools/toolbox.h"

static const char *const statuses[] = {
	[TASK_WORKING] = "working", [TASK_INPUT] = "input_required", [TASK_COMPLETED] = "completed",
	[TASK_FAILED] = "failed",   [TASK_CANCELLED] = "cancelled",
};

void mcp_task_write(struct jw *w, const struct task_head *h)
{
	jw_str_field(w, "taskId", h->id);
	jw_str_field(w, "status", statuses[h->status]);
	jw_iso_field(w, "createdAt", h->created_ms);
	jw_iso_field(w, "lastUpdatedAt", h->updated_ms);
	jw_uint_field(w, "ttlMs", MCP_TASK_TTL_MS);
	jw_uint_field(w, "pollIntervalMs", MCP_TASK_POLL_MS);
}

static void write_result(struct jw *w, const struct tool_call *t)
{
	jw_key(w, "result");
	jw_object_begin(w);
	mcp_write_tool_result(w, t, MCP_MODERN_VERSION);
	jw_str_field(w, "resultType", "complete");
	jw_object_end(w);
}

static void write_error(struct jw *w, const struct tool_call *t)
{
	jw_key(w, "error");
	jw_object_begin(w);
	jw_int_field(w, "code",
		     t->outcome == TOOL_NO_INPUT ? (int64_t)MCP_NEEDS_CLIENT
						 : (int64_t)RPC_INTERNAL);
	jw_str_field(w, "message",
		     t->outcome == TOOL_NO_INPUT ? "the client has not declared what this needs"
						 : "the tool could not be run");
	jw_object_end(w);
}

static void write_task(void *user, struct jw *w)
{
	const struct mcp_task *k = user;

	mcp_task_write(w, &(struct task_head){ k->id, k->status, k->created_ms, k->updated_ms });
	if (k->status == TASK_COMPLETED)
		write_result(w, &k->t);
	else if (k->status == TASK_FAILED)
		write_error(w, &k->t);
	else if (k->status == TASK_INPUT)
		mcp_asks_write(w, &k->t.asks);
}

/* ---- which ---- */

static void unknown(struct mcp_request *q)
{
	mcp_fail(q, RPC_PARAMS, "taskId: there is no such task");
}

static bool is_for(const struct mcp_task *k, const struct mcp_request *q)
{
	const char *box = q->box_id[0] ? q->box_id : q->who.sandbox_id;

	return strcmp(k->t.who.owner, q->who.owner) == 0 &&
	       (box[0] == '\0' || strcmp(k->t.box_id, box) == 0);
}

/* Whoever could ask for it, and nobody else. */
static bool may_hear(const void *user, const struct mcp_request *q)
{
	return is_for(user, q) && principal_check(&q->who, SCOPE_SANDBOX_READ, NULL) == 0;
}

void mcp_task_tell(struct mcp_task *k)
{
	mcp_server_tell(k->server, &(struct mcp_notice){ .filter = "taskIds",
							 .value = k->id,
							 .method = "notifications/tasks",
							 .may = may_hear,
							 .write = write_task,
							 .user = k });
}

static struct mcp_task *find(struct mcp_request *q, const char *id)
{
	LIST_FOREACH (&q->server->tasks, k, struct mcp_task, node)
		if (!k->q && strcmp(k->id, id) == 0)
			return is_for(k, q) ? k : NULL;
	return NULL;
}

/* "<sandbox>.<execution>"; false: it is no such name, or not for this caller. */
static bool split(const struct mcp_request *q, const char *id, char box[ID_LEN + 1],
		  char execution[ID_LEN + 1])
{
	const char *bound = q->box_id[0] ? q->box_id : q->who.sandbox_id;

	if (strlen(id) != 2 * ID_LEN + 1 || id[ID_LEN] != '.')
		return false;
	memcpy(box, id, ID_LEN);
	box[ID_LEN] = '\0';
	memcpy(execution, id + ID_LEN + 1, ID_LEN + 1);
	return id_is_valid(box) && id_is_valid(execution) &&
	       (bound[0] == '\0' || strcmp(bound, box) == 0);
}

/* The id that is meant; NULL: answered. */
static const char *begin(struct mcp_request *q, enum scope scope)
{
	const char *id = jv_text(jv_get(q->params, "taskId"));
	struct err err = { 0 };

	if (!(q->client & MCP_CLIENT_TASKS)) {
		mcp_fail_client(q, MCP_CLIENT_TASKS);
		return NULL;
	}
	if (principal_check(&q->who, scope, &err) < 0) {
		mcp_fail(q, RPC_PARAMS, "%s", err.text);
		return NULL;
	}
	if (!id)
		unknown(q);
	return id;
}

/* ---- of an earlier life ---- */

struct past { /* arena */
	struct tool_call t;
	struct mcp_request *q;
	const char *id;
	bool is_running, is_cancelled;
	int64_t started_ms, ended_ms;
	char box[ID_LEN + 1], execution[ID_LEN + 1];
};

static void past_told(struct tool_call *t)
{
	struct past *p = LIST_ENTRY(t, struct past, t);
	struct mcp_request *q = p->q;
	enum task_status status = p->is_running     ? TASK_WORKING
				  : p->is_cancelled ? TASK_CANCELLED
						    : TASK_COMPLETED;
	struct jw *w;

	q->cancelled = NULL;
	if (q->is_cancelled) {
		tool_call_done(t);
		return mcp_drop(q);
	}
	w = mcp_result_begin(q);
	mcp_task_write(w, &(struct task_head){ p->id, status, p->started_ms,
					       p->ended_ms ? p->ended_ms : p->started_ms });
	if (status == TASK_COMPLETED)
		write_result(w, t);
	tool_call_done(t);
	mcp_result_end(q);
}

static void past_got(void *user, const struct exec_info *info, const struct output *output,
		     const struct err *err)
{
	struct past *p = user;

	(void)output;
	if (err)
		return unknown(p->q);
	p->is_running = info->state == EXECUTION_RUNNING;
	p->is_cancelled = info->flags & EXECUTION_CANCELLED;
	p->started_ms = info->started_ms;
	p->ended_ms = info->ended_ms;
	if (p->is_running)
		return past_told(&p->t);
	tools_execution(&p->t, p->box, p->execution);
}

/* What is asked of the store is answered soon: a client that leaves changes nothing. */
static void past_cancelled(struct mcp_request *q)
{
	if (q->server->is_closing)
		mcp_drop(q);
}

static void past_get(struct mcp_request *q, const char *id)
{
	static const struct tool_call_ops ops = { .done = past_told };
	struct past *p = arena_alloc(q->arena, sizeof(*p));

	if (!p)
		return mcp_fail(q, RPC_INTERNAL, "out of memory");
	if (!split(q, id, p->box, p->execution))
		return unknown(q);
	mcp_tool_fill(q, &p->t);
	p->q = q;
	p->id = id;
	p->t.ops = &ops;
	q->cancelled = past_cancelled;
	exec_get(q->server->deps.sandboxes, p->box, q->who.owner, p->execution, past_got, p);
}

static void past_found(void *user, const struct exec_info *info, const struct output *output,
		       const struct err *err)
{
	struct past *p = user;
	struct sandbox *sb = sandboxes_find(p->q->server->deps.sandboxes, p->box, p->q->who.owner);
	struct execution *x = sb && !err ? exec_find(sb, p->execution) : NULL;

	(void)info, (void)output;
	p->q->cancelled = NULL;
	if (err)
		return unknown(p->q);
	if (x)
		(void)exec_cancel(x);
	mcp_result_empty(p->q);
}

static void past_end(struct mcp_request *q, const char *id)
{
	struct past *p = arena_alloc(q->arena, sizeof(*p));

	if (!p)
		return mcp_fail(q, RPC_INTERNAL, "out of memory");
	if (!split(q, id, p->box, p->execution))
		return unknown(q);
	p->q = q;
	q->cancelled = past_cancelled;
	exec_get(q->server->deps.sandboxes, p->box, q->who.owner, p->execution, past_found, p);
}

/* ---- the methods ---- */

void mcp_tasks_get(struct mcp_request *q)
{
	const char *id = begin(q, SCOPE_SANDBOX_READ);
	struct mcp_task *k = id ? find(q, id) : NULL;

	if (!id)
		return;
	if (!k)
		return past_get(q, id);
	write_task(k, mcp_result_begin(q));
	mcp_result_end(q);
}

void mcp_tasks_update(struct mcp_request *q)
{
	const char *id = begin(q, SCOPE_EXEC);
	struct mcp_task *k = id ? find(q, id) : NULL;
	struct jv answers;

	if (!id)
		return;
	if (!k)
		return unknown(q);
	answers = jv_get(q->params, "inputResponses");
	if (jv_kind(answers) != JV_OBJECT)
		return mcp_fail(q, RPC_PARAMS, "inputResponses: want an object");
	if (mcp_task_update(k, answers) < 0)
		return mcp_fail(q, RPC_INTERNAL, "out of memory");
	mcp_result_empty(q);
}

void mcp_tasks_cancel(struct mcp_request *q)
{
	const char *id = begin(q, SCOPE_EXEC);
	struct mcp_task *k = id ? find(q, id) : NULL;

	if (!id)
		return;
	if (!k)
		return past_end(q, id);
	mcp_task_cancel(k);
	mcp_result_empty(q);
}
