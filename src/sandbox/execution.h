/* The inside of executions, shared by the files that make them run, end and be read. */
#pragma once

#include "base/buf.h"
#include "sandbox/exec.h"
#include "sandbox/pairs.h"
#include "sandbox/registry.h"

struct guest_callbacks;
struct guest_exit;
struct guest_live;

#define EXECUTION_SMALL (32u << 10) /* bytes of output that the box keeps for us until the end */
#define EXECUTION_READERS_MAX 64u
#define EXECUTION_WAITS_MAX 64u

struct execution {
	struct list node;      /* in sandbox.executions or sandboxes.strays */
	struct sandboxes *all; /* borrowed; NULL: gone */
	struct sandbox *sb;    /* borrowed; NULL: recorded, or its sandbox is gone */
	unsigned refs;
	char id[ID_LEN + 1], sandbox_id[ID_LEN + 1];
	char owner[SANDBOX_OWNER_MAX + 1];
	enum execution_kind kind;
	enum execution_state state;
	unsigned flags;   /* enum execution_flag */
	char *content;    /* owned */
	struct pairs env; /* of the request: not for the store, values are often secrets */
	char reason[SANDBOX_TEXT_MAX + 1];
	int32_t exit_code, signal;
	uint32_t guest_id, pid;
	int64_t started_ms, ended_ms;
	uint64_t wall_us, cpu_us, peak_bytes;
	struct span *span; /* NULL: in no trace. See tracing.h */
	uint64_t began_ns; /* with a span */

	bool is_found_again;    /* of an earlier life: a file may hold its output */
	bool is_bound;          /* the box's frames reach us */
	bool is_start_due;      /* if it lasts, it is written down before its end */
	bool is_cut;            /* they do not any more; whether the box is gone is not known yet */
	bool is_exiting;        /* it has ended, and we ask whether memory was why */
	bool is_checking;       /* the store is asked whether it has been recorded before */
	bool is_unkept;         /* its box was told to forget it, or never knew */
	bool is_held;           /* it has ended, and who waits for that waits for the store */
	bool is_without_output; /* it is too much for the store */
	bool is_counted;        /* in its sandbox's usage */
	struct list dirty;      /* in sandboxes.dirty_executions, or self-linked */

	/* Whoever asked for it waits for these two. */
	exec_cb cb; /* NULL: has been told */
	void *user;
	bool waits_for_start, waits_for_row;

	struct output *output; /* owned; NULL: none yet */
	size_t keep;
	uint64_t uncredited; /* bytes that the box may not yet forget */
	bool is_crediting;   /* they are more than the box is left to keep until the end */
	struct buf queue;    /* owned: chunks that the ring has no room for, because of a reader */
	size_t queue_at, queue_cut; /* the first of them, and how much of it has been taken */
	size_t queued[2];           /* bytes in it, of each stream */
	bool is_record_due;         /* it has ended, and is recorded when the queue is empty */
	struct list readers, waits; /* borrowed */
	size_t n_readers, n_waits;

	struct buf in; /* owned: not yet sent */
	bool is_in_open, is_in_ending;
	void (*room)(void *user);
	void *room_user;
};

struct exec_reader {
	struct list node;
	struct execution *x; /* owned reference */
	uint64_t at;
	void (*readable)(void *user);
	void *user;
	struct later soon; /* self-linked unless readable() is due in the next turn */
};

struct exec_wait {
	struct list node;
	struct execution *x; /* owned reference */
	void (*ended)(void *user, struct execution *x);
	void *user;
	struct later soon; /* self-linked unless ended() is due in the next turn */
};

/* ---- objects (execution.c) ---- */

/* One reference: that of the list it is in. NULL without memory. */
struct execution *execution_alloc(struct sandboxes *all, const char *id);
void execution_attach(struct execution *x, struct sandbox *sb); /* runs in it from now on */
/* Recorded or given up: leaves its sandbox. x may be gone afterwards. */
void execution_detach(struct execution *x);
void execution_drop_all(struct list *executions); /* the registry goes */
struct execution *execution_by_id(const struct sandbox *sb, const char *id);
/* It has ended, and those who wait may know. */
bool execution_is_over(const struct execution *x);
/* Tells waiting and reading callers. */
void execution_tell(struct execution *x);
void execution_tell_later(struct execution *x); /* readers, in the next turn */
void execution_tell_start(struct execution *x, const struct err *err);

/* ---- what the box says (execution_run.c) ---- */

extern const struct guest_callbacks execution_callbacks;

/* ---- output (execution_output.c) ---- */

void execution_on_output(void *user, int stream, uint64_t offset, const void *data, size_t n);
/* Readers have read on, or have gone: takes what waits for room. */
void execution_drain(struct execution *x);

/* ---- ends (execution_end.c) ---- */

void execution_exited(struct execution *x, const struct guest_exit *e);
void execution_finish(struct execution *x, enum execution_state state);
void execution_record(struct execution *x); /* its end, (again) */
int execution_record_start(struct execution *x);
void execution_record_lasting(struct execution *x); /* the same soon, and nobody waits for it */
bool executions_retry(struct sandboxes *all);
/* All that run in it end: its box is gone. */
void executions_interrupt(struct sandbox *sb, const char *reason);
void executions_unbind(struct sandbox *sb);
void executions_fail_cut(struct sandbox *sb);
void executions_feed(struct sandbox *sb); /* the box takes input (again): what waits is sent */

/* ---- recovery (execution_recover.c) ---- */

int executions_load(struct sandboxes *all, struct err *err);
void execution_load_output(struct execution *x); /* what a file has kept of it */
void execution_check(struct execution *x);       /* was it recorded before? (again) */
bool execution_found(struct sandbox *sb, const struct guest_live *live,
		     struct guest_callbacks *ret_cb, void **ret_user);
void executions_settle(struct sandbox *sb); /* the box has told of all that it knows */
void executions_clean_spool(struct sandboxes *all);

/* ---- rows (execution_row.c) ---- */

struct execution_row;
int execution_content(const struct exec_request *req, char **ret); /* JSON; -ENOMEM */
void execution_fill_row(const struct execution *x, struct execution_row *ret);
/* Whether its numbers are such as we write: names are looked up by them. Says so when not. */
bool execution_row_is_sound(const struct execution_row *row);
/* A damaged one reads as an execution that failed. */
void execution_read_row(const struct execution_row *row, struct exec_info *ret);
