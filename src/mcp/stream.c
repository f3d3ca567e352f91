/* Where messages go: an answer in one piece while that is enough, else a stream of events. What a
 * session's streams say is kept a while: a client that was cut off comes back for it. */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "api/call.h"
#include "base/clock.h"
#include "base/str.h"
#include "config/config.h"
#include "mcp/server_impl.h"
#include "net/http.h"
#include "net/sse.h"

#define EVENT_ID_SIZE 48

/* Of errors in one piece, in the modern era. */
static int status_of(const struct mcp_stream *t, long code)
{
	if (t->session || code == 0)
		return 200;
	if (code == RPC_NO_METHOD)
		return 404;
	return code == MCP_HEADER || code == MCP_NEEDS_CLIENT || code == MCP_VERSION ? 400 : 200;
}

/* ---- what is kept ---- */

static void forget_events(struct mcp_stream *t)
{
	LIST_FOREACH (&t->events, e, struct mcp_event, node) {
		list_remove(&e->node);
		free(e);
	}
	if (t->session)
		t->session->kept -= t->kept;
	t->server->kept -= t->kept;
	t->kept = 0;
}

static bool is_over(const struct mcp_stream *t)
{
	return t->n_open == 0 && !t->is_common;
}

static bool has_room(const struct mcp_stream *t, size_t n)
{
	return t->session->kept + n <= MCP_KEPT_BYTES && t->server->kept + n <= MCP_KEPT_ALL;
}

/* The oldest that are answered give way first, and then what was said of this one. */
static void make_room(struct mcp_stream *t, size_t n)
{
	struct mcp_session *s = t->session;

	LIST_FOREACH (&s->streams, other, struct mcp_stream, node) {
		if (has_room(t, n))
			return;
		if (other != t && is_over(other) && !other->http)
			mcp_stream_free(other);
	}
	while (!list_is_empty(&t->events) && !has_room(t, n)) {
		struct mcp_event *e = LIST_ENTRY(t->events.next, struct mcp_event, node);

		list_remove(&e->node);
		t->kept -= e->len;
		s->kept -= e->len;
		t->server->kept -= e->len;
		free(e);
	}
}

/* Without room or memory it is not kept: see mcp_stream_has(). */
static void keep(struct mcp_stream *t, uint64_t number, const char *text, size_t n)
{
	struct mcp_event *e;

	if (!t->session)
		return;
	make_room(t, n);
	e = has_room(t, n) ? malloc(sizeof(*e) + n + 1) : NULL;
	if (!e)
		return forget_events(t);
	e->number = number;
	e->len = n;
	memcpy(e->text, text, n);
	e->text[n] = '\0';
	list_push_back(&t->events, &e->node);
	t->kept += n;
	t->session->kept += n;
	t->server->kept += n;
}

/* ---- the client ---- */

static void let_go(struct mcp_stream *t)
{
	t->http = NULL;
	t->sse = NULL;
	if (t->watch)
		call_stream_end(t->watch);
	t->watch = NULL;
	t->since_ms = clock_now_ms();
}

/* Those of the modern era, and those whose client was told no id to come back with, are not wanted
 * any more. */
static void cancel_all(struct mcp_stream *t)
{
	struct mcp_server *s = t->server;

	for (struct list *at = s->requests.next; at != &s->requests;) {
		struct mcp_request *q = LIST_ENTRY(at, struct mcp_request, node);

		at = at->next;
		if (q->stream != t)
			continue;
		q->stream = NULL;
		mcp_cancel(q);
	}
	t->n_open = 0;
	mcp_stream_free(t);
}

static void gone(void *user, struct http_request *r)
{
	struct mcp_stream *t = user;

	(void)r;
	let_go(t);
	if (is_over(t) && !t->session)
		mcp_stream_free(t);
	else if (!t->session || (!t->is_common && !t->is_resumable))
		cancel_all(t);
}

static int event_id(const struct mcp_stream *t, uint64_t number, char dst[EVENT_ID_SIZE])
{
	return str_format(dst, EVENT_ID_SIZE, "%" PRIu32 "-%" PRIu64, t->number, number);
}

static void write_event(struct mcp_stream *t, uint64_t number, const char *text, size_t n)
{
	char id[EVENT_ID_SIZE];

	if (!t->sse)
		return;
	if (t->session && event_id(t, number, id) == 0) {
		(void)sse_event(t->sse, id, NULL, text, n);
		t->is_resumable = true;
	} else {
		(void)sse_event(t->sse, NULL, n > 0 ? "message" : NULL, text, n);
	}
}

/* A first event without anything in it gives the client an id to come back with; those who do not
 * know of it would take it for a message. */
static bool is_primed(const struct mcp_stream *t)
{
	return t->session && strcmp(t->session->version, "2025-11-25") >= 0;
}

static void begin_sse(struct mcp_stream *t)
{
	if (t->sse || !t->http || !t->takes_sse)
		return;
	if (t->session)
		(void)http_header_add(t->http, "Mcp-Session-Id", t->session->id);
	t->sse = sse_begin(t->http);
	if (t->sse && is_primed(t)) {
		uint64_t number = t->n_events++;

		keep(t, number, "", 0);
		write_event(t, number, "", 0);
	}
}

static void end_client(struct mcp_stream *t)
{
	struct http_request *http = t->http;
	struct sse *sse = t->sse;

	if (!http)
		return;
	let_go(t);
	if (sse)
		sse_end(sse);
	else
		http_abort(http);
}

/* ---- its life ---- */

struct mcp_stream *mcp_stream_open(struct mcp_server *s, struct mcp_session *session,
				   struct http_request *http, bool takes_sse)
{
	struct mcp_stream *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->server = s;
	t->session = session;
	t->http = http;
	t->takes_sse = takes_sse;
	t->since_ms = clock_now_ms();
	list_init(&t->events);
	if (session)
		t->number = ++session->n_streams;
	list_push_back(session ? &session->streams : &s->loose, &t->node);
	http_on_gone(http, gone, t);
	return t;
}

void mcp_stream_free(struct mcp_stream *t)
{
	forget_events(t);
	end_client(t);
	list_remove(&t->node);
	if (t->session && t->session->common == t)
		t->session->common = NULL;
	free(t);
}

void mcp_stream_send(struct mcp_stream *t, const char *text, size_t n)
{
	uint64_t number;

	begin_sse(t);
	number = t->n_events++;
	keep(t, number, text, n);
	write_event(t, number, text, n);
}

/* All is answered: a session keeps it for who has missed the end. */
static void finish(struct mcp_stream *t)
{
	end_client(t);
	if (!t->session || !t->is_resumable)
		return mcp_stream_free(t);
	t->session->n_kept = 0;
	LIST_FOREACH (&t->session->streams, other, struct mcp_stream, node)
		t->session->n_kept += is_over(other);
	LIST_FOREACH (&t->session->streams, other, struct mcp_stream, node) {
		if (t->session->n_kept <= MCP_KEPT_STREAMS_MAX)
			break;
		if (other != t && is_over(other) && !other->http) {
			mcp_stream_free(other);
			t->session->n_kept--;
		}
	}
}

void mcp_stream_answer(struct mcp_stream *t, const char *text, size_t n, long code)
{
	struct http_request *http = t->http;

	assert(t->n_open > 0);
	t->n_open--;
	if (!t->sse && http && !t->is_batch) {
		if (t->session)
			(void)http_header_add(http, "Mcp-Session-Id", t->session->id);
		let_go(t);
		http_reply(http, status_of(t, code), "application/json", text, n);
	} else {
		mcp_stream_send(t, text, n);
	}
	if (t->n_open == 0)
		finish(t);
}

/* A client that waits for it learns that there is nothing to come. */
void mcp_stream_drop(struct mcp_stream *t)
{
	struct http_request *http = t->http;

	assert(t->n_open > 0);
	if (--t->n_open > 0)
		return;
	if (http && !t->sse) {
		let_go(t);
		http_reply(http, 202, NULL, NULL, 0);
	}
	finish(t);
}

void mcp_stream_cut(struct mcp_stream *t)
{
	end_client(t);
	if (!t->session)
		cancel_all(t);
}

bool mcp_stream_has(const struct mcp_stream *t, uint64_t seen)
{
	return !is_over(t) || !list_is_empty(&t->events) || seen >= t->n_events - 1;
}

void mcp_stream_resume(struct mcp_stream *t, struct http_request *http, struct call_stream *watch,
		       uint64_t seen)
{
	if (t->http != http)
		end_client(t);
	t->http = http;
	t->watch = watch;
	t->takes_sse = true;
	http_on_gone(http, gone, t);
	if (t->session)
		(void)http_header_add(http, "Mcp-Session-Id", t->session->id);
	t->sse = sse_begin(http);
	LIST_FOREACH (&t->events, e, struct mcp_event, node)
		if (e->number > seen)
			write_event(t, e->number, e->text, e->len);
	if (is_over(t))
		finish(t);
}

void mcp_stream_part(struct mcp_stream *t, unsigned retry_ms)
{
	begin_sse(t);
	if (!t->sse || !t->is_resumable)
		return;
	(void)sse_retry(t->sse, retry_ms);
	end_client(t);
}

void mcp_streams_tick(struct mcp_server *s, struct list *streams, uint64_t now_ms)
{
	uint64_t grace = s->deps.config->mcp_resume_ms;

	for (struct list *at = streams->next; at != streams;) {
		struct mcp_stream *t = LIST_ENTRY(at, struct mcp_stream, node);
		uint64_t age = now_ms - t->since_ms;

		at = at->next;
		if (t->http && !t->sse && age >= MCP_ANSWER_WAIT_MS)
			begin_sse(t);
		else if (!t->http && is_over(t) && age >= grace)
			mcp_stream_free(t);
		else if (!t->http && !t->is_common && age >= grace)
			cancel_all(t);
	}
}
