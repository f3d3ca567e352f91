#include "launch/room.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/log.h"
#include "launch/btrfs.h"
#include "launch/copy.h"
#include "launch/launch.h"
#include "launch/loop.h"
#include "launch/mounts.h"

#define IMAGE "layers.img"
#define HALF IMAGE ".new"
#define PLACE "image"
#define LEFT_MAX 64
#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define FILE_FLAGS (O_RDWR | O_NOFOLLOW | O_CLOEXEC)

/* Under another name first: what is there is whole. */
static int make_image(const struct launch *l, uint64_t bytes, struct err *err)
{
	_close_ int fd = -1;
	int r;

	(void)unlinkat(l->state.dir, HALF, 0);
	fd = openat(l->state.dir, HALF, FILE_FLAGS | O_CREAT | O_EXCL, 0600);
	if (fd < 0)
		return err_sys(err, errno, IMAGE);
	r = btrfs_format(fd, bytes, err);
	if (r == 0 && (fsync(fd) < 0 || renameat(l->state.dir, HALF, l->state.dir, IMAGE) < 0))
		r = err_sys(err, errno, IMAGE);
	if (r < 0) {
		(void)unlinkat(l->state.dir, HALF, 0);
		return r;
	}
	return TAKE_FD(fd);
}

/* What it lacks to that size is reserved; it never becomes smaller. */
static int extend(int image, uint64_t bytes, struct err *err)
{
	struct stat st;

	if (fstat(image, &st) < 0)
		return err_sys(err, errno, IMAGE);
	if ((uint64_t)st.st_size < bytes && fallocate(image, 0, 0, (off_t)bytes) < 0)
		return err_sys(err, errno, "space for the image of layers");
	return 0;
}

/* Its descriptor; -ENOENT: there is none, and none is wanted. */
static int open_image(const struct launch *l, uint64_t bytes, struct err *err)
{
	int fd = openat(l->state.dir, IMAGE, FILE_FLAGS);

	if (fd >= 0)
		return fd;
	if (errno != ENOENT)
		return err_sys(err, errno, IMAGE);
	return bytes > 0 ? make_image(l, bytes, err) : -ENOENT;
}

/* Boxes that live on keep the device that an earlier launcher has chosen, and a file system must
 * not be mounted from two. */
static int mount_image(int image, struct err *err)
{
	char path[LOOP_PATH_SIZE];
	_close_ int loop = loop_find(image, path, err);
	int r;

	if (loop == -ENOENT)
		loop = loop_attach(image, path, err);
	if (loop < 0)
		return loop;
	r = loop_grow(loop, err);
	return r < 0 ? r : btrfs_mount(path, err);
}

/* A mount can be copied only by who is where it is: it is put into our own view. */
static int place(const struct launch *l, int mount, struct err *err)
{
	_close_ int dir = -1, here = -1;

	if (mkdirat(l->state.dir, PLACE, 0700) < 0 && errno != EEXIST)
		return err_sys(err, errno, "place of the image of layers");
	dir = openat(l->state.dir, PLACE, DIR_FLAGS);
	if (dir < 0)
		return err_sys(err, errno, "place of the image of layers");
	here = mounts_reopen(dir, err);
	if (here < 0)
		return here;
	if (move_mount(mount, "", here, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
		return err_sys(err, errno, "mount the image of layers");
	return 0;
}

static int open_dir(int at, const char *name, struct err *err)
{
	int fd;

	if (mkdirat(at, name, 0700) < 0 && errno != EEXIST)
		return err_sys(err, errno, "directory of %s", name);
	fd = openat(at, name, DIR_FLAGS);
	return fd < 0 ? err_sys(err, errno, "directory of %s", name) : fd;
}

/* Rooms whose boxes are there still; the others are removed. */
static int claim_back(void *arg, int dir, const char *name)
{
	struct launch *l = arg;
	struct box *b = boxes_find(l, name);

	if (b)
		b->has_room = true;
	else if (id_is_valid(name))
		(void)disk_discard(dir, name, false);
	return 0;
}

static int open_rooms(struct launch *l, uint64_t bytes, struct err *err)
{
	_close_ int image = open_image(l, bytes, err);
	_close_ int mount = -1;
	int r;

	if (image < 0)
		return image;
	r = extend(image, bytes, err);
	if (r < 0)
		return r;
	mount = mount_image(image, err);
	if (mount < 0)
		return mount;
	r = place(l, mount, err);
	if (r == 0)
		r = l->rooms.layers = open_dir(mount, "layers", err);
	if (r >= 0)
		r = l->rooms.rooms = open_dir(mount, "rooms", err);
	if (r >= 0)
		r = btrfs_count(l->rooms.rooms, err);
	if (r >= 0)
		r = btrfs_grow(l->rooms.rooms, err);
	return r < 0 ? r : copy_each_name(l->rooms.rooms, claim_back, l, err);
}

int rooms_open(struct launch *l, uint64_t bytes, struct err *err)
{
	struct err why = { 0 };
	int r;

	if (bytes > 0 && !state_is_open(&l->state))
		return err_set(err, EOPNOTSUPP, "layers on disk need a state directory");
	if (bytes > 0 && l->rootless)
		return err_set(err, EOPNOTSUPP,
			       "layers on disk need a launcher with root's rights: they are "
			       "mounted by a loop device");
	if (!state_is_open(&l->state) || l->rootless)
		return 0;
	r = open_rooms(l, bytes, &why);
	if (r == -ENOENT && bytes == 0)
		return 0;
	l->rooms.are_used = bytes > 0;
	return r < 0 ? err_set(err, -r, "layers on disk: %s", why.text) : 0;
}

void rooms_close(struct launch *l)
{
	l->rooms.layers = fd_close(l->rooms.layers);
	l->rooms.rooms = fd_close(l->rooms.rooms);
}

int room_make(struct launch *l, struct box *b, struct err *err)
{
	_close_ int dir = -1, tree = -1;
	int r;

	if (!l->rooms.are_used)
		return 0;
	b->has_room = true; /* also if it is half made */
	dir = btrfs_make_subvolume(l->rooms.rooms, b->id, b->plan.limits.disk_bytes, err);
	if (dir < 0)
		return dir;
	/* A box that makes its user namespace first has no other rights to it. */
	if (fchown(dir, b->plan.uid_base, b->plan.uid_base) < 0)
		return err_sys(err, errno, "owner of a box's room");
	if (setns(l->view_ns, CLONE_NEWNS) < 0)
		return err_sys(err, errno, "enter the machine's mounts");
	tree = mounts_clone(l->rooms.rooms, b->id, 0, err);
	if (tree < 0)
		return tree;
	r = mounts_protect(tree, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, err);
	if (r == 0)
		b->room_fd = TAKE_FD(tree);
	return r;
}

int room_renew(struct launch *l, struct box *b, struct err *err)
{
	int r;

	if (!b->has_room)
		return 0;
	b->room_fd = fd_close(b->room_fd);
	r = btrfs_remove_subvolume(l->rooms.rooms, b->id, err); /* there is next to nothing in it */
	return r < 0 ? r : room_make(l, b, err);
}

int room_resize(const struct launch *l, const struct box *b, uint64_t bytes, struct err *err)
{
	_close_ int dir = b->has_room ? room_open(l, b, err) : -1;

	if (!b->has_room)
		return 0;
	return dir < 0 ? dir : btrfs_limit_subvolume(dir, bytes, err);
}

void room_drop(struct launch *l, struct box *b)
{
	b->room_fd = fd_close(b->room_fd);
	if (!b->has_room || l->rooms.rooms < 0)
		return;
	b->has_room = false;
	if (disk_discard(l->rooms.rooms, b->id, false) == 0)
		l->rooms.left++;
}

bool rooms_tidy(struct launch *l, bool calm)
{
	if (l->rooms.left == 0 || l->disk.sweeping || (!calm && l->rooms.left < LEFT_MAX))
		return false;
	l->rooms.left = 0; /* what cannot be removed now is tried again with the next */
	disk_sweep(l);
	return l->disk.sweeping;
}

int room_open(const struct launch *l, const struct box *b, struct err *err)
{
	int fd = openat(l->rooms.rooms, b->id, DIR_FLAGS);

	return fd < 0 ? err_sys(err, errno, "room of a box") : fd;
}
