/* Operations on one file: stat, read, mkdir, chmod, rename; and list. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/walk.h"
#include "guest/ops.h"
#include "guest/path.h"
#include "guest/temp.h"

#define CHECK_EVERY 64 /* entries between two looks for a cancel */

static uint8_t entry_type(mode_t mode)
{
	if (S_ISREG(mode))
		return ENTRY_FILE;
	if (S_ISDIR(mode))
		return ENTRY_DIR;
	return S_ISLNK(mode) ? ENTRY_SYMLINK : ENTRY_OTHER;
}

struct guest_entry files_entry(const struct stat *st, const char *path, const char *link)
{
	int64_t sec = st->st_mtim.tv_sec;

	return (struct guest_entry){
		.type = entry_type(st->st_mode),
		.mode = st->st_mode & 07777,
		.uid = st->st_uid,
		.gid = st->st_gid,
		.size = (uint64_t)st->st_size,
		/* Years before 1970 and after 2500 have no place in the field. */
		.mtime_ns = sec < 0 || sec > INT64_MAX / 1000000000 - 1
				    ? 0
				    : (uint64_t)sec * 1000000000 + (uint64_t)st->st_mtim.tv_nsec,
		.inode = st->st_ino,
		.path = path,
		.target = link,
	};
}

int files_send_entry(struct fileop *op, int fd, const struct stat *st, const char *below,
		     const char *link)
{
	bool has_details = op->f->flags & FILE_DETAILS;
	struct guest_entry e = files_entry(st, below, link);

	if (has_details || below[0] == '\0')
		e.path = details_path(&op->details, op, below);
	if (has_details)
		details_fill(&op->details, op, fd, st, &e);
	return chan_entry(&op->chan, &e);
}

int files_send_made(struct fileop *op, int dir_fd, const char *name, const char *path)
{
	_close_ int fd = -1;
	struct guest_entry e;
	struct stat st;

	if (!(op->f->flags & FILE_DETAILS))
		return 0;
	fd = openat(dir_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return 0; /* others work here too: it is gone again */
	e = files_entry(&st, path, "");
	details_fill(&op->details, op, fd, &st, &e);
	return chan_entry(&op->chan, &e);
}

int files_check_mode(uint32_t mode, struct err *err)
{
	if (mode & (S_ISUID | S_ISGID))
		return err_set(err, EPERM, "mode %04o: set-user-id and set-group-id are refused",
			       mode);
	if (mode & ~07777u)
		return err_set(err, EINVAL, "mode %o: only permission bits may be set", mode);
	return 0;
}

int files_want_regular(const struct stat *st, const char *path, struct err *err)
{
	if (S_ISDIR(st->st_mode))
		return err_sys(err, EISDIR, "'%.150s'", path);
	if (!S_ISREG(st->st_mode))
		return err_set(err, EINVAL, "'%.150s' is not a regular file", path);
	return 0;
}

int files_stat(struct fileop *op, struct err *err)
{
	int flags = O_PATH | (op->f->flags & FILE_NOFOLLOW ? O_NOFOLLOW : 0);
	_close_ int fd = path_open(op->root_fd, op->f->path, flags, err);
	char link[PATH_BYTES] = "";
	struct stat st;
	ssize_t n;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return err_sys(err, errno, "stat '%.150s'", op->f->path);
	if (S_ISLNK(st.st_mode)) {
		n = readlinkat(fd, "", link, sizeof(link) - 1);
		link[n < 0 ? 0 : n] = '\0';
	}
	op->count = 1;
	return files_send_entry(op, fd, &st, "", link);
}

static int send_listed(struct fileop *op, const struct walk_entry *we, const char *link)
{
	_close_ int fd = -1;

	if (op->f->flags & FILE_DETAILS)
		fd = openat(we->dir_fd, we->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	return files_send_entry(op, fd, &we->st, we->path, link);
}

int files_list(struct fileop *op, struct err *err)
{
	_close_ int fd = path_open(op->root_fd, op->f->path, O_RDONLY | O_DIRECTORY, err);
	_cleanup_(walk_free_p) struct walk *w = NULL;
	char link[PATH_BYTES];
	struct walk_entry we;
	int r;

	if (fd < 0)
		return fd;
	r = walk_create(TAKE_FD(fd), op->f->depth ? op->f->depth : 1, &w, err);
	while (r >= 0 && (r = walk_next(w, &we, err)) > 0) {
		if (we.failed)
			continue; /* named already; only its inside is closed to the user */
		walk_link(&we, link);
		op->count++;
		r = send_listed(op, &we, link);
		if (r == -E2BIG) /* deeper than a frame can say: counted, not named */
			r = 0;
		if (r == 0 && op->count % CHECK_EVERY == 0)
			r = chan_check(&op->chan);
	}
	return r;
}

/* Looks before it opens: the open of a FIFO wakes its writer, that of a device may do anything. */
int files_open_regular(struct fileop *op, int flags, struct stat *st, struct err *err)
{
	_close_ int seen = path_open(op->root_fd, op->f->path, O_PATH, err);
	_close_ int fd = -1;
	int r;

	if (seen < 0)
		return seen;
	if (fstat(seen, st) < 0)
		return err_sys(err, errno, "stat '%.150s'", op->f->path);
	r = files_want_regular(st, op->f->path, err);
	if (r < 0)
		return r;
	fd = path_open(op->root_fd, op->f->path, flags, err);
	if (fd < 0)
		return fd;
	/* It may be another file by now, but then it is checked again and O_NONBLOCK kept us safe.
	 */
	if (fstat(fd, st) < 0)
		return err_sys(err, errno, "stat '%.150s'", op->f->path);
	r = files_want_regular(st, op->f->path, err);
	return r < 0 ? r : TAKE_FD(fd);
}

/* How far to read: what was asked for, but not beyond the size that the entry told, else a file
 * that grows has no end. Files of procfs say 0 and have contents: those are read to their end. */
static uint64_t read_end(const struct guest_file *f, const struct stat *st)
{
	uint64_t size = st->st_size > 0 ? (uint64_t)st->st_size : INT64_MAX;

	if (f->length == 0 || f->length > size || f->offset > size - f->length)
		return size;
	return f->offset + f->length;
}

static int send_range(struct fileop *op, int fd, uint64_t at, uint64_t end, struct err *err)
{
	char data[GUEST_CHUNK];
	size_t want;
	ssize_t n;
	int r;

	while (at < end) {
		want = end - at < sizeof(data) ? (size_t)(end - at) : sizeof(data);
		n = pread(fd, data, want, (off_t)at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(err, errno, "read '%.150s'", op->f->path);
		if (n == 0)
			return 0; /* it shrank; G_DONE says how much there was */
		r = chan_data(&op->chan, data, (size_t)n);
		if (r < 0)
			return r;
		at += (uint64_t)n;
		op->count += (uint64_t)n;
	}
	return 0;
}

int files_read(struct fileop *op, struct err *err)
{
	struct stat st;
	_close_ int fd = files_open_regular(op, O_RDONLY, &st, err);
	int r;

	if (fd < 0)
		return fd;
	if (op->f->offset > INT64_MAX)
		return err_set(err, EINVAL, "offset %llu is out of range",
			       (unsigned long long)op->f->offset);
	r = files_send_entry(op, fd, &st, "", "");
	return r < 0 ? r : send_range(op, fd, op->f->offset, read_end(op->f, &st), err);
}

int files_mkdir(struct fileop *op, struct err *err)
{
	_cleanup_(path_spot_done) struct path_spot spot = PATH_SPOT_NONE;
	bool parents = op->f->flags & FILE_PARENTS;
	int r = files_check_mode(op->f->mode, err);
	_close_ int there = -1;

	if (r < 0)
		return r;
	if (parents) {
		there = path_open(op->root_fd, op->f->path, O_PATH | O_DIRECTORY, NULL);
		if (there >= 0)
			return 0;
	}
	r = path_locate(op->root_fd, op->f->path, parents, &spot, err);
	if (r < 0)
		return r;
	if (mkdirat(spot.dir, spot.name, op->f->mode ? op->f->mode : 0755) < 0)
		return err_sys(err, errno, "mkdir '%.150s'", op->f->path);
	op->count = 1;
	return files_send_made(op, spot.dir, spot.name, op->f->path);
}

int files_chmod(struct fileop *op, struct err *err)
{
	int flags = O_PATH | (op->f->flags & FILE_NOFOLLOW ? O_NOFOLLOW : 0);
	int r = files_check_mode(op->f->mode, err);
	_close_ int fd = -1;

	if (r < 0)
		return r;
	fd = path_open(op->root_fd, op->f->path, flags, err);
	if (fd < 0)
		return fd;
	r = path_chmod_fd(fd, op->f->mode);
	op->count = 1;
	return r < 0 ? err_sys(err, r, "chmod '%.150s'", op->f->path) : 0;
}
