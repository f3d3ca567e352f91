/* exec: a command, waited for. The execution belongs to its sandbox; the call only waits. */
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "config/config.h"
#include "sandbox/context.h"
#include "sandbox/exec.h"
#include "sandbox/output.h"
#include "tools/impl.h"
#include "tools/result.h"
#include "tools/running.h"

#define COMMAND_MAX (48u << 10) /* what goes to a box in one piece, with its environment */
#define PROGRESS_MS 1000u
#define LINE_SHOWN 200u

/* ---- waiting for an execution (running.h) ---- */

struct running { /* arena */
	struct tool_call *call;
	struct execution *x;      /* held; NULL: not yet, or let go */
	struct exec_wait *wait;   /* owned */
	struct loop_timer *timer; /* owned; NULL: nobody wants to know how it goes */
	uint64_t began_ms;
	void (*over)(void *arg); /* NULL: nobody wants to know, or has been told */
	void *arg;
};

static void let_go(struct running *run)
{
	run->timer = loop_timer_free(run->timer);
	if (run->wait)
		exec_unwait(TAKE(run->wait));
	if (run->x)
		exec_unref(TAKE(run->x));
	if (run->over)
		TAKE(run->over)(run->arg);
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

	if (err) {
		let_go(run);
		return tool_fail_err(t, err);
	}
	exec_info(x, &info);
	run->wait = exec_wait(x, ended, run);
	if (!run->wait) {
		(void)exec_cancel(x); /* nobody would ever hear of it */
		let_go(run);
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
	running_start_over(t, sb, req, NULL, NULL);
}

void running_start_over(struct tool_call *t, struct sandbox *sb, struct exec_request *req,
			void (*over)(void *arg), void *arg)
{
	struct running *run = arena_alloc(t->arena, sizeof(*run));

	if (!run) {
		if (over)
			over(arg);
		return tool_fail(t, "out of memory");
	}
	run->call = t;
	run->over = over;
	run->arg = arg;
	t->work = run;
	if (t->is_durable) { /* is in the store before anybody hears of it; and ends as any does */
		req->background = true;
		if (req->timeout_ms == 0)
			req->timeout_ms = t->all->deps.config->exec_timeout_ms;
	}
	exec_start(sb, req, started, run);
}

/* ---- the tool ---- */

struct args {
	const char *command, *working_dir, *session;
	uint64_t timeout_ms;
	struct jv_strings env;
};

/* A shell that goes on: bash in a context. */
static void run_in_session(struct tool_call *t, const struct args *a,
			   const struct exec_request *req)
{
	struct cell_wish wish = { .language = "bash",
				  .code = a->command,
				  .context_id = a->session,
				  .timeout_ms = a->timeout_ms,
				  .env = req->env,
				  .n_env = req->n_env };
	struct sandbox *sb;

	if (a->working_dir)
		return tool_fail(t, "working_dir: a session has its own: use cd in the command");
	sb = tool_box(t);
	if (sb)
		cell_start(t, sb, &wish);
}

static void run_exec(struct tool_call *t)
{
	const struct args *a = t->args;
	struct exec_request req = {
		.kind = EXECUTION_COMMAND,
		.command = a->command,
		.user = "",
		.cwd = "",
		.timeout_ms = a->timeout_ms,
	};
	struct sandbox *sb;

	if (!tool_env(t, &a->env, &req.env, &req.n_env))
		return;
	if (a->session)
		return run_in_session(t, a, &req);
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
		"Runs a command with bash in a sandbox and waits until it ends. The sandbox is an "
		"isolated Linux machine with bash and the usual command line tools, Python 3 and, "
		"where its template has them, Node.js and others; %" PRIu64
		" MiB of memory, no network (install_packages gets packages), and files in "
		"/workspace. Files stay from one call to the next; variables and the working "
		"directory stay only between calls with the same session. The command is ended "
		"with everything that it started after %" PRIu64
		" s, or after timeout_ms (at most %" PRIu64
		" s). For servers and other programs that keep running use process_start. Of each "
		"stream at most %" PRIu64
		" bytes are returned, the beginning and the end; the rest is in output_file in "
		"the sandbox.",
		c->limits.memory_bytes >> 20, c->exec_timeout_ms / 1000,
		c->exec_timeout_max_ms / 1000, c->mcp_output_bytes);
}

static void set_bounds(const struct tools *all, struct jv_field *fields, void *args)
{
	tools_bound_timeout(all, fields, &((struct args *)args)->timeout_ms);
}

static const struct jv_field in[] = {
	JV_FIELD("command", STRING, struct args, command, .flags = JV_REQUIRED, .min = 1,
		 .max = COMMAND_MAX, .help = "a line or a script for bash"),
	JV_FIELD("timeout_ms", U64, struct args, timeout_ms, .min = 1,
		 .help = "milliseconds after which the command is ended"),
	JV_FIELD("working_dir", STRING, struct args, working_dir, .min = 1,
		 .max = TOOL_PATH_MAX - 1,
		 .help = "directory in which the command runs. Default: /workspace"),
	TOOL_ENV_FIELD(args, env, "environment variables of this command"),
	JV_FIELD("session", STRING, struct args, session, .min = 1, .max = CONTEXT_NAME_MAX,
		 .help = "a name of your choice: commands with the same one run in one shell, "
			 "which keeps its working directory and variables"),
};

static const struct tool rows[] = {
	{ .name = "exec",
	  .title = "Run a command",
	  .about = "Runs a command with bash in a sandbox and waits until it ends.",
	  .describe = describe,
	  .set_bounds = set_bounds,
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
