/* What the files of the HTTP transport know of each other. */
#pragma once

#include "base/buf.h"
#include "base/list.h"
#include "httpc/sse_reader.h"
#include "loop/loop.h"
#include "mcpc/http.h"
#include "outbound/courier.h"

#define HTTP_SESSION_MAX 256u
#define HTTP_VERSION_MAX 32u

struct mcpc_exchange;

struct mcpc_http {
	struct mcpc_transport base; /* first */
	struct loop *loop;          /* borrowed, as are courier and auth */
	struct courier *courier;
	struct mcpc_auth *auth;              /* NULL: none */
	char *url, *server, *ca_file;        /* owned; the last two may be NULL */
	char *headers[MCPC_HEADERS_MAX + 1]; /* owned */
	bool public_only;
	char session[HTTP_SESSION_MAX + 1]; /* "": none */
	unsigned session_no;                /* counts them */
	char version[HTTP_VERSION_MAX];     /* that was agreed on in the legacy era; "" */
	struct list all;                    /* struct mcpc_exchange */
	struct mcpc_exchange *gate; /* a step of the handshake: all others wait until it is done */
	struct loop_timer *gate_timer; /* owned: of a server that does not say that it is heard */
	bool wants_ear;
	struct mcpc_exchange *ear; /* what the server says by itself; NULL: is not listened to */
	bool is_old, is_old_only;  /* HTTP+SSE; since it is said to be */
	char *post_url;            /* owned: where messages go there; NULL: not known yet */
	int old_status;            /* what the later revisions were refused with; 0 */
	struct err old_err;
	unsigned busy; /* callbacks on the stack: nothing is freed under them */
	bool is_closed;
};

/* A message of ours and what comes of it; or what the server says by itself. */
struct mcpc_exchange {
	struct list node;
	struct mcpc_http *h;
	char *id;   /* owned: of a request, JSON text; NULL: none is waited for */
	char *body; /* owned; NULL: it only listens */
	size_t body_len;
	unsigned session_no; /* when it was sent */
	char **headers;      /* owned: of this message alone, ended by NULL */
	bool is_modern;
	bool is_gate;     /* a step of the handshake */
	bool is_first;    /* initialize: its answer has the session */
	bool is_held;     /* behind the gate */
	bool is_resuming; /* goes on where it broke off: a GET */
	bool is_answered;
	bool is_over; /* to be freed */
	bool has_head, is_stream;
	uint64_t since_ms;       /* when its head came */
	struct courier_job *job; /* NULL: none under way */
	struct sse_reader sse;
	struct buf json;
	char last_event[SSE_ID_MAX + 1];
	int64_t retry_ms;         /* -1: not said */
	unsigned tries;           /* to go on, since the last event */
	unsigned refusals;        /* that another token might help against */
	uint64_t token_no;        /* which one was sent */
	struct loop_timer *timer; /* owned: until it goes on; NULL: never did */
};

/* ---- http.c ---- */

void mcpc_http_enter(struct mcpc_http *h);
void mcpc_http_leave(struct mcpc_http *h); /* h may be gone afterwards */

/* What was held behind this goes now, and the server is heard from now on. */
void mcpc_http_pass_gate(struct mcpc_http *h, const struct mcpc_exchange *x);

/* ---- http_exchange.c ---- */

struct mcpc_exchange *mcpc_exchange_create(struct mcpc_http *h, const struct mcpc_send *m,
					   struct err *err);
int mcpc_exchange_start(struct mcpc_exchange *x, struct err *err);
void mcpc_exchange_drop(struct mcpc_exchange *x); /* freed by mcpc_http_leave() */
void mcpc_exchange_free(struct mcpc_exchange *x);

/* ---- http_head.c ---- */

/* All headers of a request, for the courier; ended by NULL. Freed by mcpc_http_head_free(). */
int mcpc_http_head_write(struct mcpc_exchange *x, char ***ret);
/* Those of one message alone: copied into x->headers. -E2BIG, -ENOMEM. */
int mcpc_http_head_keep(struct mcpc_exchange *x, const struct mcpc_send *m);
void mcpc_http_head_free(char **headers); /* zeroes them: tokens are among them */

/* ---- http_old.c ---- */

int mcpc_http_old_open(struct mcpc_http *h, struct err *err);
/* Whether a refused exchange is held until that way was tried. */
bool mcpc_http_old_try(struct mcpc_exchange *x, const struct courier_answer *a);
/* The stream says where messages go. */
void mcpc_http_old_endpoint(struct mcpc_http *h, const char *said);
/* The stream is over. */
void mcpc_http_old_ended(struct mcpc_http *h, const struct courier_answer *a);
