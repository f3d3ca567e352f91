/* holt-init's loop: serves one control socket until it ends. */
#pragma once

#include <stdbool.h>

struct guest_options {
	int python_fd; /* the waiting Python's socket; -1: none. Owned by guest_serve() */
	/* Modules for a Python that is to be started ahead, and what it needs to wait (borrowed);
	 * NULL: none is. */
	const char *preload;
	int lib_fd;
	bool node;                /* start a Node ahead */
	const char *preload_node; /* with these modules; NULL or "": with none */
	bool sudo;                /* the box's user may become root: see sudo.h */
	int oom_fd; /* /proc/self/oom_score_adj, opened while we were dumpable; 0: none */
};

/* Takes sock. Says G_READY first; the result is 0 when the client hung up, or -errno after a
 * G_ERROR of id 0 has said why the box is unusable. As PID 1 the caller then exits, and with it the
 * box. */
int guest_serve(int sock, const struct guest_options *options);
