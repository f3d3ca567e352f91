#include <stdio.h>

#include "base/cleanup.h"
#include "cli/client.h"
#include "cli/command.h"
#include "cli/show.h"
#include "cli/table.h"
#include "httpc/url.h"

struct usage_args {
	struct client_args client;
	const char *from, *to, *user;
	bool csv;
};

#define AT(field) offsetof(struct usage_args, field)
const struct opt usage_opts[] = {
	{ .name = "from", .type = OPT_TEXT, .arg = "DAY", .help = "first day", .offset = AT(from) },
	{ .name = "to",
	  .type = OPT_TEXT,
	  .arg = "DAY",
	  .help = "day behind the last",
	  .offset = AT(to) },
	{ .name = "user",
	  .type = OPT_TEXT,
	  .arg = "NAME",
	  .help = "only theirs",
	  .offset = AT(user) },
	{ .name = "csv", .type = OPT_FLAG, .help = "as CSV", .offset = AT(csv) },
	CLIENT_OPTS(struct usage_args, client),
	{ 0 },
};

static const char *const heads[] = { "DAY",    "USER",         "EXECUTIONS", "CPU S",
				     "WALL S", "MEMORY GIB H", "DISK GIB H", NULL };

static int add_row(void *user, struct jv item)
{
	static const char *const fields[] = { "day",         "user",        "executions",
					      "cpuSeconds",  "wallSeconds", "memoryGiBHours",
					      "diskGiBHours" };
	char text[256];
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof(fields) / sizeof(fields[0]); i++) {
		struct jv v = jv_get(item, fields[i]);
		double number;

		if (i >= 2 && jv_double(v, &number) == 0) {
			(void)snprintf(text, sizeof(text), i == 2 ? "%.0f" : "%.3f", number);
			r = table_add(user, text);
		} else {
			r = table_add(user, show_text(v, text, sizeof(text)));
		}
	}
	return r;
}

static int show(struct client *c, void *args, int n, char **operands, struct err *err)
{
	_cleanup_(buf_done) struct buf target = { 0 };
	const struct usage_args *a = args;
	struct httpc_answer answer = { 0 };
	int r = buf_puts(&target, "/api/v1/usage?group=day,user");

	(void)n;
	(void)operands;
	if (r == 0 && a->from)
		r = url_add_query(&target, "from", a->from);
	if (r == 0 && a->to)
		r = url_add_query(&target, "to", a->to);
	if (r == 0 && a->user)
		r = url_add_query(&target, "user", a->user);
	if (r < 0)
		return err_sys(err, r, "usage");
	if (!a->csv)
		return client_print_list(c, target.data, heads, add_row, err);
	r = url_add_query(&target, "format", "csv");
	if (r == 0)
		r = client_call(c,
				&(struct httpc_request){ .method = "GET", .target = target.data },
				"usage", &answer, err);
	if (r == 0 && fwrite(buf_str(&answer.body), 1, answer.body.len, stdout) != answer.body.len)
		r = -1;
	buf_done(&answer.body);
	return r;
}

int cmd_usage(const struct command *cmd, int argc, char **argv)
{
	struct usage_args args = { 0 };
	struct client_task task = { &args, &args.client, 0, 0, show };

	return client_run(cmd, argc, argv, &task);
}
