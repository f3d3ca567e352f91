/* The sandboxes whose token was given out or used last: a bounded list, the last one first. For who
 * is shown what a sandbox's token has made, and not whose it is. */
#pragma once

#include "base/id.h"

#define RECENT_MAX 64u

struct recent { /* zeroed is empty */
	char ids[RECENT_MAX][ID_LEN + 1];
	unsigned n;
};

/* Puts it first; when there are too many, the last one gives way. */
void recent_note(struct recent *r, const char id[ID_LEN + 1]);
