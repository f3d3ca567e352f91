/* Process.Start, Connect and List. */
#include "e2b/process.h"

#include <errno.h>
#include <string.h>

#include "api/bodies.h"
#include "api/call.h"
#include "api/problem.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"
#include "e2b/handlers.h"
#include "e2b/network.h"
#include "e2b/rpc.h"
#include "e2b/target.h"
#include "net/http.h"
#include "sandbox/exec.h"
#include "spec/guest.h"
#include "json/jw.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))
#define VARIABLE "E2B_SANDBOX"
#define VARIABLE_ID "E2B_SANDBOX_ID"
#define OWN_VARIABLES (2 + NETWORK_VARIABLES)
#define PTY_ROWS 24
#define PTY_COLS 80

/* ---- Start ---- */

struct config {
	const char *cmd;
	struct jv_strings args;
	struct jv_pairs envs;
	const char *cwd;
};

struct start {
	struct config process;
	struct jv pty;
	const char *tag;
	bool has_stdin;
	/* Not of the message: */
	const char *user;
	struct exec_request req;
};

static const struct jv_field config_fields[] = {
	JV_FIELD("cmd", STRING, struct config, cmd, .flags = JV_REQUIRED, .min = 1),
	JV_FIELD("args", STRINGS, struct config, args, .flags = JV_NULLABLE,
		 .max = GUEST_ARGS_MAX - 1, .text_max = PROCESS_ARG_MAX),
	JV_FIELD("envs", PAIRS, struct config, envs, .flags = JV_NULLABLE,
		 .max = SANDBOX_ENV_MAX - OWN_VARIABLES, .text_max = PROCESS_ARG_MAX),
	JV_FIELD("cwd", STRING, struct config, cwd, .flags = JV_NULLABLE),
};

static const struct jv_field start_fields[] = {
	JV_FIELD("process", OBJECT, struct start, process, .flags = JV_REQUIRED,
		 .sub = config_fields, .sub_count = COUNT(config_fields)),
	JV_FIELD("pty", VALUE, struct start, pty),
	JV_FIELD("tag", STRING, struct start, tag, .flags = JV_NULLABLE, .max = 256),
	JV_FIELD("stdin", BOOL, struct start, has_stdin, .flags = JV_NULLABLE),
};

static bool has_name(const struct sandbox_pair *env, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(env[i].name, name) == 0)
			return true;
	return false;
}

/* Also with what programs look for to know where they are, and where the way out is. The client's
 * own stay as they are. */
static int fill_env(struct exec_request *req, const struct start *s, const char *id, uint16_t proxy,
		    struct arena *a)
{
	size_t n = s->process.envs.len;
	struct sandbox_pair *env = arena_array(a, n + OWN_VARIABLES, sizeof(*env));
	ssize_t added;

	if (!env)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		env[i] = (struct sandbox_pair){ s->process.envs.items[i].name,
						s->process.envs.items[i].value };
	req->env = env;
	if (!has_name(env, n, VARIABLE))
		env[n++] = (struct sandbox_pair){ VARIABLE, "true" };
	if (!has_name(env, n, VARIABLE_ID))
		env[n++] = (struct sandbox_pair){ VARIABLE_ID, id };
	added = network_add_env(env, n, proxy, a);
	req->n_env = added < 0 ? 0 : (size_t)added;
	return added < 0 ? -ENOMEM : 0;
}

static int fill_argv(struct exec_request *req, const struct config *process, struct arena *a)
{
	const char **argv = arena_array(a, process->args.len + 1, sizeof(*argv));

	if (!argv)
		return -ENOMEM;
	argv[0] = process->cmd;
	for (size_t i = 0; i < process->args.len; i++)
		argv[i + 1] = process->args.items[i];
	req->argv = argv;
	req->argc = process->args.len + 1;
	return 0;
}

bool process_size(struct jv pty, uint16_t *ret_rows, uint16_t *ret_cols)
{
	struct jv size = jv_get(pty, "size");
	uint64_t rows = 0, cols = 0;

	(void)jv_u64(jv_get(size, "rows"), &rows);
	(void)jv_u64(jv_get(size, "cols"), &cols);
	if (rows > UINT16_MAX || cols > UINT16_MAX)
		return false;
	*ret_rows = rows ? (uint16_t)rows : PTY_ROWS;
	*ret_cols = cols ? (uint16_t)cols : PTY_COLS;
	return true;
}

/* Why it could not be started, which only the box's words tell. */
static void refuse_failed(struct api_call *c, const struct exec_info *info)
{
	const struct start *s = c->body;
	struct str reason = str_of(info->reason);

	if (str_starts(reason, "user '") || str_starts(reason, "user "))
		return rpc_fail(c, CONNECT_UNAUTHENTICATED, "invalid username: '%s'", s->user);
	if (str_starts(reason, "chdir '"))
		return rpc_fail(c, CONNECT_INVALID_ARGUMENT, "cwd '%s' does not exist",
				s->process.cwd ? s->process.cwd : "");
	if (str_starts(reason, "too many"))
		return rpc_fail(c, CONNECT_RESOURCE_EXHAUSTED, "%s", info->reason);
	rpc_fail(c, CONNECT_INVALID_ARGUMENT, "error starting process: %s", info->reason);
}

static void started(void *user, struct execution *x, const struct err *err)
{
	struct api_call *c = user;
	struct exec_info info;

	if (err)
		return problem_reply(c, err);
	exec_info(x, &info);
	call_set_subject(c, info.id);
	if (info.state == EXECUTION_FAILED)
		return refuse_failed(c, &info);
	process_follow(c, x, true);
}

/* false: answered. */
static bool plan(struct api_call *c, const struct start *s, struct exec_request *req)
{
	struct arena *a = http_arena(c->http);

	*req = (struct exec_request){ .kind = EXECUTION_COMMAND,
				      .cwd = s->process.cwd ? s->process.cwd : "",
				      .user = s->user,
				      .has_stdin = s->has_stdin,
				      .is_unbounded = true,
				      .is_whole = true,
				      .tag = s->tag,
				      .trace = call_trace(c) };
	if (connect_timeout(http_header(c->http, "connect-timeout-ms"), &req->timeout_ms) < 0) {
		rpc_fail(c, CONNECT_INVALID_ARGUMENT, "Connect-Timeout-Ms: want milliseconds");
		return false;
	}
	if (fill_argv(req, &s->process, a) < 0) {
		rpc_fail(c, CONNECT_UNAVAILABLE, "out of memory");
		return false;
	}
	if (jv_kind(s->pty) != JV_OBJECT)
		return true;
	req->kind = EXECUTION_PTY;
	if (process_size(s->pty, &req->rows, &req->cols))
		return true;
	rpc_fail(c, CONNECT_INVALID_ARGUMENT, "pty.size: want at most %u", UINT16_MAX);
	return false;
}

/* Its way out is open, at this port, or it has none. */
static void go(void *user, uint16_t proxy)
{
	struct api_call *c = user;
	struct start *s = c->body;
	struct sandbox *sb = e2b_sandbox(c);

	if (!sb)
		return;
	if (fill_env(&s->req, s, c->box_id, proxy, http_arena(c->http)) < 0)
		return rpc_fail(c, CONNECT_UNAVAILABLE, "out of memory");
	if (call_stream_may_begin(c, c->box_id))
		exec_start(sb, &s->req, started, c);
}

static void start(struct api_call *c)
{
	struct start *s = c->body;
	struct sandbox *sb;

	s->user = rpc_user(c);
	if (!s->user || !plan(c, s, &s->req))
		return;
	sb = e2b_sandbox(c);
	if (sb)
		e2b_network_open(c, sb, go, c);
}

void e2b_process_start(struct api_call *c)
{
	static const struct start defaults = { .has_stdin = true };
	static const struct rpc_method method = {
		.kind = CONNECT_STREAM,
		.fields = start_fields,
		.count = COUNT(start_fields),
		.size = sizeof(struct start),
		.defaults = &defaults,
		.handle = start,
	};

	rpc_take(c, &method);
}

/* ---- Connect ---- */

struct joining {
	struct process_selector process;
};

static const struct jv_field join_fields[] = {
	JV_FIELD("process", OBJECT, struct joining, process, .flags = JV_REQUIRED,
		 .sub = process_selector_fields, .sub_count = PROCESS_SELECTOR_COUNT),
};

static void found(struct api_call *c, struct execution *x, const struct exec_info *info,
		  const struct output *output)
{
	if (x)
		process_follow(c, x, false);
	else
		process_follow_past(c, info, output);
}

static void join(struct api_call *c)
{
	const struct joining *j = c->body;

	process_find(c, &j->process, found);
}

void e2b_process_connect(struct api_call *c)
{
	static const struct rpc_method method = {
		.kind = CONNECT_STREAM,
		.fields = join_fields,
		.count = COUNT(join_fields),
		.size = sizeof(struct joining),
		.handle = join,
	};

	rpc_take(c, &method);
}

/* ---- List ---- */

/* What was asked for, from the text that is kept of it. */
static void write_command(struct jw *w, struct jv content)
{
	struct jv argv = jv_get(content, "argv"), command = jv_get(content, "command");
	struct jv code = jv_get(content, "code");

	jw_key(w, "cmd");
	if (jv_kind(argv) == JV_ARRAY)
		jw_value(w, jv_at(argv, 0));
	else if (jv_kind(code) == JV_STRING)
		jw_value(w, jv_get(content, "language"));
	else
		jw_string(w, "/bin/bash");
	jw_key(w, "args");
	jw_array_begin(w);
	for (size_t i = 1; i < jv_len(argv); i++)
		jw_value(w, jv_at(argv, i));
	if (jv_kind(code) == JV_STRING || jv_kind(command) == JV_STRING) {
		jw_string(w, "-c");
		jw_value(w, jv_kind(code) == JV_STRING ? code : command);
	}
	jw_array_end(w);
}

static bool is_own(const char *variable)
{
	for (const char *const *name = network_variables; *name; name++)
		if (strcmp(variable, *name) == 0)
			return true;
	return strcmp(variable, VARIABLE) == 0 || strcmp(variable, VARIABLE_ID) == 0;
}

static void write_config(struct jw *w, const struct exec_info *info, struct jv content)
{
	struct jv cwd = jv_get(content, "cwd");

	jw_object_begin(w);
	write_command(w, content);
	jw_key(w, "envs");
	jw_object_begin(w);
	for (size_t i = 0; i < info->n_env; i++)
		if (!is_own(info->env[i].name))
			jw_str_field(w, info->env[i].name, info->env[i].value);
	jw_object_end(w);
	if (jv_kind(cwd) == JV_STRING)
		jw_str_field(w, "cwd", jv_text(cwd));
	jw_object_end(w);
}

static bool write_process(void *user, const struct exec_info *info)
{
	struct jw *w = user;
	struct jv_doc *doc = NULL;
	struct jv content = { 0 }, tag;

	if (info->state != EXECUTION_RUNNING || info->kind == EXECUTION_CONTEXT || info->pid == 0)
		return false;
	/* One whose record was lost is there all the same, without what it was. */
	if (jv_parse(info->content, strlen(info->content), BUF_MAX, &doc, NULL) == 0)
		content = jv_root(doc);
	tag = jv_get(content, "tag");
	jw_object_begin(w);
	jw_key(w, "config");
	write_config(w, info, content);
	jw_uint_field(w, "pid", info->pid);
	if (jv_kind(tag) == JV_STRING)
		jw_str_field(w, "tag", jv_text(tag));
	jw_object_end(w);
	(void)jv_free(doc);
	return false; /* the next */
}

static void list(struct api_call *c)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct sandbox *sb = e2b_sandbox(c);
	struct jw w = jw_begin(&b);

	if (!sb)
		return;
	jw_object_begin(&w);
	jw_key(&w, "processes");
	jw_array_begin(&w);
	(void)exec_search(sb, write_process, &w);
	jw_array_end(&w);
	jw_object_end(&w);
	rpc_reply(c, &w);
}

void e2b_process_list(struct api_call *c)
{
	static const struct rpc_method method = { .kind = CONNECT_UNARY,
						  .size = 1,
						  .handle = list };

	rpc_take(c, &method);
}
