/* Templates of one's own: create, ls, rm. */
#include <errno.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "cli/act.h"
#include "cli/box_args.h"
#include "cli/client.h"
#include "cli/command.h"
#include "cli/show.h"
#include "cli/table.h"
#include "json/jw.h"

#define IDS_MAX 1000

struct template_args {
	struct client_args client;
	const char *from, *snapshot, *about;
	struct limits limits;
	struct opt_list env;
};

#define AT(field) offsetof(struct template_args, field)
const struct opt template_create_opts[] = {
	{ .name = "from",
	  .type = OPT_TEXT,
	  .arg = "NAME",
	  .help = "what it begins with: built in, or one of your own (python)",
	  .offset = AT(from) },
	{ .name = "snapshot",
	  .type = OPT_TEXT,
	  .arg = "ID",
	  .help = "its files, and what it begins with",
	  .offset = AT(snapshot) },
	{ .name = "description",
	  .type = OPT_TEXT,
	  .arg = "TEXT",
	  .help = "what the list says about it",
	  .offset = AT(about) },
	LIMIT_OPTS(struct template_args, limits),
	{ .name = "env",
	  .letter = 'e',
	  .type = OPT_LIST,
	  .arg = "K=V",
	  .help = "environment of its sandboxes; K alone passes yours on",
	  .offset = AT(env) },
	CLIENT_OPTS(struct template_args, client),
	{ 0 },
};

static int write_body(const struct template_args *a, const char *name, struct buf *b,
		      struct err *err)
{
	static const struct client_pairs env = { "env", "env", true };
	struct jw w = jw_begin(b);
	int r;

	jw_object_begin(&w);
	jw_str_field(&w, "name", name);
	if (a->from)
		jw_str_field(&w, "from", a->from);
	if (a->snapshot)
		jw_str_field(&w, "snapshot", a->snapshot);
	if (a->about)
		jw_str_field(&w, "description", a->about);
	client_resources(&w, &a->limits);
	r = client_pairs(&w, &env, &a->env, err);
	if (r < 0)
		return r;
	jw_object_end(&w);
	r = jw_end(&w);
	return r < 0 ? err_sys(err, r, "request") : 0;
}

static int create(struct client *c, void *args, int n, char **names, struct err *err)
{
	_cleanup_(client_doc_done) struct client_doc d = { 0 };
	_cleanup_(buf_done) struct buf body = { 0 };
	const char *name;
	int r = write_body(args, names[0], &body, err);

	(void)n;
	if (r == 0)
		r = client_json(c, "POST", "/api/v1/templates", &body, &d, err);
	if (r < 0)
		return r;
	if (c->json)
		return client_print(&d.text);
	name = jv_text(jv_get(jv_root(d.doc), "name"));
	if (!name)
		return err_set(err, EPROTO, "the daemon's answer has no name");
	return printf("%s\n", name) < 0 ? -EIO : 0;
}

static int add_row(void *user, struct jv item)
{
	static const char *const fields[] = { "name", "from", "layers", "createdAt",
					      "description" };
	char text[256];
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof(fields) / sizeof(fields[0]); i++)
		r = table_add(user, show_text(jv_get(item, fields[i]), text, sizeof(text)));
	return r;
}

static int ls(struct client *c, void *args, int n, char **operands, struct err *err)
{
	static const char *const heads[] = { "NAME", "FROM", "LAYERS", "CREATED", "ABOUT", NULL };

	(void)args;
	(void)n;
	(void)operands;
	return client_print_list(c, "/api/v1/templates", heads, add_row, err);
}

static int rm(struct client *c, void *args, int n, char **ids, struct err *err)
{
	struct act act = { "DELETE", "templates/%", c, NULL, 0 };

	(void)args;
	(void)err;
	return act_on_each(&act, n, ids);
}

int cmd_template_create(const struct command *cmd, int argc, char **argv)
{
	struct template_args args = { 0 };
	struct client_task task = { &args, &args.client, 1, 1, create };

	return client_run(cmd, argc, argv, &task);
}

int cmd_template_ls(const struct command *cmd, int argc, char **argv)
{
	struct template_args args = { 0 };
	struct client_task task = { &args, &args.client, 0, 0, ls };

	return client_run(cmd, argc, argv, &task);
}

int cmd_template_rm(const struct command *cmd, int argc, char **argv)
{
	struct template_args args = { 0 };
	struct client_task task = { &args, &args.client, 1, IDS_MAX, rm };

	return client_run(cmd, argc, argv, &task);
}
