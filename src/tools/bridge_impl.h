/* What the files of the bridge share. */
#pragma once

#include <stdbool.h>

#include "auth/principal.h"
#include "base/buf.h"
#include "base/id.h"
#include "base/list.h"
#include "loop/loop.h"
#include "mcpc/servers.h"
#include "tools/bridge.h"
#include "tools/stubs.h"
#include "json/jv.h"

struct file_op;
struct jw;
struct port_use;
struct sandbox;

struct bridges {
	struct bridges_deps deps;
	struct mcpc_watch watch;
	bool is_closing;               /* nobody is told anything any more */
	struct list all;               /* owned struct bridge */
	struct loop_timer *settle;     /* owned: what servers offer has changed a moment ago */
	uint64_t version;              /* of that */
	size_t n_writing;              /* boxes that are given files just now */
	struct {                       /* the last archive: most sandboxes want the same */
		struct stubs *stubs;   /* owned; NULL: none */
		const struct buf *tar; /* borrowed from it */
		char *grant;           /* owned */
		uint64_t version;
	} made;
};

struct bridge_budget {
	uint64_t since_ms, calls, bytes;
	bool is_told; /* that it is spent */
};

struct bridge { /* of one sandbox */
	struct list node;
	struct bridges *all;  /* borrowed */
	struct port_use *use; /* owned: the listener */
	struct principal who;
	char *grant;       /* owned */
	struct list conns; /* owned struct bridge_conn */
	size_t n_conns, n_calls;
	size_t waiting, out; /* bytes */
	struct bridge_budget budget;
	struct loop_timer *look; /* owned: while calls are under way */
	/* Its files: */
	struct file_op *op; /* borrowed: under way */
	struct buf tar;     /* owned, while it is sent */
	size_t step, sent;
	bool is_writing, is_failed;
	uint64_t version, wanted;    /* that the box has; that it should have */
	struct list waiters;         /* owned: who wants to hear of the first ones */
	struct loop_timer *patience; /* owned: with waiters */
};

struct bridge_conn {
	struct list node;
	struct bridge *b; /* borrowed */
	int fd;           /* owned */
	struct loop_io *io;
	struct buf in, out;
	size_t seen;       /* bytes of `in` without a line's end */
	struct list calls; /* owned struct bridge_call */
	bool is_over;      /* nothing comes any more */
	bool is_bad;       /* what came cannot be gone on with: it ends when all is said */
};

struct bridge_call {
	struct list node;
	struct bridge_conn *conn; /* borrowed */
	struct mcpc_use *use;     /* borrowed */
	bool is_plain;
	char id[]; /* as JSON */
};

/* bridge.c */
struct bridge *bridge_free(struct bridge *b);
const char *bridge_sandbox(const struct bridge *b);
void bridge_note_use(struct bridge *b); /* a call has begun or ended: it is busy, or not */

/* bridge_conn.c */
void bridge_conn_open(struct bridge *b, int fd); /* takes fd */
void bridge_conn_close(struct bridge_conn *c);   /* its calls are given up */
/* One answer, without its line's end; c may be gone afterwards. */
void bridge_conn_say(struct bridge_conn *c, struct buf *line);
/* Somebody may have room again: goes on with what waits. */
void bridge_go_on(struct bridge *b);
/* Whose program is gone meanwhile: what is under way for it is given up. Who only waits for an
 * answer is not read, so nothing else tells. */
void bridge_look(struct bridge *b);

/* bridge_call.c */
/* A request. Answers, now or later. */
void bridge_take(struct bridge_conn *c, const char *line, size_t n);
void bridge_refuse(struct bridge_conn *c, const char *id, long code, const char *text);
void bridge_call_free(struct bridge_call *call); /* gives it up */

/* bridge_write.c */
long bridge_code(int err, long otherwise); /* of a positive errno */
void bridge_write_outcome(struct jw *w, const char *id, const struct mcpc_outcome *o,
			  bool is_plain);
struct bridge_query {
	const struct bridge *b;
	const char *query, *server; /* server NULL: of all */
	enum mcpc_detail detail;
	uint64_t limit;
	bool is_plain;
};
void bridge_write_tools(struct jw *w, const char *id, const struct bridge_query *q);

/* bridge_files.c */
void bridge_files_want(struct bridge *b); /* puts them there, if need be */
void bridge_files_wait(struct bridge *b, void (*done)(void *user), void *user);
void bridge_files_end(struct bridge *b); /* whoever waits is told */
