/* An execution's output as server-sent events: start, output..., gap..., end. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "api/execution_json.h"

struct api_call;
struct exec_info;
struct execution;
struct output;

struct exec_stream_options {
	uint64_t from; /* position of the first byte wanted */
	enum encoding encoding;
	bool cancel_on_gone; /* a client that leaves ends the execution */
	bool is_new;         /* nobody else knows of it: without a stream it must not go on */
};

/* Answers the call, whatever happens. One that runs, or ended a moment ago: */
void exec_stream_follow(struct api_call *c, struct execution *x,
			const struct exec_stream_options *o);
/* One that has ended; info and output (may be NULL) are copied. */
void exec_stream_replay(struct api_call *c, const struct exec_info *info,
			const struct output *output, const struct exec_stream_options *o);

/* ?encoding= */
bool exec_stream_encoding(struct api_call *c, enum encoding *ret);
