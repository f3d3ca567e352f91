/* A directory as a tar stream, out and in. */
#include <errno.h>

#include "api/call.h"
#include "api/download.h"
#include "api/handlers.h"
#include "api/problem.h"
#include "api/upload.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "net/http.h"
#include "json/jw.h"

void api_archive_get(struct api_call *c)
{
	struct download *d = arena_alloc(http_arena(c->http), sizeof(*d));
	struct guest_file f = { .op = FILE_TAR_GET, .target = "" };

	if (!d)
		return problem_reply(c, &(struct err){ ENOMEM, "archive" });
	if (!file_query_path(c, &f.path) || !file_user(c, &f.user))
		return;
	d->job.call = c;
	d->content_type = "application/x-tar";
	d->status = 200;
	d->length = -1;
	download_start(d, &f);
}

struct unpack {
	struct upload upload; /* first */
	const char *path;
};

static void unpacked(struct upload *u, uint64_t count, const struct err *err)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	const struct unpack *p = (const struct unpack *)(const void *)u;
	struct jw w = jw_begin(&b);

	if (err)
		return problem_reply_box(u->sink.job.call, err);
	jw_object_begin(&w);
	jw_str_field(&w, "path", p->path);
	jw_uint_field(&w, "count", count);
	jw_object_end(&w);
	call_reply(u->sink.job.call, 200, &w);
}

void api_archive_put(struct api_call *c)
{
	struct unpack *p = arena_alloc(http_arena(c->http), sizeof(*p));
	struct guest_file f = { .op = FILE_TAR_PUT, .flags = FILE_PARENTS, .target = "" };

	if (!p)
		return problem_reply(c, &(struct err){ ENOMEM, "archive" });
	if (!file_query_path(c, &f.path) || !file_user(c, &f.user))
		return;
	p->upload.sink.job.call = c;
	p->upload.finished = unpacked;
	p->path = f.path;
	upload_start(&p->upload, &f);
}
