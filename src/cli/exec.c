#include "cli/command.h"
#include "cli/run.h"

int cmd_exec(const struct command *cmd, int argc, char **argv)
{
	struct box_args args = BOX_ARGS_INIT;
	struct guest_exec e = { .kind = EXEC_COMMAND };
	struct run_request req = { .box = &args, .exec = &e };
	int n = cli_parse(cmd, argc, argv, &args);

	if (n <= 0)
		return -n;
	if (n == argc) {
		cli_say("nothing to run");
		cli_hint("holt exec [OPTION...] -- COMMAND [ARG...]");
		return CLI_USAGE;
	}
	if (argc - n > GUEST_ARGS_MAX) {
		cli_say("a command has at most %d arguments", GUEST_ARGS_MAX);
		return CLI_USAGE;
	}
	for (; n < argc; n++)
		e.argv[e.argc++] = argv[n];
	return run_in_box(&req);
}
