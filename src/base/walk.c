#include "base/walk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"

#define OPEN_LEVELS 64u       /* descriptors kept open along the way down */
#define LEVELS_MAX (1u << 20) /* of a tree; also what bounds the memory */
#define PATH_TEXT_MAX (64u << 20)

struct level {
	int fd;          /* owned; -1 while we are far below it */
	int64_t next;    /* where its stream goes on */
	size_t path_len; /* of the path that names this directory, with its slash */
	dev_t dev;
	ino_t ino;
};

struct walk {
	struct level *levels; /* owned; [0] is the top */
	size_t depth, room;   /* levels in use and allocated */
	size_t max_depth;
	struct buf path;
	struct dents dents; /* of the deepest level only: the others find their place again */
	bool enter;         /* the last entry is a directory, and comes next */
	size_t name_at;     /* where the last entry's name begins in the path */
};

struct raw_dirent { /* what getdents64() writes */
	uint64_t ino;
	int64_t next;
	uint16_t size;
	uint8_t type;
	char name[];
};

static void cut(struct buf *b, size_t len)
{
	b->len = len;
	if (b->data)
		b->data[len] = '\0';
}

static bool is_dot(const char *name)
{
	return name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'));
}

int dents_next(struct dents *d, int dir_fd, struct dent *ret)
{
	const struct raw_dirent *e;
	long n;

	for (;;) {
		if (d->at >= d->len) {
			n = syscall(SYS_getdents64, dir_fd, d->data, sizeof(d->data));
			if (n <= 0)
				return n < 0 ? -errno : 0;
			d->len = (size_t)n;
			d->at = 0;
		}
		e = (const struct raw_dirent *)(const void *)(d->data + d->at);
		d->at += e->size;
		if (is_dot(e->name))
			continue;
		*ret = (struct dent){ e->name, e->type, e->next };
		return 1;
	}
}

static int push(struct walk *w, int fd)
{
	size_t room = w->room ? w->room * 2 : 64;
	struct level *grown;
	struct stat st;

	if (w->depth == LEVELS_MAX)
		return -E2BIG;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (w->depth == w->room) {
		grown = realloc(w->levels, room * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		w->levels = grown;
		w->room = room;
	}
	/* The top stays open, the others only while they are near. */
	if (w->depth > OPEN_LEVELS)
		w->levels[w->depth - OPEN_LEVELS].fd =
			fd_close(w->levels[w->depth - OPEN_LEVELS].fd);
	w->levels[w->depth++] = (struct level){ fd, 0, w->path.len, st.st_dev, st.st_ino };
	w->dents.at = w->dents.len = 0;
	return 0;
}

int walk_create(int dir_fd, uint32_t levels, struct walk **ret, struct err *err)
{
	_cleanup_(walk_free_p) struct walk *w = calloc(1, sizeof(*w));
	int r = w ? 0 : -ENOMEM;

	if (w) {
		buf_init(&w->path, PATH_TEXT_MAX);
		w->max_depth = levels;
		r = push(w, dir_fd);
	}
	if (r < 0) {
		(void)fd_close(dir_fd);
		return err_sys(err, r, "walk a directory");
	}
	*ret = TAKE(w);
	return 0;
}

struct walk *walk_free(struct walk *w)
{
	if (!w)
		return NULL;
	while (w->depth > 0)
		(void)fd_close(w->levels[--w->depth].fd);
	free(w->levels);
	buf_done(&w->path);
	free(w);
	return NULL;
}

/* Back to the parent. When its descriptor was given up, ".." leads there, unless someone moved the
 * directory meanwhile: then ".." could be anything, and the walk ends. */
static int pop(struct walk *w, struct err *err)
{
	struct level *child = &w->levels[--w->depth];
	_close_ int child_fd = child->fd;
	struct level *parent;
	struct stat st;

	if (w->depth == 0)
		return 0;
	parent = child - 1;
	if (parent->fd < 0) {
		parent->fd = openat(child_fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (parent->fd < 0 || fstat(parent->fd, &st) < 0)
			return err_sys(err, errno, "go back up in a directory tree");
		if (st.st_dev != parent->dev || st.st_ino != parent->ino)
			return err_set(err, ESTALE, "a directory was moved while it was read");
	}
	if (lseek(parent->fd, parent->next, SEEK_SET) < 0)
		return err_sys(err, errno, "go back up in a directory tree");
	w->dents.at = w->dents.len = 0;
	cut(&w->path, parent->path_len);
	return 0;
}

/* Goes into the entry that was given last. 1 when that fails and the caller shall be told. */
static int enter(struct walk *w, struct walk_entry *ret, struct err *err)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	struct level *top = &w->levels[w->depth - 1];
	const char *name = w->path.data + w->name_at;
	int fd = openat(top->fd, name, flags);
	int r;

	if (fd < 0) {
		if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP)
			return 0; /* gone, or something else by now */
		ret->failed = errno;
		ret->path = buf_str(&w->path);
		ret->name = name;
		ret->dir_fd = top->fd;
		return fstatat(top->fd, name, &ret->st, AT_SYMLINK_NOFOLLOW) < 0 ? 0 : 1;
	}
	r = buf_putc(&w->path, '/');
	if (r == 0)
		r = push(w, fd);
	if (r < 0) {
		(void)fd_close(fd);
		return err_sys(err, r, "the directory tree is too deep");
	}
	return 0;
}

/* 0 when the entry is gone since. A directory that may be read but not searched gives names and
 * types alone. */
static int look(int dir_fd, const struct dent *d, struct stat *st)
{
	if (fstatat(dir_fd, d->name, st, AT_SYMLINK_NOFOLLOW) == 0)
		return 1;
	if (errno != EACCES)
		return errno == ENOENT ? 0 : -errno;
	memset(st, 0, sizeof(*st));
	st->st_mode = (mode_t)d->type << 12;
	return 1;
}

static int give(struct walk *w, const struct dent *d, struct walk_entry *ret, struct err *err)
{
	struct level *top = &w->levels[w->depth - 1];
	int r;

	top->next = d->next;
	cut(&w->path, top->path_len);
	r = look(top->fd, d, &ret->st);
	if (r == 0)
		return 0;
	w->name_at = w->path.len;
	if (r > 0)
		r = buf_puts(&w->path, d->name);
	if (r < 0)
		return err_sys(err, r, "look at '%.150s'", d->name);
	ret->path = buf_str(&w->path);
	ret->name = ret->path + w->name_at;
	ret->dir_fd = top->fd;
	ret->failed = 0;
	w->enter = S_ISDIR(ret->st.st_mode) && w->depth < w->max_depth;
	return 1;
}

int walk_next(struct walk *w, struct walk_entry *ret, struct err *err)
{
	struct dent d;
	int r;

	if (w->enter) {
		w->enter = false;
		r = enter(w, ret, err);
		if (r != 0)
			return r;
	}
	while (w->depth > 0) {
		r = dents_next(&w->dents, w->levels[w->depth - 1].fd, &d);
		if (r > 0)
			r = give(w, &d, ret, err);
		else if (r == 0 || r == -ENOENT) /* ENOENT: the directory itself was removed */
			r = pop(w, err);
		else
			r = err_sys(err, r, "read a directory");
		if (r != 0)
			return r;
	}
	return 0;
}

void walk_prune(struct walk *w)
{
	w->enter = false;
}

void walk_link(const struct walk_entry *e, char ret[WALK_LINK])
{
	ssize_t n = -1;

	if (S_ISLNK(e->st.st_mode))
		n = readlinkat(e->dir_fd, e->name, ret, WALK_LINK - 1);
	ret[n < 0 ? 0 : n] = '\0';
}
