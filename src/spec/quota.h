/* What is counted of an owner: the one list of it, for those who keep limits, count and show. */
#pragma once

#include <stdint.h>

enum quota_kind {
	QUOTA_SANDBOXES,  /* live ones */
	QUOTA_CPU,        /* thousandths of a core, of those that are not paused */
	QUOTA_MEMORY,     /* bytes */
	QUOTA_DISK,       /* bytes */
	QUOTA_EXECUTIONS, /* started since midnight, UTC */
	QUOTA_COUNT
};

struct quota { /* limits (0: none), or what is used */
	uint64_t v[QUOTA_COUNT];
};

const char *quota_name(enum quota_kind kind); /* "sandboxes", "cpu", ... */
