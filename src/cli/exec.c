#include <string.h>

#include "cli/command.h"
#include "cli/exec_args.h"
#include "cli/run.h"

#define AT(field) offsetof(struct exec_args, field)
const struct opt exec_opts[] = {
	{ .name = "interactive",
	  .letter = 'i',
	  .type = OPT_FLAG,
	  .help = "standard input is the command's; it always is",
	  .offset = AT(interactive) },
	{ .name = "background",
	  .letter = 'b',
	  .type = OPT_FLAG,
	  .help = "in a sandbox: print the execution's id and leave it running",
	  .offset = AT(background) },
	{ .name = "cwd",
	  .type = OPT_TEXT,
	  .arg = "DIR",
	  .help = "the same as --workdir",
	  .offset = AT(cwd) },
	CLIENT_SETTINGS(struct exec_args, client),
	{ 0 },
};

static int exec_in_box(const struct exec_args *args, int argc, char **argv)
{
	struct guest_exec e = { .kind = EXEC_COMMAND };
	struct run_request req = { .box = &args->box, .exec = &e };

	if (args->background) {
		cli_say("--background wants a sandbox, which is there when the command is not");
		cli_hint("holt exec --background ID -- COMMAND [ARG...]");
		return CLI_USAGE;
	}
	for (int i = 0; i < argc; i++)
		e.argv[e.argc++] = argv[i];
	return run_in_box(&req);
}

static bool is_behind_dashes(char **argv, int n)
{
	return n > 1 && strcmp(argv[n - 1], "--") == 0;
}

/* "ID --": what stands alone before the two dashes names a sandbox. */
static bool names_sandbox(int argc, char **argv, int n)
{
	return !is_behind_dashes(argv, n) && n + 1 < argc && strcmp(argv[n + 1], "--") == 0;
}

/* "ID --option ... --": meant for us, but behind the operand it would be the command's. */
static bool has_options_behind(int argc, char **argv, int n)
{
	if (is_behind_dashes(argv, n) || n + 1 >= argc || argv[n + 1][0] != '-')
		return false;
	for (int i = n + 1; i < argc; i++)
		if (strcmp(argv[i], "--") == 0)
			return true;
	return false;
}

int cmd_exec(const struct command *cmd, int argc, char **argv)
{
	struct exec_args args = { .box = BOX_ARGS_INIT };
	int n = cli_parse(cmd, argc, argv, &args);
	const char *sandbox = NULL;

	if (n <= 0)
		return -n;
	if (names_sandbox(argc, argv, n)) {
		sandbox = argv[n];
		n += 2;
	} else if (has_options_behind(argc, argv, n)) {
		cli_say("options stand before the sandbox: holt exec %.60s ... %.60s -- COMMAND",
			argv[n + 1], argv[n]);
		cli_hint("in a new box: holt exec -- %.60s %.60s ...", argv[n], argv[n + 1]);
		return CLI_USAGE;
	}
	if (n == argc) {
		cli_say("nothing to run");
		cli_hint("holt exec [OPTION...] [ID] -- COMMAND [ARG...]");
		return CLI_USAGE;
	}
	if (argc - n > GUEST_ARGS_MAX) {
		cli_say("a command has at most %d arguments", GUEST_ARGS_MAX);
		return CLI_USAGE;
	}
	if (args.cwd)
		args.box.workdir = args.cwd;
	if (sandbox)
		return exec_in_sandbox(&args, sandbox, argc - n, argv + n);
	return exec_in_box(&args, argc - n, argv + n);
}
