/* A box that stands still while somebody looks at its files: by the freezer of its cgroup, or,
 * where there is none, by a stop signal to its first process, if it has no other. Such a one starts
 * no process, so nothing in the box can change until it goes on. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

struct box;
struct err;

/* Begins it. */
int still_hold(struct box *b, struct err *err);
/* Its end, unless it is paused for another reason. */
int still_release(struct box *b, struct err *err);
/* Whether it is by signal that the box stands still: then still_wait() says when it does. */
bool still_is_by_signal(const struct box *b);
/* Waits, in a process of its own. -EBUSY: something runs in the box. proc_fd: the machine's /proc.
 */
int still_wait(int proc_fd, pid_t pid, struct err *err);
