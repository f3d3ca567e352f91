#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/client.h"
#include "cli/command.h"
#include "cli/show.h"
#include "cli/table.h"
#include "cli/when.h"
#include "httpc/url.h"

struct ls_args {
	struct client_args client;
	bool all, quiet;
	const char *status, *template;
	struct opt_list metadata;
};

#define AT(field) offsetof(struct ls_args, field)
const struct opt sandbox_ls_opts[] = {
	{ .name = "all",
	  .letter = 'a',
	  .type = OPT_FLAG,
	  .help = "ended ones too",
	  .offset = AT(all) },
	{ .name = "status",
	  .type = OPT_TEXT,
	  .arg = "NAME,...",
	  .help = "only these: creating, running, paused, stopped, failed ...",
	  .offset = AT(status) },
	{ .name = "template",
	  .letter = 't',
	  .type = OPT_TEXT,
	  .arg = "NAME",
	  .help = "only those made of it",
	  .offset = AT(template) },
	{ .name = "metadata",
	  .type = OPT_LIST,
	  .arg = "K=V",
	  .help = "only those that have it; may be repeated",
	  .offset = AT(metadata) },
	{ .name = "quiet",
	  .letter = 'q',
	  .type = OPT_FLAG,
	  .help = "only the ids",
	  .offset = AT(quiet) },
	CLIENT_OPTS(struct ls_args, client),
	{ 0 },
};

static int write_target(const struct ls_args *a, struct buf *b, struct err *err)
{
	int r = client_path(b, "sandboxes");

	if (a->all || a->status)
		r = url_add_query(b, "status", a->all ? "all" : a->status);
	if (a->template)
		r = url_add_query(b, "template", a->template);
	for (size_t i = 0; r == 0 && i < a->metadata.len; i++) {
		const char *text = a->metadata.items[i], *equals = strchr(text, '=');
		char name[300];

		if (!equals || equals == text || equals - text > 256)
			return err_set(err, EINVAL, "--metadata '%.60s': wants NAME=value", text);
		(void)snprintf(name, sizeof(name), "metadata.%.*s", (int)(equals - text), text);
		r = url_add_query(b, name, equals + 1);
	}
	return r < 0 ? err_sys(err, r, "request") : 0;
}

static int add_id(void *user, struct jv item)
{
	const char *id = jv_text(jv_get(item, "id"));

	(void)user;
	return id && printf("%s\n", id) < 0 ? -EIO : 0;
}

/* "in 55m", or what is left of one that stands still. */
static const char *show_end(struct jv item, char *dst, size_t size)
{
	struct jv remaining = jv_get(item, "remaining");
	char text[WHEN_SIZE];
	double left;

	if (jv_kind(jv_get(item, "endedAt")) == JV_STRING)
		return "-";
	if (jv_double(remaining, &left) < 0)
		return show_until(jv_get(item, "expiresAt"), dst, size);
	when_span((int64_t)(left * 1000), text);
	(void)snprintf(dst, size, "%s left", text);
	return dst;
}

static const char *const heads[] = { "ID",    "NAME", "STATUS",  "TEMPLATE",
				     "START", "AGE",  "EXPIRES", NULL };

static int add_row(void *user, struct jv item)
{
	static const char *const fields[] = { "id", "name", "status", "template", "start" };
	struct table *t = user;
	char text[256];
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof(fields) / sizeof(fields[0]); i++)
		r = table_add(t, show_text(jv_get(item, fields[i]), text, sizeof(text)));
	if (r == 0)
		r = table_add(t, show_since(jv_get(item, "createdAt"), text, sizeof(text)));
	if (r == 0)
		r = table_add(t, show_end(item, text, sizeof(text)));
	return r;
}

static int list(struct client *c, void *args, int n, char **operands, struct err *err)
{
	_cleanup_(buf_done) struct buf target = { 0 };
	const struct ls_args *a = args;
	int r = write_target(a, &target, err);

	(void)n;
	(void)operands;
	if (r < 0)
		return r;
	if (a->quiet && !c->json)
		return client_list(c, target.data, add_id, NULL, err);
	return client_print_list(c, target.data, heads, add_row, err);
}

int cmd_sandbox_ls(const struct command *cmd, int argc, char **argv)
{
	struct ls_args args = { 0 };
	struct client_task task = { &args, &args.client, 0, 0, list };

	return client_run(cmd, argc, argv, &task);
}
