/* An execution's output as an answer that goes on, whatever it looks like: what was kept, then what
 * comes. A client that does not read holds back the reading, and so, in the end, the process. A
 * client that leaves does not end the execution. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/call.h"
#include "base/cleanup.h"

struct exec_follow;
struct exec_info;
struct exec_reader;
struct execution;
struct output;
struct output_chunk;

struct exec_follow_ops {
	const char *kind; /* of the stream: for metrics */
	size_t piece;     /* bytes of one chunk at the most */
	/* The head, and what comes first. -EAGAIN, -ENOMEM: nothing was answered. */
	int (*begin)(struct exec_follow *f, const struct exec_info *info);
	/* -errno: memory ran out, or the client has gone; the answer is then cut off. */
	int (*chunk)(struct exec_follow *f, const struct output_chunk *chunk);
	int (*gap)(struct exec_follow *f, uint64_t omitted); /* what was not kept */
	int (*end)(struct exec_follow *f, const struct exec_info *info);
	void (*close)(struct exec_follow *f); /* ends the answer; f has let go of everything */
	void (*leave)(struct exec_follow *f); /* no answer any more; NULL: nothing to do */
};

struct exec_follow { /* in the request's arena, at the front of the caller's struct */
	struct call_stream base;
	struct api_call *call;
	const struct exec_follow_ops *ops;
	uint64_t at;         /* position of the first byte wanted, then of the next */
	bool cancel_on_gone; /* a client that leaves ends the execution */
	bool is_new;         /* nobody else knows of it: without a stream it must not go on */
	/* Its own: */
	struct execution *x;        /* held; NULL in a replay */
	struct exec_reader *reader; /* owned */
	struct output *replay;      /* owned */
	struct exec_info *past;     /* arena: of a replay */
};

/* The caller has filled in the fields above "its own". Each answers the call, whatever happens. One
 * that runs, or ended a moment ago: */
void exec_follow(struct exec_follow *f, struct execution *x);
/* One that has ended; info and output (may be NULL) are copied. */
void exec_follow_past(struct exec_follow *f, const struct exec_info *info,
		      const struct output *output);
