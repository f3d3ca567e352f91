/* What the image of layers asks of btrfs: subvolumes, which can be made and dropped whole, and
 * limits on what each of them refers to. */
#pragma once

#include <stdint.h>

struct err;

#define BTRFS_MIN_BYTES (256ull << 20) /* below this it keeps no room to move */

/* Makes the file system in an image of that size, for which there must be space. */
int btrfs_format(int image, uint64_t bytes, struct err *err);
/* Mounts what the loop device at `path` carries, nowhere yet: a descriptor. */
int btrfs_mount(const char *path, struct err *err);
/* It has become larger below: takes all of it. */
int btrfs_grow(int fd, struct err *err);
/* From then on every subvolume is counted. Nothing happens if that is so. */
int btrfs_count(int fd, struct err *err);
/* An empty one at dir/name, with at most that many bytes of data and metadata: the descriptor of
 * its directory. */
int btrfs_make_subvolume(int dir, const char *name, uint64_t max_bytes, struct err *err);
/* Another limit, by the descriptor of its directory. */
int btrfs_limit_subvolume(int fd, uint64_t max_bytes, struct err *err);
/* With everything in it. May take as long as its data takes to be dropped. */
int btrfs_remove_subvolume(int dir, const char *name, struct err *err);
/* Subvolumes were removed. Their space comes back within a minute; where little is left, at once.
 */
void btrfs_reclaim(int fd);
/* Limits of subvolumes that are gone: older kernels keep them. */
int btrfs_remove_limits(int fd, struct err *err);
