/* The state directory: made, checked, locked. What lies there decides who may speak to boxes, so
 * nothing is taken that somebody else could have put there. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include "provider/keeper.h"

/* What a directory has to be. */
struct want {
	uid_t uid;
	gid_t gid;
	mode_t mode;
};

static int refuse_kind(int at, const char *name, const char *path, struct err *err)
{
	int e = errno;
	struct stat st;

	if (fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		if (S_ISLNK(st.st_mode))
			return err_set(err, ELOOP, "'%s' is a symbolic link, not a directory",
				       path);
		if (!S_ISDIR(st.st_mode))
			return err_set(err, ENOTDIR, "'%s' is not a directory", path);
	}
	return err_sys(err, e, "open '%s'", path);
}

/* What root made, root may hand over: that is how a directory begins. */
static int check_owner(int fd, const struct want *w, const char *path, struct err *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_sys(err, errno, "'%s'", path);
	if (st.st_uid != w->uid && st.st_uid != geteuid())
		return err_set(err, EPERM,
			       "'%s' belongs to user %u, not to %u: chown -R it, or choose another",
			       path, st.st_uid, w->uid);
	if (st.st_mode & (S_IWGRP | S_IWOTH))
		return err_set(err, EPERM,
			       "'%s' can be written by others: look what is in it, then chmod go-w",
			       path);
	if (geteuid() == 0 && (st.st_uid != w->uid || st.st_gid != w->gid) &&
	    fchown(fd, w->uid, w->gid) < 0)
		return err_sys(err, errno, "chown '%s'", path);
	if ((st.st_mode & 07777) != w->mode && fchmod(fd, w->mode) < 0)
		return err_sys(err, errno, "chmod '%s'", path);
	return 0;
}

static int open_dir(int at, const char *name, const struct want *w, const char *path,
		    struct err *err)
{
	_close_ int fd = -1;
	int r;

	if (mkdirat(at, name, 0700) < 0 && errno != EEXIST)
		return err_sys(err, errno, "make '%s'", path);
	fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return refuse_kind(at, name, path, err);
	r = check_owner(fd, w, path, err);
	return r < 0 ? r : TAKE_FD(fd);
}

static int open_below(int at, const char *name, const struct want *w, const char *path,
		      struct err *err)
{
	char full[PATH_MAX];

	if (str_format(full, sizeof(full), "%s/%s", path, name) < 0)
		return err_set(err, ENAMETOOLONG, "the state directory's path is too long");
	return open_dir(at, name, w, full, err);
}

/* The directories above are the machine's: links there are followed, what exists is left alone. */
static int make_parents(char *path, struct err *err)
{
	mode_t mode = geteuid() == 0 ? 0755 : 0700;

	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		int r = 0;

		*slash = '\0';
		if (mkdir(path, mode) < 0 && errno != EEXIST)
			r = err_sys(err, errno, "make '%s'", path);
		*slash = '/';
		if (r < 0)
			return r;
	}
	return 0;
}

/* The directory is the daemon's, which may have been taken over once: what lies under the name is
 * opened without following, neither written nor given away. */
static int lock_dir(int data_fd, const char *path, struct err *err)
{
	_close_ int fd =
		openat(data_fd, "lock",
		       O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600);
	struct stat st;

	if (fd < 0)
		return err_sys(err, errno, "open '%s/data/lock'", path);
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_nlink != 1)
		return err_set(err, EPERM, "'%s/data/lock' is not a file of its own", path);
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno == EWOULDBLOCK)
			return err_set(err, EBUSY, "'%s' is in use by another holt", path);
		return err_sys(err, errno, "lock '%s'", path);
	}
	return TAKE_FD(fd);
}

static int open_all(char *path, const struct want *data, struct keeper_dirs *d, struct err *err)
{
	struct want own = { geteuid(), getegid(), 0700 };
	struct want top = { own.uid, own.gid, own.uid == 0 ? 0755 : 0700 };
	_close_ int fd = -1;
	int r = make_parents(path, err);

	if (r < 0)
		return r;
	fd = open_dir(AT_FDCWD, path, &top, path, err);
	if (fd < 0)
		return fd;
	d->data_fd = open_below(fd, "data", data, path, err);
	if (d->data_fd < 0)
		return d->data_fd;
	d->boxes_fd = open_below(fd, "boxes", &own, path, err);
	if (d->boxes_fd < 0)
		return d->boxes_fd;
	d->lock_fd = lock_dir(d->data_fd, path, err);
	return d->lock_fd < 0 ? d->lock_fd : 0;
}

int keeper_prepare(const char *path, uid_t uid, gid_t gid, struct keeper_dirs *ret, struct err *err)
{
	struct keeper_dirs d = { -1, -1, -1 };
	struct want data = { uid, gid, 0700 };
	char own[PATH_MAX];
	size_t n = strlen(path);
	int r;

	if (geteuid() != 0 && uid != geteuid())
		return err_set(err, EPERM, "only root can prepare another user's directory");
	while (n > 1 && path[n - 1] == '/')
		n--; /* with a slash behind it a link would be followed */
	if (n == 0 || str_format(own, sizeof(own), "%.*s", (int)n, path) < 0)
		return err_set(err, EINVAL, "the state directory's path is empty or too long");
	r = open_all(own, &data, &d, err);
	if (r < 0) {
		keeper_dirs_done(&d);
		return r;
	}
	*ret = d;
	return 0;
}

void keeper_dirs_done(struct keeper_dirs *d)
{
	d->data_fd = fd_close(d->data_fd);
	d->boxes_fd = fd_close(d->boxes_fd);
	d->lock_fd = fd_close(d->lock_fd);
}
