/* Builds of templates: ls, show, cancel; and what they have cached. */
#include <errno.h>

#include "cli/act.h"
#include "cli/client.h"
#include "cli/command.h"
#include "cli/show.h"
#include "cli/table.h"

#define IDS_MAX 1000

static int add_row(void *user, struct jv item)
{
	static const char *const fields[] = { "id",       "name",      "status",
					      "template", "createdAt", "reason" };
	char text[256];
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof(fields) / sizeof(fields[0]); i++)
		r = table_add(user, show_text(jv_get(item, fields[i]), text, sizeof(text)));
	return r;
}

static int ls(struct client *c, void *args, int n, char **operands, struct err *err)
{
	static const char *const heads[] = { "ID",      "NAME",   "STATUS", "TEMPLATE",
					     "CREATED", "REASON", NULL };

	(void)args;
	(void)n;
	(void)operands;
	return client_print_list(c, "/api/v1/templates/builds", heads, add_row, err);
}

static int show(struct client *c, void *args, int n, char **ids, struct err *err)
{
	(void)args;
	(void)n;
	return client_show(c, "templates/builds/%", ids[0], err);
}

static int cancel(struct client *c, void *args, int n, char **ids, struct err *err)
{
	struct act act = { "DELETE", "templates/builds/%", c, NULL, 0, NULL };

	(void)args;
	(void)err;
	return act_on_each(&act, n, ids);
}

static int prune(struct client *c, void *args, int n, char **operands, struct err *err)
{
	struct client_doc d = { 0 };
	int r = client_json(c, "DELETE", "/api/v1/templates/cache", NULL, &d, err);

	(void)args;
	(void)n;
	(void)operands;
	client_doc_done(&d);
	return r;
}

int cmd_build_ls(const struct command *cmd, int argc, char **argv)
{
	struct client_args args = { 0 };
	struct client_task task = { &args, &args, 0, 0, ls };

	return client_run(cmd, argc, argv, &task);
}

int cmd_build_show(const struct command *cmd, int argc, char **argv)
{
	struct client_args args = { 0 };
	struct client_task task = { &args, &args, 1, 1, show };

	return client_run(cmd, argc, argv, &task);
}

int cmd_build_cancel(const struct command *cmd, int argc, char **argv)
{
	struct client_args args = { 0 };
	struct client_task task = { &args, &args, 1, IDS_MAX, cancel };

	return client_run(cmd, argc, argv, &task);
}

int cmd_build_prune(const struct command *cmd, int argc, char **argv)
{
	struct client_args args = { 0 };
	struct client_task task = { &args, &args, 0, 0, prune };

	return client_run(cmd, argc, argv, &task);
}
