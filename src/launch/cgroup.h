/* Control groups behind one seam: v1 (one hierarchy a controller) and v2. A box has one `struct
 * cgroup`, whatever that is on disk. No cgroup file is ever visible inside a box.
 *
 * Everything lives below one directory of ours in each hierarchy, named after the launcher's
 * instance and locked (flock on the directory) while that launcher lives: what is found there
 * unlocked belongs to a dead launcher and is swept. A launcher whose boxes outlive it uses another
 * name, which nobody sweeps: the next one of the same instance enters it again. Existing mounts and
 * groups of others are never touched. */
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

struct cgroups_options {
	enum launch_cgroup want; /* only this kind; CGROUP_NONE: the best there is */
	bool off;                /* none, whatever there is */
	const char *instance; /* an id: our groups outlive us, for the next one with it to enter */
	const char *self; /* where to be, as /proc/PID/cgroup says it; NULL: below our own group */
};

/* Finds what the machine has: v2 with delegated controllers, else v1, else none (a table whose
 * calls succeed and do nothing, but for freeze). Works below the caller's own group; makes
 * <group>/holt.<random id>, or holtd.<instance>, for whose lock it waits some seconds. */
int cgroups_open(const struct cgroups_options *o, struct cgroups **ret, struct err *err);
/* Removes our directories. Boxes must be gone, unless we are an instance: then groups that have
 * processes stay. */
struct cgroups *cgroups_close(struct cgroups *all);
/* The most of all our boxes together, whatever was promised to each: the machine keeps the rest. As
 * far as the controllers are there. */
void cgroups_bound(struct cgroups *all, uint64_t memory_bytes, uint32_t pids);
const struct cgroup_ops *cgroups_ops(const struct cgroups *all);
/* Of a group that was opened: it may be of another kind than those that are made. */
const struct cgroup_ops *cgroup_ops_of(const struct cgroup *cg);
unsigned cgroup_missing_of(const struct cgroup *cg);
unsigned cgroups_missing(const struct cgroups *all); /* enum cgroup_controller bits not enforced */
/* What kept cgroups_open() from a better kind, for a person to read; "" when nothing did. */
const char *cgroups_why(const struct cgroups *all);
/* The launcher keeps this many processes of its own in the group: limits, usage and reset leave
 * them out. To be said before limit(). */
void cgroup_house(struct cgroup *cg, unsigned residents);
/* Kills and removes what dead launchers left; how many groups that were. */
int cgroups_sweep(struct cgroups *all);

#define CGROUP_NAME_SIZE 12
/* What the next launcher of an instance needs to know of a group: which it is, and where its
 * counters stood when it was last as good as new. */
struct cgroup_mark {
	uint8_t kind; /* enum launch_cgroup */
	char name[CGROUP_NAME_SIZE];
	uint8_t reused; /* its peak is of an earlier box */
	uint64_t memory_base, cpu_base_us;
	uint32_t oom_base;
};
bool cgroup_name_is_valid(const char *name);
void cgroup_mark(const struct cgroup *cg, struct cgroup_mark *ret);
/* A group of our instance that is there already, with `pid` in it. -ESTALE: it is not, or not.
 * Where `pid` runs without a group, so it goes on, whatever others have. -ENOTSUP: it is in one of
 * a kind that cannot be used here. */
int cgroup_open(struct cgroups *all, const struct cgroup_mark *m, pid_t pid, struct cgroup **ret,
		struct err *err);
bool cgroup_is_frozen(const struct cgroup *cg);
/* Frees what stands for the group; the group stays. */
void cgroup_forget(struct cgroup *cg);
/* Kills and removes all groups of our instance but those that keep() wants, before any is made. */
void cgroups_prune(struct cgroups *all, bool (*keep)(const char *name, void *arg), void *arg);
/* Where the instance's launcher was, from /proc/PID/cgroup of one of its boxes: what `self` above
 * takes, to be freed. -ENOENT when the process is in no group of the instance. */
int cgroups_find(const char *instance, const char *box, char **ret);
