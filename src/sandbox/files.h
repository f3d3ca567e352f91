/* Files of a sandbox. Every path is resolved inside the box by its own holt-init; nothing here ever
 * opens one. An operation is a struct file_op that lives until done() or failed(), or
 * file_cancel(). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "sandbox/sandbox.h"
#include "spec/guest.h"

struct arena;
struct file_op; /* opaque */

struct file_ops { /* any but failed may be NULL; called from the loop, never from inside
		     file_start() */
	void (*entry)(void *user, const struct guest_entry *entry);
	void (*found)(void *user, const struct guest_found *found);
	void (*data)(void *user, const void *data, size_t n);
	void (*room)(void *user); /* file_send() may take more */
	void (*event)(void *user, enum guest_event event, const char *path);
	void (*armed)(void *user); /* a watch sees what happens from now on */
	/* The last call, one of the two: */
	void (*done)(void *user, uint64_t count);
	void (*failed)(void *user,
		       const struct err *err); /* ENOENT, ENOTDIR, ENOSPC, EPIPE (box gone), ... */
};

/* When many are under way it waits for some of them to end. -EBUSY: the sandbox is paused or
 * ending; -EAGAIN: too many wait, or are watches. */
int file_start(struct sandbox *sb, const struct guest_file *f, const struct file_ops *ops,
	       void *user, struct file_op **ret, struct err *err);
/* A span of it, from now on: right behind its start. */
void file_trace(struct file_op *op, const struct trace_context *trace);
/* Bytes taken, maybe fewer or none: room() follows. n = 0: the end. */
ssize_t file_send(struct file_op *op, const void *data, size_t n);
/* While held, data() stops within a window: back-pressure from a slow client. */
void file_hold(struct file_op *op, bool hold);
/* No callback comes any more; what was half written is undone. Takes NULL. */
void file_cancel(struct file_op *op);
/* Copies an entry and its texts to the arena; -ENOMEM. */
int file_entry_copy(struct arena *a, const struct guest_entry *from, struct guest_entry *ret);
