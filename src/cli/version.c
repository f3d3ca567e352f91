#include <stdbool.h>
#include <stdio.h>

#include "cli/command.h"
#include "spec/wire.h"

#ifndef HOLT_VERSION
#define HOLT_VERSION "0"
#endif

struct version_args {
	bool json;
};

const struct opt version_opts[] = {
	{ .name = "json",
	  .type = OPT_FLAG,
	  .help = "as a JSON object",
	  .offset = offsetof(struct version_args, json) },
	{ 0 },
};

int cmd_version(const struct command *cmd, int argc, char **argv)
{
	struct version_args args = { 0 };
	int n = cli_parse(cmd, argc, argv, &args);

	if (n <= 0)
		return -n;
	if (args.json)
		(void)printf("{\"version\":\"" HOLT_VERSION "\",\"protocol\":%d}\n", WIRE_VERSION);
	else
		(void)puts("holt " HOLT_VERSION);
	return CLI_OK;
}
