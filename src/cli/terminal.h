/* Our terminal on a sandbox's: every key goes in, every byte comes out, the size follows. A line
 * that begins with "~." leaves the terminal running. */
#pragma once

#include "cli/client.h"

struct terminal {
	struct client *client;
	const char *sandbox, *execution;
	bool kill; /* it ends with us */
};

/* The exit code, everything said; or -errno. */
int terminal_run(const struct terminal *t, struct err *err);
