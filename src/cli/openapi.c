#include <stdio.h>

#include "api/openapi.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "cli/command.h"

int cmd_openapi(const struct command *cmd, int argc, char **argv)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct err err = { 0 };
	int n = cli_parse(cmd, argc, argv, NULL), r;

	if (n <= 0)
		return -n;
	if (!cli_takes(cmd, argc, argv, n, 0, 0))
		return CLI_USAGE;
	r = openapi_write(&b);
	if (r < 0) {
		(void)err_sys(&err, r, "openapi");
		return cli_fail(&err);
	}
	return puts(buf_str(&b)) < 0 ? CLI_ERROR : CLI_OK;
}
