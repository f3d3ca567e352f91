/* Connect RPC as its clients here speak it: messages of JSON, one as a whole body (unary) or
 * several in envelopes (streams). An envelope is a byte of flags, four of length (big-endian) and
 * the message; the last of a stream says how it ended. Sans-I/O. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct buf;
struct jw;

#define CONNECT_HEAD 5u
#define CONNECT_TYPE_UNARY "application/json"
#define CONNECT_TYPE_STREAM "application/connect+json"
#define CONNECT_TIMEOUT_DIGITS 10 /* of Connect-Timeout-Ms, as the protocol says */
#define CONNECT_KEEPALIVE_MAX_S 3600u
#define CONNECT_USER_MAX 63u /* bytes of a name in Authorization: Basic */

/* As numbered by the protocol. */
enum connect_code {
	CONNECT_OK,
	CONNECT_CANCELED,
	CONNECT_UNKNOWN,
	CONNECT_INVALID_ARGUMENT,
	CONNECT_DEADLINE_EXCEEDED,
	CONNECT_NOT_FOUND,
	CONNECT_ALREADY_EXISTS,
	CONNECT_PERMISSION_DENIED,
	CONNECT_RESOURCE_EXHAUSTED,
	CONNECT_FAILED_PRECONDITION,
	CONNECT_ABORTED,
	CONNECT_OUT_OF_RANGE,
	CONNECT_UNIMPLEMENTED,
	CONNECT_INTERNAL,
	CONNECT_UNAVAILABLE,
	CONNECT_DATA_LOSS,
	CONNECT_UNAUTHENTICATED,
	CONNECT_CODE_COUNT
};

const char *connect_name(enum connect_code code); /* "not_found" */
int connect_status(enum connect_code code);       /* of a unary answer that says so: 404 */
/* The code that says what a status of ours means. */
enum connect_code connect_code_of(int status);

enum connect_kind { CONNECT_UNARY, CONNECT_STREAM };
/* From a Content-Type, with or without parameters; NULL is none. -EPROTONOSUPPORT for what is
 * neither: the binary forms, too. */
int connect_kind_of(const char *content_type, enum connect_kind *ret);

/* Milliseconds; NULL, "" and "0" are none: *ret is 0. -EINVAL. */
int connect_timeout(const char *header, uint64_t *ret_ms);
/* Keepalive-Ping-Interval, seconds; what cannot be read is as good as absent: 0. */
uint64_t connect_keepalive_ms(const char *header);
/* The name in `Basic base64("name:")`; "" when absent or of another scheme. -EINVAL. */
int connect_user(const char *authorization, char ret[CONNECT_USER_MAX + 1]);

/* ---- envelopes ---- */

struct connect_envelope {
	bool is_end;      /* the stream's last */
	const char *data; /* borrowed */
	size_t len;
};
/* The first envelope in n bytes: how many it takes, 0 while some are missing, -EBADMSG for flags
 * that are not known (compressed messages too: none were agreed), -E2BIG above max. */
ssize_t connect_next(const void *data, size_t n, size_t max, struct connect_envelope *ret);

/* Leaves room for a head in b; the message is then appended. The place goes to connect_finish(),
 * which fills it in: 0 or the buffer's error. */
size_t connect_begin(struct buf *b);
int connect_finish(struct buf *b, size_t at);
/* The last one: {} or {"error":{...}}. */
int connect_put_end(struct buf *b, enum connect_code code, const char *message);
/* {"code":"not_found","message":...} */
void connect_write_error(struct jw *w, enum connect_code code, const char *message);
