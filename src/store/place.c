#include "store/place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/fd.h"
#include "store/store.h"

/* Whoever can write to the directory can put another database there. */
static int open_dir(const char *dir, struct err *err)
{
	_close_ int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(err, errno, "state directory '%s'", dir);
	if (st.st_uid != geteuid())
		return err_set(err, EPERM, "state directory '%s' belongs to uid %u, not to us", dir,
			       (unsigned)st.st_uid);
	if (st.st_mode & (S_IWGRP | S_IWOTH))
		return err_set(err, EPERM, "state directory '%s' is writable by others (mode %03o)",
			       dir, (unsigned)st.st_mode & 0777);
	return TAKE_FD(fd);
}

static char *name_with(const char *file, const char *suffix)
{
	_cleanup_(buf_done) struct buf b = { 0 };

	(void)buf_puts(&b, file);
	(void)buf_puts(&b, suffix);
	return b.failed ? NULL : buf_take(&b);
}

/* Two writers would not harm the database, but each would take the other's sandboxes for lost. The
 * lock is on a file of its own: closing any descriptor of the database would drop SQLite's. */
static int take_lock(struct place *p, int dir_fd, const char *file, struct err *err)
{
	_free_ char *name = name_with(file, ".lock");

	if (!name)
		return err_sys(err, ENOMEM, "database");
	p->lock_fd =
		openat(dir_fd, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);
	if (p->lock_fd < 0)
		return err_sys(err, errno, "open '%s'", name);
	if (flock(p->lock_fd, LOCK_EX | LOCK_NB) == 0)
		return 0;
	if (errno == EWOULDBLOCK)
		return err_set(err, EBUSY, "another process has the database '%s'", p->path);
	return err_sys(err, errno, "lock '%s'", name);
}

/* A log without its database holds what was acknowledged last: not to be thrown away unseen. */
static int check_log(struct place *p, int dir_fd, const char *file, bool is_new, struct err *err)
{
	_free_ char *name = name_with(file, "-wal");
	struct stat st;

	if (!name)
		return err_sys(err, ENOMEM, "database");
	p->was_clean = fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || st.st_size == 0;
	if (is_new && !p->was_clean)
		return err_set(err, EUCLEAN, "'%s' is not there or empty, but its log '%s' is",
			       p->path, name);
	return 0;
}

/* SQLite would make the file with the mode that umask leaves; the log gets the mode of the file. */
static int make_file(struct place *p, int dir_fd, const char *file, struct err *err)
{
	_close_ int fd =
		openat(dir_fd, file, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);
	struct stat st;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(err, errno, "open '%s'", p->path);
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid())
		return err_set(err, EPERM, "'%s' is not a file of ours", p->path);
	r = check_log(p, dir_fd, file, st.st_size == 0, err);
	if (r < 0)
		return r;
	if ((st.st_mode & 07777) != 0600 && fchmod(fd, 0600) < 0)
		return err_sys(err, errno, "mode of '%s'", p->path);
	if (st.st_size == 0 && fsync(dir_fd) < 0)
		return err_sys(err, errno, "directory of '%s'", p->path);
	p->dev = st.st_dev;
	p->ino = st.st_ino;
	return 0;
}

static int find_path(struct place *p, const char *dir, const char *file, struct err *err)
{
	_free_ char *real = realpath(dir, NULL);
	_cleanup_(buf_done) struct buf b = { 0 };

	if (!real)
		return err_sys(err, errno, "state directory '%s'", dir);
	if (!*file || strchr(file, '/'))
		return err_set(err, EINVAL, "database '%s': want the name of a file", file);
	(void)buf_printf(&b, "%s/%s", real, file);
	p->path = b.failed ? NULL : buf_take(&b);
	return p->path ? 0 : err_sys(err, ENOMEM, "database");
}

int place_open(const struct store_options *options, struct place *ret, struct err *err)
{
	const char *file = options->file ? options->file : "holt.db";
	struct place p = { .lock_fd = -1 };
	_close_ int dir_fd = open_dir(options->dir, err);
	int r = dir_fd < 0 ? dir_fd : find_path(&p, options->dir, file, err);

	if (r == 0)
		r = take_lock(&p, dir_fd, file, err);
	if (r == 0)
		r = make_file(&p, dir_fd, file, err);
	if (r == 0 && place_check(&p) < 0) /* the directory was swapped while we looked */
		r = err_set(err, ESTALE, "'%s' is not the file that was opened", p.path);
	if (r < 0) {
		place_close(&p);
		return r;
	}
	*ret = p;
	return 0;
}

void place_close(struct place *p)
{
	if (!p->path)
		return;
	free(TAKE(p->path));
	p->lock_fd = fd_close(p->lock_fd);
}

int place_check(const struct place *p)
{
	struct stat st;

	if (lstat(p->path, &st) < 0)
		return errno == ENOENT || errno == ENOTDIR ? -ESTALE : -errno;
	return st.st_dev == p->dev && st.st_ino == p->ino ? 0 : -ESTALE;
}
