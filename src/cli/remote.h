/* An execution in a sandbox, with our standard input, output and error as its own. Back-pressure
 * goes both ways; Ctrl-C is passed on, the second one ends it; a connection that breaks is made
 * again. */
#pragma once

#include <stdint.h>

#include "cli/client.h"

struct remote_run {
	struct client *client;
	const char *sandbox;
	const char *route;      /* as in struct follow */
	const struct buf *body; /* of the POST there, with "stream":true */
	uint64_t timeout_ms;    /* that was asked for; 0: none */
	bool no_stdin;          /* ours is left alone */
	bool discard;           /* output is not written: the caller asks for it afterwards */
	char id[65];            /* filled in: the execution's */
};

/* Blocks the signals that are handled; call it before the first request. */
void remote_block_signals(void);
/* The exit code, everything said; or -errno. */
int remote_run(struct remote_run *run, struct err *err);
