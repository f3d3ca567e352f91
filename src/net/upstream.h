/* The client's side of HTTP/1.1 over a connection that somebody else has made: a request out, its
 * answer in, one after the other. What the server at the other end sends is not trusted: heads and
 * their counts are bounded, whatever is not strict HTTP ends the connection. All of it is parsed
 * and told in pieces, so that whoever passes it on writes it anew. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct http1_head;
struct http_limits;
struct loop;
struct upstream; /* opaque */

struct upstream_ops { /* upstream_free() may be called from any of them */
	/* Of the answer; borrowed. Status 200 and above, or 101: from there on data() has the bytes
	 * as they come, and upstream_write() sends them so. */
	void (*head)(void *user, const struct http1_head *head);
	void (*data)(void *user, const char *data, size_t n);
	/* The answer is complete. can_reuse: so is the request, and another may follow. After a
	 * 101: the server will send no more. */
	void (*end)(void *user, bool can_reuse);
	void (*drained)(void *user); /* as sock.h's */
	/* Instead of end(): -ECONNRESET (it was closed or broke on the way), -EPROTO (not HTTP).
	 * why: a few words, borrowed. */
	void (*failed)(void *user, int code, const char *why);
};

#define UPSTREAM_INTERIM_MAX 16 /* 1xx answers in front of one */

/* Takes fd, also on failure. limits (head_max, headers_max) are borrowed. */
int upstream_create(struct loop *l, int fd, const struct http_limits *limits,
		    struct upstream **ret);
struct upstream *upstream_free(struct upstream *u);
/* head: the whole of it, as it is sent. */
int upstream_begin(struct upstream *u, const struct upstream_ops *ops, void *user, bool is_head,
		   const void *head, size_t n);
/* A piece of the request's body, with its chunk's frame when chunked. */
int upstream_write(struct upstream *u, const void *data, size_t n, bool chunked);
void upstream_write_end(struct upstream *u, bool chunked); /* the request is complete */
size_t upstream_pending(const struct upstream *u);
uint64_t upstream_bytes(const struct upstream *u); /* both ways, of all requests */
void upstream_pause(struct upstream *u, bool on);
void upstream_shutdown(struct upstream *u); /* of a 101: we will send no more */
/* Nothing has come since upstream_begin(). */
bool upstream_is_silent(const struct upstream *u);
/* Between two requests: lost() when the server closes it or says something unasked. */
void upstream_rest(struct upstream *u, void (*lost)(void *user), void *user);
