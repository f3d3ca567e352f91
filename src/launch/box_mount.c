/* The part of a box's file tree that is its own: see template.c for what all boxes share. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"
#include "launch/box.h"
#include "launch/box_layers.h"
#include "launch/mounts.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* One tmpfs holds everything writable, so that one size and one inode count bound it all; if the
 * box has a room on disk, that holds what is kept. */
static const struct {
	const char *name; /* directory in the tmpfs */
	const char *path; /* in the new root */
	mode_t mode;
	bool is_kept; /* by snapshots */
} writable[] = {
	{ "tmp", "tmp", 01777, false },
	{ "workspace", "workspace", 0755, true },
	{ "home", "home/user", 0755, true },
	{ "shm", "dev/shm", 01777, false },
};
#define DISK BOX_DISK
#define ROOM DISK "/room"
#define RUN DISK "/run"
#define NOTHING BOX_NOTHING
#define PLACE_MAX 64

/* World-readable files of /proc that tell about the machine, or count what all on it do, and that
 * no program needs. What is readable by root only needs no mask: a box never has the machine's root
 * id. */
static const char *const masked_files[] = {
	"proc/cmdline",   "proc/config.gz", "proc/kallsyms",   "proc/keys",      "proc/key-users",
	"proc/locks",     "proc/modules",   "proc/interrupts", "proc/diskstats", "proc/partitions",
	"proc/buddyinfo", "proc/cgroups",   "proc/mdstat",     "proc/schedstat", "proc/softirqs",
	"proc/swaps",     "proc/vmstat",    "proc/zoneinfo",
};
static const char *const masked_dirs[] = { "proc/acpi", "proc/bus",      "proc/driver", "proc/fs",
					   "proc/irq",  "proc/pressure", "proc/scsi" };
/* In a tree that is read-only already. boot_id: one name for all boxes of this machine until it
 * boots again. */
static const char *const masked_settings[] = {
	"proc/sys/fs/aio-nr",
	"proc/sys/fs/dentry-state",
	"proc/sys/fs/file-nr",
	"proc/sys/fs/inode-nr",
	"proc/sys/fs/inode-state",
	"proc/sys/kernel/pty/nr",
	"proc/sys/kernel/random/boot_id",
};
static const char *const masked_setting_dirs[] = { "proc/sys/fs/quota" };

/* System directories that a template binds from the machine, where they are not links. */
static const char *const system_dirs[] = { "/usr",   "/bin",   "/sbin",  "/lib",
					   "/lib32", "/lib64", "/libx32" };

/* Who owns the writable directories, as the calling process names it. */
static uid_t owner_id(const struct box_plan *plan)
{
	if (plan->rootless)
		return plan->nested ? BOX_USER : 0;
	return plan->nested ? BOX_USER : plan->uid_base + BOX_USER;
}

static bool has_room(const struct box_plan *plan)
{
	return plan->room_fd > 0;
}

static const char *kept_in(const struct box_plan *plan)
{
	return has_room(plan) ? ROOM : DISK;
}

static void name_place(char dst[PLACE_MAX], const struct box_plan *plan, size_t i)
{
	(void)str_format(dst, PLACE_MAX, "%s/%s", writable[i].is_kept ? kept_in(plan) : DISK,
			 writable[i].name);
}

/* The box's root, who without privilege is its user. */
static uid_t root_id(const struct box_plan *plan)
{
	if (plan->rootless)
		return owner_id(plan);
	return plan->nested ? 0 : plan->uid_base;
}

void box_disk_size(const struct limits *l, bool has_room, char size[BOX_SIZE_MAX],
		   char inodes[BOX_SIZE_MAX])
{
	uint64_t bytes = l->disk_bytes;

	/* Disk may then be more than memory, and who fills this is to see that it is full. */
	if (has_room && bytes > l->memory_bytes / 2)
		bytes = l->memory_bytes / 2;
	(void)str_format(size, BOX_SIZE_MAX, "%llu", (unsigned long long)bytes);
	(void)str_format(inodes, BOX_SIZE_MAX, "%u", l->inodes);
}

int box_resize_disk(int proc_fd, pid_t pid, const struct limits *l, bool has_room, struct err *err)
{
	char path[32], size[BOX_SIZE_MAX], inodes[BOX_SIZE_MAX];
	struct fs_option options[] = { { "size", size }, { "nr_inodes", inodes } };

	box_disk_size(l, has_room, size, inodes);
	(void)str_format(path, sizeof(path), "%d/root/tmp", (int)pid);
	return mounts_change(proc_fd, path, options, COUNT(options), err);
}

static int make_disk(const struct box_plan *plan, struct err *err)
{
	char size[BOX_SIZE_MAX], inodes[BOX_SIZE_MAX];
	/* What is written in large pieces lies in large pages, and is copied faster for it. A
	 * kernel without them does without. */
	struct fs_option options[] = { { "size", size },
				       { "nr_inodes", inodes },
				       { "mode", "755" },
				       { "huge", "within_size" } };
	unsigned attrs = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
	int fd;

	box_disk_size(&plan->limits, has_room(plan), size, inodes);
	fd = mounts_new("tmpfs", options, COUNT(options), attrs, NULL);
	if (fd < 0)
		fd = mounts_new("tmpfs", options, COUNT(options) - 1, attrs, err);
	return fd;
}

/* What a copy-on-write layer is called, and what its overlay works with: beside it, as that must
 * be. */
static void name_upper(char dst[PLACE_MAX], const struct box_plan *plan, const char *name)
{
	(void)str_format(dst, PLACE_MAX, "%s/upper.%s", kept_in(plan), name);
}

static void name_work(char dst[PLACE_MAX], const struct box_plan *plan, const char *name)
{
	(void)str_format(dst, PLACE_MAX, "%s/work.%s", kept_in(plan), name);
}

static int make_places(const struct box_plan *plan, struct err *err)
{
	uid_t owner = owner_id(plan);

	for (size_t i = 0; i < COUNT(writable); i++) {
		char path[PLACE_MAX];

		name_place(path, plan, i);
		if (mkdir(path, writable[i].mode) < 0 || chown(path, owner, owner) < 0)
			return err_sys(err, errno, "writable directory %s", writable[i].path);
	}
	return 0;
}

static int mount_disk(const struct box_plan *plan, struct err *err)
{
	_close_ int disk = make_disk(plan, err);
	int r = disk < 0 ? disk : mounts_attach(disk, DISK, err);

	if (r == 0 && has_room(plan))
		r = mkdir(ROOM, 0700) < 0 ? err_sys(err, errno, "room of a box")
					  : mounts_attach(plan->room_fd, ROOM, err);
	if (r == 0)
		r = make_places(plan, err);
	return r < 0 ? r : layers_attach(plan, err);
}

/* An overlay of one's own even where nothing can be written: files get inodes of this box alone.
 * Otherwise inotify on a shared directory would tell what every other box and the machine itself
 * run, and locks on shared files would be a channel between boxes. */
static int mount_overlay(const struct box_plan *plan, const struct overlay *o, struct err *err)
{
	/* The root holds the devices, nothing else does; and not even that one if layers have a
	 * part in it. */
	bool nodev = plan->n_layers > 0 || !o->lower || strcmp(o->lower, "/") != 0;
	unsigned attrs = MOUNT_ATTR_NOSUID | (o->upper ? 0 : MOUNT_ATTR_RDONLY) |
			 (nodev ? MOUNT_ATTR_NODEV : 0);
	char dirs[LOWER_MAX], work[PLACE_MAX];
	/* What a box has on disk ends with it: nobody needs it written there, and a box must not
	 * make the machine wait for its disk. */
	struct fs_option options[] = { { "lowerdir", dirs },
				       { "upperdir", o->upper },
				       { "workdir", work },
				       { "userxattr", NULL },
				       { "volatile", NULL } };
	size_t count = !o->upper ? 1 : has_room(plan) ? 5 : 4;
	_close_ int fd = -1;
	int r = layers_below(plan, o, dirs, sizeof(dirs), err);

	if (r < 0)
		return r;
	name_work(work, plan, o->name);
	fd = mounts_new("overlay", options, count, attrs, err);
	if (fd >= 0 && plan->n_layers > 0 && chdir(BOX_STAGE) < 0)
		return err_sys(err, errno, "leave the layers");
	return fd < 0 ? fd : mounts_attach(fd, o->path, err);
}

static int make_layer(const struct box_plan *plan, const char *name, uid_t owner, struct err *err)
{
	char top[PLACE_MAX], work[PLACE_MAX];

	name_upper(top, plan, name);
	name_work(work, plan, name);
	if (mkdir(top, 0755) < 0 || chown(top, owner, owner) < 0 || mkdir(work, 0755) < 0)
		return err_sys(err, errno, "copy-on-write layer");
	return 0;
}

/* The layers that take a box's changes. Its root may add to these directories and replace what is
 * in them; files of the layers below keep an owner that is nobody in the box. */
static int make_upper(const struct box_plan *plan, struct err *err)
{
	static const char *const dirs[] = { "root/etc",  "root/home", "root/mnt", "root/opt",
					    "root/root", "root/srv",  "root/var" };
	uid_t owner = root_id(plan);
	int r = make_layer(plan, "root", owner, err);

	for (size_t i = 0; i < COUNT(dirs) && r == 0; i++) {
		char path[PLACE_MAX];

		name_upper(path, plan, dirs[i]);
		if (mkdir(path, 0755) < 0 || chown(path, owner, owner) < 0)
			r = err_sys(err, errno, "copy-on-write layer");
	}
	for (size_t i = 0; i < COUNT(system_dirs) && r == 0 && plan->root == ROOT_HOST; i++)
		r = make_layer(plan, system_dirs[i] + 1, owner, err);
	return r;
}

/* Who puts something else where a mount is to be would have it elsewhere. */
static int check_places(const struct box_plan *plan, struct err *err)
{
	static const char *const dirs[] = { "dev", "home", "home/user", "proc",
					    "sys", "tmp",  "workspace" };
	struct stat st;

	for (size_t i = 0; i < COUNT(dirs) && plan->n_layers > 0; i++)
		if (fstatat(AT_FDCWD, dirs[i], &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    !S_ISDIR(st.st_mode))
			return err_set(err, ENOTDIR, "the layers have no directory /%s", dirs[i]);
	return 0;
}

/* The directory is mounted on itself: that mount stays writable when those above it do not. */
static int keep_writable(const struct box_plan *plan, const char *path, struct err *err)
{
	_close_ int dir = layers_make_path(path, owner_id(plan), err);
	_close_ int tree = dir < 0 ? -1 : mounts_clone(dir, "", 0, err);

	if (tree < 0)
		return dir < 0 ? dir : tree;
	return move_mount(tree, "", dir, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0
		       ? err_sys(err, errno, "writable path %s", path)
		       : 0;
}

static int protect(const char *path, struct err *err)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY };

	return mount_setattr(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, &attr, sizeof(attr)) < 0
		       ? err_sys(err, errno, "protect %s", path)
		       : 0;
}

/* A root that is writable here and there. What boxes write lies in one place all the same, so
 * snapshots and limits need not know. */
static int narrow_root(const struct box_plan *plan, struct err *err)
{
	struct str rest = str_of(plan->writable), one = { 0 };
	char path[TEMPLATE_WRITABLE_MAX + 1];
	int r = 0;

	while (r == 0 && str_split(&rest, ':', &one)) {
		(void)str_format(path, sizeof(path), "%.*s", (int)one.len, one.data);
		r = keep_writable(plan, path, err);
	}
	for (size_t i = 0; i < COUNT(system_dirs) && r == 0 && plan->root == ROOT_HOST; i++) {
		struct stat st;

		if (lstat(system_dirs[i], &st) == 0 && S_ISDIR(st.st_mode))
			r = protect(system_dirs[i] + 1, err);
	}
	return r < 0 ? r : protect(".", err);
}

static int mount_root(const struct box_plan *plan, struct err *err)
{
	bool upper = plan->flags & TEMPLATE_WRITABLE_ROOT;
	char top[PLACE_MAX];
	int r = upper ? make_upper(plan, err) : 0;

	if (r < 0)
		return r;
	if (mkdir(NOTHING, 0755) < 0)
		return err_sys(err, errno, "empty layer");
	name_upper(top, plan, "root");
	r = mount_overlay(plan,
			  &(struct overlay){ .name = "root",
					     .lower = "/",
					     .second = plan->root == ROOT_DIR ? BOX_LOWER : NULL,
					     .upper = upper ? top : NULL,
					     .path = BOX_STAGE },
			  err);
	if (r == 0 && chdir(BOX_STAGE) < 0)
		r = err_sys(err, errno, "enter new root");
	for (size_t i = 0; i < COUNT(system_dirs) && r == 0 && plan->root == ROOT_HOST; i++) {
		const char *name = system_dirs[i] + 1;
		struct stat st;

		name_upper(top, plan, name);
		if (lstat(system_dirs[i], &st) == 0 && S_ISDIR(st.st_mode))
			r = mount_overlay(plan,
					  &(struct overlay){ .name = name,
							     .lower = system_dirs[i],
							     .upper = upper ? top : NULL,
							     .path = name },
					  err);
	}
	return r < 0 ? r : check_places(plan, err);
}

/* The template's nodes, by inodes of this box alone. */
static int mount_own_devices(struct err *err)
{
	static const struct fs_option options[] = { { "lowerdir", "/dev:" NOTHING },
						    { "userxattr", NULL } };
	_close_ int fd = mounts_new("overlay", options, COUNT(options),
				    MOUNT_ATTR_NOSUID | MOUNT_ATTR_RDONLY, err);

	return fd < 0 ? fd : mounts_attach(fd, "dev", err);
}

/* Real nodes came with the overlay; bound ones have to be bound again. In an overlay that a user
 * namespace has mounted, device nodes do not work at all. */
static int mount_devices(const struct box_plan *plan, struct err *err)
{
	_close_ int tree = -1;

	if (plan->dev_fd > 0)
		return mounts_attach(plan->dev_fd, "dev", err);
	if (plan->n_layers > 0 && !plan->rootless)
		return mount_own_devices(err);
	if (!plan->rootless && !plan->nested)
		return 0;
	tree = mounts_clone(AT_FDCWD, "/dev", 1, err);
	return tree < 0 ? tree : mounts_attach(tree, "dev", err);
}

static int mount_place(const struct box_plan *plan, size_t i, struct err *err)
{
	char from[PLACE_MAX], work[PLACE_MAX];
	const char *name = writable[i].name;

	name_place(from, plan, i);
	name_work(work, plan, name);
	/* An overlay also hides what a file system on disk offers beside files: who could make
	 * subvolumes in a room would have what no limit counts. */
	if (!writable[i].is_kept || (plan->n_layers == 0 && !has_room(plan)))
		return mounts_bind(from, writable[i].path, err);
	if (mkdir(work, 0755) < 0)
		return err_sys(err, errno, "copy-on-write layer");
	return mount_overlay(
		plan, &(struct overlay){ .name = name, .upper = from, .path = writable[i].path },
		err);
}

/* The place of holt-init's socket, and of what programs of root keep while they run. */
static int mount_run(const struct box_plan *plan, struct err *err)
{
	_close_ int there = openat(AT_FDCWD, "run", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (there < 0)
		return err_sys(err, errno, "place of /run");
	if (mkdir(RUN, 0755) < 0 || chown(RUN, root_id(plan), root_id(plan)) < 0)
		return err_sys(err, errno, "writable directory run");
	return mounts_bind(RUN, "run", err);
}

static int mount_writable(const struct box_plan *plan, struct err *err)
{
	/* Below /tmp, where no process of the box can look: all that it has written, for whoever
	 * takes a snapshot. */
	int r = mounts_bind(DISK, "tmp", err);

	for (size_t i = 0; i < COUNT(writable) && r == 0; i++)
		r = mount_place(plan, i, err);
	if (r == 0 && (plan->flags & TEMPLATE_SUDO))
		r = mount_run(plan, err);
	return r < 0 ? r : layers_add_volumes(plan, owner_id(plan), err);
}

static int mask(const char *const *paths, size_t count, const char *with, struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < count && r == 0; i++) {
		r = mounts_bind(with, paths[i], err);
		if (r == -ENOENT) /* this kernel has no such file */
			r = 0;
	}
	return r;
}

/* Settings of the kernel can be read and never written, whoever asks. */
static int protect_sysctl(struct err *err)
{
	_close_ int tree = mounts_clone(AT_FDCWD, "proc/sys", 0, err);
	int r;

	if (tree < 0)
		return tree;
	r = mounts_protect(tree, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, err);
	if (r == 0)
		r = mounts_attach(tree, "proc/sys", err);
	if (r == 0)
		r = mask(masked_settings, COUNT(masked_settings), "dev/null", err);
	return r < 0 ? r : mask(masked_setting_dirs, COUNT(masked_setting_dirs), "sys", err);
}

static int mount_proc(const struct box_plan *plan, struct err *err)
{
	bool high = plan->level == LEVEL_HIGH || (plan->flags & TEMPLATE_STRICT_PROC);
	char gid[16];
	/* holt-init's group sees every process of the box; its user sees his own. */
	struct fs_option options[] = { { "hidepid", "invisible" },
				       { "gid", gid },
				       { "subset", "pid" } };
	_close_ int fd = -1;
	int r;

	(void)str_format(gid, sizeof(gid), "%u",
			 plan->nested ? (plan->rootless ? BOX_USER : 0)
				      : (plan->rootless ? 0 : plan->uid_base));
	fd = mounts_new("proc", options, high ? 3 : 2,
			MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, err);
	if (fd < 0)
		return fd;
	r = mounts_attach(fd, "proc", err);
	if (r < 0 || high)
		return r;
	r = mask(masked_files, COUNT(masked_files), "dev/null", err);
	if (r == 0)
		r = mask(masked_dirs, COUNT(masked_dirs), "sys", err);
	return r < 0 ? r : protect_sysctl(err);
}

static int mount_terminals(struct err *err)
{
	static const struct fs_option options[] = { { "ptmxmode", "0666" },
						    { "mode", "0620" },
						    { "max", "64" } };
	_close_ int fd = mounts_new("devpts", options, COUNT(options),
				    MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, err);

	return fd < 0 ? fd : mounts_attach(fd, "dev/pts", err);
}

int box_mount(const struct box_plan *plan, struct err *err)
{
	mode_t before = umask(0); /* the modes below are exact */
	int r = mount_disk(plan, err);

	if (r == 0)
		r = mount_root(plan, err);
	if (r == 0 && plan->writable[0] != '\0')
		r = narrow_root(plan, err);
	if (r == 0)
		r = mount_devices(plan, err);
	if (r == 0)
		r = mount_writable(plan, err);
	if (r == 0)
		r = mount_proc(plan, err);
	if (r == 0)
		r = mount_terminals(err);
	if (r == 0)
		r = mounts_pivot(err);
	if (r == 0 && sethostname("sandbox", 7) < 0)
		r = err_sys(err, errno, "host name");
	(void)umask(before);
	return r;
}
