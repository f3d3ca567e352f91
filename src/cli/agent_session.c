/* Sessions of agents from the command line. */
#include <errno.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "cli/act.h"
#include "cli/client.h"
#include "cli/command.h"
#include "cli/show.h"
#include "cli/table.h"
#include "httpc/url.h"
#include "json/jw.h"

#define LIST "/api/sessions"
#define IDS_MAX 1000

struct session_args {
	struct client_args client;
	const char *name, *agent, *user, *template;
	uint64_t timeout_ms, wait_ms;
	struct opt_list metadata, env;
	bool no_workspace, as_env;
};

#define AT(field) offsetof(struct session_args, field)

const struct opt session_create_opts[] = {
	{ .name = "name",
	  .letter = 'n',
	  .type = OPT_TEXT,
	  .arg = "TEXT",
	  .help = "for people",
	  .offset = AT(name) },
	{ .name = "agent",
	  .letter = 'a',
	  .type = OPT_TEXT,
	  .arg = "REF",
	  .help = "whose session it is: a text of yours",
	  .offset = AT(agent) },
	{ .name = "user-id",
	  .type = OPT_TEXT,
	  .arg = "ID",
	  .help = "a user of yours",
	  .offset = AT(user) },
	{ .name = "template",
	  .letter = 't',
	  .type = OPT_TEXT,
	  .arg = "NAME",
	  .help = "of its sandbox (python)",
	  .offset = AT(template) },
	{ .name = "timeout",
	  .type = OPT_DURATION,
	  .arg = "TIME",
	  .help = "time to live of its sandbox",
	  .offset = AT(timeout_ms),
	  .min = 1000,
	  .max = 366ll * 24 * 3600 * 1000 },
	{ .name = "env",
	  .letter = 'e',
	  .type = OPT_LIST,
	  .arg = "K=V",
	  .help = "environment in its sandbox; K alone passes yours on; may be repeated",
	  .offset = AT(env) },
	{ .name = "metadata",
	  .letter = 'm',
	  .type = OPT_LIST,
	  .arg = "K=V",
	  .help = "kept with it; may be repeated",
	  .offset = AT(metadata) },
	{ .name = "no-workspace",
	  .type = OPT_FLAG,
	  .help = "it has no sandbox",
	  .offset = AT(no_workspace) },
	CLIENT_OPTS(struct session_args, client),
	{ 0 },
};

const struct opt session_ls_opts[] = {
	{ .name = "user-id",
	  .type = OPT_TEXT,
	  .arg = "ID",
	  .help = "only of this user of yours",
	  .offset = AT(user) },
	CLIENT_OPTS(struct session_args, client),
	{ 0 },
};

const struct opt session_sandbox_opts[] = {
	{ .name = "wait",
	  .letter = 'w',
	  .type = OPT_DURATION,
	  .arg = "TIME",
	  .help = "how long to wait for it (5m)",
	  .offset = AT(wait_ms),
	  .min = 1,
	  .max = 600 * 1000 },
	{ .name = "env",
	  .type = OPT_FLAG,
	  .help = "as variables for a shell: eval \"$(holt session sandbox --env ID)\"",
	  .offset = AT(as_env) },
	CLIENT_OPTS(struct session_args, client),
	{ 0 },
};

/* ---- making ---- */

static int write_wish(const struct session_args *a, const char *id, struct buf *b, struct err *err)
{
	struct client_pairs env = { "env", "--env", true };
	struct client_pairs metadata = { "metadata", "--metadata", false };
	struct jw w = jw_begin(b);
	int r;

	jw_object_begin(&w);
	if (id)
		jw_str_field(&w, "id", id);
	if (a->name)
		jw_str_field(&w, "name", a->name);
	if (a->agent)
		jw_str_field(&w, "agent_ref", a->agent);
	if (a->user)
		jw_str_field(&w, "user_id", a->user);
	r = client_pairs(&w, &metadata, &a->metadata, err);
	jw_key(&w, "workspace");
	jw_object_begin(&w);
	jw_bool_field(&w, "enabled", !a->no_workspace);
	if (a->template)
		jw_str_field(&w, "template", a->template);
	if (a->timeout_ms)
		jw_double_field(&w, "timeout", (double)a->timeout_ms / 1e3);
	if (r == 0)
		r = client_pairs(&w, &env, &a->env, err);
	jw_object_end(&w);
	jw_object_end(&w);
	return r < 0 ? r : jw_end(&w);
}

static int create(struct client *c, void *args, int n, char **ids, struct err *err)
{
	_cleanup_(client_doc_done) struct client_doc d = { 0 };
	_cleanup_(buf_done) struct buf body = { 0 };
	const char *id;
	int r = write_wish(args, n > 0 ? ids[0] : NULL, &body, err);

	if (r == 0)
		r = client_json(c, "POST", LIST, &body, &d, err);
	if (r < 0)
		return r;
	if (c->json)
		return client_print(&d.text);
	id = jv_text(jv_get(jv_get(jv_root(d.doc), "data"), "id"));
	if (!id)
		return err_set(err, EPROTO, "the daemon's answer has no id");
	return printf("%s\n", id) < 0 ? -EIO : 0;
}

/* ---- looking ---- */

static int row(void *user, struct jv item)
{
	static const char *const fields[] = { "id", "name", "agent_ref", "user_id", NULL };
	char text[256];
	int r = 0;

	for (size_t i = 0; r == 0 && fields[i]; i++)
		r = table_add(user, show_text(jv_get(item, fields[i]), text, sizeof(text)));
	return r < 0 ? r
		     : table_add(user, show_since(jv_get(item, "created_at"), text, sizeof(text)));
}

static int ls(struct client *c, void *args, int n, char **operands, struct err *err)
{
	static const char *const heads[] = { "ID", "NAME", "AGENT", "USER", "CREATED", NULL };
	_cleanup_(buf_done) struct buf target = { 0 };
	const struct session_args *a = args;
	int r = buf_puts(&target, LIST);

	(void)n;
	(void)operands;
	if (r == 0 && a->user)
		r = url_add_query(&target, "user_id", a->user);
	return r < 0 ? r : client_print_list(c, target.data, heads, row, err);
}

static int show(struct client *c, void *args, int n, char **ids, struct err *err)
{
	_cleanup_(client_doc_done) struct client_doc d = { 0 };
	_cleanup_(buf_done) struct buf target = { 0 };
	int r = client_path(&target, LIST "/%", ids[0]);

	(void)args;
	(void)n;
	if (r == 0)
		r = client_json(c, "GET", target.data, NULL, &d, err);
	if (r < 0)
		return r;
	if (c->json)
		return client_print(&d.text);
	show_object(jv_get(jv_get(jv_root(d.doc), "data"), "session"), stdout);
	return 0;
}

/* In single quotes, whatever it holds. */
static int print_variable(const char *name, struct jv value)
{
	const char *text = jv_text(value);

	if (!text)
		return -EPROTO;
	(void)printf("export %s='", name);
	for (; *text; text++)
		(void)(*text == '\'' ? printf("'\\''") : printf("%c", *text));
	return printf("'\n") < 0 ? -EIO : 0;
}

static int print_variables(struct jv s, struct err *err)
{
	int r = print_variable("HOLT_SANDBOX_ID", jv_get(s, "sandbox_id"));

	if (r == 0)
		r = print_variable("HOLT_MCP_URL", jv_get(s, "mcp_url"));
	if (r == 0)
		r = print_variable("HOLT_MCP_AUTHORIZATION",
				   jv_get(jv_get(s, "headers"), "Authorization"));
	return r == -EPROTO ? err_set(err, EPROTO, "the key may not use what it asks for") : r;
}

static int sandbox(struct client *c, void *args, int n, char **ids, struct err *err)
{
	_cleanup_(client_doc_done) struct client_doc d = { 0 };
	_cleanup_(buf_done) struct buf target = { 0 }, body = { 0 };
	const struct session_args *a = args;
	struct jw w = jw_begin(&body);
	int r = client_path(&target, LIST "/%/sandbox", ids[0]);

	(void)n;
	jw_object_begin(&w);
	if (a->wait_ms)
		jw_double_field(&w, "timeout", (double)a->wait_ms / 1e3);
	jw_object_end(&w);
	if (r == 0)
		r = jw_end(&w);
	if (r == 0)
		r = client_json(c, "POST", target.data, &body, &d, err);
	if (r < 0)
		return r;
	return a->as_env ? print_variables(jv_root(d.doc), err) : client_print_object(c, &d);
}

/* ---- ending ---- */

static int rm(struct client *c, void *args, int n, char **ids, struct err *err)
{
	struct act act = { "DELETE", LIST "/%", c, NULL, 0, NULL };

	(void)args;
	(void)err;
	return act_on_each(&act, n, ids);
}

CLIENT_COMMAND(cmd_session_create, session_args, 0, 1, create, .name = NULL)
CLIENT_COMMAND(cmd_session_ls, session_args, 0, 0, ls, .name = NULL)
CLIENT_COMMAND(cmd_session_show, session_args, 1, 1, show, .name = NULL)
CLIENT_COMMAND(cmd_session_sandbox, session_args, 1, 1, sandbox, .name = NULL)
CLIENT_COMMAND(cmd_session_rm, session_args, 1, IDS_MAX, rm, .name = NULL)
