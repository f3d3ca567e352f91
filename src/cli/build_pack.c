#include "cli/build_pack.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/encode.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include "base/tar.h"
#include "cli/pack.h"
#include "crypto/hash.h"

#define PIECE (64u << 10)

struct sink {
	int fd;
	struct hash *sum;
	uint64_t bytes;
};

void build_archive_done(struct build_archive *a)
{
	a->fd = fd_close(a->fd);
	buf_done(&a->dir);
}

static int put(struct sink *s, const void *data, size_t n, struct err *err)
{
	const char *p = data;
	int r = hash_update(s->sum, data, n);

	if (r < 0)
		return err_sys(err, r, "archive");
	s->bytes += n;
	while (n > 0) {
		ssize_t done = write(s->fd, p, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return err_sys(err, errno, "archive");
		p += done;
		n -= (size_t)done;
	}
	return 0;
}

static int put_tree(struct sink *s, const char *path, struct err *err)
{
	_cleanup_(pack_free_p) struct pack *pack = NULL;
	_free_ char *piece = malloc(PIECE);
	int r = piece ? pack_create_stable(path, &pack, err) : err_sys(err, ENOMEM, "archive");
	ssize_t n = 1;

	while (r == 0 && n > 0) {
		n = pack_read(pack, piece, PIECE, err);
		r = n < 0 ? (int)n : put(s, piece, (size_t)n, err);
	}
	return r;
}

static int put_contents(struct sink *s, int fd, uint64_t size, struct err *err)
{
	_free_ char *piece = malloc(PIECE);
	int r = piece ? 0 : err_sys(err, ENOMEM, "archive");

	while (r == 0 && size > 0) {
		ssize_t n = read(fd, piece, size < PIECE ? (size_t)size : PIECE);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return err_sys(err, n < 0 ? errno : ESTALE, "read a file");
		size -= (uint64_t)n;
		r = put(s, piece, (size_t)n, err);
	}
	return r;
}

/* An archive of one file, under that name. */
static int put_file(struct sink *s, const char *path, const char *name, struct err *err)
{
	static const char zeros[TAR_BLOCK];
	_cleanup_(buf_done) struct buf head = { 0 }, end = { 0 };
	_close_ int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct tar_member m = {
		.type = TAR_FILE, .mtime_sec = PACK_STABLE_TIME, .path = name, .link = ""
	};
	struct stat st;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(err, errno, "'%.150s'", path);
	m.mode = st.st_mode & 0777;
	m.size = (uint64_t)st.st_size;
	r = tar_write_member(&head, &m);
	if (r == 0)
		r = tar_write_end(&end);
	if (r < 0)
		return err_sys(err, r, "'%.150s'", path);
	r = put(s, head.data, head.len, err);
	if (r == 0)
		r = put_contents(s, fd, m.size, err);
	if (r == 0)
		r = put(s, zeros, tar_padding(m.size), err);
	return r < 0 ? r : put(s, end.data, end.len, err);
}

/* The real path of what is meant; the caller frees it. */
static int find(const char *context, const char *from, char **ret, struct err *err)
{
	_cleanup_(buf_done) struct buf path = { 0 };
	_free_ char *root = realpath(context, NULL);
	_free_ char *real = NULL;
	size_t n;

	if (!root)
		return err_sys(err, errno, "'%.150s'", context);
	if (from[0] == '/')
		return err_set(err, EINVAL, "'%.150s' is not below the context", from);
	if (buf_printf(&path, "%s/%s", root, from) < 0)
		return err_sys(err, ENOMEM, "archive");
	real = realpath(path.data, NULL);
	if (!real)
		return err_sys(err, errno, "'%.150s'", from);
	n = strlen(root);
	if (strcmp(root, "/") != 0 &&
	    (strncmp(real, root, n) != 0 || (real[n] != '/' && real[n] != '\0')))
		return err_set(err, EINVAL, "'%.150s' leads out of the context", from);
	*ret = TAKE(real);
	return 0;
}

/* "/app/x.py" of a file is x.py in /app; "/app/" keeps the file's own name. */
static int split(const char *path, const char *to, bool is_dir, const char **ret_name,
		 struct buf *ret_dir)
{
	const char *slash = strrchr(to, '/'), *own = strrchr(path, '/');
	bool is_place = is_dir || strcmp(to, ".") == 0 || (slash && slash[1] == '\0');

	*ret_name = is_place ? own + 1 : slash ? slash + 1 : to;
	if (is_place)
		return buf_puts(ret_dir, to);
	if (!slash)
		return buf_puts(ret_dir, ".");
	return slash == to ? buf_puts(ret_dir, "/") : buf_append(ret_dir, to, (size_t)(slash - to));
}

static int open_temp(struct err *err)
{
	const char *dir = getenv("TMPDIR");
	int fd = open(dir && dir[0] ? dir : "/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	return fd < 0 ? err_sys(err, errno, "a file for the archive") : fd;
}

static int finish(struct sink *s, struct build_archive *ret, struct err *err)
{
	uint8_t sum[HASH_LEN];
	int r = hash_final(s->sum, sum);

	if (r == 0 && lseek(s->fd, 0, SEEK_SET) < 0)
		r = -errno;
	if (r < 0)
		return err_sys(err, r, "archive");
	encode_hex(sum, HASH_LEN, ret->hash);
	ret->bytes = s->bytes;
	return 0;
}

int build_pack(const char *context, const char *from, const char *to, struct build_archive *ret,
	       struct err *err)
{
	struct sink s = { .fd = open_temp(err), .sum = hash_create() };
	_free_ char *path = NULL;
	const char *name;
	struct stat st;
	int r = s.fd < 0 ? s.fd : find(context, from, &path, err);

	ret->fd = s.fd;
	if (r == 0 && !s.sum)
		r = err_sys(err, ENOMEM, "archive");
	if (r == 0 && lstat(path, &st) < 0)
		r = err_sys(err, errno, "'%.150s'", from);
	if (r == 0 && !S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
		r = err_set(err, EINVAL, "'%.150s' is neither a file nor a directory", from);
	if (r == 0 && split(path, to, S_ISDIR(st.st_mode), &name, &ret->dir) < 0)
		r = err_sys(err, ENOMEM, "archive");
	if (r == 0)
		r = S_ISDIR(st.st_mode) ? put_tree(&s, path, err) : put_file(&s, path, name, err);
	if (r == 0)
		r = finish(&s, ret, err);
	(void)hash_free(s.sum);
	return r;
}
