#include "launch/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdint.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"

static int set_options(int fs, const char *type, const struct fs_option *options, size_t count,
		       struct err *err)
{
	for (size_t i = 0; i < count; i++) {
		const struct fs_option *o = &options[i];
		unsigned cmd = o->value ? FSCONFIG_SET_STRING : FSCONFIG_SET_FLAG;

		if (fsconfig(fs, cmd, o->key, o->value, 0) < 0)
			return err_sys(err, errno, "%s option %s=%s", type, o->key,
				       o->value ? o->value : "");
	}
	return 0;
}

int mounts_new(const char *type, const struct fs_option *options, size_t count, unsigned attrs,
	       struct err *err)
{
	_close_ int fs = fsopen(type, FSOPEN_CLOEXEC);
	int fd;

	if (fs < 0)
		return err_sys(err, errno, "file system %s", type);
	fd = set_options(fs, type, options, count, err);
	if (fd < 0)
		return fd;
	if (fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return err_sys(err, errno, "make %s", type);
	fd = fsmount(fs, FSMOUNT_CLOEXEC, attrs);
	return fd < 0 ? err_sys(err, errno, "mount %s", type) : fd;
}

int mounts_change(int dir_fd, const char *path, const struct fs_option *options, size_t count,
		  struct err *err)
{
	_close_ int fs = fspick(dir_fd, path, FSPICK_CLOEXEC);
	int r;

	if (fs < 0)
		return err_sys(err, errno, "file system of %s", path);
	r = set_options(fs, path, options, count, err);
	if (r == 0 && fsconfig(fs, FSCONFIG_CMD_RECONFIGURE, NULL, NULL, 0) < 0)
		r = err_sys(err, errno, "change the file system of %s", path);
	return r;
}

int mounts_attach(int mount_fd, const char *path, struct err *err)
{
	if (move_mount(mount_fd, "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return err_sys(err, errno, "mount on %s", path);
	return 0;
}

int mounts_clone(int dir_fd, const char *path, int recursive, struct err *err)
{
	unsigned flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | (recursive ? AT_RECURSIVE : 0);
	int fd = open_tree(dir_fd, path, flags | (path[0] ? 0 : AT_EMPTY_PATH));

	return fd < 0 ? err_sys(err, errno, "bind %s", path) : fd;
}

int mounts_bind(const char *from, const char *to, struct err *err)
{
	if (mount(from, to, NULL, MS_BIND, NULL) < 0)
		return err_sys(err, errno, "bind %s to %s", from, to);
	return 0;
}

int mounts_protect(int mount_fd, unsigned attrs, struct err *err)
{
	struct mount_attr attr = { .attr_set = attrs };

	if (mount_setattr(mount_fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof(attr)) < 0)
		return err_sys(err, errno, "protect mount");
	return 0;
}

/* What is mapped is a tmpfs of our own, or a directory in the state directory. */
static int refuse_map(int mount_fd, struct err *err)
{
	struct statfs fs;

	if (fstatfs(mount_fd, &fs) == 0 && fs.f_type == TMPFS_MAGIC)
		return err_set(err, EOPNOTSUPP,
			       "this kernel cannot map the ids of a tmpfs: Linux 6.3 or later can");
	return err_set(err, EOPNOTSUPP,
		       "the file system of the state directory cannot map ids: use ext4, xfs or "
		       "btrfs");
}

int mounts_map(int mount_fd, unsigned attrs, int user_ns, struct err *err)
{
	struct mount_attr attr = { .attr_set = attrs | (user_ns < 0 ? 0 : MOUNT_ATTR_IDMAP),
				   .userns_fd = user_ns < 0 ? 0 : (uint64_t)user_ns };

	if (mount_setattr(mount_fd, "", AT_EMPTY_PATH, &attr, sizeof(attr)) == 0)
		return 0;
	if (errno == EINVAL && user_ns >= 0)
		return refuse_map(mount_fd, err);
	return err_sys(err, errno, "map the ids of a mount");
}

int mounts_reopen(int dir_fd, struct err *err)
{
	char link[32], path[PATH_MAX];
	struct stat want, have;
	ssize_t n;
	int fd;

	(void)str_format(link, sizeof(link), "/proc/self/fd/%d", dir_fd);
	n = readlink(link, path, sizeof(path) - 1);
	if (n < 0 || fstat(dir_fd, &want) < 0)
		return err_sys(err, errno, "directory of another namespace");
	path[n] = '\0';
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &have) < 0 || have.st_dev != want.st_dev ||
	    have.st_ino != want.st_ino) {
		(void)fd_close(fd);
		return err_set(err, ESTALE, "directory '%.100s' is not where it was", path);
	}
	return fd;
}

int mounts_pivot(struct err *err)
{
	/* Both names are ".": the old root ends up on top of the new one and is taken off at once.
	 */
	if (syscall(SYS_pivot_root, ".", ".") < 0)
		return err_sys(err, errno, "pivot_root");
	if (umount2(".", MNT_DETACH) < 0)
		return err_sys(err, errno, "detach old root");
	if (chdir("/") < 0)
		return err_sys(err, errno, "enter new root");
	return 0;
}
