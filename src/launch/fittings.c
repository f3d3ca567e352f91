#include "launch/fittings.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/str.h"
#include "launch/copy.h"
#include "launch/enclave.h"
#include "launch/launch.h"
#include "launch/mounts.h"
#include "launch/template_etc.h"
#include "spec/guest.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define LINKS "links" /* while files are copied; gone afterwards */
#define SIZE "32m"
#define ETC_BYTES (24u << 20)

/* Cheap: clients run `bash -l` for every command. */
#define PROFILE                      \
	"PATH=" GUEST_ROOT_PATH "\n" \
	"export PATH\nPS1='\\u@\\h:\\w\\$ '\n"

/* For apt and apt-get, which cannot work: there is no list of packages. */
#define NO_APT                                                                                     \
	"#!/bin/sh\n"                                                                              \
	"case $1 in -v | --version) exec apt-cache --version ;; esac\n"                            \
	"echo \"${0##*/}: this sandbox has no packages of a system: it is made of the machine's "  \
	"own programs. Install with pip, npm, cargo or go; or use a template made from an image, " \
	"in which apt-get has been run (holt template build).\" >&2\n"                             \
	"exit 100\n"

/* A path of the tree, made with all directories on the way, which are the box's root's. */
static int open_path(int tree, const char *path, uid_t owner, struct err *err)
{
	_close_ int dir = fcntl(tree, F_DUPFD_CLOEXEC, 3);
	struct str rest = str_of(path), part = { 0 };
	char name[16];

	while (dir >= 0 && str_split(&rest, '/', &part)) {
		int next;

		if (str_format(name, sizeof(name), "%.*s", (int)part.len, part.data) < 0)
			return err_set(err, EINVAL, "fittings %s", path);
		if (mkdirat(dir, name, 0755) < 0 && errno != EEXIST)
			return err_sys(err, errno, "fittings %s", path);
		next = openat(dir, name, DIR_FLAGS);
		if (next < 0 || fchown(next, owner, owner) < 0) {
			(void)fd_close(next);
			return err_sys(err, errno, "fittings %s", path);
		}
		(void)close(dir);
		dir = next;
	}
	return dir < 0 ? err_sys(err, errno, "fittings %s", path) : TAKE_FD(dir);
}

/* A new file of the box's root. */
static int make_file(int dir, const char *name, mode_t mode, uid_t owner, struct err *err)
{
	int fd;

	(void)unlinkat(dir, name, 0);
	fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
	if (fd < 0 || fchown(fd, owner, owner) < 0 || fchmod(fd, mode) < 0) {
		(void)fd_close(fd);
		return err_sys(err, errno, "fittings: %s", name);
	}
	return fd;
}

static int add_sudo(struct launch *l, int bin, uid_t owner, struct err *err)
{
	_close_ int to = make_file(bin, "sudo", 0755, owner, err);

	return to < 0 ? to : template_copy_program(to, l->init_fd, err);
}

static bool is_there(int root, const char *path)
{
	struct stat st;

	return fstatat(root, path, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Where the machine or the image has the one and not the other. root: what the box is made of. */
static int add_python(int root, int bin, uid_t owner, struct err *err)
{
	if (!is_there(root, "usr/bin/python3") || is_there(root, "usr/bin/python") ||
	    is_there(root, "usr/local/bin/python"))
		return 0;
	if (symlinkat("python3", bin, "python") < 0 ||
	    fchownat(bin, "python", owner, owner, AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(err, errno, "fittings: python");
	return 0;
}

/* Says why, and what to do, instead of failing in ways of its own. */
static int add_no_apt(int root, int bin, uid_t owner, struct err *err)
{
	static const char *const names[] = { "apt-get", "apt" };
	int r = 0;

	for (size_t i = 0; i < COUNT(names) && r == 0; i++) {
		_close_ int fd = -1;

		if (!is_there(root, i == 0 ? "usr/bin/apt-get" : "usr/bin/apt"))
			continue;
		fd = make_file(bin, names[i], 0755, owner, err);
		if (fd < 0)
			return fd;
		if (fd_write_all(fd, NO_APT, strlen(NO_APT)) < 0)
			r = err_sys(err, EIO, "fittings: %s", names[i]);
	}
	return r;
}

static int add_etc(const struct launch *l, int root, int tree, uid_t owner, struct err *err)
{
	struct copy_plan plan = { .max_bytes = ETC_BYTES, .max_inodes = UINT16_MAX };
	_close_ int from = openat(root, "etc", DIR_FLAGS), to = -1, links = -1, profile = -1;
	struct copy_stats stats = { 0 };
	int r;

	if (!l->rootless)
		plan.ids = (struct copy_ids){ .from = 0, .to = owner, .count = 1 };
	to = open_path(tree, "root/etc", owner, err);
	links = to < 0 ? -1 : open_path(tree, LINKS, owner, err);
	if (from < 0 || to < 0 || links < 0)
		return err_code(err) ? err_result(err, EIO) : err_sys(err, errno, "fittings: /etc");
	r = copy_tree(from, to, links, &plan, &stats, err);
	if (r == 0)
		r = copy_remove(tree, LINKS, err);
	if (r == 0)
		r = profile = make_file(to, "profile", 0644, owner, err);
	if (r >= 0 && fd_write_all(profile, PROFILE, strlen(PROFILE)) < 0)
		r = err_sys(err, EIO, "fittings: profile");
	return r < 0 ? r : 0;
}

/* In the template's mounts, where its root is "/". */
static int fill(struct launch *l, const struct template *t, int tree, struct err *err)
{
	/* The machine's /usr is an overlay of its own; an image is all in one. */
	const char *path = t->spec.root == ROOT_HOST ? "usr/bin" : "root/usr/bin";
	uid_t owner = enclave_owner(l);
	_close_ int bin = open_path(tree, path, owner, err);
	_close_ int root = bin < 0 ? -1 : open("/", DIR_FLAGS);
	int r;

	if (bin < 0 || root < 0)
		return bin < 0 ? bin : err_sys(err, errno, "fittings: template");
	r = add_sudo(l, bin, owner, err);
	if (r == 0)
		r = add_python(root, bin, owner, err);
	if (r == 0 && t->spec.root == ROOT_HOST)
		r = add_no_apt(root, bin, owner, err);
	return r < 0 ? r : add_etc(l, root, tree, owner, err);
}

static int build(struct launch *l, const struct template *t, struct err *err)
{
	static const struct fs_option options[] = { { .key = "mode", .value = "755" },
						    { .key = "size", .value = SIZE } };
	_close_ int tree = -1;
	int r;

	if (setns(l->view_ns, CLONE_NEWNS) < 0)
		return err_sys(err, errno, "enter the machine's mounts");
	tree = mounts_new("tmpfs", options, COUNT(options), MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
			  err);
	if (tree < 0)
		return tree;
	r = setns(t->mount_ns, CLONE_NEWNS) < 0 ? err_sys(err, errno, "enter a template")
						: fill(l, t, tree, err);
	if (setns(l->view_ns, CLONE_NEWNS) < 0 && r == 0)
		r = err_sys(err, errno, "enter the machine's mounts");
	return r < 0 ? r : enclave_make(l, tree, err);
}

int fittings_mount(struct launch *l, struct template *t, struct cell *cell, struct err *err)
{
	int r = 0;

	if (t->fittings_ns < 0)
		r = t->fittings_ns = build(l, t, err);
	if (r >= 0)
		r = cell_layer_ns(l, cell, err);
	if (r >= 0)
		r = enclave_mount(t->fittings_ns, cell->layer_ns, err);
	if (r != -EOPNOTSUPP)
		return r;
	err_clear(err); /* its files are nobody's then, but they are there */
	return enclave_mount(t->fittings_ns, -1, err);
}
