/* Starts a program in the box. */
#pragma once

#include <sys/types.h>

#include "spec/guest.h"

struct err;

/* A started process and our ends of its streams; -1 where there is none. */
struct spawned {
	pid_t pid;
	int in, out, err; /* owned; with a PTY `out` is the master, and `in` a duplicate of it */
	unsigned char warm;
};
