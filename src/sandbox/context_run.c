/* Runs of a context: the line, what goes to the interpreter and what comes back, and the clock. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "sandbox/check.h"
#include "sandbox/context_impl.h"
#include "sandbox/context_say.h"
#include "sandbox/quota.h"
#include "sandbox/tracing.h"
#include "sandbox/usage.h"
#include "telemetry/trace.h"

#define SEND_PIECE (32u << 10)

/* ---- telling ---- */

static void tell(struct context_run *run, enum context_event_type type, const char *data, size_t n)
{
	struct context_event e = {
		.type = type, .data = data, .len = n, .count = run->c->count + 1
	};

	if (run->event)
		run->event(run->user, &e);
}

static void free_run(struct context_run *run)
{
	list_remove(&run->node);
	span_drop(run->span);
	free(run->code);
	free(run);
}

static enum context_status status_of(const struct context_run *run)
{
	if (run->is_timed_out)
		return CONTEXT_TIMED_OUT;
	if (run->is_error)
		return run->is_interrupted ? CONTEXT_INTERRUPTED : CONTEXT_RAISED;
	return CONTEXT_OK;
}

/* The last event; the run is gone afterwards. */
static void end_run(struct context_run *run, enum context_status status)
{
	struct context_event e = { .type = CONTEXT_END, .data = "", .end = &run->end };

	if (run->began_ns > 0) {
		usage_run(run->c->sb);
		e.count = run->end.count > 0 ? run->end.count : run->c->count + 1;
	}
	run->end.status = status;
	run->end.truncated = run->is_truncated;
	run->end.cwd = run->cwd;
	run->end.started_ms = run->started_ms;
	if (!run->end.reason)
		run->end.reason = "";
	if (run->began_ns > 0)
		run->end.wall_us = (clock_now_ns() - run->began_ns) / 1000;
	tracing_run_over(run);
	if (run->event)
		run->event(run->user, &e);
	free_run(run);
}

static void take_from_queue(struct context *c, struct context_run *run)
{
	list_remove(&run->node);
	c->n_queued--;
	c->queued_bytes -= run->len;
}

void context_lose_runs(struct context *c, const char *reason)
{
	struct context_run *run = TAKE(c->run);

	(void)context_ref(c);
	while (run || !list_is_empty(&c->queue)) {
		if (!run) {
			run = LIST_ENTRY(c->queue.next, struct context_run, node);
			take_from_queue(c, run);
		} else {
			c->runs++;
		}
		run->end.reason = reason;
		run->end.state_lost = true;
		end_run(TAKE(run), CONTEXT_LOST);
	}
	context_unref(c);
}

void context_drop_runs(struct context *c)
{
	if (c->run)
		free_run(TAKE(c->run));
	while (!list_is_empty(&c->queue)) {
		struct context_run *run = LIST_ENTRY(c->queue.next, struct context_run, node);

		take_from_queue(c, run);
		free_run(run);
	}
}

/* ---- to the interpreter ---- */

static void on_room(void *user)
{
	context_send(user);
}

void context_send(struct context *c)
{
	int r = 0;

	while (c->x && c->out.len > 0) {
		size_t n = c->out.len < SEND_PIECE ? c->out.len : SEND_PIECE;

		r = exec_stdin(c->x, c->out.data, n);
		if (r < 0)
			break;
		buf_drop(&c->out, n);
	}
	if (!c->x)
		return;
	exec_on_room(c->x, r == -EAGAIN ? on_room : NULL, c);
	if (r < 0 && r != -EAGAIN) /* paused, or its connection is being made anew */
		loop_timer_start(c->retry, CONTEXT_RETRY_MS, 0);
}

void context_retry(void *user)
{
	struct context *c = user;

	if (c->is_deleted || c->is_restarting)
		context_stop(c);
	else
		context_send(c);
}

/* "run TOKEN LENGTH MODE ENV\n", ENV bytes of environment (none: neither the word nor the space),
 * the code, NUL. LENGTH is of both. A request that an earlier process had begun and not ended is
 * cut off by the NUL and does not have its length: it is passed over. */
static int write_request(struct context *c, struct context_run *run, const char *token)
{
	const char *mode = c->language == CONTEXT_TYPESCRIPT ? "ts" : "-";

	buf_clear(&c->out);
	(void)buf_printf(&c->out, "run %s %zu %s", token, run->len, mode);
	if (run->env_len > 0)
		(void)buf_printf(&c->out, " %zu", run->env_len);
	(void)buf_putc(&c->out, '\n');
	(void)buf_append(&c->out, run->code, run->len);
	if (buf_putc(&c->out, '\0') < 0)
		return -ENOMEM;
	free(TAKE(run->code));
	return 0;
}

static void begin(struct context *c, struct context_run *run)
{
	char token[ID_LEN + 1];

	take_from_queue(c, run);
	c->run = run;
	context_set_state(c, CONTEXT_BUSY);
	id_make(token);
	context_frames_begin(&c->frames[0], token, CONTEXT_RESULTS_MAX);
	context_frames_begin(&c->frames[1], token, 1);
	run->started_ms = wall_ms(c->sb->all);
	run->began_ns = clock_now_ns();
	if (write_request(c, run, token) < 0) {
		/* Not from here, as users are not told from inside their call: it is over at once.
		 */
		run->end.reason = "out of memory";
		c->is_overdue = true;
		context_set_deadline(c, 1);
		return;
	}
	context_set_deadline(c, run->timeout_ms);
	context_send(c);
}

void context_next(struct context *c)
{
	if (c->state == CONTEXT_IDLE && !list_is_empty(&c->queue))
		begin(c, LIST_ENTRY(c->queue.next, struct context_run, node));
}

/* A NUL ends what may have been begun; the mark comes back when the interpreter is idle. */
void context_expect_mark(struct context *c)
{
	char token[ID_LEN + 1];

	id_make(token);
	c->is_unmarked = true;
	context_frames_begin(&c->frames[0], token, FRAME_BODY_MAX);
	context_frames_begin(&c->frames[1], "", 0);
	(void)buf_putc(&c->out, '\0'); /* fits */
	(void)buf_printf(&c->out, "mark %s", token);
	(void)buf_putc(&c->out, '\0');
	context_set_state(c, CONTEXT_BUSY);
	context_set_deadline(c, c->sb->all->settings.exec_timeout_ms);
	loop_timer_start(c->retry, 0, 0);
}

/* ---- from the interpreter ---- */

/* Which of the two streams is read; the sink's user. */
struct side {
	struct context *c;
	int stream;
};

static void on_bytes(void *user, const char *data, size_t n)
{
	struct side *side = user;
	struct context_run *run = side->c->run;
	size_t max = side->c->sb->all->settings.output_keep;

	if (!run)
		return; /* written between two runs: in the execution's output only */
	if (max == 0 || max > CONTEXT_OUTPUT_MAX)
		max = CONTEXT_OUTPUT_MAX;
	if (n > max - run->output_bytes) {
		n = max - run->output_bytes;
		run->is_truncated = true;
	}
	run->output_bytes += n;
	if (n > 0)
		tell(run, side->stream == 2 ? CONTEXT_STDERR : CONTEXT_STDOUT, data, n);
}

/* A value or an error, in JSON. */
static void take_value(struct context *c, enum frame_kind kind, const char *data, size_t n)
{
	static const char broken[] =
		"{\"name\":\"ContextError\",\"value\":\"the interpreter sent a result that cannot "
		"be read\",\"traceback\":\"\"}";
	struct context_run *run = c->run;
	enum context_event_type type = kind == FRAME_RESULT    ? CONTEXT_RESULT
				       : kind == FRAME_DISPLAY ? CONTEXT_DISPLAY
							       : CONTEXT_ERROR;

	if (!data) {
		run->is_truncated = true;
		run->is_error = run->is_error || kind == FRAME_ERROR;
		return;
	}
	run->result_bytes += n;
	c->frames[0].message_max = run->result_bytes < CONTEXT_RESULTS_MAX
					   ? CONTEXT_RESULTS_MAX - run->result_bytes
					   : 1;
	if (!context_say_is_sound(kind, data, n)) {
		type = CONTEXT_ERROR;
		data = broken;
		n = sizeof(broken) - 1;
	}
	run->is_error = run->is_error || type == CONTEXT_ERROR;
	tell(run, type, data, n);
}

static void finished(struct context *c)
{
	struct context_run *run = TAKE(c->run);

	(void)context_ref(c);
	context_set_deadline(c, 0);
	c->is_overdue = false;
	c->runs++;
	context_frames_begin(&c->frames[0], "", 0);
	context_frames_begin(&c->frames[1], "", 0);
	if (c->state == CONTEXT_BUSY)
		context_set_state(c, CONTEXT_IDLE);
	c->count = run->end.count;
	end_run(run, status_of(run));
	context_next(c);
	context_unref(c);
}

static void marked(struct context *c, const char *data, size_t n)
{
	struct context_end end = { 0 };
	char cwd[2];

	if (data) /* an idle interpreter knows how many runs it had */
		context_say_read_end(data, n, &end, cwd, sizeof(cwd));
	c->count = end.count;
	c->is_unmarked = false;
	context_set_deadline(c, 0);
	context_frames_begin(&c->frames[0], "", 0);
	if (c->is_waiting)
		return context_started(c);
	if (c->state == CONTEXT_BUSY)
		context_set_state(c, CONTEXT_IDLE);
	context_next(c);
}

static void on_message(void *user, enum frame_kind kind, const char *data, size_t n)
{
	struct side *side = user;
	struct context *c = side->c;
	struct context_run *run = c->run;

	if (kind == FRAME_MARK && c->is_unmarked && side->stream == 1) {
		marked(c, data, n);
	} else if (!run || (side->stream == 2 && kind != FRAME_END)) {
		return; /* nobody's */
	} else if (kind == FRAME_END) {
		if (side->stream == 1 && data)
			context_say_read_end(data, n, &run->end, run->cwd, sizeof(run->cwd));
		run->is_ended[side->stream == 2] = true;
		if (run->is_ended[0] && run->is_ended[1])
			finished(c);
	} else if (kind != FRAME_MARK) {
		take_value(c, kind, data, n);
	}
}

void context_pump(struct context *c)
{
	char copy[EXEC_READ_MAX]; /* whoever is told may do things that move the ring */
	struct output_chunk chunk;
	uint64_t omitted;

	(void)context_ref(c);
	while (c->reader && exec_read(c->reader, &chunk, &omitted) > 0) {
		struct side side = { c, chunk.stream };
		struct context_sink sink = { on_bytes, on_message, &side };

		memcpy(copy, chunk.data, chunk.len);
		context_frames_feed(&c->frames[chunk.stream == 2], copy, chunk.len, &sink);
	}
	context_unref(c);
}

/* ---- the clock ---- */

void context_set_deadline(struct context *c, uint64_t ms)
{
	c->left_ms = 0;
	c->due_ms = ms ? now_ms(c->sb->all) + ms : 0;
	if (ms)
		loop_timer_start(c->deadline, ms, 0);
	else
		loop_timer_stop(c->deadline);
}

void contexts_pause(struct sandbox *sb)
{
	uint64_t now = now_ms(sb->all);

	LIST_FOREACH (&sb->contexts, c, struct context, node) {
		uint64_t due = c->due_ms;

		context_set_deadline(c, 0);
		if (due > 0)
			c->left_ms = due > now ? due - now : 1;
	}
}

void contexts_resume(struct sandbox *sb)
{
	LIST_FOREACH (&sb->contexts, c, struct context, node)
		if (c->left_ms > 0)
			context_set_deadline(c, c->left_ms);
}

/* First it is asked to stop; one that does not is ended, and begins anew. */
void context_overdue(void *user)
{
	struct context *c = user;

	c->due_ms = 0;
	if (c->is_waiting) { /* its end is the end of the start */
		if (c->x)
			(void)exec_cancel(c->x);
		return;
	}
	if (c->run)
		c->run->is_timed_out = true;
	if (!c->is_overdue) {
		c->is_overdue = true;
		(void)context_interrupt(c);
		context_set_deadline(c, CONTEXT_GRACE_MS);
		return;
	}
	(void)context_ref(c);
	c->is_restarting = !c->is_env_lost;
	context_set_state(c, CONTEXT_STARTING);
	if (c->run) {
		struct context_run *run = TAKE(c->run);

		c->runs++;
		run->end.state_lost = true;
		end_run(run, CONTEXT_TIMED_OUT);
	}
	context_lose_runs(c, "the context was restarted: a run did not end in time");
	if (!c->is_deleted)
		context_stop(c);
	context_unref(c);
}

/* ---- what callers do ---- */

static int check(struct context *c, const struct context_code *code, struct err *err)
{
	const struct sandbox_settings *s = &c->sb->all->settings;
	int r = sandbox_check_usable(c->sb, err);

	if (r < 0)
		return r;
	if (c->state == CONTEXT_FAILED)
		return err_set(err, EBUSY, "the context has failed: %s", c->reason);
	if (code->len > CONTEXT_CODE_MAX)
		return err_set(err, E2BIG, "code: at most %u bytes", CONTEXT_CODE_MAX);
	if (memchr(code->code, '\0', code->len))
		return err_set(err, EINVAL, "code: has a NUL byte");
	if (s->exec_timeout_max_ms > 0 && code->timeout_ms > s->exec_timeout_max_ms)
		return err_set(err, EINVAL, "timeout: at most %" PRIu64 " s (exec_timeout_max)",
			       s->exec_timeout_max_ms / 1000);
	r = check_env(code->env, code->n_env, err);
	if (r < 0)
		return r;
	if (c->n_queued >= CONTEXT_QUEUE_MAX || c->queued_bytes + code->len > CONTEXT_WAITING_MAX)
		return err_set(err, EAGAIN, "%zu runs wait for this context, the limit",
			       c->n_queued);
	return 0;
}

/* The run's environment, and what it runs. */
static int take_code(struct context_run *run, const struct context_code *code)
{
	_cleanup_(buf_done) struct buf b = { 0 };

	if (context_env_write(code->env, code->n_env, &b) < 0)
		return -ENOMEM;
	run->env_len = b.len;
	(void)buf_append(&b, code->code, code->len);
	if (buf_putc(&b, '\0') < 0)
		return -ENOMEM;
	run->len = b.len - 1;
	run->code = buf_take(&b);
	return run->code ? 0 : -ENOMEM;
}

int context_run(struct context *c, const struct context_code *code, context_event_fn event,
		void *user, struct context_run **ret, struct err *err)
{
	struct context_run *run;
	int r = check(c, code, err);

	if (r == 0) /* counts as an execution does */
		r = quota_take(c->sb->all, c->sb->owner, QUOTA_EXECUTIONS, 1, err);
	if (r < 0)
		return r;
	run = calloc(1, sizeof(*run));
	if (!run || take_code(run, code) < 0) {
		free(run);
		quota_give(c->sb->all, c->sb->owner, QUOTA_EXECUTIONS, 1);
		return err_sys(err, ENOMEM, "run");
	}
	run->c = c;
	run->event = event;
	run->user = user;
	run->end.exit_code = -1;
	run->timeout_ms =
		code->timeout_ms ? code->timeout_ms : c->sb->all->settings.exec_timeout_ms;
	id_make(run->id);
	tracing_run(run, code->trace);
	list_push_back(&c->queue, &run->node);
	c->n_queued++;
	c->queued_bytes += run->len;
	sandbox_touch(c->sb);
	*ret = run;
	context_next(c);
	return 0;
}

const char *context_run_id(const struct context_run *run)
{
	return run->id;
}

void context_run_leave(struct context_run *run, bool cancel)
{
	struct context *c = run->c;

	run->event = NULL;
	if (!cancel)
		return;
	if (c->run == run) {
		(void)context_interrupt(c);
		return;
	}
	take_from_queue(c, run);
	free_run(run);
}
