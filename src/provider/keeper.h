/* How a daemon that may start nothing gets a launcher. `holt serve` forks: the parent stays what it
 * is, root or an ordinary user, and becomes the keeper, the child becomes the daemon, gives up its
 * privilege and is confined. The keeper does nothing but start launchers when its child asks, one
 * at a time, pass signals on, and end when the child does. To whoever needs a launcher it is a
 * struct launcher_source. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "provider/launcher.h"

struct err;

/* Where launchers come from. get() blocks (bounded): call it from a worker thread. What it gives is
 * for launcher_connect(); the former launcher is gone, or is about to find its socket closed. */
struct launcher_source {
	int (*get)(void *self, int *ret_sock, pid_t *ret_pid, struct err *err);
	void *self; /* borrowed */
};

/* The state directory: <path>/data is the daemon's, <path>/boxes the launcher's. */
struct keeper_dirs {
	int data_fd, boxes_fd; /* owned */
	int lock_fd; /* owned: held for life, so that no second daemon uses the directory */
};

/* Makes what is missing, checks what is there: a symbolic link, another owner or a directory that
 * others may write is refused. As root: <path> root's 0755, data uid's and gid's 0700, boxes root's
 * 0700. As an ordinary user (uid and gid are then his own) everything 0700. -EBUSY when another
 * daemon uses the directory. */
int keeper_prepare(const char *path, uid_t uid, gid_t gid, struct keeper_dirs *ret,
		   struct err *err);
void keeper_dirs_done(struct keeper_dirs *d); /* -1 in each afterwards */

struct keeper_client {
	int sock; /* owned */
	pid_t keeper;
	unsigned wait_ms; /* for one answer */
	uint8_t asked; /* the last request's number: an answer that comes too late is known by it */
};

/* Forks. Returns 0 in the child, with its end of the keeper's socket; the parent is the keeper and
 * never returns: it exits with the child's status, 128+n when a signal n ended it. o->state_fd is
 * taken in any case: in the child it is closed. Everything else open in the parent is closed.
 * Before any thread is started. */
int keeper_start(const struct launcher_options *o, struct keeper_client *ret, struct err *err);
void keeper_client_done(struct keeper_client *k);
/* SIGTERM comes to us when the keeper dies: a daemon that nobody keeps ends. Behind
 * privilege_drop(), which undoes it. -EPIPE when it has died before. */
int keeper_tie(const struct keeper_client *k, struct err *err);

/* A new launcher from the keeper, in place of the former one, which is killed. Blocks, at most
 * some seconds: the keeper starts no more than one a second. -ETIMEDOUT, -EPIPE. */
int keeper_launcher(struct keeper_client *k, int *ret_sock, pid_t *ret_pid, struct err *err);

struct launcher_source keeper_source(struct keeper_client *k);
