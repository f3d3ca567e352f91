#include "launch/sysdirs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/walk.h"
#include "launch/disk.h"
#include "launch/enclave.h"
#include "launch/job.h"
#include "launch/launch.h"
#include "launch/mounts.h"

#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define DEPTH_MAX 48
#define DIRS_MAX 200000u
enum { FD_TREE = JOB_FD, FD_VIEW, FD_TEMPLATE }; /* in the job */
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const char *const system_dirs[] = {
	"usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32"
};

struct copying {
	unsigned count;
	uid_t owner;
	dev_t dev;
	struct err *err;
};

/* Only what everybody on the machine may see; what is mounted below is not seen in boxes either. */
static bool is_public(const struct copying *c, const struct stat *st)
{
	return S_ISDIR(st->st_mode) && st->st_dev == c->dev && (st->st_mode & 05) == 05;
}

/* The directories in `from`, into `to`; both are taken. */
static int copy_dirs(struct copying *c, int from, int to, int depth)
{
	_close_ int in = from, out = to;
	struct dents dents = { .at = 0 };
	struct dent d;
	int r = 0;

	while (r == 0 && depth < DEPTH_MAX && (r = dents_next(&dents, in, &d)) > 0) {
		int sub, made;
		struct stat st;

		r = 0;
		if (d.type != DT_DIR && d.type != DT_UNKNOWN)
			continue;
		if (c->count++ >= DIRS_MAX)
			return err_set(c->err, E2BIG, "more than %u system directories", DIRS_MAX);
		sub = openat(in, d.name, DIR_FLAGS);
		if (sub < 0 || fstat(sub, &st) < 0 || !is_public(c, &st)) {
			(void)fd_close(sub); /* none, or closed to others: it stays as it is */
			continue;
		}
		if (mkdirat(out, d.name, 0755) < 0 ||
		    fchownat(out, d.name, c->owner, c->owner, AT_SYMLINK_NOFOLLOW) < 0 ||
		    (made = openat(out, d.name, DIR_FLAGS)) < 0) {
			r = err_sys(c->err, errno, "copy of system directories");
			(void)close(sub);
			return r;
		}
		r = copy_dirs(c, sub, made, depth + 1);
	}
	return r < 0 && !err_code(c->err) ? err_sys(c->err, r, "read a system directory") : r;
}

/* /name of where we are. */
static int copy_one(const char *name, int to, uid_t owner, struct err *err)
{
	_close_ int root = open("/", DIR_FLAGS);
	struct copying c = { .owner = owner, .err = err };
	int from, made;
	struct stat st;

	from = root < 0 ? -1 : openat(root, name, DIR_FLAGS);
	if (from < 0 || fstat(from, &st) < 0) {
		(void)fd_close(from);
		return 0; /* a link, or not there */
	}
	c.dev = st.st_dev;
	if (mkdirat(to, name, 0755) < 0 || fchownat(to, name, owner, owner, 0) < 0 ||
	    (made = openat(to, name, DIR_FLAGS)) < 0) {
		(void)close(from);
		return err_sys(err, errno, "copy of system directories");
	}
	return copy_dirs(&c, from, made, 0);
}

/* What the template itself made; the name is that of the root's directory in layers. */
static int copy_template(int mount_ns, int to, uid_t owner, struct err *err)
{
	_close_ int root = -1;
	int r;

	if (setns(mount_ns, CLONE_NEWNS) < 0)
		return err_sys(err, errno, "enter a template");
	if (mkdirat(to, "root", 0755) < 0 || fchownat(to, "root", owner, owner, 0) < 0 ||
	    (root = openat(to, "root", DIR_FLAGS)) < 0)
		return err_sys(err, errno, "copy of system directories");
	r = copy_one("etc", root, owner, err);
	return r < 0 ? r : copy_one("var", root, owner, err);
}

/* In a process of its own: reading all these names takes as long as the disk does. */
static int fill(const void *arg, struct job_result *ret, int *ret_fds, size_t *ret_nfds,
		struct err *err)
{
	uid_t owner = *(const uid_t *)arg;
	int r = 0;

	(void)ret;
	(void)ret_fds;
	(void)ret_nfds;
	if (setns(FD_VIEW, CLONE_NEWNS) < 0)
		return err_sys(err, errno, "enter the machine's mounts");
	for (size_t i = 0; i < COUNT(system_dirs) && r == 0; i++)
		r = copy_one(system_dirs[i], FD_TREE, owner, err);
	return r < 0 ? r : copy_template(FD_TEMPLATE, FD_TREE, owner, err);
}

bool sysdirs_are_for(const struct launch *l, const struct template_spec *t)
{
	return t->root == ROOT_HOST && (t->flags & TEMPLATE_WRITABLE_ROOT) && !l->sysdirs_failed;
}

static void give_up(struct launch *l, const char *why)
{
	l->sysdirs_failed = true;
	log_warn("launch", "the root of boxes cannot write to /usr: %s", why);
}

static void filled(struct launch *l, struct job *j, const struct job_result *r, int *fds,
		   size_t nfds)
{
	_close_ int tree = TAKE_FD(l->sysdirs_tree);
	struct err err = { 0 };

	(void)j;
	(void)fds;
	(void)nfds;
	if (l->closing)
		return;
	if (r->code < 0)
		(void)err_set(&err, -r->code, "%s", r->text);
	else if (setns(l->view_ns, CLONE_NEWNS) < 0)
		(void)err_sys(&err, errno, "enter the machine's mounts");
	else
		l->sysdirs_ns = enclave_make(l, tree, &err);
	if (l->sysdirs_ns < 0)
		give_up(l, err.text);
	server_again(l);
}

static int begin(struct launch *l, int mount_ns, struct err *err)
{
	static const struct fs_option options[] = { { .key = "mode", .value = "755" },
						    { .key = "size", .value = "64m" },
						    { .key = "nr_inodes", .value = "256k" } };
	struct job j = { .done = filled };
	uid_t owner = enclave_owner(l);
	int r = mounts_new("tmpfs", options, COUNT(options), MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
			   err);

	if (r < 0)
		return r;
	l->sysdirs_tree = r;
	r = job_start(l, &j, fill, &owner, (int[]){ l->sysdirs_tree, l->view_ns, mount_ns }, 3,
		      err);
	if (r < 0)
		l->sysdirs_tree = fd_close(l->sysdirs_tree);
	return r;
}

bool sysdirs_are_coming(struct launch *l, const struct template *t)
{
	struct err err = { 0 };

	if (!sysdirs_are_for(l, &t->spec) || l->sysdirs_ns >= 0)
		return false;
	if (l->sysdirs_tree < 0 && begin(l, t->mount_ns, &err) < 0)
		give_up(l, err.text);
	return !l->sysdirs_failed;
}

int sysdirs_mount(struct launch *l, struct cell *cell, struct err *err)
{
	int r = cell_layer_ns(l, cell, err);

	if (r < 0)
		return r;
	return l->sysdirs_ns < 0 ? -EOPNOTSUPP : enclave_mount(l->sysdirs_ns, cell->layer_ns, err);
}
