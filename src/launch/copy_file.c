/* One entry of a tree, as exactly as a file system of ours can hold it. */
#include "launch/copy_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"

#define CHUNK (64u << 20)
#define LARGE (1 << 20)
#define SHARED_MIN (128 << 10) /* to share blocks, they have to be on disk: worth it for many */
#define ALIGNED (64u << 10)    /* whatever the size of a page */
#define NAMES_MAX (64u << 10)  /* the kernel gives no longer list */
#define VALUE_MAX (64u << 10)  /* nor a longer value */
#define OVERLAY "user.overlay."
#define OPAQUE OVERLAY "opaque"

int copy_count(struct copy *c, uint64_t bytes, uint32_t inodes)
{
	struct copy_stats *s = c->stats;

	if (bytes > c->plan->max_bytes || s->bytes > c->plan->max_bytes - bytes ||
	    s->inodes > c->plan->max_inodes - inodes)
		return err_set(c->err, EDQUOT, "more was found than a box may have written");
	s->bytes += bytes;
	s->inodes += inodes;
	return 0;
}

static uint32_t map_id(const struct copy_ids *ids, uint32_t id)
{
	uint32_t at = id - ids->from;

	return ids->to + (at < ids->count ? at : ids->count - 1);
}

int copy_meta(struct copy *c, int fd, const struct stat *st)
{
	const struct copy_ids *ids = &c->plan->ids;
	struct timespec times[2] = { st->st_atim, st->st_mtim };

	if (ids->count > 0 && fchownat(fd, "", map_id(ids, st->st_uid), map_id(ids, st->st_gid),
				       AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(c->err, errno, "owner of a file in a layer");
	/* Behind the owner, whose change takes the set-user-id bit off. */
	if (!S_ISLNK(st->st_mode) && fchmod(fd, st->st_mode & 07777) < 0)
		return err_sys(c->err, errno, "mode of a file in a layer");
	if (utimensat(fd, "", times, AT_EMPTY_PATH) < 0 && errno != EINVAL)
		return err_sys(c->err, errno, "times of a file in a layer");
	return 0;
}

/* Of the overlay's own attributes one says something about the directory itself; the others are
 * about the layers that were below it once. */
static bool is_wanted(const char *name)
{
	return strncmp(name, "user.", 5) == 0 && strncmp(name, OVERLAY, strlen(OVERLAY)) != 0;
}

static int copy_attribute(struct copy *c, int from, int to, const char *name)
{
	char value[VALUE_MAX];
	ssize_t n = fgetxattr(from, name, value, sizeof(value));

	if (n < 0 || fsetxattr(to, name, value, (size_t)n, 0) < 0) {
		/* "No space" is also what a file system says that has only a block for them. */
		c->stats->skipped++;
		return 0;
	}
	return copy_count(c, (uint64_t)n + strlen(name), 0);
}

int copy_attributes(struct copy *c, int from, int to, bool *ret_opaque)
{
	char names[NAMES_MAX], value[2];
	ssize_t n = flistxattr(from, names, sizeof(names));
	int r = 0;

	*ret_opaque = false;
	if (n <= 0)
		return 0;
	if (fgetxattr(from, OPAQUE, value, sizeof(value)) == 1 && value[0] == 'y') {
		*ret_opaque = true;
		if (fsetxattr(to, OPAQUE, "y", 1, 0) < 0)
			return err_sys(c->err, errno, "opaque directory of a layer");
	}
	for (const char *p = names; p < names + n && r == 0; p += strlen(p) + 1)
		if (is_wanted(p))
			r = copy_attribute(c, from, to, p);
	return r;
}

/* Written out of a mapping: the kernel copies once, and large pieces at a time, which takes half as
 * long as sendfile(), page by page. The file is not read here: one that got shorter is an error of
 * write(). */
static ssize_t copy_mapped(int from, int to, off_t at, size_t n)
{
	size_t skip = (size_t)at % ALIGNED;
	void *map =
		mmap(NULL, n + skip, PROT_READ, MAP_SHARED | MAP_POPULATE, from, at - (off_t)skip);
	ssize_t done;

	if (map == MAP_FAILED)
		return -errno;
	done = pwrite(to, (const char *)map + skip, n, at);
	if (done < 0)
		done = -errno;
	(void)munmap(map, n + skip);
	return done;
}

/* Within one file system the kernel may share what is copied. */
static ssize_t copy_some(int from, int to, off_t at, size_t n)
{
	off_t in = at, out = at;
	ssize_t done;

	if (n < SHARED_MIN)
		return copy_mapped(from, to, at, n);
	done = copy_file_range(from, &in, to, &out, n, 0);
	if (done >= 0 || (errno != EXDEV && errno != EINVAL && errno != EOPNOTSUPP))
		return done < 0 ? -errno : done;
	return copy_mapped(from, to, at, n);
}

static int copy_range(int from, int to, off_t at, off_t end)
{
	/* Blocks that are there already need no reservation, page by page. */
	if (end - at >= LARGE && fallocate(to, 0, at, end - at) < 0 && errno != EOPNOTSUPP)
		return -errno;
	while (at < end) {
		ssize_t n = copy_some(from, to, at, end - at < CHUNK ? (size_t)(end - at) : CHUNK);

		if (n < 0 && n != -EINTR)
			return (int)n;
		if (n == 0)
			return 0; /* shorter than it was */
		at += n > 0 ? n : 0;
	}
	return 0;
}

static int copy_data(struct copy *c, int from, int to, const struct stat *st)
{
	off_t at = 0, hole;
	int r = 0;

	if (ftruncate(to, st->st_size) < 0)
		return -errno;
	if (st->st_size == 0)
		return 0;
	if (st->st_size >= SHARED_MIN && ioctl(to, FICLONE, from) == 0)
		return copy_count(c, (uint64_t)st->st_blocks * 512, 0);
	while (r == 0 && (at = lseek(from, at, SEEK_DATA)) >= 0) {
		hole = lseek(from, at, SEEK_HOLE);
		if (hole < 0)
			hole = st->st_size;
		r = copy_count(c, (uint64_t)(hole - at), 0);
		if (r == 0)
			r = copy_range(from, to, at, hole);
		at = hole;
	}
	return r < 0 || errno == ENXIO ? r : -errno;
}

/* The file system cannot hold it, whatever space it has. */
static bool cannot_be_held(int r)
{
	return r == -EFBIG || r == -EINVAL || r == -EOVERFLOW;
}

static int copy_regular(struct copy *c, int from, int to, const char *name)
{
	_close_ int in = openat(from, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	_close_ int out = -1;
	bool opaque;
	struct stat st;
	int r;

	if (in < 0 || fstat(in, &st) < 0)
		return err_sys(c->err, errno, "file of a box");
	if (!S_ISREG(st.st_mode))
		return err_set(c->err, ESTALE, "a file of a box has changed while it was read");
	out = openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (out < 0)
		return err_sys(c->err, errno, "file of a layer");
	r = copy_data(c, in, out, &st);
	if (cannot_be_held(r)) {
		c->stats->skipped++;
		return unlinkat(to, name, 0) < 0 ? err_sys(c->err, errno, "file of a layer") : 0;
	}
	if (r < 0)
		return err_code(c->err) ? r : err_sys(c->err, r, "copy a file into a layer");
	r = copy_attributes(c, in, out, &opaque);
	return r < 0 ? r : copy_meta(c, out, &st);
}

/* Another name of a file that was copied; 1: it was not, or has as many as it can have. */
static int link_again(struct copy *c, const char *key, int to, const char *name)
{
	if (linkat(c->links, key, to, name, 0) == 0)
		return 0;
	if (errno == EMLINK) {
		(void)unlinkat(c->links, key, 0);
		return 1;
	}
	return errno == ENOENT ? 1 : err_sys(c->err, errno, "link in a layer");
}

static int copy_linked(struct copy *c, int from, int to, const char *name, const struct stat *st)
{
	char key[24];
	int r;

	(void)str_format(key, sizeof(key), "%llx", (unsigned long long)st->st_ino);
	r = link_again(c, key, to, name);
	if (r <= 0)
		return r;
	r = copy_regular(c, from, to, name);
	if (r == 0 && linkat(to, name, c->links, key, 0) < 0 && errno != ENOENT)
		r = err_sys(c->err, errno, "link in a layer");
	return r;
}

static int copy_symlink(struct copy *c, int from, int to, const char *name, const struct stat *st)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(from, name, target, sizeof(target) - 1);
	_close_ int fd = -1;

	if (n < 0)
		return err_sys(c->err, errno, "link of a box");
	target[n] = '\0';
	if (symlinkat(target, to, name) < 0)
		return err_sys(c->err, errno, "link of a layer");
	fd = openat(to, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return err_sys(c->err, errno, "link of a layer");
	return copy_meta(c, fd, st);
}

/* A fifo or a whiteout: nothing that opens it can reach anything. */
static int copy_node(struct copy *c, int to, const char *name, const struct stat *st)
{
	mode_t mode = (st->st_mode & S_IFMT) | 0600;
	const struct copy_ids *ids = &c->plan->ids;

	if (mknodat(to, name, mode, 0) < 0)
		return err_sys(c->err, errno, "node of a layer");
	if (ids->count > 0 && fchownat(to, name, map_id(ids, st->st_uid), map_id(ids, st->st_gid),
				       AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(c->err, errno, "owner of a node in a layer");
	if (S_ISFIFO(st->st_mode) && fchmodat(to, name, st->st_mode & 07777, 0) < 0)
		return err_sys(c->err, errno, "mode of a node in a layer");
	return 0;
}

static bool is_whiteout(const struct stat *st)
{
	return S_ISCHR(st->st_mode) && st->st_rdev == makedev(0, 0);
}

int copy_entry(struct copy *c, int from, int to, const char *name, const struct stat *st)
{
	int r = copy_count(c, 0, 1);

	if (r < 0)
		return r;
	if (S_ISREG(st->st_mode))
		return st->st_nlink > 1 ? copy_linked(c, from, to, name, st)
					: copy_regular(c, from, to, name);
	if (S_ISLNK(st->st_mode))
		return copy_symlink(c, from, to, name, st);
	if (S_ISFIFO(st->st_mode) || is_whiteout(st))
		return copy_node(c, to, name, st);
	c->stats->skipped++;
	return 0;
}
