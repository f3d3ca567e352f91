/* holt port: which ports of a sandbox others may reach. */
#include <errno.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "cli/client.h"
#include "cli/command.h"
#include "cli/show.h"
#include "cli/table.h"
#include "json/jw.h"

struct port_args {
	struct client_args client;
	bool is_public, wake;
};

#define AT(field) offsetof(struct port_args, field)
const struct opt port_expose_opts[] = {
	{ .name = "public",
	  .type = OPT_FLAG,
	  .help = "anybody may reach it, without a key or token",
	  .offset = AT(is_public) },
	{ .name = "wake",
	  .type = OPT_FLAG,
	  .help = "a request resumes the paused sandbox",
	  .offset = AT(wake) },
	CLIENT_OPTS(struct port_args, client),
	{ 0 },
};

static int check_port(const char *text, uint32_t *ret, struct err *err)
{
	if (parse_u32(text, 1, UINT16_MAX, ret) < 0)
		return err_set(err, EINVAL, "port '%.20s': want a number from 1 to 65535", text);
	return 0;
}

static int print_exposed(const struct client_doc *d)
{
	const char *url = jv_text(jv_get(jv_root(d->doc), "url"));
	const char *token = jv_text(jv_get(jv_root(d->doc), "token"));

	return printf("%s\n%s\n", url ? url : "", token ? token : "") < 0 ? -EIO : 0;
}

static int expose(struct client *c, void *args, int n, char **operands, struct err *err)
{
	_cleanup_(client_doc_done) struct client_doc d = { 0 };
	_cleanup_(buf_done) struct buf body = { 0 }, path = { 0 };
	const struct port_args *a = args;
	struct jw w = jw_begin(&body);
	uint32_t port;
	int r = check_port(operands[1], &port, err);

	(void)n;
	if (r < 0)
		return r;
	jw_object_begin(&w);
	jw_uint_field(&w, "port", port);
	jw_bool_field(&w, "public", a->is_public);
	jw_bool_field(&w, "wake", a->wake);
	jw_object_end(&w);
	r = jw_end(&w);
	if (r == 0)
		r = client_path(&path, "sandboxes/%/ports", operands[0]);
	if (r == 0)
		r = client_json(c, "POST", path.data, &body, &d, err);
	if (r < 0)
		return r;
	return c->json ? client_print(&d.text) : print_exposed(&d);
}

static const char *const heads[] = { "PORT", "PUBLIC", "WAKE", "AGE", "URL", NULL };

static int add_row(void *user, struct jv item)
{
	char text[256];
	int r = table_add(user, show_text(jv_get(item, "port"), text, sizeof(text)));

	if (r == 0)
		r = table_add(user, show_text(jv_get(item, "public"), text, sizeof(text)));
	if (r == 0)
		r = table_add(user, show_text(jv_get(item, "wake"), text, sizeof(text)));
	if (r == 0)
		r = table_add(user, show_since(jv_get(item, "createdAt"), text, sizeof(text)));
	if (r == 0)
		r = table_add(user, show_text(jv_get(item, "url"), text, sizeof(text)));
	return r;
}

static int list(struct client *c, void *args, int n, char **operands, struct err *err)
{
	_cleanup_(buf_done) struct buf path = { 0 };
	int r = client_path(&path, "sandboxes/%/ports", operands[0]);

	(void)args;
	(void)n;
	return r < 0 ? r : client_print_list(c, path.data, heads, add_row, err);
}

static int close_port(struct client *c, void *args, int n, char **operands, struct err *err)
{
	_cleanup_(client_doc_done) struct client_doc d = { 0 };
	_cleanup_(buf_done) struct buf path = { 0 };
	uint32_t port;
	int r = check_port(operands[1], &port, err);

	(void)args;
	(void)n;
	if (r == 0)
		r = client_path(&path, "sandboxes/%/ports/%", operands[0], operands[1]);
	return r < 0 ? r : client_json(c, "DELETE", path.data, NULL, &d, err);
}

int cmd_port_expose(const struct command *cmd, int argc, char **argv)
{
	struct port_args args = { 0 };
	struct client_task task = { &args, &args.client, 2, 2, expose };

	return client_run(cmd, argc, argv, &task);
}

int cmd_port_ls(const struct command *cmd, int argc, char **argv)
{
	struct client_args args = { 0 };
	struct client_task task = { &args, &args, 1, 1, list };

	return client_run(cmd, argc, argv, &task);
}

int cmd_port_rm(const struct command *cmd, int argc, char **argv)
{
	struct client_args args = { 0 };
	struct client_task task = { &args, &args, 2, 2, close_port };

	return client_run(cmd, argc, argv, &task);
}
