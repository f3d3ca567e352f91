/* The new mount API with errors a person understands. */
#pragma once

#include <stddef.h>

struct err;

struct fs_option {
	const char *key, *value; /* value NULL: a flag */
};

/* A new file system, mounted nowhere yet: its descriptor. `attrs`: MOUNT_ATTR_*. */
int mounts_new(const char *type, const struct fs_option *options, size_t count, unsigned attrs,
	       struct err *err);
/* Puts a detached mount on path. */
int mounts_attach(int mount_fd, const char *path, struct err *err);
/* A detached copy of what is at path, with everything below it when `recursive`. */
int mounts_clone(int dir_fd, const char *path, int recursive, struct err *err);
/* What is at `from` also at `to`, as it is. One call where a detached copy would be two; for paths
 * that no stranger can have changed. */
int mounts_bind(const char *from, const char *to, struct err *err);
/* Sets MOUNT_ATTR_* on a mount and everything below it. */
int mounts_protect(int mount_fd, unsigned attrs, struct err *err);
/* The same, and files belong to others there than on disk: as the user namespace maps their ids;
 * -1: to the same. Once for a detached mount. */
int mounts_map(int mount_fd, unsigned attrs, int user_ns, struct err *err);
/* A directory that was opened in another mount namespace, found again in the caller's. It must be
 * the very same directory. */
int mounts_reopen(int dir_fd, struct err *err);
/* Gives the file system of the mount at path other options. It may be in another mount namespace.
 */
int mounts_change(int dir_fd, const char *path, const struct fs_option *options, size_t count,
		  struct err *err);
/* Makes the working directory, which must be a mount, the root and drops the old one. */
int mounts_pivot(struct err *err);
