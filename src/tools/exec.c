/* exec: a command, waited for. The execution belongs to its sandbox; the call only waits. */
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "config/config.h"
#include "sandbox/exec.h"
#include "sandbox/output.h"
#include "sandbox/pairs.h"
#include "tools/impl.h"
#include "tools/result.h"
#include "tools/running.h"

#define COMMAND_MAX (48u << 10) /* what goes to a box in one piece, with its environment */
#define ENV_VALUE_MAX (16u << 10)
#define PROGRESS_MS 1000u
#define LINE_SHOWN 200u

/* ---- waiting for an execution (running.h) ---- */

struct running { /* arena */
	struct tool_call *call;
	struct execution *x;      /* held; NULL: not yet, or let go */
	struct exec_wait *wait;   /* owned */
	struct loop_timer *timer; /* owned; NULL: nobody wants to know how it goes */
	uint64_t began_ms;
};

static void let_go(struct running *run)
{
	run->timer = loop_timer_free(run->timer);
	if (run->wait)
		exec_unwait(TAKE(run->wait));
	if (run->x)
		exec_unref(TAKE(run->x));
}

static void leave(struct tool_call *t)
{
	let_go(t->work);
}

/* Its end comes by itself then. */
static void cancel(struct tool_call *t)
{
	struct running *run = t->work;

	if (run->x)
		(void)exec_cancel(run->x);
}

static void ended(void *user, struct execution *x)
{
	struct running *run = user;
	struct tool_call *t = run->call;
	struct exec_info info;

	run->wait = NULL;
	t->cancel = NULL;
	t->leave = NULL;
	(void)exec_ref(x);
	let_go(run);
	exec_info(x, &info);
	result_tell(t, &info, exec_output(x));
	exec_unref(x);
}

/* The last line that is whole, of what is at the end. */
static void last_line(const struct execution *x, char *dst, size_t size)
{
	const struct output *o = exec_output(x);
	struct output_chunk chunk;
	uint64_t omitted, end = o ? output_end(o) : 0;
	const char *line, *stop;

	dst[0] = '\0';
	if (end == 0 || !output_read(o, end > LINE_SHOWN ? end - LINE_SHOWN : 0, &chunk, &omitted))
		return;
	stop = memrchr(chunk.data, '\n', chunk.len);
	if (!stop)
		return;
	line = memrchr(chunk.data, '\n', (size_t)(stop - chunk.data));
	line = line ? line + 1 : chunk.data;
	(void)str_format(dst, size, ": %.*s", (int)(stop - line), line);
}

static void tick(void *user)
{
	struct running *run = user;
	const struct output *o = exec_output(run->x);
	uint64_t ms = loop_now_ms(run->call->all->deps.loop) - run->began_ms;
	char line[LINE_SHOWN + 8], text[LINE_SHOWN + 80];

	last_line(run->x, line, sizeof(line));
	(void)str_format(text, sizeof(text), "%" PRIu64 " s, %" PRIu64 " bytes of output%s",
			 ms / 1000, o ? output_end(o) : 0, line);
	tool_progress(run->call, (double)ms / 1000, 0, text);
}

static void begin_ticking(struct running *run)
{
	struct loop *loop = run->call->all->deps.loop;

	run->began_ms = loop_now_ms(loop);
	if (!run->call->ops->progress || loop_timer_create(loop, tick, run, &run->timer) < 0)
		return;
	loop_timer_start(run->timer, PROGRESS_MS, PROGRESS_MS);
}

static void started(void *user, struct execution *x, const struct err *err)
{
	struct running *run = user;
	struct tool_call *t = run->call;
	struct exec_info info;

	if (err)
		return tool_fail_err(t, err);
	exec_info(x, &info);
	run->wait = exec_wait(x, ended, run);
	if (!run->wait) {
		(void)exec_cancel(x); /* nobody would ever hear of it */
		return tool_fail(t, "too many wait for executions of this sandbox");
	}
	run->x = exec_ref(x);
	(void)str_copy(t->execution_id, sizeof(t->execution_id), info.id);
	t->leave = leave;
	if (t->is_cancelled)
		return (void)exec_cancel(x);
	t->cancel = cancel;
	begin_ticking(run);
}

void running_start(struct tool_call *t, struct sandbox *sb, struct exec_request *req)
{
	struct running *run = arena_alloc(t->arena, sizeof(*run));

	if (!run)
		return tool_fail(t, "out of memory");
	run->call = t;
	t->work = run;
	if (t->is_durable) { /* is in the store before anybody hears of it; and ends as any does */
		req->background = true;
		if (req->timeout_ms == 0)
			req->timeout_ms = t->all->deps.config->exec_timeout_ms;
	}
	exec_start(sb, req, started, run);
}

bool running_times(struct tool_call *t, uint64_t timeout_ms)
{
	uint64_t max = t->all->deps.config->exec_timeout_max_ms;

	if (timeout_ms <= max)
		return true;
	tool_fail(t, "timeout_ms: want at most %" PRIu64 " (exec_timeout_max)", max);
	return false;
}

/* ---- the tool ---- */

struct args {
	const char *command, *working_dir;
	uint64_t timeout_ms;
	struct jv_pairs env;
};

static void run_exec(struct tool_call *t)
{
	const struct args *a = t->args;
	struct exec_request req = {
		.kind = EXECUTION_COMMAND,
		.command = a->command,
		.user = "",
		.cwd = "",
		.env = pairs_given(t->arena, &a->env),
		.n_env = a->env.len,
		.timeout_ms = a->timeout_ms,
	};
	struct sandbox *sb;

	if (!running_times(t, a->timeout_ms))
		return;
	if (req.n_env > 0 && !req.env)
		return tool_fail(t, "out of memory");
	if (a->working_dir)
		req.cwd = tool_path(t, a->working_dir);
	sb = req.cwd ? tool_box(t) : NULL;
	if (sb)
		running_start(t, sb, &req);
}

static void describe(struct tools *all, struct buf *ret)
{
	const struct config *c = all->deps.config;

	(void)buf_printf(
		ret,
		"Runs a command with bash in a sandbox (an isolated Linux machine) and waits for "
		"its end. Files stay from one call to the next; the shell's variables and working "
		"directory do not. It is ended with all that it started after %" PRIu64
		" s, or after timeout_ms (at most %" PRIu64
		" s); for servers and other things that go on use process_start. Of each stream "
		"at most %" PRIu64
		" bytes are told, head and tail; the rest is in output_file in the sandbox.",
		c->exec_timeout_ms / 1000, c->exec_timeout_max_ms / 1000, c->mcp_output_bytes);
}

static const struct jv_field in[] = {
	JV_FIELD("command", STRING, struct args, command, .flags = JV_REQUIRED, .min = 1,
		 .max = COMMAND_MAX, .help = "a line or a script for bash"),
	JV_FIELD("timeout_ms", U64, struct args, timeout_ms, .min = 1, .max = INT64_MAX,
		 .help = "milliseconds until it is ended"),
	JV_FIELD("working_dir", STRING, struct args, working_dir, .min = 1,
		 .max = TOOL_PATH_MAX - 1, .help = "where it runs: /workspace unless given"),
	JV_FIELD("env", PAIRS, struct args, env, .max = SANDBOX_ENV_MAX, .text_max = ENV_VALUE_MAX,
		 .help = "further environment variables"),
};

static const struct tool rows[] = {
	{ .name = "exec",
	  .title = "Run a command",
	  .about = "Runs a command with bash in a sandbox and waits for its end.",
	  .describe = describe,
	  .in = in,
	  .n_in = TOOL_ARRAY_LEN(in),
	  .size = sizeof(struct args),
	  .out = result_fields,
	  .n_out = RESULT_FIELDS,
	  .hints = TOOL_DESTRUCTIVE,
	  .flags = TOOL_IN_BOX | TOOL_LONG,
	  .scopes = SCOPE_EXEC,
	  .run = run_exec },
};
const struct tool_table tools_exec_table = { rows, TOOL_ARRAY_LEN(rows) };

/* ---- later ---- */

static void got(void *user, const struct exec_info *info, const struct output *output,
		const struct err *err)
{
	struct tool_call *t = user;

	if (err)
		return tool_fail(t, "there is no such execution");
	result_tell(t, info, output);
}

void tools_execution(struct tool_call *t, const char *sandbox_id, const char *execution_id)
{
	list_init(&t->asks);
	(void)str_copy(t->box_id, sizeof(t->box_id), sandbox_id);
	exec_get(t->all->deps.sandboxes, sandbox_id, tool_owner(t), execution_id, got, t);
}
