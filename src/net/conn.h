/* One accepted connection: bytes in and out, plain or TLS, with bounded buffers. What the bytes
 * mean is its owner's (conn_ops: HTTP, or WebSocket after an upgrade). A closed connection stays in
 * memory until the end of the turn, so no caller finds it freed under its hands. Inside of net/. */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/buf.h"
#include "base/list.h"

struct conn;
struct http_server;
struct loop;
struct loop_io;
struct peer;
struct tls_session;

struct conn_ops {
	/* Takes from the front what can be worked on now and says how much; the rest is kept and
	 * offered again with the next bytes, or after conn_resume() (then also without any). */
	size_t (*input)(struct conn *c, const char *data, size_t n);
	/* More input can be worked on; otherwise only a little is read ahead. */
	bool (*wants)(const struct conn *c);
	/* Nothing is under way but the sending of output. */
	bool (*is_over)(const struct conn *c);
	/* Pending output has fallen to low_water or below from above it. */
	void (*drained)(struct conn *c);
	/* The connection has broken, the peer has closed it or a limit was hit. It is closed. */
	void (*gone)(struct conn *c);
	/* Now and then: deadlines. */
	void (*tick)(struct conn *c, uint64_t now_ms);
	/* The server is shutting down: end soon. */
	void (*leave)(struct conn *c);
};

enum conn_state {
	CONN_OPEN,
	CONN_FINISHING, /* closes when the output is sent; input is not looked at */
	CONN_LINGERING, /* output sent and ended; input is read away for a moment */
	CONN_CLOSED,
};

struct conn {
	struct list node; /* of the server's connections, or of its dead */
	struct list todo_node;
	unsigned todo;              /* what the end of the turn does: conn.c */
	struct http_server *server; /* borrowed */
	struct loop *loop;          /* borrowed */
	const struct conn_ops *ops;
	struct loop_io *io;      /* owned */
	struct tls_session *tls; /* owned; NULL when plain */
	int fd;                  /* owned */
	enum conn_state state;
	bool linger;    /* how to finish */
	bool offering;  /* input() is on the stack */
	bool above;     /* pending output has been above low_water */
	struct buf in;  /* read ahead */
	struct buf out; /* not sent: from out_sent on */
	size_t out_sent;
	struct buf cipher; /* TLS records of what was taken from out; from cipher_sent on */
	size_t cipher_sent;
	size_t low_water;
	size_t lingered;    /* bytes read away */
	uint64_t since_ms;  /* of the wait that the owner or we are in */
	uint64_t output_ms; /* last progress of output */
	uint64_t queued_ms; /* last time that somebody wrote */
	char peer[INET6_ADDRSTRLEN];
	struct peer *from; /* borrowed from the server; NULL: not counted */
};

/* c is zeroed. Takes fd and tls (may be NULL), also on failure. */
int conn_init(struct conn *c, struct http_server *s, const struct conn_ops *ops, int fd,
	      struct tls_session *tls);
void conn_done(struct conn *c); /* of one that is closed */

/* None of these calls back. What fails on the way is told by gone() at the end of the turn. */
void conn_send(struct conn *c, struct iovec *parts, int count); /* at once; changes parts */
void conn_queue(struct conn *c, const void *data, size_t n);    /* at the end of the turn */
size_t conn_pending(const struct conn *c);
void conn_set_low_water(struct conn *c, size_t n);
void conn_resume(struct conn *c);              /* input is offered again at the end of the turn */
void conn_finish(struct conn *c, bool linger); /* close when all output is sent */
void conn_fail(struct conn *c);                /* gone() at the end of the turn */
void conn_close(struct conn *c);               /* now, and gone() is not called */
void conn_reset(struct conn *c);               /* the same, as a break and not as an end */

/* For the loop's callbacks and the server's sweep: may call back. */
void conn_lose(struct conn *c); /* closes, then gone() */
void conn_tick(struct conn *c, uint64_t now_ms);
void conn_run_todo(struct conn *c);
