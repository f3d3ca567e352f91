/* What the files of the client know of each other. */
#pragma once

#include "base/buf.h"
#include "base/list.h"
#include "loop/loop.h"
#include "mcpc/mcpc.h"

#define MCPC_MODERN "2026-07-28"
#define MCPC_META "io.modelcontextprotocol/"

struct map;

enum mcpc_state {
	MCPC_NEW,
	MCPC_PROBES, /* server/discover is under way */
	MCPC_SHAKES, /* initialize is; also once more, when the server has forgotten us */
	MCPC_READY,
	MCPC_FAILED,
};

struct mcpc {
	struct loop *loop;             /* borrowed */
	struct mcpc_transport *t;      /* owned */
	char *name, *version, *offers; /* owned; `offers`: our capabilities */
	char *only_version;            /* owned; NULL: any */
	const struct mcpc_handlers *handlers;
	void *user;
	uint64_t timeout_ms;
	enum mcpc_state state;
	bool is_modern;
	bool was_ready;    /* once at least */
	bool may_renew;    /* another handshake may be tried when the session is gone */
	bool has_retried;  /* the probe, with a version that the server has named */
	char protocol[32]; /* the version that is spoken; "": not agreed yet */
	uint64_t last_id;
	unsigned session_no;          /* counts handshakes */
	struct map *calls;            /* owned: by id; of those that are sent */
	struct list all;              /* struct mcpc_call */
	struct list asks;             /* struct mcpc_ask */
	struct list pagings;          /* struct mcpc_paging */
	struct map *mirrors;          /* owned: struct mcpc_mirror by the tool's name */
	struct jv_doc *hello;         /* owned: what the server says of itself; NULL: nothing */
	struct mcpc_call *ear;        /* subscriptions/listen; NULL: none */
	struct loop_timer *ear_timer; /* owned: until it is asked for again; NULL: never was */
	uint64_t ear_pause_ms;
	void (*ready)(void *user, const struct err *err); /* NULL: has been told */
	void *ready_user;
	struct loop_task late; /* tells ready() of `failure` */
	struct err failure;
	unsigned busy; /* callbacks of ours on the stack: freed when the last has returned */
	bool is_freed;
};

enum mcpc_call_state {
	MCPC_CALL_SENT,
	MCPC_CALL_WAITS, /* for a handshake: it is sent again after that */
	MCPC_CALL_ASKS,  /* the server wants answers first */
	MCPC_CALL_OVER,  /* its end is told in the next turn */
};

struct mcpc_call {
	struct list node;
	struct mcpc *c;
	enum mcpc_call_state state;
	char id[24];         /* of the round that is under way */
	char *method;        /* owned, as is all up to `answers` */
	char *params;        /* JSON object */
	char *traceparent;   /* NULL: none */
	char *request_state; /* JSON; what the server wants back; NULL: nothing */
	struct buf answers;  /* inputResponses; without its last brace while there are open ones */
	size_t n_open;       /* questions without an answer */
	unsigned round;
	unsigned session_no; /* when it was sent */
	bool is_greeting;    /* part of the handshake: is sent before it is over */
	bool is_modern;      /* as it was sent */
	mcpc_done_fn done;
	mcpc_progress_fn progress;
	void *user;
	uint64_t timeout_ms;      /* without a sign of life; MCPC_NO_LIMIT */
	uint64_t until_ms;        /* whatever progress it makes */
	struct loop_timer *timer; /* owned */
	struct loop_task late;    /* tells of `failure` */
	struct err failure;
};

struct mcpc_ask {
	struct list node;
	struct mcpc_call *call; /* of an input; NULL: a request of the server, or nobody waits */
	char id[RPC_ID_MAX];    /* of a request of the server; "" */
	char *key;              /* owned: of an input */
	char *method;           /* owned */
	struct jv params;       /* until it has been told */
	bool is_told;
};

/* ---- client.c ---- */

int mcpc_send_text(struct mcpc *c, struct mcpc_send *m, const struct buf *text, struct err *err);
void mcpc_enter(struct mcpc *c);
void mcpc_leave(struct mcpc *c); /* c may be gone afterwards */

/* ---- call.c ---- */

#define MCPC_NO_LIMIT UINT64_MAX
int mcpc_call_start(struct mcpc *c, const struct mcpc_request *req, bool is_greeting,
		    struct mcpc_call **ret, struct err *err);
void mcpc_call_free(struct mcpc_call *call); /* told nothing */
/* Its end; frees it. */
void mcpc_call_end(struct mcpc_call *call, const struct mcpc_outcome *o);
void mcpc_call_fail(struct mcpc_call *call, const struct err *err);
void mcpc_call_fail_late(struct mcpc_call *call, const struct err *err);
void mcpc_call_answered(struct mcpc_call *call, const struct rpc_message *m);
void mcpc_call_progressed(struct mcpc_call *call, struct jv params);
/* (Again) on its way, with a new id. */
int mcpc_call_send(struct mcpc_call *call, struct err *err);
/* All that waited for a handshake. err NULL: they are sent. */
void mcpc_calls_go_on(struct mcpc *c, const struct err *err);

/* ---- message.c ---- */

/* One request as text; -E2BIG, -ENOMEM. */
int mcpc_message_write(const struct mcpc_call *call, struct jv params, struct buf *ret);

/* ---- ask.c ---- */

void mcpc_ask_request(struct mcpc *c, const struct rpc_message *m);
/* The questions of an input_required; the call goes on when all have answers. */
int mcpc_ask_inputs(struct mcpc_call *call, struct jv inputs, struct err *err);
void mcpc_ask_withdrawn(struct mcpc *c, struct jv id); /* notifications/cancelled */
void mcpc_asks_forget(struct mcpc_call *call);
void mcpc_asks_free(struct mcpc *c);

/* ---- connect.c ---- */

/* The server does not know the session of this call any more: another one, and then the call again.
 * -EPIPE: it was tried already. */
int mcpc_renew(struct mcpc *c, struct mcpc_call *call, struct err *err);

/* ---- list.c ---- */

void mcpc_pagings_free(struct mcpc *c);
void mcpc_mirrors_free(struct mcpc *c);

/* ---- listen.c ---- */

/* The modern era: what the server tells by itself has to be asked for. */
void mcpc_listen(struct mcpc *c);
