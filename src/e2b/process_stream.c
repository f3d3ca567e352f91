/* A process's events: start, data, keepalive, end. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "api/exec_follow.h"
#include "api/problem.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/encode.h"
#include "base/err.h"
#include "base/str.h"
#include "e2b/process.h"
#include "e2b/rpc.h"
#include "loop/loop.h"
#include "net/http.h"
#include "sandbox/exec.h"
#include "sandbox/output.h"
#include "json/jw.h"

#define PIECE (32u << 10)
#define PIECE_PTY (16u << 10)
#define STATUS_MAX 64

struct stream { /* in the request's arena */
	struct exec_follow base;
	struct loop_timer *timer; /* owned; NULL: the client wants no pings */
	uint64_t ping_ms, sent_ms;
	bool is_pty;
};

static struct stream *stream_of(struct exec_follow *f)
{
	return LIST_ENTRY(f, struct stream, base);
}

/* ---- one event ---- */

struct event {
	struct buf b;
	struct jw w;
	size_t at;
};

static void event_begin(struct event *e)
{
	*e = (struct event){ 0 };
	e->at = connect_begin(&e->b);
	e->w = jw_begin(&e->b);
	jw_object_begin(&e->w);
	jw_key(&e->w, "event");
	jw_object_begin(&e->w);
}

static int event_write(struct event *e)
{
	int r;

	jw_object_end(&e->w);
	jw_object_end(&e->w);
	r = jw_end(&e->w);
	return r < 0 ? r : connect_finish(&e->b, e->at);
}

static int send(struct stream *s, const struct buf *b)
{
	s->sent_ms = clock_now_ms();
	return http_write(s->base.call->http, b->data, b->len) < 0 ? -EPIPE : 0;
}

static int event_send(struct stream *s, struct event *e)
{
	int r = event_write(e);

	if (r == 0)
		r = send(s, &e->b);
	buf_done(&e->b);
	return r;
}

static int send_empty(struct stream *s, const char *name)
{
	struct event e;

	event_begin(&e);
	jw_key(&e.w, name);
	jw_object_begin(&e.w);
	jw_object_end(&e.w);
	return event_send(s, &e);
}

/* ---- data ---- */

/* Not by way of jw: base64 needs no look at each character. */
static int send_data(struct stream *s, const char *name, const char *data, size_t n)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	size_t at = connect_begin(&b);
	int r;

	(void)buf_printf(&b, "{\"event\":{\"data\":{\"%s\":\"", name);
	r = buf_reserve(&b, BASE64_SIZE(n));
	if (r < 0 || b.failed)
		return -ENOMEM;
	b.len += encode_base64(data, n, b.data + b.len);
	(void)buf_puts(&b, "\"}}}");
	r = connect_finish(&b, at);
	return r < 0 ? r : send(s, &b);
}

static int on_chunk(struct exec_follow *f, const struct output_chunk *chunk)
{
	struct stream *s = stream_of(f);
	const char *name = s->is_pty ? "pty" : chunk->stream == 2 ? "stderr" : "stdout";

	return send_data(s, name, chunk->data, chunk->len);
}

/* Only who comes late can miss something, and then it is said: the protocol has no event for it. */
static int on_gap(struct exec_follow *f, uint64_t omitted)
{
	struct stream *s = stream_of(f);
	char text[96];

	(void)str_format(text, sizeof(text), "[%llu bytes of earlier output are not kept]\n",
			 (unsigned long long)omitted);
	return send_data(s, s->is_pty ? "pty" : "stderr", text, strlen(text));
}

/* ---- the end ---- */

/* "exit status 3", "signal: killed". */
static void write_status(char text[STATUS_MAX], const struct exec_info *info)
{
	const char *name = info->signal > 0 ? sigdescr_np(info->signal) : NULL;

	if (info->signal <= 0)
		(void)snprintf(text, STATUS_MAX, "exit status %d", (int)info->exit_code);
	else if (!name)
		(void)snprintf(text, STATUS_MAX, "signal: signal %d", (int)info->signal);
	else
		(void)snprintf(text, STATUS_MAX, "signal: %c%s", tolower((unsigned char)name[0]),
			       name + 1);
}

static int send_exit(struct stream *s, const struct exec_info *info)
{
	char status[STATUS_MAX];
	struct event e;

	write_status(status, info);
	event_begin(&e);
	jw_key(&e.w, "end");
	jw_object_begin(&e.w);
	jw_int_field(&e.w, "exitCode", info->signal > 0 ? -1 : info->exit_code);
	jw_bool_field(&e.w, "exited", info->signal <= 0);
	jw_str_field(&e.w, "status", status);
	if (info->signal > 0 || info->exit_code != 0)
		jw_str_field(&e.w, "error", status);
	jw_object_end(&e.w);
	return event_send(s, &e);
}

/* A process that went with its sandbox has no end of its own: clients look for a stream that is cut
 * off to learn that all of it is gone. */
static bool is_sandbox_gone(const struct exec_follow *f, const struct exec_info *info)
{
	struct sandbox_info box;
	struct sandbox *sb;

	if (info->state == EXECUTION_INTERRUPTED)
		return true;
	if (!f->x || info->signal == 0)
		return false;
	sb = sandboxes_find(f->call->api->deps.sandboxes, info->sandbox_id, NULL);
	if (!sb)
		return true;
	sandbox_info(sb, &box);
	return box.state != SANDBOX_RUNNING;
}

static int on_end(struct exec_follow *f, const struct exec_info *info)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct stream *s = stream_of(f);
	int r;

	if (is_sandbox_gone(f, info))
		return -ECONNABORTED;
	if (info->state == EXECUTION_FAILED)
		r = connect_put_end(&b, CONNECT_INVALID_ARGUMENT, info->reason);
	else if (info->flags & EXECUTION_TIMED_OUT)
		r = connect_put_end(&b, CONNECT_DEADLINE_EXCEEDED,
				    "the process ran longer than its timeout");
	else if ((r = send_exit(s, info)) == 0)
		r = connect_put_end(&b, CONNECT_OK, NULL);
	return r < 0 ? r : send(s, &b);
}

/* ---- the stream ---- */

static void on_timer(void *user)
{
	struct stream *s = user;
	uint64_t idle_ms = clock_now_ms() - s->sent_ms;

	if (idle_ms >= s->ping_ms) {
		(void)send_empty(s, "keepalive"); /* a client that has gone is noticed elsewhere */
		idle_ms = 0;
	}
	loop_timer_start(s->timer, s->ping_ms - idle_ms, 0);
}

static int on_begin(struct exec_follow *f, const struct exec_info *info)
{
	struct stream *s = stream_of(f);
	struct event e;

	s->ping_ms = connect_keepalive_ms(http_header(f->call->http, "keepalive-ping-interval"));
	if (s->ping_ms > 0 &&
	    loop_timer_create(f->call->api->deps.loop, on_timer, s, &s->timer) < 0)
		return -ENOMEM;
	rpc_begin(f->call);
	event_begin(&e);
	jw_key(&e.w, "start");
	jw_object_begin(&e.w);
	jw_uint_field(&e.w, "pid", info->pid);
	jw_object_end(&e.w);
	if (event_send(s, &e) < 0)
		return -EPIPE;
	if (s->timer)
		loop_timer_start(s->timer, s->ping_ms, 0);
	return 0;
}

static void on_leave(struct exec_follow *f)
{
	struct stream *s = stream_of(f);

	s->timer = loop_timer_free(s->timer);
}

static void on_close(struct exec_follow *f)
{
	on_leave(f);
	http_end(f->call->http);
}

#define OPS(piece_)                                                                       \
	{                                                                                 \
		.kind = "connect", .piece = piece_, .begin = on_begin, .chunk = on_chunk, \
		.gap = on_gap, .end = on_end, .close = on_close, .leave = on_leave        \
	}

static struct stream *stream_create(struct api_call *c, const struct exec_info *info)
{
	static const struct exec_follow_ops plain = OPS(PIECE), terminal = OPS(PIECE_PTY);
	struct stream *s = arena_alloc(http_arena(c->http), sizeof(*s));

	if (!s) {
		problem_reply(c, &(struct err){ ENOMEM, "stream" });
		return NULL;
	}
	s->is_pty = info->kind == EXECUTION_PTY;
	s->base.call = c;
	s->base.ops = s->is_pty ? &terminal : &plain;
	return s;
}

void process_follow(struct api_call *c, struct execution *x, bool is_new)
{
	struct exec_info info;
	struct stream *s;

	exec_info(x, &info);
	s = stream_create(c, &info);
	if (!s) {
		if (is_new)
			(void)exec_cancel(x);
		return;
	}
	s->base.is_new = is_new;
	exec_follow(&s->base, x);
}

void process_follow_past(struct api_call *c, const struct exec_info *info,
			 const struct output *output)
{
	struct stream *s = stream_create(c, info);

	if (s)
		exec_follow_past(&s->base, info, output);
}
