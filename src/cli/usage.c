#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/client.h"
#include "cli/command.h"
#include "cli/show.h"
#include "cli/table.h"
#include "httpc/url.h"

#define PAGE 1000

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

static const char *const heads[] = { "DAY",          "USER",       "EXECUTIONS", "CPU S", "WALL S",
				     "MEMORY GIB H", "DISK GIB H", "NETWORK B",  NULL };

static int add_row(void *user, struct jv item)
{
	static const char *const fields[] = { "day",          "user",        "executions",
					      "cpuSeconds",   "wallSeconds", "memoryGiBHours",
					      "diskGiBHours", "networkBytes" };
	const size_t n_fields = sizeof(fields) / sizeof(fields[0]);
	char text[256];
	int r = 0;

	for (size_t i = 0; r == 0 && i < n_fields; i++) {
		struct jv v = jv_get(item, fields[i]);
		double number;

		if (i >= 2 && jv_double(v, &number) == 0) {
			(void)snprintf(text, sizeof(text),
				       i == 2 || i == n_fields - 1 ? "%.0f" : "%.3f", number);
			r = table_add(user, text);
		} else {
			r = table_add(user, show_text(v, text, sizeof(text)));
		}
	}
	return r;
}

static size_t count_lines(const struct buf *b)
{
	size_t n = 0;

	for (size_t i = 0; i < b->len; i++)
		n += b->data[i] == '\n';
	return n;
}

/* All pages as one table: the heads are those of the first. */
static int print_csv(struct client *c, const char *target, struct err *err)
{
	size_t at = 0, n = PAGE;
	int r = 0;

	while (r == 0 && n == PAGE) {
		_cleanup_(buf_done) struct buf page = { 0 };
		struct httpc_answer answer = { 0 };
		const char *first;
		size_t skip = 0;

		if (buf_printf(&page, "%s&format=csv&limit=%d&cursor=%zu", target, PAGE, at) < 0)
			return err_sys(err, ENOMEM, "usage");
		r = client_call(c, &(struct httpc_request){ .method = "GET", .target = page.data },
				"usage", &answer, err);
		first = strchr(buf_str(&answer.body), '\n');
		n = first ? count_lines(&answer.body) - 1 : 0;
		if (first && at > 0)
			skip = (size_t)(first + 1 - answer.body.data);
		if (r == 0 && fwrite(buf_str(&answer.body) + skip, 1, answer.body.len - skip,
				     stdout) != answer.body.len - skip)
			r = err_sys(err, EIO, "standard output");
		at += n;
		buf_done(&answer.body);
	}
	return r;
}

static int show(struct client *c, void *args, int n, char **operands, struct err *err)
{
	_cleanup_(buf_done) struct buf target = { 0 };
	const struct usage_args *a = args;
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
	return a->csv ? print_csv(c, target.data, err)
		      : client_print_list(c, target.data, heads, add_row, err);
}

int cmd_usage(const struct command *cmd, int argc, char **argv)
{
	struct usage_args args = { 0 };
	struct client_task task = { &args, &args.client, 0, 0, show };

	return client_run(cmd, argc, argv, &task);
}
