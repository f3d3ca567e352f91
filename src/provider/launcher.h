/* Starts holt-launch and speaks its protocol. Requests are answered in order of completion; the
 * *_sync form waits for its own answer and keeps unasked L_DIED frames for launcher_next_death().
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "spec/launch.h"

struct err;
struct launcher; /* opaque */

struct launcher_options {
	const char *program; /* path of holt-launch; NULL: beside this executable, then libexec */
	const char *cgroup;  /* "auto", "v1", "v2", "none"; NULL is auto */
	unsigned spare_netns, spare_cgroups; /* stock kept ahead; 0: default */
};

int launcher_start(const struct launcher_options *o, struct launcher **ret, struct err *err);
/* The second half of it: greets the launcher behind a connected socket, which is taken in any case.
 * pid: our child to wait for at the end, or 0. */
int launcher_attach(int sock, pid_t pid, struct launcher **ret, struct err *err);
/* Closes the socket: the launcher destroys its boxes and ends; waits for that. Takes NULL. */
struct launcher *launcher_stop(struct launcher *l);
CLEANUP_FUNC(struct launcher *, launcher_stop)
int launcher_fd(const struct launcher *l);
pid_t launcher_pid(const struct launcher *l);
const struct launch_info *launcher_info(const struct launcher *l);

/* dir_fd: the root of a ROOT_DIR template, borrowed; else -1. */
int launcher_template_sync(struct launcher *l, const struct template_spec *t, int dir_fd,
			   struct err *err);
int launcher_pool_sync(struct launcher *l, const struct pool_spec *p, struct err *err);
int launcher_pool_state_sync(struct launcher *l, uint32_t template_id, struct pool_state *ret,
			     struct err *err);

struct launcher_box {
	char id[ID_LEN + 1];
	uint32_t flags; /* enum launch_box_flag */
	pid_t pid;
	int sock, pidfd; /* owned */
	struct limits limits;
	uint64_t step_ns[STEP_COUNT];
};
int launcher_claim_sync(struct launcher *l, const struct launch_spec *s, struct launcher_box *ret,
			struct err *err);
/* Closes the descriptors; the box lives on. */
void launcher_box_done(struct launcher_box *b);
/* The box and all it held are gone when this returns; ret may be NULL. */
int launcher_destroy_sync(struct launcher *l, const char *box_id, struct box_usage *ret,
			  struct err *err);
int launcher_usage_sync(struct launcher *l, const char *box_id, struct box_usage *ret,
			struct err *err);
int launcher_freeze_sync(struct launcher *l, const char *box_id, bool on, struct err *err);
int launcher_limits_sync(struct launcher *l, const char *box_id, const struct limits *limits,
			 struct err *err);
/* A box that ended by itself; false when none is waiting. ret_usage may be NULL. */
bool launcher_next_death(struct launcher *l, char ret_id[ID_LEN + 1], int *ret_status,
			 struct box_usage *ret_usage);
