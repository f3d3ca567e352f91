#include <errno.h>

#include "base/cleanup.h"
#include "cli/command.h"
#include "cli/exec_args.h"
#include "cli/terminal.h"

struct shell_args {
	struct client_args client;
	const char *attach, *cwd, *user;
	struct opt_list env;
};

#define AT(field) offsetof(struct shell_args, field)
const struct opt shell_opts[] = {
	{ .name = "attach",
	  .letter = 'a',
	  .type = OPT_TEXT,
	  .arg = "EXECUTION",
	  .help = "go on in a terminal that is there already",
	  .offset = AT(attach) },
	{ .name = "env",
	  .letter = 'e',
	  .type = OPT_LIST,
	  .arg = "K=V",
	  .help = "environment; K alone passes yours on; may be repeated",
	  .offset = AT(env) },
	{ .name = "workdir",
	  .letter = 'w',
	  .type = OPT_TEXT,
	  .arg = "DIR",
	  .help = "directory to start in",
	  .offset = AT(cwd) },
	{ .name = "user",
	  .letter = 'u',
	  .type = OPT_TEXT,
	  .arg = "USER",
	  .help = "user of the sandbox, by name or number",
	  .offset = AT(user) },
	CLIENT_SETTINGS(struct shell_args, client),
	{ 0 },
};

static int run(struct client *c, void *args, int n, char **operands, struct err *err)
{
	_cleanup_(client_doc_done) struct client_doc d = { 0 };
	const struct shell_args *a = args;
	struct exec_ask ask = {
		.env = &a->env, .cwd = a->cwd, .user = a->user, .pty = true, .background = true
	};
	struct terminal t = { .client = c, .sandbox = operands[0], .execution = a->attach };
	int r;

	(void)n;
	if (!a->attach) {
		r = exec_ask_start(c, operands[0], &ask, &d, err);
		if (r < 0)
			return r;
		t.execution = jv_text(jv_get(jv_root(d.doc), "executionId"));
	}
	return terminal_run(&t, err);
}

int cmd_shell(const struct command *cmd, int argc, char **argv)
{
	struct shell_args args = { 0 };
	struct client_task task = { &args, &args.client, 1, 1, run };

	return client_run(cmd, argc, argv, &task);
}
