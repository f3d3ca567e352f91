/* One request and its answer on a connection, one after the other: the inside of struct
 * http_request. Inside of net/. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/id.h"
#include "net/conn.h"
#include "net/http.h"

struct arena;
struct http1;
struct http1_head;
struct tunnel;
struct ws;

enum body_mode {
	BODY_UNTAKEN, /* nobody has said what to do with it: it is not read */
	BODY_COLLECT,
	BODY_STREAM,
	BODY_DISCARD, /* the answer has ended before the body */
};

enum answer_state {
	ANSWER_NONE,
	ANSWER_BEGUN,
	ANSWER_ENDED,
};

struct http_request {
	struct conn c;                 /* a connection and its request are one object */
	struct http1 *parser;          /* owned */
	const struct http1_head *head; /* the parser's; valid while active, and until the next */
	struct arena *arena;           /* owned; of the request that is active */
	bool active;                   /* from its head to its end */
	bool complete;                 /* its last byte has been read */
	bool is_bad;                   /* what follows on the connection cannot be read */
	bool reported;                 /* done() has been told */
	uint64_t start_ns;
	char id[ID_LEN + 1];
	void *user[HTTP_USER_SLOTS];

	enum body_mode body_mode;
	bool body_told; /* got() or end() has been called */
	bool body_paused;
	bool body_too_big; /* its Content-Length says so */
	bool continued;    /* "100 Continue" was sent */
	size_t body_max;
	size_t discarded;
	struct buf body; /* collected */
	void (*body_got)(void *user, struct http_request *r, const char *data, size_t n);
	struct http_body_ops body_ops;
	void *body_user;

	enum answer_state answer;
	bool chunked;     /* the answer is */
	bool no_body;     /* HEAD, 204, 304 */
	bool close_after; /* said "Connection: close", or must */
	int status;       /* 0 until answered */
	uint64_t sent;    /* bytes of the answer's body */
	int64_t left;     /* of the announced length; -1: chunked */
	struct buf extra; /* added headers as they are sent */

	void (*gone)(void *user, struct http_request *r);
	void *gone_user;
	void (*drained)(void *user, struct http_request *r);
	void *drained_user;
	struct ws *ws;         /* owned by itself; what became of the request, or NULL */
	struct tunnel *tunnel; /* the same */
	void (*tick)(struct http_request *r, uint64_t now_ms); /* of an SSE stream, or NULL */
};

/* Takes fd and tls. NULL without memory. */
struct http_request *exchange_create(struct http_server *s, int fd, struct tls_session *tls);
void exchange_free(struct conn *c);   /* of one that is closed and not active */
void exchange_forget(struct conn *c); /* of a closed one that nobody will answer any more */
/* A closed one that nobody knows any more. One that waits for a body in vain, or asked to be told
 * of a client that had left before, is told so here. */
bool exchange_is_forgotten(struct conn *c);
/* Nobody waits for anything on it: no request, or one that is answered; and its client, if it has
 * not read all, does not read. */
bool exchange_is_quiet(const struct conn *c, uint64_t now_ms);
/* Nothing is left of its request but to send the answer. */
bool exchange_is_answered(const struct conn *c);
/* The answer has been written: the request is over as soon as its body is. */
void exchange_answered(struct http_request *r);
/* The request is over without more ado: an abort, an upgrade's end. */
void exchange_over(struct http_request *r);
/* Answers 101 with the added headers; from now on the bytes are ops'. Until the end of that: */
void exchange_upgrade(struct http_request *r, const struct conn_ops *ops);
void exchange_leave_upgrade(struct http_request *r, bool linger);
void answer_upgrade(struct http_request *r); /* answer.c */
/* Tells whoever waits that this request ends here. */
void exchange_tell_gone(struct http_request *r);
/* Answers with an error of our own and closes. The handler has been told or never knew. */
void exchange_refuse(struct http_request *r, int status, const char *message);
