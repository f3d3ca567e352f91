/* A provider without machinery, for tests: boxes are entries of a table, any call can be made to
 * fail, and the test holds the box's end of each control socket. */
#pragma once

#include "provider/provider.h"

#define FAKE_BOXES_MAX 64

struct fake_box {
	char id[ID_LEN + 1]; /* "" when the slot is free */
	int guest;           /* owned: where the box's holt-init would listen */
	bool frozen;
	struct limits limits;
};

struct fake {
	unsigned fail_in; /* this many calls from now one fails: 1 is the next, 0 none */
	int fail_with;    /* positive errno of that failure */
	unsigned calls;
	size_t live;
	struct box_usage usage; /* what every box reports */
	struct fake_box boxes[FAKE_BOXES_MAX];
};

/* A zeroed struct fake is valid. */
struct provider provider_fake(struct fake *f);
struct fake_box *fake_find(struct fake *f, const char *box_id); /* NULL when it is not there */
void fake_done(struct fake *f);
