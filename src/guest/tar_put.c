/* Unpacks a tar stream below a directory. Members are placed by path_locate_beneath(): no link, of
 * the archive or of someone else's, leads a member out of the directory. Set-user-id bits and
 * extended attributes are not taken over, and owners only with FILE_OWNERS (tar_layer.h). */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include "base/tar.h"
#include "guest/notes.h"
#include "guest/ops.h"
#include "guest/path.h"
#include "guest/tar_layer.h"
#include "guest/temp.h"

struct unpack {
	struct fileop *op;
	int top; /* owned; the directory */
	struct tar_reader tar;
	struct path_spot spot; /* of the member in progress */
	struct temp temp;      /* what it is until it is whole */
	struct notes notes;
	bool is_layers, has_owners; /* FILE_LAYERS, FILE_OWNERS */
};

static void unpack_done(struct unpack *u)
{
	temp_done(&u->temp);
	path_spot_done(&u->spot);
	tar_reader_done(&u->tar);
	notes_done(&u->notes);
	u->top = fd_close(u->top);
}

/* Copies a member's path without "." and empty parts. -EINVAL for one that goes up. */
static int clean_path(const char *path, char dst[PATH_BYTES], struct err *err)
{
	struct str rest = str_of(path), part;
	size_t n = 0;

	while (str_split(&rest, '/', &part)) {
		if (part.len == 0 || str_is(part, "."))
			continue;
		if (str_is(part, ".."))
			return err_set(err, EINVAL, "archive: '%.150s' leads out of the directory",
				       path);
		if (n > 0)
			dst[n++] = '/';
		memcpy(dst + n, part.data, part.len); /* fits: it is not longer than before */
		n += part.len;
	}
	dst[n] = '\0';
	return 0;
}

static struct timespec mtime_of(const struct tar_member *m)
{
	return (struct timespec){ .tv_sec = (time_t)m->mtime_sec, .tv_nsec = (long)m->mtime_nsec };
}

/* NOTE: of too many directories the last ones keep the modes that they were made with; but in an
 * image they would be open to everybody. */
static int note_dir(struct unpack *u, const char *path, struct err *err)
{
	const struct tar_member *m = &u->tar.member;
	char real[PATH_BYTES];
	int r = 0;

	if (u->is_layers)
		r = layer_path(u->top, u->spot.dir, u->spot.name, real, sizeof(real));
	if (r == 0)
		r = notes_add(&u->notes, u->is_layers ? real : path,
			      m->mode & (u->is_layers ? 01777 : 0777), mtime_of(m));
	return r < 0 && u->is_layers ? err_sys(err, r, "archive: directory '%.150s'", path) : 0;
}

/* A directory that is there gets the member's owner, too. */
static int keep_dir(struct unpack *u, const struct stat *st)
{
	const struct tar_member *m = &u->tar.member;

	return u->has_owners && (st->st_uid != m->uid || st->st_gid != m->gid)
		       ? layer_give_dir(&u->spot, m->uid, m->gid)
		       : 0;
}

static int make_dir(struct unpack *u, const char *path, struct err *err)
{
	const struct path_spot *s = &u->spot;
	mode_t mode = u->has_owners ? 0777 : (u->tar.member.mode & 0777) | 0700;
	struct stat st;
	int r = mkdirat(s->dir, s->name, mode) < 0 ? -errno : 0;

	if (r == -EEXIST && fstatat(s->dir, s->name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		if (S_ISDIR(st.st_mode)) {
			r = keep_dir(u, &st);
		} else {
			(void)unlinkat(s->dir, s->name, 0);
			r = mkdirat(s->dir, s->name, mode) < 0 ? -errno : 0;
		}
	}
	if (r < 0)
		return err_sys(err, r, "archive: make directory '%.150s'", path);
	return note_dir(u, path, err);
}

static int make_symlink(struct unpack *u, const char *path, struct err *err)
{
	struct timespec t = mtime_of(&u->tar.member);

	temp_name(&u->temp, u->spot.dir);
	if (symlinkat(u->tar.member.link, u->spot.dir, u->temp.name) < 0)
		return err_sys(err, errno, "archive: make link '%.150s'", path);
	(void)utimensat(u->spot.dir, u->temp.name, (struct timespec[]){ t, t },
			AT_SYMLINK_NOFOLLOW);
	return 0;
}

/* Links of an image lead where they do in a box of it; no other archive's lead anywhere. */
static int locate(const struct unpack *u, const char *path, bool make_parents,
		  struct path_spot *ret, struct err *err)
{
	return u->is_layers ? path_locate(u->top, path, make_parents, ret, err)
			    : path_locate_beneath(u->top, path, make_parents, ret, err);
}

/* The other name is a member's path like any other, so it is inside too. */
static int make_hardlink(struct unpack *u, const char *path, struct err *err)
{
	_cleanup_(path_spot_done) struct path_spot from = PATH_SPOT_NONE;
	char clean[PATH_BYTES];
	struct stat st;
	int r = clean_path(u->tar.member.link, clean, err);

	if (r == 0)
		r = locate(u, clean, false, &from, err);
	if (r < 0)
		return r;
	/* The kernel lets nobody link what is another's. */
	if (u->has_owners && fstatat(from.dir, from.name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		layer_become(st.st_uid, st.st_gid);
	temp_name(&u->temp, u->spot.dir);
	if (linkat(from.dir, from.name, u->spot.dir, u->temp.name, 0) < 0)
		return err_sys(err, errno, "archive: link '%.100s' to '%.100s'", path, clean);
	return 0;
}

static int make_file(struct unpack *u, const char *path, struct err *err)
{
	int r = temp_open(&u->temp, u->spot.dir);

	return r < 0 ? err_sys(err, r, "archive: make '%.150s'", path) : 0;
}

static int (*const makers[])(struct unpack *, const char *, struct err *) = {
	[TAR_FILE] = make_file,
	[TAR_DIR] = make_dir,
	[TAR_SYMLINK] = make_symlink,
	[TAR_HARDLINK] = make_hardlink,
};

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static int white_out(struct unpack *u, const char *path, struct err *err)
{
	struct err quiet = { 0 };
	int r = locate(u, path, false, &u->spot, &quiet);

	if (r == -ENOENT || r == -ENOTDIR)
		return 0; /* nothing to take away */
	return r < 0 ? err_set(err, -r, "%s", quiet.text) : layer_white_out(u->op, &u->spot, err);
}

static int place(struct unpack *u, const char *path, struct err *err)
{
	const struct tar_member *m = &u->tar.member;
	int r;

	if (u->has_owners)
		layer_become(0, 0);
	if (u->is_layers && m->type == TAR_FILE && layer_is_whiteout(last_part(path)))
		return white_out(u, path, err);
	r = locate(u, path, true, &u->spot, err);
	if (r == 0 && u->has_owners) {
		r = layer_open_up(u->top, u->spot.dir, &u->notes);
		if (r < 0)
			return err_sys(err, r, "archive: directory of '%.150s'", path);
		layer_become(m->uid, m->gid);
	}
	return r < 0 ? r : makers[m->type](u, path, err);
}

static int on_member(struct unpack *u, struct err *err)
{
	char path[PATH_BYTES];
	int r = clean_path(u->tar.member.path, path, err);

	if (r < 0)
		return r;
	if (path[0] == '\0' && u->tar.member.type == TAR_DIR)
		return 0; /* the directory itself, "./" */
	if (path[0] == '\0')
		return err_set(err, EINVAL, "archive: a member has no name");
	return place(u, path, err);
}

static int finish_file(struct unpack *u)
{
	struct timespec t = mtime_of(&u->tar.member);

	if (fchmod(u->temp.fd, u->tar.member.mode & 0777) < 0)
		return -errno;
	(void)futimens(u->temp.fd, (struct timespec[]){ t, t });
	return 0;
}

static int make_way(struct unpack *u)
{
	if (u->has_owners)
		layer_become(0, 0);
	if (u->is_layers)
		return files_remove_at(u->op, u->spot.dir, u->spot.name, NULL);
	return unlinkat(u->spot.dir, u->spot.name, AT_REMOVEDIR) < 0 ? -errno : 0;
}

static int commit(struct unpack *u)
{
	int r = files_lock(u->op);

	if (r < 0)
		return r;
	r = temp_commit(&u->temp, u->spot.name, false);
	files_unlock(u->op);
	return r;
}

/* The member takes its name; what had it goes, but not a directory with something in it (unless the
 * archive is an image's: there a layer means it). */
static int on_done(struct unpack *u, struct err *err)
{
	int r = u->temp.fd >= 0 ? finish_file(u) : 0;

	if (r == 0 && u->temp.name[0] != '\0') {
		r = commit(u);
		if (r == -EISDIR && make_way(u) == 0)
			r = commit(u);
	}
	if (r < 0)
		return err_sys(err, r, "archive: '%.150s'", u->tar.member.path);
	temp_done(&u->temp);
	path_spot_done(&u->spot);
	u->op->count++;
	return 0;
}

static int on_data(struct unpack *u, struct err *err)
{
	int r = u->temp.fd < 0 ? 0 : fd_write_all(u->temp.fd, u->tar.data, u->tar.data_len);

	return r < 0 ? err_sys(err, r, "archive: write '%.150s'", u->tar.member.path) : 0;
}

static int feed(struct unpack *u, const uint8_t *data, size_t n, struct err *err)
{
	int r;

	while ((r = tar_read(&u->tar, &data, &n, err)) > 0) {
		if (r == TAR_MEMBER)
			r = on_member(u, err);
		else if (r == TAR_DATA)
			r = on_data(u, err);
		else if (r == TAR_DONE)
			r = on_done(u, err);
		if (r < 0)
			return r;
	}
	return r;
}

static int open_top(struct fileop *op, struct err *err)
{
	_cleanup_(path_spot_done) struct path_spot spot = PATH_SPOT_NONE;
	int fd = path_open(op->root_fd, op->f->path, O_PATH | O_DIRECTORY, err);
	int r;

	if (fd != -ENOENT || !(op->f->flags & FILE_PARENTS))
		return fd;
	r = path_locate(op->root_fd, op->f->path, true, &spot, err);
	if (r < 0)
		return r;
	if (mkdirat(spot.dir, spot.name, 0755) < 0 && errno != EEXIST)
		return err_sys(err, errno, "mkdir '%.150s'", op->f->path);
	return path_open(op->root_fd, op->f->path, O_PATH | O_DIRECTORY, err);
}

int files_tar_put(struct fileop *op, struct err *err)
{
	_cleanup_(unpack_done) struct unpack u = {
		.op = op,
		.top = open_top(op, err),
		.spot = PATH_SPOT_NONE,
		.temp = TEMP_NONE,
		.is_layers = op->f->flags & FILE_LAYERS,
		.has_owners = (op->f->flags & FILE_OWNERS) && geteuid() == 0,
	};
	const void *data;
	size_t n;
	int r;

	tar_reader_init(&u.tar);
	if (u.top < 0)
		return u.top;
	r = u.has_owners ? layer_open_up(u.top, u.top, &u.notes) : 0;
	if (r < 0)
		return err_sys(err, r, "archive: open '%.150s'", op->f->path);
	do {
		r = chan_take(&op->chan, &data, &n);
		if (r == 0 && n > 0)
			r = feed(&u, data, n, err);
	} while (r == 0 && n > 0);
	if (r == 0)
		r = tar_read_finish(&u.tar, err);
	if (r == 0) {
		int closed = notes_apply(&u.notes, u.top, u.has_owners ? layer_become : NULL);

		if (u.has_owners && closed < 0)
			r = err_sys(err, closed, "archive: mode of a directory");
	}
	return r;
}
