/* WebSocket (RFC 6455), server side: a request becomes a connection of messages both ways. Frames
 * are wslay's; handshake, origin, limits, liveness and back-pressure are ours. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct http_request;
struct ws; /* opaque */

struct ws_ops {
	/* One whole message; text is valid UTF-8. */
	void (*message)(void *user, struct ws *w, bool text, const void *data, size_t n);
	/* May be NULL. Pending output has fallen to low_water or below from above it. */
	void (*drain)(void *user, struct ws *w);
	/* The end, however it came; called once, never from within a ws_ function. code is the
	 * peer's (or ours, when we closed); 1006 when the connection broke. w and the request that
	 * it was are gone when this returns. */
	void (*closed)(void *user, struct ws *w, unsigned code, const char *reason);
};

/* A field that is 0 or NULL means its default. */
struct ws_options {
	const char *const *protocols; /* ours, best first, NULL-terminated. With a list, a client
					 that offers only others is refused (400) */
	const char *const *origins;   /* allowed beside our own host and the server's CORS list */
	size_t message_max;           /* of one received message, in 4096 frames at most; 1 MiB */
	size_t pending_max;           /* output not taken yet; 4 MiB */
	size_t low_water;             /* for drain; 64 KiB */
	unsigned ping_ms;             /* 30 s */
	unsigned pong_ms;             /* silence after a ping; 10 s */
};

/* NULL: it was no valid handshake or came from a foreign origin, and has been answered (400, 403,
 * 405, 426) . Otherwise the request's headers, arena and user slots stay until closed() returns. */
#define WS_ACCEPT_SIZE 29
/* What a server says to a client's key (RFC 6455, 4.2.2), base64. -EINVAL for what is no key. */
int ws_accept_of(const char *key, char ret[WS_ACCEPT_SIZE]);

struct ws *ws_accept(struct http_request *r, const struct ws_ops *ops, void *user,
		     const struct ws_options *o);
const char *ws_protocol(const struct ws *w); /* the chosen one; "" */
struct http_request *ws_request(const struct ws *w);

/* Copied; sent at the end of the loop's turn. Bytes not taken yet, -EPIPE when closing or closed,
 * -ENOBUFS above pending_max (nothing was queued), -EINVAL for text that is not UTF-8, -ENOMEM. */
ssize_t ws_send_text(struct ws *w, const char *data, size_t n);
ssize_t ws_send_binary(struct ws *w, const void *data, size_t n);
size_t ws_pending(const struct ws *w);
void ws_pause(struct ws *w, bool on); /* no messages while paused: the client is held back */
/* Says goodbye and waits for the peer's (bounded), then closed(). reason may be NULL; it is cut at
 * 123 bytes. Calling it again does nothing. */
void ws_close(struct ws *w, unsigned code, const char *reason);
