/* Work that may take long, in a child process of its own: the launcher's loop never waits for a
 * disk. A job ends with the launcher, at the latest. It has nothing open but what it is given, so
 * it keeps nothing of a box or of the launcher's locks alive. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/id.h"
#include "base/list.h"
#include "launch/launch.h"

#define JOBS_MAX 64
#define JOB_MS (30u * 60 * 1000) /* none takes as long; then it is killed */
#define JOB_FD 4                 /* in the child: the first of the descriptors that it was given */

/* What a job comes to. */
struct job_result {
	int32_t code; /* 0 or a negative errno */
	uint32_t inodes, skipped;
	uint64_t bytes;
	char text[240]; /* why not, for a person */
};

struct job {
	struct source source; /* first: its socket */
	struct list node;
	pid_t pid;
	int sock;         /* owned */
	uint64_t due_ms;  /* then it has to be over */
	uint32_t request; /* that waits for it; 0: nobody does */
	uint32_t flags;
	char id[ID_LEN + 1], box_id[ID_LEN + 1];
	struct waiting *waiting; /* owned: a claim that waits for its volumes */
	/* In the launcher. Descriptors that it does not take (sets to -1) are closed behind it. */
	void (*done)(struct launch *l, struct job *j, const struct job_result *r, int *fds,
		     size_t nfds);
};

/* In the child. What it opens for the launcher goes to ret_fds, at most FD_PASS_MAX. */
typedef int (*job_work)(const void *arg, struct job_result *ret, int *ret_fds, size_t *ret_nfds,
			struct err *err);

/* Copies *j. fds are borrowed. -EAGAIN when too many are under way. */
int job_start(struct launch *l, const struct job *j, job_work work, const void *arg, const int *fds,
	      size_t nfds, struct err *err);
/* It ends at once; done() gets -ECANCELED. */
void job_cancel(struct launch *l, struct job *j);
/* The job that does this for that box, or this for that id; NULL: none. Either may be NULL. */
struct job *job_find(const struct launch *l, const char *id, const char *box_id);
/* Ends those that take too long: done() gets -ETIMEDOUT. */
void jobs_expire(struct launch *l);
/* In a child: leaves it with that socket on JOB_FD - 1 and the others from JOB_FD on. */
int job_keep_only(int sock, const int *fds, size_t nfds);
/* At the end: cancels all of them. */
void jobs_close(struct launch *l);
