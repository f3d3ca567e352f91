#include "launch/copy.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/fd.h"
#include "launch/copy_file.h"

#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define NAMES_MAX (64u << 20) /* bytes of names that wait at one level */

/* A directory on the way down. Only the lowest is open; the way back up is "..", and must lead to
 * the directory that it led from. */
struct level {
	struct stat from; /* of the source: goes to the copy when all is in it */
	ino_t to;         /* of the copy */
	struct buf names; /* directories in it, each ended by NUL, that were not yet gone into */
	size_t at;
};

struct way {
	int from, to;         /* owned: the lowest level; `from` -1: nothing is copied */
	struct level *levels; /* owned */
	size_t depth, cap;
};

static void way_done(struct way *w)
{
	while (w->depth > 0)
		buf_done(&w->levels[--w->depth].names);
	free(w->levels);
	w->from = fd_close(w->from);
	w->to = fd_close(w->to);
}

static struct level *lowest(struct way *w)
{
	return &w->levels[w->depth - 1];
}

/* Takes the descriptors, which become the lowest level. */
static int way_enter(struct way *w, int from, int to, struct err *err)
{
	_close_ int in = from, out = to;
	struct level l = { .names = { .max = NAMES_MAX } };
	struct stat st;

	if ((in >= 0 && fstat(in, &l.from) < 0) || fstat(out, &st) < 0)
		return err_sys(err, errno, "directory of a layer");
	l.to = st.st_ino;
	if (w->depth == w->cap) {
		size_t cap = w->cap ? w->cap * 2 : 16;
		struct level *more = reallocarray(w->levels, cap, sizeof(*more));

		if (!more)
			return err_sys(err, ENOMEM, "directory of a layer");
		w->levels = more;
		w->cap = cap;
	}
	w->levels[w->depth++] = l;
	(void)fd_close(w->from);
	(void)fd_close(w->to);
	w->from = TAKE_FD(in);
	w->to = TAKE_FD(out);
	return 0;
}

static int open_up(int *fd, ino_t want, struct err *err)
{
	int up = openat(*fd, "..", DIR_FLAGS);
	struct stat st;

	if (up < 0 || fstat(up, &st) < 0 || st.st_ino != want) {
		(void)fd_close(up);
		return err_set(err, ESTALE, "a directory was moved while it was read");
	}
	(void)fd_close(*fd);
	*fd = up;
	return 0;
}

static int way_leave(struct way *w, struct err *err)
{
	int r = 0;

	buf_done(&lowest(w)->names);
	w->depth--;
	if (w->depth == 0)
		return 0;
	if (w->from >= 0)
		r = open_up(&w->from, lowest(w)->from.st_ino, err);
	return r < 0 ? r : open_up(&w->to, lowest(w)->to, err);
}

/* The next directory to go into; NULL: that was the last. */
static const char *way_next(struct way *w)
{
	struct level *l = lowest(w);
	const char *name = buf_str(&l->names) + l->at;

	if (l->at >= l->names.len)
		return NULL;
	l->at += strlen(name) + 1;
	return name;
}

static int remember(struct way *w, const char *name, struct err *err)
{
	int r = buf_append(&lowest(w)->names, name, strlen(name) + 1);

	return r < 0 ? err_sys(err, -r, "names in a directory") : 0;
}

int copy_each_name(int dir, int (*visit)(void *arg, int dir, const char *name), void *arg,
		   struct err *err)
{
	int fd = openat(dir, ".", DIR_FLAGS);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;
	int r = 0;

	if (!d) {
		r = err_sys(err, errno, "read a directory");
		(void)fd_close(fd);
		return r;
	}
	while (r == 0 && (errno = 0, e = readdir(d)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			r = visit(arg, dir, e->d_name);
	if (r == 0 && errno)
		r = err_sys(err, errno, "read a directory");
	(void)closedir(d);
	return r;
}

struct removal {
	struct way way;
	struct err *err;
};

static int remove_or_remember(void *arg, int dir, const char *name)
{
	struct removal *v = arg;

	if (unlinkat(dir, name, 0) == 0)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return err_sys(v->err, errno, "remove '%.60s'", name);
	return remember(&v->way, name, v->err);
}

/* All that is in the lowest level, and the levels below it. */
static int remove_contents(struct removal *v)
{
	size_t top = v->way.depth;
	int r = copy_each_name(v->way.to, remove_or_remember, v, v->err);

	while (r == 0 && v->way.depth >= top) {
		const char *name = way_next(&v->way);

		if (name) {
			int fd = openat(v->way.to, name, DIR_FLAGS);

			r = fd < 0 ? err_sys(v->err, errno, "remove '%.60s'", name)
				   : way_enter(&v->way, -1, fd, v->err);
			if (r == 0)
				r = copy_each_name(v->way.to, remove_or_remember, v, v->err);
			continue;
		}
		if (v->way.depth == top)
			return 0;
		r = way_leave(&v->way, v->err);
		if (r == 0) {
			struct level *l = lowest(&v->way);
			const char *last = buf_str(&l->names) + l->at - 1;

			/* The name that was gone into ends where the next begins. */
			while (last > buf_str(&l->names) && last[-1] != '\0')
				last--;
			if (unlinkat(v->way.to, last, AT_REMOVEDIR) < 0)
				r = err_sys(v->err, errno, "remove '%.60s'", last);
		}
	}
	return r;
}

int copy_remove(int dir, const char *name, struct err *err)
{
	struct removal v = { .way = { .from = -1, .to = -1 }, .err = err };
	int r, fd;

	if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return err_sys(err, errno, "remove '%.60s'", name);
	fd = openat(dir, name, DIR_FLAGS);
	if (fd < 0)
		return err_sys(err, errno, "remove '%.60s'", name);
	r = way_enter(&v.way, -1, fd, err);
	if (r == 0)
		r = remove_contents(&v);
	way_done(&v.way);
	if (r == 0 && unlinkat(dir, name, AT_REMOVEDIR) < 0)
		r = err_sys(err, errno, "remove '%.60s'", name);
	return r;
}

struct walk {
	struct copy copy;
	struct way way;
};

/* Makes room for an entry: a directory stays if one is to come. */
static int clear_place(struct walk *w, const char *name, bool is_dir)
{
	struct stat st;

	if (fstatat(w->way.to, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : err_sys(w->copy.err, errno, "'%.60s'", name);
	return is_dir && S_ISDIR(st.st_mode) ? 0 : copy_remove(w->way.to, name, w->copy.err);
}

static int visit(void *arg, int dir, const char *name)
{
	struct walk *w = arg;
	struct stat st;
	int r;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(w->copy.err, errno, "'%.60s'", name);
	r = clear_place(w, name, S_ISDIR(st.st_mode));
	if (r < 0)
		return r;
	return S_ISDIR(st.st_mode) ? remember(&w->way, name, w->copy.err)
				   : copy_entry(&w->copy, w->way.from, w->way.to, name, &st);
}

/* What was copied before into a directory that hides it. */
static int empty(int dir, struct err *err)
{
	struct removal v = { .way = { .from = -1, .to = -1 }, .err = err };
	int fd = openat(dir, ".", DIR_FLAGS);
	int r = fd < 0 ? err_sys(err, errno, "opaque directory") : way_enter(&v.way, -1, fd, err);

	if (r == 0)
		r = remove_contents(&v);
	way_done(&v.way);
	return r;
}

/* In a directory that was just entered: its attributes, and everything that is no directory. */
static int fill(struct walk *w)
{
	bool opaque = false;
	int r = copy_attributes(&w->copy, w->way.from, w->way.to, &opaque);

	if (r == 0 && opaque)
		r = empty(w->way.to, w->copy.err);
	return r < 0 ? r : copy_each_name(w->way.from, visit, w, w->copy.err);
}

static int enter(struct walk *w, const char *name)
{
	int from = openat(w->way.from, name, DIR_FLAGS), to, r;

	if (from < 0)
		return err_sys(w->copy.err, errno, "directory '%.60s'", name);
	if (mkdirat(w->way.to, name, 0700) < 0 && errno != EEXIST) {
		r = err_sys(w->copy.err, errno, "directory of a layer");
		(void)close(from);
		return r;
	}
	to = openat(w->way.to, name, DIR_FLAGS);
	if (to < 0) {
		r = err_sys(w->copy.err, errno, "directory of a layer");
		(void)close(from);
		return r;
	}
	r = copy_count(&w->copy, 0, 1);
	if (r < 0) {
		(void)close(from);
		(void)close(to);
		return r;
	}
	r = way_enter(&w->way, from, to, w->copy.err);
	return r < 0 ? r : fill(w);
}

static int leave(struct walk *w)
{
	int r = copy_meta(&w->copy, w->way.to, &lowest(&w->way)->from);

	return r < 0 ? r : way_leave(&w->way, w->copy.err);
}

int copy_tree(int from, int to, int links, const struct copy_plan *plan, struct copy_stats *stats,
	      struct err *err)
{
	struct walk w = { .copy = { plan, stats, err, links }, .way = { .from = -1, .to = -1 } };
	int in = openat(from, ".", DIR_FLAGS), out = openat(to, ".", DIR_FLAGS);
	int r;

	if (in < 0 || out < 0) {
		r = err_sys(err, errno, "directory to copy");
		(void)fd_close(in);
		(void)fd_close(out);
		return r;
	}
	r = way_enter(&w.way, in, out, err);
	if (r == 0)
		r = fill(&w);
	while (r == 0 && w.way.depth > 0) {
		const char *name = way_next(&w.way);

		r = name ? enter(&w, name) : leave(&w);
	}
	way_done(&w.way);
	return r;
}
