/* Requests to one server over HTTP/1.1, by libcurl: verified TLS, time limits, bounded answers, no
 * redirects. Any number may be under way; httpc_turn() moves them, together with the caller's own
 * descriptors. One thread. */
#pragma once

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/cleanup.h"

struct err;
struct guard_nets;
struct httpc;       /* opaque: an address, a key, kept connections */
struct httpc_call;  /* opaque: one request under way */
struct httpc_group; /* opaque: clients of several servers whose requests are moved together */

#define HTTPC_NO_LIMIT UINT32_MAX
#define HTTPC_ANSWER_MAX (64u << 20) /* of a collected answer that was given no max */

struct httpc_options {
	const char *url;     /* as url_parse() takes it */
	const char *key;     /* sent as a bearer token; NULL: none */
	const char *ca_file; /* certificates to trust (PEM); NULL: the system's */
	uint32_t connect_ms; /* 0: 10 s */
	bool public_only;    /* addresses of the public internet only, and no proxy: guard.h */
	const struct guard_nets *closed; /* none of these either, and no proxy; borrowed, NULL */
	/* Addresses that the server's name has, as "host:port:address,address"; NULL: libcurl looks
	 * it up, on a thread for each request. */
	const char *addresses;
	struct httpc_group *group; /* borrowed, outlives it; NULL: one of its own */
};

struct httpc_group *httpc_group_create(void); /* NULL without memory */
/* No client may be left. Takes NULL, returns NULL. */
struct httpc_group *httpc_group_free(struct httpc_group *g);

/* Everything is copied. -EINVAL says what is wrong with the address or the key. */
int httpc_create(const struct httpc_options *o, struct httpc **ret, struct err *err);
/* No call may be left. Takes NULL, returns NULL. */
struct httpc *httpc_free(struct httpc *c);
CLEANUP_FUNC(struct httpc *, httpc_free)
const char *httpc_url(const struct httpc *c); /* as it was given */

enum { HTTPC_HOLD = 1 };

struct httpc_request {
	const char *method;         /* borrowed until the call is over, as is all that follows */
	const char *target;         /* "/api/v1/...", encoded, with its query */
	const char *accept;         /* type that an answer must have; NULL: any */
	const char *const *headers; /* further ones, "Name: value", NULL-terminated; or NULL */
	const char *type;           /* of the body */
	const void *body;           /* NULL: none */
	size_t body_len;
	/* The body piece by piece instead: bytes put into dst, 0 at the end, or -errno. */
	ssize_t (*read)(void *user, void *dst, size_t n);
	int64_t read_size; /* of all of it; -1: not known */
	/* The head of the answer is there, whatever it says; its body may take its time. May be
	 * NULL. */
	void (*head)(void *user);
	/* The body of a successful answer as it comes: 0, -errno, or HTTPC_HOLD to get the same
	 * bytes again after httpc_resume(). NULL: it is collected. */
	int (*data)(void *user, const void *data, size_t n);
	void *user;
	size_t max;          /* bytes of a collected answer; 0: HTTPC_ANSWER_MAX */
	uint32_t timeout_ms; /* for all of it; 0: 120 s */
	uint32_t stall_ms;   /* without a byte either way, in whole seconds; 0: 60 s */
};

struct httpc_answer {
	int status;
	struct buf body; /* the caller's: buf_done() */
};

int httpc_begin(struct httpc *c, const struct httpc_request *req, struct httpc_call **ret,
		struct err *err);
/* Waits until something happens or the time is over (-1: none), and moves what can be moved. Fills
 * revents of `fds`, whose negative descriptors are passed over. */
int httpc_turn(struct httpc *c, struct pollfd *fds, size_t n, int timeout_ms, struct err *err);
/* The same for all requests of a group. */
int httpc_group_turn(struct httpc_group *g, struct pollfd *fds, size_t n, int timeout_ms,
		     struct err *err);
bool httpc_is_over(const struct httpc_call *call);
void httpc_resume(struct httpc_call *call);
int64_t httpc_size(const struct httpc_call *call); /* of the answer's body; -1: not told (yet) */
/* How a call that is over went. 0 with a 2xx answer. Otherwise: the answer's problem (problem.h),
 * what a callback returned, or of the connection: -ECONNREFUSED (also: no such socket),
 * -EHOSTUNREACH, -ETIMEDOUT, -ECONNRESET, -EKEYREJECTED (TLS), -EFBIG, -EIO.
 * ret may be NULL; its status is set in any case (0: there was no answer). */
int httpc_result(struct httpc_call *call, struct httpc_answer *ret, struct err *err);
/* A header of the answer, once its body has begun or the call is over; NULL: it has none. Borrowed
 * until the next of these. */
const char *httpc_header(struct httpc_call *call, const char *name);
/* All lines of that name, joined by commas; owned. NULL: there is none, or no memory. */
char *httpc_headers(struct httpc_call *call, const char *name);
int httpc_status(const struct httpc_call *call); /* at the same times; 0: there was no answer */
/* What came with an answer that said no; borrowed from the call. */
const struct buf *httpc_refusal(const struct httpc_call *call);
/* Ends it in whatever state. Takes NULL, returns NULL. */
struct httpc_call *httpc_call_free(struct httpc_call *call);
CLEANUP_FUNC(struct httpc_call *, httpc_call_free)

/* All of the above for one request. */
int httpc_request(struct httpc *c, const struct httpc_request *req, struct httpc_answer *ret,
		  struct err *err);
