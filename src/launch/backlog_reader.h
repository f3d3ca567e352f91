/* Reads what lies in connections of boxes that no program has accepted yet. In the process that
 * reads file locks, because for each box the kernel walks the connections of the whole machine. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/id.h"

#define BACKLOG_BOXES_MAX 8192
#define BACKLOG_LOOK_MS 100 /* a look takes no longer; the next goes on behind it */

struct backlog_row {
	char id[ID_LEN + 1];
	pid_t pid; /* of the box's first process */
	uint64_t most,
		bytes; /* allowed, and found; no more is counted than shows that it is above */
};

/* In memory that both processes have: the launcher says who is to be looked at, the reader adds
 * what it has found. */
struct backlog_table {
	size_t count;
	struct backlog_row rows[BACKLOG_BOXES_MAX];
};

/* proc_fd: the machine's /proc. from: the row to begin with, then that of the next time. */
void backlog_read(int proc_fd, struct backlog_table *t, size_t *from);
