/* A WebSocket to the server of an httpc: the connection is libcurl's (TLS, proxies, limits), the
 * frames are wslay's. One thread. */
#pragma once

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/cleanup.h"

struct err;
struct httpc;
struct ws_client; /* opaque */

#define WS_MESSAGE_MAX (4u << 20) /* of one received message */
#define WS_SILENCE_MS 90000u /* a peer that says nothing for so long, not even a ping, is gone */

/* One whole message; text is valid UTF-8. */
typedef void (*ws_message_fn)(void *user, bool text, const void *data, size_t n);

/* Connects and shakes hands, with the httpc's key; blocks for its connect time at most. A refusal
 * is what httpc_result() makes of it. */
int ws_client_open(struct httpc *c, const char *target, ws_message_fn fn, void *user,
		   struct ws_client **ret, struct err *err);
struct ws_client *ws_client_free(struct ws_client *w); /* takes NULL, returns NULL */
CLEANUP_FUNC(struct ws_client *, ws_client_free)

/* Waits until something happens or the time is over (-1: none), receives and sends. fds are the
 * caller's own, whose revents are filled. 0; 1 when the peer has closed it: see ws_client_code();
 * -ECONNRESET, -ETIMEDOUT, -EPROTO, -ENOMEM when it is broken. */
int ws_client_turn(struct ws_client *w, struct pollfd *fds, size_t n, int timeout_ms,
		   struct err *err);
unsigned ws_client_code(const struct ws_client *w); /* the peer's; 1005 when it gave none */
void ws_client_hold(struct ws_client *w, bool on);  /* no messages while held */
/* Copied. -EPIPE when it is closing, -EINVAL, -ENOMEM. */
int ws_client_send(struct ws_client *w, bool text, const void *data, size_t n);
size_t ws_client_pending(const struct ws_client *w); /* bytes the connection has not taken */
void ws_client_close(struct ws_client *w);           /* says goodbye; go on with turns */
