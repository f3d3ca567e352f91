#include "cli/unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include "base/tar.h"
#include "cli/command.h"

#define DIRS_MAX (64u << 20) /* bytes of notes about directories */

struct unpack {
	int top;             /* owned */
	int file;            /* owned: the member that is being written; -1: none */
	struct buf dirs;     /* "0755 path\0": modes to set at the end, in the order they came */
	char path[TAR_PATH]; /* of the member, clean */
	struct tar_reader tar;
};

int unpack_create(const char *dir, struct unpack **ret, struct err *err)
{
	_cleanup_(unpack_free_p) struct unpack *u = calloc(1, sizeof(*u));

	if (!u)
		return err_sys(err, ENOMEM, "archive");
	u->file = -1;
	buf_init(&u->dirs, DIRS_MAX);
	tar_reader_init(&u->tar);
	if (mkdir(dir, 0777) < 0 && errno != EEXIST)
		u->top = -1;
	else
		u->top = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (u->top < 0)
		return err_sys(err, errno, "'%.150s'", dir);
	*ret = TAKE(u);
	return 0;
}

struct unpack *unpack_free(struct unpack *u)
{
	if (!u)
		return NULL;
	tar_reader_done(&u->tar);
	buf_done(&u->dirs);
	(void)fd_close(u->file);
	(void)fd_close(u->top);
	free(u);
	return NULL;
}

/* --- places -------------------------------------------------------------------------------- */

static int open_beneath(int dir, const char *path, int flags, mode_t mode)
{
	struct open_how how = {
		.flags = (uint64_t)(unsigned)flags | O_CLOEXEC,
		.mode = mode,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};
	long fd = syscall(SYS_openat2, dir, path, &how, sizeof(how));

	return fd < 0 ? -errno : (int)fd;
}

/* "./a//b/" becomes "a/b"; an absolute path or one with ".." is refused. */
static int clean_path(const char *from, char dst[TAR_PATH], struct err *err)
{
	struct str rest = str_of(from), part;
	size_t n = 0;

	dst[0] = '\0';
	if (from[0] == '/')
		return err_set(err, EPERM, "archive: '%.150s' is an absolute path", from);
	while (str_split(&rest, '/', &part)) {
		if (part.len == 0 || str_is(part, "."))
			continue;
		if (str_is(part, ".."))
			return err_set(err, EPERM, "archive: '%.150s' leads out of the target",
				       from);
		if (n + part.len + 2 > TAR_PATH)
			return err_set(err, ENAMETOOLONG, "archive: a path is too long");
		if (n > 0)
			dst[n++] = '/';
		memcpy(dst + n, part.data, part.len);
		n += part.len;
		dst[n] = '\0';
	}
	return 0;
}

static int make_parents(int top, char *path)
{
	for (char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		_close_ int dir = -1;
		const char *name;
		int r = 0;

		*slash = '\0';
		name = strrchr(path, '/');
		if (name) { /* the part before it was made in the turn before */
			path[name - path] = '\0';
			dir = open_beneath(top, path, O_PATH | O_DIRECTORY, 0);
			path[name - path] = '/';
		}
		if (name && dir < 0)
			r = dir;
		else if (mkdirat(name ? dir : top, name ? name + 1 : path, 0777) < 0 &&
			 errno != EEXIST)
			r = -errno;
		*slash = '/';
		if (r < 0)
			return r;
	}
	return 0;
}

/* The directory that the path's last name is in, made when it is missing; -errno. *ret_name points
 * into path. */
static int open_parent(int top, char *path, const char **ret_name)
{
	char *slash = strrchr(path, '/');
	int fd;

	*ret_name = slash ? slash + 1 : path;
	if (!slash)
		return open_beneath(top, ".", O_PATH | O_DIRECTORY, 0);
	*slash = '\0';
	fd = open_beneath(top, path, O_PATH | O_DIRECTORY, 0);
	*slash = '/';
	if (fd != -ENOENT)
		return fd;
	fd = make_parents(top, path);
	if (fd < 0)
		return fd;
	*slash = '\0';
	fd = open_beneath(top, path, O_PATH | O_DIRECTORY, 0);
	*slash = '/';
	return fd;
}

/* --- members ------------------------------------------------------------------------------- */

static int make_file(struct unpack *u, int dir, const char *name)
{
	const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW;
	int fd = open_beneath(dir, name, flags, 0600);

	if (fd == -EEXIST) { /* what had the name goes, but not a directory */
		if (unlinkat(dir, name, 0) < 0)
			return -errno;
		fd = open_beneath(dir, name, flags, 0600);
	}
	if (fd < 0)
		return fd;
	u->file = fd;
	return 0;
}

static int make_dir(struct unpack *u, int dir, const char *name)
{
	uint32_t mode = u->tar.member.mode & 0777;
	struct stat st;

	if (mkdirat(dir, name, 0700) < 0) {
		if (errno != EEXIST)
			return -errno;
		if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			return -errno;
		if (!S_ISDIR(st.st_mode))
			return -ENOTDIR;
	}
	(void)buf_printf(&u->dirs, "%04o %s", mode, u->path);
	return buf_append(&u->dirs, "", 1);
}

/* Whether the target stays below the top, seen from a link at that path. ".." may stand at its
 * beginning only: behind another link's name it would not lead where it seems to. */
static bool is_inside(const char *path, const char *target)
{
	struct str rest = str_of(target), part;
	size_t depth = 0;
	bool named = false;

	for (const char *p = path; *p; p++)
		depth += *p == '/';
	if (target[0] == '/' || target[0] == '\0')
		return false;
	while (str_split(&rest, '/', &part)) {
		if (part.len == 0 || str_is(part, "."))
			continue;
		if (!str_is(part, "..")) {
			named = true;
			continue;
		}
		if (named || depth-- == 0)
			return false;
	}
	return true;
}

static int make_link(struct unpack *u, int dir, const char *name)
{
	const char *target = u->tar.member.link;

	if (!is_inside(u->path, target)) {
		cli_say("left out link '%.150s': it points to '%.150s'", u->path, target);
		return 0;
	}
	if (symlinkat(target, dir, name) == 0)
		return 0;
	if (errno != EEXIST || unlinkat(dir, name, 0) < 0)
		return -errno;
	return symlinkat(target, dir, name) < 0 ? -errno : 0;
}

static int make_hardlink(struct unpack *u, int dir, const char *name)
{
	(void)dir;
	(void)name;
	cli_say("left out '%.150s': a second name of '%.150s'", u->path, u->tar.member.link);
	return 0;
}

static int on_member(struct unpack *u, struct err *err)
{
	static int (*const make[])(struct unpack *, int, const char *) = {
		[TAR_FILE] = make_file,
		[TAR_DIR] = make_dir,
		[TAR_SYMLINK] = make_link,
		[TAR_HARDLINK] = make_hardlink,
	};
	_close_ int dir = -1;
	const char *name;
	int r = clean_path(u->tar.member.path, u->path, err);

	if (r < 0)
		return r;
	if (u->path[0] == '\0' && u->tar.member.type == TAR_DIR)
		return 0; /* the directory itself, "./" */
	if (u->path[0] == '\0')
		return err_set(err, EPERM, "archive: a member has no name");
	dir = open_parent(u->top, u->path, &name);
	r = dir < 0 ? dir : make[u->tar.member.type](u, dir, name);
	if (r == -ELOOP || r == -EXDEV)
		return err_set(err, EPERM, "'%.150s' leads through a symbolic link", u->path);
	return r < 0 ? err_sys(err, r, "'%.150s'", u->path) : 0;
}

static int on_data(struct unpack *u, struct err *err)
{
	int r = u->file < 0 ? 0 : fd_write_all(u->file, u->tar.data, u->tar.data_len);

	return r < 0 ? err_sys(err, r, "write '%.150s'", u->path) : 0;
}

static int on_done(struct unpack *u, struct err *err)
{
	int r = 0;

	if (u->file < 0)
		return 0;
	if (fchmod(u->file, u->tar.member.mode & 0777) < 0)
		r = err_sys(err, errno, "'%.150s'", u->path);
	if (close(TAKE_FD(u->file)) < 0 && r == 0)
		r = err_sys(err, errno, "write '%.150s'", u->path);
	return r;
}

int unpack_feed(struct unpack *u, const void *data, size_t n, struct err *err)
{
	const uint8_t *p = data;
	int r;

	while ((r = tar_read(&u->tar, &p, &n, err)) > 0) {
		if (r == TAR_END)
			return 0; /* tar_read() takes the rest without a word */
		if (r == TAR_MEMBER)
			r = on_member(u, err);
		else if (r == TAR_DATA)
			r = on_data(u, err);
		else
			r = on_done(u, err);
		if (r < 0)
			return r;
	}
	return r;
}

static int set_mode(const struct unpack *u, const char *note)
{
	uint32_t mode = 0;
	int fd;

	for (size_t i = 0; i < 4; i++)
		mode = mode << 3 | (uint32_t)(note[i] - '0');
	fd = open_beneath(u->top, note + 5, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (fd < 0)
		return fd;
	if (fchmod(fd, mode) < 0) {
		int e = errno;

		(void)close(fd);
		return -e;
	}
	(void)close(fd);
	return 0;
}

/* Last first: a parent may be closed once its children are done. */
static int set_modes(struct unpack *u, struct err *err)
{
	while (u->dirs.len > 0) {
		const char *note;
		int r;

		u->dirs.len--; /* the NUL of the last note */
		note = memrchr(u->dirs.data, '\0', u->dirs.len);
		note = note ? note + 1 : u->dirs.data;
		r = set_mode(u, note);
		if (r < 0)
			return err_sys(err, r, "mode of '%.150s'", note + 5);
		u->dirs.len = (size_t)(note - u->dirs.data);
	}
	return 0;
}

int unpack_finish(struct unpack *u, struct err *err)
{
	int r = tar_read_finish(&u->tar, err);

	return r < 0 ? r : set_modes(u, err);
}
