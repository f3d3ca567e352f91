/* Tells what happens to a file, a directory or a tree, until it is cancelled. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include "base/walk.h"
#include "guest/ops.h"
#include "guest/path.h"
#include "guest/temp.h"

#define WATCHES_MAX 8192u /* directories of one watch */
#define IN_HERE (IN_CREATE | IN_MOVED_TO | IN_MODIFY | IN_ATTRIB | IN_DELETE | IN_MOVED_FROM)
#define IN_TOP (IN_DELETE_SELF | IN_MOVE_SELF)

struct watch {
	int wd;
	char *path; /* owned; relative to the top, "" for it */
};

struct watcher {
	struct fileop *op;
	dev_t dev; /* what the top is: it is not held open, for then its removal would not be told
		    */
	ino_t ino;
	int notify;         /* owned */
	struct watch *list; /* owned; ordered by wd */
	size_t count, room;
	uint32_t hidden; /* cookie of a file of ours that takes its real name; 0: none */
};

static void watcher_done(struct watcher *w)
{
	while (w->count > 0)
		free(w->list[--w->count].path);
	free(w->list);
	w->notify = fd_close(w->notify);
}

/* --- which directory a descriptor of the kernel's means --------------------------------------- */

/* Where wd is, or would be. */
static size_t find(const struct watcher *w, int wd)
{
	size_t low = 0, high = w->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (w->list[middle].wd < wd)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct watch *lookup(const struct watcher *w, int wd)
{
	size_t at = find(w, wd);

	return at < w->count && w->list[at].wd == wd ? &w->list[at] : NULL;
}

static int grow(struct watcher *w)
{
	size_t room = w->room ? w->room * 2 : 16;
	struct watch *grown;

	if (w->count == WATCHES_MAX)
		return -ENOSPC;
	if (w->count < w->room)
		return 0;
	grown = realloc(w->list, room * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	w->list = grown;
	w->room = room;
	return 0;
}

/* The same directory may come again under another path: the newer one is right. */
static int remember(struct watcher *w, int wd, const char *path)
{
	size_t at = find(w, wd);
	char *copy = str_dup(str_of(path));
	int r = 0;

	if (!copy)
		return -ENOMEM;
	if (at < w->count && w->list[at].wd == wd) {
		free(w->list[at].path);
	} else {
		r = grow(w);
		if (r < 0) {
			free(copy);
			return r;
		}
		memmove(w->list + at + 1, w->list + at, (w->count - at) * sizeof(*w->list));
		w->count++;
	}
	w->list[at] = (struct watch){ wd, copy };
	return 0;
}

static void forget(struct watcher *w, int wd)
{
	size_t at = find(w, wd);

	if (at == w->count || w->list[at].wd != wd)
		return;
	free(w->list[at].path);
	w->count--;
	memmove(w->list + at, w->list + at + 1, (w->count - at) * sizeof(*w->list));
}

static bool is_below(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	return strncmp(path, dir, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

/* A directory was moved away, perhaps out of sight: it is watched again where it appears. */
static void forget_tree(struct watcher *w, const char *dir)
{
	size_t kept = 0;

	for (size_t i = 0; i < w->count; i++) {
		if (is_below(w->list[i].path, dir)) {
			(void)inotify_rm_watch(w->notify, w->list[i].wd);
			free(w->list[i].path);
		} else {
			w->list[kept++] = w->list[i];
		}
	}
	w->count = kept;
}

/* --- adding ----------------------------------------------------------------------------------- */

/* inotify takes a path where we have a descriptor: going there and saying "." is the way that
 * cannot be led elsewhere. We do not stay, so that nothing is kept busy. */
static int add_at(struct watcher *w, int dir_fd, const char *name, uint32_t mask, const char *path)
{
	int wd, r;

	if (fchdir(dir_fd) < 0)
		return -errno;
	wd = inotify_add_watch(w->notify, name, mask | IN_DONT_FOLLOW | IN_EXCL_UNLINK);
	r = wd < 0 ? -errno : remember(w, wd, path);
	if (wd >= 0 && r < 0)
		(void)inotify_rm_watch(w->notify, wd);
	if (fchdir(w->op->root_fd) < 0 && r >= 0)
		r = -errno;
	return r;
}

/* Opens something below the top, unless the top's path leads to something else by now. */
static int open_below(struct watcher *w, const char *path, int flags)
{
	_close_ int top = path_open(w->op->root_fd, w->op->f->path, O_PATH | O_DIRECTORY, NULL);
	struct stat st;

	if (top < 0)
		return top;
	if (fstat(top, &st) < 0 || st.st_dev != w->dev || st.st_ino != w->ino)
		return -ENOENT;
	return path_open_beneath(top, path, flags);
}

static int add_dir(struct watcher *w, const char *path)
{
	_close_ int fd = open_below(w, path, O_PATH | O_DIRECTORY);

	return fd < 0 ? fd : add_at(w, fd, ".", IN_HERE | IN_ONLYDIR, path);
}

static int join(char dst[PATH_BYTES + PATH_NAME], const char *dir, const char *name)
{
	const char *slash = dir[0] != '\0' && name[0] != '\0' ? "/" : "";

	return str_format(dst, PATH_BYTES + PATH_NAME, "%s%s%s", dir, slash, name) < 0
		       ? -ENAMETOOLONG
		       : 0;
}

/* What the event is about, if it is still there. */
static int tell_entry(struct watcher *w, const char *path)
{
	_close_ int fd = -1;
	struct stat st;

	if (!(w->op->f->flags & FILE_DETAILS) || path[0] == '\0')
		return 0;
	fd = open_below(w, path, O_PATH | O_NOFOLLOW);
	if (fd < 0 || fstat(fd, &st) < 0)
		return 0;
	return files_send_entry(w->op, fd, &st, path, "");
}

static int tell_event(struct watcher *w, enum guest_event event, const char *path)
{
	bool is_there = event != EVENT_REMOVE && event != EVENT_RENAME && event != EVENT_OVERFLOW;
	int r = is_there ? tell_entry(w, path) : 0;

	return r < 0 && r != -E2BIG ? r : chan_event(&w->op->chan, event, path);
}

/* A directory that could not be added is not seen: the client must look for itself. One that is
 * gone or closed to the user is no loss. */
static int on_lost(struct watcher *w, int r, const char *path)
{
	if (r == -ENOENT || r == -ENOTDIR || r == -ELOOP || r == -EACCES || r >= 0)
		return 0;
	return tell_event(w, EVENT_OVERFLOW, path);
}

/* One entry of a directory that is new, or was there before we came. */
static int add_found(struct watcher *w, const struct walk_entry *e, const char *path, bool tell)
{
	int r = tell && !temp_is_name(e->name) ? tell_event(w, EVENT_CREATE, path) : 0;

	if (r == 0 && S_ISDIR(e->st.st_mode)) {
		r = add_dir(w, path);
		if (r < 0 && r != -ENOSPC)
			r = on_lost(w, r, path);
	}
	return r < 0 ? r : chan_check(&w->op->chan);
}

/* Watches what is below `dir`, which is watched already: whatever is made meanwhile is then seen by
 * one or by the other. With tell, what is found is new to the client. */
static int add_below(struct watcher *w, const char *dir, bool tell, struct err *err)
{
	_cleanup_(walk_free_p) struct walk *walk = NULL;
	char path[PATH_BYTES + PATH_NAME];
	struct walk_entry e;
	int fd, r;

	fd = open_below(w, dir[0] ? dir : ".", O_RDONLY | O_DIRECTORY);
	if (fd < 0)
		return 0;
	r = walk_create(fd, UINT32_MAX, &walk, err);
	while (r >= 0 && (r = walk_next(walk, &e, err)) > 0) {
		if (join(path, dir, e.path) < 0) {
			walk_prune(walk); /* longer than any operation takes */
			r = 0;
		} else {
			r = e.failed ? 0 : add_found(w, &e, path, tell);
		}
	}
	if (r == -ENOSPC) /* no more can be watched: one word for all the rest */
		return on_lost(w, r, dir);
	return r == -ESTALE ? 0 : r; /* moved on the way: that comes as an event of its own */
}

static int add_top_dir(struct watcher *w, int fd, struct err *err)
{
	int r = add_at(w, fd, ".", IN_HERE | IN_TOP | IN_ONLYDIR, "");

	return r < 0 ? err_sys(err, r, "watch '%.150s'", w->op->f->path) : 0;
}

static int add_top_file(struct watcher *w, struct err *err)
{
	_cleanup_(path_spot_done) struct path_spot spot = PATH_SPOT_NONE;
	int r = path_locate_target(w->op->root_fd, w->op->f->path, false, &spot, err);

	if (r < 0)
		return r;
	r = add_at(w, spot.dir, spot.name, IN_MODIFY | IN_ATTRIB | IN_TOP, "");
	return r < 0 ? err_sys(err, r, "watch '%.150s'", w->op->f->path) : 0;
}

/* --- events ----------------------------------------------------------------------------------- */

static const struct {
	uint32_t mask;
	enum guest_event event;
} kinds[] = {
	{ IN_CREATE | IN_MOVED_TO, EVENT_CREATE },
	{ IN_MODIFY, EVENT_WRITE },
	{ IN_ATTRIB, EVENT_CHMOD },
	{ IN_DELETE | IN_DELETE_SELF, EVENT_REMOVE },
	{ IN_MOVED_FROM | IN_MOVE_SELF, EVENT_RENAME },
};

static int tell(struct watcher *w, uint32_t mask, const char *path)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (mask & kinds[i].mask)
			return tell_event(w, kinds[i].event, path);
	return 0;
}

/* Tells an event and keeps the set of watched directories what the tree is. A new directory is
 * watched before it is told, so that the client misses nothing it does there. */
static int tell_and_follow(struct watcher *w, uint32_t mask, const char *path, struct err *err)
{
	bool dir = mask & IN_ISDIR && w->op->f->flags & FILE_RECURSIVE;
	bool appeared = dir && mask & (IN_CREATE | IN_MOVED_TO);
	int added = 0, r;

	if (dir && mask & IN_MOVED_FROM)
		forget_tree(w, path);
	if (appeared)
		added = add_dir(w, path);
	r = tell(w, mask, path);
	if (r < 0 || !appeared)
		return r;
	return added < 0 ? on_lost(w, added, path) : add_below(w, path, mask & IN_CREATE, err);
}

/* A file that is written under a hidden name is nobody's business before it has its own: then it is
 * there, has got its mode and was written, which is what clients elsewhere see of an upload. */
static bool is_hidden(struct watcher *w, const struct inotify_event *e)
{
	if (e->len == 0 || !temp_is_name(e->name))
		return false;
	if (e->mask & IN_MOVED_FROM)
		w->hidden = e->cookie;
	return true;
}

static int tell_uploaded(struct watcher *w, const struct inotify_event *e, const char *path)
{
	int r;

	if (!(e->mask & IN_MOVED_TO) || e->mask & IN_ISDIR || e->cookie == 0 ||
	    e->cookie != w->hidden)
		return 0;
	w->hidden = 0;
	r = tell_event(w, EVENT_CHMOD, path);
	return r < 0 ? r : tell_event(w, EVENT_WRITE, path);
}

static int on_event(struct watcher *w, const struct inotify_event *e, struct err *err)
{
	const struct watch *at = lookup(w, e->wd);
	char path[PATH_BYTES + PATH_NAME];
	bool top;
	int r;

	if (e->mask & IN_Q_OVERFLOW)
		return chan_event(&w->op->chan, EVENT_OVERFLOW, "");
	if (!at)
		return 0; /* of a directory that was forgotten since */
	top = at->path[0] == '\0';
	if (e->mask & IN_IGNORED) {
		forget(w, e->wd);
		return top ? err_set(err, ENOENT, "'%.150s' is gone", w->op->f->path) : 0;
	}
	/* A directory's own events come from its parent too, with its name. */
	if (e->len == 0 && !top)
		return 0;
	if (is_hidden(w, e) || join(path, at->path, e->len ? e->name : "") < 0)
		return 0; /* or too long for any operation of ours */
	r = tell_and_follow(w, e->mask, path, err);
	return r < 0 ? r : tell_uploaded(w, e, path);
}

static int drain(struct watcher *w, struct err *err)
{
	char data[16384] __attribute__((aligned(8)));
	const struct inotify_event *e;
	ssize_t n = read(w->notify, data, sizeof(data));
	int r = 0;

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : err_sys(err, errno, "watch");
	for (ssize_t at = 0; at < n && r == 0; at += (ssize_t)(sizeof(*e) + e->len)) {
		e = (const struct inotify_event *)(const void *)(data + at);
		r = on_event(w, e, err);
	}
	return r;
}

static int serve(struct watcher *w, struct err *err)
{
	struct pollfd fds[] = { { w->notify, POLLIN, 0 }, { w->op->chan.sock, POLLIN, 0 } };
	int r;

	do {
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			return err_sys(err, errno, "watch");
		r = chan_check(&w->op->chan);
		if (r == 0)
			r = drain(w, err);
	} while (r == 0);
	return r;
}

/* Watches the top itself and says in *ret_dir whether it is a directory. */
static int add_top(struct watcher *w, bool *ret_dir, struct err *err)
{
	_close_ int fd = path_open(w->op->root_fd, w->op->f->path, O_PATH, err);
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return err_sys(err, errno, "watch '%.150s'", w->op->f->path);
	w->dev = st.st_dev;
	w->ino = st.st_ino;
	*ret_dir = S_ISDIR(st.st_mode);
	return *ret_dir ? add_top_dir(w, fd, err) : add_top_file(w, err);
}

int files_watch(struct fileop *op, struct err *err)
{
	_cleanup_(watcher_done) struct watcher w = {
		.op = op,
		.notify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC),
	};
	bool dir = false;
	int r;

	if (w.notify < 0)
		return err_sys(err, errno, "watch '%.150s'", op->f->path);
	r = add_top(&w, &dir, err);
	if (r == 0 && dir && op->f->flags & FILE_RECURSIVE)
		r = add_below(&w, "", false, err);
	if (r == 0)
		r = chan_u64(&op->chan, G_DONE, 0);
	return r < 0 ? r : serve(&w, err);
}
