/* A program of this machine with pipes, and somebody who waits for it: as whoever we are, in a
 * session of its own, with an environment that holds nothing but what everybody needs and what is
 * said. Who starts it need not be who uses it: all that there is of it are four descriptors. */
#pragma once

#include <stdint.h>

struct err;
struct stdio_spec;

struct stdio_process {
	int in, out, said; /* its standard input, output and errors: our ends, not blocking */
	/* SOCK_SEQPACKET. To it: one byte, SIGTERM or SIGKILL, for the program and all that it has
	 * started. From it: one struct stdio_ended, once that is gone. When it is closed, so is the
	 * program: killed. */
	int control;
};
#define STDIO_PROCESS_NONE     \
	(struct stdio_process) \
	{                      \
		-1, -1, -1, -1 \
	}

struct stdio_ended {
	int32_t exit_code; /* when signo is 0 */
	int32_t signo;
};

/* Who starts programs; zeroed: stdio_spawn() itself. */
struct stdio_spawner {
	int (*spawn)(void *self, const struct stdio_spec *spec, struct stdio_process *ret,
		     struct err *err);
	void *self; /* borrowed */
};

/* Blocks until the program has begun. ENOENT (no such program or directory), EACCES, EMFILE ...
 * *ret_life: ends (end of file) when the program is gone, and nobody else can make it so; NULL:
 * not wanted. */
int stdio_spawn(const struct stdio_spec *spec, struct stdio_process *ret, int *ret_life,
		struct err *err);
void stdio_process_close(struct stdio_process *p); /* -1 in each afterwards */
