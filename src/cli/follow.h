/* An execution's events as they come. A connection that breaks is made again from where it was: the
 * execution does not notice, and nothing is lost or told twice as far as its output is kept. */
#pragma once

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include "cli/client.h"
#include "httpc/sse_reader.h"

#define FOLLOW_ID_MAX 64

/* jv values are for the call only. -errno ends it and is passed on. Any may be NULL. */
struct follow_ops {
	int (*start)(void *user, struct jv execution); /* also after each reconnection */
	int (*output)(void *user, int stream, const void *data, size_t n);
	int (*gap)(void *user, uint64_t omitted);
	int (*end)(void *user, struct jv execution);
	int (*raw)(void *user, const struct sse_event *e); /* before the others */
};

struct follow {
	struct client *client; /* borrowed */
	const struct follow_ops *ops;
	void *user;
	const char *sandbox;        /* borrowed */
	const char *route;          /* that starts it; NULL: sandboxes/%/executions */
	char id[FOLLOW_ID_MAX + 1]; /* of the execution; "" until it has begun */
	char last[SSE_ID_MAX + 1];  /* position behind what was taken, as the server calls it */
	bool text; /* ask for output as text, for raw(); otherwise the exact bytes */
	bool over; /* the end was told */
	bool hold; /* take nothing for now: follow_resume() */
	bool held; /* something waits */
	struct buf target, header; /* owned, as is what follows */
	const char *headers[2];
	struct httpc_call *call;
	struct sse_reader reader;
	struct err err;    /* of a callback */
	unsigned failures; /* in a row, without an event between them */
	uint64_t retry_ms; /* when to connect again; 0: connected */
};

/* f: client, ops, user, sandbox and text are filled in. Starts an execution with that body
 * ("stream":true in it). The body must stay until it has begun. */
int follow_start(struct follow *f, const struct buf *body, struct err *err);
/* Follows the one of that id from its beginning. */
int follow_attach(struct follow *f, const char *id, struct err *err);
void follow_done(struct follow *f);
/* Waits until something happens or the time is over (-1: none); fds as in httpc_turn(). 0, or why
 * there will be no more events: what the daemon says, or that it cannot be reached any more. */
int follow_turn(struct follow *f, struct pollfd *fds, size_t n, int timeout_ms, struct err *err);
void follow_resume(struct follow *f);
