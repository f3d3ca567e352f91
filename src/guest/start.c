#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include "guest/exec.h"
#include "guest/home.h"
#include "guest/plain.h"
#include "guest/user.h"

#define LOGIN_VARS 4
#define SHELL_VARS 3
#define PREFIX_ARGS 4

/* What execve() gets: the request's strings, and the few that we add. */
struct command {
	const char *argv[PREFIX_ARGS + GUEST_ARGS_MAX + 1];
	const char *envp[GUEST_ARGS_MAX + LOGIN_VARS + SHELL_VARS + 1];
	char login[LOGIN_VARS][USER_PATH_MAX + 16];
	char pwd[PATH_MAX + 8], program[PLAIN_MAX + 8];
	struct plain plain;
};

/* How an interpreter is told to run code when none waits. */
static const struct {
	const char *argv[3]; /* in front of the code, then behind it */
} interpreters[EXEC_KIND_COUNT] = {
	[EXEC_PYTHON] = { { "python3", "-c", NULL } },
	[EXEC_NODE] = { { "node", "-e", "--" } },
};

static void fill_argv(struct command *c, const struct guest_exec *e)
{
	const char *const *with = interpreters[e->kind].argv;
	size_t n = 0;

	if (e->kind != EXEC_COMMAND) {
		c->argv[n++] = with[0];
		c->argv[n++] = with[1];
		c->argv[n++] = e->code;
		if (with[2])
			c->argv[n++] = with[2];
	}
	memcpy(c->argv + n, e->argv, e->argc * sizeof(e->argv[0]));
	c->argv[n + e->argc] = NULL;
	/* A root of somebody's own need not have the shell that others have. */
	if ((e->flags & EXEC_SHELL) && access(e->argv[0], F_OK) < 0 && errno == ENOENT)
		c->argv[0] = "/bin/sh";
}

static bool has_var(const struct guest_exec *e, const char *name)
{
	size_t n = strlen(name);

	for (size_t i = 0; i < e->envc; i++)
		if (strncmp(e->envp[i], name, n) == 0 && e->envp[i][n] == '=')
			return true;
	return false;
}

/* The request's own variables win over those of the passwd file. */
static void fill_envp(struct command *c, const struct guest_exec *e, const struct user *u)
{
	const char *const login[LOGIN_VARS][2] = { { "HOME", u->home },
						   { "USER", u->name },
						   { "LOGNAME", u->name },
						   { "SHELL", u->shell } };
	size_t n = e->envc;

	memcpy(c->envp, e->envp, n * sizeof(e->envp[0]));
	for (size_t i = 0; (e->flags & EXEC_LOGIN) && i < LOGIN_VARS; i++) {
		if (!login[i][1][0] || has_var(e, login[i][0]))
			continue;
		if (str_format(c->login[i], sizeof(c->login[i]), "%s=%s", login[i][0],
			       login[i][1]) == 0)
			c->envp[n++] = c->login[i];
	}
	c->envp[n] = NULL;
}

/* What a shell would have added for the program. It finds them as good when it has to run after
 * all. */
static void add_shell_vars(struct command *c, const struct guest_exec *e)
{
	size_t n = 0;

	while (c->envp[n])
		n++;
	if (e->cwd[0] == '/' && !has_var(e, "PWD") &&
	    str_format(c->pwd, sizeof(c->pwd), "PWD=%s", e->cwd) == 0)
		c->envp[n++] = c->pwd;
	if (!has_var(e, "SHLVL"))
		c->envp[n++] = "SHLVL=0";
	if (!has_var(e, "_") &&
	    str_format(c->program, sizeof(c->program), "_=%s", c->plain.argv[0]) == 0)
		c->envp[n++] = c->program;
	c->envp[n] = NULL;
}

static int start_cold(struct guest *g, const struct guest_exec *e, uint64_t mark,
		      struct spawned *ret, struct err *err)
{
	struct spawn_plan plan = { .cwd = e->cwd,
				   .flags = e->flags,
				   .rows = e->rows,
				   .cols = e->cols,
				   .cpu_seconds = e->cpu_seconds,
				   .mark = mark,
				   .oom_fd = g->oom_fd };
	char cwd[PATH_BYTES];
	struct command c;
	struct user u;
	int r;

	r = user_load_again(&g->warm.user, e->user, &u, err);
	if (r == 0 && e->cwd[0] != '\0' && e->cwd[0] != '/') {
		r = home_resolve(u.home, e->cwd, cwd, err);
		plan.cwd = cwd;
	}
	if (r < 0)
		return r;
	fill_argv(&c, e);
	fill_envp(&c, e, &u);
	if ((e->flags & EXEC_SHELL) && plain_env(c.envp) && plain_split(e->argv[2], &c.plain)) {
		add_shell_vars(&c, e);
		plan.plain = c.plain.argv;
	}
	plan.argv = c.argv;
	plan.envp = c.envp;
	plan.user = &u;
	return spawn_start(&plan, ret, err);
}

static int take_warm(struct guest *g, const struct guest_exec *e, struct spawned *ret,
		     struct err *err)
{
	int r = warm_take(&g->warm, e, ret, err);

	if (r < 0 || !g->warm.is_foreign || e->kind != EXEC_PYTHON)
		return r;
	if (!exec_has_pid(g, ret->pid) && !relay_has_pid(g, ret->pid))
		return 0;
	warm_distrust(&g->warm); /* it has named a process that has another's end to tell */
	warm_end_free(ret->end);
	spawn_close(ret);
	return -ENOENT;
}

static int start_process(struct guest *g, const struct guest_exec *e, struct spawned *ret,
			 struct err *err)
{
	uint64_t mark = guest_new_mark(g);
	int r = -ENOENT;

	ret->mark = mark;
	if (e->kind != EXEC_COMMAND)
		r = take_warm(g, e, ret, err);
	if (r == -ENOENT)
		r = start_cold(g, e, mark, ret, err);
	return r;
}

static void say_started(struct exec *x, const struct spawned *s)
{
	uint8_t frame[32];
	struct wr w;

	wire_begin(&w, frame, sizeof(frame), G_STARTED, x->id);
	wr_u32(&w, (uint32_t)s->pid);
	wr_u8(&w, s->warm);
	conn_send(&x->guest->conn, frame, wire_finish(&w));
}

void exec_start(struct guest *g, uint32_t id, const struct guest_exec *e)
{
	struct spawned s = { .in = -1, .out = -1, .err = -1 };
	struct err err = { 0 };
	struct exec *x;
	int r;

	if (g->n_execs >= GUEST_EXECS_MAX) {
		conn_send_error(&g->conn, id, E2BIG, "too many executions at once in this box");
		return;
	}
	if ((e->flags & EXEC_KEEP) && g->n_kept >= GUEST_KEPT_MAX) {
		conn_send_error(&g->conn, id, E2BIG,
				"too many ended executions to be acknowledged");
		return;
	}
	x = exec_create(g, id, e);
	if (x)
		x->newest = tree_newest(&g->tree);
	r = x ? start_process(g, e, &s, &err) : err_sys(&err, ENOMEM, "start an execution");
	if (r < 0) {
		conn_send_error(&g->conn, id, r, err.text);
		exec_free_new(x);
		return;
	}
	say_started(x, &s);
	exec_adopt(x, &s);
	if (e->timeout_ms > 0)
		deadline_set(&g->deadlines, &x->deadline, x->started_ns / 1000000 + e->timeout_ms);
}
