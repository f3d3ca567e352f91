/* JSON-RPC 2.0 messages as MCP has them: what a value is, and envelopes to write. Sans-I/O. */
#pragma once

#include <stddef.h>

#include "json/jv.h"

struct err;
struct jw;

#define RPC_ID_MAX 256u /* bytes of an id as JSON text */

enum rpc_kind { RPC_REQUEST, RPC_NOTIFICATION, RPC_RESULT, RPC_ERROR };

enum rpc_code {
	RPC_PARSE = -32700,
	RPC_INVALID = -32600,
	RPC_NO_METHOD = -32601,
	RPC_PARAMS = -32602,
	RPC_INTERNAL = -32603,
};

struct rpc_message { /* borrowed from the document */
	enum rpc_kind kind;
	struct jv id;       /* a string or an integer; absent of a notification, and of an error
			       about something that had none */
	const char *method; /* of a request or a notification */
	struct jv params;   /* the same; an object, or absent */
	struct jv result;   /* of a result: an object */
	long code;          /* of an error */
	const char *text;   /* of an error; never NULL */
	struct jv data;     /* of an error; may be absent */
};

/* -EINVAL says what is wrong. ret->id is set where there is a good one, also then. */
int rpc_read(struct jv v, struct rpc_message *ret, struct err *err);
/* An id as JSON text, so that it can be kept and compared: -E2BIG, -EINVAL (none). */
int rpc_id(struct jv id, char *dst, size_t size);

/* Each opens an envelope; the caller writes one value (of params, result or data) and ends it. An
 * id is JSON text, as rpc_id() gives it; NULL is null. */
void rpc_request_begin(struct jw *w, const char *id, const char *method);
void rpc_notification_begin(struct jw *w, const char *method);
void rpc_result_begin(struct jw *w, const char *id);
void rpc_end(struct jw *w);
/* All of an error. data is JSON text, or NULL. */
void rpc_error(struct jw *w, const char *id, long code, const char *text, const char *data);
