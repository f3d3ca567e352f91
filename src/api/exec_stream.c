#include "api/exec_stream.h"

#include <errno.h>
#include <inttypes.h>

#include "api/call.h"
#include "api/problem.h"
#include "api/text.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "net/http.h"
#include "net/sse.h"
#include "sandbox/exec.h"
#include "sandbox/output.h"
#include "json/jw.h"

/* Above the first mark of bytes that the client has not taken, reading stops (and so, in the end,
 * does the process); at the second it goes on. */
#define PENDING_HIGH (256u << 10)
#define PENDING_LOW (64u << 10)

struct stream { /* in the request's arena */
	struct call_stream base;
	struct api_call *call;
	struct exec_stream_options o;
	struct sse *sse;
	struct execution *x;        /* held; NULL in a replay */
	struct exec_reader *reader; /* owned */
	struct output *replay;      /* owned */
	uint64_t at;                /* in the replay */
	struct buf end;             /* owned: the last event of a replay */
	struct text_tail tails[2];
};

static void stream_done(struct stream *s)
{
	call_stream_end(&s->base);
	exec_reader_close(s->reader);
	s->reader = NULL;
	if (s->x)
		exec_unref(s->x);
	s->x = NULL;
	s->replay = output_free(s->replay);
	buf_done(&s->end);
}

/* Nobody reads it any more. */
static void leave(struct stream *s)
{
	if (s->x && s->o.cancel_on_gone)
		(void)exec_cancel(s->x);
	stream_done(s);
}

static void gone(void *user, struct http_request *r)
{
	(void)r;
	leave(user);
}

/* The client has left, or memory ran out in the middle: it must see that this is not the end. */
static void break_off(struct stream *s)
{
	struct http_request *r = s->call->http;

	leave(s);
	http_abort(r);
}

static void cut(struct call_stream *base)
{
	break_off(LIST_ENTRY(base, struct stream, base));
}

static int send_output(struct stream *s, int stream, const char *data, size_t n, uint64_t position)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);
	char id[24];
	int r;

	jw_object_begin(&w);
	jw_str_field(&w, "stream", stream_name(stream));
	jw_key(&w, "data");
	encoding_json(&w, s->o.encoding, data, n);
	jw_object_end(&w);
	r = jw_end(&w);
	if (r < 0 || str_format(id, sizeof(id), "%" PRIu64, position) < 0)
		return r < 0 ? r : -E2BIG;
	return sse_event(s->sse, id, "output", b.data, b.len) < 0 ? -EPIPE : 0;
}

/* The position behind what was sent: bytes that are held come again after a reconnect. */
static int send_chunk(struct stream *s, const struct output_chunk *chunk)
{
	_cleanup_(buf_done) struct buf text = { 0 };
	struct text_tail *tail = &s->tails[chunk->stream == 2];
	uint64_t end = chunk->seq + chunk->len;
	int r;

	if (s->o.encoding == ENCODING_BASE64)
		return send_output(s, chunk->stream, chunk->data, chunk->len, end);
	r = text_feed(tail, chunk->data, chunk->len, &text);
	if (r < 0 || text.len == 0)
		return r;
	return send_output(s, chunk->stream, text.data, text.len, end - tail->len);
}

static int send_gap(struct stream *s, uint64_t omitted)
{
	char text[64];

	/* What was held belongs to bytes that are not there any more. */
	s->tails[0].len = s->tails[1].len = 0;
	if (str_format(text, sizeof(text), "{\"omitted\":%" PRIu64 "}", omitted) < 0)
		return -E2BIG;
	return sse_event(s->sse, NULL, "gap", text, str_of(text).len) < 0 ? -EPIPE : 0;
}

static int write_end(struct buf *b, const struct exec_info *info)
{
	struct jw w = jw_begin(b);

	jw_object_begin(&w);
	execution_json_fields(&w, info);
	jw_object_end(&w);
	return jw_end(&w);
}

static void finish(struct stream *s)
{
	struct sse *sse = s->sse;
	struct exec_info info;
	int r = 0;

	if (s->x) {
		exec_info(s->x, &info);
		r = write_end(&s->end, &info);
	}
	for (int i = 0; i < 2 && r == 0; i++)
		if (s->tails[i].len > 0) /* a sequence that never became whole */
			r = send_output(s, i + 1, s->tails[i].data, s->tails[i].len, s->at);
	if (r == 0 && sse_event(sse, NULL, "end", s->end.data, s->end.len) < 0)
		r = -EPIPE;
	if (r < 0)
		return break_off(s);
	stream_done(s);
	sse_end(sse);
}

static int next_chunk(struct stream *s, struct output_chunk *chunk, uint64_t *omitted)
{
	int r = -ENODATA;

	*omitted = 0;
	if (s->reader)
		r = exec_read(s->reader, chunk, omitted);
	else if (s->replay && output_read(s->replay, s->at, chunk, omitted))
		r = 1;
	if (r <= 0)
		return r;
	if (chunk->len > EXEC_READ_MAX)
		chunk->len = EXEC_READ_MAX;
	s->at = chunk->seq + chunk->len;
	return r;
}

static void pump(struct stream *s)
{
	while (http_pending(s->call->http) < PENDING_HIGH) {
		struct output_chunk chunk;
		uint64_t omitted;
		int r = next_chunk(s, &chunk, &omitted);

		if (r == 0)
			return;
		if (r < 0)
			return finish(s);
		if (omitted > 0 && send_gap(s, omitted) < 0)
			return break_off(s);
		if (send_chunk(s, &chunk) < 0)
			return break_off(s);
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

static int send_start(struct stream *s, const struct exec_info *info)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	int r = write_end(&b, info);

	if (r < 0)
		return r;
	return sse_event(s->sse, NULL, "start", b.data, b.len) < 0 ? -EPIPE : 0;
}

static struct stream *begin(struct api_call *c, const struct exec_info *info,
			    const struct exec_stream_options *o)
{
	struct stream *s = arena_alloc(http_arena(c->http), sizeof(*s));

	if (!s) {
		problem_reply(c, &(struct err){ ENOMEM, "stream" });
		return NULL;
	}
	s->call = c;
	s->o = *o;
	s->at = o->from;
	s->base.cut = cut;
	if (!call_stream_begin(c, &s->base, "sse", info->sandbox_id))
		return NULL;
	return s;
}

static void refuse(struct stream *s, int code)
{
	struct api_call *c = s->call;

	stream_done(s);
	problem_reply(c, &(struct err){ code, "stream" });
}

static void run(struct stream *s, const struct exec_info *info)
{
	s->sse = sse_begin(s->call->http);
	if (!s->sse)
		return refuse(s, ENOMEM);
	http_on_gone(s->call->http, gone, s);
	http_on_drain(s->call->http, PENDING_LOW, drained, s);
	if (send_start(s, info) < 0)
		return break_off(s);
	pump(s);
}

void exec_stream_follow(struct api_call *c, struct execution *x,
			const struct exec_stream_options *o)
{
	struct exec_info info;
	struct stream *s;

	exec_info(x, &info);
	s = begin(c, &info, o);
	if (s) {
		s->x = exec_ref(x);
		s->reader = exec_reader_open(x, o->from, readable, s);
	}
	if ((!s || !s->reader) && o->is_new)
		(void)exec_cancel(x);
	if (!s)
		return;
	if (!s->reader)
		return refuse(s, EAGAIN); /* as many readers as it may have, or no memory */
	run(s, &info);
}

void exec_stream_replay(struct api_call *c, const struct exec_info *info,
			const struct output *output, const struct exec_stream_options *o)
{
	_cleanup_(buf_done) struct buf saved = { 0 };
	struct stream *s = begin(c, info, o);
	int r = 0;

	if (!s)
		return;
	buf_init(&saved, 2 * OUTPUT_KEEP_MAX);
	if (output)
		r = output_save(output, &saved);
	if (r == 0 && output)
		r = output_load(saved.data, saved.len, OUTPUT_KEEP_MAX, &s->replay, NULL);
	if (r == 0)
		r = write_end(&s->end, info);
	if (r < 0)
		return refuse(s, -r);
	run(s, info);
}

bool exec_stream_encoding(struct api_call *c, enum encoding *ret)
{
	const char *name = NULL;

	if (!call_query(c, "encoding", &name))
		return false;
	if (name && encoding_from(name, ret) < 0) {
		problem_field(c, "encoding", "want text or base64");
		return false;
	}
	return true;
}
