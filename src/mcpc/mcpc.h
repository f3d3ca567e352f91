/* A client of an MCP server, of either era, over any transport: lists and calls. On the loop;
 * nothing blocks, and nothing calls back from inside the call that asks for it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "json/jv.h"
#include "json/rpc.h"

struct loop;
struct mcpc;      /* opaque: one server, as we see it */
struct mcpc_call; /* opaque: one request under way */

#define MCPC_MESSAGE_MAX (16u << 20) /* bytes of one message */
#define MCPC_CALLS_MAX 256u          /* under way at one server */

/* ---- the transport: a seam; http.c, stdio.c, tests ---- */

struct mcpc_transport; /* begins with .ops */

struct mcpc_transport_events { /* called by the transport */
	/* One message, whichever request's stream it came on. text is NUL-terminated JSON. */
	void (*message)(void *user, const char *text, size_t n);
	/* A request (its id as JSON text) cannot be answered any more: what the server said in HTTP
	 * (status 0: nothing), or err. body: what came with it, for an era probe. May come behind
	 * the answer, and means nothing then. */
	void (*failed)(void *user, const char *id, int status, const char *body, size_t n,
		       const struct err *err);
	/* All of it is gone: the process has ended, the session is unknown (status 404). */
	void (*lost)(void *user, const struct err *err);
};

struct mcpc_send {        /* borrowed for the call */
	const char *text; /* one JSON-RPC message */
	size_t len;
	const char *id;     /* of a request: JSON text; NULL: a notification or an answer */
	const char *method; /* for headers; NULL of an answer */
	const char *name;   /* params.name or .uri, for Mcp-Name; NULL */
	const char *const
		*headers; /* further ones, "Name: value" (Mcp-Param-...); NULL-terminated or NULL */
	bool is_modern;
	const char *version; /* of the protocol, for its header; NULL: not agreed yet */
	uint64_t timeout_ms; /* of a request, without a sign of life; 0: the default */
};

/* The name that goes with a request of this method; NULL: none does. */
const char *mcpc_name_of(const char *method, struct jv params);

struct mcpc_transport_ops {
	int (*send)(struct mcpc_transport *t, const struct mcpc_send *m, struct err *err);
	/* A request is given up: its stream closes (modern HTTP), else nothing. */
	void (*forget)(struct mcpc_transport *t, const char *id);
	/* The legacy handshake is over: a stream for what the server says by itself may be opened.
	 */
	void (*agreed)(struct mcpc_transport *t, const char *version);
	void (*close)(struct mcpc_transport *t); /* ends the session or the process, then frees;
						    also from within events */
	bool forget_cancels; /* forget() of a modern request tells the server by itself */
};

struct mcpc_transport {
	const struct mcpc_transport_ops *ops;
	const struct mcpc_transport_events *events; /* set by mcpc_create() */
	void *user;                                 /* the same */
};

/* ---- the client ---- */

struct mcpc_handlers { /* what the server may ask or tell; any may be NULL: refused, or passed over
			*/
	/* A request of the server, or an input of the modern era: answer with mcpc_answer() or
	 * mcpc_refuse(), now or later, `ask` is theirs then. */
	void (*asked)(void *user, struct mcpc *c, void *ask, const char *method, struct jv params);
	void (*changed)(void *user, struct mcpc *c, const char *method); /* .../list_changed */
	void (*updated)(void *user, struct mcpc *c, const char *uri);
	void (*logged)(void *user, struct mcpc *c, const char *level, struct jv data);
	/* The server is gone for good: calls under way have been told (EPIPE). The client may be
	 * freed in here; nothing else comes of it. Not before mcpc_connect()'s ready(). */
	void (*lost)(void *user, struct mcpc *c, const struct err *err);
};

struct mcpc_options { /* copied; handlers are borrowed */
	struct loop *loop;
	const char *name, *version; /* of us */
	const char *capabilities;   /* JSON object: what we declare */
	const char *only_version;   /* speaks this and no other; NULL: probes, newest first */
	const struct mcpc_handlers *handlers;
	void *user;
	uint64_t timeout_ms; /* of a request; 0: 60 s */
};

/* Takes the transport. */
int mcpc_create(const struct mcpc_options *o, struct mcpc_transport *t, struct mcpc **ret,
		struct err *err);
struct mcpc *
mcpc_free(struct mcpc *c); /* calls under way are told nothing; takes NULL, returns NULL */
CLEANUP_FUNC(struct mcpc *, mcpc_free)
/* Probes the era and shakes hands. ready() comes once. */
void mcpc_connect(struct mcpc *c, void (*ready)(void *user, const struct err *err), void *user);
bool mcpc_is_modern(const struct mcpc *c);
const char *mcpc_server_name(const struct mcpc *c);             /* "": not said */
bool mcpc_offers(const struct mcpc *c, const char *capability); /* "tools", "resources", ... */

struct mcpc_outcome { /* borrowed for the callback */
	struct err
		err; /* code 0: there is a result. ETIMEDOUT, ECANCELED, EPIPE (lost), EPROTO ... */
	struct jv result; /* absent with an error */
	long rpc_code;    /* of the server's error; 0: it was none of the server's */
	struct jv data;   /* of the server's error */
};
typedef void (*mcpc_done_fn)(void *user, const struct mcpc_outcome *o);
typedef void (*mcpc_progress_fn)(void *user, double at, double total, const char *text);

struct mcpc_request { /* borrowed for the call */
	const char *method;
	const char *params; /* JSON object, without _meta; NULL: {} */
	mcpc_done_fn done;
	mcpc_progress_fn progress; /* NULL: not wanted */
	void *user;
	uint64_t timeout_ms;
	const char *traceparent; /* NULL */
};
/* Rounds of input_required are gone through by itself, with the handlers' answers. */
int mcpc_request(struct mcpc *c, const struct mcpc_request *req, struct mcpc_call **ret,
		 struct err *err);
/* The server is told; done() does not come. */
void mcpc_cancel(struct mcpc_call *call);
/* All pages of a list ("tools/list" and its member "tools"): done() has one result with all of it.
 */
int mcpc_list(struct mcpc *c, const char *method, const char *member, mcpc_done_fn done, void *user,
	      struct err *err);
void mcpc_answer(struct mcpc *c, void *ask, const char *result_json);
void mcpc_refuse(struct mcpc *c, void *ask, long code, const char *text);
