/* What is said to a process while it runs: Process.SendInput, CloseStdin, SendSignal, Update. */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "api/call.h"
#include "api/feed.h"
#include "api/problem.h"
#include "base/arena.h"
#include "base/encode.h"
#include "base/err.h"
#include "e2b/handlers.h"
#include "e2b/process.h"
#include "e2b/process_input.h"
#include "e2b/rpc.h"
#include "loop/loop.h"
#include "net/http.h"
#include "sandbox/exec.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))
#define METHOD(struct_, fields_, handle_)                                          \
	{                                                                          \
		.kind = CONNECT_UNARY, .fields = fields_, .count = COUNT(fields_), \
		.size = sizeof(struct_), .handle = handle_                         \
	}
#define KILL_MS 5000u /* for a process to be gone */
#define PROCESS(struct_)                                                    \
	JV_FIELD("process", OBJECT, struct_, process, .flags = JV_REQUIRED, \
		 .sub = process_selector_fields, .sub_count = PROCESS_SELECTOR_COUNT)

/* ---- input ---- */

struct input {
	struct process_selector process;
	struct process_bytes input;
	/* Not of the message: */
	struct feed *feed; /* borrowed: while it waits */
	struct api_call *call;
	bool is_close;
};

static const struct jv_field input_fields[] = {
	PROCESS(struct input),
	JV_FIELD("input", OBJECT, struct input, input, .flags = JV_REQUIRED,
		 .sub = process_bytes_fields, .sub_count = PROCESS_BYTES_COUNT),
};

static void taken(void *user, int r)
{
	struct input *in = user;

	if (r >= 0 || (in->is_close && (r == -EPIPE || r == -ESRCH)))
		return rpc_reply_empty(in->call);
	process_fail_input(in->call, r);
}

static void input_gone(void *user, struct http_request *r)
{
	struct input *in = user;

	(void)r;
	feed_leave(in->feed);
}

static void feed(struct input *in, struct execution *x, const void *data, size_t n)
{
	int r = feed_start(in->call->api, x, data, n, in->is_close, taken, in, &in->feed);

	if (r == 0)
		http_on_gone(in->call->http, input_gone, in);
	else
		taken(in, r);
}

static void send_input(struct api_call *c)
{
	struct input *in = c->body;
	struct execution *x = process_running(c, &in->process);
	struct str bytes;

	in->call = c;
	if (x && process_take_bytes(c, http_arena(c->http), x, &in->input, &bytes))
		feed(in, x, bytes.data, bytes.len);
}

void e2b_process_send_input(struct api_call *c)
{
	static const struct rpc_method method = METHOD(struct input, input_fields, send_input);

	rpc_take(c, &method);
}

static const struct jv_field close_fields[] = {
	PROCESS(struct input),
};

static void close_stdin(struct api_call *c)
{
	struct input *in = c->body;
	struct execution *x = process_running(c, &in->process);
	struct exec_info info;

	if (!x)
		return;
	in->call = c;
	in->is_close = true;
	exec_info(x, &info);
	if (info.kind == EXECUTION_PTY)
		return rpc_fail(c, CONNECT_INTERNAL,
				"a terminal has no stdin to close: send Ctrl+D (0x04) instead");
	feed(in, x, NULL, 0);
}

void e2b_process_close_stdin(struct api_call *c)
{
	static const struct rpc_method method = METHOD(struct input, close_fields, close_stdin);

	rpc_take(c, &method);
}

/* ---- signals and size ---- */

struct control {
	struct process_selector process;
	struct jv signal, pty;
};

static const struct jv_field signal_fields[] = {
	PROCESS(struct control),
	JV_FIELD("signal", VALUE, struct control, signal),
};

static const struct jv_field update_fields[] = {
	PROCESS(struct control),
	JV_FIELD("pty", VALUE, struct control, pty),
};

/* 0: none that there is. */
static int signal_of(struct jv v)
{
	const char *name = jv_text(v);
	int64_t number = 0;

	if (name && strcmp(name, "SIGNAL_SIGTERM") == 0)
		return SIGTERM;
	if (name && strcmp(name, "SIGNAL_SIGKILL") == 0)
		return SIGKILL;
	if (jv_i64(v, &number) == 0 && (number == SIGTERM || number == SIGKILL))
		return (int)number;
	return 0;
}

/* The services' plain results. */
static void reply_result(struct api_call *c, int r, const struct process_selector *s)
{
	struct err err = { 0 };

	if (r == 0)
		return rpc_reply_empty(c);
	if (r == -ESRCH || r == -EPIPE)
		return rpc_fail(c, CONNECT_NOT_FOUND, "process with pid %u not found", s->pid);
	if (r == -ENOTTY)
		return rpc_fail(c, CONNECT_INTERNAL, "the process has no terminal");
	(void)err_sys(&err, r, "process");
	problem_reply(c, &err);
}

/* ---- a kill is answered when it is done ---- */

struct killing { /* in the request's arena */
	struct api_call *call;
	struct execution *x;      /* held */
	struct exec_wait *wait;   /* owned; NULL once it has called */
	struct loop_timer *timer; /* owned */
};

static void killing_done(struct killing *k)
{
	if (k->wait)
		exec_unwait(k->wait);
	k->wait = NULL;
	k->timer = loop_timer_free(k->timer);
	exec_unref(k->x);
}

static void killing_gone(void *user, struct http_request *r)
{
	(void)r;
	killing_done(user);
}

/* A process that the kernel does not let go was killed all the same. */
static void killing_late(void *user)
{
	struct killing *k = user;

	killing_done(k);
	rpc_reply_empty(k->call);
}

static void killed(void *user, struct execution *x)
{
	struct killing *k = user;

	(void)x;
	k->wait = NULL;
	killing_late(k);
}

/* Clients look for the process as soon as they are answered, and want to find none. */
static void reply_killed(struct api_call *c, struct execution *x)
{
	struct killing *k = arena_alloc(http_arena(c->http), sizeof(*k));

	if (!k)
		return rpc_reply_empty(c);
	k->call = c;
	k->x = exec_ref(x);
	k->wait = exec_wait(x, killed, k);
	if (!k->wait || loop_timer_create(c->api->deps.loop, killing_late, k, &k->timer) < 0) {
		killing_done(k);
		return rpc_reply_empty(c);
	}
	http_on_gone(c->http, killing_gone, k);
	loop_timer_start(k->timer, KILL_MS, 0);
}

/* What it has started goes with it: a shell that is ended alone leaves its command behind. */
static void send_signal(struct api_call *c)
{
	const struct control *k = c->body;
	int signo = signal_of(k->signal), r;
	struct execution *x;

	if (signo == 0)
		return rpc_fail(c, CONNECT_UNIMPLEMENTED,
				"signal: want SIGNAL_SIGTERM or SIGNAL_SIGKILL");
	x = process_running(c, &k->process);
	if (!x)
		return;
	r = exec_signal(x, signo, true);
	if (r == 0 && signo == SIGKILL)
		return reply_killed(c, x);
	reply_result(c, r, &k->process);
}

void e2b_process_send_signal(struct api_call *c)
{
	static const struct rpc_method method = METHOD(struct control, signal_fields, send_signal);

	rpc_take(c, &method);
}

static void update(struct api_call *c)
{
	const struct control *k = c->body;
	struct execution *x = process_running(c, &k->process);
	uint16_t rows, cols;

	if (!x)
		return;
	if (jv_kind(k->pty) != JV_OBJECT)
		return rpc_reply_empty(c); /* there is nothing else to change */
	if (!process_size(k->pty, &rows, &cols))
		return rpc_fail(c, CONNECT_INVALID_ARGUMENT, "pty.size: want at most %u",
				UINT16_MAX);
	reply_result(c, exec_resize(x, rows, cols), &k->process);
}

void e2b_process_update(struct api_call *c)
{
	static const struct rpc_method method = METHOD(struct control, update_fields, update);

	rpc_take(c, &method);
}
