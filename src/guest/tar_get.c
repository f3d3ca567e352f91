/* A directory or a file as a tar stream. */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/tar.h"
#include "base/walk.h"
#include "guest/ops.h"
#include "guest/path.h"

struct pack {
	struct fileop *op;
	struct buf head;           /* of the member that begins */
	size_t used;               /* bytes in data that wait to be sent */
	uint8_t data[GUEST_CHUNK]; /* small members share a frame */
};

static void pack_done(struct pack *p)
{
	buf_done(&p->head);
}

static int flush(struct pack *p)
{
	int r = chan_data(&p->op->chan, p->data, p->used);

	p->op->count += p->used;
	p->used = 0;
	return r;
}

static int add(struct pack *p, const void *data, size_t n)
{
	const uint8_t *from = data;
	size_t part;
	int r = 0;

	for (; n > 0 && r == 0; n -= part, from += part) {
		part = sizeof(p->data) - p->used;
		part = n < part ? n : part;
		memcpy(p->data + p->used, from, part);
		p->used += part;
		if (p->used == sizeof(p->data))
			r = flush(p);
	}
	return r;
}

static int add_zeros(struct pack *p, uint64_t n)
{
	static const char zeros[4096];
	size_t part;
	int r = 0;

	for (; n > 0 && r == 0; n -= part) {
		part = n < sizeof(zeros) ? (size_t)n : sizeof(zeros);
		r = add(p, zeros, part);
	}
	return r;
}

static int add_head(struct pack *p, const struct stat *st, enum tar_type type, const char *path,
		    const char *link)
{
	struct tar_member m = {
		.type = type,
		.mode = st->st_mode & 0777, /* who unpacks this did not ask for set-user-id files */
		.uid = st->st_uid,
		.gid = st->st_gid,
		.size = type == TAR_FILE ? (uint64_t)st->st_size : 0,
		.mtime_sec = st->st_mtim.tv_sec,
		.mtime_nsec = (uint32_t)st->st_mtim.tv_nsec,
		.path = path,
		.link = link,
	};
	int r;

	buf_clear(&p->head);
	r = tar_write_member(&p->head, &m);
	return r < 0 ? r : add(p, p->head.data, p->head.len);
}

/* Tells the client about what the archive does not have, or not as it is now. */
static int tell(struct pack *p, const struct stat *st, const char *path)
{
	struct guest_entry e = files_entry(st, path, "");
	int r = chan_entry(&p->op->chan, &e);

	return r == -E2BIG ? 0 : r;
}

/* The header has promised `left` bytes: a file that shrinks is filled up with zeros, one that grows
 * is cut, and either is told. */
static int add_contents(struct pack *p, int fd, uint64_t left, struct err *err)
{
	size_t room;
	ssize_t n;
	int r;

	while (left > 0) {
		room = sizeof(p->data) - p->used;
		n = read(fd, p->data + p->used, left < room ? (size_t)left : room);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(err, errno, "read a file for the archive");
		if (n == 0)
			return add_zeros(p, left);
		p->used += (size_t)n;
		left -= (uint64_t)n;
		r = p->used == sizeof(p->data) ? flush(p) : 0;
		if (r < 0)
			return r;
	}
	return 0;
}

static int add_open_file(struct pack *p, int fd, const struct stat *st, const char *path,
			 struct err *err)
{
	uint64_t size = (uint64_t)st->st_size;
	struct stat now;
	int r = add_head(p, st, TAR_FILE, path, "");

	if (r == 0)
		r = add_contents(p, fd, size, err);
	if (r == 0)
		r = add_zeros(p, tar_padding(size));
	if (r == 0 && fstat(fd, &now) == 0 && now.st_size != st->st_size)
		r = tell(p, &now, path);
	return r;
}

static int add_file(struct pack *p, const struct walk_entry *e, struct err *err)
{
	const int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
	_close_ int fd = openat(e->dir_fd, e->name, flags);
	struct stat st;

	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return tell(p, &e->st, e->path);
	return add_open_file(p, fd, &st, e->path, err);
}

static int add_link(struct pack *p, const struct walk_entry *e)
{
	char link[PATH_BYTES];

	walk_link(e, link);
	return link[0] == '\0' ? 0 : add_head(p, &e->st, TAR_SYMLINK, e->path, link);
}

/* The kernel's own trees are no files to carry away. */
static bool is_kernels(const struct walk_entry *e)
{
	_close_ int fd = openat(e->dir_fd, e->name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct statfs fs;

	if (fd < 0 || fstatfs(fd, &fs) < 0)
		return false;
	return fs.f_type == PROC_SUPER_MAGIC || fs.f_type == SYSFS_MAGIC ||
	       fs.f_type == CGROUP_SUPER_MAGIC || fs.f_type == CGROUP2_SUPER_MAGIC;
}

static int add_entry(struct pack *p, struct walk *w, const struct walk_entry *e, dev_t top,
		     struct err *err)
{
	/* A name longer than readers take is left out, with all that is below it. */
	bool too_long = strlen(e->path) >= TAR_PATH - 1;
	bool foreign = S_ISDIR(e->st.st_mode) && e->st.st_dev != top && is_kernels(e);

	if (too_long || foreign)
		walk_prune(w);
	if (e->failed || too_long || foreign)
		return tell(p, &e->st, e->path);
	if (S_ISDIR(e->st.st_mode))
		return add_head(p, &e->st, TAR_DIR, e->path, "");
	if (S_ISLNK(e->st.st_mode))
		return add_link(p, e);
	if (S_ISREG(e->st.st_mode))
		return add_file(p, e, err);
	return tell(p, &e->st, e->path);
}

static int pack_tree(struct pack *p, int fd, dev_t top, struct err *err)
{
	_cleanup_(walk_free_p) struct walk *w = NULL;
	struct walk_entry e;
	int r = walk_create(fd, UINT32_MAX, &w, err);

	while (r >= 0 && (r = walk_next(w, &e, err)) > 0) {
		r = add_entry(p, w, &e, top, err);
		if (r == 0)
			r = chan_check(&p->op->chan);
	}
	return r;
}

/* A file alone goes in under its own name. */
static int pack_file(struct pack *p, struct err *err)
{
	struct stat st;
	_close_ int fd = files_open_regular(p->op, O_RDONLY, &st, err);
	const char *path = p->op->f->path;
	const char *slash = strrchr(path, '/');

	return fd < 0 ? fd : add_open_file(p, fd, &st, slash ? slash + 1 : path, err);
}

static int finish(struct pack *p)
{
	int r;

	buf_clear(&p->head);
	r = tar_write_end(&p->head);
	if (r == 0)
		r = add(p, p->head.data, p->head.len);
	return r < 0 ? r : flush(p);
}

int files_tar_get(struct fileop *op, struct err *err)
{
	_cleanup_(pack_done) struct pack p = { .op = op };
	_close_ int fd = path_open(op->root_fd, op->f->path, O_PATH, err);
	struct stat st;
	int r;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return err_sys(err, errno, "stat '%.150s'", op->f->path);
	if (S_ISDIR(st.st_mode)) {
		r = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (r < 0)
			return err_sys(err, errno, "open '%.150s'", op->f->path);
		r = pack_tree(&p, r, st.st_dev, err);
	} else {
		r = pack_file(&p, err);
	}
	return r < 0 ? r : finish(&p);
}
