/* What comes back from whoever makes boxes: one answer to each request, and deaths unasked. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "spec/launch.h"

/* A claimed or attached box. */
struct launcher_box {
	char id[ID_LEN + 1];
	uint32_t flags; /* enum launch_box_flag */
	pid_t pid;
	int sock, pidfd; /* owned; pidfd may be -1 where the provider has none */
	struct limits limits;
	uint64_t step_ns[STEP_COUNT];
	char why[WHY_MAX + 1]; /* what it should have preloaded is not there; "": all is */
};
/* Closes the descriptors; the box lives on. */
void launcher_box_done(struct launcher_box *b);

/* All of it is borrowed for the time of the call. */
struct provider_reply {
	int code;                 /* 0 or a negative errno */
	const char *text;         /* for a person; "" when code is 0 */
	struct launcher_box *box; /* claim, attach; NULL elsewhere. A descriptor that the callback
				   * wants is taken with TAKE_FD, the others are closed behind it */
	struct box_usage usage;   /* destroy, usage */
	struct pool_state pool;   /* pool_state */
	const struct launch_box_info *boxes; /* list */
	size_t n_boxes;
	const struct layer_info *layers; /* layers; snapshot: the one that was made */
	size_t n_layers;
	const struct volume_info *volumes; /* volumes */
	size_t n_volumes;
};

typedef void (*provider_cb)(void *user, const struct provider_reply *r);
typedef void (*provider_builds_cb)(void *user, const struct build_state *s);
/* status: as waitpid() gives it; -1 when nobody can know it any more. */
typedef void (*provider_death_cb)(void *user, const char *box_id, int status,
				  const struct box_usage *usage);
