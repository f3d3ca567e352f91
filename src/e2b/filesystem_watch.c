/* filesystem.Filesystem: WatchDir, which streams, and watchers that are asked now and then. */
#include <errno.h>
#include <string.h>

#include "api/call.h"
#include "api/file_job.h"
#include "api/problem.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "e2b/entry.h"
#include "e2b/filesystem.h"
#include "e2b/handlers.h"
#include "e2b/rpc.h"
#include "e2b/target.h"
#include "loop/loop.h"
#include "net/http.h"
#include "sandbox/files.h"
#include "sandbox/watcher.h"
#include "json/jv_decode.h"
#include "json/jw.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define ENTRY_BYTES_MAX (64u << 10)
#define PENDING_MAX (1u << 20) /* events that a client does not read */

/* ---- what is asked ---- */

struct watch_message {
	const char *path, *watcher_id;
	bool is_recursive, has_entries;
};

static const struct watch_message nothing = { .path = "", .watcher_id = "" };
static const struct jv_field watch_fields[] = {
	JV_FIELD("path", STRING, struct watch_message, path, .max = FILE_PATH_MAX - 1),
	JV_FIELD("recursive", BOOL, struct watch_message, is_recursive),
	JV_FIELD("includeEntry", BOOL, struct watch_message, has_entries),
};
static const struct jv_field watcher_fields[] = {
	JV_FIELD("watcherId", STRING, struct watch_message, watcher_id),
};

struct watch {               /* in the request's arena */
	struct file_job job; /* first */
	struct call_stream base;
	struct guest_file file;
	void (*then)(struct watch *w);
	struct watcher *watcher;         /* that is being made */
	struct loop_timer *pings, *ends; /* owned; NULL: none */
	uint64_t ping_ms;
	struct guest_entry *entry; /* of the event that comes next; NULL: none */
	struct arena *arena;       /* owned: its texts */
	bool is_begun;             /* the answer */
};

static struct watch *watch_of(struct file_job *j)
{
	return (struct watch *)(void *)j;
}

static void looked(struct file_job *j, const struct err *err)
{
	struct watch *w = watch_of(j);
	const struct watch_message *m = j->call->body;

	if (err)
		return filesystem_fail(j->call, err);
	if (!j->has_entry || j->entry.type != ENTRY_DIR)
		return rpc_fail(j->call, CONNECT_INVALID_ARGUMENT, "'%.200s' is no directory",
				m->path);
	if (e2b_sandbox(j->call))
		w->then(w);
}

/* Only directories are watched here: a look comes first. */
static void begin(struct api_call *c, void (*then)(struct watch *w))
{
	const struct watch_message *m = c->body;
	struct watch *w = arena_alloc(http_arena(c->http), sizeof(*w));
	struct guest_file look = { .op = FILE_STAT,
				   .flags = FILE_AT_HOME | FILE_AS_ROOT,
				   .path = m->path };

	if (!w)
		return rpc_fail(c, CONNECT_UNAVAILABLE, "out of memory");
	look.target = "";
	look.user = rpc_user(c);
	if (!look.user || !e2b_sandbox(c))
		return;
	w->job.call = c;
	w->then = then;
	w->file = look;
	w->file.op = FILE_WATCH;
	w->file.flags |= m->is_recursive ? FILE_RECURSIVE : 0;
	w->file.flags |= m->has_entries ? FILE_DETAILS : 0;
	(void)file_job_run(&w->job, &look, looked);
}

/* ---- a stream ---- */

static void watch_done(struct watch *w)
{
	file_job_end(&w->job);
	call_stream_end(&w->base);
	w->pings = loop_timer_free(w->pings);
	w->ends = loop_timer_free(w->ends);
	w->arena = arena_free(w->arena);
	w->entry = NULL;
}

static void gone(void *user, struct http_request *r)
{
	(void)r;
	watch_done(user);
}

static void end(struct watch *w, enum connect_code code, const char *text)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct http_request *r = w->job.call->http;

	watch_done(w);
	if (connect_put_end(&b, code, text) < 0)
		return http_abort(r);
	(void)http_write(r, b.data, b.len);
	http_end(r);
}

/* A message of one member, whose value the caller has written; false: there is no memory. */
static bool send_message(struct watch *w, struct jw *j, size_t at)
{
	struct buf *b = j->buf;

	jw_object_end(j);
	if (jw_end(j) < 0 || connect_finish(b, at) < 0)
		return false;
	(void)http_write(w->job.call->http, b->data, b->len);
	if (w->pings)
		loop_timer_start(w->pings, w->ping_ms, w->ping_ms);
	return true;
}

static void send_empty(struct watch *w, const char *name)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	size_t at = connect_begin(&b);
	struct jw j = jw_begin(&b);

	jw_object_begin(&j);
	jw_key(&j, name);
	jw_object_begin(&j);
	jw_object_end(&j);
	(void)send_message(w, &j, at);
}

static void on_ping(void *user)
{
	send_empty(user, "keepalive");
}

static void on_deadline(void *user)
{
	end(user, CONNECT_DEADLINE_EXCEEDED, "the watch has lasted as long as it was to");
}

static void on_armed(void *user)
{
	struct watch *w = user;

	w->is_begun = true;
	rpc_begin(w->job.call);
	send_empty(w, "start");
	if (w->pings)
		loop_timer_start(w->pings, w->ping_ms, w->ping_ms);
}

static void on_entry(void *user, const struct guest_entry *entry)
{
	struct watch *w = user;

	arena_reset(w->arena);
	w->entry = arena_alloc(w->arena, sizeof(*w->entry));
	if (w->entry && file_entry_copy(w->arena, entry, w->entry) < 0)
		w->entry = NULL;
}

/* What a client does not read, or the kernel did not keep, is lost: the end says so. */
static void on_event(void *user, enum guest_event event, const char *path)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct watch *w = user;
	size_t at = connect_begin(&b);
	struct jw j = jw_begin(&b);

	if (event == EVENT_OVERFLOW || http_pending(w->job.call->http) > PENDING_MAX)
		return end(w, CONNECT_DATA_LOSS, "more has happened than could be told");
	jw_object_begin(&j);
	jw_key(&j, "filesystem");
	entry_event_json(&j, event, path, w->entry);
	w->entry = NULL;
	if (!send_message(w, &j, at))
		end(w, CONNECT_DATA_LOSS, "out of memory");
}

static void on_failed(void *user, const struct err *err)
{
	struct watch *w = user;
	struct api_call *c = w->job.call;

	w->job.op = NULL;
	if (w->is_begun && err->code == ENOENT) /* what was watched is gone */
		return end(w, CONNECT_OK, NULL);
	watch_done(w);
	if (!w->is_begun)
		return filesystem_fail(c, err);
	http_abort(c->http); /* the sandbox has ended: no word of a good end */
}

static void cut(struct call_stream *base)
{
	struct watch *w = LIST_ENTRY(base, struct watch, base);
	struct api_call *c = w->job.call;

	watch_done(w);
	if (!w->is_begun)
		return rpc_fail(c, CONNECT_UNAUTHENTICATED, "%s", CALL_KEY_ENDED);
	http_abort(c->http);
}

static int make_timers(struct watch *w, uint64_t last_ms)
{
	struct loop *loop = w->job.call->api->deps.loop;
	int r = 0;

	if (w->ping_ms > 0)
		r = loop_timer_create(loop, on_ping, w, &w->pings);
	if (r == 0 && last_ms > 0)
		r = loop_timer_create(loop, on_deadline, w, &w->ends);
	if (r == 0 && w->ends)
		loop_timer_start(w->ends, last_ms, 0);
	return r;
}

/* 0, or -errno after the answer. */
static int prepare(struct watch *w)
{
	struct api_call *c = w->job.call;
	uint64_t last_ms = 0;

	if (connect_timeout(http_header(c->http, "connect-timeout-ms"), &last_ms) < 0) {
		rpc_fail(c, CONNECT_INVALID_ARGUMENT, "Connect-Timeout-Ms: not a number");
		return -EINVAL;
	}
	w->ping_ms = connect_keepalive_ms(http_header(c->http, "keepalive-ping-interval"));
	w->arena = arena_create(ENTRY_BYTES_MAX);
	w->base.cut = cut;
	if (!w->arena || make_timers(w, last_ms) < 0) {
		watch_done(w);
		rpc_fail(c, CONNECT_UNAVAILABLE, "out of memory");
		return -ENOMEM;
	}
	if (call_stream_begin(c, &w->base, "connect", c->box_id))
		return 0;
	watch_done(w); /* it has answered */
	return -EAGAIN;
}

static void stream(struct watch *w)
{
	static const struct file_ops ops = {
		.entry = on_entry,
		.event = on_event,
		.armed = on_armed,
		.failed = on_failed,
	};
	struct api_call *c = w->job.call;
	struct err err = { 0 };

	if (prepare(w) < 0)
		return;
	if (file_job_try(&w->job, &w->file, &ops, w, &err) == 0)
		return http_on_gone(c->http, gone, w);
	watch_done(w);
	filesystem_fail(c, &err);
}

static void watch_dir(struct api_call *c)
{
	begin(c, stream);
}

void e2b_watch_dir(struct api_call *c)
{
	static const struct rpc_method method = {
		CONNECT_STREAM, watch_fields, COUNT(watch_fields), sizeof(struct watch_message),
		&nothing,       watch_dir,
	};

	rpc_take(c, &method);
}

/* ---- watchers ---- */

static void not_made(void *user, struct http_request *r)
{
	struct watch *w = user;

	(void)r;
	watcher_free(w->watcher);
}

static void made(void *user, struct watcher *watcher, const struct err *err)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw j = jw_begin(&b);
	struct watch *w = user;

	w->watcher = NULL; /* it is the sandbox's now, whatever the client does */
	if (err)
		return filesystem_fail(w->job.call, err);
	jw_object_begin(&j);
	jw_str_field(&j, "watcherId", watcher_id(watcher));
	jw_object_end(&j);
	rpc_reply(w->job.call, &j);
}

static void make_watcher(struct watch *w)
{
	struct api_call *c = w->job.call;
	struct sandbox *sb = e2b_sandbox(c);
	struct err err = { 0 };

	if (!sb)
		return;
	if (watcher_create(sb, &w->file, made, w, &w->watcher, &err) < 0)
		return filesystem_fail(c, &err);
	http_on_gone(c->http, not_made, w);
}

static void create_watcher(struct api_call *c)
{
	begin(c, make_watcher);
}

#define METHOD(fields_, handle_)                                                                \
	{                                                                                       \
		CONNECT_UNARY, fields_, COUNT(fields_), sizeof(struct watch_message), &nothing, \
			handle_                                                                 \
	}

void e2b_create_watcher(struct api_call *c)
{
	static const struct rpc_method method = METHOD(watch_fields, create_watcher);

	rpc_take(c, &method);
}

/* NULL: answered. */
static struct watcher *find(struct api_call *c)
{
	const struct watch_message *m = c->body;
	struct sandbox *sb = e2b_sandbox(c);
	struct watcher *w = sb ? watcher_find(sb, m->watcher_id) : NULL;

	if (sb && !w)
		rpc_fail(c, CONNECT_NOT_FOUND, "there is no watcher '%.64s'", m->watcher_id);
	return w;
}

static void tell(void *user, const struct watcher_event *e)
{
	entry_event_json(user, e->event, e->path, e->entry);
}

static void get_events(struct api_call *c)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw j = jw_begin(&b);
	struct watcher *w = find(c);
	int r;

	if (!w)
		return;
	jw_object_begin(&j);
	jw_key(&j, "events");
	jw_array_begin(&j);
	r = watcher_take(w, tell, &j);
	if (r == -EOVERFLOW)
		return rpc_fail(c, CONNECT_DATA_LOSS, "more has happened than could be kept");
	if (r < 0)
		return rpc_fail(c, CONNECT_NOT_FOUND, "what was watched is gone");
	jw_array_end(&j);
	jw_object_end(&j);
	rpc_reply(c, &j);
}

void e2b_get_watcher_events(struct api_call *c)
{
	static const struct rpc_method method = METHOD(watcher_fields, get_events);

	rpc_take(c, &method);
}

static void remove_watcher(struct api_call *c)
{
	struct watcher *w = find(c);

	if (!w)
		return;
	watcher_free(w);
	rpc_reply_empty(c);
}

void e2b_remove_watcher(struct api_call *c)
{
	static const struct rpc_method method = METHOD(watcher_fields, remove_watcher);

	rpc_take(c, &method);
}
