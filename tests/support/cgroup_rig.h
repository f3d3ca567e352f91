/* Control groups for a test: its own group in every hierarchy, so that nobody else's launcher is a
 * sibling, and processes to put below it. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "launch/cgroup.h"

struct rig {
	enum launch_cgroup kind;
	struct cgroups *all; /* NULL: this machine does not have the kind */
	const struct cgroup_ops *ops;
};

/* Moves the test into groups of its own; false when not root. rig_leave() removes them. */
bool rig_enter(void);
void rig_leave(void);
/* Gives these groups to a user, as systemd does with Delegate=yes. */
void rig_delegate(uid_t uid);
/* How many directories named "holt.*" are in the test's groups. */
int rig_count_instances(void);

/* Starts body(arg) in the group; it begins only when it is inside. It dies with its parent. */
pid_t rig_spawn(const struct rig *rig, struct cgroup *cg, void (*body)(void *), void *arg);
int rig_wait(pid_t pid); /* its wait status */
void rig_kill(pid_t pid);

/* Shared with all processes of the test. */
void *rig_shared(size_t size);

/* What must happen, however slow the machine is; a test fails when it has not after 30 s. */
#define RIG_UNTIL(cond)                                       \
	do {                                                  \
		for (int i_ = 0; !(cond) && i_ < 30000; i_++) \
			(void)usleep(1000);                   \
		assert_true(cond);                            \
	} while (0)
