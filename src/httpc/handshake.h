/* The opening of a WebSocket (RFC 6455, 4.1) as bytes: our request, and what may come back. */
#pragma once

#include <stddef.h>

struct buf;
struct err;

#define HANDSHAKE_KEY 25          /* base64 of 16 random bytes, and a NUL */
#define HANDSHAKE_MAX (16u << 10) /* bytes of an answer's head */

struct handshake {
	const char *target; /* "/api/...": path and query */
	const char *host;
	const char *bearer; /* NULL: none */
	char key[HANDSHAKE_KEY];
};

struct handshake_answer {
	int status;
	size_t head_len;    /* bytes up to and with the empty line */
	size_t body_length; /* of a refusal: Content-Length, or 0 */
};

void handshake_make_key(struct handshake *h);
int handshake_write(struct buf *b, const struct handshake *h); /* 0 or buf's error */
/* -EAGAIN until the head is whole. 0: status 101 and everything as it must be, or another status
 * (the refusal's body follows the head). -EPROTO for a 101 that is no answer to h or what is no
 * HTTP, -E2BIG. */
int handshake_read(const struct handshake *h, const char *data, size_t n,
		   struct handshake_answer *ret, struct err *err);
