#include "image/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/map.h"
#include "base/str.h"
#include "base/tar.h"
#include "base/walk.h"

struct tree {
	struct walk *walk; /* owned */
	struct map *links; /* owned: the first path of each file that has several, by inode */
	dev_t dev;
	struct buf head; /* headers and padding that wait */
	int file;        /* owned: contents that come after head; -1: none */
	uint64_t left, skipped;
	bool is_over; /* the end mark is in head */
};

int tree_create(int dir_fd, uint32_t entries, struct tree **ret, struct err *err)
{
	_cleanup_(tree_free_p) struct tree *t = calloc(1, sizeof(*t));
	struct stat st;
	int r;

	if (t)
		t->file = -1;
	if (!t || !(t->links = map_create(entries)) || fstat(dir_fd, &st) < 0) {
		r = err_sys(err, !t || !t->links ? ENOMEM : errno, "image");
		(void)fd_close(dir_fd);
		return r;
	}
	t->dev = st.st_dev;
	r = walk_create(dir_fd, UINT32_MAX, &t->walk, err);
	if (r < 0)
		return r;
	*ret = TAKE(t);
	return 0;
}

struct tree *tree_free(struct tree *t)
{
	if (!t)
		return NULL;
	if (t->links)
		MAP_FOREACH (t->links, it)
			free(it.value);
	(void)map_free(t->links);
	if (t->walk)
		(void)walk_free(t->walk);
	t->file = fd_close(t->file);
	buf_done(&t->head);
	free(t);
	return NULL;
}

int tree_measure(int dir_fd, uint32_t *entries, uint64_t *bytes, struct err *err)
{
	_cleanup_(walk_free_p) struct walk *w = NULL;
	struct walk_entry e;
	struct stat st = { 0 };
	uint64_t size = 0;
	uint32_t n = 0;
	int r;

	(void)fstat(dir_fd, &st);
	r = walk_create(dir_fd, UINT32_MAX, &w, err);
	if (r < 0)
		return r;
	while ((r = walk_next(w, &e, err)) > 0) {
		uint64_t one = S_ISREG(e.st.st_mode) ? (uint64_t)e.st.st_size : 0;

		if (e.st.st_dev != st.st_dev) {
			walk_prune(w);
			continue;
		}
		if (n == *entries || one > *bytes - size)
			return err_set(err, EFBIG, "image: more than %u files or %llu bytes",
				       *entries, (unsigned long long)*bytes);
		n++;
		size += one;
	}
	*entries = n;
	*bytes = size;
	return r;
}

uint64_t tree_skipped(const struct tree *t)
{
	return t->skipped;
}

static int add(struct tree *t, const struct walk_entry *e, const struct stat *st,
	       enum tar_type type, const char *link, struct err *err)
{
	int r = tar_write_member(
		&t->head,
		&(struct tar_member){ .type = type,
				      .mode = st->st_mode & 07777,
				      .uid = st->st_uid,
				      .gid = st->st_gid,
				      .size = type == TAR_FILE ? (uint64_t)st->st_size : 0,
				      .mtime_sec = st->st_mtim.tv_sec,
				      .mtime_nsec = (uint32_t)st->st_mtim.tv_nsec,
				      .path = e->path,
				      .link = link });

	return r < 0 ? err_sys(err, r, "image: '%.150s'", e->path) : 0;
}

/* 1: an earlier name of the same file was written in its place. */
static int add_link(struct tree *t, const struct walk_entry *e, struct err *err)
{
	const char *first;
	char *path;
	int r;

	if (e->st.st_nlink < 2)
		return 0;
	first = map_get(t->links, (const char *)&e->st.st_ino, sizeof(e->st.st_ino));
	if (first) {
		r = add(t, e, &e->st, TAR_HARDLINK, first, err);
		return r < 0 ? r : 1;
	}
	path = str_dup(str_of(e->path));
	if (!path)
		return err_sys(err, ENOMEM, "image");
	r = map_put(t->links, (const char *)&e->st.st_ino, sizeof(e->st.st_ino), path, NULL);
	if (r < 0) /* of too many each is a file of its own */
		free(path);
	return r == -ENOMEM ? err_sys(err, r, "image") : 0;
}

static int add_file(struct tree *t, const struct walk_entry *e, struct err *err)
{
	_close_ int fd = -1;
	struct stat st;
	int r = add_link(t, e, err);

	if (r != 0)
		return r < 0 ? r : 0;
	fd = openat(e->dir_fd, e->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(err, errno, "image: '%.150s'", e->path);
	if (!S_ISREG(st.st_mode) || st.st_dev != t->dev)
		return err_set(err, ESTALE, "image: '%.150s' became something else", e->path);
	r = add(t, e, &st, TAR_FILE, "", err);
	if (r < 0)
		return r;
	t->file = TAKE_FD(fd);
	t->left = (uint64_t)st.st_size;
	return 0;
}

static int add_entry(struct tree *t, const struct walk_entry *e, struct err *err)
{
	char link[WALK_LINK];

	if (e->failed)
		return err_sys(err, e->failed, "image: directory '%.150s'", e->path);
	if (e->st.st_dev != t->dev) { /* what is mounted there is not of this directory */
		walk_prune(t->walk);
		t->skipped++;
		return 0;
	}
	if (S_ISDIR(e->st.st_mode))
		return add(t, e, &e->st, TAR_DIR, "", err);
	if (S_ISREG(e->st.st_mode))
		return add_file(t, e, err);
	if (S_ISLNK(e->st.st_mode)) {
		walk_link(e, link);
		return add(t, e, &e->st, TAR_SYMLINK, link, err);
	}
	t->skipped++;
	return 0;
}

/* The next entry's bytes, or the archive's end. */
static int step(struct tree *t, struct err *err)
{
	struct walk_entry e;
	int r = walk_next(t->walk, &e, err);

	if (r != 0)
		return r < 0 ? r : add_entry(t, &e, err);
	t->is_over = true;
	return tar_write_end(&t->head) < 0 ? err_sys(err, ENOMEM, "image") : 0;
}

/* The header has promised so many bytes. */
static ssize_t read_file(struct tree *t, void *dst, size_t n, struct err *err)
{
	static const char zeros[TAR_BLOCK];
	uint64_t size = t->left;
	ssize_t got = 0;

	if (size > 0)
		got = fd_read_all(t->file, dst, size < n ? (size_t)size : n);
	if (got < 0)
		return err_sys(err, (int)got, "image: read");
	if (got == 0 && size > 0)
		return err_set(err, ESTALE, "image: a file became shorter while it was read");
	t->left -= (uint64_t)got;
	if (t->left > 0)
		return got;
	/* The padding follows from where it ends: what was promised was its size. */
	size = (uint64_t)lseek(t->file, 0, SEEK_CUR);
	t->file = fd_close(t->file);
	return buf_append(&t->head, zeros, tar_padding(size)) < 0 ? err_sys(err, ENOMEM, "image")
								  : got;
}

ssize_t tree_read(struct tree *t, void *dst, size_t n, struct err *err)
{
	ssize_t got = 0;
	int r;

	while (got == 0) {
		if (t->head.len > 0) {
			got = (ssize_t)(t->head.len < n ? t->head.len : n);
			memcpy(dst, t->head.data, (size_t)got);
			buf_drop(&t->head, (size_t)got);
		} else if (t->file >= 0) {
			got = read_file(t, dst, n, err);
		} else if (t->is_over) {
			return 0;
		} else {
			r = step(t, err);
			got = r < 0 ? r : 0;
		}
	}
	return got;
}
