/* Paths of the file API. The kernel resolves every one of them below a root descriptor, so what a
 * hostile process plants or swaps on the way resolves inside that root and nowhere else. All opens
 * are close-on-exec, never wait for a FIFO's other end and never take a terminal. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct err;

#define PATH_BYTES 4096 /* longest path, with its NUL */
#define PATH_NAME 256   /* longest name, with its NUL */
#define PATH_LINKS 40   /* symbolic links followed by path_locate_target() */

/* Non-empty, short enough, no component above PATH_NAME. Absolute and relative mean the same. */
int path_check(const char *path, struct err *err);

/* Opens below root_fd, links resolved inside it. Descriptor or -errno. */
int path_open(int root_fd, const char *path, int flags, struct err *err);
/* The same for a file that is made when it is missing. */
int path_create(int root_fd, const char *path, int flags, mode_t mode, struct err *err);
/* Opens below dir_fd and refuses any link and any way up. Descriptor or -errno, no message. */
int path_open_beneath(int dir_fd, const char *path, int flags);

/* Where a name is or would be: an open directory and the name inside it. */
struct path_spot {
	int dir; /* owned, O_PATH */
	char name[PATH_NAME];
};
#define PATH_SPOT_NONE \
	{              \
		-1, "" \
	}
void path_spot_done(struct path_spot *s);

/* Resolves all but the last part. With make_parents missing directories are made (0755). -EINVAL
 * when the path ends in "/", "." or "..". */
int path_locate(int root_fd, const char *path, bool make_parents, struct path_spot *ret,
		struct err *err);
/* The same, and while the name is a symbolic link, goes on to what that names inside the root. */
int path_locate_target(int root_fd, const char *path, bool make_parents, struct path_spot *ret,
		       struct err *err);
/* Below dir_fd, refusing links and ".."; leading slashes are ignored. */
int path_locate_beneath(int dir_fd, const char *path, bool make_parents, struct path_spot *ret,
			struct err *err);

/* Changes the mode of what an O_PATH descriptor names. */
int path_chmod_fd(int fd, mode_t mode);
/* Whether the caller may write what the spot names, not following a link. 0 or -errno. */
int path_may_write(const struct path_spot *s);
