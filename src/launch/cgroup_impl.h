/* What the files behind cgroup.h share; nobody else includes it. */
#pragma once

#include <sys/types.h>

#include "base/err.h"
#include "base/id.h"
#include "launch/cgroup.h"

/* v1's hierarchies. The first four hold every box from its start; a box enters the others when it
 * is first frozen or pinned, because each entered hierarchy costs about 55 us per new box (mkdir,
 * attach, rmdir). cpuacct is among the four although no limit needs it: 17 us buy a CPU time that
 * also counts processes nobody waited for. v2 has one hierarchy and uses HIER_UNIFIED alone. */
enum hierarchy {
	HIER_MEMORY,
	HIER_PIDS,
	HIER_CPU,
	HIER_CPUACCT,
	HIER_FREEZER,
	HIER_CPUSET,
	HIER_COUNT,
	HIER_UNIFIED = 0,
	HIER_EAGER = HIER_FREEZER, /* those before it */
};

/* Our place in one hierarchy. Everything later goes through these descriptors, because the launcher
 * leaves the mount namespace in which paths to them exist. */
struct cgroup_place {
	int own; /* the caller's group; -1 when not in use or when another place is the same */
	int dir; /* ours below it, locked while we live; -1 when the hierarchy is not there */
};

#define CGROUP_PREFIX "holt."
#define CGROUP_KEEP_PREFIX "holtd." /* of those that outlive their launcher */

/* What an emptied group may keep charged and still be used again: pages that each CPU has charged
 * in advance, kernel objects not yet freed. Four short programs leave 0.7 MiB. Forcing it out
 * (memory.force_empty, memory.reclaim) takes 0.6 to 8 ms and leaves 0.5 of them; a new group takes
 * 0.4 ms, so whatever holds more is destroyed. */
#define CGROUP_RESIDUE (1u << 20)

struct cgroups {
	const struct cgroup_ops *ops;
	unsigned missing; /* enum cgroup_controller */
	uint32_t made;    /* boxes so far: their names */
	struct cgroup_place place[HIER_COUNT];
	char name[sizeof(CGROUP_KEEP_PREFIX) + ID_LEN];
	bool keeps;     /* what has processes is left when we close */
	struct err why; /* what kept us from a better kind */
	struct cgroups
		*without; /* owned: of boxes that were started without groups; NULL: none is */
	bool has_memsw;   /* v1 */
	int spawn_fd;     /* v2: the group that was asked for last */
};

struct cgroup {
	struct cgroups *all; /* borrowed */
	char name[CGROUP_NAME_SIZE];
	unsigned joined;   /* v1: bit per hierarchy in which it has a directory */
	struct limits set; /* in force; 0 where nothing was written yet */
	uint64_t memory_base, cpu_base_us, peak_bytes;
	uint32_t oom_base;
	unsigned residents; /* processes of the launcher's own in it */
	int peak_fd; /* v2, once reset: a memory.peak whose own maximum began there; else -1 */
};

/* The texts of /proc that say where we are. */
struct cgroup_texts {
	const char *mountinfo, *self; /* borrowed */
};

/* Each fills an all-empty `all` (places -1) or fails; the caller closes it either way. */
int cgroup_v1_setup(struct cgroups *all, const struct cgroup_texts *t, struct err *err);
int cgroup_v2_setup(struct cgroups *all, const struct cgroup_texts *t, bool bare, struct err *err);
void cgroup_v2_leave(struct cgroups *all); /* after our directory is gone */
/* A group that is used again: its maximum begins here. */
int cgroup_v2_reset_peak(struct cgroup *cg);
extern const struct cgroup_ops cgroup_v1_ops, cgroup_v2_ops, cgroup_none_ops;

/* Does the failure say that the machine does not have it, or not for us? Any other one must stop
 * the launcher: a box without limits because memory or descriptors were short would be a trap. */
bool cgroup_is_absence(int r);
/* What those have that run without groups; NULL without memory. */
struct cgroups *cgroups_without(struct cgroups *all);
/* A zeroed group with the next name; NULL without memory. */
struct cgroup *cgroup_new(struct cgroups *all);

/* cgroup_place.c. `group` is a name below dir, "." for dir itself. */
int cgroup_place_open(struct cgroup_place *p, const char *own, long magic, struct err *err);
int cgroup_place_enter(struct cgroup_place *p, const struct cgroups *all, struct err *err);
void cgroup_place_close(struct cgroup_place *p, const struct cgroups *all);
/* Removes all groups but those that keep() wants; the first number that no name has. */
uint32_t cgroup_place_prune(const struct cgroup_place *p, bool (*keep)(const char *name, void *arg),
			    void *arg);
int cgroup_place_sweep(const struct cgroup_place *p, const char *our_name);
bool cgroup_place_is_shared(const struct cgroup_place *p); /* another launcher's is beside it */
/* Kills what is left in a group and removes it; bounded in time. */
int cgroup_remove(int dir, const char *group);
/* Moves every process of one group to another, also those that appear meanwhile. */
int cgroup_move_all(int from_dir, const char *from, int to_dir, const char *to);
/* 0 when the group lists the process, else -ESRCH or why it cannot be told. */
int cgroup_lists(int dir, const char *group, pid_t pid);

/* cgroup_file.c: one open, one read or write, one close; -errno. */
int cgroup_write(int dir, const char *group, const char *file, const char *text);
int cgroup_write_u64(int dir, const char *group, const char *file, uint64_t value);
int cgroup_read(int dir, const char *group, const char *file, char *dst, size_t size);
int cgroup_read_u64(int dir, const char *group, const char *file, uint64_t *ret);
/* The number behind `key` in a file of "key number" lines. */
int cgroup_read_key(int dir, const char *group, const char *file, const char *key, uint64_t *ret);
/* Until the file holds `text`, at most CGROUP_WAIT_MS. -ETIMEDOUT. */
#define CGROUP_WAIT_MS 500
int cgroup_wait_text(int dir, const char *group, const char *file, const char *text);
/* All process ids of a group: a malloc'ed array, its length in *ret_n. */
int cgroup_read_procs(int dir, const char *group, pid_t **ret, size_t *ret_n);
/* "memory limit 64 MiB: write memory.limit_in_bytes: Device or resource busy" */
int cgroup_memory_error(struct err *err, int code, uint64_t bytes, const char *file);
void cgroup_nap(unsigned try); /* 0.1 ms, doubling up to 5 ms */
