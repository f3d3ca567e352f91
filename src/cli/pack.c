#include "cli/pack.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include "base/tar.h"
#include "cli/command.h"

struct pack {
	FTS *walk;       /* owned */
	size_t root_len; /* bytes of each path that are not the archive's */
	struct buf head; /* owned: headers and padding that wait */
	int file;        /* owned: contents that come after head; -1: none */
	uint64_t left;   /* of them */
	size_t padding;  /* behind them */
	bool over;       /* the end mark is in head */
	bool is_stable;  /* the same files make the same bytes */
};

/* The directory itself comes first, and tells how long its path is. */
static int read_root(struct pack *p, struct err *err)
{
	const FTSENT *e = fts_read(p->walk);

	if (!e)
		return err_sys(err, errno, "archive");
	if (e->fts_info != FTS_D)
		return err_sys(err, e->fts_errno ? e->fts_errno : ENOTDIR, "%.150s", e->fts_path);
	p->root_len = e->fts_pathlen;
	if (e->fts_path[p->root_len - 1] != '/')
		p->root_len++; /* the slash between */
	return 0;
}

static int by_name(const FTSENT **a, const FTSENT **b)
{
	return strcmp((*a)->fts_name, (*b)->fts_name);
}

static int create(const char *dir, bool is_stable, struct pack **ret, struct err *err)
{
	_cleanup_(pack_free_p) struct pack *p = calloc(1, sizeof(*p));
	char *paths[] = { (char *)dir, NULL };
	int r;

	if (!p)
		return err_sys(err, ENOMEM, "archive");
	p->file = -1;
	p->is_stable = is_stable;
	p->walk = fts_open(paths, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR,
			   is_stable ? by_name : NULL);
	if (!p->walk)
		return err_sys(err, errno, "%.150s", dir);
	r = read_root(p, err);
	if (r < 0)
		return r;
	*ret = TAKE(p);
	return 0;
}

int pack_create(const char *dir, struct pack **ret, struct err *err)
{
	return create(dir, false, ret, err);
}

int pack_create_stable(const char *dir, struct pack **ret, struct err *err)
{
	return create(dir, true, ret, err);
}

struct pack *pack_free(struct pack *p)
{
	if (!p)
		return NULL;
	if (p->walk)
		(void)fts_close(p->walk);
	(void)fd_close(p->file);
	buf_done(&p->head);
	free(p);
	return NULL;
}

static int add_header(struct pack *p, const FTSENT *e, const struct stat *st, enum tar_type type,
		      const char *link)
{
	struct tar_member m = {
		.type = type,
		.mode = st->st_mode & 0777,
		.size = type == TAR_FILE ? (uint64_t)st->st_size : 0,
		.mtime_sec = p->is_stable ? PACK_STABLE_TIME : st->st_mtim.tv_sec,
		.mtime_nsec = p->is_stable ? 0 : (uint32_t)st->st_mtim.tv_nsec,
		.path = e->fts_path + p->root_len,
		.link = link,
	};

	return tar_write_member(&p->head, &m);
}

static int add_file(struct pack *p, const FTSENT *e, struct err *err)
{
	_close_ int fd = open(e->fts_accpath, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(err, errno, "%.150s", e->fts_path);
	if (!S_ISREG(st.st_mode))
		return err_set(err, ESTALE, "%.150s: became something else", e->fts_path);
	r = add_header(p, e, &st, TAR_FILE, "");
	if (r < 0)
		return err_sys(err, r, "%.150s", e->fts_path);
	p->file = TAKE_FD(fd);
	p->left = (uint64_t)st.st_size;
	p->padding = tar_padding(p->left);
	return 0;
}

static int add_link(struct pack *p, const FTSENT *e, struct err *err)
{
	char link[TAR_PATH];
	ssize_t n = readlink(e->fts_accpath, link, sizeof(link) - 1);
	int r;

	if (n < 0)
		return err_sys(err, errno, "%.150s", e->fts_path);
	link[n] = '\0';
	r = add_header(p, e, e->fts_statp, TAR_SYMLINK, link);
	return r < 0 ? err_sys(err, r, "%.150s", e->fts_path) : 0;
}

static int add_entry(struct pack *p, const FTSENT *e, struct err *err)
{
	int r;

	switch (e->fts_info) {
	case FTS_D:
		r = add_header(p, e, e->fts_statp, TAR_DIR, "");
		return r < 0 ? err_sys(err, r, "%.150s", e->fts_path) : 0;
	case FTS_DP:
		return 0;
	case FTS_F:
		return add_file(p, e, err);
	case FTS_SL:
	case FTS_SLNONE:
		return add_link(p, e, err);
	case FTS_DEFAULT:
		cli_say("left out '%.150s': neither file, directory nor link", e->fts_path);
		return 0;
	default:
		return err_sys(err, e->fts_errno ? e->fts_errno : ELOOP, "%.150s", e->fts_path);
	}
}

/* The next entry's bytes, or the archive's end. */
static int step(struct pack *p, struct err *err)
{
	FTSENT *e;

	errno = 0;
	e = fts_read(p->walk);
	if (!e && errno)
		return err_sys(err, errno, "archive");
	if (!e) {
		p->over = true;
		return tar_write_end(&p->head);
	}
	return e->fts_level > 0 ? add_entry(p, e, err) : 0;
}

/* The header has promised so many bytes: a file that shrinks on the way makes the archive wrong. */
static ssize_t read_file(struct pack *p, void *dst, size_t n, struct err *err)
{
	static const char zeros[TAR_BLOCK];
	ssize_t got = 0;
	int r;

	if (p->left > 0)
		got = read(p->file, dst, p->left < n ? (size_t)p->left : n);
	if (got < 0)
		return err_sys(err, errno, "read");
	if (got == 0 && p->left > 0)
		return err_set(err, ESTALE, "a file became shorter while it was read");
	p->left -= (uint64_t)got;
	if (p->left > 0)
		return got;
	p->file = fd_close(p->file);
	r = buf_append(&p->head, zeros, p->padding);
	return r < 0 ? err_sys(err, r, "archive") : got;
}

ssize_t pack_read(struct pack *p, void *dst, size_t n, struct err *err)
{
	ssize_t got;
	int r;

	for (;;) {
		if (p->head.len > 0) {
			size_t part = p->head.len < n ? p->head.len : n;

			memcpy(dst, p->head.data, part);
			buf_drop(&p->head, part);
			return (ssize_t)part;
		}
		if (p->file >= 0) {
			got = read_file(p, dst, n, err);
			if (got != 0)
				return got;
			continue; /* an empty file */
		}
		if (p->over)
			return 0;
		r = step(p, err);
		if (r < 0)
			return r;
	}
}
