/* Requests of the daemon to other servers: asked for on the loop, made on a thread of their own,
 * all at once, and told on the loop: one that does not answer delays no other. Their number is
 * bounded, and every request has a time limit and a most of bytes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"

struct guard_nets;
struct courier;     /* opaque */
struct courier_job; /* opaque: one request under way */
struct loop;
struct resolver;
struct trace_context;
struct tracer;

#define COURIER_MAX 2304u /* under way: more than all webhooks, so that others always can */
#define COURIER_URL_MAX 2048u
#define COURIER_HEADERS_MAX 96u
#define COURIER_WANT_MAX 4u
#define COURIER_PIECE_MAX (1u << 20) /* waiting to be told; above, the server is held back */

struct courier_answer;

struct courier_request { /* copied */
	const char *method;
	const char *url;     /* all of it: http or https, without user and fragment */
	const char *server;  /* where it goes, as url_parse() takes it; url is the target then; or
				NULL */
	const char *ca_file; /* certificates to trust; NULL: the system's */
	const char *const *headers; /* "Name: value", NULL-terminated; or NULL */
	const char *const *want;    /* headers of the answer that matter, NULL-terminated; borrowed,
				       outlives the request; or NULL */
	const char *type;           /* of the body; NULL: none */
	const void *body;           /* NULL: none */
	size_t body_len;
	size_t max; /* bytes of the answer; above, it has failed */
	/* The body of a 2xx answer as it comes, on the loop, and before that once without bytes:
	 * its head is there. All that is set in the answer yet are its status and headers. NULL:
	 * it is collected. */
	void (*data)(void *user, const struct courier_answer *a, const void *data, size_t n);
	uint32_t timeout_ms;
	uint32_t stall_ms;                 /* see httpc/httpc.h */
	bool public_only;                  /* see httpc/guard.h */
	const struct guard_nets *closed;   /* the same; borrowed, outlives the courier; NULL */
	const char *owner;                 /* whose wish it is: his lookups are bounded; NULL */
	const struct trace_context *trace; /* what it is a part of; NULL: of nothing else */
	bool is_untraced;                  /* no span, no header */
};

struct courier_answer {                        /* borrowed for the callback */
	int r;                                 /* 0 with a 2xx answer, else -errno and err */
	int status;                            /* 0: there was no answer */
	struct buf body;                       /* also of one that says no: its first 64 KiB */
	const char *headers[COURIER_WANT_MAX]; /* in the order of `want`, lines of one name joined
						  by commas; NULL: it has none */
	int64_t max_age_s;                     /* of Cache-Control; -1: not said */
	int64_t retry_after_s; /* of Retry-After, when it is a number; -1: not said */
	struct err err;
};

typedef void courier_fn(void *user, const struct courier_answer *a);

int courier_create(struct loop *loop, struct courier **ret, struct err *err);
/* What is under way is cut off; nobody is called back any more. Takes NULL, returns NULL. */
struct courier *courier_free(struct courier *c);
CLEANUP_FUNC(struct courier *, courier_free)

/* From now on requests are spans, and their servers are told of them. Borrowed; outlives it. */
void courier_set_tracer(struct courier *c, struct tracer *tracer);
/* Who looks up the names in requests that have an owner. It outlives the courier. */
void courier_set_resolver(struct courier *c, struct resolver *resolver);

/* 0: done comes once, on the loop. -EAGAIN: too many wait; -EINVAL: no address; -ENOMEM. */
int courier_send(struct courier *c, const struct courier_request *req, courier_fn *done,
		 void *user);
/* The same, and *ret can be given to courier_cancel() until done has been called. */
int courier_open(struct courier *c, const struct courier_request *req, courier_fn *done, void *user,
		 struct courier_job **ret);
/* It is cut off, and nobody is called back; also from within its own data(). */
void courier_cancel(struct courier *c, struct courier_job *job);
size_t courier_count(struct courier *c); /* under way */
/* Whether courier_send() would take the address. */
int courier_check_url(const char *url, struct err *err);
