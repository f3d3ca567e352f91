/* Several files in one request: written as one archive, read one after the other. */
#include <errno.h>
#include <string.h>

#include "api/call.h"
#include "api/file_job.h"
#include "api/handlers.h"
#include "api/problem.h"
#include "api/search_bodies.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/encode.h"
#include "base/err.h"
#include "base/tar.h"
#include "base/utf8.h"
#include "net/http.h"
#include "sandbox/files.h"
#include "json/jw.h"

#define MODE_DEFAULT 0644
#define READ_BYTES_MAX (8u << 20) /* of all files of one answer */

/* ---- in ---- */

struct pack {                /* in the request's arena */
	struct file_job job; /* first: the job is the pack */
	const char *path;
	struct buf tar; /* owned: what is still to be sent */
};

static void pack_done(struct pack *p)
{
	file_job_end(&p->job);
	buf_done(&p->tar);
}

static void pack_gone(void *user, struct http_request *r)
{
	(void)r;
	pack_done(user);
}

static void pack_push(void *user)
{
	struct pack *p = user;

	while (p->tar.len > 0) {
		ssize_t n = file_send(p->job.op, p->tar.data, p->tar.len);

		if (n <= 0)
			return;
		buf_drop(&p->tar, (size_t)n);
		if (p->tar.len == 0)
			(void)file_send(p->job.op, NULL, 0);
	}
}

static void pack_finished(void *user, uint64_t count)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct pack *p = user;
	struct jw w = jw_begin(&b);

	p->job.op = NULL;
	pack_done(p);
	jw_object_begin(&w);
	jw_str_field(&w, "path", p->path);
	jw_uint_field(&w, "count", count);
	jw_object_end(&w);
	call_reply(p->job.call, 200, &w);
}

static void pack_failed(void *user, const struct err *err)
{
	struct pack *p = user;

	p->job.op = NULL;
	pack_done(p);
	problem_reply_box(p->job.call, err);
}

/* Bytes of the content in the request's arena; false: answered. */
static bool content_of(struct api_call *c, const struct bundle_file *f, const char **ret,
		       size_t *ret_n)
{
	size_t n = strlen(f->content);
	ssize_t len;
	char *bytes;

	*ret = f->content;
	*ret_n = n;
	if (f->encoding == BUNDLE_TEXT)
		return true;
	bytes = arena_alloc(http_arena(c->http), n + 1);
	if (!bytes) {
		problem_reply(c, &(struct err){ ENOMEM, "content" });
		return false;
	}
	len = decode_base64(f->content, n, bytes, n + 1);
	if (len < 0) {
		problem_field(c, "files", "the content of '%.100s' is not base64", f->path);
		return false;
	}
	*ret = bytes;
	*ret_n = (size_t)len;
	return true;
}

static bool add_member(struct api_call *c, const struct bundle_file *f, struct buf *tar)
{
	struct tar_member m = { .type = TAR_FILE,
				.mode = MODE_DEFAULT,
				.mtime_sec = clock_wall_ms() / 1000,
				.path = f->path,
				.link = "" };
	static const char zeros[TAR_BLOCK] = "";
	const char *bytes;
	size_t n;
	int r;

	if (f->path[0] == '/') {
		problem_field(c, "files", "'%.100s': want a path relative to 'path'", f->path);
		return false;
	}
	if (!file_mode(c, "files", f->mode, &m.mode) || !content_of(c, f, &bytes, &n))
		return false;
	m.size = n;
	r = tar_write_member(tar, &m);
	if (r == -EINVAL) {
		problem_field(c, "files", "'%.100s' is no path of a file", f->path);
		return false;
	}
	(void)buf_append(tar, bytes, n);
	(void)buf_append(tar, zeros, tar_padding(n));
	if (!tar->failed)
		return true;
	problem_reply(c, &(struct err){ ENOMEM, "files" });
	return false;
}

static bool build(struct api_call *c, struct buf *tar)
{
	const struct body_bundle *body = c->body;
	const struct bundle_file *files = body->files.items;

	for (size_t i = 0; i < body->files.len; i++)
		if (!add_member(c, &files[i], tar))
			return false;
	if (tar_write_end(tar) == 0)
		return true;
	problem_reply(c, &(struct err){ ENOMEM, "files" });
	return false;
}

void api_bundle_put(struct api_call *c)
{
	static const struct file_ops ops = {
		.room = pack_push,
		.done = pack_finished,
		.failed = pack_failed,
	};
	struct guest_file f = { .op = FILE_TAR_PUT, .flags = FILE_PARENTS, .target = "" };
	struct pack *p = arena_alloc(http_arena(c->http), sizeof(*p));
	const struct body_bundle *body = c->body;
	_cleanup_(buf_done) struct buf tar = { 0 }; /* an answer may end the pack's arena */

	if (!p)
		return problem_reply(c, &(struct err){ ENOMEM, "files" });
	p->job.call = c;
	if (!search_path(c, body->path, &f.path) || !file_user(c, &f.user) || !build(c, &tar) ||
	    !file_job_start(&p->job, &f, &ops, p))
		return;
	p->path = f.path;
	p->tar = tar;
	tar = (struct buf){ 0 };
	http_on_gone(c->http, pack_gone, p);
	pack_push(p);
}

/* ---- out ---- */

struct reader {              /* in the request's arena */
	struct file_job job; /* first: the job is the reader */
	const char *dir, *user;
	size_t next;     /* of the paths */
	uint64_t left;   /* bytes that the answer may still take */
	struct buf data; /* owned: of the file that is read */
	struct buf out;  /* owned: the answer */
	struct jw w;
};

static void read_next(struct reader *r);

static void reader_done(struct reader *r)
{
	file_job_end(&r->job);
	buf_done(&r->data);
	buf_done(&r->out);
}

static void reader_gone(void *user, struct http_request *http)
{
	(void)http;
	reader_done(user);
}

static void item_begin(struct reader *r)
{
	const struct body_bundle_get *body = r->job.call->body;

	jw_object_begin(&r->w);
	jw_str_field(&r->w, "path", body->paths.items[r->next++]);
}

static void item_failed(struct reader *r, int status, const char *text)
{
	item_begin(r);
	jw_null_field(&r->w, "size");
	jw_null_field(&r->w, "content");
	jw_null_field(&r->w, "encoding");
	jw_key(&r->w, "error");
	problem_write(&r->w, status, text, NULL);
	jw_object_end(&r->w);
}

static void item_read(struct reader *r)
{
	const char *data = buf_str(&r->data);
	size_t n = r->data.len;
	bool is_text = utf8_is_valid(data, n) && !memchr(data, '\0', n);
	_cleanup_(buf_done) struct buf coded = { 0 };

	item_begin(r);
	jw_uint_field(&r->w, "size", n);
	jw_key(&r->w, "content");
	if (is_text)
		jw_string_n(&r->w, data, n);
	else if (buf_reserve(&coded, BASE64_SIZE(n)) == 0)
		jw_string_n(&r->w, coded.data, encode_base64(data, n, coded.data));
	else
		r->w.failed = -ENOMEM;
	jw_str_field(&r->w, "encoding", is_text ? "text" : "base64");
	jw_null_field(&r->w, "error");
	jw_object_end(&r->w);
	r->left -= n;
}

static void read_too_large(struct reader *r)
{
	file_job_end(&r->job);
	item_failed(r, 413, "the files of one request are too large together");
	read_next(r);
}

static void read_entry(void *user, const struct guest_entry *entry)
{
	struct reader *r = user;

	if (entry->size > r->left)
		read_too_large(r);
}

/* What is no file of a disk may say 0 and have more. */
static void read_data(void *user, const void *data, size_t n)
{
	struct reader *r = user;

	if (r->data.len + n > r->left || buf_append(&r->data, data, n) < 0)
		read_too_large(r);
}

static void read_done(void *user, uint64_t count)
{
	struct reader *r = user;

	(void)count;
	r->job.op = NULL;
	item_read(r);
	read_next(r);
}

/* What is wrong with one file is that file's matter; a sandbox that ends is everybody's. */
static void read_failed(void *user, const struct err *err)
{
	const struct problem *p = problem_find(err->code, PROBLEM_IN_BOX);
	struct reader *r = user;

	r->job.op = NULL;
	if (err->code != EPIPE && p->status < 500 && p->status != 429) {
		item_failed(r, p->status, problem_text(p, err));
		return read_next(r);
	}
	reader_done(r);
	problem_reply_box(r->job.call, err);
}

static void reply_read(struct reader *r)
{
	_cleanup_(buf_done) struct buf out = r->out;
	struct jw w = r->w;

	w.buf = &out;
	r->out = (struct buf){ 0 };
	jw_array_end(&w);
	jw_object_end(&w);
	reader_done(r);
	call_reply(r->job.call, 200, &w);
}

static void read_next(struct reader *r)
{
	static const struct file_ops ops = {
		.entry = read_entry,
		.data = read_data,
		.done = read_done,
		.failed = read_failed,
	};
	struct api_call *c = r->job.call;
	const struct body_bundle_get *body = c->body;
	struct guest_file f = { .op = FILE_READ, .user = r->user, .target = "" };
	char path[2 * FILE_PATH_MAX];
	struct err err = { 0 };

	if (r->next == body->paths.len)
		return reply_read(r);
	f.path = body->paths.items[r->next];
	if (f.path[0] != '/') {
		(void)file_join(path, sizeof(path), r->dir, f.path); /* both were checked */
		f.path = path;
	}
	buf_clear(&r->data);
	if (file_job_try(&r->job, &f, &ops, r, &err) == 0)
		return http_on_gone(c->http, reader_gone, r);
	reader_done(r);
	problem_reply_box(c, &err);
}

void api_bundle_get(struct api_call *c)
{
	struct reader *r = arena_alloc(http_arena(c->http), sizeof(*r));
	const struct body_bundle_get *body = c->body;

	if (!r)
		return problem_reply(c, &(struct err){ ENOMEM, "files" });
	r->job.call = c;
	if (!search_path(c, body->path, &r->dir) || !file_user(c, &r->user))
		return;
	for (size_t i = 0; i < body->paths.len; i++)
		if (body->paths.items[i][0] == '\0')
			return problem_field(c, "paths", "a path is empty");
	r->left = READ_BYTES_MAX;
	r->w = jw_begin(&r->out);
	jw_object_begin(&r->w);
	jw_key(&r->w, "files");
	jw_array_begin(&r->w);
	read_next(r);
}
