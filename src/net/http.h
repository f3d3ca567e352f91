/* The HTTP/1.1 server: connections in, requests to one handler, answers out. Strict by default:
 * what two servers could read differently is refused (see http1.h), every count, size and time has
 * a limit. All functions belong to the loop's thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct arena;
struct err;
struct loop;
struct str;
struct tls; /* tls.h */

struct http_server;  /* opaque */
struct http_request; /* opaque */

/* A field that is 0 means its default, never "no limit". */
struct http_limits {
	size_t line_max;       /* request line; 8 KiB */
	size_t head_max;       /* all of the head, and of trailers; 32 KiB */
	unsigned headers_max;  /* 100 */
	size_t arena_max;      /* http_arena(); 4 MiB */
	size_t drain_max;      /* body that nobody took, read away to keep the connection; 64 KiB */
	size_t pending_max;    /* output a client has not taken yet; 16 MiB */
	unsigned conns_max;    /* the one that has been quiet the longest gives way to a further
				  client, which gets 503 when none is; 4096 */
	unsigned handshake_ms; /* TLS; 10 s */
	unsigned head_ms;      /* from the first byte of a head to its end; 10 s */
	unsigned idle_ms;      /* between requests; 75 s */
	unsigned body_ms;      /* without a byte of a body that is wanted; 30 s */
	unsigned whole_ms;     /* from a head's end to the body's, while more is wanted; 1 h */
	unsigned write_ms;     /* output that makes no progress; 60 s */
	unsigned linger_ms;    /* after an early answer, for the client to stop sending; 2 s */
};

#define HTTP_CORS_HEADERS                                                                    \
	"Authorization, Content-Type, Last-Event-ID, X-API-Key, X-Request-Id, traceparent, " \
	"tracestate"
#define HTTP_CORS_EXPOSE "X-Request-Id, traceparent"

/* Cross-origin access for browsers. */
struct http_cors {
	const char *const *origins; /* "https://a.example", NULL-terminated; "*" is any */
	bool credentials;           /* refused together with "*" */
	const char *methods;        /* of a preflight; NULL: GET, HEAD, POST, PUT, PATCH, DELETE */
	const char *headers;        /* request headers that are allowed; NULL: HTTP_CORS_HEADERS */
	const char *expose; /* answer headers that scripts may read; NULL: HTTP_CORS_EXPOSE */
	unsigned max_age_s; /* a preflight is good for; 0: 600 */
};

struct http_server_options {
	struct http_limits limits;
	/* A request's head is complete, nothing of its body has been taken. Answer now or later. */
	void (*handle)(void *user, struct http_request *r);
	/* May be NULL. A request is over, bad ones included (method and path may be ""). status is
	 * 499 when the client went away before an answer; bytes are those of the answer's body. The
	 * request's headers and arena are still there. */
	void (*done)(void *user, const struct http_request *r, int status, uint64_t bytes,
		     uint64_t took_us);
	/* May be NULL. A request broke a rule or a limit before it was answered: answers in the
	 * words of its protocol, by http_reply(); false: http_reply_error() does. Its gone callback
	 * has been called; what it has in http_user() is still there, or nothing is when its head
	 * was never handled. */
	bool (*refuse)(void *user, struct http_request *r, int status, const char *message);
	/* May be NULL. There were as many connections as there may be: one that nobody used was
	 * closed for a new one, or (is_refused) the new one was turned away. */
	void (*crowded)(void *user, bool is_refused);
	void *user;
	const struct http_cors *cors; /* borrowed; NULL: no cross-origin access */
};

int http_server_create(struct loop *l, const struct http_server_options *o,
		       struct http_server **ret, struct err *err);
/* Cuts all connections (their gone callbacks are called) and listens no more. Not from within a
 * request's callback. Takes NULL. */
void http_server_close(struct http_server *s);
/* The same if that has not been done, and forgets requests that nobody has answered: whoever could
 * still answer one is freed between the two. Takes NULL. */
struct http_server *http_server_free(struct http_server *s);
/* "127.0.0.1:8765", "[::1]:8765", "localhost:0", ":8765" (all addresses), "unix:/path" (mode 0600,
 * a socket nobody listens on is replaced). tls (borrowed) may be NULL. May be called several
 * times. Returns the bound port (0 for unix:) or -errno. */
int net_listen(struct http_server *s, const char *addr, struct tls *tls, struct err *err);
/* The same in two steps, where the right to have the address goes in between: the socket or -errno;
 * the second takes it, also on failure. */
int net_bind(const char *addr, struct err *err);
int net_listen_on(struct http_server *s, int fd, struct tls *tls, struct err *err);
/* Stops listening, closes idle connections and those whose answer ends, cuts what is left after
 * max_ms (WebSockets are told 1001 at once), then calls drained(), from which the server may be
 * freed. */
void http_server_drain(struct http_server *s, uint64_t max_ms, void (*drained)(void *user),
		       void *user);
unsigned http_server_connections(const struct http_server *s);

/* A request lives until its answer has ended (http_reply, http_end, http_abort) or its gone
 * callback has returned; do not touch it afterwards. Without a gone callback it stays until it is
 * answered, even when the client has left: answers then go nowhere. */
const char *http_method(const struct http_request *r);
const char *http_path(const struct http_request *r);         /* raw, still percent-encoded */
const char *http_query_string(const struct http_request *r); /* raw; "" when there is none */
/* The decoded value of the first parameter of that name: 1 and *ret in the arena; 0 when absent;
 * -EINVAL for a bad escape or %00; -ENOMEM. */
int http_query(struct http_request *r, const char *name, const char **ret);
/* All parameters in order. *rest starts as str_of(http_query_string(r)). 1, 0 at the end, or as
 * above. */
int http_query_next(struct http_request *r, struct str *rest, const char **ret_name,
		    const char **ret_value);
/* Case-insensitive; NULL when absent, the first when repeated. Repeated headers: index 0, 1, ... */
const char *http_header(const struct http_request *r, const char *name);
const char *http_header_at(const struct http_request *r, unsigned index, const char **ret_name);
struct arena *http_arena(struct http_request *r);    /* never NULL */
const char *http_peer(const struct http_request *r); /* "127.0.0.1", "::1", "unix" */
bool http_is_tls(const struct http_request *r);
const char *http_request_id(const struct http_request *r); /* ours; sent as X-Request-Id */
/* The client's X-Request-Id if it is 1 to 128 of [A-Za-z0-9._:-], else NULL; it is sent back as
 * X-Client-Request-Id. */
const char *http_client_request_id(const struct http_request *r);
#define HTTP_USER_SLOTS 4
void *http_user(const struct http_request *r, unsigned slot);
void http_user_set(struct http_request *r, unsigned slot, void *p);
struct loop *http_loop(const struct http_request *r);
unsigned http_connections(const struct http_request *r); /* of its server, this one included */

/* The client has gone before the answer ended: called once, at the latest moment to forget r. When
 * it had gone already, that is the end of this turn of the loop. */
void http_on_gone(struct http_request *r, void (*gone)(void *user, struct http_request *r),
		  void *user);

/* Body. At most one of collect and stream; neither calls back before it returns. A client that
 * waits for "100 Continue" is answered here. When nobody takes a body, drain_max bytes of it are
 * read away behind the answer, and above that the connection closes. */
int64_t http_body_length(const struct http_request *r); /* 0: none, -1: not known (chunked) */
/* All of it in memory (NUL behind it, not counted), borrowed until the request is over. Above max
 * the client gets 413 (by the server's refuse()) and got() is not called; nor when the client goes
 * away on the way (the request is then over; http_on_gone tells). */
void http_body_collect(struct http_request *r, size_t max,
		       void (*got)(void *user, struct http_request *r, const char *data, size_t n),
		       void *user);
struct http_body_ops {
	void (*data)(void *user, struct http_request *r, const char *data, size_t n);
	void (*end)(void *user, struct http_request *r);
	/* Instead of end: the client went away or broke the rules. The request is over when it
	 * returns (after http_on_gone's, if that was set). */
	void (*gone)(void *user, struct http_request *r);
};
void http_body_stream(struct http_request *r, const struct http_body_ops *ops, void *user);
/* No data() or end() while paused; the client is held back by its full socket. */
void http_body_pause(struct http_request *r, bool on);

/* Answers. Date, X-Request-Id, Content-Length and Connection are added by themselves; HEAD and
 * status 204 and 304 go without a body. */
/* Before http_reply or http_begin. -EINVAL for a bad name or a value with control characters;
 * -ENOMEM, -E2BIG. */
int http_header_add(struct http_request *r, const char *name, const char *value);
void http_header_clear(struct http_request *r); /* forgets those that were added */
/* The whole answer; data is copied. content_type may be NULL when n is 0. */
void http_reply(struct http_request *r, int status, const char *content_type, const void *data,
		size_t n);
/* {"error":{"code":...,"message":...,"details":null}} */
void http_reply_error(struct http_request *r, int status, const char *code, const char *message);
/* An answer in pieces. length -1: not known (chunked). */
void http_begin(struct http_request *r, int status, const char *content_type, int64_t length);
/* Copies, sends at the end of the loop's turn. Bytes the client has not taken yet, or -EPIPE when
 * it has gone, or -ENOBUFS above pending_max (the connection is then cut). */
ssize_t http_write(struct http_request *r, const void *data, size_t n);
size_t http_pending(const struct http_request *r);
/* Called each time the pending bytes have fallen to low_water or below from above it. */
void http_on_drain(struct http_request *r, size_t low_water,
		   void (*drained)(void *user, struct http_request *r), void *user);
void http_end(struct http_request *r);
void http_abort(struct http_request *r);  /* resets the connection: the answer is incomplete */
const char *http_status_text(int status); /* "Not Found"; "Unknown" */
