/* A directory of this machine as a tar, pulled piece by piece: all that is below it on its own file
 * system, with owners and hard links. No link is followed. In a thread that may wait for a disk. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"

struct err;
struct tree; /* opaque */

/* Takes dir_fd, also when it fails. entries: hard links are found among so many files. */
int tree_create(int dir_fd, uint32_t entries, struct tree **ret, struct err *err);
struct tree *tree_free(struct tree *t);
CLEANUP_FUNC(struct tree *, tree_free)
/* Files and their bytes below the directory, as far as `entries` and `bytes` go: what is beyond is
 * -EFBIG. Takes dir_fd. */
int tree_measure(int dir_fd, uint32_t *entries, uint64_t *bytes, struct err *err);
/* Bytes put into dst; 0 at the end. -EACCES names the file that cannot be read. */
ssize_t tree_read(struct tree *t, void *dst, size_t n, struct err *err);
/* Devices, pipes, sockets, and what is mounted in it: left out. */
uint64_t tree_skipped(const struct tree *t);
