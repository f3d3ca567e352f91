/* holt profile show: what security profiles set. */
#include <errno.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "cli/client.h"
#include "cli/command.h"
#include "cli/show.h"
#include "cli/table.h"

static const char *const heads[] = { "PROFILE", "SETTING", "VALUE", "WHAT IT MEANS", NULL };

static int add_profile(struct table *t, struct jv profile)
{
	struct jv settings = jv_get(profile, "settings"), reason = jv_get(profile, "reason");
	const char *name = jv_text(jv_get(profile, "name"));
	int r = 0;

	for (size_t i = 0; r == 0 && i < jv_len(settings); i++) {
		static const char *const fields[] = { "name", "value", "about" };
		struct jv s = jv_at(settings, i);
		char text[256];

		r = table_add(t, name);
		for (size_t k = 0; r == 0 && k < 3; k++)
			r = table_add(t, show_text(jv_get(s, fields[k]), text, sizeof(text)));
	}
	if (r == 0 && jv_text(reason)) {
		const char *const cells[] = { name, "available", "no", jv_text(reason) };

		for (size_t k = 0; r == 0 && k < 4; k++)
			r = table_add(t, cells[k]);
	}
	return r;
}

static int show(struct client *c, void *args, int n, char **operands, struct err *err)
{
	_cleanup_(client_doc_done) struct client_doc d = { 0 };
	_cleanup_(buf_done) struct buf target = { 0 };
	_cleanup_(table_done) struct table t = { 0 };
	struct jv root;
	int r = n > 0 ? client_path(&target, "profiles/%", operands[0])
		      : client_path(&target, "profiles");

	(void)args;
	if (r < 0)
		return err_sys(err, r, "request");
	r = client_json(c, "GET", target.data, NULL, &d, err);
	if (r < 0)
		return r;
	if (c->json)
		return client_print(&d.text);
	table_init(&t, heads);
	root = jv_root(d.doc);
	if (n > 0)
		r = add_profile(&t, root);
	for (size_t i = 0; n == 0 && r == 0 && i < jv_len(jv_get(root, "items")); i++)
		r = add_profile(&t, jv_at(jv_get(root, "items"), i));
	if (r < 0)
		return err_sys(err, r, "print");
	table_print(&t, stdout);
	return 0;
}

int cmd_profile_show(const struct command *cmd, int argc, char **argv)
{
	struct client_args args = { 0 };
	struct client_task task = { &args, &args, 0, 1, show };

	return client_run(cmd, argc, argv, &task);
}
