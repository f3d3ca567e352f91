/* One file operation's end of the control socket: frames of its id, with flow control. Everything
 * that may wait also sees a cancel (G_CANCEL, or the end of the socket) and answers -ECANCELED. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "spec/guest.h"

struct chan {
	int sock; /* borrowed; blocking SOCK_SEQPACKET */
	uint32_t id;
	uint32_t window; /* bytes of G_DATA that may go out before the client credits more */
	uint64_t taken;  /* bytes handed out by chan_take() and not yet granted back */
	bool takes_data; /* the client sends G_DATA: only chan_take() may read the socket */
	bool cancelled;
	uint8_t in[WIRE_FRAME_MAX];
	uint8_t out[WIRE_FRAME_MAX];
};

void chan_init(struct chan *c, int sock, uint32_t id, bool takes_data);

/* Sees what has come in without waiting: 0, -ECANCELED, -EPROTO. Cheap; call it in long loops. */
int chan_check(struct chan *c);
/* -E2BIG when the entry's path does not fit into a frame. */
int chan_entry(struct chan *c, const struct guest_entry *e);
int chan_found(struct chan *c, const struct guest_found *f); /* likewise */
int chan_event(struct chan *c, enum guest_event event, const char *path);
int chan_u64(struct chan *c, enum guest_type type, uint64_t v);
/* Sends n bytes as G_DATA, waiting for credit. */
int chan_data(struct chan *c, const void *data, size_t n);
/* Waits for the client's next G_DATA. *ret is borrowed until the next call; *ret_n is 0 at the end
 * of file. What was taken before is granted back to the client first. */
int chan_take(struct chan *c, const void **ret, size_t *ret_n);
/* The last frame of an operation that failed; sent even after a cancel. */
void chan_error(struct chan *c, int code, const char *text);
/* Call last. A socket that ends with frames unread (late credits) resets the peer, and the peer may
 * then not see the frames that we sent before. */
void chan_close(struct chan *c);
