#include "api/download.h"

#include <errno.h>

#include "api/call.h"
#include "api/problem.h"
#include "base/err.h"
#include "net/gzip.h"
#include "net/http.h"
#include "sandbox/files.h"

#define PENDING_HIGH (512u << 10)
#define PENDING_LOW (128u << 10)
#define PACKED_ROOM (16u << 10)

static void release(struct download *d)
{
	file_job_end(&d->job);
	d->gzip = gzip_free(d->gzip);
}

static void gone(void *user, struct http_request *r)
{
	(void)r;
	release(user);
}

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
	if (d->is_packed && d->length != 0)
		d->gzip = gzip_create(GZIP_PACK); /* without memory it goes as it is */
	if (d->gzip)
		(void)http_header_add(r, "Content-Encoding", "gzip");
	http_begin(r, d->status, d->content_type, d->gzip ? -1 : d->length);
	http_on_drain(r, PENDING_LOW, drained, d);
}

static void entry(void *user, const struct guest_entry *e)
{
	struct download *d = user;

	if (!d->begun && d->opened)
		(void)d->opened(d, e);
}

static ssize_t send_packed(struct download *d, const char *bytes, size_t n, bool is_last)
{
	char packed[PACKED_ROOM];
	ssize_t len, pending = 0;

	do {
		len = gzip_run(d->gzip, &bytes, &n, is_last, packed, sizeof(packed));
		if (len > 0)
			pending = http_write(d->job.call->http, packed, (size_t)len);
	} while (len == (ssize_t)sizeof(packed) && pending >= 0);
	return len < 0 ? len : pending;
}

/* Bytes that the client has not taken yet, or -errno. */
static ssize_t send_bytes(struct download *d, const void *bytes, size_t n)
{
	return d->gzip ? send_packed(d, bytes, n, false) : http_write(d->job.call->http, bytes, n);
}

static void end(struct download *d)
{
	struct http_request *r = d->job.call->http;
	bool is_whole = !d->gzip || send_packed(d, NULL, 0, true) >= 0;

	release(d);
	if (is_whole)
		http_end(r);
	else
		http_abort(r);
}

/* All that was promised is there; what a growing file has beyond is not part of the answer. */
static void finish(struct download *d)
{
	file_job_end(&d->job);
	end(d);
}

static void data(void *user, const void *bytes, size_t n)
{
	struct download *d = user;
	ssize_t pending;

	if (!d->begun && d->length == 0)
		d->length =
			-1; /* it has no size of its own: the kernel makes it up while we read */
	if (!d->begun)
		begin(d);
	if (d->length >= 0 && n > (uint64_t)d->length - d->sent)
		n = (size_t)((uint64_t)d->length - d->sent);
	d->sent += n;
	pending = send_bytes(d, bytes, n);
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

	(void)count;
	d->job.op = NULL;
	if (!d->begun)
		begin(d);
	if (d->length >= 0 && d->sent < (uint64_t)d->length) { /* it became shorter meanwhile */
		release(d);
		return http_abort(d->job.call->http);
	}
	end(d);
}

static void failed(void *user, const struct err *err)
{
	struct download *d = user;

	d->job.op = NULL;
	release(d);
	if (d->begun)
		http_abort(d->job.call->http);
	else if (d->failed)
		d->failed(d->job.call, err);
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

	struct err err = { 0 };

	if (file_job_try(&d->job, f, &ops, d, &err) == 0)
		return http_on_gone(d->job.call->http, gone, d);
	failed(d, &err);
}
