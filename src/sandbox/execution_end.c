/* How executions end, and how that is written down. Those who wait are told at once; the store
 * comes behind, and only when it has the end may the box forget it. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "provider/guest_client.h"
#include "sandbox/announce.h"
#include "sandbox/ask.h"
#include "sandbox/execution.h"
#include "sandbox/tracing.h"

/* ---- ending ---- */

static const char *result_name(const struct execution *x)
{
	if (x->state == EXECUTION_FAILED)
		return "failed";
	if (x->state == EXECUTION_INTERRUPTED)
		return "interrupted";
	if (x->flags & EXECUTION_OOM_KILLED)
		return "oom_killed";
	if (x->flags & EXECUTION_TIMED_OUT)
		return "timed_out";
	if (x->flags & EXECUTION_CANCELLED)
		return "cancelled";
	return x->exit_code == 0 ? "ok" : "error";
}

static void count_end(struct execution *x)
{
	struct metrics *m = x->all->metrics;

	x->all->n_running--;
	metrics_inc(m, METRIC_EXECUTIONS, LABELS(result_name(x)));
	metrics_set(m, METRIC_EXECUTIONS_RUNNING, LABELS(), (double)x->all->n_running);
	if (x->state == EXECUTION_EXITED)
		metrics_observe(m, METRIC_EXECUTION_SECONDS, LABELS(), (double)x->wall_us / 1e6);
}

/* The store is behind. Who waits for the end of one before he begins the next is made to wait for
 * the store that way, and is not refused. */
static bool must_wait(const struct sandbox *sb, enum execution_state state)
{
	return state == EXECUTION_EXITED && sb->n_unrecorded > SANDBOX_UNRECORDED_MAX;
}

static void release(struct execution *x)
{
	if (!x->is_held)
		return;
	x->is_held = false;
	execution_tell(x);
}

void execution_finish(struct execution *x, enum execution_state state)
{
	struct sandbox *sb = x->sb;
	struct err err = { 0 };

	(void)exec_ref(x);
	execution_load_output(x);
	if (x->is_start_due)
		list_remove(&x->dirty);
	x->is_start_due = false;
	x->state = state;
	x->is_bound = x->is_exiting = x->is_in_open = x->waits_for_start = false;
	x->ended_ms = wall_ms(x->all);
	if (x->wall_us == 0 && x->ended_ms > x->started_ms)
		x->wall_us = (uint64_t)(x->ended_ms - x->started_ms) * 1000;
	x->room = NULL;
	buf_done(&x->in);
	count_end(x);
	tracing_execution_over(x, result_name(x));
	if (sb) {
		sb->n_running--;
		sb->n_unrecorded++;
		x->is_held = must_wait(sb, state);
		sandbox_touch(sb);
		reaper_note(sb);
	}
	if (state == EXECUTION_INTERRUPTED)
		(void)err_set(&err, EBUSY, "%s", x->reason);
	if (!x->waits_for_row || err.code)
		execution_tell_start(x, err.code ? &err : NULL);
	execution_tell(x);
	execution_record(x);
	announce_end(x, result_name(x));
	exec_unref(x);
}

static void drop(void *user)
{
	exec_unref(user);
}

static void on_usage(void *user, const struct provider_reply *r)
{
	struct execution *x = user;

	if (x->is_exiting && x->sb && r->code == 0) {
		if (r->usage.oom_kills > x->sb->oom_kills)
			x->flags |= EXECUTION_OOM_KILLED;
		x->sb->oom_kills = r->usage.oom_kills;
		usage_box(x->sb, &r->usage);
	}
	if (x->is_exiting)
		execution_finish(x, EXECUTION_EXITED);
	exec_unref(x);
}

static unsigned flags_of(uint32_t exit_flags)
{
	static const struct {
		uint32_t guest;
		unsigned ours;
	} table[] = {
		{ EXIT_TIMED_OUT, EXECUTION_TIMED_OUT },
		{ EXIT_TRUNCATED, EXECUTION_TRUNCATED },
		{ EXIT_CANCELLED, EXECUTION_CANCELLED },
		{ EXIT_LEFTOVERS, EXECUTION_LEFTOVERS },
	};
	unsigned flags = 0;

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (exit_flags & table[i].guest)
			flags |= table[i].ours;
	return flags;
}

/* Killed, and neither we nor a deadline did it: the kernel may have, for want of memory. 128 + 9
 * is how a shell says it of its child. */
static bool is_oom_suspect(const struct execution *x)
{
	return !(x->flags & (EXECUTION_TIMED_OUT | EXECUTION_CANCELLED)) &&
	       (x->signal == SIGKILL || x->exit_code == 128 + SIGKILL);
}

void execution_exited(struct execution *x, const struct guest_exit *e)
{
	bool is_signal = (e->flags & EXIT_SIGNALED) != 0;

	x->is_bound = false;
	x->flags |= flags_of(e->flags);
	x->exit_code = is_signal ? -1 : (int32_t)e->code;
	x->signal = is_signal ? (int32_t)e->code : 0;
	x->wall_us = e->wall_us;
	x->cpu_us = e->user_us + e->sys_us;
	x->peak_bytes = e->max_rss_bytes;
	if (!is_oom_suspect(x)) {
		execution_finish(x, EXECUTION_EXITED);
		return;
	}
	x->is_exiting = true;
	ask_provider(x->all,
		     &(struct ask){ .kind = ASK_USAGE,
				    .box_id = x->sb->box_id,
				    .is_impatient = true,
				    .drop = drop },
		     on_usage, exec_ref(x));
}

/* The first that runs; the others may have ended meanwhile by what users did. */
static struct execution *first_running(const struct sandbox *sb, bool is_cut)
{
	LIST_FOREACH (&sb->executions, x, struct execution, node)
		if (x->state == EXECUTION_RUNNING && (x->is_cut || !is_cut))
			return x;
	return NULL;
}

void executions_interrupt(struct sandbox *sb, const char *reason)
{
	struct execution *x;

	while ((x = first_running(sb, false))) {
		if (x->is_exiting) { /* how it ended is known, only why is not */
			execution_finish(x, EXECUTION_EXITED);
			continue;
		}
		(void)str_format(x->reason, sizeof(x->reason), "%.230s", reason);
		x->is_unkept = true;
		execution_finish(x, EXECUTION_INTERRUPTED);
	}
}

void executions_unbind(struct sandbox *sb)
{
	LIST_FOREACH (&sb->executions, x, struct execution, node) {
		x->is_bound = false;
		x->uncredited = 0;
	}
}

/* The connection stands, so it was the execution's own error that looked like its end. */
void executions_fail_cut(struct sandbox *sb)
{
	struct execution *x;

	while ((x = first_running(sb, true))) {
		x->is_unkept = true;
		execution_finish(x, EXECUTION_FAILED);
	}
}

/* ---- recording ---- */

struct end_write {
	struct flight flight;
	struct execution *x; /* owned reference */
	uint64_t began_ns;   /* of a beginning, for its trace */
};

/* The store has it, or never will: the box and the disk may forget it. */
static void recorded(struct execution *x)
{
	if (x->sb && x->sb->guest && !x->is_unkept) {
		(void)guest_ack(x->sb->guest, x->guest_id);
		link_kick(x->sb);
	}
	if (x->output && output_is_persistent(x->output))
		(void)unlinkat(x->all->settings.spool_fd, x->id, 0);
	release(x);
	execution_detach(x);
}

static void refused(struct execution *x, int r)
{
	metrics_inc(x->all->metrics, METRIC_STORE_ERRORS, LABELS("put_execution"));
	log_debug("sandbox", "%s: end not written: %s", x->id, strerror(-r));
	if (r == -ENOENT || r == -EINVAL) { /* its sandbox's row is gone: nobody can ask for it */
		recorded(x);
		return;
	}
	if (r == -E2BIG) {
		x->is_without_output = true;
		x->flags |= EXECUTION_TRUNCATED;
	}
	if (list_is_empty(&x->dirty))
		list_push_back(&x->all->dirty_executions, &x->dirty);
	tick_need(x->all);
	if (r == -EAGAIN)
		return; /* it is behind, no more */
	if (x->sb)
		x->sb->store_error = -r;
	release(x);
}

static void on_end_written(void *user, int r)
{
	_free_ struct end_write *w = user;

	if (!flight_end(&w->flight)) {
		exec_unref(w->x);
		return;
	}
	if (r == 0 && w->x->sb)
		w->x->sb->store_error = 0;
	if (r < 0)
		refused(w->x, r);
	else
		recorded(w->x);
	exec_unref(w->x);
}

static int put(struct execution *x, struct end_write *w)
{
	struct execution_row row;
	struct buf output = { .max = STORE_OUTPUT_MAX };
	struct usage_row used;
	int r = 0;

	execution_fill_row(x, &row);
	if (x->output && !x->is_without_output)
		r = output_save(x->output, &output);
	row.output = output.data;
	row.output_len = output.len;
	if (r == 0 && usage_execution(x, &used))
		r = store_end_execution(x->all->store, &row, &used, on_end_written, w);
	else if (r == 0)
		r = store_put_execution(x->all->store, &row, on_end_written, w);
	buf_done(&output);
	return r;
}

void execution_record(struct execution *x)
{
	struct end_write *w;
	int r;

	/* A reader has not read all of it yet; or we do not know whether it is recorded. */
	x->is_record_due = x->queue.len > 0 || x->is_checking;
	if (x->is_record_due || !x->all)
		return;
	w = calloc(1, sizeof(*w));
	r = w ? put(x, w) : -ENOMEM;
	if (r < 0) {
		free(w);
		refused(x, r);
		return;
	}
	w->x = exec_ref(x);
	flight_begin(x->all, &w->flight);
}

static int put_start(struct execution *x);

/* Without it, a process of ours that came behind would find it all the same, but not what it is.
 * Nobody waits for it: who is told late of a start has missed some of the output. */
static void record_lasting(struct execution *x)
{
	int r;

	x->is_start_due = false;
	r = put_start(x);
	if (r < 0)
		log_debug("sandbox", "%s: start not written: %s", x->id, strerror(-r));
}

bool executions_retry(struct sandboxes *all)
{
	struct list todo = LIST_INIT(todo);

	LIST_FOREACH (&all->dirty_executions, x, struct execution, dirty) {
		list_remove(&x->dirty);
		list_push_back(&todo, &x->dirty);
	}
	while (!list_is_empty(&todo)) {
		struct execution *x = LIST_ENTRY(todo.next, struct execution, dirty);

		list_remove(&x->dirty);
		if (x->is_start_due)
			record_lasting(x);
		else if (x->is_checking)
			execution_check(x);
		else
			execution_record(x);
	}
	return !list_is_empty(&all->dirty_executions);
}

/* ---- the beginning of one that is to be found again ---- */

static void on_start_written(void *user, int r)
{
	_free_ struct end_write *w = user;
	struct execution *x = w->x;
	struct err err = record_error(r);

	if (flight_end(&w->flight)) {
		bool is_awaited = x->waits_for_row;

		x->waits_for_row = false;
		tracing_execution_written(x, w->began_ns);
		if (is_awaited && r < 0) {
			/* Nobody will ask for what nobody can find. */
			(void)exec_cancel(x);
			execution_tell_start(x, &err);
		} else if (is_awaited && !x->waits_for_start) {
			execution_tell_start(x, NULL);
		}
	}
	exec_unref(x);
}

static int put_start(struct execution *x)
{
	struct end_write *w = calloc(1, sizeof(*w));
	struct execution_row row;
	int r;

	if (!w)
		return -ENOMEM;
	execution_fill_row(x, &row);
	r = store_put_execution(x->all->store, &row, on_start_written, w);
	if (r < 0) {
		free(w);
		return r;
	}
	w->x = exec_ref(x);
	w->began_ns = clock_now_ns();
	flight_begin(x->all, &w->flight);
	return 0;
}

int execution_record_start(struct execution *x)
{
	int r = put_start(x);

	x->waits_for_row = r == 0;
	return r;
}

/* Most end at once: a row at their end is enough. */
void execution_record_lasting(struct execution *x)
{
	x->is_start_due = true;
	list_push_back(&x->all->dirty_executions, &x->dirty);
	tick_need(x->all);
}
