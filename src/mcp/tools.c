/* tools/list and tools/call: the toolbox as clients see it. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "mcp/handlers.h"
#include "mcp/page.h"
#include "mcp/server_impl.h"
#include "mcp/task.h"
#include "tools/toolbox.h"

#define INPUTS (TOOL_INPUT_FORM | TOOL_INPUT_URL | TOOL_INPUT_SAMPLING | TOOL_INPUT_ROOTS)

static bool is_bound(const struct mcp_request *q)
{
	return q->box_id[0] != '\0' || q->who.sandbox_id[0] != '\0';
}

/* ---- tools/list ---- */

#define LISTED_MAX 4096u

struct listing { /* arena */
	const struct tool **items;
	size_t n;
};

static void add(void *user, const struct tool *tool)
{
	struct listing *l = user;

	if (l->n < LISTED_MAX)
		l->items[l->n++] = tool;
}

static int by_name(const void *a, const void *b)
{
	const struct tool *const *x = a, *const *y = b;

	return strcmp((*x)->name, (*y)->name);
}

void mcp_tools_list(struct mcp_request *q)
{
	struct tools *all = q->server->deps.tools;
	struct listing l = { .items = arena_array(q->arena, LISTED_MAX, sizeof(struct tool *)) };
	struct mcp_page page;
	struct jw *w;

	if (!l.items)
		return mcp_fail(q, RPC_INTERNAL, "out of memory");
	if (!mcp_page_begin(q, &page))
		return;
	tools_each(all, is_bound(q), add, &l);
	qsort(l.items, l.n, sizeof(struct tool *), by_name);
	w = mcp_result_begin(q);
	jw_key(w, "tools");
	jw_array_begin(w);
	for (size_t i = 0; i < l.n; i++) {
		if (!mcp_page_takes(&page, l.items[i]->name))
			continue;
		jw_object_begin(w);
		tools_write(all, w, l.items[i], is_bound(q));
		jw_object_end(w);
	}
	jw_array_end(w);
	mcp_page_end(q, &page, w);
	mcp_result_end(q);
}

/* ---- tools/call ---- */

/* What came with this version is not told to those who speak an older one. */
#define STRUCTURED_SINCE "2025-06-18"

void mcp_write_tool_result(struct jw *w, const struct tool_call *t, const char *version)
{
	bool has_structured = t->structured.len > 0 && strcmp(version, STRUCTURED_SINCE) >= 0;

	jw_key(w, "content");
	jw_array_begin(w);
	if (t->content.len > 0)
		jw_raw(w, t->content.data, t->content.len);
	jw_array_end(w);
	if (has_structured)
		jw_raw_field(w, "structuredContent", t->structured.data, t->structured.len);
	jw_bool_field(w, "isError", t->outcome == TOOL_FAILED);
}

static void answer(struct mcp_request *q, struct tool_call *t)
{
	struct jw *w = mcp_result_begin(q);

	if (t->content.failed || t->structured.failed)
		w->failed = -1; /* told as too large */
	mcp_write_tool_result(w, t, q->version);
	tool_call_done(t);
	mcp_result_end(q);
}

static void ask(struct mcp_request *q, struct tool_call *t)
{
	const char *state = t->next_state;

	list_init(&q->asks);
	LIST_FOREACH (&t->asks, a, struct tool_ask, node) {
		list_remove(&a->node);
		list_push_back(&q->asks, &a->node);
	}
	tool_call_done(t);
	mcp_asks(q, state);
}

static void refuse(struct mcp_request *q, struct tool_call *t)
{
	unsigned missing = t->missing;
	bool is_broken = t->outcome == TOOL_BROKEN;

	tool_call_done(t);
	if (is_broken)
		return mcp_fail(q, RPC_INTERNAL, "the tool could not be run");
	mcp_fail_client(q, missing);
}

void mcp_tool_answer(struct mcp_request *q, struct tool_call *t)
{
	static const char text[] = "this tool has to ask, and the client cannot be asked";

	if (t->outcome == TOOL_ASKS)
		return ask(q, t);
	if (t->outcome == TOOL_BROKEN || (t->outcome == TOOL_NO_INPUT && q->era == MCP_MODERN))
		return refuse(q, t);
	if (t->outcome == TOOL_NO_INPUT) {
		t->outcome = TOOL_FAILED;
		tool_text(t, text, sizeof(text) - 1);
	}
	answer(q, t);
}

static void done(struct tool_call *t)
{
	struct mcp_request *q = t->user;

	q->cancelled = NULL;
	q->work = NULL;
	if (!q->is_cancelled)
		return mcp_tool_answer(q, t);
	tool_call_done(t);
	mcp_drop(q);
}

static void progress(struct tool_call *t, double at, double total, const char *text)
{
	mcp_progress(t->user, at, total, text);
}

static void log_line(struct tool_call *t, const char *level, const char *logger, const char *json)
{
	mcp_log(t->user, level, logger, json);
}

static const struct tool_call_ops quiet = { .done = done, .log = log_line };
static const struct tool_call_ops telling = { .done = done, .progress = progress, .log = log_line };

/* What runs is ended, and then the request goes; at the end of this process what runs goes on. */
static void cancelled(struct mcp_request *q)
{
	struct tool_call *t = q->work;

	if (!q->server->is_closing)
		return tools_cancel(t);
	tools_leave(t);
	tool_call_done(t);
	mcp_drop(q);
}

void mcp_tool_fill(struct mcp_request *q, struct tool_call *t)
{
	bool may_ask = q->era == MCP_MODERN || (q->stream && q->stream->takes_sse);

	t->all = q->server->deps.tools;
	t->who = q->who;
	t->is_bound = is_bound(q);
	(void)str_copy(t->box_id, sizeof(t->box_id), q->box_id);
	t->inputs = may_ask ? q->client & INPUTS : 0;
	t->user = q;
	t->arena = q->arena;
	t->home = q->home;
	t->base = q->base;
	t->answers = q->answers;
	t->state = q->state;
}

static void start(struct mcp_request *q, const struct tool *tool, struct jv arguments)
{
	struct tool_call *t = arena_alloc(q->arena, sizeof(*t));

	if (!t)
		return mcp_fail(q, RPC_INTERNAL, "out of memory");
	mcp_tool_fill(q, t);
	t->ops = mcp_has_progress(q) ? &telling : &quiet;
	q->work = t;
	q->cancelled = cancelled;
	tools_call(t, tool, arguments);
}

/* Those of the legacy era have no words for a task, whatever they declare. */
static bool knows_tasks(const struct mcp_request *q)
{
	return q->era == MCP_MODERN && q->client & MCP_CLIENT_TASKS;
}

void mcp_tools_call(struct mcp_request *q)
{
	const char *name = jv_text(jv_get(q->params, "name"));
	struct jv arguments = jv_get(q->params, "arguments");
	const struct tool *tool;

	if (!name)
		return mcp_fail(q, RPC_PARAMS, "name: want the name of a tool");
	if (jv_kind(arguments) != JV_ABSENT && jv_kind(arguments) != JV_OBJECT)
		return mcp_fail(q, RPC_PARAMS, "arguments: want an object");
	tool = tools_find(q->server->deps.tools, is_bound(q), name);
	if (!tool)
		return mcp_fail(q, RPC_PARAMS, "Unknown tool: %.128s", name);
	if (knows_tasks(q) && tool->flags & TOOL_LONG && mcp_task_room(q))
		return mcp_task_start(q, tool, arguments);
	if (tool->flags & TOOL_TASK_ONLY && !knows_tasks(q))
		return mcp_fail_client(q, MCP_CLIENT_TASKS);
	start(q, tool, arguments);
}
