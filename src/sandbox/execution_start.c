/* From a request to a running execution. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "provider/guest_client.h"
#include "sandbox/announce.h"
#include "sandbox/check.h"
#include "sandbox/execution.h"
#include "sandbox/tracing.h"
#include "telemetry/trace.h"

#define SHELL "/bin/bash"
#define WORKSPACE "/workspace"
#define TRACE_VARIABLE "TRACEPARENT"
#define TEXT_MAX (256u << 10) /* of a request's texts; the frame to the box has its own limit */

/* What every program gets unless the sandbox or the request says otherwise. */
static const struct {
	const char *text;
	bool is_pty; /* of terminals only */
} defaults[] = {
	{ "PATH=" GUEST_PATH, false },
	{ "LANG=C.UTF-8", false },
	{ "TERM=xterm-256color", true },
};

static const struct {
	const char *name;
	uint8_t kind;
} languages[] = {
	{ "python", EXEC_PYTHON }, { "python3", EXEC_PYTHON }, { "javascript", EXEC_NODE },
	{ "js", EXEC_NODE },       { "node", EXEC_NODE },      { "nodejs", EXEC_NODE },
	{ "bash", EXEC_COMMAND },  { "sh", EXEC_COMMAND },     { "shell", EXEC_COMMAND },
};

/* ---- the request, checked and translated ---- */

static void set_shell(struct guest_exec *e, const char *command)
{
	e->kind = EXEC_COMMAND;
	e->flags |= EXEC_SHELL;
	e->argv[0] = SHELL;
	e->argv[1] = "-c";
	e->argv[2] = command;
	e->argc = 3;
}

static int set_code(struct guest_exec *e, const struct exec_request *req, struct err *err)
{
	const char *language = req->language ? req->language : "";

	if (!req->code)
		return err_set(err, EINVAL, "code: there is none");
	for (size_t i = 0; i < sizeof(languages) / sizeof(languages[0]); i++) {
		if (strcmp(languages[i].name, language) != 0)
			continue;
		if (languages[i].kind == EXEC_COMMAND) {
			set_shell(e, req->code);
			return 0;
		}
		e->kind = languages[i].kind;
		e->code = req->code;
		return 0;
	}
	return err_set(err, EINVAL, "language: want python, javascript or bash, not '%.40s'",
		       language);
}

static int set_program(struct guest_exec *e, const struct exec_request *req, struct err *err)
{
	if (req->kind == EXECUTION_CODE || (req->kind == EXECUTION_CONTEXT && req->code))
		return set_code(e, req, err);
	if (req->command && req->argc > 0)
		return err_set(err, EINVAL, "command: either this or argv");
	if (req->command) {
		set_shell(e, req->command);
		return 0;
	}
	if (req->argc > GUEST_ARGS_MAX)
		return err_set(err, EINVAL, "argv: %zu arguments, limit %d", req->argc,
			       GUEST_ARGS_MAX);
	for (size_t i = 0; i < req->argc; i++)
		e->argv[i] = req->argv[i];
	e->argc = req->argc;
	if (req->argc == 0 && req->kind == EXECUTION_PTY) {
		e->argv[0] = SHELL;
		e->argv[1] = "-l";
		e->argc = 2;
	}
	if (e->argc == 0 || e->argv[0][0] == '\0')
		return err_set(err, EINVAL, "command: there is none");
	return 0;
}

static bool has_variable(const struct guest_exec *e, const char *text, size_t n)
{
	for (size_t i = 0; i < e->envc; i++)
		if (strncmp(e->envp[i], text, n) == 0 && e->envp[i][n] == '=')
			return true;
	return false;
}

static int add_pairs(struct guest_exec *e, const struct sandbox_pair *items, size_t n,
		     struct arena *a)
{
	for (size_t i = 0; i < n; i++) {
		if (has_variable(e, items[i].name, strlen(items[i].name)))
			continue;
		e->envp[e->envc] = arena_printf(a, "%s=%s", items[i].name, items[i].value);
		if (!e->envp[e->envc])
			return -ENOMEM;
		e->envc++; /* fits: twice SANDBOX_ENV_MAX and the defaults */
	}
	return 0;
}
_Static_assert(2 * SANDBOX_ENV_MAX + 8 < GUEST_ARGS_MAX, "every variable has its place");

/* So that what it does can be a part of the trace, too. The user's own is left alone. */
static int set_trace(struct guest_exec *e, const struct trace_context *trace, struct arena *a,
		     struct err *err)
{
	char text[TRACEPARENT_SIZE];

	if (!trace || has_variable(e, TRACE_VARIABLE, strlen(TRACE_VARIABLE)))
		return 0;
	traceparent_format(trace, text);
	e->envp[e->envc] = arena_printf(a, TRACE_VARIABLE "=%s", text);
	if (!e->envp[e->envc])
		return err_sys(err, ENOMEM, "env");
	e->envc++; /* fits: see add_pairs() */
	return 0;
}

/* How programs find what is made for a sandbox with a grant: /holt is in every root. */
static int add_tools(struct guest_exec *e, const struct template_row *row, struct arena *a)
{
	const char *path = row && row->path ? row->path : GUEST_PATH;
	struct sandbox_pair pairs[] = { { "PATH", arena_printf(a, "%s:" GUEST_TOOLS_BIN, path) },
					{ "PYTHONPATH", GUEST_TOOLS_LIB } };

	return pairs[0].value ? add_pairs(e, pairs, 2, a) : -ENOMEM;
}

/* The request's variables win over the sandbox's, and those over the defaults. */
static int set_environment(struct guest_exec *e, const struct sandbox *sb,
			   const struct exec_request *req, struct arena *a, struct err *err)
{
	const struct template_row *row = template_find(sb->kit.runtime);
	int r = check_env(req->env, req->n_env, err);

	if (r < 0)
		return r;
	r = add_pairs(e, req->env, req->n_env, a);
	if (r == 0)
		r = add_pairs(e, sb->env.items, sb->env.len, a);
	if (r == 0 && sb->grant)
		r = add_tools(e, row, a);
	if (r == 0 && row && row->path)
		r = add_pairs(e, &(struct sandbox_pair){ "PATH", row->path }, 1, a);
	if (r < 0)
		return err_sys(err, r, "env");
	for (size_t i = 0; i < sizeof(defaults) / sizeof(defaults[0]); i++)
		if ((!defaults[i].is_pty || req->kind == EXECUTION_PTY) &&
		    !has_variable(e, defaults[i].text, strcspn(defaults[i].text, "=")))
			e->envp[e->envc++] = defaults[i].text;
	return set_trace(e, req->trace, a, err);
}

static int set_timeout(struct guest_exec *e, const struct sandbox_settings *s,
		       const struct exec_request *req, struct err *err)
{
	uint64_t ms = req->timeout_ms;

	if (!req->is_unbounded && s->exec_timeout_max_ms > 0 && ms > s->exec_timeout_max_ms)
		return err_set(err, EINVAL, "timeout: at most %llu s (exec_timeout_max)",
			       (unsigned long long)(s->exec_timeout_max_ms / 1000));
	if (ms > UINT32_MAX)
		return err_set(err, EINVAL, "timeout: too large");
	if (ms == 0 && req->kind != EXECUTION_PTY && !req->background && !req->is_start &&
	    !req->is_unbounded)
		ms = s->exec_timeout_ms < UINT32_MAX ? s->exec_timeout_ms : UINT32_MAX;
	e->timeout_ms = (uint32_t)ms;
	return 0;
}

static const char *first_said(const char *a, const char *b, const char *otherwise)
{
	if (a && a[0] != '\0')
		return a;
	return b && b[0] != '\0' ? b : otherwise;
}

/* Texts are borrowed from the request, the sandbox and the arena. */
static int translate(const struct sandbox *sb, const struct exec_request *req, struct arena *a,
		     struct guest_exec *ret, struct err *err)
{
	const struct template_row *row = template_find(sb->kit.runtime);
	const struct makeup *make = &sb->kit.make;
	bool is_pty = req->kind == EXECUTION_PTY;
	int r;

	ret->flags = EXEC_LOGIN | EXEC_KEEP;
	if (is_pty)
		ret->flags |= EXEC_PTY;
	if (req->has_stdin || is_pty)
		ret->flags |= EXEC_STDIN;
	if (req->is_whole)
		ret->flags |= EXEC_WHOLE;
	ret->rows = req->rows;
	ret->cols = req->cols;
	ret->grace_ms = GUEST_SIGNAL_DEFAULT_GRACE_MS;
	ret->user = first_said(req->user, make->user, "");
	ret->cwd =
		first_said(req->cwd, make->workdir, row && row->workdir ? row->workdir : WORKSPACE);
	ret->code = "";
	r = set_program(ret, req, err);
	if (r < 0)
		return r;
	r = set_timeout(ret, &sb->all->settings, req, err);
	return r < 0 ? r : set_environment(ret, sb, req, a, err);
}

/* ---- starting ---- */

static int check_room(const struct sandbox *sb, const struct exec_request *req, struct err *err)
{
	int r = req->is_start ? 0 : sandbox_check_usable(sb, err);

	if (r < 0)
		return r;
	if (sb->n_running >= SANDBOX_EXECUTIONS_MAX)
		return err_set(err, EAGAIN, "%u executions run in this sandbox, the limit",
			       SANDBOX_EXECUTIONS_MAX);
	if (sb->n_unrecorded >= (sb->store_error ? SANDBOX_UNRECORDED_MAX : SANDBOX_BEHIND_MAX))
		return err_set(err, EAGAIN, "the store has not taken %zu ended executions: %s",
			       sb->n_unrecorded,
			       sb->store_error ? strerror(sb->store_error) : "it is slow");
	return 0;
}

static int fill(struct execution *x, const struct exec_request *req, struct err *err)
{
	int r = execution_content(req, &x->content);

	if (r == 0 && req->n_env > 0)
		r = pairs_copy(req->env, req->n_env, &x->env);
	if (r < 0)
		return err_sys(err, r, "execution");
	x->kind = req->kind;
	if (req->background)
		x->flags |= EXECUTION_BACKGROUND;
	if (req->keep > 0)
		x->keep = req->keep;
	x->is_in_open = req->has_stdin || req->kind == EXECUTION_PTY;
	x->in.max = EXEC_STDIN_MAX;
	x->started_ms = wall_ms(x->all);
	return 0;
}

static int send(struct execution *x, struct sandbox *sb, const struct exec_request *req,
		struct err *err)
{
	struct arena *a = arena_create(TEXT_MAX);
	struct guest_exec e = { .tag = x->id };
	struct exec_request own = *req;
	int r;

	tracing_execution(x, sb, req->trace);
	own.trace = span_context(x->span);
	r = a ? translate(sb, &own, a, &e, err) : err_sys(err, ENOMEM, "execution");
	if (r == 0)
		r = fill(x, req, err); /* what has been checked */
	if (r == 0)
		r = guest_exec(sb->guest, &e, &execution_callbacks, x, &x->guest_id, err);
	if (r == 0) {
		guest_manual_credit(sb->guest, x->guest_id);
		link_kick(sb);
	}
	(void)arena_free(a);
	return r;
}

/* NULL: *err says why. */
static struct execution *start(struct sandbox *sb, const struct exec_request *req, struct err *err)
{
	char id[ID_LEN + 1];
	struct execution *x;

	if (check_room(sb, req, err) < 0 ||
	    quota_take(sb->all, sb->owner, QUOTA_EXECUTIONS, 1, err) < 0)
		return NULL;
	id_make(id);
	x = execution_alloc(sb->all, id);
	if (!x)
		(void)err_sys(err, ENOMEM, "execution");
	if (!x || send(x, sb, req, err) < 0) {
		quota_give(sb->all, sb->owner, QUOTA_EXECUTIONS, 1);
		if (x)
			exec_unref(x);
		return NULL;
	}
	x->is_bound = x->waits_for_start = true;
	execution_attach(x, sb);
	announce_start(x);
	return x;
}

static void tell_refused(void (*cb)(void), void *user, const struct err *err)
{
	((exec_cb)cb)(user, NULL, err);
}

static void refuse(struct sandboxes *all, exec_cb cb, void *user, const struct err *err)
{
	later_refuse(all, tell_refused, (void (*)(void))cb, user, err);
}

void exec_start(struct sandbox *sb, const struct exec_request *req, exec_cb cb, void *user)
{
	struct execution *x;
	struct err err = { 0 };
	int r = 0;

	sandbox_touch(sb);
	x = start(sb, req, &err);
	if (!x) {
		refuse(sb->all, cb, user, &err);
		return;
	}
	if ((req->background || req->kind == EXECUTION_PTY) && !req->is_start)
		r = execution_record_start(x);
	else if (req->is_unbounded)
		execution_record_lasting(x);
	if (r < 0) { /* it runs already, and nobody is to know of it */
		err = record_error(r);
		(void)exec_cancel(x);
		refuse(sb->all, cb, user, &err);
		return;
	}
	x->cb = cb;
	x->user = user;
}
