#include "api/upload.h"

#include <errno.h>
#include <inttypes.h>

#include "api/call.h"
#include "api/problem.h"
#include "base/err.h"
#include "config/config.h"
#include "net/http.h"
#include "sandbox/files.h"

static void gone(void *user, struct http_request *r)
{
	struct upload *u = user;

	(void)r;
	file_sink_done(&u->sink);
}

void upload_refuse_size(struct api_call *c)
{
	problem_status(c, 413, "at most %" PRIu64 " bytes can be sent (max_body)",
		       c->api->deps.config->max_body_bytes);
}

static void body_data(void *user, struct http_request *r, const char *data, size_t n)
{
	struct upload *u = user;
	struct api_call *c = u->sink.job.call;
	int taken;

	u->total += n;
	if (u->total > c->api->deps.config->max_body_bytes) {
		file_sink_done(&u->sink);
		return upload_refuse_size(c);
	}
	taken = file_sink_put(&u->sink, data, n);
	if (taken < 0) {
		file_sink_done(&u->sink);
		return problem_reply(c, &(struct err){ -taken, "upload" });
	}
	if (taken == 0)
		http_body_pause(r, true);
}

static void body_end(void *user, struct http_request *r)
{
	struct upload *u = user;

	(void)r;
	file_sink_end(&u->sink);
}

static void room(struct file_sink *s)
{
	http_body_pause(s->job.call->http, false);
}

static void finished(struct file_sink *s, uint64_t count, const struct err *err)
{
	struct upload *u = (struct upload *)(void *)s;

	u->finished(u, count, err);
}

void upload_start(struct upload *u, const struct guest_file *f)
{
	static const struct http_body_ops body_ops = { body_data, body_end, gone };
	struct api_call *c = u->sink.job.call;
	int64_t length = http_body_length(c->http);
	struct err err = { 0 };

	if (length > 0 && (uint64_t)length > c->api->deps.config->max_body_bytes)
		return upload_refuse_size(c);
	u->sink.room = room;
	u->sink.finished = finished;
	if (file_sink_start(&u->sink, f, &err) < 0)
		return problem_reply_box(c, &err);
	http_on_gone(c->http, gone, u);
	http_body_stream(c->http, &body_ops, u);
}
