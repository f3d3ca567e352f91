/* A client of MCP at a transport that the test plays: what it sends is kept, what comes is said. */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "loop/loop.h"
#include "mcpc/mcpc.h"
#include "json/jv.h"

#define MCPC_RIG_SENT_MAX 600u

struct mcpc_rig {
	struct mcpc_transport transport; /* first */
	struct loop *loop;
	struct loop_timer *limit;
	struct mcpc *client;
	char *sent[MCPC_RIG_SENT_MAX]; /* owned */
	char *headers;                 /* owned: the first further one of the last message */
	char *name;                    /* owned: of the last message that had one */
	size_t n_sent;
	int send_fails; /* -errno */
	bool is_deaf;   /* what is sent is not kept */
	char forgotten[32], agreed[32];
	bool is_closed;
	/* Of the client. */
	unsigned n_ready, n_done, n_asked, n_changed, n_lost, n_progress;
	struct err ready_err, err, lost_err;
	long rpc_code;
	char *result; /* owned */
	void *ask;
	char asked[64];
	const char *answer;      /* given at once; NULL: not at all */
	bool frees_in_callbacks; /* done() and lost() free the client */
};

struct mcpc_rig *mcpc_rig_create(const char *only_version, bool forget_cancels);
void mcpc_rig_free(struct mcpc_rig *g);
/* The last message that was sent. */
const char *mcpc_rig_last(const struct mcpc_rig *g);
/* Its id as text. */
const char *mcpc_rig_id(const struct mcpc_rig *g);
/* A message comes. "$" in the text is the id of the last request. */
void mcpc_rig_say(struct mcpc_rig *g, const char *text);
void mcpc_rig_connect_modern(struct mcpc_rig *g, const char *capabilities);
void mcpc_rig_connect_legacy(struct mcpc_rig *g);
/* Starts a request whose end is kept. */
struct mcpc_call *mcpc_rig_ask(struct mcpc_rig *g, const char *method, const char *params);
void mcpc_rig_done(void *user, const struct mcpc_outcome *o);
/* Runs the loop until the counter has this value. */
void mcpc_rig_wait(struct mcpc_rig *g, const unsigned *counter, unsigned value);
