/* What is counted of an owner: the one list of it, for those who keep limits, count and show. */
#pragma once

#include <errno.h>
#include <stdint.h>

struct err;

enum quota_kind {
	QUOTA_SANDBOXES,  /* live ones, whether they run, are paused or are stopped */
	QUOTA_CPU,        /* thousandths of a core, of those that are not paused */
	QUOTA_MEMORY,     /* bytes */
	QUOTA_DISK,       /* bytes */
	QUOTA_EXECUTIONS, /* started since midnight, UTC */
	QUOTA_PIDS,       /* processes and threads */
	QUOTA_COUNT
};

struct quota { /* limits (0: none), or what is used */
	uint64_t v[QUOTA_COUNT];
};

const char *quota_name(enum quota_kind kind); /* "sandboxes", "cpu", ... */

/* A refusal for want of room: its errno, and the numbers in its text, for the doors. */
#define QUOTA_ERRNO EUSERS
struct quota_refusal {
	enum quota_kind kind;
	uint64_t limit, used;
};
int quota_refuse(struct err *err, const char *owner, enum quota_kind kind, uint64_t limit,
		 uint64_t used); /* -QUOTA_ERRNO */
/* -EINVAL: the error is no such refusal. */
int quota_refusal(const struct err *err, struct quota_refusal *ret);
