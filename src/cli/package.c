/* Packages of a sandbox. */
#include <errno.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "cli/client.h"
#include "cli/command.h"
#include "cli/remote.h"
#include "cli/show.h"
#include "cli/table.h"
#include "json/jw.h"

#define PACKAGES_MAX 64 /* of a request: docs/api.md */
#define TIME_MAX_MS (8760ull * 3600 * 1000)

struct package_args {
	struct client_args client;
	int manager;
	uint64_t timeout_ms; /* 0: the daemon's */
};

static const char *const managers[] = { "pip", "npm", "cargo", "go", NULL };

#define AT(field) offsetof(struct package_args, field)
const struct opt package_install_opts[] = {
	{ .name = "manager",
	  .letter = 'm',
	  .type = OPT_CHOICE,
	  .arg = "pip|npm|cargo|go",
	  .help = "whose packages they are (pip)",
	  .offset = AT(manager),
	  .choices = managers },
	{ .name = "timeout",
	  .type = OPT_DURATION,
	  .arg = "TIME",
	  .help = "how long it may take (10m)",
	  .offset = AT(timeout_ms),
	  .min = 1,
	  .max = TIME_MAX_MS },
	CLIENT_OPTS(struct package_args, client),
	{ 0 },
};

static int write_body(const struct package_args *a, bool stream, int n, char **packages,
		      struct buf *b)
{
	struct jw w = jw_begin(b);

	jw_object_begin(&w);
	jw_str_field(&w, "manager", managers[a->manager]);
	jw_key(&w, "packages");
	jw_array_begin(&w);
	for (int i = 0; i < n; i++)
		jw_string(&w, packages[i]);
	jw_array_end(&w);
	if (a->timeout_ms)
		jw_double_field(&w, "timeout", (double)a->timeout_ms / 1000);
	jw_bool_field(&w, "stream", stream);
	jw_object_end(&w);
	return jw_end(&w);
}

static int install_quietly(struct client *c, const char *sandbox, const struct buf *body,
			   struct err *err)
{
	_cleanup_(client_doc_done) struct client_doc d = { 0 };
	_cleanup_(buf_done) struct buf target = { 0 };
	int64_t code = CLI_ERROR;
	int r = client_path(&target, "sandboxes/%/packages", sandbox);

	if (r == 0)
		r = client_json(c, "POST", buf_str(&target), body, &d, err);
	if (r == 0)
		r = client_print(&d.text);
	if (r < 0)
		return r;
	(void)jv_i64(jv_get(jv_root(d.doc), "exitCode"), &code);
	return code >= 0 && code <= 255 ? (int)code : CLI_ERROR;
}

static int install(struct client *c, void *args, int n, char **operands, struct err *err)
{
	_cleanup_(buf_done) struct buf body = { 0 };
	const struct package_args *a = args;
	struct remote_run run = { .client = c,
				  .sandbox = operands[0],
				  .route = "sandboxes/%/packages",
				  .body = &body,
				  .timeout_ms = a->timeout_ms,
				  .no_stdin = true };
	int r = write_body(a, !c->json, n - 1, operands + 1, &body);

	if (r < 0)
		return r;
	if (c->json)
		return install_quietly(c, operands[0], &body, err);
	remote_block_signals();
	return remote_run(&run, err);
}

CLIENT_COMMAND(cmd_package_install, package_args, 2, PACKAGES_MAX + 1, install)

static int add_row(void *user, struct jv item)
{
	static const char *const fields[] = { "executionId", "running", "installed" };
	struct jv request = jv_get(item, "request");
	_cleanup_(buf_done) struct buf names = { 0 };
	char text[256];
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof(fields) / sizeof(fields[0]); i++)
		r = table_add(user, show_text(jv_get(item, fields[i]), text, sizeof(text)));
	if (r == 0)
		r = table_add(user, show_text(jv_get(request, "manager"), text, sizeof(text)));
	JV_FOREACH (jv_get(request, "packages"), it)
		(void)buf_printf(&names, "%s%s", names.len ? " " : "",
				 show_text(it.value, text, sizeof(text)));
	return r < 0 ? r : table_add(user, buf_str(&names));
}

struct list_args {
	struct client_args client;
};

static int list(struct client *c, void *args, int n, char **ids, struct err *err)
{
	static const char *const heads[] = { "EXECUTION", "STATUS",   "EXIT",
					     "MANAGER",   "PACKAGES", NULL };
	_cleanup_(buf_done) struct buf target = { 0 };
	int r = client_path(&target, "sandboxes/%/packages", ids[0]);

	(void)args;
	(void)n;
	return r < 0 ? r : client_print_list(c, buf_str(&target), heads, add_row, err);
}

CLIENT_COMMAND(cmd_package_ls, list_args, 1, 1, list)
