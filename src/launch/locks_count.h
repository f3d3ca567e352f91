/* Counts file locks by who holds them, from the text of /proc/locks. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Who holds how many. */
struct lock_holder {
	pid_t pid;
	unsigned count;
	uint64_t pid_ns; /* of the box that it is in; 0: of none, or gone */
};

/* Adds the pids of the lines of the text to pids[*n..max); 0 for one that is not known to have an
 * owner: a lock of an open file (FLOCK) lives as long as that, and the process that the line names
 * may be gone, its number another's. The number of bytes up to the end of the last whole line. */
size_t locks_parse(const char *text, size_t size, pid_t *pids, size_t *n, size_t max);
/* One row for each of them but 0; pids are sorted for it. The number of rows. */
size_t locks_count(pid_t *pids, size_t n, struct lock_holder *ret);
/* The namespace that has most of them and more than that; 0: none. Holders are sorted for it. */
uint64_t locks_judge(struct lock_holder *holders, size_t n, size_t most);
