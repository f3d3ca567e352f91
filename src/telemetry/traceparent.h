/* Where a request stands in a trace that spans programs: W3C Trace Context (level 2), the headers
 * `traceparent` and `tracestate`. No I/O, no memory of its own; what others sent is parsed here. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct str;

#define TRACE_ID_LEN 16
#define TRACE_SPAN_LEN 8
#define TRACEPARENT_LEN 55 /* "00-<32>-<16>-<2>" */
#define TRACEPARENT_SIZE (TRACEPARENT_LEN + 1)
#define TRACE_ID_SIZE (2 * TRACE_ID_LEN + 1) /* as hex, with its NUL */

enum trace_flag {
	TRACE_SAMPLED = 1 << 0, /* somebody writes it down */
	TRACE_RANDOM = 1 << 1,  /* the trace's id is random */
};

/* A span of a trace. Zeroed: of none. */
struct trace_context {
	uint8_t trace_id[TRACE_ID_LEN];
	uint8_t span_id[TRACE_SPAN_LEN]; /* zero: the trace begins below */
	uint8_t flags;                   /* enum trace_flag */
};

bool trace_is_set(const struct trace_context *t); /* NULL: it is not */

/* A header's value. Strict: lower case, no blanks, no zero ids, not version ff. A version above
 * ours is read as far as we know it, and may go on behind a dash. -EINVAL; *ret is then untouched.
 */
int traceparent_parse(struct str value, struct trace_context *ret);
void traceparent_format(const struct trace_context *t, char dst[TRACEPARENT_SIZE]);

/* The list of what other vendors keep with a trace, to be passed on. A repeated header is one list:
 * begin zeroed, add each, ask at the end. */
#define TRACESTATE_MAX 512u    /* bytes that are passed on; we need not do more */
#define TRACESTATE_MEMBERS 32u /* of more, none is passed on */
#define TRACESTATE_LONG 128u   /* members above are given up first */
#define TRACESTATE_INPUT 8192u /* bytes of headers that are looked at; of more, none */

struct tracestate {
	char text[TRACESTATE_MAX + 1];
	size_t len;
	size_t members, input;
	bool is_bad; /* a member is not well-formed: nothing of it is passed on */
	bool is_cut; /* some did not fit */
};

void tracestate_add(struct tracestate *s, struct str value);
const char *tracestate_text(const struct tracestate *s); /* "": there is nothing to pass on */
