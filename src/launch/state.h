/* The state directory: what a launcher leaves for the next one. It belongs to the launcher's user
 * and nobody else can look into it. One launcher at a time has it, by a lock.
 *
 *   lock          locked while a launcher lives
 *   instance      the id of its control groups and id ranges
 *   <box>         the record of a claimed box (record.h); empty while the box waits
 *   <box>.sock    the socket on which that box listens for its next client
 *   <box>.tmp     a record that is to replace another
 *
 * Nothing is synced: it must outlive processes, not the machine. Names are relative to the
 * directory's descriptor, because the launcher leaves the mounts in which there is a path to it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/id.h"
#include "launch/record.h"

struct err;

struct state {
	int dir;  /* owned; -1: there is none, boxes end with their client */
	int lock; /* owned */
	char instance[ID_LEN + 1];
	char boot_id[BOOT_ID_LEN + 1];
};

/* dir_fd is borrowed; proc_fd: the machine's /proc. Waits some seconds for a launcher that is
 * ending. -EBUSY when another has the directory, -EPERM when others can get into it. */
int state_open(struct state *s, int dir_fd, int proc_fd, struct err *err);
void state_close(struct state *s);
bool state_is_open(const struct state *s);

/* A listening socket at <box>.sock; its descriptor. */
int state_listen(const struct state *s, const char *box, struct err *err);
/* A new connection to it, blocking like any. -ECONNREFUSED when nobody listens, -EAGAIN when too
 * many wait there. */
int state_connect(const struct state *s, const char *box, struct err *err);
bool state_has_socket(const struct state *s, const char *box);
/* An empty file for the record: it exists already when time matters. */
int state_reserve(const struct state *s, const char *box, struct err *err);
/* `first`: there was no record before, so none can be lost halfway. */
int state_write(const struct state *s, const struct record *rec, bool first, struct err *err);
/* data needs RECORD_MAX bytes; the result borrows from them. -ENOENT; -EINVAL and the like for what
 * is no record of this box. */
int state_read(const struct state *s, const char *box, char *data, struct record *ret);
/* Record and socket. */
void state_remove(const struct state *s, const char *box);

/* Calls visit() once for each box of which there is anything. It may remove what it is called for.
 * Stops at a negative result and returns it. */
int state_each(const struct state *s, int (*visit)(void *arg, const char *box), void *arg,
	       struct err *err);
