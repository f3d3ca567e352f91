#include "base/err.h"
#include "cli/command.h"
#include "daemon/app.h"

struct serve_args {
	struct opt_settings settings; /* first */
};

int cmd_serve(const struct command *cmd, int argc, char **argv)
{
	struct serve_args args = { 0 };
	_cleanup_(config_free_p) struct config *config = NULL;
	struct config_args from = { 0 };
	struct err err = { 0 };
	int n = cli_parse(cmd, argc, argv, &args);

	if (n <= 0)
		return -n;
	if (n < argc) {
		cli_say("serve takes no operand: '%.60s'", argv[n]);
		return CLI_USAGE;
	}
	from.flags = args.settings.flags;
	from.flag_count = args.settings.len;
	if (config_load(&from, &config, &err) < 0 || app_serve(config, &err) < 0)
		return cli_fail(&err);
	return CLI_OK;
}
