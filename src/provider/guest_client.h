/* The daemon's end of a box's control socket: starts executions and file operations, hands their
 * frames to callbacks. Non-blocking: call guest_dispatch() when guest_fd() is readable (or writable
 * while guest_wants_write()). Knows no event loop; the *_sync helpers poll by themselves. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "spec/guest.h"

struct err;
struct guest_client; /* opaque */

struct guest_callbacks { /* any may be NULL; data is borrowed for the call */
	void (*started)(void *user, uint32_t pid, bool warm);
	void (*output)(void *user, int stream, uint64_t offset, const void *data, size_t n);
	void (*taken)(void *user, uint64_t bytes);
	void (*entry)(void *user, const struct guest_entry *entry);
	void (*found)(void *user, const struct guest_found *found);
	void (*data)(void *user, const void *data, size_t n);
	void (*event)(void *user, enum guest_event event, const char *path);
	/* A connection of TCP, and nothing else: that was checked. The callee's, who must not rely
	 * on its flags: whoever is inside may have kept a copy, so MSG_DONTWAIT with every call. */
	void (*socket)(void *user, int fd);
	void (*done)(void *user, uint64_t count); /* of a watch: armed; of a listener: its port */
	/* The last call of an id, one of the two: */
	void (*exited)(void *user, const struct guest_exit *exit);
	void (*failed)(void *user, int code, const char *text); /* also -EPIPE when the box died */
};

/* What a box tells when a connection to it begins; either may be NULL. */
struct guest_hooks {
	/* Of a box that others spoke with before, live() follows r->live times. */
	void (*ready)(void *user, const struct guest_ready *r);
	/* An execution with EXEC_KEEP lives, or has ended and was not acknowledged. True: it goes
	 * on with *ret_cb and *ret_user, output from live->offset on and exited() at its end; its
	 * id may be used in here. False: nobody knows it, and it is cancelled and acknowledged. */
	bool (*live)(void *user, const struct guest_live *live, struct guest_callbacks *ret_cb,
		     void **ret_user);
};

/* Takes fd. */
int guest_create(int fd, struct guest_client **ret, struct err *err);
/* Right after guest_create(). On a connection to a box's own listener, start nothing before ready()
 * has been called; until the last live() has, what is started fails with -EAGAIN. */
void guest_set_hooks(struct guest_client *g, const struct guest_hooks *hooks, void *user);
struct guest_client *guest_free(struct guest_client *g); /* callbacks are not called */
CLEANUP_FUNC(struct guest_client *, guest_free)
int guest_fd(const struct guest_client *g);
bool guest_wants_write(const struct guest_client *g);
/* Reads and answers what is there, a bounded part of it at once. 0, or -EPIPE once the box is gone,
 * -EPROTO when it lied: every live id has then got its failed(). Output is credited after its
 * callback unless held back.
 */
int guest_dispatch(struct guest_client *g);
/* After -EPROTO: it lied about nothing, but speaks another version. */
bool guest_is_foreign(const struct guest_client *g);

int guest_exec(struct guest_client *g, const struct guest_exec *e, const struct guest_callbacks *cb,
	       void *user, uint32_t *ret_id, struct err *err);
int guest_file(struct guest_client *g, const struct guest_file *f, const struct guest_callbacks *cb,
	       void *user, uint32_t *ret_id, struct err *err);
/* done() with 0 when the box answers. */
int guest_ping(struct guest_client *g, const struct guest_callbacks *cb, void *user,
	       uint32_t *ret_id, struct err *err);
/* A connection to a port of the box's own loopback: socket(), then done(); or failed(). done()
 * alone: it was reset at once. */
int guest_connect(struct guest_client *g, const struct guest_connect *c,
		  const struct guest_callbacks *cb, void *user, uint32_t *ret_id, struct err *err);
/* Listens there: done() with the port (not the last call), then socket() for each connection that
 * is made to it, until guest_cancel(). */
int guest_listen(struct guest_client *g, const struct guest_connect *c,
		 const struct guest_callbacks *cb, void *user, uint32_t *ret_id, struct err *err);
/* Bytes taken (may be fewer, 0 when the window is full), or -errno. n = 0: end of file. */
ssize_t guest_stdin(struct guest_client *g, uint32_t id, const void *data, size_t n);
ssize_t guest_data(struct guest_client *g, uint32_t id, const void *data, size_t n);
int guest_signal(struct guest_client *g, uint32_t id, int signo, bool tree);
int guest_resize(struct guest_client *g, uint32_t id, uint16_t rows, uint16_t cols);
int guest_cancel(struct guest_client *g, uint32_t id);
/* While held, output of the id is not credited and so stops at the window. */
void guest_hold(struct guest_client *g, uint32_t id, bool hold);
/* Right after guest_exec(), or in live(): output of the id is credited by guest_credit() only. */
void guest_manual_credit(struct guest_client *g, uint32_t id);
/* The n oldest bytes of output that were not yet credited, of both streams as they came, are safe.
 * Of an id that has ended it says nothing: guest_ack() does. 0, -EINVAL for more than came, or the
 * error of a connection that is gone. */
int guest_credit(struct guest_client *g, uint32_t id, uint64_t n);
/* The end of an execution with EXEC_KEEP is recorded, and the box forgets it. After exited(); not
 * needed after failed(). */
int guest_ack(struct guest_client *g, uint32_t id);
/* No callback of this id is called any more; its output is still credited and dropped. */
void guest_forget(struct guest_client *g, uint32_t id);

/* Blocking forms for the command line and tests. */
struct guest_result {
	struct guest_exit exit;
	struct buf out, err; /* owned: guest_result_done() */
	bool warm;
};
void guest_result_done(struct guest_result *r);
int guest_exec_sync(struct guest_client *g, const struct guest_exec *e, const void *in,
		    size_t in_len, struct guest_result *ret, struct err *err);
int guest_read_sync(struct guest_client *g, const char *path, struct buf *ret, struct err *err);
int guest_write_sync(struct guest_client *g, const char *path, const void *data, size_t n,
		     uint32_t mode, struct err *err);
/* Any file operation without data either way; `cb` may be NULL. */
int guest_file_sync(struct guest_client *g, const struct guest_file *f,
		    const struct guest_callbacks *cb, void *user, struct err *err);
int guest_ping_sync(struct guest_client *g, int timeout_ms);
