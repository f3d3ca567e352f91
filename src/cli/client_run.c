/* Commands that talk to the daemon, from options to failure. */
#include "cli/client.h"
#include "cli/command.h"

struct client_only {
	struct client_args client;
};
const struct opt client_opts[] = {
	CLIENT_OPTS(struct client_only, client),
	{ 0 },
};

int client_run(const struct command *cmd, int argc, char **argv, const struct client_task *t)
{
	struct client c;
	struct err err = { 0 };
	int n = cli_parse(cmd, argc, argv, t->args), r;

	if (n <= 0)
		return -n;
	if (!cli_takes(cmd, argc, argv, n, t->min, t->max))
		return CLI_USAGE;
	r = client_open(&c, t->client);
	if (r != 0)
		return r;
	r = t->run(&c, t->args, argc - n, argv + n, &err);
	if (r < 0) {
		if (err.code == 0)
			(void)err_sys(&err, r, "%s", cmd->name);
		r = client_fail(&c, &err);
	}
	client_close(&c);
	return r;
}
