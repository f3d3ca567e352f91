/* The frame and the encoding that daemon, launcher and guest share. Sans-I/O: bytes in, values out.
 *
 * One frame is one message of a SOCK_SEQPACKET Unix socket: a 12-byte head, then the payload. Both
 * ends run on one machine, so integers are in host order (little-endian is asserted). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WIRE_VERSION 1
#define WIRE_PAYLOAD_MAX (64u << 10)
#define WHY_MAX 200 /* bytes of a sentence about what a box lacks */
#define WIRE_FRAME_MAX (sizeof(struct wire_head) + WIRE_PAYLOAD_MAX)

struct wire_head {
	uint16_t version;
	uint16_t type; /* enum guest_type or enum launch_type */
	uint32_t id;   /* which execution or request the frame belongs to */
	uint32_t len;  /* bytes of payload; must equal what follows */
};

/* Reader. The first value that does not fit sets bad; every later read gives zero or "". */
struct rd {
	const uint8_t *p, *end;
	bool bad;
};

/* Splits a received message. -EPROTO for a wrong length, -EPROTONOSUPPORT for another version. */
int wire_open(const void *msg, size_t n, struct wire_head *ret, struct rd *ret_payload);

uint8_t rd_u8(struct rd *r);
uint16_t rd_u16(struct rd *r);
uint32_t rd_u32(struct rd *r);
uint64_t rd_u64(struct rd *r);
/* Borrowed from the message, NUL-terminated, no NUL inside; "" when bad. */
const char *rd_str(struct rd *r);
/* Borrowed bytes; their count in *ret_n. */
const void *rd_bytes(struct rd *r, size_t *ret_n);
/* The rest of the payload. */
const void *rd_rest(struct rd *r, size_t *ret_n);
/* 0 when everything was read and nothing was bad, else -EPROTO. Unknown trailing bytes are bad. */
int rd_end(const struct rd *r);

/* Writer into memory that the caller owns. Overflow sets full; wire_finish() then fails. */
struct wr {
	uint8_t *data;
	size_t len, cap;
	bool full;
};

/* Starts a frame at data (cap bytes, at least a head). */
void wire_begin(struct wr *w, void *data, size_t cap, uint16_t type, uint32_t id);
void wr_u8(struct wr *w, uint8_t v);
void wr_u16(struct wr *w, uint16_t v);
void wr_u32(struct wr *w, uint32_t v);
void wr_u64(struct wr *w, uint64_t v);
void wr_str(struct wr *w, const char *s); /* NULL is written as "" */
void wr_bytes(struct wr *w, const void *data, size_t n);
void wr_raw(struct wr *w, const void *data, size_t n); /* no length: for rd_rest() */
/* Fills in the length; bytes of the whole frame, or -E2BIG. */
long wire_finish(struct wr *w);
