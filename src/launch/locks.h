/* File locks of boxes. Linux charges them to no control group and bounds them by no limit, so from
 * time to time the launcher counts them in /proc/locks and ends the processes of a box that holds
 * too many. The filter refuses the two kinds that it could not see: locks of open files, and
 * processes that share descriptors without being threads. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct launch;

#define LOCKS_BOX_MAX 4096      /* about 800 KiB of the kernel's memory */
#define LOCKS_MACHINE_MAX 16384 /* lines that are read; beyond, whoever has most of them goes */
#define LOCKS_LOOK_MS 1000

struct locks {
	uint64_t next_ms; /* when to look again */
};

/* Who holds how many, by pid, in no order. */
struct lock_holder {
	pid_t pid;
	unsigned count;
	uint64_t pid_ns; /* of the box that it is in; 0: of none, or gone */
};

/* Adds the pids of the lines of a text of /proc/locks to pids[*n..max); of what has no owner
 * nothing. The number of bytes up to the end of the last whole line. */
size_t locks_parse(const char *text, size_t size, pid_t *pids, size_t *n, size_t max);
/* One row for each of them; pids are sorted for it. The number of rows. */
size_t locks_count(pid_t *pids, size_t n, struct lock_holder *ret);
/* The namespace that has most of them and more than that; 0: none. Holders are sorted for it. */
uint64_t locks_judge(struct lock_holder *holders, size_t n, size_t most);

/* Looks if it is time to. How long to wait for the next time; -1: there are no boxes. */
int locks_look(struct launch *l);
