/* Connect calls as requests of ours: the message in, by a table, and the answer or the error out.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "e2b/connect.h"

struct api_call;
struct jv_field;
struct jw;

#define RPC_MESSAGE_MAX (2u << 20)

struct rpc_method {
	enum connect_kind kind;
	const struct jv_field *fields; /* what is not in it is passed over */
	size_t count;
	size_t size;          /* of the struct */
	const void *defaults; /* one such struct, for what is absent; NULL: zeroed */
	void (*handle)(struct api_call *c);
};

/* For a row's handler: reads the message into c->body, then calls handle(); or answers. */
void rpc_take(struct api_call *c, const struct rpc_method *m);

/* Whether the body is of this kind; false: answered. For who takes it otherwise. */
bool rpc_takes(struct api_call *c, enum connect_kind want);

/* A unary call's answer: ends the writer and the request. */
void rpc_reply(struct api_call *c, struct jw *w);
void rpc_reply_empty(struct api_call *c); /* {} */
/* Begins a stream's answer; its envelopes follow. */
void rpc_begin(struct api_call *c);

/* Errors, and the request has ended: a status and a JSON object, or 200 and an envelope for what is
 * streamed. What a service says goes through problem_reply() and its like, and ends here, too. */
void rpc_fail(struct api_call *c, enum connect_code code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* For the door: any status of the dispatcher's. */
void rpc_refuse(struct api_call *c, int status, const char *message);
void rpc_refuse_unknown(struct api_call *c); /* there is no such call */

/* Who runs it and whose home "~" is: the name in Authorization, "" for the sandbox's own; in the
 * arena. NULL: answered. */
const char *rpc_user(struct api_call *c);
