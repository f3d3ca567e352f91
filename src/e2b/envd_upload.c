/* POST /files: one file as the body, or several as parts of it. Every byte goes from the connection
 * to the box as it comes; what the box does not take holds back the client. */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "api/call.h"
#include "api/problem.h"
#include "api/upload.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "config/config.h"
#include "e2b/entry.h"
#include "e2b/envd_files.h"
#include "e2b/handlers.h"
#include "e2b/multipart.h"
#include "e2b/target.h"
#include "net/gzip.h"
#include "net/http.h"
#include "json/jw.h"

#define PLAIN_ROOM (32u << 10)
#define OCTETS "application/octet-stream"

struct post {                  /* in the request's arena */
	struct file_sink sink; /* first; of the file that is being written */
	struct api_call *call;
	struct guest_file file; /* what all have in common */
	const char *path;       /* ?path=; NULL: none */
	struct multipart *parts;
	struct gzip *gzip; /* owned; NULL: the bytes are what they are */
	struct buf raw;    /* owned: of the body, not looked at yet */
	char *plain;       /* arena: unpacked, not looked at yet */
	size_t plain_at, plain_len;
	uint64_t raw_total, plain_total;
	struct buf answer; /* owned */
	struct jw out;
	const char **names; /* arena: of the files, as they were sent and as they are */
	size_t n_names;
	bool has_events; /* the parts' reader has more to say of what it has seen */
	bool is_open;    /* a file is being written */
	bool is_ending;  /* and all of it has been sent */
	bool has_ended;  /* the body */
};

static void pump(struct post *p);

static void post_done(struct post *p)
{
	file_sink_done(&p->sink);
	p->gzip = gzip_free(p->gzip);
	buf_done(&p->raw);
	buf_done(&p->answer);
	p->is_open = false;
}

static void gone(void *user, struct http_request *r)
{
	(void)r;
	post_done(user);
}

static void refuse(struct post *p, const struct err *err)
{
	post_done(p);
	if (err->code == EBADMSG || err->code == E2BIG)
		return problem_status(p->call, 400, "%s", err->text);
	envd_fail(p->call, err);
}

/* ---- files ---- */

static bool is_taken(const struct post *p, const char *name)
{
	for (size_t i = 0; i < p->n_names; i++)
		if (strcmp(p->names[i], name) == 0)
			return true;
	return false;
}

static int refuse_twice(const char *name, struct err *err)
{
	return err_set(err, EBADMSG, "'%.150s': several files of one request have this path", name);
}

static void add_name(struct post *p, const char *name)
{
	if (p->names && name)
		p->names[p->n_names++] = name; /* fits: two for each part */
}

static int begin_file(struct post *p, const char *path, struct err *err)
{
	int r;

	if (is_taken(p, path))
		return refuse_twice(path, err);
	path = arena_strndup(http_arena(p->call->http), path, strlen(path));
	if (!path)
		return err_sys(err, ENOMEM, "upload");
	add_name(p, path);
	p->file.path = path;
	r = file_sink_start(&p->sink, &p->file, err);
	if (r < 0)
		return r;
	p->is_open = true;
	http_on_gone(p->call->http, gone, p);
	return 0;
}

static void end_file(struct post *p)
{
	p->is_ending = true;
	file_sink_end(&p->sink);
}

static void tell_file(struct post *p, const struct guest_entry *e)
{
	jw_object_begin(&p->out);
	jw_str_field(&p->out, "path", e->path);
	jw_str_field(&p->out, "name", entry_name(e->path));
	jw_str_field(&p->out, "type", "file");
	entry_metadata_json(&p->out, e);
	jw_object_end(&p->out);
}

static void finished(struct file_sink *s, uint64_t count, const struct err *err)
{
	struct post *p = (struct post *)(void *)s;
	const struct guest_entry *e = &s->job.entry;
	struct err twice = { 0 };

	(void)count;
	p->is_open = p->is_ending = false;
	if (err)
		return refuse(p, err);
	if (!s->job.has_entry)
		return refuse(p, &(struct err){ ENOMEM, "the answer" });
	/* What was sent under two names may be one file: that is known only now. */
	if (is_taken(p, e->path) && strcmp(e->path, p->file.path) != 0) {
		(void)refuse_twice(e->path, &twice);
		return refuse(p, &twice);
	}
	add_name(p, e->path);
	tell_file(p, e);
	pump(p);
}

static void room(struct file_sink *s)
{
	pump((struct post *)(void *)s);
}

/* ---- bytes ---- */

/* Unpacks some. 1: there are more to look at, 0: there are none. */
static int fill(struct post *p, struct err *err)
{
	const char *from = buf_str(&p->raw);
	size_t n = p->raw.len;
	ssize_t len = n < PLAIN_ROOM ? (ssize_t)n : (ssize_t)PLAIN_ROOM;

	if (p->gzip) {
		len = gzip_run(p->gzip, &from, &n, false, p->plain, PLAIN_ROOM);
	} else {
		memcpy(p->plain, from, (size_t)len);
		n -= (size_t)len;
	}
	if (len == -ENOMEM)
		return err_sys(err, ENOMEM, "unpack the body");
	if (len < 0)
		return err_set(err, EBADMSG, "the body is not gzip, or damaged");
	buf_drop(&p->raw, p->raw.len - n);
	p->plain_at = 0;
	p->plain_len = (size_t)len;
	p->plain_total += (uint64_t)len;
	if (p->plain_total > p->call->api->deps.config->max_body_bytes)
		return err_set(err, EFBIG, "the body");
	return len > 0;
}

static int put(struct post *p, const char *data, size_t n, struct err *err)
{
	int r = p->is_open ? file_sink_put(&p->sink, data, n) : 0;

	return r < 0 ? err_sys(err, r, "upload") : 0;
}

static int take_part(struct post *p, struct err *err)
{
	const struct multipart *m = p->parts;

	if (strcmp(m->name, "file") != 0)
		return 0; /* nobody asks what it is */
	if (!p->path && m->file[0] == '\0')
		return err_set(err, EBADMSG, "a file has no name, and no path is given");
	return begin_file(p, p->path ? p->path : m->file, err);
}

static int take_parts(struct post *p, struct err *err)
{
	const char *at = p->plain + p->plain_at;
	size_t n = p->plain_len - p->plain_at;
	int event = multipart_read(p->parts, &at, &n, err);

	p->plain_at = p->plain_len - n;
	p->has_events = event > 0;
	if (event == MULTIPART_PART)
		return take_part(p, err);
	if (event == MULTIPART_DATA)
		return put(p, p->parts->data, p->parts->len, err);
	if (event == MULTIPART_PART_END && p->is_open)
		end_file(p);
	return event < 0 ? event : 0;
}

static int take_plain(struct post *p, struct err *err)
{
	size_t at = p->plain_at;

	if (p->parts)
		return take_parts(p, err);
	p->plain_at = p->plain_len;
	return put(p, p->plain + at, p->plain_len - at, err);
}

static int check_end(const struct post *p, struct err *err)
{
	if (p->gzip && !gzip_is_whole(p->gzip))
		return err_set(err, EBADMSG, "the body's gzip ends early");
	return p->parts ? multipart_finish(p->parts, err) : 0;
}

static void reply(struct post *p)
{
	struct api_call *c = p->call;
	struct jw w = p->out;
	struct buf b = p->answer;

	/* The answer's end frees the request, and with it all of this. */
	p->answer = (struct buf){ 0 };
	post_done(p);
	w.buf = &b;
	jw_array_end(&w);
	call_reply(c, 200, &w);
	buf_done(&b);
}

/* The box has all that has come, and there is nothing more to come. */
static void finish(struct post *p)
{
	struct err err = { 0 };

	if (check_end(p, &err) < 0)
		return refuse(p, &err);
	if (p->is_open) {
		end_file(p);
		return;
	}
	reply(p);
}

static bool is_busy(const struct post *p)
{
	return p->is_ending || p->sink.rest.len > 0;
}

/* Looks at what has come, as far as the box takes it. 0 or -errno. */
static int drain(struct post *p, struct err *err)
{
	int r = 0;

	while (r >= 0 && !is_busy(p)) {
		if (p->plain_at < p->plain_len || p->has_events) {
			r = take_plain(p, err);
			continue;
		}
		r = fill(p, err);
		if (r == 0)
			break;
	}
	return r < 0 ? r : 0;
}

static void pump(struct post *p)
{
	struct err err = { 0 };
	int r = drain(p, &err);

	if (r == -EFBIG) {
		post_done(p);
		return upload_refuse_size(p->call);
	}
	if (r < 0)
		return refuse(p, &err);
	if (!p->has_ended)
		return http_body_pause(p->call->http, is_busy(p));
	if (!is_busy(p))
		finish(p);
}

static void body_data(void *user, struct http_request *r, const char *data, size_t n)
{
	struct post *p = user;

	(void)r;
	p->raw_total += n;
	if (p->raw_total > p->call->api->deps.config->max_body_bytes) {
		post_done(p);
		return upload_refuse_size(p->call);
	}
	if (buf_append(&p->raw, data, n) < 0)
		return refuse(p, &(struct err){ ENOMEM, "upload" });
	pump(p);
}

static void body_end(void *user, struct http_request *r)
{
	struct post *p = user;

	(void)r;
	p->has_ended = true;
	pump(p);
}

/* ---- the request ---- */

static bool is_type(const char *header, const char *type)
{
	size_t n = strlen(type);

	return header && strncasecmp(header, type, n) == 0 &&
	       (header[n] == '\0' || header[n] == ';' || header[n] == ' ');
}

/* What is packed how: by the headers. */
static int open_body(struct post *p, struct err *err)
{
	const char *type = http_header(p->call->http, "Content-Type");
	const char *coding = http_header(p->call->http, "Content-Encoding");
	struct arena *a = http_arena(p->call->http);

	if (coding && strcasecmp(coding, "gzip") == 0) {
		p->gzip = gzip_create(GZIP_UNPACK);
		if (!p->gzip)
			return err_sys(err, ENOMEM, "upload");
	} else if (coding && strcasecmp(coding, "identity") != 0) {
		return err_set(err, EINVAL, "Content-Encoding: want gzip or identity");
	}
	p->plain = arena_alloc(a, PLAIN_ROOM);
	if (!p->plain)
		return err_sys(err, ENOMEM, "upload");
	if (is_type(type, OCTETS))
		return p->path ? begin_file(p, p->path, err)
			       : err_set(err, EINVAL, "path: wanted with " OCTETS);
	p->parts = arena_alloc(a, sizeof(*p->parts));
	p->names = arena_array(a, 2 * MULTIPART_PARTS_MAX, sizeof(*p->names));
	if (!p->parts || !p->names)
		return err_sys(err, ENOMEM, "upload");
	return multipart_init(p->parts, type ? type : "", err);
}

static struct post *post_create(struct api_call *c)
{
	struct post *p = arena_alloc(http_arena(c->http), sizeof(*p));

	if (!p) {
		problem_reply(c, &(struct err){ ENOMEM, "upload" });
		return NULL;
	}
	p->call = p->sink.job.call = c;
	p->sink.room = room;
	p->sink.finished = finished;
	p->file = (struct guest_file){
		.op = FILE_WRITE,
		.flags = FILE_PARENTS | FILE_AT_HOME | FILE_AS_ROOT | FILE_DETAILS | FILE_ATTRS,
		.target = "",
	};
	p->out = jw_begin(&p->answer);
	jw_array_begin(&p->out);
	return p;
}

void e2b_files_post(struct api_call *c)
{
	static const struct http_body_ops body_ops = { body_data, body_end, gone };
	struct post *p = post_create(c);
	int64_t length = http_body_length(c->http);
	struct err err = { 0 };

	if (!p)
		return;
	if (length > 0 && (uint64_t)length > c->api->deps.config->max_body_bytes) {
		post_done(p);
		return upload_refuse_size(c);
	}
	if (http_query(c->http, "path", &p->path) < 0)
		return refuse(p, &(struct err){ EINVAL, "path: not well-formed" });
	if (!envd_user(c, &p->file.user) || !e2b_sandbox(c))
		return post_done(p);
	if (envd_metadata(c, &p->file.attrs, &p->file.attrs_len, &err) < 0 ||
	    open_body(p, &err) < 0)
		return refuse(p, &err);
	http_on_gone(c->http, gone, p);
	http_body_stream(c->http, &body_ops, p);
}
