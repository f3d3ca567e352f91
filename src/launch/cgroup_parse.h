/* Where the caller's own control group is, from the kernel's two descriptions of it. Pure functions
 * over the text of /proc/self/mountinfo and /proc/self/cgroup. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Where a v2 launcher puts itself when its own group must be free of processes. The next launcher
 * starts there and works one level up. */
#define CGROUP_LEAF "holt.main"

/* The caller's group in the hierarchy of a v1 controller, or in v2's (controller NULL), as a path.
 * -ENOENT when it is not mounted, or is mounted so that the group cannot be seen; -E2BIG. */
int cgroup_parse_dir(const char *mountinfo, const char *self, const char *controller, char *dst,
		     size_t size);

/* "0,2,5" of a mask; dst needs CGROUP_CPUS_SIZE bytes. */
#define CGROUP_CPUS_SIZE 192
void cgroup_format_cpus(uint64_t mask, char dst[CGROUP_CPUS_SIZE]);

struct cgroup_quota {
	uint64_t quota_us, period_us;
};
/* The quota of so many thousandths of a core. The period is long enough that a short run is over
 * before its share is used up, and short enough that a box which has used it up answers again soon;
 * below 1/100 of a core it grows, because no quota may be under 1 ms. */
struct cgroup_quota cgroup_quota(uint32_t cpu_milli);
