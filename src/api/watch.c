/* What happens to files, as server-sent events. */
#include <errno.h>

#include "api/call.h"
#include "api/file_job.h"
#include "api/handlers.h"
#include "api/problem.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "net/http.h"
#include "net/sse.h"
#include "sandbox/files.h"
#include "json/jw.h"

/* A client that does not read loses events, and is told so: a box makes them as fast as it likes.
 */
#define PENDING_HIGH (256u << 10)
#define PENDING_LOW (64u << 10)

struct watch {               /* in the request's arena */
	struct file_job job; /* first */
	struct call_stream base;
	const char *path;
	struct sse *sse; /* NULL: not begun */
	bool overflowed;
};

static void watch_done(struct watch *w)
{
	file_job_end(&w->job);
	call_stream_end(&w->base);
}

static void gone(void *user, struct http_request *r)
{
	(void)r;
	watch_done(user);
}

static void send(struct watch *w, const char *event, const char *key, const char *value)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw j = jw_begin(&b);

	jw_object_begin(&j);
	if (key)
		jw_str_field(&j, key, value);
	jw_object_end(&j);
	if (jw_end(&j) == 0)
		(void)sse_event(w->sse, NULL, event, b.data, b.len);
	else
		w->overflowed = true;
}

static void drained(void *user, struct http_request *r)
{
	struct watch *w = user;

	(void)r;
	if (!w->overflowed)
		return;
	w->overflowed = false;
	send(w, "overflow", NULL, NULL);
}

static void armed(void *user)
{
	struct watch *w = user;
	struct api_call *c = w->job.call;

	if (w->sse)
		return;
	w->sse = sse_begin(c->http);
	if (!w->sse) {
		watch_done(w);
		return problem_reply(c, &(struct err){ ENOMEM, "watch" });
	}
	http_on_drain(c->http, PENDING_LOW, drained, w);
	send(w, "start", "path", w->path);
}

static void happened(void *user, enum guest_event event, const char *path)
{
	static const char *const names[] = {
		[EVENT_CREATE] = "create", [EVENT_WRITE] = "write", [EVENT_REMOVE] = "remove",
		[EVENT_RENAME] = "rename", [EVENT_CHMOD] = "chmod", [EVENT_OVERFLOW] = "overflow",
	};
	struct watch *w = user;

	if (!w->sse || (unsigned)event >= sizeof(names) / sizeof(names[0]))
		return;
	if (http_pending(w->job.call->http) > PENDING_HIGH)
		w->overflowed = true;
	else if (event == EVENT_OVERFLOW)
		send(w, "overflow", NULL, NULL);
	else
		send(w, names[event], "path", path);
}

static void failed(void *user, const struct err *err)
{
	struct watch *w = user;
	struct api_call *c = w->job.call;

	w->job.op = NULL;
	watch_done(w);
	if (!w->sse)
		return problem_reply_box(c, err);
	send(w, "end", "reason", problem_text(problem_find(err->code, PROBLEM_IN_BOX), err));
	sse_end(w->sse);
}

static void cut(struct call_stream *base)
{
	struct watch *w = LIST_ENTRY(base, struct watch, base);
	struct api_call *c = w->job.call;

	watch_done(w);
	if (!w->sse)
		return problem_status(c, 401, "%s", CALL_KEY_ENDED);
	http_abort(c->http);
}

static void done(void *user, uint64_t count)
{
	(void)count;
	failed(user, &(struct err){ ECANCELED, "the watch has ended" });
}

void api_watch(struct api_call *c)
{
	static const struct file_ops ops = {
		.event = happened,
		.armed = armed,
		.done = done,
		.failed = failed,
	};
	struct watch *w = arena_alloc(http_arena(c->http), sizeof(*w));
	struct guest_file f = { .op = FILE_WATCH, .target = "" };
	struct sandbox *sb = call_sandbox(c);
	struct sandbox_info info;
	struct err err = { 0 };
	bool recursive = false;

	if (!sb)
		return;
	if (!w)
		return problem_reply(c, &(struct err){ ENOMEM, "watch" });
	if (!file_query_path(c, &f.path) || !file_user(c, &f.user) ||
	    !call_query_bool(c, "recursive", &recursive))
		return;
	f.flags = recursive ? FILE_RECURSIVE : 0;
	w->job.call = c;
	w->path = f.path;
	w->base.cut = cut;
	sandbox_info(sb, &info);
	if (!call_stream_begin(c, &w->base, "sse", info.id))
		return;
	if (file_job_try(&w->job, &f, &ops, w, &err) == 0)
		return http_on_gone(c->http, gone, w);
	call_stream_end(&w->base);
	problem_reply_box(c, &err);
}
