/* The control socket's sending side. Nothing here waits: what the socket does not take is queued,
 * and while anything is queued the guest reads neither its children nor new requests, so the queue
 * holds no more than what one turn of the loop can say. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/buf.h"
#include "guest/out.h"

struct conn {
	int fd; /* borrowed; -1: nobody is connected, and nothing is said */
	struct buf queue;
	bool is_blocked; /* the socket was full: wait until it can be written */
	int broken;      /* -errno once nothing more can be said */
};

#define CONN_QUEUE_MAX (512u << 10)

void conn_init(struct conn *c, int fd);
void conn_done(struct conn *c);
/* Sends or queues a frame of n bytes (a negative n: an encoder's failure, breaks the connection).
 */
void conn_send(struct conn *c, const void *frame, long n);
void conn_send_u64(struct conn *c, uint16_t type, uint32_t id, uint64_t v);
void conn_send_error(struct conn *c, uint32_t id, int code, const char *text);
/* A G_OUTPUT straight from the ring. False when the socket is full or nobody is connected: try
 * again when that is over. */
bool conn_send_output(struct conn *c, uint32_t id, const struct out_chunk *chunk);
/* All that has not been sent, as far as the socket takes it. */
void conn_send_unsent(struct conn *c, uint32_t id, struct out *o);
/* A frame with one descriptor, which stays the caller's. Nothing is queued: -EAGAIN when the socket
 * is full or nobody is connected, -ETOOMANYREFS when too many descriptors are on their way. */
int conn_send_fd(struct conn *c, const void *frame, long n, int fd);
/* Somebody is connected and the socket is not full. */
bool conn_is_free(const struct conn *c);
/* The socket can be written: sends what is queued. */
void conn_flush(struct conn *c);
