/* From a sandbox to this machine. What comes is not trusted. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/str.h"
#include "cli/copy.h"
#include "cli/unpack.h"

struct sink {
	int fd;                /* of a file, or standard output */
	struct unpack *unpack; /* of a directory */
	struct progress progress;
	struct err *err;
};

static int take(void *user, const void *data, size_t n)
{
	struct sink *s = user;
	int r;

	s->progress.done += n;
	if (s->unpack)
		return unpack_feed(s->unpack, data, n, s->err);
	r = fd_write_all(s->fd, data, n);
	return r < 0 ? err_sys(s->err, r, "write") : 0;
}

static int get(struct client *c, const struct place *from, const char *what, struct sink *s,
	       struct err *err)
{
	_cleanup_(buf_done) struct buf target = { 0 };
	struct httpc_request req = {
		.method = "GET", .data = take, .user = s, .timeout_ms = HTTPC_NO_LIMIT
	};
	int r = place_target(from, what, &target);

	if (r < 0)
		return r;
	req.target = target.data;
	s->err = err;
	progress_begin(&s->progress, "copying");
	return client_transfer(c, &req, &s->progress, NULL, err);
}

/* Under a hidden name beside it until it is whole. */
static int get_file(struct client *c, const struct place *from, const char *to, uint32_t mode,
		    struct err *err)
{
	_cleanup_(buf_done) struct buf temp = { 0 };
	struct sink s = { .fd = -1 };
	int r = buf_printf(&temp, "%s.XXXXXX", to);

	if (r < 0)
		return r;
	s.fd = mkostemp(temp.data, O_CLOEXEC);
	if (s.fd < 0)
		return err_sys(err, errno, "'%.150s'", to);
	r = get(c, from, "files", &s, err);
	if (r == 0 && fchmod(s.fd, mode) < 0)
		r = err_sys(err, errno, "'%.150s'", to);
	if (close(s.fd) < 0 && r == 0)
		r = err_sys(err, errno, "'%.150s'", to);
	if (r == 0 && rename(temp.data, to) < 0)
		r = err_sys(err, errno, "'%.150s'", to);
	if (r < 0)
		(void)unlink(temp.data);
	return r;
}

static int get_tree(struct client *c, const struct place *from, const char *to, struct err *err)
{
	_cleanup_(unpack_free_p) struct unpack *unpack = NULL;
	struct sink s = { .fd = -1 };
	int r = unpack_create(to, &unpack, err);

	if (r < 0)
		return r;
	s.unpack = unpack;
	r = get(c, from, "archive", &s, err);
	return r < 0 ? r : unpack_finish(unpack, err);
}

static bool is_directory(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* As cp does: into a directory that is there goes the source under its own name. */
static int write_path(const char *from, const char *to, struct buf *b, struct err *err)
{
	_cleanup_(buf_done) struct buf clean = { 0 };
	const char *name = NULL;
	int r = buf_puts(&clean, from);

	while (clean.len > 1 && clean.data[clean.len - 1] == '/')
		clean.data[--clean.len] = '\0';
	if (r == 0)
		r = place_name(buf_str(&clean), &name, err);
	if (r < 0)
		return r;
	if (!name || !is_directory(to))
		return buf_puts(b, to);
	return buf_printf(b, "%s%s%s", to, str_ends(str_of(to), "/") ? "" : "/", name);
}

int copy_out(struct client *c, const struct place *from, const char *to, struct err *err)
{
	_cleanup_(buf_done) struct buf path = { 0 };
	struct sink out = { .fd = STDOUT_FILENO };
	enum place_kind kind = PLACE_NONE;
	uint32_t mode = 0;
	int r = place_look(c, from, &kind, &mode, err);

	if (r < 0)
		return r;
	if (kind == PLACE_NONE)
		return -ENOENT; /* the path, or the sandbox: the daemon has said which */
	if (kind == PLACE_OTHER)
		return err_set(err, EINVAL, "'%.150s' is neither a file nor a directory",
			       from->path);
	if (strcmp(to, "-") == 0)
		return get(c, from, kind == PLACE_DIR ? "archive" : "files", &out, err);
	r = write_path(from->path, to, &path, err);
	if (r < 0)
		return r;
	return kind == PLACE_DIR ? get_tree(c, from, buf_str(&path), err)
				 : get_file(c, from, buf_str(&path), mode, err);
}
