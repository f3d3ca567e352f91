/* What an agent may do: one table of tools, each with its schema and its deed. A tool knows neither
 * HTTP nor MCP: whoever calls gives it arguments and hears of its end.
 *
 * The schema that clients see is written from the table (json/schema.h), so what is described is
 * what is checked. Nothing calls back from inside the call that asks for it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "auth/principal.h"
#include "base/buf.h"
#include "base/id.h"
#include "base/list.h"
#include "loop/loop.h"
#include "json/jv_decode.h"

struct arena;
struct err;
struct jw;
struct sandbox;
struct tool_call;
struct tools; /* opaque: toolbox.h */

enum tool_hint { /* for people and models; nothing relies on them */
		 TOOL_READ_ONLY = 1 << 0,
		 TOOL_DESTRUCTIVE = 1 << 1,
		 TOOL_IDEMPOTENT = 1 << 2,
		 TOOL_OPEN_WORLD = 1 << 3,
};

enum tool_flag {
	TOOL_IN_BOX = 1 << 0, /* works in a sandbox: "sandbox_id" is among its arguments where the
				 caller is not bound to one */
	TOOL_FREE_ONLY = 1 << 1, /* not for a caller who is bound to one sandbox */
	TOOL_LONG = 1 << 2,      /* may become a task */
	TOOL_RAW = 1 << 3,    /* takes its arguments as they are (t->raw); .in_json is the schema */
	TOOL_HIDDEN = 1 << 4, /* only there when its is_there() says so */
	TOOL_TASK_ONLY = 1 << 5, /* not for a client who knows no tasks */
};

struct tool {
	const char *name, *title, *about;
	const struct jv_field *in; /* arguments, besides sandbox_id; every row has .help */
	size_t n_in;
	size_t size;          /* of the struct that they fill */
	const void *defaults; /* one such struct; NULL: zeroed */
	const char *in_json;  /* with TOOL_RAW: the schema as text */
	const struct jv_field
		*out; /* of structuredContent (offsets mean nothing); NULL: has none */
	size_t n_out;
	const char *out_json; /* instead of `out`: the schema as text */
	unsigned hints;       /* enum tool_hint */
	unsigned flags;       /* enum tool_flag */
	unsigned scopes;      /* enum scope: what the caller's key must be good for */
	/* May be NULL. Writes the description instead of `about`: of what changes. */
	void (*describe)(struct tools *all, struct buf *ret);
	bool (*is_there)(const struct tools *all); /* with TOOL_HIDDEN */
	/* May be NULL. Bounds and defaults that settings decide: changes copies of `in` and of
	 * `defaults`, for the schema and for the check alike. */
	void (*set_bounds)(const struct tools *all, struct jv_field *in, void *defaults);
	void (*run)(struct tool_call *t);
};

struct tool_table {
	const struct tool *rows;
	size_t count;
};

enum tool_outcome {
	TOOL_DONE,
	TOOL_FAILED,   /* what went wrong is in the content: the model may do better */
	TOOL_ASKS,     /* it needs answers (asks) before it can go on: it runs again with them */
	TOOL_NO_INPUT, /* it would have to ask what the client cannot answer: `missing` */
	TOOL_BROKEN,   /* no fault of the call: an error of the protocol, not of the tool */
};

struct tool_ask { /* arena */
	struct list node;
	const char *key;    /* its name among the answers */
	const char *method; /* "elicitation/create", "sampling/createMessage", "roots/list" */
	const char *params; /* JSON object */
};

struct tool_call_ops {
	void (*done)(struct tool_call *t); /* once, and the last */
	/* Any may be NULL. Something has happened; total 0: not known; text may be NULL. */
	void (*progress)(struct tool_call *t, double at, double total, const char *text);
	void (*log)(struct tool_call *t, const char *level, const char *logger, const char *json);
};

struct tool_call { /* the caller's, until done() has returned */
	/* The caller's to fill in: */
	struct tools *all;
	struct arena *arena; /* lives as long as the call */
	struct principal who;
	char box_id[ID_LEN + 1]; /* bound to this one; "": any of the owner's. From run() on: the
				    one that is meant, of a TOOL_IN_BOX */
	bool is_bound;
	const char *home; /* the name of the sandbox that is the caller's own, made when it is first
			     wanted */
	const char
		*base; /* what our addresses begin with, as the caller reaches us; "": not known */
	unsigned inputs;   /* what can be asked for: enum tool_input */
	bool is_durable;   /* what runs for it is in the store before anybody hears of it */
	struct jv answers; /* by the key of what was asked; absent: nothing was yet */
	const char *state; /* what tool_asks_end() was given then; "": nothing */
	const struct tool_call_ops *ops;
	void *user;
	/* The tool's: */
	const struct tool *tool;
	struct jv raw; /* the arguments as they came */
	void *args;    /* arena: as the table says */
	/* While something is under way: ends it, really, and calls done() soon. NULL: it cannot be
	 * cut short. Called by tools_cancel(). */
	void (*cancel)(struct tool_call *t);
	void (*leave)(struct tool_call *t); /* with an execution_id: see tools_leave() */
	void *work;                         /* arena: what it needs on its way */
	char execution_id[ID_LEN + 1];      /* what runs for it, once it is recorded: its end can be
					       asked for by others, and later */
	bool is_new_box;                    /* the sandbox was made for this call */
	bool is_cold;                       /* and was not one that waited */
	const char *lost_box; /* arena: the sandbox that the caller had before has ended, and how;
				 NULL */
	/* The toolbox's: */
	struct loop_task soon;
	bool is_cancelled;
	/* What came of it: */
	enum tool_outcome outcome;
	struct buf content;    /* owned: MCP content blocks, separated by commas; tool_text() ... */
	struct buf structured; /* owned: a JSON object; empty: none */
	struct list asks;      /* struct tool_ask */
	const char *next_state; /* arena */
	unsigned missing;       /* enum tool_input */
};

enum tool_input {
	TOOL_INPUT_FORM = 1 << 0, /* elicitation */
	TOOL_INPUT_URL = 1 << 1,
	TOOL_INPUT_SAMPLING = 1 << 2,
	TOOL_INPUT_ROOTS = 1 << 3,
};

/* ---- for tools ---- */

/* Each ends the call: t is not to be touched afterwards. */
void tool_done(struct tool_call *t);
/* A sentence for the model: what is wrong, and what would be right. */
void tool_fail(struct tool_call *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void tool_fail_err(struct tool_call *t, const struct err *err);
void tool_asks_end(struct tool_call *t, const char *state); /* behind tool_ask(); "": no state */

void tool_text(struct tool_call *t, const char *text, size_t n); /* a text block */
void tool_image(struct tool_call *t, const char *type, const char *base64, size_t n);
void tool_link(struct tool_call *t, const char *uri, const char *name, const char *type);
void tool_block(struct tool_call *t, const char *json); /* any block, as it is */
/* What `structured` holds, as text, too: for clients that do not look at it. */
void tool_text_structured(struct tool_call *t);
/* The answer to what was asked under this key; absent: ask. */
struct jv tool_answer(const struct tool_call *t, const char *key);
/* Puts a question; params is JSON. */
void tool_ask(struct tool_call *t, const char *key, const char *method, const char *params);
void tool_progress(struct tool_call *t, double at, double total, const char *text);
void tool_log(struct tool_call *t, const char *level, const char *json);
/* The live sandbox of a TOOL_IN_BOX, running; NULL after tool_fail(). Borrowed for this turn. */
struct sandbox *tool_box(struct tool_call *t);
/* For a tool's cancel() that has nothing left to wait for: ends the call in the next turn. */
void tool_cancel_soon(struct tool_call *t);
