/* A connected stream socket on the loop, of whoever is at its other end: bytes in by a callback,
 * bytes out through a bounded queue. It never waits, whatever the descriptor's flags say: the other
 * owner of a socket that was passed to us may change them at any time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

struct loop;
struct sock; /* opaque */

struct sock_ops { /* sock_free() may be called from any of them */
	void (*input)(void *user, const char *data, size_t n); /* borrowed */
	/* Pending output has fallen to SOCK_LOW or below from above it; after sock_shutdown(): all
	 * of it is sent. */
	void (*drained)(void *user);
	/* 0: the peer will send no more, after its last byte has been told; else a negative errno:
	 * the connection is broken, and nothing goes either way any more. Once each. */
	void (*ended)(void *user, int r);
};

#define SOCK_LOW ((size_t)64 << 10)

/* Takes fd, also on failure. pending_max: output that may wait; more is -ENOBUFS. -ENOMEM. */
int sock_create(struct loop *l, int fd, size_t pending_max, const struct sock_ops *ops, void *user,
		struct sock **ret);
struct sock *sock_free(struct sock *s); /* takes NULL, returns NULL; what waits is not sent */
/* From now on the callbacks are these. */
void sock_set_ops(struct sock *s, const struct sock_ops *ops, void *user);
/* Sends what the socket takes and queues the rest; changes parts. 0, -ENOBUFS, -EPIPE, -ENOMEM; a
 * connection that breaks by it is told by ended() later. */
int sock_send(struct sock *s, struct iovec *parts, int count);
int sock_write(struct sock *s, const void *data, size_t n);
size_t sock_pending(const struct sock *s);
uint64_t sock_bytes(const struct sock *s); /* both ways, so far; what waits is among them */
/* No more is sent; the peer learns it behind what waits. */
void sock_shutdown(struct sock *s);
void sock_pause(struct sock *s, bool on); /* no input() while paused */
