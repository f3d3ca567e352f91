/* One execution: its process, its streams, how far its end has come. Private to exec.c (its
 * output), feed.c (its input), start.c (from request to process) and stop.c (signals, deadlines,
 * the end of the tree). */
#pragma once

#include "guest/guest.h"

enum exec_phase {
	EXEC_RUNS, /* nobody has asked for its end */
	EXEC_TERM, /* SIGTERM is out; the deadline is the end of the grace */
	EXEC_KILL, /* SIGKILL is out; the deadline is the next look */
};

struct exec {
	struct list node;
	struct guest *guest; /* borrowed */
	uint32_t id;
	uint64_t mark;
	pid_t pid;   /* 0 once reaped */
	pid_t ended; /* it has said that it ends, and may take a moment; 0: no such */
	const struct warm_end *end; /* owned: where it says so, or NULL */
	int64_t newest; /* the newest pid when it was begun, itself included; -1: not known */
	enum exec_phase phase;
	bool is_reaped;
	bool is_whole;     /* EXEC_WHOLE */
	bool is_waiting;   /* reaped, and others can still write to its pipes */
	bool is_tree_gone; /* an ended tree has no live member */
	bool is_lingering; /* G_EXIT is out */
	bool is_orphan;    /* its client is gone, and nobody will learn how it ended */
	struct kept
		*kept;  /* owned: its end will be kept; NULL: without EXEC_KEEP, or acknowledged */
	unsigned looks; /* how often the killed tree was looked at */
	uint32_t grace_ms;
	uint64_t started_ns;
	struct deadline deadline;
	struct source
		streams[OUT_STREAMS]; /* with a PTY the first is the master, the second none */
	struct source input;
	struct out out;
	struct in in;
	uint64_t drain[OUT_STREAMS]; /* bytes to read after the process is gone, at the most */
	struct guest_exit exit;
};

/* Not yet in the guest's list, without a process; NULL without memory. */
struct exec *exec_create(struct guest *g, uint32_t id, const struct guest_exec *e);
void exec_free_new(struct exec *x);     /* of one without a process; takes NULL */
void exec_wait_no_more(struct exec *x); /* what is in its pipes now is the last of its output */
/* Takes the process and the streams, and the execution is live. */
void exec_adopt(struct exec *x, const struct spawned *s);
/* The client is gone, and it is not kept: it ends, and says nothing. */
void exec_abandon(struct exec *x);
void exec_expired(struct deadline *d);
/* Writes as much input as the process takes now. */
void exec_feed(struct exec *x);
void exec_on_input(struct source *s, uint32_t events);
