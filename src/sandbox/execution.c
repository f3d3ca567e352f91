/* Executions as objects: references, readers, those who wait. */
#include "sandbox/execution.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "telemetry/trace.h"

struct execution *execution_alloc(struct sandboxes *all, const char *id)
{
	struct execution *x = calloc(1, sizeof(*x));

	if (!x)
		return NULL;
	x->all = all;
	x->refs = 1;
	x->exit_code = -1;
	x->keep = all->settings.output_keep;
	list_init(&x->node);
	list_init(&x->dirty);
	list_init(&x->readers);
	list_init(&x->waits);
	(void)str_copy(x->id, sizeof(x->id), id);
	return x;
}

void execution_attach(struct execution *x, struct sandbox *sb)
{
	x->sb = sb;
	memcpy(x->sandbox_id, sb->id, sizeof(x->sandbox_id));
	memcpy(x->owner, sb->owner, sizeof(x->owner));
	list_push_back(&sb->executions, &x->node);
	sb->n_running++;
	sb->all->n_running++;
	metrics_set(sb->all->metrics, METRIC_EXECUTIONS_RUNNING, LABELS(),
		    (double)sb->all->n_running);
}

struct execution *exec_ref(struct execution *x)
{
	x->refs++;
	return x;
}

void exec_unref(struct execution *x)
{
	if (!x || --x->refs > 0)
		return;
	list_remove(&x->node);
	list_remove(&x->dirty);
	(void)output_free(x->output);
	buf_done(&x->queue);
	buf_done(&x->in);
	span_drop(x->span);
	pairs_done(&x->env);
	free(x->content);
	free(x);
}

static void leave(struct execution *x)
{
	if (x->sb)
		x->sb->n_readers -= x->n_readers;
	x->sb = NULL;
	list_remove(&x->node);
	list_remove(&x->dirty);
}

void execution_detach(struct execution *x)
{
	struct sandbox *sb = x->sb;

	leave(x);
	if (sb) {
		sb->n_unrecorded--;
		sandbox_touch(sb);
		reaper_note(sb);
		stop_forget(sb);
	}
	exec_unref(x);
}

void execution_drop_all(struct list *executions)
{
	LIST_FOREACH (executions, x, struct execution, node) {
		leave(x);
		x->all = NULL;
		x->cb = NULL;
		exec_unref(x);
	}
}

struct execution *execution_by_id(const struct sandbox *sb, const char *id)
{
	LIST_FOREACH (&sb->executions, x, struct execution, node)
		if (strcmp(x->id, id) == 0)
			return x;
	return NULL;
}

struct execution *exec_find(struct sandbox *sb, const char *id)
{
	return execution_by_id(sb, id);
}

void exec_info(const struct execution *x, struct exec_info *ret)
{
	*ret = (struct exec_info){
		.id = x->id,
		.sandbox_id = x->sandbox_id,
		.reason = x->reason,
		.kind = x->kind,
		.state = x->state,
		.flags = x->flags,
		.content = x->content ? x->content : "null",
		.env = x->env.items,
		.n_env = x->env.len,
		.exit_code = x->exit_code,
		.signal = x->signal,
		.pid = x->pid,
		.started_ms = x->started_ms,
		.ended_ms = x->ended_ms,
		.wall_us = x->wall_us,
		.cpu_us = x->cpu_us,
		.peak_bytes = x->peak_bytes,
		.output_begin = x->output ? output_begin(x->output) : 0,
		.output_end = x->output ? output_end(x->output) : 0,
	};
}

struct execution *exec_search(struct sandbox *sb, bool (*is)(void *user, const struct exec_info *i),
			      void *user)
{
	struct execution *found = NULL;
	struct exec_info info;

	LIST_FOREACH (&sb->executions, x, struct execution, node) {
		exec_info(x, &info);
		if (is(user, &info)) /* in the order they were started */
			found = x;
	}
	return found;
}

const struct output *exec_output(const struct execution *x)
{
	return x->output;
}

/* ---- waiting for the end ---- */

bool execution_is_over(const struct execution *x)
{
	return x->state != EXECUTION_RUNNING && !x->is_held;
}

static void call_ended(struct exec_wait *w)
{
	struct execution *x = w->x;

	void (*ended)(void *user, struct execution *x) = w->ended;
	void *user = w->user;

	list_remove(&w->node);
	x->n_waits--;
	free(w);
	ended(user, x);
	exec_unref(x);
}

static void run_ended(struct later *l, bool is_over)
{
	struct exec_wait *w = LIST_ENTRY(l, struct exec_wait, soon);

	list_init(&w->soon.node);
	if (!is_over)
		call_ended(w);
}

struct exec_wait *exec_wait(struct execution *x, void (*ended)(void *user, struct execution *x),
			    void *user)
{
	struct exec_wait *w = x->n_waits < EXECUTION_WAITS_MAX ? calloc(1, sizeof(*w)) : NULL;

	if (!w)
		return NULL;
	w->x = exec_ref(x);
	w->ended = ended;
	w->user = user;
	list_init(&w->soon.node);
	list_push_back(&x->waits, &w->node);
	x->n_waits++;
	if (execution_is_over(x) && x->all)
		later_post(x->all, &w->soon, run_ended);
	return w;
}

void exec_unwait(struct exec_wait *w)
{
	if (!w)
		return;
	list_remove(&w->node);
	list_remove(&w->soon.node);
	w->x->n_waits--;
	exec_unref(w->x);
	free(w);
}

/* ---- reading ---- */

static void run_readable(struct later *l, bool is_over)
{
	struct exec_reader *r = LIST_ENTRY(l, struct exec_reader, soon);

	list_init(&r->soon.node);
	if (!is_over)
		r->readable(r->user);
}

void execution_tell_later(struct execution *x)
{
	if (!x->all)
		return;
	LIST_FOREACH (&x->readers, r, struct exec_reader, node)
		if (list_is_empty(&r->soon.node))
			later_post(x->all, &r->soon, run_readable);
}

struct exec_reader *exec_reader_open(struct execution *x, uint64_t from,
				     void (*readable)(void *user), void *user)
{
	struct exec_reader *r = x->n_readers < EXECUTION_READERS_MAX ? calloc(1, sizeof(*r)) : NULL;

	if (!r)
		return NULL;
	r->x = exec_ref(x);
	r->at = from;
	r->readable = readable;
	r->user = user;
	list_init(&r->soon.node);
	list_push_back(&x->readers, &r->node);
	x->n_readers++;
	if (x->sb)
		x->sb->n_readers++;
	if (x->all)
		later_post(x->all, &r->soon, run_readable);
	return r;
}

int exec_read(struct exec_reader *r, struct output_chunk *ret, uint64_t *ret_omitted)
{
	struct execution *x = r->x;

	*ret_omitted = 0;
	execution_drain(x); /* not behind the look at the ring: that gives a chunk of it away */
	if (!x->output || !output_read(x->output, r->at, ret, ret_omitted))
		return !execution_is_over(x) || x->queue.len > 0 ? 0 : -ENODATA;
	if (ret->len > EXEC_READ_MAX)
		ret->len = EXEC_READ_MAX;
	r->at = ret->seq + ret->len;
	return 1;
}

void exec_reader_close(struct exec_reader *r)
{
	struct execution *x;

	if (!r)
		return;
	x = r->x;
	list_remove(&r->node);
	list_remove(&r->soon.node);
	x->n_readers--;
	if (x->sb) {
		x->sb->n_readers--;
		sandbox_touch(x->sb);
		reaper_note(x->sb);
	}
	execution_drain(x); /* the slowest may have gone */
	exec_unref(x);
	free(r);
}

/* ---- telling ---- */

/* Everybody who is there now, at least once; whoever is told may close itself or others. They stay
 * in the list on the way: what the slowest has not read counts all the time. */
static void tell_readers(struct execution *x)
{
	for (size_t n = x->n_readers; n > 0 && !list_is_empty(&x->readers); n--) {
		struct exec_reader *r = LIST_ENTRY(x->readers.next, struct exec_reader, node);

		list_remove(&r->node);
		list_push_back(&x->readers, &r->node);
		r->readable(r->user);
	}
}

void execution_tell(struct execution *x)
{
	(void)exec_ref(x);
	tell_readers(x);
	while (execution_is_over(x) && !list_is_empty(&x->waits)) {
		struct exec_wait *w = LIST_ENTRY(x->waits.next, struct exec_wait, node);

		list_remove(&w->soon.node);
		call_ended(w);
	}
	exec_unref(x);
}

void execution_tell_start(struct execution *x, const struct err *err)
{
	exec_cb cb = x->cb;

	if (!cb)
		return;
	x->cb = NULL;
	cb(x->user, err ? NULL : x, err);
}
