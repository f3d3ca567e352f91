/* Executions over a WebSocket, several at once: JSON messages both ways. */
#include "api/stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/bodies.h"
#include "api/call.h"
#include "api/exec_plan.h"
#include "api/execution_json.h"
#include "api/handlers.h"
#include "api/limits.h"
#include "api/problem.h"
#include "api/socket.h"
#include "api/text.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "net/http.h"
#include "net/ws.h"
#include "sandbox/exec.h"
#include "sandbox/output.h"
#include "sandbox/sandbox.h"
#include "json/jv_decode.h"
#include "json/jw.h"

#define RUNS_MAX 16
#define RUN_ID_MAX 64
#define MESSAGE_MEMORY (4u << 20) /* for decoding one message */
#define CLOSE_UNSUPPORTED 1003
#define CLOSE_FAILURE 1011

struct socket {
	struct call_stream base;
	struct api *api;
	struct ws *ws;
	const char *owner;                 /* the request's: NULL: anybody's */
	const struct trace_context *trace; /* the request's, too; NULL: no tracing */
	struct list runs;                  /* struct run, owned */
	unsigned n_runs;
};

struct run {
	struct list node;        /* socket->runs; api->orphans when the socket is gone */
	struct socket *socket;   /* NULL: gone */
	char id[RUN_ID_MAX + 1]; /* the client's name of it; "": not yet known */
	struct execution *x;     /* held; NULL: being started */
	struct exec_reader *reader;
	struct text_tail tails[2];
	bool cancel; /* as soon as it has started */
	bool cancel_on_disconnect;
};

static void run_free(struct run *run)
{
	list_remove(&run->node);
	if (run->socket)
		run->socket->n_runs--;
	exec_reader_close(run->reader);
	if (run->x)
		exec_unref(run->x);
	free(run);
}

void stream_forget(struct api *api)
{
	while (!list_is_empty(&api->orphans))
		run_free(LIST_ENTRY(api->orphans.next, struct run, node));
}

static struct run *find_run(struct socket *s, const char *id)
{
	LIST_FOREACH (&s->runs, run, struct run, node)
		if (strcmp(run->id, id) == 0)
			return run;
	return NULL;
}

/* ---- to the client ---- */

static struct jw begin_message(struct buf *b, const char *type, const struct run *run)
{
	struct jw w = jw_begin(b);

	jw_object_begin(&w);
	jw_str_field(&w, "type", type);
	jw_str_field(&w, "executionId", run->id);
	return w;
}

static void send_output(struct run *run, int stream, const char *data, size_t n)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = begin_message(&b, "output", run);

	jw_str_field(&w, "stream", stream_name(stream));
	jw_key(&w, "content");
	jw_string_n(&w, data, n);
	jw_object_end(&w);
	socket_send(run->socket->ws, &w);
}

static void send_gap(struct run *run, uint64_t omitted)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = begin_message(&b, "gap", run);

	run->tails[0].len = run->tails[1].len = 0;
	jw_uint_field(&w, "omitted", omitted);
	jw_object_end(&w);
	socket_send(run->socket->ws, &w);
}

static void send_start(struct run *run, const struct exec_info *info)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = begin_message(&b, "execution_start", run);

	jw_str_field(&w, "id", info->id);
	jw_iso_field(&w, "startedAt", info->started_ms);
	jw_object_end(&w);
	socket_send(run->socket->ws, &w);
}

static void send_complete(struct run *run)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct exec_info info;
	struct jw w;

	for (int i = 0; i < 2; i++)
		if (run->tails[i].len > 0)
			send_output(run, i + 1, run->tails[i].data, run->tails[i].len);
	exec_info(run->x, &info);
	w = begin_message(&b, "execution_complete", run);
	jw_str_field(&w, "id", info.id);
	execution_json_result(&w, &info);
	jw_object_end(&w);
	socket_send(run->socket->ws, &w);
}

static void send_chunk(struct run *run, const struct output_chunk *chunk)
{
	_cleanup_(buf_done) struct buf text = { 0 };

	if (text_feed(&run->tails[chunk->stream == 2], chunk->data, chunk->len, &text) < 0)
		return ws_close(run->socket->ws, CLOSE_FAILURE, "out of memory");
	if (text.len > 0)
		send_output(run, chunk->stream, text.data, text.len);
}

/* The run may be gone afterwards. */
static void pump(struct run *run)
{
	while (run->reader && ws_pending(run->socket->ws) < SOCKET_PENDING_HIGH) {
		struct output_chunk chunk;
		uint64_t omitted = 0;
		int r = exec_read(run->reader, &chunk, &omitted);

		if (r == 0)
			return;
		if (r < 0) {
			send_complete(run);
			return run_free(run);
		}
		if (omitted > 0)
			send_gap(run, omitted);
		send_chunk(run, &chunk);
	}
}

static void readable(void *user)
{
	pump(user);
}

static void drained(void *user, struct ws *w)
{
	struct socket *s = user;

	(void)w;
	LIST_FOREACH (&s->runs, run, struct run, node)
		pump(run);
}

/* ---- executing ---- */

static void started(void *user, struct execution *x, const struct err *err)
{
	struct run *run = user;
	struct exec_info info;

	if (err && run->socket)
		socket_send_refusal(run->socket->ws, err, run->id[0] ? run->id : NULL);
	if (!err && (run->cancel || (!run->socket && run->cancel_on_disconnect)))
		(void)exec_cancel(x);
	if (err || !run->socket)
		return run_free(run);
	exec_info(x, &info);
	run->x = exec_ref(x);
	if (!run->id[0])
		(void)str_copy(run->id, sizeof(run->id), info.id);
	run->reader = exec_reader_open(x, 0, readable, run);
	if (!run->reader) {
		socket_send_error(run->socket->ws, 503, NULL, "its output cannot be read", run->id);
		return run_free(run);
	}
	send_start(run, &info);
	pump(run);
}

enum message_type { MESSAGE_EXECUTE, MESSAGE_CANCEL, MESSAGE_PING };

struct message {
	int type;
	const char *id;
	struct body_exec exec; /* exec.type is the mode */
};

#define FIELD(name_, type_, member, ...)                                \
	{                                                               \
		.name = name_, .type = JV_TYPE_##type_,                 \
		.offset = offsetof(struct message, member), __VA_ARGS__ \
	}

static const char *const message_types[] = { "execute", "cancel", "ping", NULL };
static const char *const modes[] = { "code", "command", NULL };
static const struct jv_field message_fields[] = {
	FIELD("type", CHOICE, type, .flags = JV_REQUIRED, .choices = message_types),
	FIELD("executionId", STRING, id, .min = 1, .max = RUN_ID_MAX),
	FIELD("mode", CHOICE, exec.type, .choices = modes),
	FIELD("language", STRING, exec.language, .flags = JV_NULLABLE, .max = 32),
	FIELD("content", STRING, exec.content, .min = 1, .max = SOCKET_MESSAGE_MAX),
	FIELD("timeout", DURATION, exec.timeout_ms, .flags = JV_NULLABLE, .min = 1,
	      .max = INT64_MAX),
	FIELD("cwd", STRING, exec.cwd, .flags = JV_NULLABLE),
	FIELD("env", PAIRS, exec.env, .flags = JV_NULLABLE, .max = SANDBOX_ENV_MAX,
	      .text_max = SOCKET_MESSAGE_MAX),
	FIELD("cancelOnDisconnect", BOOL, exec.cancel_on_disconnect),
};

static struct run *run_create(struct socket *s, const struct message *m)
{
	struct run *run = calloc(1, sizeof(*run));

	if (!run)
		return NULL;
	run->socket = s;
	if (m->id)
		(void)str_copy(run->id, sizeof(run->id), m->id); /* fits: RUN_ID_MAX */
	run->cancel_on_disconnect = m->exec.cancel_on_disconnect;
	list_push_back(&s->runs, &run->node);
	s->n_runs++;
	return run;
}

static void on_execute(struct socket *s, const struct message *m, struct arena *a)
{
	struct jv_problem problem = { 0 };
	struct bucket_state rate;
	struct exec_plan plan;
	struct sandbox *sb = sandboxes_find(s->api->deps.sandboxes, s->base.sandbox_id, s->owner);
	struct run *run;
	int r;

	if (!m->exec.content || m->exec.type < 0)
		return socket_send_error(s->ws, 400, m->exec.content ? "mode" : "content",
					 "execute wants mode and content", m->id);
	if (m->id && find_run(s, m->id))
		return socket_send_error(s->ws, 409, "executionId", "it is in use", m->id);
	if (s->n_runs >= RUNS_MAX)
		return socket_send_error(s->ws, 429, NULL, "too many run on this socket", m->id);
	r = exec_plan(&m->exec, s->api->deps.config, a, &plan, &problem);
	if (r == -EINVAL)
		return socket_send_error(s->ws, 400, problem.field, problem.text, m->id);
	if (!sb)
		return socket_send_error(s->ws, 404, NULL, "the sandbox has ended", m->id);
	if (!limits_take(s->api, s->base.key_id, s->base.owner, RATE_EXEC, &rate))
		return socket_send_error(s->ws, 429, NULL, "too many executions of this key",
					 m->id);
	run = r == 0 ? run_create(s, m) : NULL;
	if (!run)
		return socket_send_error(s->ws, 503, NULL, "out of memory", m->id);
	sandbox_touch(sb);
	plan.req.trace = s->trace;
	exec_start(sb, &plan.req, started, run);
}

static void on_cancel(struct socket *s, const struct message *m)
{
	struct run *run = m->id ? find_run(s, m->id) : NULL;

	if (!run)
		return socket_send_error(s->ws, 404, "executionId", "no such execution runs here",
					 m->id);
	run->cancel = true;
	if (run->x)
		(void)exec_cancel(run->x);
}

static void on_message(void *user, struct ws *w, bool text, const void *data, size_t n)
{
	struct socket *s = user;
	struct message m = { .exec.type = -1 };
	struct jv_doc *doc = NULL;
	struct arena *a;

	if (!text)
		return ws_close(w, CLOSE_UNSUPPORTED, "want JSON text");
	a = arena_create(MESSAGE_MEMORY);
	if (!a)
		return ws_close(w, CLOSE_FAILURE, "out of memory");
	if (socket_decode(w, data, n, message_fields,
			  sizeof(message_fields) / sizeof(message_fields[0]), a, &m, &doc)) {
		if (m.type == MESSAGE_EXECUTE)
			on_execute(s, &m, a);
		else if (m.type == MESSAGE_CANCEL)
			on_cancel(s, &m);
		else
			socket_send_pong(w);
	}
	(void)jv_free(doc);
	(void)arena_free(a);
}

/* ---- the socket ---- */

static void closed(void *user, struct ws *w, unsigned code, const char *reason)
{
	struct socket *s = user;

	(void)w;
	(void)code;
	(void)reason;
	LIST_FOREACH (&s->runs, run, struct run, node) {
		if (run->x && run->cancel_on_disconnect)
			(void)exec_cancel(run->x);
		if (run->x) {
			run_free(run);
			continue;
		}
		run->socket = NULL; /* started() frees it */
		list_remove(&run->node);
		list_push_back(&s->api->orphans, &run->node);
	}
	call_stream_end(&s->base);
	free(s);
}

static void cut(struct call_stream *base)
{
	ws_close(LIST_ENTRY(base, struct socket, base)->ws, SOCKET_CLOSE_REFUSED, CALL_KEY_ENDED);
}

void api_stream(struct api_call *c)
{
	static const struct ws_ops ops = { on_message, drained, closed };
	static const struct ws_options options = {
		.message_max = SOCKET_MESSAGE_MAX,
		.low_water = SOCKET_PENDING_LOW,
	};
	struct sandbox *sb = call_sandbox(c);
	struct sandbox_info info;
	struct socket *s;

	if (!sb)
		return;
	s = calloc(1, sizeof(*s));
	if (!s)
		return problem_reply(c, &(struct err){ ENOMEM, "stream" });
	s->base.cut = cut;
	sandbox_info(sb, &info);
	if (!call_stream_begin(c, &s->base, "ws", info.id))
		return free(s);
	s->api = c->api;
	s->owner = call_owner(c); /* in the request's arena, which stays with the socket */
	s->trace = call_trace(c);
	list_init(&s->runs);
	s->ws = ws_accept(c->http, &ops, s, &options);
	if (s->ws)
		return;
	call_stream_end(&s->base);
	free(s);
}
