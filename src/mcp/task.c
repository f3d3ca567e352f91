#include "mcp/task.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "loop/loop.h"
#include "mcp/handlers.h"
#include "tools/toolbox.h"

#define ARENA_MAX (16u << 20)

static struct mcp_task *task_free(struct mcp_task *k)
{
	list_remove(&k->node);
	k->timer = loop_timer_free(k->timer);
	tool_call_done(&k->t);
	(void)jv_free(k->answers_doc);
	(void)jv_free(k->doc);
	(void)arena_free(k->arena);
	free(k);
	return NULL;
}

bool mcp_task_room(const struct mcp_request *q)
{
	size_t n = 0, bytes = 0;

	LIST_FOREACH (&q->server->tasks, k, struct mcp_task, node) {
		n += strcmp(k->t.who.owner, q->who.owner) == 0;
		bytes += k->t.content.len + k->t.structured.len;
	}
	return n < MCP_TASKS_OWNER_MAX && bytes < MCP_TASKS_BYTES;
}

/* ---- its life ---- */

/* It has ended: what it was asked with may be much, and is not told any more. */
static void release(struct mcp_task *k)
{
	list_init(&k->t.asks);
	k->t.raw = k->t.answers = (struct jv){ NULL };
	k->answers_doc = jv_free(k->answers_doc);
	k->doc = jv_free(k->doc);
	k->arena = arena_free(k->arena);
}

static void set_status(struct mcp_task *k, enum task_status to)
{
	uint64_t now = clock_now_ms();

	k->status = to;
	k->updated_ms = clock_wall_ms();
	if (to != TASK_WORKING && to != TASK_INPUT) {
		k->expires_ms = now + MCP_TASK_KEEP_MS;
		release(k);
	}
	mcp_task_tell(k);
}

static enum task_status status_of(const struct mcp_task *k)
{
	if (k->is_cancelled)
		return TASK_CANCELLED;
	switch (k->t.outcome) {
	case TOOL_ASKS:
		return TASK_INPUT;
	case TOOL_NO_INPUT:
	case TOOL_BROKEN:
		return TASK_FAILED;
	default:
		return TASK_COMPLETED;
	}
}

/* While somebody waits it is a call like any other. */
static void done_in_time(struct mcp_task *k)
{
	struct mcp_request *q = k->q;

	q->cancelled = NULL;
	q->work = NULL;
	if (q->is_cancelled)
		mcp_drop(q);
	else
		mcp_tool_answer(q, &k->t);
	(void)task_free(k);
}

static void done(struct tool_call *t)
{
	struct mcp_task *k = LIST_ENTRY(t, struct mcp_task, t);

	if (k->q)
		return done_in_time(k);
	set_status(k, status_of(k));
}

static void progress(struct tool_call *t, double at, double total, const char *text)
{
	if (t->user)
		mcp_progress(t->user, at, total, text);
}

static void log_line(struct tool_call *t, const char *level, const char *logger, const char *json)
{
	if (t->user)
		mcp_log(t->user, level, logger, json);
}

static const struct tool_call_ops quiet = { .done = done, .log = log_line };
static const struct tool_call_ops telling = { .done = done, .progress = progress, .log = log_line };

/* ---- becoming a task ---- */

static int name(struct mcp_task *k)
{
	char one[ID_LEN + 1], two[ID_LEN + 1];

	if (k->t.execution_id[0] != '\0')
		return str_format(k->id, sizeof(k->id), "%s.%s", k->t.box_id, k->t.execution_id);
	id_make(one);
	id_make(two);
	return str_format(k->id, sizeof(k->id), "%s%s", one, two);
}

static void become(void *user)
{
	struct mcp_task *k = user;
	struct mcp_request *q = k->q;
	struct jw *w;

	if (name(k) < 0)
		return; /* cannot be: the ids are as long as they are */
	k->timer = loop_timer_free(k->timer);
	k->q = NULL;
	k->t.user = NULL;
	k->created_ms = k->updated_ms = clock_wall_ms();
	q->cancelled = NULL;
	q->work = NULL;
	w = mcp_result_begin(q);
	mcp_task_write(w, &(struct task_head){ k->id, k->status, k->created_ms, k->updated_ms });
	mcp_result_end_as(q, "task");
}

static void cancelled(struct mcp_request *q)
{
	struct mcp_task *k = q->work;

	k->timer = loop_timer_free(k->timer);
	if (!q->server->is_closing)
		return tools_cancel(&k->t);
	tools_leave(&k->t);
	(void)task_free(k);
	mcp_drop(q);
}

/* What the request says outlives it: its arguments, and answers of rounds before. */
static int copy_document(struct mcp_task *k, struct jv arguments, struct jv answers)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);
	int r;

	jw_object_begin(&w);
	if (jv_kind(arguments) == JV_OBJECT) {
		jw_key(&w, "arguments");
		jw_value(&w, arguments);
	}
	if (jv_kind(answers) == JV_OBJECT) {
		jw_key(&w, "answers");
		jw_value(&w, answers);
	}
	jw_object_end(&w);
	r = jw_end(&w);
	return r < 0 ? r : jv_parse(b.data, b.len, b.len, &k->doc, NULL);
}

static int fill(struct mcp_task *k, struct mcp_request *q, struct jv arguments)
{
	int r = copy_document(k, arguments, q->answers);

	mcp_tool_fill(q, &k->t);
	k->arena = arena_create(ARENA_MAX);
	if (r < 0 || !k->arena)
		return r < 0 ? r : -ENOMEM;
	k->t.arena = k->arena;
	k->t.home = q->home ? arena_strndup(k->arena, q->home, strlen(q->home)) : NULL;
	k->t.base = arena_strndup(k->arena, q->base ? q->base : "", strlen(q->base ? q->base : ""));
	k->t.state = arena_strndup(k->arena, q->state, strlen(q->state));
	k->t.answers = jv_get(jv_root(k->doc), "answers");
	k->t.ops = mcp_has_progress(q) ? &telling : &quiet;
	k->t.is_durable = true;
	if ((q->home && !k->t.home) || !k->t.base || !k->t.state)
		return -ENOMEM;
	return loop_timer_create(q->server->deps.loop, become, k, &k->timer);
}

void mcp_task_start(struct mcp_request *q, const struct tool *tool, struct jv arguments)
{
	struct mcp_task *k = calloc(1, sizeof(*k));

	if (!k)
		return mcp_fail(q, RPC_INTERNAL, "out of memory");
	list_push_back(&q->server->tasks, &k->node);
	k->server = q->server;
	k->q = q;
	k->tool = tool;
	if (fill(k, q, arguments) < 0) {
		(void)task_free(k);
		return mcp_fail(q, RPC_INTERNAL, "out of memory");
	}
	q->work = k;
	q->cancelled = cancelled;
	loop_timer_start(k->timer, tool->flags & TOOL_IN_BOX ? MCP_TASK_BOX_MS : MCP_TASK_SOON_MS,
			 0);
	tools_call(&k->t, tool, jv_get(jv_root(k->doc), "arguments"));
}

/* ---- what clients ask of it ---- */

void mcp_task_cancel(struct mcp_task *k)
{
	if (k->status == TASK_INPUT) { /* nothing runs */
		k->is_cancelled = true;
		return set_status(k, TASK_CANCELLED);
	}
	if (k->status != TASK_WORKING || k->is_cancelled)
		return;
	k->is_cancelled = true;
	tools_cancel(&k->t);
}

/* Whether it is asked for, now (again). */
static bool is_asked(struct mcp_task *k, struct str key)
{
	LIST_FOREACH (&k->t.asks, a, struct tool_ask, node)
		if (str_is(key, a->key))
			return true;
	return false;
}

/* Answers of before and those to what is asked now, which is then not asked any more. */
static int take_answers(struct mcp_task *k, struct jv answers)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);
	struct jv_doc *doc = NULL;
	int r;

	jw_object_begin(&w);
	JV_FOREACH (k->t.answers, it) {
		if (is_asked(k, it.key))
			continue;
		jw_key_n(&w, it.key.data, it.key.len);
		jw_value(&w, it.value);
	}
	LIST_FOREACH (&k->t.asks, a, struct tool_ask, node) {
		struct jv answer = jv_get(answers, a->key);

		if (jv_kind(answer) != JV_OBJECT)
			continue;
		jw_key(&w, a->key);
		jw_value(&w, answer);
		list_remove(&a->node);
	}
	jw_object_end(&w);
	r = jw_end(&w);
	if (r == 0)
		r = jv_parse(b.data, b.len, b.len, &doc, NULL);
	if (r < 0)
		return r;
	k->t.answers = jv_root(doc);
	(void)jv_free(k->answers_doc);
	k->answers_doc = doc;
	return 0;
}

int mcp_task_update(struct mcp_task *k, struct jv answers)
{
	int r;

	if (k->status != TASK_INPUT)
		return 0;
	r = take_answers(k, answers);
	if (r < 0 || !list_is_empty(&k->t.asks))
		return r;
	k->t.state = k->t.next_state ? k->t.next_state : "";
	tool_call_done(&k->t);
	set_status(k, TASK_WORKING);
	tools_call(&k->t, k->tool, jv_get(jv_root(k->doc), "arguments"));
	return 0;
}

/* ---- the end ---- */

void mcp_tasks_tick(struct mcp_server *s, uint64_t now_ms)
{
	int64_t wall = clock_wall_ms();

	LIST_FOREACH (&s->tasks, k, struct mcp_task, node)
		if (k->expires_ms > 0 && now_ms > k->expires_ms &&
		    wall > k->created_ms + (int64_t)MCP_TASK_TTL_MS)
			(void)task_free(k);
}

/* What runs goes on; its name is good for the next life, too. */
void mcp_tasks_end(struct mcp_server *s)
{
	LIST_FOREACH (&s->tasks, k, struct mcp_task, node) {
		if (k->status == TASK_WORKING)
			tools_leave(&k->t);
		(void)task_free(k);
	}
}
