/* Remove: one entry, or a tree of any depth, without ever following a link. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/id.h"
#include "base/str.h"
#include "base/walk.h"
#include "guest/ops.h"
#include "guest/path.h"

#define OPEN_LEVELS 32 /* deeper directories are moved up to the top and removed from there */
#define REFILLS 64     /* times a directory may turn out to have been filled again */

struct level {
	int fd; /* owned */
	unsigned refills;
	char name[PATH_NAME]; /* in the level above */
};

struct remover {
	struct fileop *op;
	unsigned depth;
	struct level levels[OPEN_LEVELS];
	struct dents dents;
};

static void remover_done(struct remover *r)
{
	while (r->depth > 0)
		(void)fd_close(r->levels[--r->depth].fd);
}

/* Whoever may change the mode may remove the contents too: do not make them do it in two steps. */
static void open_up(int fd, const struct stat *st)
{
	if (st->st_uid == geteuid() && (st->st_mode & 0700) != 0700)
		(void)path_chmod_fd(fd, (st->st_mode & 0777) | 0700);
}

static int open_dir(int dir_fd, const char *name)
{
	_close_ int seen = openat(dir_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	int fd;

	if (seen < 0 || fstat(seen, &st) < 0)
		return -errno;
	open_up(seen, &st);
	fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int push(struct remover *r, int dir_fd, const char *name)
{
	struct level *l = &r->levels[r->depth];
	int fd = open_dir(dir_fd, name);

	if (fd < 0)
		return fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP ? 0 : fd;
	l->fd = fd;
	l->refills = 0;
	(void)str_copy(l->name, sizeof(l->name), name); /* fits: the kernel's own limit */
	r->depth++;
	return 1;
}

/* A chain of directories costs one descriptor a level; cutting it and hanging the rest below the
 * top keeps that bounded, and is one rename for each OPEN_LEVELS levels. */
static int move_up(struct remover *r, int dir_fd, const char *name)
{
	_close_ int fd =
		open_dir(dir_fd, name); /* a directory must be writable to get a new ".." */
	char id[ID_LEN + 1], moved[ID_LEN + 16];

	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	id_make(id);
	(void)snprintf(moved, sizeof(moved), ".holt-rm-%s", id);
	return renameat(dir_fd, name, r->levels[0].fd, moved) < 0 ? -errno : 0;
}

/* What is no directory. */
static int unlink_file(const struct fileop *op, int dir_fd, const char *name)
{
	int r = files_lock(op);

	if (r < 0)
		return r;
	r = unlinkat(dir_fd, name, 0) < 0 ? -errno : 0;
	files_unlock(op);
	return r;
}

/* 0: gone or out of the way. 1: a directory with contents, now the deepest level. */
static int remove_entry(struct remover *r, const char *name)
{
	int dir_fd = r->levels[r->depth - 1].fd;
	int res = unlink_file(r->op, dir_fd, name);

	if (res == 0 || res == -ENOENT) {
		r->op->count++;
		return 0;
	}
	if (res != -EISDIR)
		return res;
	if (unlinkat(dir_fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT) {
		r->op->count++;
		return 0;
	}
	if (errno != ENOTEMPTY && errno != EEXIST && errno != EACCES)
		return -errno;
	return r->depth < OPEN_LEVELS ? push(r, dir_fd, name) : move_up(r, dir_fd, name);
}

/* Empties the deepest level until it is empty (0) or a level was added (1). Deleting may make a
 * stream skip entries, so a pass counts only if it saw nothing. */
static int drain(struct remover *r, struct err *err)
{
	struct level *l = &r->levels[r->depth - 1];
	struct dent d;
	int n, res;

	do {
		r->dents.at = r->dents.len = 0;
		if (lseek(l->fd, 0, SEEK_SET) < 0)
			return err_sys(err, errno, "read directory '%.150s'", l->name);
		for (n = 0; (res = dents_next(&r->dents, l->fd, &d)) > 0; n++) {
			res = remove_entry(r, d.name);
			if (res > 0)
				return 1;
			if (res < 0)
				return err_sys(err, res, "remove '%.60s' in '%.60s'", d.name,
					       l->name);
			res = chan_check(&r->op->chan);
			if (res < 0)
				return res;
		}
		if (res < 0 && res != -ENOENT)
			return err_sys(err, res, "read directory '%.150s'", l->name);
	} while (n > 0);
	return 0;
}

/* The deepest level was seen empty: takes it away, unless someone fills it as fast as we empty it.
 */
static int finish(struct remover *r, int above, struct err *err)
{
	struct level *l = &r->levels[r->depth - 1];

	if (unlinkat(above, l->name, AT_REMOVEDIR) < 0 && errno != ENOENT) {
		if (errno == ENOTEMPTY && l->refills++ < REFILLS)
			return 0;
		return err_sys(err, errno, "remove '%.150s'", l->name);
	}
	r->op->count++;
	(void)fd_close(l->fd);
	r->depth--;
	return 0;
}

static int remove_tree(struct fileop *op, int dir_fd, const char *name, struct err *err)
{
	_cleanup_(remover_done) struct remover r = { .op = op };
	int res = push(&r, dir_fd, name);

	if (res < 0)
		return err_sys(err, res, "remove '%.150s'", name);
	while (r.depth > 0) {
		res = drain(&r, err);
		if (res == 0)
			res = finish(&r, r.depth > 1 ? r.levels[r.depth - 2].fd : dir_fd, err);
		if (res < 0)
			return res;
	}
	return 0;
}

int files_remove_at(struct fileop *op, int dir_fd, const char *name, struct err *err)
{
	int r = unlink_file(op, dir_fd, name);

	if (r == 0 || r == -ENOENT)
		return 0;
	return r == -EISDIR ? remove_tree(op, dir_fd, name, err)
			    : err_sys(err, r, "remove '%.150s'", name);
}

int files_empty_at(struct fileop *op, int dir_fd, struct err *err)
{
	_close_ int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct dents dents;
	struct dent d;
	int n, r;

	if (fd < 0)
		return err_sys(err, errno, "empty a directory");
	do {
		dents.at = dents.len = 0;
		if (lseek(fd, 0, SEEK_SET) < 0)
			return err_sys(err, errno, "empty a directory");
		for (n = 0; (r = dents_next(&dents, fd, &d)) > 0; n++) {
			r = files_remove_at(op, fd, d.name, err);
			if (r < 0)
				return r;
		}
	} while (r == 0 && n > 0);
	return r < 0 ? err_sys(err, r, "empty a directory") : 0;
}

int files_remove(struct fileop *op, struct err *err)
{
	_cleanup_(path_spot_done) struct path_spot spot = PATH_SPOT_NONE;
	int r = path_locate(op->root_fd, op->f->path, false, &spot, err);

	if (r < 0)
		return r;
	r = unlink_file(op, spot.dir, spot.name);
	if (r == -EISDIR && op->f->flags & FILE_RECURSIVE)
		return remove_tree(op, spot.dir, spot.name, err);
	if (r == -EISDIR)
		r = unlinkat(spot.dir, spot.name, AT_REMOVEDIR) < 0 ? -errno : 0;
	if (r < 0)
		return err_sys(err, r, "remove '%.150s'", op->f->path);
	op->count = 1;
	return 0;
}
