#include "api/upload.h"

#include <errno.h>
#include <inttypes.h>

#include "api/call.h"
#include "api/problem.h"
#include "base/err.h"
#include "config/config.h"
#include "net/http.h"
#include "sandbox/files.h"

static void upload_done(struct upload *u)
{
	file_job_end(&u->job);
	buf_done(&u->rest);
}

static void gone(void *user, struct http_request *r)
{
	(void)r;
	upload_done(user);
}

static void refuse_size(struct upload *u)
{
	struct api_call *c = u->job.call;

	upload_done(u);
	problem_status(c, 413, "at most %" PRIu64 " bytes can be sent",
		       c->api->deps.config->max_body_bytes);
}

/* What it does not take now waits, and so does the client. An operation that has failed takes
 * nothing any more, and says so itself. */
static int push(struct upload *u)
{
	while (u->rest.len > 0) {
		ssize_t n = file_send(u->job.op, u->rest.data, u->rest.len);

		if (n <= 0)
			return 0;
		buf_drop(&u->rest, (size_t)n);
	}
	return 1;
}

static void body_data(void *user, struct http_request *r, const char *data, size_t n)
{
	struct upload *u = user;
	struct api_call *c = u->job.call;
	int failed;

	u->total += n;
	if (u->total > c->api->deps.config->max_body_bytes)
		return refuse_size(u);
	failed = buf_append(&u->rest, data, n);
	if (failed < 0) {
		upload_done(u);
		return problem_reply(c, &(struct err){ -failed, "upload" });
	}
	if (!push(u))
		http_body_pause(r, true);
}

static void body_end(void *user, struct http_request *r)
{
	struct upload *u = user;

	(void)r;
	u->is_ended = true;
	if (push(u))
		(void)file_send(u->job.op, NULL, 0);
}

static void room(void *user)
{
	struct upload *u = user;

	if (!push(u))
		return;
	if (u->is_ended)
		(void)file_send(u->job.op, NULL, 0);
	else
		http_body_pause(u->job.call->http, false);
}

static void done(void *user, uint64_t count)
{
	struct upload *u = user;

	u->job.op = NULL;
	upload_done(u);
	u->finished(u, count, NULL);
}

static void failed(void *user, const struct err *err)
{
	struct upload *u = user;

	u->job.op = NULL;
	upload_done(u);
	u->finished(u, 0, err);
}

void upload_start(struct upload *u, const struct guest_file *f)
{
	static const struct file_ops ops = { .room = room, .done = done, .failed = failed };
	static const struct http_body_ops body_ops = { body_data, body_end, gone };
	struct api_call *c = u->job.call;
	int64_t length = http_body_length(c->http);

	if (length > 0 && (uint64_t)length > c->api->deps.config->max_body_bytes)
		return refuse_size(u);
	if (!file_job_start(&u->job, f, &ops, u))
		return;
	http_on_gone(c->http, gone, u);
	http_body_stream(c->http, &body_ops, u);
}
