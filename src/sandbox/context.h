/* Contexts: interpreters that keep their state from one run to the next, like a notebook's. A
 * context is a long-lived execution of our own driver in the sandbox; it outlives this process as
 * any execution does. Runs of one context queue up and go one at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "sandbox/sandbox.h"

struct context;     /* opaque */
struct context_run; /* opaque */

#define CONTEXTS_MAX 16u               /* in one sandbox */
#define CONTEXT_NAME_MAX 63u           /* bytes */
#define CONTEXT_QUEUE_MAX 32u          /* runs that wait for one context */
#define CONTEXT_CODE_MAX 1048576u      /* bytes of one run's code */
#define CONTEXT_WAITING_MAX (4u << 20) /* bytes of code that wait for one context */
#define CONTEXT_OUTPUT_MAX (2u << 20)  /* bytes of output told of one run; less by settings */
#define CONTEXT_RESULTS_MAX (8u << 20) /* bytes of results of one run, all together */
#define CONTEXT_GRACE_MS 2000u         /* from the interrupt of what is too slow to the restart */

enum context_language {
	CONTEXT_PYTHON,
	CONTEXT_JAVASCRIPT,
	CONTEXT_TYPESCRIPT,
	CONTEXT_BASH,
	CONTEXT_R,
	CONTEXT_JAVA,
	CONTEXT_LANGUAGE_COUNT
};
const char *context_language_name(enum context_language l);
/* Also aliases such as "py", "ts", "sh", in any case. -EINVAL. */
int context_language_from(const char *name, enum context_language *ret);

enum context_state {
	CONTEXT_STARTING, /* the interpreter is on its way (also: again) */
	CONTEXT_IDLE,
	CONTEXT_BUSY,
	CONTEXT_FAILED, /* the interpreter has ended: reason; a restart makes another */
	CONTEXT_STATE_COUNT
};
const char *context_state_name(enum context_state s);

struct context_request { /* borrowed for the call */
	enum context_language language;
	const char *name; /* "": none; unique in the sandbox */
	const char *cwd;  /* "": the workspace */
	const struct sandbox_pair *env;
	size_t n_env;
};

struct context_info { /* borrowed */
	const char *id, *sandbox_id, *execution_id, *name, *cwd, *reason;
	enum context_language language;
	enum context_state state;
	int64_t created_ms;
	uint64_t runs; /* that have ended, as far as this process knows */
	size_t queued; /* that wait behind the running one */
};

/* err is NULL on success. c is borrowed for the call. */
typedef void (*context_cb)(void *user, struct context *c, const struct err *err);

/* EINVAL, EEXIST (name), EAGAIN (CONTEXTS_MAX), and as exec_start(). */
void context_create(struct sandbox *sb, const struct context_request *req, context_cb cb,
		    void *user);
/* By id or name; NULL. Borrowed for this turn of the loop. */
struct context *context_find(struct sandbox *sb, const char *id_or_name);
/* Oldest first; at most CONTEXTS_MAX. Returns how many. */
size_t context_list(struct sandbox *sb, struct context_info *infos);
void context_info(const struct context *c, struct context_info *ret);
/* Ends its interpreter and all that runs in it; runs that wait fail. */
void context_delete(struct context *c);
/* The same, and begins anew: the state is lost. Answers when the new one has started. EBUSY. */
void context_restart(struct context *c, context_cb cb, void *user);
/* Interrupts the run that is under way and keeps the state; nothing happens when there is none.
 * Errors of exec_signal(). */
int context_interrupt(struct context *c);

/* ---- running ---- */

enum context_event_type {
	CONTEXT_STDOUT,  /* bytes */
	CONTEXT_STDERR,  /* bytes */
	CONTEXT_RESULT,  /* JSON: the value of the last expression */
	CONTEXT_DISPLAY, /* JSON: something shown on the way */
	CONTEXT_ERROR,   /* JSON: {"name","value","traceback"} */
	CONTEXT_END,     /* exactly once, the last */
};

enum context_status {
	CONTEXT_OK,
	CONTEXT_RAISED,      /* an error was told */
	CONTEXT_INTERRUPTED, /* somebody did */
	CONTEXT_TIMED_OUT,
	CONTEXT_LOST, /* the interpreter ended, or was ended, on the way */
	CONTEXT_STATUS_COUNT
};
const char *context_status_name(enum context_status s);

struct context_end {
	enum context_status status;
	bool truncated;     /* output or results passed a limit */
	bool state_lost;    /* the interpreter began anew because of it, or is gone */
	const char *reason; /* of CONTEXT_LOST; "" */
	uint64_t count;     /* of runs in this interpreter, this one included; 0: not known */
	int64_t exit_code;  /* of a shell's command; -1: not known */
	const char *cwd;    /* behind a shell's command; "": not known */
	int64_t started_ms;
	uint64_t wall_us;
};

struct context_event { /* borrowed for the call */
	enum context_event_type type;
	const char *data; /* NUL-terminated where it is JSON */
	size_t len;
	uint64_t count; /* which run of its interpreter this is, from 1; 0: it never began */
	const struct context_end *end;
};
typedef void (*context_event_fn)(void *user, const struct context_event *e);

struct context_code { /* borrowed for the call */
	const char *code;
	size_t len;
	const struct sandbox_pair *env; /* of this run alone, over what there is */
	size_t n_env;
	uint64_t timeout_ms;               /* 0: the default */
	const struct trace_context *trace; /* what it is a part of; NULL: nothing */
};
/* 0, and events from the next turn on; -EINVAL, -E2BIG, -EBUSY (failed, paused), -EAGAIN (the line
 * is full), -ENOMEM with a text in err. *ret is for the two below, until CONTEXT_END has been told.
 */
int context_run(struct context *c, const struct context_code *code, context_event_fn event,
		void *user, struct context_run **ret, struct err *err);
const char *context_run_id(const struct context_run *run);
/* No events come any more; the run goes on, or with `cancel` is interrupted or taken from the line.
 */
void context_run_leave(struct context_run *run, bool cancel);
