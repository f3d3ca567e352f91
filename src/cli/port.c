/* holt port: which ports of a sandbox others may reach, and which listen. */
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

/* ---- the list ---- */

static const char *const heads[] = { "PORT",    "EXPOSED", "WAKE", "LISTENS",
				     "PROGRAM", "AGE",     "URL",  NULL };

static bool is_same(struct jv a, struct jv b)
{
	uint64_t x = 0, y = 0;

	return jv_u64(jv_get(a, "port"), &x) == 0 && jv_u64(jv_get(b, "port"), &y) == 0 && x == y;
}

/* The addresses on which the port of this one listens, and the first one's program. */
static void find_listeners(struct jv listening, struct jv port, struct buf *addresses,
			   struct buf *program)
{
	JV_FOREACH (listening, it) {
		const char *address = jv_text(jv_get(it.value, "address"));
		const char *command = jv_text(jv_get(it.value, "command"));
		uint64_t pid = 0;

		if (!is_same(it.value, port))
			continue;
		(void)buf_printf(addresses, "%s%s", addresses->len > 0 ? "," : "",
				 address ? address : "?");
		if (program->len == 0 && jv_u64(jv_get(it.value, "pid"), &pid) == 0)
			(void)buf_printf(program, "%s (%llu)", command ? command : "?",
					 (unsigned long long)pid);
	}
}

/* One that is exposed, or that only listens: then it has neither "public" nor the rest. */
static int add_row(struct table *t, struct jv item, struct jv listening)
{
	_cleanup_(buf_done) struct buf addresses = { 0 }, program = { 0 };
	bool is_public = false, is_exposed = jv_bool(jv_get(item, "public"), &is_public) == 0;
	const char *exposed = is_public ? "public" : is_exposed ? "yes" : "no";
	char text[256];
	int r = table_add(t, show_text(jv_get(item, "port"), text, sizeof(text)));

	find_listeners(listening, item, &addresses, &program);
	if (r == 0)
		r = table_add(t, exposed);
	if (r == 0)
		r = table_add(t, is_exposed ? show_text(jv_get(item, "wake"), text, sizeof(text))
					    : NULL);
	if (r == 0)
		r = table_add(t, buf_str(&addresses));
	if (r == 0)
		r = table_add(t, buf_str(&program));
	if (r == 0)
		r = table_add(t, is_exposed
					 ? show_since(jv_get(item, "createdAt"), text, sizeof(text))
					 : NULL);
	return r < 0 ? r : table_add(t, jv_text(jv_get(item, "url")));
}

/* A port on several addresses is one row: that of the first. */
static bool is_repeated(struct jv listening, size_t at)
{
	for (size_t i = 0; i < at; i++)
		if (is_same(jv_at(listening, i), jv_at(listening, at)))
			return true;
	return false;
}

static int add_rows(struct table *t, struct jv answer)
{
	struct jv listening = jv_get(answer, "listening");
	int r = 0;

	JV_FOREACH (jv_get(answer, "items"), it)
		r = r < 0 ? r : add_row(t, it.value, listening);
	for (size_t i = 0; i < jv_len(listening) && r == 0; i++) {
		bool is_exposed = false;

		(void)jv_bool(jv_get(jv_at(listening, i), "exposed"), &is_exposed);
		if (!is_exposed && !is_repeated(listening, i))
			r = add_row(t, jv_at(listening, i), listening);
	}
	return r;
}

static int list(struct client *c, void *args, int n, char **operands, struct err *err)
{
	_cleanup_(client_doc_done) struct client_doc d = { 0 };
	_cleanup_(buf_done) struct buf path = { 0 };
	_cleanup_(table_done) struct table t;
	int r = client_path(&path, "sandboxes/%/ports", operands[0]);

	(void)args;
	(void)n;
	table_init(&t, heads);
	if (r == 0)
		r = client_json(c, "GET", path.data, NULL, &d, err);
	if (r < 0)
		return r;
	if (c->json)
		return client_print(&d.text);
	r = add_rows(&t, jv_root(d.doc));
	if (r == 0)
		table_print(&t, stdout);
	return r;
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
