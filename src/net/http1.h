/* HTTP/1.1 requests, or answers, from bytes, sans-I/O: bytes in, events out. llhttp without any
 * leniency, and our rules on top: HTTP/1.1 only, one Host, one Content-Length of plain digits or
 * exactly "Transfer-Encoding: chunked", never both, no control characters, limits on every size and
 * count. What two servers could read differently is refused, for that is how requests are smuggled.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct http_limits;
struct http1; /* opaque */

struct http1_field {
	const char *name, *value;
};

/* Text is NUL-terminated and has no NUL inside; it stays until the next message's first byte. */
struct http1_head {
	int status; /* of an answer; 0: a request */
	const char *method;
	const char *path;  /* begins with '/', or is "*" */
	const char *query; /* without the '?'; "" when there is none */
	const struct http1_field *fields;
	unsigned count;
	int64_t body_length; /* 0: none, -1: chunked; of an answer as announced, also when none
				follows (to HEAD), -1: chunked or up to the connection's end */
	bool keep_alive;
	bool expects_continue;
	bool is_absolute; /* the target was "http://host/path", and the Host header says the same */
};

enum http1_event {
	HTTP1_MORE, /* all bytes are taken, nothing to tell yet */
	HTTP1_HEAD, /* http1_head() is there */
	HTTP1_DATA, /* a piece of the body */
	HTTP1_END,  /* the request is complete; the next call begins another */
	HTTP1_BAD,  /* http1_status() and http1_reason() say why; for ever */
};

/* limits (line_max, head_max, headers_max) is borrowed. NULL without memory. */
struct http1 *http1_create(const struct http_limits *limits);
/* For the other side: answers, of HTTP/1.0 too. An interim one (1xx) is a message of its own, and
 * behind a 101 the bytes are not ours any more. */
struct http1 *http1_create_answers(const struct http_limits *limits);
/* Requests to a proxy: also of HTTP/1.0, and CONNECT, whose path is "host:port". */
struct http1 *http1_create_proxy(const struct http_limits *limits);
/* Before each answer's first byte: whether it is one to HEAD. */
void http1_expect(struct http1 *p, bool is_head);
/* The connection has ended: HTTP1_END when the answer ends by that, HTTP1_MORE between two, else
 * HTTP1_BAD. */
enum http1_event http1_finish(struct http1 *p);
struct http1 *http1_free(struct http1 *p);

/* Takes bytes from the front of *data up to the next event. *ret_body (DATA) points into them. Call
 * again, also without bytes, until MORE. */
enum http1_event http1_next(struct http1 *p, const char **data, size_t *n, struct str *ret_body);
const struct http1_head *http1_head(const struct http1 *p);
const char *http1_header(const struct http1_head *h, const char *name); /* the first, or NULL */
/* No byte of a next request has come. */
bool http1_is_idle(const struct http1 *p);
int http1_status(const struct http1 *p);         /* 400, 413, 414, 417, 431, 501, 505, 500 */
const char *http1_reason(const struct http1 *p); /* a sentence for the client */
