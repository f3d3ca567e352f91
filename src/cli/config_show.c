#include "base/err.h"
#include "cli/command.h"

struct config_args_of_show {
	struct opt_settings settings; /* first */
	bool json;
};

const struct opt config_show_opts[] = {
	{ .name = "json",
	  .type = OPT_FLAG,
	  .help = "as a JSON object",
	  .offset = offsetof(struct config_args_of_show, json) },
	{ 0 },
};

int cmd_config_show(const struct command *cmd, int argc, char **argv)
{
	struct config_args_of_show args = { 0 };
	_cleanup_(config_free_p) struct config *config = NULL;
	struct config_args from = { 0 };
	struct err err = { 0 };
	int n = cli_parse(cmd, argc, argv, &args);

	if (n <= 0)
		return -n;
	from.flags = args.settings.flags;
	from.flag_count = args.settings.len;
	if (config_load(&from, &config, &err) < 0)
		return cli_fail(&err);
	for (size_t i = 0; i < config->warning_count; i++)
		cli_say("warning: %s", config->warnings[i]);
	return config_print(config, args.json, stdout) < 0 ? CLI_ERROR : CLI_OK;
}
