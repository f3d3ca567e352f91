/* Traces: what a request made us do, and how long each part took, as spans for a collector. This is
 * their records and their form in OTLP's JSON; who sends them is outbound/otlp.h. No I/O. For the
 * loop's thread only.
 *
 * A span is made only when its trace is sampled; otherwise it is NULL, and every function here
 * takes that: with tracing off, all of it is a test for NULL. What has ended waits in a queue of
 * bounded length, in which the oldest give way. Those and what no memory was found for are counted.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "telemetry/traceparent.h"

struct buf;
struct metrics;
struct tracer; /* opaque */
struct span;   /* opaque */

#define TRACE_SPANS_MAX 4096u /* that have ended and wait; and, apart from these, that are open */
#define SPAN_ATTRS_MAX 12u    /* of one; more are left out */
#define SPAN_TEXT_MAX 384u    /* bytes of all its texts; what does not fit is cut */

enum span_kind { SPAN_INTERNAL = 1, SPAN_SERVER = 2, SPAN_CLIENT = 3 }; /* OTLP's numbers */

struct tracer_options {
	const char *service; /* borrowed, as the next */
	const char *version;
	double sample;           /* share of the traces that begin here: 0 to 1 */
	struct metrics *metrics; /* borrowed; may be NULL */
	/* So many spans wait to be taken: called once, until tracer_take(). May be NULL. */
	size_t batch;
	void (*full)(void *user);
	void *user;
};

struct tracer *tracer_create(const struct tracer_options *o); /* NULL without memory */
struct tracer *tracer_free(struct tracer *t); /* takes NULL; open spans must not be touched again */
CLEANUP_FUNC(struct tracer *, tracer_free)

/* A trace that begins here, sampled or not: without a span. */
void trace_begin(struct tracer *t, struct trace_context *ret);
/* A place below that of the parent, in the same trace. */
void trace_below(struct tracer *t, const struct trace_context *parent, struct trace_context *ret);

/* NULL when t or parent are, or the trace is not sampled. Begins now; the name is copied. */
struct span *span_begin(struct tracer *t, const struct trace_context *parent, enum span_kind kind,
			const char *name);
/* For what is below it; NULL for NULL. Good until the span ends. */
const struct trace_context *span_context(const struct span *s);
/* It is the span that others have been told of. */
void span_set_context(struct span *s, const struct trace_context *self);
void span_set_start(struct span *s, uint64_t start_ns);            /* as of clock_now_ns() */
void span_str(struct span *s, const char *key, const char *value); /* NULL, "": left out */
void span_int(struct span *s, const char *key, int64_t value);
void span_bool(struct span *s, const char *key, bool value);
void span_fail(struct span *s, const char *why); /* its status is an error; why may be NULL */
/* The span is over and not to be touched again. */
void span_end(struct span *s);
void span_end_at(struct span *s, uint64_t end_ns);
void span_drop(struct span *s); /* the same, and nobody is told of it */

/* ---- for who sends them ---- */

size_t tracer_waiting(const struct tracer *t);
/* Up to max spans, the oldest first, as the body of an export request; they are forgotten here. 0
 * with the number in *ret_n, -ENOMEM, -E2BIG. */
int tracer_take(struct tracer *t, size_t max, struct buf *b, size_t *ret_n);
/* What became of them: for the metrics. */
enum trace_fate {
	TRACE_SENT,
	TRACE_DROPPED, /* no room */
	TRACE_REFUSED, /* by the collector */
	TRACE_UNSENT,  /* the collector did not answer */
};
void tracer_count(struct tracer *t, enum trace_fate fate, size_t n);
