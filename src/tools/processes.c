/* process_start, process_input, process_kill, process_list: executions that nobody
 * waits for. A process is named by its execution. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/signals.h"
#include "base/str.h"
#include "sandbox/exec.h"
#include "tools/impl.h"
#include "tools/process.h"
#include "json/jw.h"

#define COMMAND_MAX (48u << 10) /* what goes to a box in one piece */
#define COMMAND_SHOWN 200u
#define LIST_MAX 50u

/* ---- what is told of one ---- */

void process_write(struct jw *w, const struct exec_info *info)
{
	bool is_exited = info->state == EXECUTION_EXITED;

	jw_str_field(w, "process_id", info->id);
	jw_str_field(w, "status", exec_status(info));
	jw_bool_field(w, "running", info->state == EXECUTION_RUNNING);
	if (is_exited)
		jw_int_field(w, "exit_code", info->signal ? 128 + info->signal : info->exit_code);
	else
		jw_null_field(w, "exit_code");
	if (info->pid > 0)
		jw_uint_field(w, "pid", info->pid);
	if (info->reason && info->reason[0] != '\0')
		jw_str_field(w, "reason", info->reason);
}

static void tell_state(struct tool_call *t, const struct exec_info *info)
{
	struct jw w = jw_begin(&t->structured);

	jw_object_begin(&w);
	process_write(&w, info);
	jw_str_field(&w, "sandbox_id", t->box_id);
	jw_object_end(&w);
	tool_end(t, &w);
}

/* The live one; NULL after tool_fail(). */
static struct execution *find(struct tool_call *t, const char *id)
{
	struct sandbox *sb = tool_box(t);
	struct execution *x;

	if (!sb)
		return NULL;
	x = exec_find(sb, id);
	if (!x)
		tool_fail(t, "there is no process '%.32s' that runs", id);
	return x;
}

/* ---- process_start ---- */

struct start_args {
	const char *command, *working_dir;
	struct jv_strings env;
	uint64_t timeout_ms;
	bool has_stdin;
};

static void started(void *user, struct execution *x, const struct err *err)
{
	struct tool_call *t = user;
	struct exec_info info;

	if (err)
		return tool_fail_err(t, err);
	if (t->is_cancelled) {
		(void)exec_cancel(x);
		return tool_fail(t, "cancelled");
	}
	exec_info(x, &info);
	tell_state(t, &info);
}

static void run_start(struct tool_call *t)
{
	const struct start_args *a = t->args;
	struct exec_request req = {
		.kind = EXECUTION_COMMAND,
		.command = a->command,
		.user = "",
		.cwd = "",
		.timeout_ms = a->timeout_ms,
		.has_stdin = a->has_stdin,
		.background = true,
	};
	struct sandbox *sb;

	if (!tool_env(t, &a->env, &req.env, &req.n_env))
		return;
	if (a->working_dir)
		req.cwd = tool_path(t, a->working_dir);
	sb = req.cwd ? tool_box(t) : NULL;
	if (sb)
		exec_start(sb, &req, started, t);
}

static const struct jv_field start_in[] = {
	JV_FIELD("command", STRING, struct start_args, command, .flags = JV_REQUIRED, .min = 1,
		 .max = COMMAND_MAX, .help = "a line or a script for bash"),
	JV_FIELD("working_dir", STRING, struct start_args, working_dir, .min = 1,
		 .max = TOOL_PATH_MAX - 1,
		 .help = "directory in which the command runs. Default: /workspace"),
	TOOL_ENV_FIELD(start_args, env, "environment variables of this process"),
	JV_FIELD("timeout_ms", U64, struct start_args, timeout_ms, .min = 1,
		 .help = "milliseconds after which the process is ended. Default: never"),
	JV_FIELD("stdin", BOOL, struct start_args, has_stdin,
		 .help = "keeps its standard input open, for process_input"),
};

/* ---- process_input ---- */

struct input_args {
	const char *process_id, *text;
	bool end;
};

static void run_input(struct tool_call *t)
{
	const struct input_args *a = t->args;
	struct execution *x = find(t, a->process_id);
	size_t n = a->text ? strlen(a->text) : 0;
	struct exec_info info;
	int r = 0;

	if (!x)
		return;
	if (n > 0)
		r = exec_stdin(x, a->text, n);
	if (r == 0 && a->end)
		r = exec_stdin_end(x);
	if (r == -EPIPE)
		return tool_fail(t, "its standard input is not open: start it with stdin, and do "
				    "not end it before");
	if (r == -EAGAIN)
		return tool_fail(t, "it has not yet taken what it was sent before: try again");
	if (r < 0)
		return tool_fail(t, "text: %s", strerror(-r));
	exec_info(x, &info);
	tell_state(t, &info);
}

static const struct jv_field input_in[] = {
	PROCESS_ID(input_args),
	JV_FIELD("text", STRING, struct input_args, text, .max = EXEC_STDIN_MAX,
		 .help = "what it is to read; the end of a line must be in it"),
	JV_FIELD("end", BOOL, struct input_args, end, .help = "nothing follows: end of file"),
};

/* ---- process_kill ---- */

struct kill_args {
	const char *process_id, *signal;
};

struct kill { /* arena */
	struct tool_call *call;
	struct execution *x;    /* held */
	struct exec_wait *wait; /* owned */
};

static void kill_done(struct kill *k)
{
	if (k->wait)
		exec_unwait(TAKE(k->wait));
	exec_unref(TAKE(k->x));
}

static void cancel_kill(struct tool_call *t)
{
	kill_done(t->work);
	tool_cancel_soon(t);
}

static void killed(void *user, struct execution *x)
{
	struct kill *k = user;
	struct tool_call *t = k->call;
	struct exec_info info;

	k->wait = NULL;
	exec_info(x, &info);
	tell_state(t, &info);
	exec_unref(x); /* k went with the call */
}

static void end_tree(struct tool_call *t, struct execution *x)
{
	struct kill *k = arena_alloc(t->arena, sizeof(*k));
	int r = k ? exec_cancel(x) : -ENOMEM;

	if (r < 0)
		return tool_fail(t, "it could not be ended: %s", strerror(-r));
	k->call = t;
	k->x = exec_ref(x);
	k->wait = exec_wait(x, killed, k);
	if (!k->wait) {
		kill_done(k);
		return tool_fail(t, "it is being ended, but too many wait for that");
	}
	t->work = k;
	t->cancel = cancel_kill;
}

static void run_kill(struct tool_call *t)
{
	const struct kill_args *a = t->args;
	int number = a->signal ? signal_from(a->signal) : 0;
	struct execution *x;
	struct exec_info info;
	int r;

	if (a->signal && number == 0)
		return tool_fail(t, "signal: there is no '%.32s'", a->signal);
	x = find(t, a->process_id);
	if (!x)
		return;
	exec_info(x, &info);
	if (info.state != EXECUTION_RUNNING)
		return tell_state(t, &info);
	if (number == 0)
		return end_tree(t, x);
	r = exec_signal(x, number, true);
	if (r < 0)
		return tool_fail(t, "signal: %s", strerror(-r));
	tell_state(t, &info);
}

static const struct jv_field kill_in[] = {
	PROCESS_ID(kill_args),
	JV_FIELD("signal", STRING, struct kill_args, signal, .min = 1, .max = 16,
		 .help = "sends this to all that it started, such as SIGINT; without it all of "
			 "it is ended: SIGTERM, then SIGKILL"),
};

/* ---- process_list ---- */

static void write_command(struct jw *w, const char *content)
{
	struct jv_doc *doc = NULL;
	struct str text = { 0 };
	size_t n = content ? strlen(content) : 0;

	if (n > 0 && jv_parse(content, n, n, &doc, NULL) == 0 &&
	    jv_str(jv_get(jv_root(doc), "command"), &text) < 0)
		(void)jv_str(jv_get(jv_root(doc), "code"), &text);
	jw_key(w, "command");
	jw_string_n(w, text.data ? text.data : "",
		    text.len < COMMAND_SHOWN ? text.len : COMMAND_SHOWN);
	jv_free(doc);
}

static void listed(void *user, const struct exec_info *infos, size_t n, bool more,
		   const struct err *err)
{
	struct tool_call *t = user;
	struct jw w = jw_begin(&t->structured);

	if (err)
		return tool_fail_err(t, err);
	jw_object_begin(&w);
	jw_key(&w, "processes");
	jw_array_begin(&w);
	for (size_t i = 0; i < n; i++) {
		jw_object_begin(&w);
		process_write(&w, &infos[i]);
		write_command(&w, infos[i].content);
		jw_iso_field(&w, "started_at", infos[i].started_ms);
		jw_object_end(&w);
	}
	jw_array_end(&w);
	jw_bool_field(&w, "truncated", more);
	jw_object_end(&w);
	tool_end(t, &w);
}

static void run_list(struct tool_call *t)
{
	exec_list(t->all->deps.sandboxes, t->box_id, tool_owner(t), 0, NULL, LIST_MAX, listed, t);
}

/* ---- the table ---- */

static const struct jv_field state_out[] = {
	PROCESS_STATE,
	{ .name = "sandbox_id", .type = JV_TYPE_STRING, .flags = JV_REQUIRED },
};
static const struct jv_field item_out[] = {
	PROCESS_STATE,
	{ .name = "command", .type = JV_TYPE_STRING, .flags = JV_REQUIRED },
	{ .name = "started_at", .type = JV_TYPE_STRING },
};
static const struct jv_field list_out[] = {
	{ .name = "processes",
	  .type = JV_TYPE_OBJECTS,
	  .flags = JV_REQUIRED,
	  .sub = item_out,
	  .sub_count = TOOL_ARRAY_LEN(item_out) },
	{ .name = "truncated", .type = JV_TYPE_BOOL, .flags = JV_REQUIRED },
};

static void set_start_bounds(const struct tools *all, struct jv_field *fields, void *args)
{
	struct start_args *a = args;

	tools_bound_timeout(all, fields, &a->timeout_ms);
	a->timeout_ms = 0;
}

static const struct tool rows[] = {
	{ .name = "process_start",
	  .title = "Start a process",
	  .about = "Starts a command in the sandbox that keeps running, such as a server, and "
		   "returns its process_id.",
	  .set_bounds = set_start_bounds,
	  TOOL_IN(start_in, start_args),
	  TOOL_OUT(state_out),
	  .hints = TOOL_DESTRUCTIVE,
	  .flags = TOOL_IN_BOX,
	  .scopes = SCOPE_EXEC,
	  .run = run_start },
	{ .name = "process_input",
	  .title = "Input for a process",
	  .about = "Sends text to the standard input of a process that was started with stdin.",
	  TOOL_IN(input_in, input_args),
	  TOOL_OUT(state_out),
	  .hints = TOOL_DESTRUCTIVE,
	  .flags = TOOL_IN_BOX,
	  .scopes = SCOPE_EXEC,
	  .run = run_input },
	{ .name = "process_kill",
	  .title = "End a process",
	  .about = "Ends a process with everything that it started, or sends it a signal.",
	  TOOL_IN(kill_in, kill_args),
	  TOOL_OUT(state_out),
	  .hints = TOOL_DESTRUCTIVE | TOOL_IDEMPOTENT,
	  .flags = TOOL_IN_BOX,
	  .scopes = SCOPE_EXEC,
	  .run = run_kill },
	{ .name = "process_list",
	  .title = "List processes",
	  .about = "Lists the commands that run or ran in the sandbox, newest first.",
	  TOOL_OUT(list_out),
	  .hints = TOOL_READ_ONLY | TOOL_IDEMPOTENT,
	  .flags = TOOL_IN_BOX,
	  .scopes = SCOPE_EXEC,
	  .run = run_list },
};
const struct tool_table tools_process_table = { rows, TOOL_ARRAY_LEN(rows) };
