/* PUT of a file. */
#include <errno.h>
#include <string.h>

#include "api/call.h"
#include "api/handlers.h"
#include "api/problem.h"
#include "api/range.h"
#include "api/upload.h"
#include "base/arena.h"
#include "base/err.h"
#include "net/http.h"
#include "spec/file_version.h"

#define MODE_DEFAULT 0644

struct put {                  /* in the request's arena */
	struct upload upload; /* first: the job is the put */
	struct guest_file file;
	bool existed;
	bool must_be_new;
	char version[FILE_VERSION_SIZE]; /* that must be there still; or "" */
};

static void reply_put(struct file_job *j, const struct err *err)
{
	struct put *p = (struct put *)(void *)j;
	char etag[ETAG_SIZE];

	if (err)
		return problem_reply_box(j->call, err);
	if (!j->has_entry)
		return problem_reply(j->call, &(struct err){ ENOMEM, "entry" });
	etag_format(etag, j->entry.inode, j->entry.mtime_ns, j->entry.size);
	(void)http_header_add(j->call->http, "ETag", etag);
	file_reply_entry(j->call, p->existed ? 200 : 201, &j->entry, p->file.path);
}

static void written(struct upload *u, uint64_t count, const struct err *err)
{
	struct put *p = (struct put *)(void *)u;
	struct guest_file f = {
		.op = FILE_STAT,
		.path = p->file.path,
		.user = p->file.user,
		.target = "",
	};

	(void)count;
	if (err && err->code == EEXIST && p->must_be_new)
		return problem_status(u->sink.job.call, 412, "the file exists");
	if (err && err->code == ESTALE && p->version[0])
		return problem_status(u->sink.job.call, 412, "the file is not that version");
	if (err)
		return problem_reply_box(u->sink.job.call, err);
	(void)file_job_run(&u->sink.job, &f, reply_put);
}

static bool is_allowed(struct put *p, const struct guest_entry *e)
{
	struct api_call *c = p->upload.sink.job.call;
	const char *none = http_header(c->http, "If-None-Match");
	const char *match = http_header(c->http, "If-Match");
	char etag[ETAG_SIZE] = "";

	if (e)
		etag_format(etag, e->inode, e->mtime_ns, e->size);
	if (none && e && etag_in(none, etag, true)) {
		problem_status(c, 412, "the file exists");
		return false;
	}
	if (match && (!e || !etag_in(match, etag, false))) {
		problem_status(c, 412, "the file is not that version");
		return false;
	}
	p->must_be_new = none && strcmp(none, "*") == 0;
	/* What was the version a moment ago need not be it when the new one is whole. */
	if (match && strcmp(match, "*") != 0)
		file_version(p->version, e->inode, e->mtime_ns, e->size);
	return true;
}

static void looked(struct file_job *j, const struct err *err)
{
	struct put *p = (struct put *)(void *)j;

	if (err && err->code != ENOENT)
		return problem_reply_box(j->call, err);
	if (!err && !j->has_entry)
		return problem_reply(j->call, &(struct err){ ENOMEM, "entry" });
	p->existed = !err;
	if (!is_allowed(p, err ? NULL : &j->entry))
		return;
	p->file.op = FILE_WRITE;
	p->file.target = p->version;
	if (p->must_be_new)
		p->file.flags |= FILE_EXCL;
	upload_start(&p->upload, &p->file);
}

void api_file_put(struct api_call *c)
{
	struct put *p = arena_alloc(http_arena(c->http), sizeof(*p));
	const char *mode = NULL;
	struct guest_file look;
	bool parents = true;

	if (!p)
		return problem_reply(c, &(struct err){ ENOMEM, "file" });
	p->upload.sink.job.call = c;
	p->upload.finished = written;
	p->file = (struct guest_file){ .mode = MODE_DEFAULT, .target = "" };
	if (!file_path(c, &p->file.path) || !file_user(c, &p->file.user) ||
	    !call_query(c, "mode", &mode) || !file_mode(c, "mode", mode, &p->file.mode) ||
	    !call_query_bool(c, "parents", &parents))
		return;
	p->file.flags = parents ? FILE_PARENTS : 0;
	look = p->file;
	look.op = FILE_STAT;
	look.flags = 0;
	(void)file_job_run(&p->upload.sink.job, &look, looked);
}
