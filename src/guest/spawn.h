/* Starts a program in the box. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "spec/guest.h"

struct err;
struct user;
struct warm_end;

/* A started process and our ends of its streams; -1 where there is none. */
struct spawned {
	pid_t pid;
	int in, out, err; /* owned; with a PTY `out` is the master, and `in` a duplicate of it */
	unsigned char warm;
	uint64_t mark;              /* what it and all its descendants carry: see GUEST_MARK_SUM */
	const struct warm_end *end; /* owned: where it may say how it ends; NULL: nowhere */
};

struct spawn_plan {
	const char *const *argv; /* argv[0] without a slash is looked up in envp's PATH */
	const char *const *envp;
	const char *const *plain; /* tried before argv, its first an absolute path; NULL: none */
	const struct user *user;
	const char *cwd; /* "": the user's home, or / where that cannot be entered */
	uint8_t flags;   /* EXEC_PTY, EXEC_STDIN */
	uint16_t rows, cols;
	uint32_t cpu_seconds;
	uint64_t mark;     /* 0: none, a helper of our own */
	int oom_fd;        /* our own oom_score_adj, borrowed; 0: to be opened, if we may */
	const int *passed; /* borrowed, all of them above 15: it has them as 3 and up, */
	size_t n_passed;   /* and, if there are any, no stream but /dev/null */
	/* Borrowed: what become its 0, 1 and 2; NULL: pipes or a terminal of ours. */
	const int *fds;
	int cwd_fd; /* borrowed: where it runs if cwd is ""; 0: at home */
};

/* The process has begun to run the program when this returns 0. Our ends of its streams are
 * close-on-exec and non-blocking. A failure names the program: -ENOENT, -EACCES, -ENOEXEC, ... */
int spawn_start(const struct spawn_plan *plan, struct spawned *ret, struct err *err);
void spawn_close(struct spawned *s); /* our ends; the process is left alone */
