#include "launch/enclave.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "launch/disk.h"
#include "launch/launch.h"
#include "launch/mounts.h"

#define STAGE "/tmp" /* a directory that every machine has; covered only in our own namespace */

uid_t enclave_owner(const struct launch *l)
{
	return l->rootless ? 0 : LAYER_BASE;
}

int enclave_make(struct launch *l, int tree, struct err *err)
{
	int r, ns = -1;

	if (unshare(CLONE_NEWNS) < 0)
		return err_sys(err, errno, "mount namespace");
	r = mounts_attach(tree, STAGE, err);
	if (r == 0 && chdir(STAGE) < 0)
		r = err_sys(err, errno, "enter a tree for boxes");
	if (r == 0)
		r = mounts_pivot(err);
	if (r == 0) {
		ns = openat(l->proc_fd, "self/ns/mnt", O_RDONLY | O_CLOEXEC);
		r = ns < 0 ? err_sys(err, errno, "mount namespace") : 0;
	}
	if (setns(l->view_ns, CLONE_NEWNS) < 0 && r == 0) {
		(void)close(ns);
		r = err_sys(err, errno, "leave a tree for boxes");
	}
	return r < 0 ? r : ns;
}

int enclave_mount(int ns, int layer_ns, struct err *err)
{
	_close_ int tree = -1;
	int r;

	/* A mount can be copied only by who is where it is. */
	if (setns(ns, CLONE_NEWNS) < 0)
		return err_sys(err, errno, "enter a tree for boxes");
	tree = mounts_clone(AT_FDCWD, "/", 0, err);
	if (tree < 0)
		return tree;
	r = mounts_map(tree, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, layer_ns,
		       err);
	return r < 0 ? r : TAKE_FD(tree);
}
