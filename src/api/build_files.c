/* /templates/files: archives that builds copy from, by their SHA-256. */
#include "sandbox/build_files.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "api/build_json.h"
#include "api/call.h"
#include "api/handlers.h"
#include "api/problem.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "config/config.h"
#include "net/http.h"
#include "json/jw.h"

static void reply(struct api_call *c, int status, const struct object *o)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	const struct build_file *f = o ? o->data : NULL;
	struct jw w = jw_begin(&b);

	jw_object_begin(&w);
	jw_str_field(&w, "hash", call_param(c, "hash"));
	jw_bool_field(&w, "present", o != NULL);
	jw_uint_field(&w, "bytes", f ? f->bytes : 0);
	jw_object_end(&w);
	call_reply(c, status, &w);
}

void api_build_file_get(struct api_call *c)
{
	const char *hash = call_param(c, "hash");

	if (!build_hash_is_valid(hash))
		return problem_field(c, "hash", "want a SHA-256 in lower-case hex");
	reply(c, 200, build_file_find(c->api->deps.sandboxes, c->who->owner, hash));
}

struct file_put { /* in the request's arena */
	struct api_call *call;
	build_file_kept_fn kept;
	struct build_upload *upload; /* owned; NULL once it is over */
	uint64_t total;
};

static void stop(struct file_put *p)
{
	build_upload_abort(p->upload);
	p->upload = NULL;
}

static void gone(void *user, struct http_request *r)
{
	(void)r;
	stop(user);
}

static void body_data(void *user, struct http_request *r, const char *data, size_t n)
{
	struct file_put *p = user;
	struct api_call *c = p->call;
	struct err err = { 0 };

	(void)r;
	p->total += n;
	if (p->total > c->api->deps.config->max_body_bytes) {
		stop(p);
		return problem_status(c, 413, "at most %" PRIu64 " bytes can be sent (max_body)",
				      c->api->deps.config->max_body_bytes);
	}
	if (build_upload_write(p->upload, data, n, &err) == 0)
		return;
	stop(p);
	problem_reply(c, &err);
}

static void on_kept(void *user, struct object *o, const struct err *err)
{
	struct file_put *p = user;

	if (err)
		return problem_reply(p->call, err);
	p->kept(p->call, o);
}

static void body_end(void *user, struct http_request *r)
{
	struct file_put *p = user;
	struct build_upload *u = p->upload;

	(void)r;
	p->upload = NULL;
	build_upload_finish(u, on_kept, p);
}

void build_file_receive(struct api_call *c, const char *owner, const char *name,
			build_file_kept_fn kept)
{
	static const struct http_body_ops ops = { body_data, body_end, gone };
	struct file_put *p = arena_alloc(http_arena(c->http), sizeof(*p));
	int64_t length = http_body_length(c->http);
	struct err err = { 0 };

	if (!p)
		return problem_reply(c, &(struct err){ ENOMEM, "file" });
	if (length > 0 && (uint64_t)length > c->api->deps.config->max_body_bytes)
		return problem_status(c, 413, "at most %" PRIu64 " bytes can be sent (max_body)",
				      c->api->deps.config->max_body_bytes);
	p->call = c;
	p->kept = kept;
	if (build_upload_begin(c->api->deps.sandboxes, owner, name, &p->upload, &err) < 0)
		return problem_reply(c, &err);
	http_body_stream(c->http, &ops, p);
}

static void reply_kept(struct api_call *c, const struct object *o)
{
	reply(c, 201, o);
}

void api_build_file_put(struct api_call *c)
{
	const char *hash = call_param(c, "hash");

	if (!build_hash_is_valid(hash))
		return problem_status(c, 400, "hash: want a SHA-256 in lower-case hex");
	build_file_receive(c, c->who->owner, hash, reply_kept);
}
