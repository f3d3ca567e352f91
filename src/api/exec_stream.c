#include "api/exec_stream.h"

#include <errno.h>
#include <inttypes.h>

#include "api/call.h"
#include "api/exec_follow.h"
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

struct stream { /* in the request's arena */
	struct exec_follow base;
	enum encoding encoding;
	struct sse *sse;
	struct text_tail tails[2];
};

static struct stream *stream_of(struct exec_follow *f)
{
	return LIST_ENTRY(f, struct stream, base);
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
	encoding_json(&w, s->encoding, data, n);
	jw_object_end(&w);
	r = jw_end(&w);
	if (r < 0 || str_format(id, sizeof(id), "%" PRIu64, position) < 0)
		return r < 0 ? r : -E2BIG;
	return sse_event(s->sse, id, "output", b.data, b.len) < 0 ? -EPIPE : 0;
}

/* The position behind what was sent: bytes that are held come again after a reconnect. */
static int send_chunk(struct exec_follow *f, const struct output_chunk *chunk)
{
	_cleanup_(buf_done) struct buf text = { 0 };
	struct stream *s = stream_of(f);
	struct text_tail *tail = &s->tails[chunk->stream == 2];
	uint64_t end = chunk->seq + chunk->len;
	int r;

	if (s->encoding == ENCODING_BASE64)
		return send_output(s, chunk->stream, chunk->data, chunk->len, end);
	r = text_feed(tail, chunk->data, chunk->len, &text);
	if (r < 0 || text.len == 0)
		return r;
	return send_output(s, chunk->stream, text.data, text.len, end - tail->len);
}

static int send_gap(struct exec_follow *f, uint64_t omitted)
{
	struct stream *s = stream_of(f);
	char text[64];

	/* What was held belongs to bytes that are not there any more. */
	s->tails[0].len = s->tails[1].len = 0;
	if (str_format(text, sizeof(text), "{\"omitted\":%" PRIu64 "}", omitted) < 0)
		return -E2BIG;
	return sse_event(s->sse, NULL, "gap", text, str_of(text).len) < 0 ? -EPIPE : 0;
}

static int send_info(struct stream *s, const char *event, const struct exec_info *info)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);
	int r;

	jw_object_begin(&w);
	execution_json_fields(&w, info);
	jw_object_end(&w);
	r = jw_end(&w);
	if (r < 0)
		return r;
	return sse_event(s->sse, NULL, event, b.data, b.len) < 0 ? -EPIPE : 0;
}

static int send_end(struct exec_follow *f, const struct exec_info *info)
{
	struct stream *s = stream_of(f);
	int r = 0;

	for (int i = 0; i < 2 && r == 0; i++)
		if (s->tails[i].len > 0) /* a sequence that never became whole */
			r = send_output(s, i + 1, s->tails[i].data, s->tails[i].len, f->at);
	return r < 0 ? r : send_info(s, "end", info);
}

static int begin(struct exec_follow *f, const struct exec_info *info)
{
	struct stream *s = stream_of(f);

	s->sse = sse_begin(f->call->http);
	if (!s->sse)
		return -ENOMEM;
	return send_info(s, "start", info) < 0 ? -EPIPE : 0;
}

static void close_stream(struct exec_follow *f)
{
	sse_end(stream_of(f)->sse);
}

static struct stream *stream_create(struct api_call *c, const struct exec_stream_options *o)
{
	static const struct exec_follow_ops ops = {
		.kind = "sse",
		.piece = EXEC_READ_MAX,
		.begin = begin,
		.chunk = send_chunk,
		.gap = send_gap,
		.end = send_end,
		.close = close_stream,
	};
	struct stream *s = arena_alloc(http_arena(c->http), sizeof(*s));

	if (!s) {
		problem_reply(c, &(struct err){ ENOMEM, "stream" });
		return NULL;
	}
	s->base.call = c;
	s->base.ops = &ops;
	s->base.at = o->from;
	s->base.cancel_on_gone = o->cancel_on_gone;
	s->base.is_new = o->is_new;
	s->encoding = o->encoding;
	return s;
}

void exec_stream_follow(struct api_call *c, struct execution *x,
			const struct exec_stream_options *o)
{
	struct stream *s = stream_create(c, o);

	if (s)
		exec_follow(&s->base, x);
	else if (o->is_new)
		(void)exec_cancel(x);
}

void exec_stream_replay(struct api_call *c, const struct exec_info *info,
			const struct output *output, const struct exec_stream_options *o)
{
	struct stream *s = stream_create(c, o);

	if (s)
		exec_follow_past(&s->base, info, output);
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
