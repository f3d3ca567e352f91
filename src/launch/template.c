#include "launch/template.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"
#include "launch/box.h"
#include "launch/mounts.h"
#include "launch/template_etc.h"

#define STAGE "/tmp" /* a directory that every machine has; covered only in our own namespace */
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* The machine's system directories. On a merged-/usr machine all but the first are links. */
static const char *const system_dirs[] = {
	"usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32"
};

static int bind_below(const char *from, const char *to, unsigned attrs, struct err *err)
{
	_close_ int tree = mounts_clone(AT_FDCWD, from, 1, err);
	int r = tree < 0 ? tree : 0;

	if (r == 0 && attrs)
		r = mounts_protect(tree, attrs, err);
	return r < 0 ? r : mounts_attach(tree, to, err);
}

/* A system directory of the machine: bound, or the same link. */
static int add_system_dir(const char *name, struct err *err)
{
	char from[16], to[32], target[PATH_MAX];
	struct stat st;
	ssize_t n;

	(void)str_format(from, sizeof(from), "/%s", name);
	(void)str_format(to, sizeof(to), STAGE "/%s", name);
	if (lstat(from, &st) < 0)
		return 0;
	if (S_ISLNK(st.st_mode)) {
		n = readlink(from, target, sizeof(target) - 1);
		if (n < 0)
			return err_sys(err, errno, "read link %s", from);
		target[n] = '\0';
		return symlink(target, to) < 0 ? err_sys(err, errno, "template link %s", to) : 0;
	}
	if (mkdir(to, 0755) < 0 && errno != EEXIST)
		return err_sys(err, errno, "template directory %s", to);
	return bind_below(from, to, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, err);
}

static int bind_devices(struct err *err)
{
	int r = 0;

	for (size_t i = 0; template_devices[i] && r == 0; i++) {
		char from[24], to[32];

		(void)str_format(from, sizeof(from), "/dev/%s", template_devices[i]);
		(void)str_format(to, sizeof(to), STAGE "/dev/%s", template_devices[i]);
		r = bind_below(from, to, 0, err);
	}
	return r;
}

/* Boxes lay our files over it; the directory itself is never changed. Taken while every path of the
 * machine can still be reached. */
static int clone_dir(int dir_fd, struct err *err)
{
	_close_ int dir = mounts_reopen(dir_fd, err);
	_close_ int tree = -1;
	int r;

	if (dir < 0)
		return dir;
	tree = mounts_clone(dir, "", 1, err);
	if (tree < 0)
		return tree;
	r = mounts_protect(tree, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, err);
	return r < 0 ? r : TAKE_FD(tree);
}

/* Whether what lies there is hidden from others by the directory alone. */
static bool is_private(int dir_fd)
{
	struct stat st;

	return fstat(dir_fd, &st) < 0 || !(st.st_mode & S_IXOTH);
}

static int make_skeleton(const struct template_context *ctx, const struct template_spec *spec,
			 int dir_fd, struct err *err)
{
	static const struct fs_option options[] = { { "mode", "755" }, { "size", "64m" } };
	int fd = mounts_new("tmpfs", options, COUNT(options), MOUNT_ATTR_NOSUID, err);
	int r;

	if (fd < 0)
		return fd;
	/* With privilege we would read for the client what it may not. */
	if (dir_fd >= 0 && !ctx->rootless && is_private(dir_fd))
		dir_fd = -1;
	r = template_fill(fd, spec->root == ROOT_HOST, dir_fd, spec->net == NET_HOST, err);
	if (r == 0)
		r = template_fill_program(fd, ctx->init_fd, err);
	if (r == 0)
		r = template_fill_devices(fd, !ctx->rootless, err);
	if (r < 0) {
		(void)close(fd);
		return r;
	}
	return fd;
}

/* In a new mount namespace, still with the machine's mounts. */
static int assemble(const struct template_context *ctx, const struct template_spec *spec, int tree,
		    int skeleton, struct err *err)
{
	_close_ int root = -1;
	int r = mounts_attach(skeleton, STAGE, err);

	for (size_t i = 0; i < COUNT(system_dirs) && r == 0 && spec->root == ROOT_HOST; i++)
		r = add_system_dir(system_dirs[i], err);
	if (r == 0 && spec->root == ROOT_DIR)
		r = mounts_attach(tree, STAGE BOX_LOWER, err);
	if (r == 0 && ctx->rootless)
		r = bind_devices(err);
	/* A user namespace may mount a /proc of its own only where one is visible already. The
	 * box's goes on top, and no process of a box has power over this mount namespace. */
	if (r == 0 && ctx->rootless)
		r = bind_below("/proc", STAGE "/proc", 0, err);
	if (r == 0 && chdir(STAGE) < 0)
		r = err_sys(err, errno, "enter template");
	if (r == 0)
		r = mounts_pivot(err);
	if (r < 0)
		return r;
	root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return root < 0 ? err_sys(err, errno, "template root")
			: mounts_protect(root, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID, err);
}

int template_build(const struct template_context *ctx, const struct template_spec *spec, int dir_fd,
		   struct err *err)
{
	_close_ int self = open("/proc/self/ns", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_close_ int skeleton = make_skeleton(ctx, spec, dir_fd, err);
	_close_ int tree = skeleton >= 0 && spec->root == ROOT_DIR ? clone_dir(dir_fd, err) : -1;
	int r, ns = -1;

	if (skeleton < 0 || (spec->root == ROOT_DIR && tree < 0))
		return skeleton < 0 ? skeleton : tree;
	if (self < 0)
		return err_sys(err, errno, "/proc/self/ns");
	if (unshare(CLONE_NEWNS) < 0)
		return err_sys(err, errno, "mount namespace");
	r = assemble(ctx, spec, tree, skeleton, err);
	if (r == 0) {
		ns = openat(self, "mnt", O_RDONLY | O_CLOEXEC);
		if (ns < 0)
			r = err_sys(err, errno, "mount namespace");
	}
	if (setns(ctx->view_ns, CLONE_NEWNS) < 0 && r == 0) {
		(void)close(ns);
		r = err_sys(err, errno, "leave the template");
	}
	return r < 0 ? r : ns;
}
