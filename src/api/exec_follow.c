#include "api/exec_follow.h"

#include <errno.h>
#include <string.h>

#include "api/problem.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "net/http.h"
#include "sandbox/exec.h"
#include "sandbox/output.h"

/* Above the first mark of bytes that the client has not taken, reading stops (and so, in the end,
 * does the process); at the second it goes on. */
#define PENDING_HIGH (256u << 10)
#define PENDING_LOW (64u << 10)

static void let_go(struct exec_follow *f)
{
	call_stream_end(&f->base);
	exec_reader_close(f->reader);
	f->reader = NULL;
	if (f->x)
		exec_unref(f->x);
	f->x = NULL;
	f->replay = output_free(f->replay);
}

/* Nobody reads it any more. */
static void leave(struct exec_follow *f)
{
	if (f->x && f->cancel_on_gone)
		(void)exec_cancel(f->x);
	if (f->ops->leave)
		f->ops->leave(f);
	let_go(f);
}

static void gone(void *user, struct http_request *r)
{
	(void)r;
	leave(user);
}

/* The client has left, or memory ran out in the middle: it must see that this is not the end. */
static void break_off(struct exec_follow *f)
{
	struct http_request *r = f->call->http;

	leave(f);
	http_abort(r);
}

static void cut(struct call_stream *base)
{
	break_off(LIST_ENTRY(base, struct exec_follow, base));
}

static void finish(struct exec_follow *f)
{
	struct exec_info info;

	if (f->x)
		exec_info(f->x, &info);
	if (f->ops->end(f, f->x ? &info : f->past) < 0)
		return break_off(f);
	let_go(f);
	f->ops->close(f);
}

static int next_chunk(struct exec_follow *f, struct output_chunk *chunk, uint64_t *omitted)
{
	int r = -ENODATA;

	*omitted = 0;
	if (f->reader)
		r = exec_read(f->reader, chunk, omitted);
	else if (f->replay && output_read(f->replay, f->at, chunk, omitted))
		r = 1;
	if (r <= 0)
		return r;
	if (f->replay && chunk->len > EXEC_READ_MAX)
		chunk->len = EXEC_READ_MAX;
	f->at = chunk->seq + chunk->len;
	return r;
}

static int give(struct exec_follow *f, const struct output_chunk *whole)
{
	struct output_chunk part = *whole;
	size_t left = whole->len;
	int r = 0;

	while (r == 0 && left > 0) {
		part.len = left < f->ops->piece ? left : f->ops->piece;
		r = f->ops->chunk(f, &part);
		part.data += part.len;
		part.seq += part.len;
		left -= part.len;
	}
	return r;
}

static void pump(struct exec_follow *f)
{
	while (http_pending(f->call->http) < PENDING_HIGH) {
		struct output_chunk chunk;
		uint64_t omitted;
		int r = next_chunk(f, &chunk, &omitted);

		if (r == 0)
			return;
		if (r < 0)
			return finish(f);
		if (omitted > 0 && f->ops->gap(f, omitted) < 0)
			return break_off(f);
		if (give(f, &chunk) < 0)
			return break_off(f);
	}
}

static void readable(void *user)
{
	pump(user);
}

static void drained(void *user, struct http_request *r)
{
	(void)r;
	pump(user);
}

static bool begin(struct exec_follow *f, const struct exec_info *info)
{
	f->base.cut = cut;
	return call_stream_begin(f->call, &f->base, f->ops->kind, info->sandbox_id);
}

static void refuse(struct exec_follow *f, int code)
{
	struct api_call *c = f->call;

	let_go(f);
	problem_reply(c, &(struct err){ code, "stream" });
}

static void run(struct exec_follow *f, const struct exec_info *info)
{
	int r = f->ops->begin(f, info);

	if (r == -ENOMEM || r == -EAGAIN)
		return refuse(f, -r);
	if (r < 0)
		return break_off(f);
	http_on_gone(f->call->http, gone, f);
	http_on_drain(f->call->http, PENDING_LOW, drained, f);
	pump(f);
}

void exec_follow(struct exec_follow *f, struct execution *x)
{
	struct exec_info info;
	bool has_begun;

	exec_info(x, &info);
	has_begun = begin(f, &info);
	if (has_begun) {
		f->x = exec_ref(x);
		f->reader = exec_reader_open(x, f->at, readable, f);
	}
	if (!f->reader && f->is_new)
		(void)exec_cancel(x);
	if (!has_begun)
		return;
	if (!f->reader)
		return refuse(f, EAGAIN); /* as many readers as it may have, or no memory */
	run(f, &info);
}

/* ---- what has ended ---- */

static const char *copy_text(struct arena *a, const char *text)
{
	return text ? arena_strndup(a, text, strlen(text)) : NULL;
}

static int copy_info(struct exec_follow *f, const struct exec_info *info)
{
	struct arena *a = http_arena(f->call->http);

	f->past = arena_alloc(a, sizeof(*f->past));
	if (!f->past)
		return -ENOMEM;
	*f->past = *info;
	f->past->id = copy_text(a, info->id);
	f->past->sandbox_id = copy_text(a, info->sandbox_id);
	f->past->reason = copy_text(a, info->reason);
	f->past->content = NULL; /* may be large, and nobody asks for it at the end */
	return f->past->id && f->past->sandbox_id && (f->past->reason || !info->reason) ? 0
											: -ENOMEM;
}

void exec_follow_past(struct exec_follow *f, const struct exec_info *info,
		      const struct output *output)
{
	_cleanup_(buf_done) struct buf saved = { 0 };
	int r;

	if (!begin(f, info))
		return;
	buf_init(&saved, 2 * OUTPUT_KEEP_MAX);
	r = copy_info(f, info);
	if (r == 0 && output)
		r = output_save(output, &saved);
	if (r == 0 && output)
		r = output_load(saved.data, saved.len, OUTPUT_KEEP_MAX, &f->replay, NULL);
	if (r < 0)
		return refuse(f, -r);
	run(f, info);
}
