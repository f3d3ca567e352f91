/* Write and rename: a file changes in one step or not at all. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/fd.h"
#include "guest/ops.h"
#include "guest/path.h"
#include "guest/temp.h"
#include "spec/file_version.h"

/* Everything that the client sends, into fd. */
static int receive_into(struct fileop *op, int fd, struct err *err)
{
	const void *data;
	size_t n;
	int r;

	for (;;) {
		r = chan_take(&op->chan, &data, &n);
		if (r < 0 || n == 0)
			return r;
		r = fd_write_all(fd, data, n);
		if (r < 0)
			return err_sys(err, r, "write '%.150s'", op->f->path);
		op->count += n;
	}
}

/* The old file's say in the matter: what it is, whether it may be written, which mode it keeps. */
int files_check_old(const struct fileop *op, const struct path_spot *spot, mode_t *mode,
		    struct err *err)
{
	struct stat st;
	int r;

	if (fstatat(spot->dir, spot->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : err_sys(err, errno, "stat '%.150s'", op->f->path);
	if (op->f->flags & FILE_EXCL)
		return err_sys(err, EEXIST, "write '%.150s'", op->f->path);
	r = files_want_regular(&st, op->f->path, err);
	if (r < 0)
		return r;
	/* Renaming over it would pass by its own permissions. */
	r = path_may_write(spot);
	if (r < 0)
		return err_sys(err, r, "write '%.150s'", op->f->path);
	if (op->f->mode == 0)
		*mode = st.st_mode & 0777;
	return 0;
}

static int append(struct fileop *op, const struct path_spot *spot, mode_t mode, struct err *err)
{
	int flags = O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
	_close_ int fd = -1;
	struct stat st;
	int r;

	if (op->f->flags & FILE_EXCL)
		flags |= O_EXCL;
	fd = openat(spot->dir, spot->name, flags, mode);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(err, errno, "open '%.150s'", op->f->path);
	r = files_want_regular(&st, op->f->path, err);
	return r < 0 ? r : receive_into(op, fd, err);
}

static int set_lock(const struct fileop *op, short type)
{
	struct flock whole = { .l_type = type, .l_whence = SEEK_SET };

	return op->lock_fd >= 0 && fcntl(op->lock_fd, F_SETLKW, &whole) < 0 ? -errno : 0;
}

int files_lock(const struct fileop *op)
{
	return set_lock(op, F_WRLCK);
}

void files_unlock(const struct fileop *op)
{
	(void)set_lock(op, F_UNLCK);
}

static int check_version(const struct path_spot *spot, const char *want, struct err *err)
{
	char version[FILE_VERSION_SIZE] = "";
	struct guest_entry e;
	struct stat st;

	if (want[0] == '\0')
		return 0;
	if (fstatat(spot->dir, spot->name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		e = files_entry(&st, "", "");
		file_version(version, e.inode, e.mtime_ns, e.size);
	}
	if (strcmp(version, want) == 0)
		return 0;
	return err_set(err, ESTALE, "'%.150s' has changed", spot->name);
}

int files_commit(struct fileop *op, struct temp *temp, const struct path_spot *spot,
		 const char *version, struct err *err)
{
	int r = files_lock(op);

	if (r < 0)
		return err_sys(err, r, "lock '%.150s'", spot->name);
	r = check_version(spot, version, err);
	if (r == 0) {
		r = temp_commit(temp, spot->name, op->f->flags & FILE_EXCL);
		if (r < 0)
			(void)err_sys(err, r, "write '%.150s'", spot->name);
	}
	files_unlock(op);
	return r;
}

static int replace(struct fileop *op, const struct path_spot *spot, mode_t mode, struct err *err)
{
	_cleanup_(temp_done) struct temp temp = TEMP_NONE;
	int r = temp_open(&temp, spot->dir);

	if (r < 0)
		return err_sys(err, r, "make a file beside '%.150s'", op->f->path);
	r = receive_into(op, temp.fd, err);
	if (r < 0)
		return r;
	if (fchmod(temp.fd, mode) < 0)
		return err_sys(err, errno, "chmod '%.150s'", op->f->path);
	if (op->f->flags & FILE_ATTRS)
		r = details_set_attrs(temp.fd, op->f->attrs, op->f->attrs_len);
	if (r < 0)
		return err_sys(err, r, "attributes of '%.150s'", op->f->path);
	return files_commit(op, &temp, spot, op->f->target, err);
}

int files_write(struct fileop *op, struct err *err)
{
	_cleanup_(path_spot_done) struct path_spot spot = PATH_SPOT_NONE;
	bool parents = op->f->flags & FILE_PARENTS;
	mode_t mode = op->f->mode ? op->f->mode : 0644;
	int r = files_check_mode(op->f->mode, err);

	if (r == 0 && op->f->flags & FILE_APPEND && (op->f->target[0] || op->f->flags & FILE_ATTRS))
		r = err_set(err, EINVAL, "only a whole file can replace a version");
	if (r < 0)
		return r;
	/* Like open(O_EXCL): a link is something that exists, wherever it leads. */
	if (op->f->flags & FILE_EXCL)
		r = path_locate(op->root_fd, op->f->path, parents, &spot, err);
	else
		r = path_locate_target(op->root_fd, op->f->path, parents, &spot, err);
	if (r == 0)
		r = files_check_old(op, &spot, &mode, err);
	if (r < 0)
		return r;
	if (op->f->flags & FILE_APPEND)
		r = append(op, &spot, mode, err);
	else
		r = replace(op, &spot, mode, err);
	return r < 0 ? r : files_send_made(op, spot.dir, spot.name, op->f->path);
}

int files_copy_bytes(struct fileop *op, int from, int to)
{
	char data[GUEST_CHUNK];
	ssize_t n;
	int r;

	for (;;) {
		n = read(from, data, sizeof(data));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : 0;
		op->count += (uint64_t)n;
		r = fd_write_all(to, data, (size_t)n);
		if (r == 0)
			r = chan_check(&op->chan);
		if (r < 0)
			return r;
	}
}

static int swap_names(struct fileop *op, struct temp *temp, const struct path_spot *from,
		      const struct path_spot *to)
{
	int r = files_lock(op);

	if (r < 0)
		return r;
	r = temp_commit(temp, to->name, op->f->flags & FILE_EXCL);
	if (r == 0 && unlinkat(from->dir, from->name, 0) < 0)
		r = -errno;
	files_unlock(op);
	return r;
}

/* Between two file systems: the copy takes the new name in one step, then the old name goes. */
static int move_file(struct fileop *op, const struct path_spot *from, const struct path_spot *to,
		     struct err *err)
{
	const int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
	_cleanup_(temp_done) struct temp temp = TEMP_NONE;
	_close_ int fd = -1;
	struct stat st;
	int r;

	if (fstatat(from->dir, from->name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
		return err_set(err, EXDEV,
			       "rename '%.100s': another file system, and only files are copied",
			       op->f->path);
	fd = openat(from->dir, from->name, flags);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return err_sys(err, fd < 0 ? errno : EXDEV, "open '%.150s'", op->f->path);
	r = temp_open(&temp, to->dir);
	if (r == 0)
		r = files_copy_bytes(op, fd, temp.fd);
	if (r == 0 && (fchmod(temp.fd, st.st_mode & 0777) < 0 ||
		       futimens(temp.fd, (struct timespec[]){ st.st_atim, st.st_mtim }) < 0))
		r = -errno;
	if (r == 0)
		r = swap_names(op, &temp, from, to);
	return r < 0 ? err_sys(err, r, "move '%.100s' to '%.100s'", op->f->path, op->f->target) : 0;
}

int files_rename(struct fileop *op, struct err *err)
{
	_cleanup_(path_spot_done) struct path_spot from = PATH_SPOT_NONE;
	_cleanup_(path_spot_done) struct path_spot to = PATH_SPOT_NONE;
	int r = path_locate(op->root_fd, op->f->path, false, &from, err);

	if (r == 0)
		r = path_locate(op->root_fd, op->f->target, op->f->flags & FILE_PARENTS, &to, err);
	if (r < 0)
		return r;
	r = files_lock(op);
	if (r == 0) {
		r = temp_rename(from.dir, from.name, to.dir, to.name, op->f->flags & FILE_EXCL);
		files_unlock(op);
	}
	if (r == -EXDEV)
		r = move_file(op, &from, &to, err);
	else if (r < 0)
		(void)err_sys(err, r, "rename '%.100s' to '%.100s'", op->f->path, op->f->target);
	op->count = 1;
	return r < 0 ? r : files_send_made(op, to.dir, to.name, op->f->target);
}
