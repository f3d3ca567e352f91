/* A request that becomes bytes both ways: answered with 101, its meaning is its users'. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct http_request;
struct tunnel; /* opaque */

struct tunnel_ops {
	void (*data)(void *user, const void *data, size_t n); /* borrowed */
	void (*drained)(void *user); /* pending output has fallen to TUNNEL_LOW or below */
	/* The client has gone, or the server ends. The tunnel is over when it returns. */
	void (*gone)(void *user);
};

#define TUNNEL_LOW ((size_t)64 << 10)

/* Answers 101 with the headers that were added; the request is the tunnel's from now on. NULL: the
 * client has gone or there was no memory, and the request is answered. */
struct tunnel *tunnel_open(struct http_request *r, const struct tunnel_ops *ops, void *user);
/* Bytes that the client has not taken, or -EPIPE, -ENOBUFS (it is cut then). */
ssize_t tunnel_write(struct tunnel *t, const void *data, size_t n);
void tunnel_pause(struct tunnel *t, bool on); /* no data() while paused */
/* Ends it behind what is still to be sent. Nothing is called any more. */
void tunnel_close(struct tunnel *t);
