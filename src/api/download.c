#include "api/download.h"

#include <errno.h>

#include "api/call.h"
#include "api/problem.h"
#include "base/err.h"
#include "net/http.h"
#include "sandbox/files.h"

#define PENDING_HIGH (512u << 10)
#define PENDING_LOW (128u << 10)

static void drained(void *user, struct http_request *r)
{
	struct download *d = user;

	(void)r;
	if (d->job.op)
		file_hold(d->job.op, false);
}

static void begin(struct download *d)
{
	struct http_request *r = d->job.call->http;

	d->begun = true;
	http_begin(r, d->status, d->content_type, d->length);
	http_on_drain(r, PENDING_LOW, drained, d);
}

static void entry(void *user, const struct guest_entry *e)
{
	struct download *d = user;

	if (!d->begun && d->opened)
		(void)d->opened(d, e);
}

/* All that was promised is there; what a growing file has beyond is not part of the answer. */
static void finish(struct download *d)
{
	struct http_request *r = d->job.call->http;

	file_job_end(&d->job);
	http_end(r);
}

static void data(void *user, const void *bytes, size_t n)
{
	struct download *d = user;
	struct http_request *r = d->job.call->http;
	ssize_t pending;

	if (!d->begun && d->length == 0)
		d->length =
			-1; /* it has no size of its own: the kernel makes it up while we read */
	if (!d->begun)
		begin(d);
	if (d->length >= 0 && n > (uint64_t)d->length - d->sent)
		n = (size_t)((uint64_t)d->length - d->sent);
	d->sent += n;
	pending = http_write(r, bytes, n);
	if (pending < 0)
		return; /* the client is gone, and we are told so by and by */
	if (d->length >= 0 && d->sent == (uint64_t)d->length)
		return finish(d);
	if (pending > (ssize_t)PENDING_HIGH)
		file_hold(d->job.op, true);
}

static void done(void *user, uint64_t count)
{
	struct download *d = user;
	struct http_request *r = d->job.call->http;

	(void)count;
	d->job.op = NULL;
	if (!d->begun)
		begin(d);
	if (d->length >= 0 && d->sent < (uint64_t)d->length)
		return http_abort(r); /* it became shorter meanwhile */
	http_end(r);
}

static void failed(void *user, const struct err *err)
{
	struct download *d = user;

	d->job.op = NULL;
	if (d->begun)
		http_abort(d->job.call->http);
	else
		problem_reply_box(d->job.call, err);
}

void download_start(struct download *d, const struct guest_file *f)
{
	static const struct file_ops ops = {
		.entry = entry,
		.data = data,
		.done = done,
		.failed = failed,
	};

	(void)file_job_start(&d->job, f, &ops, d);
}
