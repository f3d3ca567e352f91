/* From this machine into a sandbox. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "cli/copy.h"
#include "cli/pack.h"
#include "httpc/url.h"

struct source {
	int fd;            /* of a file */
	struct pack *pack; /* of a directory */
	uint64_t size;     /* that was promised */
	bool is_sized;
	struct progress progress;
	struct err *err;
};

static ssize_t read_file(void *user, void *dst, size_t n)
{
	struct source *s = user;
	ssize_t got;

	do
		got = read(s->fd, dst, n);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return err_sys(s->err, errno, "read");
	if (got == 0 && s->is_sized && s->progress.done < s->size)
		return err_set(s->err, ESTALE, "the file became shorter while it was read");
	s->progress.done += (uint64_t)got;
	return got;
}

static ssize_t read_pack(void *user, void *dst, size_t n)
{
	struct source *s = user;
	ssize_t got = pack_read(s->pack, dst, n, s->err);

	if (got > 0)
		s->progress.done += (uint64_t)got;
	return got;
}

static int put(struct client *c, const struct buf *target, const char *type, struct source *s,
	       struct err *err)
{
	struct httpc_request req = {
		.method = "PUT",
		.target = buf_str(target),
		.accept = "application/json",
		.type = type,
		.read = s->pack ? read_pack : read_file,
		.read_size = s->is_sized ? (int64_t)s->size : -1,
		.user = s,
		.timeout_ms = HTTPC_NO_LIMIT,
		.stall_ms = s->fd == STDIN_FILENO ? HTTPC_NO_LIMIT : 0,
	};
	struct httpc_answer answer = { 0 };
	int r;

	progress_begin(&s->progress, "copying");
	s->progress.total = s->size;
	s->err = err;
	r = client_transfer(c, &req, &s->progress, &answer, err);
	if (r == 0 && c->json)
		r = client_print(&answer.body);
	buf_done(&answer.body);
	return r;
}

/* A file or standard input becomes the file `to`. */
static int put_file(struct client *c, int fd, const struct stat *st, const struct place *to,
		    struct err *err)
{
	_cleanup_(buf_done) struct buf target = { 0 };
	struct source s = { .fd = fd };
	char mode[8];
	int r = place_target(to, "files", &target);

	s.is_sized = S_ISREG(st->st_mode) && fd != STDIN_FILENO;
	s.size = s.is_sized ? (uint64_t)st->st_size : 0;
	(void)snprintf(mode, sizeof(mode), "%04o", s.is_sized ? st->st_mode & 0777u : 0644u);
	if (r == 0)
		r = url_add_query(&target, "mode", mode);
	return r < 0 ? r : put(c, &target, "application/octet-stream", &s, err);
}

static int put_tree(struct client *c, const char *from, const struct place *to, struct err *err)
{
	_cleanup_(buf_done) struct buf target = { 0 };
	_cleanup_(pack_free_p) struct pack *pack = NULL;
	struct source s = { .fd = -1 };
	int r = pack_create(from, &pack, err);

	if (r == 0)
		r = place_target(to, "archive", &target);
	if (r < 0)
		return r;
	s.pack = pack;
	return put(c, &target, "application/x-tar", &s, err);
}

/* As cp does: into a directory that is there goes the source under its own name. */
static int copy_named(struct client *c, const char *from, int fd, const struct stat *st,
		      const struct place *to, struct err *err)
{
	_cleanup_(buf_done) struct buf path = { 0 };
	struct place inner = { .sandbox = to->sandbox };
	enum place_kind kind = PLACE_NONE;
	bool is_dir = S_ISDIR(st->st_mode);
	const char *name = NULL;
	int r = place_look(c, to, &kind, NULL, err);

	if (r == 0)
		r = place_name(from, &name, err);
	if (r < 0)
		return r;
	if (is_dir && kind != PLACE_DIR && kind != PLACE_NONE)
		return err_set(err, ENOTDIR, "'%.150s' is there and no directory", to->path);
	if (kind != PLACE_DIR || !name)
		return is_dir ? put_tree(c, from, to, err) : put_file(c, fd, st, to, err);
	r = buf_printf(&path, "%s%s%s", to->path, str_ends(str_of(to->path), "/") ? "" : "/", name);
	if (r < 0)
		return r;
	inner.path = path.data;
	return is_dir ? put_tree(c, from, &inner, err) : put_file(c, fd, st, &inner, err);
}

int copy_in(struct client *c, const char *from, const struct place *to, struct err *err)
{
	_cleanup_(buf_done) struct buf path = { 0 };
	_close_ int fd = -1;
	struct stat st = { 0 };

	if (strcmp(from, "-") == 0)
		return put_file(c, STDIN_FILENO, &st, to, err);
	(void)buf_puts(&path, from);
	while (path.len > 1 && path.data[path.len - 1] == '/')
		path.data[--path.len] = '\0';
	fd = open(path.data, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(err, errno, "'%.150s'", from);
	if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		return err_set(err, EINVAL, "'%.150s' is neither a file nor a directory", from);
	return copy_named(c, path.data, fd, &st, to, err);
}
