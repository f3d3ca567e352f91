/* The spans of the service: what it does for a request, as parts of that request's trace. All of
 * these do nothing for what is in no trace. What is said of a span is what an operator needs to
 * find the thing: ids, kinds and numbers, never a command, a path, code, output or an owner. */
#pragma once

#include <stdint.h>

struct build_job;
struct context_run;
struct err;
struct execution;
struct sandbox;
struct trace_context;

/* sandbox.create, and in it: sandbox.claim with the launcher's steps (of a box that did not wait),
 * guest.connect, store.write. */
void tracing_create(struct sandbox *sb, const struct trace_context *trace);
void tracing_claimed(struct sandbox *sb); /* and it is connected to */
void tracing_created(struct sandbox *sb, const struct err *err);

/* execution: from the request to its end. */
void tracing_execution(struct execution *x, const struct sandbox *sb,
		       const struct trace_context *trace);
void tracing_execution_started(struct execution *x);
void tracing_execution_written(struct execution *x, uint64_t began_ns);
void tracing_execution_over(struct execution *x, const char *result);

/* context.run: from the request on, so with the time in the line. */
void tracing_run(struct context_run *run, const struct trace_context *trace);
void tracing_run_over(struct context_run *run);

/* template.build, from the request on, and in it a build.step for each; of one that needs a box,
 * that box's sandbox.create. A step's command is not told of the trace: what it makes must not
 * depend on who asked. */
void tracing_build(struct build_job *j, const struct trace_context *trace);
void tracing_build_step(struct build_job *j);
void tracing_build_step_over(struct build_job *j);
void tracing_build_over(struct build_job *j);
