/* Reads /proc/locks, in a process of its own: for each page of it the kernel waits until every
 * processor has taken notice, which takes 10 ms and more, and the launcher's loop has no such time.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "launch/backlog_reader.h"
#include "launch/locks_count.h"

struct err;
struct launch;

#define LOCKS_READER "holt-locks" /* its name among the processes */
#define LOCKS_MACHINE_MAX 16384   /* lines that are read */

/* In memory that both processes have. */
struct lock_table {
	size_t total, rows; /* lines that were read, and processes among them */
	struct lock_holder holders[LOCKS_MACHINE_MAX];
	struct backlog_table backlog;
};

/* A socket, to be closed by the caller, on which a byte asks for a look and a byte answers that the
 * table is filled. Its end ends the reader, a child of ours. */
int locks_start_reader(const struct launch *l, struct lock_table *table, pid_t *ret_pid,
		       struct err *err);
