#include "sandbox/tracing.h"

#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "sandbox/build_impl.h"
#include "sandbox/context_impl.h"
#include "sandbox/execution.h"
#include "sandbox/registry.h"
#include "telemetry/trace.h"

/* ---- making a sandbox ---- */

void tracing_create(struct sandbox *sb, const struct trace_context *trace)
{
	sb->span = span_begin(sb->all->tracer, trace, SPAN_INTERNAL, "sandbox.create");
	span_set_start(sb->span, sb->began_ns);
	span_str(sb->span, "holt.sandbox.id", sb->id);
	span_str(sb->span, "holt.template", sb->template);
}

/* One behind the other: how long each took is known, and their order. */
static void put_steps(const struct sandbox *sb, const struct trace_context *claim, uint64_t end_ns)
{
	static const char *const names[STEP_COUNT] = {
		[STEP_STOCK] = "launch.stock",
		[STEP_CLONE] = "launch.clone",
		[STEP_READY] = "launch.ready",
		[STEP_LIMITS] = "launch.limits",
	};
	uint64_t at = sb->began_ns;

	for (int i = 0; i < STEP_COUNT; i++) {
		uint64_t left = end_ns - at, took = sb->step_ns[i] < left ? sb->step_ns[i] : left;
		struct span *s = NULL;

		if (took > 0)
			s = span_begin(sb->all->tracer, claim, SPAN_INTERNAL, names[i]);
		span_set_start(s, at);
		at += took;
		span_end_at(s, at);
	}
}

void tracing_claimed(struct sandbox *sb)
{
	const struct trace_context *create = span_context(sb->span);
	uint64_t end_ns = sb->began_ns + sb->claim_us * 1000;
	struct span *s;

	if (!sb->span)
		return;
	s = span_begin(sb->all->tracer, create, SPAN_INTERNAL, "sandbox.claim");
	span_set_start(s, sb->began_ns);
	span_bool(s, "holt.warm", sb->is_warm);
	if (s && !sb->is_warm) /* those of one that waited were long ago */
		put_steps(sb, span_context(s), end_ns);
	span_end_at(s, end_ns);
	s = span_begin(sb->all->tracer, create, SPAN_INTERNAL, "guest.connect");
	span_set_start(s, end_ns);
	span_end(s);
	sb->write_span = span_begin(sb->all->tracer, create, SPAN_INTERNAL, "store.write");
}

void tracing_created(struct sandbox *sb, const struct err *err)
{
	span_end(TAKE(sb->write_span));
	if (err)
		span_fail(sb->span, err->text);
	span_end(TAKE(sb->span));
}

/* ---- executions ---- */

void tracing_execution(struct execution *x, const struct sandbox *sb,
		       const struct trace_context *trace)
{
	x->span = span_begin(sb->all->tracer, trace, SPAN_INTERNAL, "execution");
	if (!x->span)
		return;
	x->began_ns = clock_now_ns();
	span_str(x->span, "holt.sandbox.id", sb->id);
	span_str(x->span, "holt.execution.id", x->id);
}

void tracing_execution_started(struct execution *x)
{
	struct span *s =
		span_begin(x->all->tracer, span_context(x->span), SPAN_INTERNAL, "execution.start");

	span_set_start(s, x->began_ns);
	span_bool(s, "holt.warm", (x->flags & EXECUTION_WARM) != 0);
	span_end(s);
}

void tracing_execution_written(struct execution *x, uint64_t began_ns)
{
	struct span *s =
		span_begin(x->all->tracer, span_context(x->span), SPAN_INTERNAL, "store.write");

	span_set_start(s, began_ns);
	span_end(s);
}

void tracing_execution_over(struct execution *x, const char *result)
{
	static const char *const kinds[EXECUTION_KIND_COUNT] = {
		[EXECUTION_COMMAND] = "command",
		[EXECUTION_CODE] = "code",
		[EXECUTION_PTY] = "pty",
		[EXECUTION_CONTEXT] = "context",
	};

	if (!x->span)
		return;
	span_str(x->span, "holt.execution.kind", kinds[x->kind]);
	span_str(x->span, "holt.execution.result", result);
	if (x->state == EXECUTION_EXITED && x->signal == 0)
		span_int(x->span, "process.exit.code", x->exit_code);
	if (x->signal != 0)
		span_int(x->span, "holt.execution.signal", x->signal);
	span_bool(x->span, "holt.execution.timed_out", (x->flags & EXECUTION_TIMED_OUT) != 0);
	/* A program that says no has not failed here. */
	if (x->state != EXECUTION_EXITED || x->flags & (EXECUTION_TIMED_OUT | EXECUTION_OOM_KILLED))
		span_fail(x->span, x->reason[0] ? x->reason : result);
	span_end(TAKE(x->span));
}

/* ---- runs of a context ---- */

void tracing_run(struct context_run *run, const struct trace_context *trace)
{
	const struct sandbox *sb = run->c->sb;

	run->span = span_begin(sb->all->tracer, trace, SPAN_INTERNAL, "context.run");
	span_str(run->span, "holt.sandbox.id", sb->id);
	span_str(run->span, "holt.context.id", run->c->id);
	span_str(run->span, "holt.run.id", run->id);
}

void tracing_run_over(struct context_run *run)
{
	enum context_status status = run->end.status;

	if (!run->span)
		return;
	span_str(run->span, "holt.run.status", context_status_name(status));
	if (run->began_ns > 0)
		span_int(run->span, "holt.run.us", (int64_t)run->end.wall_us);
	if (status == CONTEXT_LOST || status == CONTEXT_TIMED_OUT)
		span_fail(run->span, context_status_name(status));
	span_end(TAKE(run->span));
}

/* ---- builds ---- */

void tracing_build(struct build_job *j, const struct trace_context *trace)
{
	j->span = span_begin(j->all->tracer, trace, SPAN_INTERNAL, "template.build");
	span_str(j->span, "holt.build.id", j->id);
}

void tracing_build_step(struct build_job *j)
{
	j->step_span =
		span_begin(j->all->tracer, span_context(j->span), SPAN_INTERNAL, "build.step");
	span_int(j->step_span, "holt.build.step", (int64_t)j->b->at + 1);
	span_str(j->step_span, "holt.build.type", build_step_names[build_step_now(j)->type]);
}

void tracing_build_step_over(struct build_job *j)
{
	const struct build_step *s = build_step_now(j);

	span_bool(j->step_span, "holt.build.cached", s->is_cached);
	if (s->state == BUILD_STEP_FAILED)
		span_fail(j->step_span, strerror(j->err.code)); /* the text may quote it */
	span_end(TAKE(j->step_span));
}

void tracing_build_over(struct build_job *j)
{
	span_drop(TAKE(j->step_span)); /* of one that was canceled */
	span_str(j->span, "holt.build.status", build_status_names[j->result]);
	if (j->result == BUILD_FAILED)
		span_fail(j->span, NULL);
	span_end(TAKE(j->span));
}
