/* The inside of the server: sessions, streams, requests under way. Shared by the files of mcp/. */
#pragma once

#include "base/buf.h"
#include "mcp/server.h"
#include "sandbox/sandbox.h"

struct call_stream;
struct http_request;
struct loop_timer;
struct map;
struct sse;

#define MCP_BODY_MAX (4u << 20)          /* bytes of one message */
#define MCP_BATCH_MAX 32u                /* messages of one batch */
#define MCP_SESSIONS_MAX 4096u           /* of all clients */
#define MCP_SESSIONS_OWNER_MAX 1024u     /* of one owner */
#define MCP_SESSION_IDLE_MS 1800000u     /* without a request or a stream */
#define MCP_BOX_KEEP_MS (24u * 3600000u) /* the sandbox of a session that has ended */
#define MCP_BOX_LOOK_MS 5000u            /* between two looks at those */
#define MCP_REQUESTS_MAX 256u            /* under way, of one session or of one owner without */
#define MCP_REQUESTS_OWNER_MAX 1024u     /* of one owner */
#define MCP_SUBSCRIPTIONS_MAX 64u        /* of one session or stream */
#define MCP_SUBSCRIPTIONS_OWNER_MAX 1024u
#define MCP_KEPT_STREAMS_MAX 16u  /* of one session, answered and kept for who comes back */
#define MCP_KEPT_BYTES (1u << 20) /* of one session */
#define MCP_KEPT_ALL (64u << 20)  /* of all of them */
#define MCP_ANSWER_WAIT_MS 1000u  /* until an answer in one piece becomes a stream */
#define MCP_TTL_MS 60000u         /* how long lists are good for */
#define MCP_STATE_MS 600000u      /* how long a client may take to answer what it was asked */
#define MCP_SESSION_ID_MAX 120u

struct mcp_event { /* a message of a stream, kept */
	struct list node;
	uint64_t number;
	size_t len;
	char text[];
};

struct mcp_stream {
	struct list node; /* in its session's streams, or the server's loose ones */
	struct mcp_server *server;
	struct mcp_session *session; /* NULL: modern */
	struct http_request *http;   /* NULL: nobody is connected */
	struct sse *sse;             /* NULL: not begun */
	struct call_stream *watch;   /* of the connection; NULL: none */
	uint32_t number;             /* in its session: the first part of event ids */
	uint64_t n_events;           /* so many were sent: the second part */
	struct list events;          /* struct mcp_event: kept for replay; legacy */
	size_t kept;                 /* bytes of these */
	unsigned n_open;             /* requests that are not answered yet */
	bool takes_sse;              /* the client does */
	bool is_batch;
	bool is_common;    /* what the server says by itself: GET */
	bool is_resumable; /* the client was given an event's id */
	uint64_t since_ms; /* open since, or without a client since */
};

struct mcp_session {
	struct list node;
	unsigned refs; /* requests; and one of the server while it is known */
	struct mcp_server *server;
	char id[MCP_SESSION_ID_MAX + 1];
	char home[SANDBOX_NAME_MAX + 1];
	char owner[OWNER_MAX + 1];
	char box_id[ID_LEN + 1];
	const char *version; /* of the protocol: one of mcp_versions */
	unsigned client;     /* enum tool_input | enum mcp_client */
	int log_level;
	bool is_known;    /* false: it has ended */
	bool has_own_box; /* named `home`; else it works in its key's */
	uint64_t used_ms;
	uint32_t n_streams;        /* so many there have been */
	struct list streams;       /* struct mcp_stream */
	size_t kept;               /* bytes of all their events */
	unsigned n_kept;           /* streams that are answered and kept */
	struct mcp_stream *common; /* of GET; NULL: never opened */
	uint64_t n_asked;          /* questions to the client so far: their ids */
	char **uris;               /* owned: subscribed to */
	size_t n_uris;
};

struct mcp_server {
	struct mcp_deps deps;
	struct list requests; /* struct mcp_request */
	struct list sessions; /* struct mcp_session */
	size_t n_sessions, n_requests;
	struct map *by_id;                 /* owned: session id -> struct mcp_session */
	struct map *ended;                 /* owned: ids of sessions that have ended -> anything */
	struct list loose;                 /* struct mcp_stream: of requests without a session */
	struct list tasks;                 /* struct mcp_task, oldest first: task.h */
	struct list watches, watched_dirs; /* of files in sandboxes: box_watch.c */
	uint64_t swept_ms;                 /* when watches were last looked through */
	uint64_t boxes_ms;                 /* when sandboxes of ended sessions were */
	size_t kept;
	struct loop_timer *tick; /* owned */
	struct buf out;          /* the message that is being written */
	struct jw w;             /* of out */
	bool is_closing;         /* a handler that is cancelled drops its request at once */
};

/* ---- server.c ---- */

struct mcp_call { /* what a door knows of a message */
	const struct principal *who;
	const char *base;            /* see struct tool_call */
	const char *box_id;          /* "" */
	struct mcp_session *session; /* NULL: modern */
	struct mcp_stream *stream;
	enum mcp_era era;
	const char *version;
	unsigned client;
	int log_level;
};

/* A request begins: it is answered on its stream, whatever happens. Takes the document. */
void mcp_begin(struct mcp_server *s, const struct mcp_call *c, struct jv_doc *doc,
	       const struct rpc_message *m);
/* The client does not want it any more. */
void mcp_cancel(struct mcp_request *q);
/* It is over: lets go of everything. */
void mcp_request_free(struct mcp_request *q);
const struct mcp_method *mcp_method_find(const char *name, enum mcp_era era);
/* Of a capabilities object: enum tool_input | enum mcp_client. */
unsigned mcp_client_of(struct jv capabilities);
/* {"elicitation":{},...}: what `missing` (enum tool_input, mcp_client) is called. */
void mcp_client_names(struct jw *w, unsigned missing);
void mcp_capabilities(struct mcp_server *s, enum mcp_era era, const char *version, struct jw *w);
void mcp_server_info(struct jw *w);      /* {"name","title","version"} */
extern const char *const mcp_versions[]; /* of the legacy era, newest first; ended by NULL */
int mcp_level_from(const char *name);    /* -1 */
unsigned mcp_wants_of(struct jv filter); /* enum mcp_change */
void mcp_wants_write(struct jw *w, unsigned wants);

/* ---- resources.c ---- */

/* Somebody wants to hear of changes of what its filter names, until it is over: then() comes, now
 * or later, when all of it is watched that can be. */
void mcp_watch_listed(struct mcp_request *q, void (*then)(struct mcp_request *q));
bool mcp_request_has(const struct mcp_request *q, const char *uri); /* among its uris */
/* Whether its owner may subscribe to so many more. */
bool mcp_may_subscribe(const struct mcp_request *q, size_t more);

/* ---- stream.c ---- */

/* Takes the request: from now on its gone callback is the stream's. NULL without memory. */
struct mcp_stream *mcp_stream_open(struct mcp_server *s, struct mcp_session *session,
				   struct http_request *http, bool takes_sse);
/* A message that is not the last: makes a stream of the answer. */
void mcp_stream_send(struct mcp_stream *t, const char *text, size_t n);
/* The answer of one of its requests; code: of its error, or 0. With the last, the stream is gone or
 * kept. */
void mcp_stream_answer(struct mcp_stream *t, const char *text, size_t n, long code);
void mcp_stream_drop(struct mcp_stream *t); /* one of its requests gets no answer */
/* Whether its answer can be told, again or yet, to who has seen events up to `seen`. */
bool mcp_stream_has(const struct mcp_stream *t, uint64_t seen);
/* The client is back, on another connection, and has seen events up to `seen`. */
void mcp_stream_resume(struct mcp_stream *t, struct http_request *http, struct call_stream *watch,
		       uint64_t seen);
void mcp_stream_cut(struct mcp_stream *t); /* whoever opened it may not any more */
/* Lets go of the client, who is to come back in so many ms. */
void mcp_stream_part(struct mcp_stream *t, unsigned retry_ms);
void mcp_stream_free(struct mcp_stream *t); /* cuts its client off */
void mcp_streams_tick(struct mcp_server *s, struct list *streams, uint64_t now_ms);

/* ---- session.c ---- */

struct mcp_session_wish {
	unsigned client;  /* enum tool_input | enum mcp_client */
	bool has_own_box; /* wants a sandbox of its own */
};
int mcp_session_create(struct mcp_server *s, const struct principal *who, const char *box_id,
		       const char *version, const struct mcp_session_wish *wish,
		       struct mcp_session **ret, struct err *err);
/* By its id, also of an earlier life of this process; NULL: there is none for this caller. */
struct mcp_session *mcp_session_find(struct mcp_server *s, const char *id,
				     const struct principal *who, const char *box_id);
/* The client has said so. A sandbox of its own is stopped, and kept for MCP_BOX_KEEP_MS, when he
 * may do that. */
void mcp_session_end(struct mcp_session *n, const struct principal *by);
void mcp_session_forget(struct mcp_session *n); /* memory only */
struct mcp_session *mcp_session_ref(struct mcp_session *n);
void mcp_session_unref(struct mcp_session *n);
void mcp_sessions_tick(struct mcp_server *s, uint64_t now_ms);
/* Deletes sandboxes of ended sessions whose while is over; now and then. */
void mcp_session_boxes_tick(struct mcp_server *s, int64_t wall_ms);
struct mcp_stream *mcp_session_stream(struct mcp_session *n, const char *event_id,
				      uint64_t *ret_seen); /* NULL */
/* -EAGAIN: too many; -ENOMEM. */
int mcp_session_subscribe(struct mcp_session *n, const char *uri, bool on);
bool mcp_session_has(const struct mcp_session *n, const char *uri);

/* ---- ask.c ---- */

/* "inputRequests": what is asked, by key; struct tool_ask. */
void mcp_asks_write(struct jw *w, const struct list *asks);
/* An answer of a client to what it was asked. */
void mcp_answered(struct mcp_session *n, const struct rpc_message *m);

/* ---- state.c ---- */

/* What the client brings back, sealed: it is for this request of this owner, and for a while. */
int mcp_state_seal(const struct mcp_request *q, const char *state, struct buf *ret);
/* arena. -EINVAL: it is not ours, too old, or of something else. */
int mcp_state_open(struct mcp_request *q, const char *text, const char **ret);

/* ---- head.c ---- */

struct mcp_head { /* what the head of a modern request says */
	const char *version, *method, *name;
	const struct http_request *http; /* for Mcp-Param-... ; NULL */
};
/* Checks head and _meta of a modern message, and fills in what it says of the client. 0, or the
 * error's code, with its text and data (arena; JSON or NULL). */
struct mcp_said {
	unsigned client;
	int log_level;
};
long mcp_head_check(struct mcp_server *s, const struct mcp_head *h, const struct rpc_message *m,
		    bool is_bound, struct arena *a, struct mcp_said *ret, const char **ret_text,
		    const char **ret_data);
/* "=?base64?...?=" or as it is; NULL: not well-formed. */
const char *mcp_head_decode(const char *value, struct arena *a);
