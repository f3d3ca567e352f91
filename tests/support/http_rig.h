/* A server that answers by script: one connection a step, in a child. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "base/buf.h"

struct http_step {
	const char *answer; /* sent once the request is there */
	size_t len;         /* 0: strlen(answer) */
	int after_ms;       /* wait before the answer */
	/* Sent behind the answer when not NULL, this much later. "\1" in the answer of a
	 * WebSocket's handshake stands for the right Sec-WebSocket-Accept. */
	const char *more;
	size_t more_len;
	int more_after_ms;
	size_t read_more; /* bytes to read behind the request before the connection is closed */
};

struct http_rig {
	char url[64];
	pid_t pid;
	int log;        /* what the child received comes here */
	struct buf got; /* all of it, after http_rig_stop() */
};

void http_rig_start(struct http_rig *r, const struct http_step *steps, size_t n);
/* Waits for the end of the script; everything that was received is in r->got. */
void http_rig_stop(struct http_rig *r);
void http_rig_done(struct http_rig *r);
