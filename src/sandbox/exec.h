/* Executions: a command, code or a terminal in a sandbox. An execution belongs to its sandbox, not
 * to the request that began it; its output is kept in a bounded ring that any number of readers
 * follow from any position still kept. An open reader loses nothing: what it has not read is not
 * given up, and the process waits instead. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/id.h"
#include "sandbox/output.h"
#include "sandbox/sandbox.h"

struct execution;   /* opaque */
struct exec_reader; /* opaque */

enum execution_kind {
	EXECUTION_COMMAND,
	EXECUTION_CODE,
	EXECUTION_PTY,
	EXECUTION_CONTEXT, /* a driver of ours: see context.h */
	EXECUTION_KIND_COUNT
};
enum execution_state {
	EXECUTION_RUNNING,
	EXECUTION_EXITED,      /* by itself, by a signal, a deadline or a cancel: see flags */
	EXECUTION_FAILED,      /* could not be started: reason */
	EXECUTION_INTERRUPTED, /* its box is gone, and nobody knows how it would have ended */
	EXECUTION_STATE_COUNT
};
enum execution_flag {
	EXECUTION_TIMED_OUT = 1 << 0,
	EXECUTION_TRUNCATED = 1 << 1, /* some of the output was not kept */
	EXECUTION_OOM_KILLED = 1 << 2,
	EXECUTION_CANCELLED = 1 << 3,
	EXECUTION_LEFTOVERS = 1 << 4, /* processes that it started still live */
	EXECUTION_WARM = 1 << 5,      /* a waiting interpreter took it */
	EXECUTION_BACKGROUND = 1 << 6,
};

struct exec_request { /* borrowed for the call */
	enum execution_kind kind;
	const char *language; /* of code: "python", "javascript", "bash" */
	const char *code;
	const char *command;     /* run by a shell; or: */
	const char *const *argv; /* a program and its arguments */
	size_t argc;
	const char *cwd, *user;         /* "": the defaults */
	const struct sandbox_pair *env; /* on top of the sandbox's */
	size_t n_env;
	uint64_t timeout_ms; /* 0: the default; a terminal and a background execution: none */
	bool has_stdin;      /* stays open until exec_stdin() ends it */
	bool background;     /* is recorded before the answer */
	bool is_start;       /* of prepare.h: nobody else can use the sandbox yet */
	bool is_unbounded;   /* no timeout is none at all, and any is taken, as with a terminal */
	bool is_whole;       /* ends when nobody can write to its pipes any more */
	const char *tag;     /* a name for those who look for it; NULL: none */
	uint16_t rows, cols; /* of a terminal */
	size_t keep;         /* bytes of output; 0: the default */
	const char *content; /* of a context: what is recorded, as JSON; NULL: the request */
	const struct trace_context *trace; /* what it is a part of; NULL: nothing */
};

/* err is NULL on success: it is running (or has failed to start: look at its state). x is borrowed:
 * valid until the end of the call, and as long as exec_ref() holds it. */
typedef void (*exec_cb)(void *user, struct execution *x, const struct err *err);

/* EINVAL, EBUSY (paused, ending), EUSERS (the owner's quota), EAGAIN (too many at once, or too many
 * that the store could not take). */
void exec_start(struct sandbox *sb, const struct exec_request *req, exec_cb cb, void *user);
struct execution *exec_ref(struct execution *x);
void exec_unref(struct execution *x);

struct exec_info { /* borrowed */
	const char *id, *sandbox_id, *reason;
	enum execution_kind kind;
	enum execution_state state;
	unsigned flags;                 /* enum execution_flag */
	const char *content;            /* what was asked for, as JSON text */
	const struct sandbox_pair *env; /* of the request, while it is in memory; else none */
	size_t n_env;
	int32_t exit_code; /* -1 while running, or when ended by a signal */
	int32_t signal;    /* 0: none */
	uint32_t pid;      /* in the box */
	int64_t started_ms, ended_ms;
	uint64_t wall_us, cpu_us, peak_bytes;
	uint64_t output_begin, output_end; /* positions: what is kept, and all there was */
};
void exec_info(const struct execution *x, struct exec_info *ret);
/* "running", "completed", "failed", "interrupted", "timeout", "cancelled". */
const char *exec_status(const struct exec_info *info);
/* Its output as far as kept; borrowed. NULL: none yet. */
const struct output *exec_output(const struct execution *x);

/* Running or not yet recorded: from memory. */
struct execution *exec_find(struct sandbox *sb, const char *id); /* NULL */
/* The newest of those for which is() says so; NULL. */
struct execution *exec_search(struct sandbox *sb, bool (*is)(void *user, const struct exec_info *i),
			      void *user);
/* Any, also of an ended sandbox; the output comes along (NULL: none was kept). ENOENT. */
void exec_get(struct sandboxes *all, const char *sandbox_id, const char *owner, const char *id,
	      void (*cb)(void *user, const struct exec_info *info, const struct output *output,
			 const struct err *err),
	      void *user);
/* Newest first. */
void exec_list(struct sandboxes *all, const char *sandbox_id, const char *owner, int64_t before_ms,
	       const char *before_id, size_t limit,
	       void (*cb)(void *user, const struct exec_info *infos, size_t n, bool more,
			  const struct err *err),
	       void *user);

/* Calls once when it has ended (at the next turn if it has already). The handle is for
 * exec_unwait(), before that call only. */
struct exec_wait;
struct exec_wait *exec_wait(struct execution *x, void (*ended)(void *user, struct execution *x),
			    void *user); /* NULL without memory */
void exec_unwait(struct exec_wait *w);

/* Follows the output. readable() says that exec_read() may have something, or that it has ended. */
struct exec_reader *exec_reader_open(struct execution *x, uint64_t from,
				     void (*readable)(void *user), void *user);
#define EXEC_READ_MAX (64u << 10) /* bytes of one chunk: what a door can send in one piece */
/* 1: a chunk (borrowed until the next call into this module), 0: nothing now, -ENODATA: that was
 * all and it has ended. *ret_omitted: bytes that were given up before this chunk. */
int exec_read(struct exec_reader *r, struct output_chunk *ret, uint64_t *ret_omitted);
void exec_reader_close(struct exec_reader *r); /* takes NULL */

/* Bytes for its standard input; all or nothing: -EAGAIN while too much waits to be taken (the
 * `room` callback of exec_on_room() says when to try again), -E2BIG above EXEC_STDIN_MAX at once,
 * -EPIPE when it has none (any more). All of these: -EBUSY while the sandbox is paused, -ESRCH when
 * it has ended. */
#define EXEC_STDIN_MAX (256u << 10)
int exec_stdin(struct execution *x, const void *data, size_t n);
int exec_stdin_end(struct execution *x);
/* All of what was taken is in its box, where it outlives this process; else `room` is called when
 * that may have changed. */
bool exec_stdin_is_sent(const struct execution *x);
void exec_on_room(struct execution *x, void (*room)(void *user), void *user); /* one at a time */
int exec_signal(struct execution *x, int signo, bool tree);
int exec_resize(struct execution *x, uint16_t rows, uint16_t cols); /* -ENOTTY */
int exec_cancel(struct execution *x); /* TERM, a grace, KILL of the whole tree; it ends by that */
