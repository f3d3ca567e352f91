/* One request on its way through the api, and what every handler needs of it.
 *
 * A call lives in its request's arena: until the answer has ended, or, for those that listen to
 * http_on_gone(), until that has returned. A handler that does not listen may answer later from any
 * callback: the request waits, also for a client that has left.
 *
 * Functions that return false have answered already: the handler just returns. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/api.h"
#include "api/call_trace.h"
#include "api/cursor.h"
#include "api/door.h"
#include "api/open_calls.h"
#include "api/recent.h"
#include "auth/principal.h"
#include "base/buf.h"
#include "base/list.h"
#include "net/router.h"
#include "sandbox/build.h"

struct api_door;
struct api_route;
struct buckets;
struct buf;
struct jw;
struct loop_timer;
struct proxies;
struct rate_limit;
struct sandbox;

#define CALL_STREAMS_MAX 64u /* open streams (SSE, WebSocket, watches) of one sandbox */

struct api {
	struct api_deps deps;
	struct router *router;                      /* owned */
	struct router *door_routers[API_DOORS_MAX]; /* owned: of deps.doors */
	struct rate_limit *failures;                /* owned: failed authentications by peer */
	struct buckets *buckets;                    /* owned: what keys have asked of late */
	struct open_calls *open_calls;              /* owned: what is under way */
	struct list streams;                        /* struct call_stream: open ones */
	struct list writes;          /* struct key_write: on their way to the store */
	struct list user_writes;     /* struct user_write, the same */
	struct list leadings;        /* struct leading of server_way.c: on their way out */
	struct list orphans;         /* struct run of stream.c: started, and their socket is gone */
	struct list feeds;           /* struct feed: texts on their way to a standard input */
	struct loop_timer *used;     /* owned: looks at keys now and then */
	struct loop_timer *overstay; /* owned: looks at streams */
	struct buf openapi;          /* the document, once it was asked for */
	struct ready *ready;         /* owned: what is known about the store's health */
	struct proxies *proxies;     /* owned: requests on their way to ports of sandboxes */
	struct list installs;        /* struct install of packages.c */
	struct list networks;        /* struct network of network.c */
	struct build_network build_network; /* build_way.c */
	struct list package_ways;           /* struct build_way: of those who are no builds */
	struct recent signers;              /* whose token of envd was given out or used */
	bool has_signers;                   /* those of before this start are among them */
};

/* The target as the head of the request names it (headers, host name): says which door it is for,
 * and whose token an authenticator has to look for. Anybody can write anything there. */
struct call_claim {
	char box_id[ID_LEN + 1]; /* "": none, or none that can be */
	uint16_t port;
	bool is_for_box; /* for what is in the sandbox, and not for the control plane */
};

struct api_call {
	struct api *api;
	struct http_request *http;
	const struct api_route *route; /* NULL: none was found */
	const struct api_door *door;   /* NULL: our own */
	struct call_claim claim;
	struct router_match match;
	/* Who asks: verified, and written by call_auth.c alone. Of a public route: nobody, without
	 * any scope. Never NULL. */
	const struct principal *who;
	/* Where the path names no sandbox, the one that it is about: the caller's token's, or one
	 * that the server has found. Never from the request's head. */
	const char *box_id;
	bool has_woken;  /* that sandbox stood still, and was woken for this */
	void *body;      /* arena: the struct of the route's body table; zeroed without a body */
	bool has_waited; /* for a token's key: it does so once */
	bool is_foreign; /* what it asked for is another owner's */
	struct call_trace trace;
	char tool[64];             /* of MCP: which was called; "": none */
	char subject[64];          /* id of what it made; "": the path says what it is about */
	struct open_owner *opened; /* open_calls.h: whose share it takes; NULL: nobody's */
	struct open_as opened_as;
	int audit_place; /* while it is under way: 1 and its place; 0: none */
	bool is_over;    /* its end is noted: what begins now would never end */
};

const char *call_param(const struct api_call *c, const char *name); /* never NULL */
/* Whose objects the caller may see; NULL: everybody's. */
const char *call_owner(const struct api_call *c);
/* The live sandbox that the path names, by id or name; NULL after 404. Another owner's is 404 too:
 * nobody learns that it exists. Borrowed for this turn of the loop. */
struct sandbox *call_sandbox(struct api_call *c);
/* The same, but NULL without an answer. */
struct sandbox *call_find_sandbox(struct api_call *c);
/* The live sandbox of this id or name that the caller may reach, or NULL; the two above find theirs
 * by this. */
struct sandbox *call_look_up(struct api_call *c, const char *id);
/* Whether what is asked wakes the path's sandbox first: go() comes when it is awake, or the call is
 * answered. False: nothing has to be waited for. */
bool call_wakes(struct api_call *c, void (*go)(struct api_call *c));
/* Whether the path names the sandbox that the caller's token is bound to. */
bool call_is_within(const struct api_call *c);

/* What our addresses begin with, as clients reach us: "https://holt.example". In the arena; NULL
 * without memory. */
const char *call_base(struct api_call *c);

/* Query parameters. Absent ones leave *ret as it is. Each has a row in the route's table
 * (queries.c), whose bounds were checked before the handler was called; one without a row is a 500.
 */
bool call_query(struct api_call *c, const char *name, const char **ret);
bool call_query_bool(struct api_call *c, const char *name, bool *ret);
bool call_query_u64(struct api_call *c, const char *name, uint64_t *ret);
bool call_query_ms(struct api_call *c, const char *name, uint64_t *ret_ms);

/* ?cursor=; absent leaves *ret as it is: a zeroed one is from the newest on. */
bool call_query_cursor(struct api_call *c, struct cursor *ret);
/* "nextCursor": behind the last of the page; null without more. */
void call_write_cursor(struct jw *w, bool more, int64_t before_ms, const char *before_id);

/* Whether the client's Accept header names this type. */
bool call_accepts(const struct api_call *c, const char *type);

/* What it has made, for the audit log. */
void call_set_subject(struct api_call *c, const char *id);
/* Ends the writer and the request. A large answer takes the writer's buffer over. Of 201 and 202
 * the "id" (or what such objects are named by) is the call's subject. */
void call_reply(struct api_call *c, int status, struct jw *w);
void call_reply_empty(struct api_call *c); /* 204 */

/* Streams are counted: each sandbox has CALL_STREAMS_MAX. They end with the key that opened them:
 * who was shut out must not go on by what is open. */
struct call_stream {
	struct list node;
	struct api *api;
	const char *kind; /* "sse", "ws", "port": for metrics; NULL while not begun */
	/* Ends it, now or soon, and no other stream. */
	void (*cut)(struct call_stream *s);
	char sandbox_id[64]; /* "": it is not counted */
	char key_id[ID_LEN + 1];
	char bound_id[ID_LEN + 1]; /* of a token of one sandbox: ends with it; "" */
	char owner[OWNER_MAX + 1];
	int64_t expires_ms; /* of a token */
};
/* Asked before something is started for a stream: who is refused may try again, and it must not run
 * twice by that. 401, 429 */
bool call_stream_may_begin(struct api_call *c, const char *sandbox_id);
/* The caller has filled in cut. 401, 429 */
bool call_stream_begin(struct api_call *c, struct call_stream *s, const char *kind,
		       const char *sandbox_id);
/* The same for what is not counted, such as a request to a port. One without a key is `owner`'s,
 * and ends when that user is shut out. */
void call_stream_watch(struct api_call *c, struct call_stream *s, const char *kind,
		       const char *owner);
void call_stream_end(struct call_stream *s); /* also one that was not begun */
void call_streams_check(struct api *api);    /* cuts those whose key is not good any more */
#define CALL_KEY_ENDED "the API key is not valid any more"
