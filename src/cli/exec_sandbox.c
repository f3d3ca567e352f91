/* `exec` in a sandbox that is there already. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/command.h"
#include "cli/exec_args.h"
#include "cli/remote.h"
#include "cli/term.h"
#include "cli/terminal.h"
#include "json/jw.h"

/* --- the request --------------------------------------------------------------------------- */

static void put_terminal(struct jw *w)
{
	uint16_t rows = 0, cols = 0;

	jw_bool_field(w, "pty", true);
	if (term_size(&rows, &cols) && rows > 0 && cols > 0) {
		jw_uint_field(w, "rows", rows);
		jw_uint_field(w, "cols", cols);
	}
}

/* A terminal's programs want to know ours, unless they were told otherwise. */
static int put_env(struct jw *w, const struct exec_ask *ask, struct err *err)
{
	static const struct client_pairs pairs = { "env", "env", true };
	struct opt_list list = { 0 };

	if (ask->pty)
		list.items[list.len++] = "TERM";
	for (size_t i = 0; i < ask->env->len; i++) {
		if (list.len == OPT_LIST_MAX)
			return err_set(err, E2BIG, "--env: at most %d", OPT_LIST_MAX - 1);
		list.items[list.len++] = ask->env->items[i];
	}
	return client_pairs(w, &pairs, &list, err);
}

int exec_ask_write(const struct exec_ask *ask, struct buf *b, struct err *err)
{
	struct jw w = jw_begin(b);
	int r;

	jw_object_begin(&w);
	if (ask->argc > 0) {
		jw_key(&w, "argv");
		jw_array_begin(&w);
		for (int i = 0; i < ask->argc; i++)
			jw_string(&w, ask->argv[i]);
		jw_array_end(&w);
	}
	if (ask->cwd)
		jw_str_field(&w, "cwd", ask->cwd);
	if (ask->user)
		jw_str_field(&w, "user", ask->user);
	if (ask->timeout_ms)
		jw_double_field(&w, "timeout", (double)ask->timeout_ms / 1000);
	if (ask->pty)
		put_terminal(&w);
	if (ask->background)
		jw_bool_field(&w, "background", true);
	if (ask->stream) {
		jw_bool_field(&w, "stream", true);
		jw_bool_field(&w, "stdin", true);
	}
	r = put_env(&w, ask, err);
	if (r < 0)
		return r;
	jw_object_end(&w);
	r = jw_end(&w);
	return r < 0 ? err_sys(err, r, "request") : 0;
}

int exec_ask_start(struct client *c, const char *sandbox, const struct exec_ask *ask,
		   struct client_doc *ret, struct err *err)
{
	_cleanup_(buf_done) struct buf body = { 0 }, target = { 0 };
	int r = exec_ask_write(ask, &body, err);

	if (r == 0)
		r = client_path(&target, "sandboxes/%/executions", sandbox);
	if (r == 0)
		r = client_json(c, "POST", target.data, &body, ret, err);
	if (r == 0 && !jv_text(jv_get(jv_root(ret->doc), "executionId")))
		r = err_set(err, EPROTO, "the daemon's answer has no execution id");
	return r;
}

/* --- what a sandbox has settled ------------------------------------------------------------ */

static int check(const struct exec_args *a, struct err *err)
{
	const struct box_args *b = &a->box;
	const struct {
		const char *name;
		bool is_given;
	} settled[] = {
		{ "template", b->template != NULL },     { "memory", b->limits.memory_bytes > 0 },
		{ "cpu", b->limits.cpu_milli > 0 },      { "pin", b->limits.cpu_mask > 0 },
		{ "pids", b->limits.pids > 0 },          { "disk", b->limits.disk_bytes > 0 },
		{ "net", b->net != NET_NONE },           { "level", b->level != LEVEL_STANDARD },
		{ "output-limit", b->output_limit > 0 },
	};

	for (size_t i = 0; i < sizeof(settled) / sizeof(settled[0]); i++)
		if (settled[i].is_given)
			return err_set(err, EINVAL,
				       "--%s is for a new box: what a sandbox has was settled by "
				       "'holt sandbox create'",
				       settled[i].name);
	if (b->tty && (b->json || a->background))
		return err_set(err, EINVAL, "--tty and --%s exclude each other",
			       b->json ? "json" : "background");
	if (b->timeout_ms == 0 && !b->tty && !a->background)
		return err_set(err, EINVAL,
			       "--timeout 0: a command in a sandbox has an end, unless it is in "
			       "the --background or has a --tty");
	return 0;
}

/* --- the three ways ------------------------------------------------------------------------ */

static int in_background(struct client *c, const char *sandbox, struct exec_ask *ask,
			 struct err *err)
{
	_cleanup_(client_doc_done) struct client_doc d = { 0 };
	int r;

	ask->background = true;
	r = exec_ask_start(c, sandbox, ask, &d, err);
	if (r < 0)
		return r;
	if (c->json)
		return client_print(&d.text);
	(void)printf("%s\n", jv_text(jv_get(jv_root(d.doc), "executionId")));
	return 0;
}

static int in_terminal(struct client *c, const char *sandbox, struct exec_ask *ask, struct err *err)
{
	_cleanup_(client_doc_done) struct client_doc d = { 0 };
	int r;

	ask->pty = ask->background = true;
	r = exec_ask_start(c, sandbox, ask, &d, err);
	if (r < 0)
		return r;
	return terminal_run(
		&(struct terminal){ .client = c,
				    .sandbox = sandbox,
				    .execution = jv_text(jv_get(jv_root(d.doc), "executionId")),
				    .kill = true },
		err);
}

static int print_execution(struct client *c, const char *sandbox, const char *id, struct err *err)
{
	_cleanup_(client_doc_done) struct client_doc d = { 0 };
	_cleanup_(buf_done) struct buf target = { 0 };
	int r = client_path(&target, "sandboxes/%/executions/%", sandbox, id);

	if (r == 0)
		r = client_json(c, "GET", target.data, NULL, &d, err);
	return r < 0 ? r : client_print(&d.text);
}

static int in_foreground(struct client *c, const char *sandbox, struct exec_ask *ask,
			 struct err *err)
{
	_cleanup_(buf_done) struct buf body = { 0 };
	struct remote_run run = { .client = c,
				  .sandbox = sandbox,
				  .body = &body,
				  .timeout_ms = ask->timeout_ms,
				  .discard = c->json };
	struct err why = { 0 };
	int r, code;

	ask->stream = true;
	r = exec_ask_write(ask, &body, err);
	if (r < 0)
		return r;
	remote_block_signals();
	code = remote_run(&run, &why);
	if (code < 0 && run.id[0])
		return err_set(err, why.code, "%.120s (it may run on: holt logs -f %s %s)",
			       why.text, sandbox, run.id);
	if (code < 0)
		return err_copy(err, &why);
	if (!c->json)
		return code;
	r = print_execution(c, sandbox, run.id, err);
	return r < 0 ? r : code;
}

int exec_in_sandbox(const struct exec_args *args, const char *sandbox, int argc, char **argv)
{
	const struct box_args *b = &args->box;
	struct exec_ask ask = {
		.argv = argv,
		.argc = argc,
		.env = &b->env,
		.cwd = b->workdir,
		.user = b->user,
		.timeout_ms = b->timeout_ms == TIMEOUT_UNSET ? 0 : b->timeout_ms,
	};
	struct client_args how = args->client;
	struct client c;
	struct err err = { 0 };
	int r;

	how.json = b->json;
	r = check(args, &err);
	if (r < 0)
		return cli_fail(&err);
	r = client_open(&c, &how);
	if (r != 0)
		return r;
	if (b->tty)
		r = in_terminal(&c, sandbox, &ask, &err);
	else if (args->background)
		r = in_background(&c, sandbox, &ask, &err);
	else
		r = in_foreground(&c, sandbox, &ask, &err);
	if (r < 0)
		r = client_fail(&c, &err);
	client_close(&c);
	return r;
}
