#include "cli/client.h"
#include "cli/command.h"
#include "cli/show.h"
#include "cli/table.h"

static const char *const heads[] = { "TEMPLATE", "READY", "BUILDING", "CLAIMED",  "TARGET",  "HITS",
				     "MISSES",   "EMPTY", "LIMITS",   "GIVEN UP", "PROBLEM", NULL };

static int add_row(void *user, struct jv item)
{
	static const struct {
		const char *name;
		bool is_missed; /* a member of "missed" */
	} fields[] = {
		{ "template", false }, { "ready", false },   { "building", false },
		{ "claimed", false },  { "target", false },  { "hits", false },
		{ "misses", false },   { "empty", true },    { "limits", true },
		{ "givenUp", false },  { "problem", false },
	};
	struct jv missed = jv_get(item, "missed");
	char text[256];
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof(fields) / sizeof(fields[0]); i++)
		r = table_add(user,
			      show_text(jv_get(fields[i].is_missed ? missed : item, fields[i].name),
					text, sizeof(text)));
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
