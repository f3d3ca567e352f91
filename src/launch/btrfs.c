#include "launch/btrfs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/btrfs.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include "launch/loop.h"
#include "launch/mounts.h"

#define ARG(text) ((char *)(uintptr_t)(text))

int btrfs_format(int image, uint64_t bytes, struct err *err)
{
	static const char *const paths[2] = { "/usr/sbin/mkfs.btrfs", "/sbin/mkfs.btrfs" };
	/* One copy of everything: the file system below has its own ways to keep a file whole. */
	char *argv[] = { ARG("mkfs.btrfs"), ARG("-q"),     ARG("-f"),           ARG("-K"),
			 ARG("-m"),         ARG("single"), ARG("-d"),           ARG("single"),
			 ARG("-L"),         ARG("holt"),   ARG(LOOP_TOOL_PATH), NULL };
	int r;

	/* All of it is reserved: a file system whose disk fails it for want of space is lost, and
	 * every box with it. */
	if (fallocate(image, 0, 0, (off_t)bytes) < 0)
		return err_sys(err, errno, "space for the image of layers");
	r = loop_run_tool(paths, argv, image, "btrfs-progs", err);
	return r > 0 ? err_set(err, EIO, "mkfs.btrfs ended with code %d", r) : r;
}

int btrfs_mount(const char *path, struct err *err)
{
	/* What is freed stays reserved. */
	struct fs_option options[] = { { "source", path }, { "nodiscard", NULL } };

	return mounts_new("btrfs", options, 2,
			  MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOATIME, err);
}

int btrfs_count(int fd, struct err *err)
{
	struct btrfs_ioctl_quota_ctl_args on = { .cmd = BTRFS_QUOTA_CTL_ENABLE };

	if (ioctl(fd, BTRFS_IOC_QUOTA_CTL, &on) < 0 && errno != EEXIST)
		return err_sys(err, errno, "quotas of the image of layers");
	/* Of what was there before; there is nothing to wait for where all was counted. */
	if (ioctl(fd, BTRFS_IOC_QUOTA_RESCAN_WAIT) < 0)
		return err_sys(err, errno, "quotas of the image of layers");
	return 0;
}

int btrfs_make_subvolume(int dir, const char *name, uint64_t max_bytes, struct err *err)
{
	struct btrfs_ioctl_vol_args_v2 args = { 0 };
	/* Group 0 is that of the subvolume itself. */
	struct btrfs_ioctl_qgroup_limit_args limit = {
		.lim = { .flags = BTRFS_QGROUP_LIMIT_MAX_RFER, .max_rfer = max_bytes }
	};
	_close_ int fd = -1;

	if (str_copy(args.name, sizeof(args.name), name) < 0)
		return err_set(err, ENAMETOOLONG, "room of a box");
	if (ioctl(dir, BTRFS_IOC_SUBVOL_CREATE_V2, &args) < 0)
		return err_sys(err, errno, "room of a box");
	fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || ioctl(fd, BTRFS_IOC_QGROUP_LIMIT, &limit) < 0)
		return err_sys(err, errno, "limit of a box's room");
	return TAKE_FD(fd);
}

int btrfs_remove_subvolume(int dir, const char *name, struct err *err)
{
	struct btrfs_ioctl_vol_args args = { 0 };

	if (str_copy(args.name, sizeof(args.name), name) < 0)
		return err_set(err, ENAMETOOLONG, "room of a box");
	if (ioctl(dir, BTRFS_IOC_SNAP_DESTROY, &args) < 0)
		return err_sys(err, errno, "remove the room of a box");
	return 0;
}
