/* Control groups behind one seam: v1 (one hierarchy a controller) and v2. A box has one `struct
 * cgroup`, whatever that is on disk. No cgroup file is ever visible inside a box.
 *
 * Everything lives below one directory of ours in each hierarchy, named after the launcher's
 * instance and locked (flock on the directory) while that launcher lives: what is found there
 * unlocked belongs to a dead launcher and is swept. Existing mounts and groups of others are never
 * touched. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "spec/launch.h"

struct cgroups; /* the hierarchies in use, and our place in them */
struct cgroup;  /* one box's */

struct cgroup_ops {
	const char *name;
	enum launch_cgroup kind;
	int (*make)(struct cgroups *all, struct cgroup **ret, struct err *err);
	/* Writes every limit (memory with swap 0, cpu quota over a short period, pids, pinning). */
	int (*limit)(struct cgroup *cg, const struct limits *l, struct err *err);
	/* For clone3(CLONE_INTO_CGROUP): a borrowed descriptor, valid until the next call for any
	 * group, or -1 where attach() must be used. */
	int (*spawn_fd)(struct cgroup *cg);
	int (*attach)(struct cgroup *cg, pid_t pid, struct err *err); /* 0: the caller */
	/* Returns when every process stands still; bounded in time. -ENOTSUP without a freezer. On
	 * v1 a frozen process does not die: thaw before killing. */
	int (*freeze)(struct cgroup *cg, bool on, struct err *err);
	int (*usage)(struct cgroup *cg, struct box_usage *ret, struct err *err);
	/* Makes an empty group as good as new (peaks and counters start at zero for usage()).
	 * -EBUSY when anything is still charged or alive in it: then it must be destroyed. */
	int (*reset)(struct cgroup *cg);
	/* Removes and frees; retries while the kernel is busy, and kills what is left inside. */
	void (*destroy)(struct cgroup *cg);
};

/* Finds what the machine has: v2 with delegated controllers, else v1, else none (a table whose
 * calls succeed and do nothing, but for freeze). Works below the caller's own group; makes
 * <group>/holt.<instance>. `want` limits the choice for tests: CGROUP_NONE means "best there is".
 */
int cgroups_open(enum launch_cgroup want, struct cgroups **ret, struct err *err);
/* Removes our directories. Boxes must be gone. */
struct cgroups *cgroups_close(struct cgroups *all);
const struct cgroup_ops *cgroups_ops(const struct cgroups *all);
unsigned cgroups_missing(const struct cgroups *all); /* enum cgroup_controller bits not enforced */
/* What kept cgroups_open() from a better kind, for a person to read; "" when nothing did. */
const char *cgroups_why(const struct cgroups *all);
/* The launcher keeps this many processes of its own in the group: limits, usage and reset leave
 * them out. To be said before limit(). */
void cgroup_house(struct cgroup *cg, unsigned residents);
/* Kills and removes what dead launchers left; how many groups that were. */
int cgroups_sweep(struct cgroups *all);
