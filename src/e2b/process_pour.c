/* Process.StreamInput: a client's stream of input for one process, in its order. While the process
 * does not read, neither do we. */
#include <errno.h>
#include <string.h>

#include "api/call.h"
#include "api/feed.h"
#include "api/problem.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "e2b/handlers.h"
#include "e2b/process.h"
#include "e2b/process_input.h"
#include "e2b/rpc.h"
#include "net/http.h"
#include "sandbox/exec.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))
#define ROOM (256u << 10)                                  /* for what comes at once */
#define MESSAGE_MEMORY (4 * RPC_MESSAGE_MAX + (64u << 10)) /* for one, read and decoded */

struct pour { /* in the request's arena */
	struct api_call *call;
	struct buf in;       /* owned: not yet read */
	struct execution *x; /* held; NULL until the first message has named it */
	struct feed *feed;   /* borrowed: while it waits */
	bool is_over;        /* all of the body is here */
};

struct first {
	struct process_selector process;
};

struct more {
	struct process_bytes input;
};

struct message {
	struct first start;
	struct more data;
};

static const struct jv_field first_fields[] = {
	JV_FIELD("process", OBJECT, struct first, process, .flags = JV_REQUIRED,
		 .sub = process_selector_fields, .sub_count = PROCESS_SELECTOR_COUNT),
};
static const struct jv_field more_fields[] = {
	JV_FIELD("input", OBJECT, struct more, input, .flags = JV_REQUIRED,
		 .sub = process_bytes_fields, .sub_count = PROCESS_BYTES_COUNT),
};
static const struct jv_field message_fields[] = {
	JV_FIELD("start", OBJECT, struct message, start, .sub = first_fields,
		 .sub_count = COUNT(first_fields)),
	JV_FIELD("data", OBJECT, struct message, data, .sub = more_fields,
		 .sub_count = COUNT(more_fields)),
};

static void let_go(struct pour *p)
{
	feed_leave(p->feed);
	p->feed = NULL;
	exec_unref(p->x);
	p->x = NULL;
	buf_done(&p->in);
}

static void gone(void *user, struct http_request *r)
{
	(void)r;
	let_go(user);
}

static void advance(struct pour *p);

static void taken(void *user, int r)
{
	struct pour *p = user;

	p->feed = NULL;
	if (r < 0) {
		let_go(p);
		return process_fail_input(p->call, r);
	}
	http_body_pause(p->call->http, false);
	advance(p);
}

/* Each of these: false: answered. */
static bool pour_bytes(struct pour *p, const struct more *m, struct arena *a)
{
	struct str bytes;
	int r;

	if (!process_take_bytes(p->call, a, p->x, &m->input, &bytes))
		return false;
	r = feed_start(p->call->api, p->x, bytes.data, bytes.len, false, taken, p, &p->feed);
	if (r < 0) {
		process_fail_input(p->call, r);
		return false;
	}
	if (r == 0)
		http_body_pause(p->call->http, true);
	return true;
}

static bool take_message(struct pour *p, struct jv root, struct arena *a)
{
	struct jv_problem problem = { 0 };
	struct message m = { 0 };
	int r = jv_decode_known(root, message_fields, COUNT(message_fields), a, &m, &problem);

	if (r == 0 && jv_kind(jv_get(root, "start")) == JV_OBJECT && !p->x) {
		p->x = process_running(p->call, &m.start.process);
		if (p->x)
			(void)exec_ref(p->x);
		return p->x != NULL;
	}
	if (r == 0 && jv_kind(jv_get(root, "data")) == JV_OBJECT && p->x)
		return pour_bytes(p, &m.data, a);
	if (r == 0 && jv_kind(jv_get(root, "keepalive")) == JV_OBJECT)
		return true;
	rpc_fail(p->call, r == -ENOMEM ? CONNECT_UNAVAILABLE : CONNECT_INVALID_ARGUMENT, "%s",
		 r == 0 ? "want one start, and data behind it" : problem.text);
	return false;
}

static bool take(struct pour *p, const struct connect_envelope *e)
{
	struct arena *a = arena_create(MESSAGE_MEMORY);
	struct jv_doc *doc = NULL;
	struct err err = { 0 };
	bool is_good = false;

	if (!a)
		rpc_fail(p->call, CONNECT_UNAVAILABLE, "out of memory");
	else if (jv_parse(e->data, e->len, RPC_MESSAGE_MAX, &doc, &err) < 0)
		rpc_fail(p->call, CONNECT_INVALID_ARGUMENT, "the message: %s", err.text);
	else
		is_good = take_message(p, jv_root(doc), a);
	(void)jv_free(doc);
	(void)arena_free(a);
	return is_good;
}

static void finish(struct pour *p)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct api_call *c = p->call;
	size_t at = connect_begin(&b);
	bool is_whole = p->in.len == 0;

	let_go(p);
	if (!is_whole)
		return rpc_fail(c, CONNECT_INVALID_ARGUMENT, "the last message is not whole");
	if (buf_puts(&b, "{}") < 0 || connect_finish(&b, at) < 0 ||
	    connect_put_end(&b, CONNECT_OK, NULL) < 0)
		return rpc_fail(c, CONNECT_UNAVAILABLE, "out of memory");
	rpc_begin(c);
	(void)http_write(c->http, b.data, b.len);
	http_end(c->http);
}

/* Reads on until it has to wait. p may be gone afterwards. */
static void advance(struct pour *p)
{
	while (!p->feed) {
		struct connect_envelope e = { 0 };
		ssize_t n = connect_next(p->in.data, p->in.len, RPC_MESSAGE_MAX, &e);

		if (n == 0)
			break;
		if (n < 0 || e.is_end) {
			let_go(p);
			return rpc_fail(p->call, CONNECT_INVALID_ARGUMENT,
					"the body is not a run of messages in envelopes");
		}
		if (!take(p, &e))
			return let_go(p);
		buf_drop(&p->in, (size_t)n);
	}
	if (!p->feed && p->is_over)
		finish(p);
}

static void on_data(void *user, struct http_request *r, const char *data, size_t n)
{
	struct pour *p = user;

	(void)r;
	if (buf_append(&p->in, data, n) < 0) {
		let_go(p);
		return rpc_fail(p->call, CONNECT_RESOURCE_EXHAUSTED, "too much at once");
	}
	if (!p->feed)
		advance(p);
}

static void on_end(void *user, struct http_request *r)
{
	struct pour *p = user;

	(void)r;
	p->is_over = true;
	advance(p);
}

static void on_cut(void *user, struct http_request *r)
{
	(void)user; /* gone() has seen to it */
	(void)r;
}

void e2b_process_stream_input(struct api_call *c)
{
	static const struct http_body_ops ops = { on_data, on_end, on_cut };
	struct pour *p = arena_alloc(http_arena(c->http), sizeof(*p));

	if (!rpc_takes(c, CONNECT_STREAM))
		return;
	if (!p)
		return rpc_fail(c, CONNECT_UNAVAILABLE, "out of memory");
	p->call = c;
	buf_init(&p->in, RPC_MESSAGE_MAX + CONNECT_HEAD + ROOM);
	http_on_gone(c->http, gone, p);
	http_body_stream(c->http, &ops, p);
}
