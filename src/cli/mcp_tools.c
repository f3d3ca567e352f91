/* holt mcp tools: what a client of MCP is offered, without one. */
#include <stdio.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "cli/command.h"
#include "config/config.h"
#include "tools/toolbox.h"
#include "json/jw.h"

struct tools_args {
	bool bound;
};

const struct opt mcp_tools_opts[] = {
	{ .name = "bound",
	  .type = OPT_FLAG,
	  .help = "those of one sandbox's own server",
	  .offset = offsetof(struct tools_args, bound) },
	{ 0 },
};

struct listing {
	struct tools *all;
	struct jw w;
	bool is_bound;
};

static void add(void *user, const struct tool *tool)
{
	struct listing *l = user;

	jw_object_begin(&l->w);
	tools_write(l->all, &l->w, tool, l->is_bound);
	jw_object_end(&l->w);
}

static int write_list(const struct config *config, bool is_bound, struct buf *b, struct err *err)
{
	_cleanup_(tools_free_p) struct tools *all = NULL;
	struct listing l = { .is_bound = is_bound };
	int r = tools_create(&(struct tools_deps){ .config = config }, &all, err);

	if (r < 0)
		return r;
	l.all = all;
	l.w = jw_begin(b);
	jw_object_begin(&l.w);
	jw_key(&l.w, "tools");
	jw_array_begin(&l.w);
	tools_each(all, is_bound, add, &l);
	jw_array_end(&l.w);
	jw_object_end(&l.w);
	r = jw_end(&l.w);
	return r < 0 ? err_sys(err, r, "tools") : 0;
}

int cmd_mcp_tools(const struct command *cmd, int argc, char **argv)
{
	_cleanup_(config_free_p) struct config *config = NULL;
	_cleanup_(buf_done) struct buf b = { 0 };
	struct tools_args args = { 0 };
	struct err err = { 0 };
	int n = cli_parse(cmd, argc, argv, &args), r;

	if (n <= 0)
		return -n;
	if (!cli_takes(cmd, argc, argv, n, 0, 0))
		return CLI_USAGE;
	r = config_load(&(struct config_args){ 0 }, &config, &err);
	if (r == 0)
		r = write_list(config, args.bound, &b, &err);
	if (r < 0)
		return cli_fail(&err);
	return puts(buf_str(&b)) < 0 ? CLI_ERROR : CLI_OK;
}
