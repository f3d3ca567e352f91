#include "sandbox/state.h"

#include <errno.h>
#include <string.h>

#define TO(s) (1u << (s))
#define ENDS (TO(SANDBOX_STOPPING) | TO(SANDBOX_FAILED))

/* Row = from, bit = allowed to. What is being paused, resumed, suspended or started falls back when
 * that fails. */
static const struct {
	const char *name;
	unsigned to;
} states[SANDBOX_STATE_COUNT] = {
	[SANDBOX_CREATING] = { "creating", TO(SANDBOX_RUNNING) | TO(SANDBOX_FAILED) },
	[SANDBOX_RUNNING] = { "running", TO(SANDBOX_PAUSING) | TO(SANDBOX_SUSPENDING) | ENDS },
	[SANDBOX_PAUSING] = { "pausing", TO(SANDBOX_PAUSED) | TO(SANDBOX_RUNNING) | ENDS },
	[SANDBOX_PAUSED] = { "paused", TO(SANDBOX_RESUMING) | TO(SANDBOX_SUSPENDING) | ENDS },
	[SANDBOX_RESUMING] = { "resuming", TO(SANDBOX_RUNNING) | TO(SANDBOX_PAUSED) | ENDS },
	[SANDBOX_STOPPING] = { "stopping", TO(SANDBOX_STOPPED) | TO(SANDBOX_FAILED) },
	[SANDBOX_STOPPED] = { "stopped", 0 },
	[SANDBOX_FAILED] = { "failed", 0 },
	[SANDBOX_SUSPENDING] = { "suspending", TO(SANDBOX_SUSPENDED) | TO(SANDBOX_RUNNING) |
						       TO(SANDBOX_PAUSED) | ENDS },
	[SANDBOX_SUSPENDED] = { "suspended", TO(SANDBOX_STARTING) | ENDS },
	[SANDBOX_STARTING] = { "starting", TO(SANDBOX_RUNNING) | TO(SANDBOX_SUSPENDED) | ENDS },
};

bool state_may_become(enum sandbox_state from, enum sandbox_state to)
{
	return from < SANDBOX_STATE_COUNT && to < SANDBOX_STATE_COUNT &&
	       (states[from].to & TO(to)) != 0;
}

bool state_stands_still(enum sandbox_state s)
{
	return s == SANDBOX_PAUSED || s == SANDBOX_RESUMING || s == SANDBOX_SUSPENDED ||
	       s == SANDBOX_STARTING;
}

bool state_is_live(enum sandbox_state s)
{
	return s != SANDBOX_STOPPED && s != SANDBOX_FAILED;
}

const char *state_name(enum sandbox_state s)
{
	return s < SANDBOX_STATE_COUNT ? states[s].name : "unknown";
}

int state_from(const char *name, enum sandbox_state *ret)
{
	for (int s = 0; s < SANDBOX_STATE_COUNT; s++)
		if (strcmp(states[s].name, name) == 0) {
			*ret = (enum sandbox_state)s;
			return 0;
		}
	return -EINVAL;
}
