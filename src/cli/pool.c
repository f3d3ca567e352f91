#include "cli/client.h"
#include "cli/command.h"
#include "cli/show.h"
#include "cli/table.h"

static const char *const heads[] = { "TEMPLATE", "READY",  "BUILDING", "CLAIMED", "TARGET",
				     "HITS",     "MISSES", "GIVEN UP", "PROBLEM", NULL };

static int add_row(void *user, struct jv item)
{
	static const char *const fields[] = { "template", "ready",  "building", "claimed", "target",
					      "hits",     "misses", "givenUp",  "problem" };
	char text[256];
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof(fields) / sizeof(fields[0]); i++)
		r = table_add(user, show_text(jv_get(item, fields[i]), text, sizeof(text)));
	return r;
}

static int show(struct client *c, void *args, int n, char **operands, struct err *err)
{
	(void)args;
	(void)n;
	(void)operands;
	return client_print_list(c, "/api/v1/pool", heads, add_row, err);
}

int cmd_pool(const struct command *cmd, int argc, char **argv)
{
	struct client_args args = { 0 };
	struct client_task task = { &args, &args, 0, 0, show };

	return client_run(cmd, argc, argv, &task);
}
