/* One entry of a tree that is copied; for copy*.c only. */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>

#include "launch/copy.h"

struct copy {
	const struct copy_plan *plan;
	struct copy_stats *stats;
	struct err *err;
	int links;
};

/* Counts it. -EDQUOT. */
int copy_count(struct copy *c, uint64_t bytes, uint32_t inodes);
/* Owner, mode, times of an entry that was made; `fd` may be of any kind. */
int copy_meta(struct copy *c, int fd, const struct stat *st);
/* `user.` attributes; whether it is opaque comes back. What does not fit is skipped. */
int copy_attributes(struct copy *c, int from, int to, bool *ret_opaque);
/* An entry that is no directory. */
int copy_entry(struct copy *c, int from, int to, const char *name, const struct stat *st);
