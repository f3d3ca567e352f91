/* Copies and removes trees that strangers have filled. Every step goes through a descriptor of a
 * directory and one name in it, nothing is followed, nothing is executed, and neither depth nor
 * number of what is found there can exhaust memory or descriptors.
 *
 * What is copied is what an overlay's upper layer is made of: files with their holes, hard links,
 * modes, times and `user.` attributes, symbolic links, fifos, whiteouts, opaque directories.
 * Sockets and devices are skipped and counted. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct err;

/* Ids from..from+count-1 become to..; any other becomes to+count-1, which is nobody's. */
struct copy_ids {
	uint32_t from, to, count; /* count 0: owners are not copied, all is the caller's */
};

struct copy_plan {
	struct copy_ids ids;
	uint64_t max_bytes; /* of data and attributes; -EDQUOT beyond */
	uint32_t max_inodes;
};

struct copy_stats {
	uint64_t bytes;
	uint32_t inodes, skipped;
};

/* What is in `from` into `to`, which may have something already: an entry takes the place of one of
 * the same name, a directory is merged with a directory unless it is opaque, a whiteout replaces
 * and stays. `links`: an empty directory of the same file system as `to`, for the first copy of
 * each file that has more names; the caller removes it. Adds to *stats. The mode, the times and the
 * owner of `to` become those of `from`. */
int copy_tree(int from, int to, int links, const struct copy_plan *plan, struct copy_stats *stats,
	      struct err *err);
/* Calls visit() for each entry of dir; stops at a negative result. */
int copy_each_name(int dir, int (*visit)(void *arg, int dir, const char *name), void *arg,
		   struct err *err);
/* Removes dir/name whatever it is, and all that is in it. 0 when there is no such entry. */
int copy_remove(int dir, const char *name, struct err *err);
