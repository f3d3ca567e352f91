/* MCP in front of Holt's services, both eras on one endpoint (README.md). A request lives by
 * itself, not by the connection that brought it: in the legacy era a client may come back for its
 * answer. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "auth/principal.h"
#include "base/cleanup.h"
#include "base/id.h"
#include "base/list.h"
#include "tools/tool.h"
#include "json/jw.h"
#include "json/rpc.h"

struct arena;
struct buf;
struct config;
struct loop;
struct mcp_server;  /* opaque: server_impl.h */
struct mcp_session; /* opaque: of the legacy era */
struct mcp_stream;  /* opaque: where a request's messages go */
struct secret;
struct skills;
struct tools;

#define MCP_MODERN_VERSION "2026-07-28"
#define MCP_LEGACY_VERSION "2025-11-25" /* the newest of that era */

enum mcp_era { MCP_LEGACY, MCP_MODERN };

enum mcp_code {                            /* beside those of json/rpc.h */
		MCP_NOT_FOUND = -32002,    /* a resource, in the legacy era */
		MCP_HEADER = -32020,       /* head and body say different things */
		MCP_NEEDS_CLIENT = -32021, /* what the client has not declared */
		MCP_VERSION = -32022,
};

enum mcp_client { /* what a client has declared, beside enum tool_input */
		  MCP_CLIENT_TASKS = 1 << 8,
};

struct mcp_request {
	struct list node; /* in its server */
	struct mcp_server *server;
	struct mcp_session *session; /* held; NULL: modern */
	struct mcp_stream *stream;   /* where it answers */
	enum mcp_era era;
	const char *version; /* of the protocol */
	struct principal who;
	char box_id[ID_LEN + 1]; /* of an endpoint that is one sandbox's; "" */
	const char *home;        /* see struct tool_call */
	const char *base;        /* see struct tool_call */
	struct arena *arena;     /* owned */
	struct jv_doc *doc;      /* owned */
	char id[RPC_ID_MAX];
	const char *method;
	struct jv params, meta;
	unsigned client;   /* enum tool_input | enum mcp_client */
	int log_level;     /* index in mcp_levels; -1: nothing is told */
	struct jv answers; /* to what was asked of the client for this request; absent: none */
	const char *state; /* what mcp_asks() was given then; "" */
	struct list asks;  /* struct tool_ask: what is being asked; see mcp_asks() */
	struct list asked; /* of the legacy era: what was asked (ask.c) */
	size_t n_asked;    /* of these: not answered yet */
	struct jv_doc *answers_doc; /* owned; NULL */
	/* The handler's. Called once when the client does not want it any more: the handler ends
	 * what it does and then calls mcp_drop(), now or later. NULL: the request goes at once. */
	void (*cancelled)(struct mcp_request *q);
	void *work;
	bool is_cancelled;
	bool is_listening; /* of subscriptions/listen: what is wanted is in `wants` and `uris` */
	const char **uris; /* arena: those that it may hear of, and that are watched */
	size_t n_uris;
	unsigned wants; /* enum mcp_change bits */
	const struct mcp_method *row;
};

struct mcp_method {
	const char *name;
	unsigned eras; /* bits 1 << enum mcp_era */
	void (*handle)(struct mcp_request *q);
	bool is_cached; /* its result says how long it is good: ttlMs, cacheScope */
	bool may_ask;   /* its result may be input_required */
};

extern const char *const mcp_levels[]; /* "debug" ... "emergency"; ended by NULL */

/* ---- ending a request: one of these, once; q is gone afterwards ---- */

/* The members of the result go in between. */
struct jw *mcp_result_begin(struct mcp_request *q);
void mcp_result_end(struct mcp_request *q);
/* The same with another type than "complete", which only the modern era knows. */
void mcp_result_end_as(struct mcp_request *q, const char *type);
void mcp_result_empty(struct mcp_request *q); /* {} */
void mcp_fail(struct mcp_request *q, long code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* data is JSON. */
void mcp_fail_data(struct mcp_request *q, long code, const char *text, const char *data);
/* -32021: the client has not declared this (enum tool_input | enum mcp_client). */
void mcp_fail_client(struct mcp_request *q, unsigned missing);
void mcp_drop(struct mcp_request *q); /* of one that was cancelled: no answer */
/* Needs answers of the client first: the list of asks is struct tool_ask in q's arena, in q->asks.
 * The handler is called again, with q->answers and q->state: in the legacy era when the client has
 * answered, in the modern one as another request. */
void mcp_asks(struct mcp_request *q, const char *state);

/* ---- on its way ---- */

struct jw *mcp_notice_begin(struct mcp_request *q, const char *method); /* writes params{ */
void mcp_notice_end(struct mcp_request *q);
/* Does nothing when the client gave no token. text may be NULL; total 0: not known. */
void mcp_progress(struct mcp_request *q, double at, double total, const char *text);
/* level by name; json: any value. Below the client's level nothing is told. */
void mcp_log(struct mcp_request *q, const char *level, const char *logger, const char *json);
/* Lets go of the connection; the client comes back for the rest in so many ms. Legacy only. */
void mcp_part(struct mcp_request *q, unsigned retry_ms);
bool mcp_has_progress(const struct mcp_request *q); /* the client wants to hear of it */

/* ---- what there is to offer ---- */

struct mcp_prompt {
	const char *name, *title, *about;
	const struct mcp_prompt_arg {
		const char *name, *about;
		bool is_required;
	} * args; /* ended by a NULL name; NULL: none */
	void (*get)(struct mcp_request *q, const struct mcp_prompt *p); /* answers */
};

struct mcp_listing;   /* opaque: resources.c */
struct mcp_resource { /* as lists have it */
	const char *uri, *name;
	const char *title, *about, *type; /* may be NULL */
	int64_t size;                     /* -1: not known */
};
/* Strings live as long as q does. */
void mcp_listing_add(struct mcp_listing *l, const struct mcp_resource *r);
void mcp_no_resource(struct mcp_request *q, const char *uri); /* answers: it is not there */

struct mcp_wait {         /* arena; of a request that waits until something is watched */
	struct list node; /* the kind's; removed when the request is cancelled */
	struct mcp_request *q;
	const char *uri;
};
void mcp_watched(struct mcp_wait *wait, const struct err *err); /* err NULL: it is */

struct mcp_resources {      /* of one scheme */
	const char *scheme; /* "sandbox://" */
	/* All may be NULL but read. What is there, in any order: */
	void (*list)(struct mcp_request *q, struct mcp_listing *l);
	/* Objects of resources/templates/list. */
	void (*templates)(struct mcp_request *q, struct jw *w);
	void (*read)(struct mcp_request *q, const char *uri); /* answers */
	/* What a directory holds: answers. */
	void (*read_dir)(struct mcp_request *q, const char *uri);
	/* Somebody wants to hear of changes: mcp_server_updated() from now on, as long as anybody
	 * does. 0: it sees them already; 1: mcp_watched() comes when it does, or cannot. */
	int (*watch)(struct mcp_request *q, const char *uri, struct mcp_wait *wait,
		     struct err *err);
};

struct mcp_fixtures { /* what tests add; never in what users run */
	const struct mcp_prompt *prompts;
	size_t n_prompts;
	const struct mcp_resources *resources;
	size_t n_resources;
};

struct mcp_deps { /* all borrowed, outlive the server */
	struct loop *loop;
	const struct config *config;
	struct sandboxes *sandboxes;
	struct tools *tools;
	struct skills *skills;               /* NULL: there are none */
	const struct secret *secret;         /* what requestState is sealed with */
	const struct mcp_fixtures *fixtures; /* NULL */
};

int mcp_server_create(const struct mcp_deps *deps, struct mcp_server **ret, struct err *err);
struct mcp_server *mcp_server_free(struct mcp_server *s); /* takes NULL, returns NULL */
CLEANUP_FUNC(struct mcp_server *, mcp_server_free)

enum mcp_change {
	MCP_CHANGE_TOOLS = 1 << 0,
	MCP_CHANGE_PROMPTS = 1 << 1,
	MCP_CHANGE_RESOURCES = 1 << 2,
};
/* Tells everybody who wants to know. */
void mcp_server_changed(struct mcp_server *s, enum mcp_change what);
/* Skills are others now: their names stand in a tool's description, too. */
void mcp_skills_changed(struct mcp_server *s);
/* To those of this owner who subscribed to it. */
void mcp_server_updated(struct mcp_server *s, const char *owner, const char *uri);
/* To those who listen, whose filter's list `filter` names `value`, and who may() hear of it:
 * write() writes the members of the notification's params. Modern only. */
struct mcp_notice {
	const char *filter, *value, *method;
	bool (*may)(const void *user, const struct mcp_request *q);
	void (*write)(void *user, struct jw *w);
	void *user;
};
void mcp_server_tell(struct mcp_server *s, const struct mcp_notice *n);

/* The door: the api's deps.mcp is the server behind it. */
struct api_door;
extern const struct api_door mcp_door;
