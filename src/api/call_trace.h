/* A request's place in a trace: what its caller says (traceparent, tracestate), or a trace that
 * begins here; and its span. Nothing of it is there while no collector is configured.
 *
 * A caller's wish to be sampled is granted to those who are let in: strangers do not fill the
 * queue. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "telemetry/traceparent.h"

struct api_call;

struct call_trace {
	struct trace_context parent; /* the caller's span, or none's */
	struct trace_context self;   /* the request's own; its trace is not set: no tracing */
	const char *state;           /* arena: tracestate to be passed on; "" */
	bool is_callers;             /* who calls has decided that it is sampled */
	bool is_known;               /* who calls has been let in */
	uint64_t start_ns, auth_ns;
};

/* Of every request, first; the answer will say where it stands. */
void call_trace_begin(struct api_call *c);
void call_trace_header(struct api_call *c); /* again, when the answer's headers were given up */
void call_trace_asked(struct api_call *c);  /* who it is is looked at now, */
void call_trace_known(struct api_call *c);  /* and is known */
void call_trace_end(const struct api_call *c, int status);
/* For what is done for it; NULL: no tracing. Good as long as the call. */
const struct trace_context *call_trace(const struct api_call *c);
/* As hex; "" without one. */
const char *call_trace_id(const struct api_call *c, char dst[TRACE_ID_SIZE]);
