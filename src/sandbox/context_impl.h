/* The inside of contexts, shared by the files that make them, let them run and find them again. */
#pragma once

#include "base/list.h"
#include "sandbox/context.h"
#include "sandbox/context_frames.h"
#include "sandbox/exec.h"
#include "sandbox/registry.h"

#define CONTEXT_KEEP (256u << 10) /* bytes of raw output that its execution keeps */
#define CONTEXT_RETRY_MS 1000u    /* between two tries to reach an interpreter */
#define CONTEXT_CWD_MAX 4095u
/* Bytes of one run's environment, as it is sent: each may be two, and each pair has two more. */
#define CONTEXT_ENV_MAX (2 * ENV_BYTES_MAX + 2 * SANDBOX_ENV_MAX)

struct context_run {
	struct list node; /* in context.queue, or self-linked: under way */
	struct context *c;
	char id[ID_LEN + 1];
	context_event_fn event; /* NULL: nobody listens */
	void *user;
	uint64_t timeout_ms;
	bool is_ended[2]; /* each stream has told its end */
	bool is_error, is_interrupted, is_timed_out, is_truncated;
	size_t output_bytes, result_bytes;
	int64_t started_ms;
	uint64_t began_ns;
	struct span *span; /* NULL: in no trace */
	struct context_end end;
	char cwd[CONTEXT_CWD_MAX + 1];
	size_t len, env_len; /* of code; of the environment, which comes first in it */
	char *code;          /* owned; NULL once it is on its way */
};

struct context {
	struct list node;   /* in sandbox.contexts */
	struct sandbox *sb; /* borrowed: it outlives us */
	unsigned refs;      /* the list's, and of those who call out */
	char id[ID_LEN + 1], execution_id[ID_LEN + 1];
	char name[CONTEXT_NAME_MAX + 1], cwd[CONTEXT_CWD_MAX + 1];
	char reason[SANDBOX_TEXT_MAX + 1];
	enum context_language language;
	enum context_state state;
	struct pairs env; /* owned; without it when is_env_lost */
	int64_t created_ms;
	uint64_t runs;
	uint64_t count; /* of runs that this interpreter has begun and ended */

	bool is_new;        /* nobody has been told that it is there */
	bool is_waiting;    /* for its interpreter to say that it is ready */
	bool is_env_lost;   /* an earlier process knew it, and the store does not */
	bool is_env_kept;   /* in the store */
	bool is_deleted;    /* goes as soon as its interpreter has */
	bool is_starting;   /* exec_start() has not called back */
	bool is_restarting; /* another interpreter follows when this one has ended */
	bool is_unmarked;   /* found again: what an earlier process ran may still be under way */
	bool is_overdue;    /* was interrupted because of its time */
	bool is_quiet;      /* counted in sandbox.n_quiet */

	struct execution *x;        /* held; NULL: none */
	struct exec_reader *reader; /* owned */
	struct exec_wait *wait;     /* owned */
	struct context_frames frames[2];
	struct buf out; /* owned: requests that the interpreter has not taken */

	struct list queue; /* owned struct context_run */
	size_t n_queued, queued_bytes;
	struct context_run *run;             /* owned: under way */
	struct loop_timer *deadline, *retry; /* owned */
	uint64_t due_ms, left_ms; /* of the deadline; left while the sandbox is paused; 0: none */

	context_cb cb; /* whoever waits for the start; NULL: nobody */
	void *user;
};

/* ---- context.c ---- */

struct context *context_alloc(struct sandbox *sb);
struct context *context_ref(struct context *c);
void context_unref(struct context *c);
void context_set_state(struct context *c, enum context_state s);
/* Its interpreter is ready, where that takes a while. */
void context_started(struct context *c);
/* It has an execution: follows it. -ENOMEM. */
int context_follow(struct context *c, struct execution *x);
/* Ends the interpreter, and begins anew or goes, as is_restarting and is_deleted say. */
void context_stop(struct context *c);

/* ---- context_run.c ---- */

void context_pump(struct context *c); /* what the interpreter has said */
void context_send(struct context *c); /* what waits for it */
void context_next(struct context *c); /* the next of the line, when it is idle */
void context_expect_mark(struct context *c);
void context_set_deadline(struct context *c, uint64_t ms); /* 0: none */
/* All runs end: the interpreter has. */
void context_lose_runs(struct context *c, const char *reason);
void context_drop_runs(struct context *c); /* without a word */
void context_overdue(void *user);
void context_retry(void *user);

/* ---- context_env.c ---- */

int context_env_keep(struct context *c); /* before its execution is started; the store's errors */
void context_env_forget(struct context *c); /* it goes */
/* One run's own, as a driver reads it: NAME=value and a newline each; in values a backslash is two,
 * and a newline is \n. -ENOMEM. */
int context_env_write(const struct sandbox_pair *env, size_t n, struct buf *b);

/* ---- context_driver.c ---- */

/* What runs the driver of a language. */
void context_driver(enum context_language l, struct exec_request *req);
/* What a template must have for it, and may not; NULL: what every one has. Such an interpreter
 * takes a while: the context is there when it has said so. */
const char *context_program(enum context_language l);
/* The content of its execution's row: what is needed to find it again. JSON, owned; -ENOMEM. */
int context_content(const struct context *c, char **ret);
/* And back; -EINVAL for what is none. */
int context_read_content(struct context *c, const char *content);
