/* Unpacks a tar stream below a directory. Members are placed by path_locate_beneath(): no link, of
 * the archive or of someone else's, leads a member out of the directory. Owners, set-user-id bits
 * and extended attributes are not taken over. */
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
#include "guest/ops.h"
#include "guest/path.h"
#include "guest/temp.h"

#define NOTES_MAX \
	65536u /* directories whose mode and time are set at the end; others keep theirs */

/* A directory gets its mode and time when all is in it: the mode may forbid that, the time would
 * not last. */
struct note {
	char *path; /* owned */
	mode_t mode;
	struct timespec mtime;
};

struct unpack {
	struct fileop *op;
	int top; /* owned; the directory */
	struct tar_reader tar;
	struct path_spot spot; /* of the member in progress */
	struct temp temp;      /* what it is until it is whole */
	struct note *notes;
	size_t note_count, note_room;
};

static void unpack_done(struct unpack *u)
{
	temp_done(&u->temp);
	path_spot_done(&u->spot);
	tar_reader_done(&u->tar);
	while (u->note_count > 0)
		free(u->notes[--u->note_count].path);
	free(u->notes);
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

static int grow_notes(struct unpack *u)
{
	size_t room = u->note_room ? u->note_room * 2 : 64;
	struct note *grown;

	if (u->note_count < u->note_room)
		return 0;
	if (room > NOTES_MAX)
		return -E2BIG;
	grown = realloc(u->notes, room * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	u->notes = grown;
	u->note_room = room;
	return 0;
}

static void note_dir(struct unpack *u, const char *path)
{
	const struct tar_member *m = &u->tar.member;
	char *copy;

	if (grow_notes(u) < 0)
		return;
	copy = str_dup(str_of(path));
	if (copy)
		u->notes[u->note_count++] = (struct note){ copy, m->mode & 0777, mtime_of(m) };
}

/* Last first: a parent may be closed once its children are done. */
static void apply_notes(struct unpack *u)
{
	while (u->note_count > 0) {
		struct note *n = &u->notes[--u->note_count];
		_free_ char *path = n->path;
		_close_ int fd = path_open_beneath(u->top, path, O_RDONLY | O_DIRECTORY);

		/* Gone or closed meanwhile: someone else's business by now. */
		if (fd >= 0) {
			(void)futimens(fd, (struct timespec[]){ n->mtime, n->mtime });
			(void)fchmod(fd, n->mode);
		}
	}
}

static int make_dir(struct unpack *u, const char *path, struct err *err)
{
	const struct path_spot *s = &u->spot;
	mode_t mode = (u->tar.member.mode & 0777) | 0700;
	struct stat st;
	int r;

	r = mkdirat(s->dir, s->name, mode);
	if (r < 0 && errno == EEXIST) {
		r = fstatat(s->dir, s->name, &st, AT_SYMLINK_NOFOLLOW);
		if (r == 0 && !S_ISDIR(st.st_mode)) {
			(void)unlinkat(s->dir, s->name, 0);
			r = mkdirat(s->dir, s->name, mode);
		}
	}
	if (r < 0)
		return err_sys(err, errno, "archive: make directory '%.150s'", path);
	note_dir(u, path);
	return 0;
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

/* The other name is a member's path like any other, so it is inside too. */
static int make_hardlink(struct unpack *u, const char *path, struct err *err)
{
	_cleanup_(path_spot_done) struct path_spot from = PATH_SPOT_NONE;
	char clean[PATH_BYTES];
	int r = clean_path(u->tar.member.link, clean, err);

	if (r == 0)
		r = path_locate_beneath(u->top, clean, false, &from, err);
	if (r < 0)
		return r;
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

static int on_member(struct unpack *u, struct err *err)
{
	static int (*const make[])(struct unpack *, const char *, struct err *) = {
		[TAR_FILE] = make_file,
		[TAR_DIR] = make_dir,
		[TAR_SYMLINK] = make_symlink,
		[TAR_HARDLINK] = make_hardlink,
	};
	char path[PATH_BYTES];
	int r = clean_path(u->tar.member.path, path, err);

	if (r < 0)
		return r;
	if (path[0] == '\0' && u->tar.member.type == TAR_DIR)
		return 0; /* the directory itself, "./" */
	if (path[0] == '\0')
		return err_set(err, EINVAL, "archive: a member has no name");
	r = path_locate_beneath(u->top, path, true, &u->spot, err);
	return r < 0 ? r : make[u->tar.member.type](u, path, err);
}

static int finish_file(struct unpack *u)
{
	struct timespec t = mtime_of(&u->tar.member);

	if (fchmod(u->temp.fd, u->tar.member.mode & 0777) < 0)
		return -errno;
	(void)futimens(u->temp.fd, (struct timespec[]){ t, t });
	return 0;
}

/* The member takes its name; what had it goes, but not a directory with something in it. */
static int on_done(struct unpack *u, struct err *err)
{
	int r = u->temp.fd >= 0 ? finish_file(u) : 0;

	if (r == 0 && u->temp.name[0] != '\0') {
		r = temp_commit(&u->temp, u->spot.name, false);
		if (r == -EISDIR && unlinkat(u->spot.dir, u->spot.name, AT_REMOVEDIR) == 0)
			r = temp_commit(&u->temp, u->spot.name, false);
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
	int r = fd_write_all(u->temp.fd, u->tar.data, u->tar.data_len);

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
	};
	const void *data;
	size_t n;
	int r;

	tar_reader_init(&u.tar);
	if (u.top < 0)
		return u.top;
	do {
		r = chan_take(&op->chan, &data, &n);
		if (r == 0 && n > 0)
			r = feed(&u, data, n, err);
	} while (r == 0 && n > 0);
	if (r == 0)
		r = tar_read_finish(&u.tar, err);
	if (r == 0)
		apply_notes(&u);
	return r;
}
