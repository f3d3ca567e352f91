/* What both kinds of processes have in common (stdio.c). */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "mcpc/stdio.h"

struct arena;
struct loop_timer;
struct stdio;

#define STDIO_LAST_MAX 160 /* bytes of the last line that it said */

struct stdio_ops {
	void (*flush)(struct stdio *s);     /* something waits in s->out */
	void (*hang_up)(struct stdio *s);   /* its input ends */
	void (*terminate)(struct stdio *s); /* it is asked */
	void (*kill)(struct stdio *s);
	/* Gives back what is the kind's own, in whatever state; the process is ended for certain.
	 */
	void (*drop)(struct stdio *s);
};

enum stdio_end { STDIO_LIVES, STDIO_HUNG_UP, STDIO_ASKED, STDIO_KILLED };

struct stdio {
	struct mcpc_transport t; /* first: mcpc.h */
	const struct stdio_ops *ops;
	struct stdio_yard *yard; /* borrowed */
	struct list node;        /* in it */
	struct arena *arena;     /* owned: name, env */
	const char *name;        /* arena */
	struct jv_pairs env;     /* arena */
	struct buf line;         /* of its output, not ended yet */
	struct buf said;         /* the same of its errors */
	struct buf out;          /* for its input */
	size_t out_at;           /* of it, already taken */
	unsigned junk;
	char last[STDIO_LAST_MAX + 1]; /* that it said as an error; "": nothing */
	bool is_closing;               /* the client has closed it: nothing is told any more */
	bool is_lost;                  /* told */
	enum stdio_end end;
	struct loop_timer *timer; /* owned: of the end */
};

/* Fills in what is common; s is zeroed and of its kind's own size. Afterwards stdio_free(), also on
 * failure. */
int stdio_init(struct stdio *s, struct stdio_yard *y, const struct stdio_ops *ops,
	       const struct stdio_spec *spec, struct err *err);
struct stdio *stdio_free(struct stdio *s); /* takes NULL, returns NULL */
/* Bytes of its output and of its errors. Nothing more is of use once it is lost or closing. */
void stdio_feed(struct stdio *s, const char *data, size_t n);
void stdio_said(struct stdio *s, const char *data, size_t n);
/* No more can come of it: told once, unless it is closing. */
void stdio_lose(struct stdio *s, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* It has closed its output. Most often it has ended, and how is known in a moment; else it is lost.
 */
void stdio_fell_silent(struct stdio *s);
/* How it ended, for stdio_lose(): with what it said last. signo 0: by itself. */
void stdio_lose_ended(struct stdio *s, int exit_code, int signo);
