#include "launch/btrfs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/btrfs.h>
#include <linux/btrfs_tree.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include "launch/loop.h"
#include "launch/mounts.h"

#define SCARCE_PART 4
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

int btrfs_grow(int fd, struct err *err)
{
	struct btrfs_ioctl_vol_args all = { .name = "max" };

	return ioctl(fd, BTRFS_IOC_RESIZE, &all) < 0
		       ? err_sys(err, errno, "size of the image of layers")
		       : 0;
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

int btrfs_limit_subvolume(int fd, uint64_t max_bytes, struct err *err)
{
	/* Group 0 is that of the subvolume itself. */
	struct btrfs_ioctl_qgroup_limit_args limit = {
		.lim = { .flags = BTRFS_QGROUP_LIMIT_MAX_RFER, .max_rfer = max_bytes }
	};

	return ioctl(fd, BTRFS_IOC_QGROUP_LIMIT, &limit) < 0
		       ? err_sys(err, errno, "limit of a box's room")
		       : 0;
}

int btrfs_make_subvolume(int dir, const char *name, uint64_t max_bytes, struct err *err)
{
	struct btrfs_ioctl_vol_args_v2 args = { 0 };
	_close_ int fd = -1;
	int r;

	if (str_copy(args.name, sizeof(args.name), name) < 0)
		return err_set(err, ENAMETOOLONG, "room of a box");
	if (ioctl(dir, BTRFS_IOC_SUBVOL_CREATE_V2, &args) < 0)
		return err_sys(err, errno, "room of a box");
	fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return err_sys(err, errno, "room of a box");
	r = btrfs_limit_subvolume(fd, max_bytes, err);
	return r < 0 ? r : TAKE_FD(fd);
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

void btrfs_reclaim(int fd)
{
	struct statvfs fs;

	/* It costs a commit, which everybody on the file system waits for. */
	if (fstatvfs(fd, &fs) == 0 && fs.f_bavail < fs.f_blocks / SCARCE_PART)
		(void)ioctl(fd, BTRFS_IOC_START_SYNC, NULL);
}

/* The items of one type with this object id in a tree, and with an offset not below `from`. */
static int search(int fd, struct btrfs_ioctl_search_args *args, uint64_t tree, uint32_t type,
		  uint64_t object, uint64_t from)
{
	args->key = (struct btrfs_ioctl_search_key){ .tree_id = tree,
						     .min_objectid = object,
						     .max_objectid = object,
						     .min_offset = from,
						     .max_offset = UINT64_MAX,
						     .max_transid = UINT64_MAX,
						     .min_type = type,
						     .max_type = type,
						     .nr_items = UINT32_MAX };
	return ioctl(fd, BTRFS_IOC_TREE_SEARCH, args) < 0 ? -errno : 0;
}

/* Also while the kernel is still taking it down. */
static bool is_there(int fd, uint64_t id)
{
	struct btrfs_ioctl_search_args args;

	return search(fd, &args, BTRFS_ROOT_TREE_OBJECTID, BTRFS_ROOT_ITEM_KEY, id, 0) < 0 ||
	       args.key.nr_items > 0;
}

static void remove_limit(int fd, uint64_t id)
{
	struct btrfs_ioctl_qgroup_create_args off = { .create = 0, .qgroupid = id };

	/* The first ids are those of the file system's own trees, the highest of other levels. */
	if (id >= BTRFS_FIRST_FREE_OBJECTID && id >> BTRFS_QGROUP_LEVEL_SHIFT == 0 &&
	    !is_there(fd, id))
		(void)ioctl(fd, BTRFS_IOC_QGROUP_CREATE, &off);
}

int btrfs_remove_limits(int fd, struct err *err)
{
	struct btrfs_ioctl_search_args args;
	uint64_t next = 0;

	for (;;) {
		size_t at = 0;
		int r = search(fd, &args, BTRFS_QUOTA_TREE_OBJECTID, BTRFS_QGROUP_INFO_KEY, 0,
			       next);

		if (r < 0)
			return err_sys(err, r, "limits of rooms");
		if (args.key.nr_items == 0)
			return 0;
		for (uint32_t i = 0; i < args.key.nr_items; i++) {
			struct btrfs_ioctl_search_header item;

			memcpy(&item, args.buf + at, sizeof(item));
			at += sizeof(item) + item.len;
			remove_limit(fd, item.offset);
			next = item.offset + 1;
		}
	}
}
