/* One request of the courier: what was asked for, and what came of it. */
#pragma once

#include <stdatomic.h>

#include "base/list.h"
#include "outbound/courier.h"

struct guard_nets;
struct httpc;
struct httpc_call;
struct resolve;
struct span;

struct courier_job {
	struct list node; /* of those that wait, are under way, or over */
	struct courier *courier;
	courier_fn *done;
	void (*data)(void *user, const struct courier_answer *a, const void *data, size_t n);
	void *user;
	/* Owned copies; `base` is the server, `target` all behind it. */
	char *method, *base, *target, *type, *body, *ca_file;
	char *headers[COURIER_HEADERS_MAX + 2]; /* one is ours */
	const char *const *want;                /* borrowed */
	size_t body_len, max;
	uint32_t timeout_ms, stall_ms;
	bool public_only;
	const struct guard_nets *closed;   /* borrowed */
	struct resolve *lookup;            /* the loop's, while it is under way; NULL */
	char *addresses;                   /* owned: see httpc/httpc.h; NULL */
	char *name;                        /* owned: what is looked up, with the port; NULL */
	struct span *span;                 /* the loop's; NULL: none */
	atomic_bool is_cancelled, goes_on; /* the loop says so, the thread does it */
	/* The courier's lock's: */
	struct list speaks; /* among those whose piece is to be told */
	struct buf piece;
	bool is_held;
	bool has_begun; /* the head is to be told */
	/* The thread's, until it is handed over; head and status once data has begun. */
	struct httpc *client;
	struct httpc_call *call;
	bool has_head;
	struct courier_answer answer;
};

/* -EINVAL (the address), -E2BIG (headers), -ENOMEM. */
int courier_job_create(const struct courier_request *req, struct courier_job **ret);
struct courier_job *courier_job_free(struct courier_job *j); /* takes NULL, returns NULL */
CLEANUP_FUNC(struct courier_job *, courier_job_free)
/* One more header of ours. */
int courier_job_add_header(struct courier_job *j, const char *text);
/* From the call: the status and the headers that are wanted, once. */
void courier_job_take_head(struct courier_job *j);
/* All of it: the call is over. */
void courier_job_take_result(struct courier_job *j);
