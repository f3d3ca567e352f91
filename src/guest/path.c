#include "guest/path.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"

/* One number on every architecture; a C library may be older than the call. */
#ifndef SYS_faccessat2
#define SYS_faccessat2 439
#endif
#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif

#define OPEN_ALWAYS (O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
#define OPEN_TRIES 40
#define OPEN_QUICK_TRIES 20

int path_check(const char *path, struct err *err)
{
	size_t n = strnlen(path, PATH_BYTES);
	const char *part = path;
	size_t len;

	if (n == 0)
		return err_set(err, ENOENT, "the path is empty");
	if (n == PATH_BYTES)
		return err_set(err, ENAMETOOLONG, "the path is longer than %d bytes",
			       PATH_BYTES - 1);
	while (*part != '\0') {
		len = strcspn(part, "/");
		if (len >= PATH_NAME)
			return err_set(err, ENAMETOOLONG,
				       "'%.60s...': a name has %zu bytes, limit %d", part, len,
				       PATH_NAME - 1);
		part += len;
		part += strspn(part, "/");
	}
	return 0;
}

/* EAGAIN has two causes: a rename somewhere raced with a ".." that the kernel had to prove
 * harmless, or another process holds a lease. The first is over at once, the second may last: a few
 * tries without a pause, then some with, and the caller gets the error. */
static int open_how(int dir_fd, const char *path, const struct open_how *how)
{
	const struct timespec pause = { 0, 2000000 };
	long fd = -EAGAIN;

	for (int i = 0; i < OPEN_TRIES; i++) {
		if (i > OPEN_QUICK_TRIES)
			(void)nanosleep(&pause, NULL);
		fd = syscall(SYS_openat2, dir_fd, path, how, sizeof(*how));
		if (fd >= 0)
			return (int)fd;
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
	}
	return -EAGAIN;
}

static int open_in_root(int root_fd, const char *path, int flags, mode_t mode)
{
	struct open_how how = { 0 };

	/* openat2() refuses what has no meaning: O_PATH goes with few flags, a mode with O_CREAT.
	 */
	how.flags = (uint64_t)(flags & O_PATH ? flags | O_CLOEXEC : flags | OPEN_ALWAYS);
	how.mode = flags & O_CREAT ? mode : 0;
	how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
	return open_how(root_fd, path, &how);
}

int path_open_beneath(int dir_fd, const char *path, int flags)
{
	struct open_how how = { 0 };

	how.flags = (uint64_t)(flags & O_PATH ? flags | O_CLOEXEC : flags | OPEN_ALWAYS);
	how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
	return open_how(dir_fd, path, &how);
}

static int tell(int code, const char *path, struct err *err)
{
	if (code == -EAGAIN)
		return err_set(err, EAGAIN, "open '%.150s': held by a lease or moved meanwhile",
			       path);
	return err_sys(err, code, "open '%.150s'", path);
}

int path_create(int root_fd, const char *path, int flags, mode_t mode, struct err *err)
{
	int fd = path_check(path, err);

	if (fd < 0)
		return fd;
	fd = open_in_root(root_fd, path, flags, mode);
	return fd < 0 ? tell(fd, path, err) : fd;
}

int path_open(int root_fd, const char *path, int flags, struct err *err)
{
	return path_create(root_fd, path, flags & ~O_CREAT, 0, err);
}

void path_spot_done(struct path_spot *s)
{
	s->dir = fd_close(s->dir);
}

/* Makes the directories of `dir` that are missing and opens the last. Every prefix is opened from
 * the root again, so that links and ".." inside it mean what they mean to any other open. */
static int open_made(int root_fd, char *dir)
{
	_close_ int at = open_in_root(root_fd, "/", O_PATH | O_DIRECTORY, 0);
	char *name = dir + strspn(dir, "/");
	int next;

	while (at >= 0 && *name != '\0') {
		char *end = name + strcspn(name, "/");
		char kept = *end;

		*end = '\0';
		next = open_in_root(root_fd, dir, O_PATH | O_DIRECTORY, 0);
		if (next == -ENOENT && (mkdirat(at, name, 0755) == 0 || errno == EEXIST))
			next = open_in_root(root_fd, dir, O_PATH | O_DIRECTORY, 0);
		else if (next == -ENOENT)
			next = -errno;
		*end = kept;
		(void)fd_close(at);
		at = next;
		name = end + strspn(end, "/");
	}
	return TAKE_FD(at);
}

/* Cuts `path` (changed) into its directory and its last name, both inside path. */
static int split(char *path, const char **ret_dir, const char **ret_name, struct err *err)
{
	size_t n = strlen(path);
	char *slash;

	while (n > 0 && path[n - 1] == '/')
		path[--n] = '\0';
	slash = strrchr(path, '/');
	*ret_name = slash ? slash + 1 : path;
	if (**ret_name == '\0' || strcmp(*ret_name, ".") == 0 || strcmp(*ret_name, "..") == 0)
		return err_set(err, EINVAL, "'%.150s': the path must end in a name", path);
	*ret_dir = "/";
	if (slash && slash != path) {
		*slash = '\0';
		*ret_dir = path;
	}
	return 0;
}

int path_locate(int root_fd, const char *path, bool make_parents, struct path_spot *ret,
		struct err *err)
{
	char text[PATH_BYTES], made[PATH_BYTES];
	const char *dir, *name;
	int fd, r;

	r = path_check(path, err);
	if (r < 0)
		return r;
	(void)str_copy(text, sizeof(text), path); /* fits: path_check() */
	r = split(text, &dir, &name, err);
	if (r < 0)
		return r;
	fd = open_in_root(root_fd, dir, O_PATH | O_DIRECTORY, 0);
	if (fd == -ENOENT && make_parents) {
		(void)str_copy(made, sizeof(made), dir);
		fd = open_made(root_fd, made);
	}
	if (fd < 0)
		return tell(fd, dir, err);
	ret->dir = fd;
	return str_copy(ret->name, sizeof(ret->name), name);
}

/* What a link at `path` means: an absolute target is taken from the root, a relative one from the
 * link's directory. */
static int join_link(char path[PATH_BYTES], const char *link)
{
	char joined[PATH_BYTES];
	size_t n = strlen(path);
	int r;

	while (n > 0 && path[n - 1] == '/')
		n--;
	while (n > 0 && path[n - 1] != '/')
		n--;
	if (link[0] == '/')
		n = 0;
	r = str_format(joined, sizeof(joined), "%.*s%s", (int)n, path, link);
	if (r >= 0)
		r = str_copy(path, PATH_BYTES, joined);
	return r < 0 ? -ENAMETOOLONG : 0;
}

int path_locate_target(int root_fd, const char *path, bool make_parents, struct path_spot *ret,
		       struct err *err)
{
	char text[PATH_BYTES], link[PATH_BYTES];
	ssize_t n;
	int r;

	r = path_check(path, err);
	if (r < 0)
		return r;
	(void)str_copy(text, sizeof(text), path);
	for (int i = 0; i < PATH_LINKS; i++) {
		_cleanup_(path_spot_done) struct path_spot spot = PATH_SPOT_NONE;

		r = path_locate(root_fd, text, make_parents, &spot, err);
		if (r < 0)
			return r;
		n = readlinkat(spot.dir, spot.name, link, sizeof(link) - 1);
		if (n <=
		    0) { /* not a link, or nothing there; other troubles show when it is used */
			*ret = spot;
			spot.dir = -1;
			return 0;
		}
		link[n] = '\0';
		r = join_link(text, link);
		if (r < 0)
			return err_sys(err, r, "link '%.150s'", path);
	}
	return err_sys(err, ELOOP, "open '%.150s'", path);
}

static int open_made_beneath(int dir_fd, const char *dir)
{
	_close_ int at = path_open_beneath(dir_fd, ".", O_PATH | O_DIRECTORY);
	char name[PATH_NAME];
	size_t len;
	int next;

	for (const char *p = dir; at >= 0 && *p != '\0'; p += len, p += strspn(p, "/")) {
		len = strcspn(p, "/");
		(void)str_format(name, sizeof(name), "%.*s", (int)len, p);
		next = path_open_beneath(at, name, O_PATH | O_DIRECTORY);
		if (next == -ENOENT && (mkdirat(at, name, 0755) == 0 || errno == EEXIST))
			next = path_open_beneath(at, name, O_PATH | O_DIRECTORY);
		else if (next == -ENOENT)
			next = -errno;
		(void)fd_close(at);
		at = next;
	}
	return TAKE_FD(at);
}

int path_locate_beneath(int dir_fd, const char *path, bool make_parents, struct path_spot *ret,
			struct err *err)
{
	char text[PATH_BYTES];
	const char *dir, *name;
	int fd, r;

	path += strspn(path, "/");
	r = path_check(path, err);
	if (r < 0)
		return r;
	(void)str_copy(text, sizeof(text), path);
	r = split(text, &dir, &name, err);
	if (r < 0)
		return r;
	dir = strcmp(dir, "/") == 0 ? "." : dir; /* split() says "/" for a name alone */
	fd = path_open_beneath(dir_fd, dir, O_PATH | O_DIRECTORY);
	if (fd == -ENOENT && make_parents)
		fd = open_made_beneath(dir_fd, dir);
	if (fd == -ELOOP)
		return err_set(err, ELOOP, "'%.150s': goes through a symbolic link", path);
	if (fd < 0)
		return err_sys(err, fd, "directory '%.150s'", dir);
	ret->dir = fd;
	return str_copy(ret->name, sizeof(ret->name), name);
}

int path_chmod_fd(int fd, mode_t mode)
{
	char proc[32];

	if (syscall(SYS_fchmodat2, fd, "", mode, AT_EMPTY_PATH) == 0)
		return 0;
	/* Before Linux 6.6 only the magic link of our own descriptor can do it. */
	if (errno != ENOSYS && errno != EPERM)
		return -errno;
	(void)snprintf(proc, sizeof(proc), "/proc/self/fd/%d", fd);
	return chmod(proc, mode) < 0 ? -errno : 0;
}

int path_may_write(const struct path_spot *s)
{
	const int flags = AT_EACCESS | AT_SYMLINK_NOFOLLOW;

	if (syscall(SYS_faccessat2, s->dir, s->name, W_OK, flags) == 0 || errno == ENOSYS)
		return 0;
	return -errno;
}
