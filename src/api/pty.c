/* A terminal over a WebSocket: binary messages are its bytes, text messages control it. The
 * terminal is an execution like any other: it outlives the socket, and others may attach to it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/call.h"
#include "api/exec_look.h"
#include "api/execution_json.h"
#include "api/feed.h"
#include "api/handlers.h"
#include "api/problem.h"
#include "api/socket.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/signals.h"
#include "net/http.h"
#include "net/ws.h"
#include "sandbox/exec.h"
#include "sandbox/output.h"
#include "json/jv_decode.h"
#include "json/jw.h"

#define CONTROL_MAX (16u << 10) /* memory for one control message */
#define CLOSE_NORMAL 1000
#define CLOSE_FAILURE 1011

struct pty {
	struct call_stream base;
	struct api *api;
	struct ws *ws;
	struct execution *x;        /* held */
	struct exec_reader *reader; /* owned; NULL once all was read */
	struct feed *feed;          /* borrowed: input that waits to be taken */
	bool kill;                  /* the terminal ends with the socket */
};

static void pty_free(struct pty *p)
{
	call_stream_end(&p->base);
	exec_reader_close(p->reader);
	feed_leave(p->feed);
	exec_unref(p->x);
	free(p);
}

/* ---- to the client ---- */

static void send_start(struct pty *p)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);
	struct exec_info info;

	exec_info(p->x, &info);
	jw_object_begin(&w);
	jw_str_field(&w, "type", "start");
	jw_str_field(&w, "executionId", info.id);
	jw_object_end(&w);
	socket_send(p->ws, &w);
}

static void send_gap(struct pty *p, uint64_t omitted)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);

	jw_object_begin(&w);
	jw_str_field(&w, "type", "gap");
	jw_uint_field(&w, "omitted", omitted);
	jw_object_end(&w);
	socket_send(p->ws, &w);
}

static void send_exit(struct pty *p)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);
	struct exec_info info;

	exec_info(p->x, &info);
	jw_object_begin(&w);
	jw_str_field(&w, "type", "exit");
	execution_json_exit(&w, &info);
	jw_str_field(&w, "status", exec_status(&info));
	jw_object_end(&w);
	socket_send(p->ws, &w);
	ws_close(p->ws, CLOSE_NORMAL, "the terminal has ended");
}

static void pump(struct pty *p)
{
	while (p->reader && ws_pending(p->ws) < SOCKET_PENDING_HIGH) {
		struct output_chunk chunk;
		uint64_t omitted = 0;
		int r = exec_read(p->reader, &chunk, &omitted);

		if (r == 0)
			return;
		if (r < 0) {
			exec_reader_close(p->reader);
			p->reader = NULL;
			return send_exit(p);
		}
		if (omitted > 0)
			send_gap(p, omitted);
		if (ws_send_binary(p->ws, chunk.data, chunk.len) < 0)
			return ws_close(p->ws, CLOSE_FAILURE, "out of memory");
	}
}

static void readable(void *user)
{
	pump(user);
}

static void drained(void *user, struct ws *w)
{
	(void)w;
	pump(user);
}

/* ---- from the client ---- */

static void taken(void *user, int r)
{
	struct pty *p = user;

	(void)r;
	p->feed = NULL;
	ws_pause(p->ws, false);
}

static void on_bytes(struct pty *p, const void *data, size_t n)
{
	int r;

	if (n == 0)
		return;
	r = feed_start(p->api, p->x, data, n, false, taken, p, &p->feed);
	if (r == 0)
		ws_pause(p->ws, true);                /* the program does not read: neither do we */
	else if (r < 0 && r != -EPIPE && r != -ESRCH) /* one that is over says so by its exit */
		socket_send_error(p->ws, r == -EBUSY ? 409 : 503, NULL, "the input was not taken",
				  NULL);
}

enum control_type { CONTROL_RESIZE, CONTROL_SIGNAL, CONTROL_PING };

struct control {
	int type;
	uint32_t rows, cols;
	const char *signal;
	bool tree;
};

#define FIELD(name_, type_, member, ...)                                \
	{                                                               \
		.name = name_, .type = JV_TYPE_##type_,                 \
		.offset = offsetof(struct control, member), __VA_ARGS__ \
	}

static const char *const control_types[] = { "resize", "signal", "ping", NULL };
static const struct jv_field control_fields[] = {
	FIELD("type", CHOICE, type, .flags = JV_REQUIRED, .choices = control_types),
	FIELD("rows", U32, rows, .min = 1, .max = UINT16_MAX),
	FIELD("cols", U32, cols, .min = 1, .max = UINT16_MAX),
	FIELD("signal", STRING, signal, .min = 1, .max = 16),
	FIELD("tree", BOOL, tree),
};

static void on_control(struct pty *p, const struct control *c)
{
	int r = 0, signo;

	if (c->type == CONTROL_PING)
		return socket_send_pong(p->ws);
	if (c->type == CONTROL_RESIZE) {
		if (c->rows == 0 || c->cols == 0)
			return socket_send_error(p->ws, 400, c->rows ? "cols" : "rows",
						 "resize wants rows and cols", NULL);
		r = exec_resize(p->x, (uint16_t)c->rows, (uint16_t)c->cols);
	} else {
		signo = c->signal ? signal_from(c->signal) : 0;
		if (signo == 0)
			return socket_send_error(p->ws, 400, "signal",
						 "want a signal such as \"SIGINT\"", NULL);
		r = exec_signal(p->x, signo, c->tree);
	}
	if (r < 0)
		socket_send_error(p->ws, 409, NULL, "the terminal did not take it", NULL);
}

static void message(void *user, struct ws *w, bool text, const void *data, size_t n)
{
	struct pty *p = user;
	struct control c = { 0 };
	struct jv_doc *doc = NULL;
	struct arena *a;

	if (!text)
		return on_bytes(p, data, n);
	a = arena_create(CONTROL_MAX);
	if (!a)
		return ws_close(w, CLOSE_FAILURE, "out of memory");
	if (socket_decode(w, data, n, control_fields,
			  sizeof(control_fields) / sizeof(control_fields[0]), a, &c, &doc))
		on_control(p, &c);
	(void)jv_free(doc);
	(void)arena_free(a);
}

static void closed(void *user, struct ws *w, unsigned code, const char *reason)
{
	struct pty *p = user;

	(void)w;
	(void)code;
	(void)reason;
	if (p->kill)
		(void)exec_cancel(p->x);
	pty_free(p);
}

static void cut(struct call_stream *base)
{
	ws_close(LIST_ENTRY(base, struct pty, base)->ws, SOCKET_CLOSE_REFUSED, CALL_KEY_ENDED);
}

/* ---- beginning ---- */

/* Answers the call. is_new: nobody else knows of the terminal; without a socket it must not stay.
 */
static void attach(struct api_call *c, struct execution *x, bool is_new, bool kill)
{
	static const struct ws_ops ops = { message, drained, closed };
	static const struct ws_options options = {
		.message_max = SOCKET_MESSAGE_MAX,
		.low_water = SOCKET_PENDING_LOW,
	};
	struct pty *p = calloc(1, sizeof(*p));
	struct exec_info info;
	bool is_ready;

	exec_info(x, &info);
	if (!p)
		problem_reply(c, &(struct err){ ENOMEM, "terminal" });
	else
		p->base.cut = cut;
	is_ready = p && call_stream_begin(c, &p->base, "ws", info.sandbox_id);
	if (is_ready) {
		p->api = c->api;
		p->kill = kill;
		p->x = exec_ref(x);
		p->ws = ws_accept(c->http, &ops, p, &options);
	}
	if (!p || !p->ws) { /* answered */
		if (is_new)
			(void)exec_cancel(x);
		if (is_ready)
			return pty_free(p);
		return free(p);
	}
	send_start(p);
	p->reader = exec_reader_open(x, 0, readable, p);
	if (!p->reader)
		return ws_close(p->ws, CLOSE_FAILURE, "too many readers");
	pump(p);
}

struct opening { /* in the request's arena */
	struct api_call *call;
	bool kill;
};

static void started(void *user, struct execution *x, const struct err *err)
{
	struct opening *o = user;

	if (err)
		return problem_reply(o->call, err);
	attach(o->call, x, true, o->kill);
}

static void found(struct api_call *c, struct execution *x, const struct exec_info *info,
		  const struct output *output)
{
	const struct opening *o = c->body;

	(void)output;
	if (info->kind != EXECUTION_PTY)
		return problem_status(c, 409, "the execution has no terminal");
	if (!x)
		return problem_status(c, 409, "the terminal has ended");
	attach(c, x, false, o->kill);
}

static void start(struct api_call *c, struct opening *o)
{
	struct exec_request req = { .kind = EXECUTION_PTY, .cwd = "", .user = "" };
	uint64_t rows = 24, cols = 80;
	struct sandbox_info info;
	struct sandbox *sb;

	if (!call_query(c, "command", &req.command) || !call_query(c, "cwd", &req.cwd) ||
	    !call_query(c, "user", &req.user) || !call_query_u64(c, "rows", &rows) ||
	    !call_query_u64(c, "cols", &cols))
		return;
	req.rows = (uint16_t)rows;
	req.cols = (uint16_t)cols;
	req.trace = call_trace(c);
	sb = call_sandbox(c);
	if (!sb)
		return;
	sandbox_info(sb, &info);
	if (call_stream_may_begin(c, info.id))
		exec_start(sb, &req, started, o);
}

void api_pty(struct api_call *c)
{
	struct opening *o = arena_alloc(http_arena(c->http), sizeof(*o));
	const char *id = NULL;

	if (!o)
		return problem_reply(c, &(struct err){ ENOMEM, "terminal" });
	o->call = c;
	c->body = o;
	if (!call_query_bool(c, "kill", &o->kill) || !call_query(c, "execution", &id))
		return;
	/* Before anything is started: is this a WebSocket at all? The rest of the handshake is
	 * looked at when it is accepted. */
	if (!http_header(c->http, "Sec-WebSocket-Key")) {
		(void)http_header_add(c->http, "Upgrade", "websocket");
		return problem_status(c, 426, "this is a WebSocket");
	}
	if (id)
		exec_look_id(c, id, found);
	else
		start(c, o);
}
