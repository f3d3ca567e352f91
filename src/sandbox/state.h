/* The whole life of a sandbox as one table of allowed transitions. */
#pragma once

#include <stdbool.h>

enum sandbox_state {
	SANDBOX_CREATING,
	SANDBOX_RUNNING,
	SANDBOX_PAUSING,
	SANDBOX_PAUSED,
	SANDBOX_RESUMING,
	SANDBOX_STOPPING,
	SANDBOX_STOPPED, /* ended as asked for: deleted, or its time was over */
	SANDBOX_FAILED,  /* ended otherwise: the reason says how */
	SANDBOX_SUSPENDING,
	SANDBOX_SUSPENDED, /* has no box, but its files: may be started again */
	SANDBOX_STARTING,
	SANDBOX_STATE_COUNT
};

bool state_may_become(enum sandbox_state from, enum sandbox_state to);
bool state_stands_still(enum sandbox_state s); /* its time does not pass */
bool state_is_live(enum sandbox_state s);      /* neither stopped nor failed */
const char *state_name(enum sandbox_state s);
int state_from(const char *name, enum sandbox_state *ret); /* -EINVAL */
