/* GET .../executions/:eid/output: a page of it, or all of it as events. */
#include <errno.h>
#include <string.h>

#include "api/call.h"
#include "api/exec_look.h"
#include "api/exec_stream.h"
#include "api/execution_json.h"
#include "api/handlers.h"
#include "api/problem.h"
#include "api/text.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/parse.h"
#include "loop/loop.h"
#include "net/http.h"
#include "net/sse.h"
#include "sandbox/exec.h"
#include "sandbox/output.h"
#include "json/jw.h"

#define PAGE_MAX (1u << 20) /* bytes of output in one answer, about */
#define LOOK_BYTES 8u       /* more than a character has */

struct waiting { /* in the request's arena */
	struct api_call *call;
	struct exec_stream_options o;
	struct execution *x;        /* held */
	struct exec_reader *reader; /* owned */
	struct loop_timer *timer;   /* owned */
};

/* One chunk of a page; false when nothing of it could be told yet. */
static bool write_chunk(struct jw *w, const struct output_chunk *chunk, enum encoding e,
			struct text_tail *tail)
{
	_cleanup_(buf_done) struct buf text = { 0 };
	const char *data = chunk->data;
	size_t n = chunk->len;
	uint64_t seq = chunk->seq - (e == ENCODING_TEXT ? tail->len : 0);

	if (e == ENCODING_TEXT) {
		if (text_feed(tail, data, n, &text) < 0) {
			w->failed = -ENOMEM;
			return false;
		}
		data = text.data;
		n = text.len;
	}
	if (n == 0)
		return false;
	jw_object_begin(w);
	jw_uint_field(w, "seq", seq);
	jw_str_field(w, "stream", stream_name(chunk->stream));
	jw_key(w, "data");
	encoding_json(w, e, data, n);
	jw_object_end(w);
	return true;
}

/* Sequences that the page's end cut: told as they are when nothing can follow, else the next page
 * begins with them. */
static uint64_t write_tails(struct jw *w, struct text_tail tails[2], int last, uint64_t next,
			    bool is_end)
{
	for (int i = 0; i < 2; i++) {
		if (tails[i].len == 0)
			continue;
		if (!is_end && i == last) {
			next -= tails[i].len;
			continue;
		}
		jw_object_begin(w);
		jw_uint_field(w, "seq", next);
		jw_str_field(w, "stream", stream_name(i + 1));
		jw_key(w, "data");
		jw_string_n(w, tails[i].data, tails[i].len);
		jw_object_end(w);
	}
	return next;
}

static void write_page(struct jw *w, const struct exec_info *info, const struct output *output,
		       const struct exec_stream_options *o)
{
	struct text_tail tails[2] = { 0 };
	struct output_chunk chunk;
	uint64_t next = o->from, omitted = 0, lost;
	size_t told = 0;
	bool is_over = info->state != EXECUTION_RUNNING;
	int last = 0;

	jw_key(w, "chunks");
	jw_array_begin(w);
	while (output && told < PAGE_MAX && output_read(output, next, &chunk, &lost)) {
		omitted += lost;
		if (chunk.len > PAGE_MAX - told)
			chunk.len = PAGE_MAX - told;
		last = chunk.stream == 2;
		(void)write_chunk(w, &chunk, o->encoding, &tails[last]);
		told += chunk.len;
		next = chunk.seq + chunk.len;
	}
	is_over = is_over && next >= info->output_end;
	next = write_tails(w, tails, last, next, is_over);
	jw_array_end(w);
	jw_uint_field(w, "from", o->from);
	jw_uint_field(w, "next", next);
	jw_uint_field(w, "begin", info->output_begin);
	jw_uint_field(w, "end", info->output_end);
	jw_uint_field(w, "omitted", omitted);
	jw_bool_field(w, "done", is_over);
}

static void reply_page(struct api_call *c, const struct exec_info *info,
		       const struct output *output, const struct exec_stream_options *o)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);

	jw_object_begin(&w);
	jw_str_field(&w, "executionId", info->id);
	write_page(&w, info, output, o);
	jw_object_end(&w);
	call_reply(c, 200, &w);
}

/* Whether a page would say anything: half a character does not, and who waited for the other half
 * would be answered at once, again and again. */
static bool has_news(const struct output *output, const struct exec_stream_options *o)
{
	struct text_tail tails[2] = { 0 };
	struct output_chunk chunk;
	uint64_t at = o->from, lost;

	while (output && output_read(output, at, &chunk, &lost)) {
		_cleanup_(buf_done) struct buf text = { 0 };
		size_t n = chunk.len < LOOK_BYTES ? chunk.len : LOOK_BYTES;

		if (lost > 0 || o->encoding != ENCODING_TEXT ||
		    text_feed(&tails[chunk.stream == 2], chunk.data, n, &text) < 0 || text.len > 0)
			return true;
		at = chunk.seq + n;
	}
	return false;
}

/* ---- waiting for more ---- */

static void waiting_done(struct waiting *w)
{
	exec_reader_close(w->reader);
	w->timer = loop_timer_free(w->timer);
	exec_unref(w->x);
}

static void gone(void *user, struct http_request *r)
{
	(void)r;
	waiting_done(user);
}

static void reply_now(struct waiting *w)
{
	struct exec_info info;
	struct execution *x = exec_ref(w->x); /* what is told lives as long as it does */

	waiting_done(w);
	exec_info(x, &info);
	reply_page(w->call, &info, exec_output(x), &w->o);
	exec_unref(x);
}

static void timed_out(void *user)
{
	reply_now(user);
}

static void readable(void *user)
{
	struct waiting *w = user;
	struct exec_info info;

	exec_info(w->x, &info);
	if (has_news(exec_output(w->x), &w->o) || info.state != EXECUTION_RUNNING)
		reply_now(w);
}

static void wait_for_more(struct api_call *c, struct execution *x,
			  const struct exec_stream_options *o, uint64_t wait_ms)
{
	struct waiting *w = arena_alloc(http_arena(c->http), sizeof(*w));

	if (!w)
		return problem_reply(c, &(struct err){ ENOMEM, "output" });
	w->call = c;
	w->o = *o;
	w->x = exec_ref(x);
	w->reader = exec_reader_open(x, o->from, readable, w);
	if (!w->reader || loop_timer_create(c->api->deps.loop, timed_out, w, &w->timer) < 0) {
		waiting_done(w);
		return problem_reply(c, &(struct err){ EAGAIN, "output: too many readers" });
	}
	http_on_gone(c->http, gone, w);
	loop_timer_start(w->timer, wait_ms, 0);
}

/* ---- the request ---- */

/* An event stream goes on where the last one broke off. */
static bool parse_from(struct api_call *c, bool is_stream, uint64_t *ret)
{
	const char *last = is_stream ? sse_last_id(c->http) : NULL;

	if (!call_query_u64(c, "from", ret))
		return false;
	if (last && parse_u64(last, 0, UINT64_MAX, ret) < 0) {
		problem_field(c, "Last-Event-ID", "want the id of an event of this stream");
		return false;
	}
	return true;
}

static void found(struct api_call *c, struct execution *x, const struct exec_info *info,
		  const struct output *output)
{
	bool is_stream = call_accepts(c, "text/event-stream");
	struct exec_stream_options o = { 0 };
	uint64_t wait_ms = 0;

	if (!parse_from(c, is_stream, &o.from) || !exec_stream_encoding(c, &o.encoding) ||
	    !call_query_ms(c, "wait", &wait_ms))
		return;
	if (is_stream && x)
		return exec_stream_follow(c, x, &o);
	if (is_stream)
		return exec_stream_replay(c, info, output, &o);
	if (x && wait_ms > 0 && info->state == EXECUTION_RUNNING && !has_news(output, &o))
		return wait_for_more(c, x, &o, wait_ms);
	reply_page(c, info, output, &o);
}

void api_exec_output(struct api_call *c)
{
	exec_look(c, found);
}
