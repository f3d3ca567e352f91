/* GET and HEAD of a file: the whole, a part, or just what it is. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "api/call.h"
#include "api/file_get.h"
#include "api/handlers.h"
#include "api/problem.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "net/http.h"

#define TRIES_MAX 3 /* a part of a file that changes under our hands */

static void look(struct file_get *g);

static void add_headers(struct file_get *g, const struct guest_entry *e)
{
	struct http_request *r = g->download.job.call->http;
	char date[HTTP_DATE_SIZE];

	http_date_format(date, (int64_t)(e->mtime_ns / 1000000000));
	(void)http_header_add(r, "ETag", g->etag);
	(void)http_header_add(r, "Last-Modified", date);
	(void)http_header_add(r, "Accept-Ranges", "bytes");
	/* What a sandbox wrote must not run as a page of ours. */
	(void)http_header_add(r, "X-Content-Type-Options", "nosniff");
	if (g->add_headers)
		g->add_headers(g, e);
}

static void add_content_range(struct file_get *g, uint64_t size)
{
	char text[80];

	if (g->kind == RANGE_PART)
		(void)str_format(text, sizeof(text), "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64,
				 g->range.first, g->range.first + g->range.length - 1, size);
	else
		(void)str_format(text, sizeof(text), "bytes */%" PRIu64, size);
	(void)http_header_add(g->download.job.call->http, "Content-Range", text);
}

/* It is being read: this is the file whose bytes follow. A part must be of the file that the range
 * was worked out for. */
static bool opened(struct download *d, const struct guest_entry *e)
{
	struct file_get *g = (struct file_get *)(void *)d;
	char etag[ETAG_SIZE];

	etag_format(etag, e->inode, e->mtime_ns, e->size);
	if (strcmp(etag, g->etag) != 0 && g->kind == RANGE_PART) {
		file_job_end(&d->job);
		if (++g->tries < TRIES_MAX)
			look(g);
		else
			problem_status(d->job.call, 409, "the file changes all the time");
		return false;
	}
	(void)str_copy(g->etag, sizeof(g->etag), etag);
	add_headers(g, e);
	if (g->kind == RANGE_PART)
		add_content_range(g, e->size);
	d->length = g->kind == RANGE_PART ? (int64_t)g->range.length : (int64_t)e->size;
	return true;
}

static bool is_range_valid(struct file_get *g, const struct guest_entry *e)
{
	const char *condition = http_header(g->download.job.call->http, "If-Range");
	char date[HTTP_DATE_SIZE];

	if (!condition)
		return true;
	http_date_format(date, (int64_t)(e->mtime_ns / 1000000000));
	return strcmp(condition, g->etag) == 0 || strcmp(condition, date) == 0;
}

static void reply_head(struct file_get *g, int status, int64_t length)
{
	struct http_request *r = g->download.job.call->http;

	http_begin(r, status, g->download.content_type, length);
	http_end(r);
}

static bool is_unchanged(struct api_call *c, const struct guest_entry *e)
{
	const char *since = http_header(c->http, "If-Modified-Since");
	int64_t wall_s;

	return since && http_date_parse(since, &wall_s) == 0 &&
	       (int64_t)(e->mtime_ns / 1000000000) <= wall_s;
}

/* What the file is, is known: what is the answer? */
static void decide(struct file_get *g, const struct guest_entry *e)
{
	struct api_call *c = g->download.job.call;
	const char *none_match = http_header(c->http, "If-None-Match");
	bool is_head = strcmp(http_method(c->http), "HEAD") == 0;

	etag_format(g->etag, e->inode, e->mtime_ns, e->size);
	if (none_match ? etag_in(none_match, g->etag, true) : is_unchanged(c, e)) {
		(void)http_header_add(c->http, "ETag", g->etag);
		return http_reply(c->http, 304, NULL, NULL, 0);
	}
	g->kind = RANGE_WHOLE;
	if (!is_head && is_range_valid(g, e))
		g->kind = range_parse(http_header(c->http, "Range"), e->size, &g->range);
	if (g->kind == RANGE_NOTHING) {
		add_content_range(g, e->size);
		return problem_status(c, 416, "the file has %" PRIu64 " bytes", e->size);
	}
	if (is_head) {
		add_headers(g, e);
		return reply_head(g, 200, (int64_t)e->size);
	}
	g->download.status = g->kind == RANGE_PART ? 206 : 200;
	if (g->kind == RANGE_PART)
		g->download.is_packed = false;
	g->file.op = FILE_READ;
	g->file.offset = g->kind == RANGE_PART ? g->range.first : 0;
	g->file.length = g->kind == RANGE_PART ? g->range.length : 0;
	download_start(&g->download, &g->file);
}

static void fail(struct file_get *g, const struct err *err)
{
	g->download.failed(g->download.job.call, err);
}

static void looked(struct file_job *j, const struct err *err)
{
	struct file_get *g = (struct file_get *)(void *)j;

	if (err)
		return fail(g, err);
	if (!j->has_entry)
		return problem_reply(j->call, &(struct err){ ENOMEM, "entry" });
	if (j->entry.type == ENTRY_DIR)
		return fail(g,
			    &(struct err){ EISDIR, "this is a directory: list it with files?path=, "
						   "or fetch it with archive?path=" });
	if (j->entry.type != ENTRY_FILE)
		return fail(g, &(struct err){ ENXIO, "this is not a file that can be read" });
	decide(g, &j->entry);
}

static void look(struct file_get *g)
{
	g->file = (struct guest_file){
		.op = FILE_STAT,
		.flags = g->flags,
		.path = g->path,
		.user = g->user,
		.target = g->root ? g->root : "",
	};
	(void)file_job_run(&g->download.job, &g->file, looked);
}

void file_get_start(struct file_get *g)
{
	g->download.opened = opened;
	look(g);
}

/* ?stat=1 */
static void described(struct file_job *j, const struct err *err)
{
	const struct file_get *g = (const struct file_get *)(const void *)j;

	if (err)
		return problem_reply_box(j->call, err);
	if (!j->has_entry)
		return problem_reply(j->call, &(struct err){ ENOMEM, "entry" });
	file_reply_entry(j->call, 200, &j->entry, g->path);
}

void api_file_get(struct api_call *c)
{
	struct file_get *g = arena_alloc(http_arena(c->http), sizeof(*g));
	bool stat = false;

	if (!g)
		return problem_reply(c, &(struct err){ ENOMEM, "file" });
	g->download.job.call = c;
	g->download.content_type = "application/octet-stream";
	g->download.failed = problem_reply_box;
	if (!file_path(c, &g->path) || !file_user(c, &g->user) ||
	    !call_query_bool(c, "stat", &stat))
		return;
	if (!stat)
		return file_get_start(g);
	g->file = (struct guest_file){
		.op = FILE_STAT,
		.flags = FILE_NOFOLLOW,
		.path = g->path,
		.user = g->user,
		.target = "",
	};
	(void)file_job_run(&g->download.job, &g->file, described);
}
