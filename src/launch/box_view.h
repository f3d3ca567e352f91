/* What programs read to learn how much there is: files of /proc and /sys/fs/cgroup that say what
 * the box has and not what the machine has. They are the box's own, written when it is built and
 * again when its limits change. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "spec/launch.h"

struct err;

/* While the root is put together and its /proc is mounted: `has_proc` unless that shows processes
 * alone. What this kernel or the caller's rights do not allow is left out. */
int view_mount(const struct limits *l, bool has_proc, struct err *err);
/* Of a finished box, whose first process is a child of the caller's: writes what has changed.
 * proc_fd: the machine's /proc. Files that are not there, or that are the kernel's, are passed
 * over.
 */
void view_change(int proc_fd, pid_t pid, const struct limits *l);
