/* Tools of the operator's MCP servers, and approvals of calls of them, from the command line. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/str.h"
#include "cli/client.h"
#include "cli/command.h"
#include "cli/show.h"
#include "cli/table.h"
#include "httpc/url.h"
#include "json/jw.h"

#define IDS_MAX 1000
#define WORDS_MAX 64
#define ARGUMENTS_MAX (4u << 20)
#define ABOUT_MAX 72 /* bytes of a description in a table */

struct tools_args {
	struct client_args client;
	const char *server, *content;
	uint64_t timeout_ms;
};

#define AT(field) offsetof(struct tools_args, field)
const struct opt tools_ls_opts[] = {
	{ .name = "server",
	  .type = OPT_TEXT,
	  .arg = "NAME",
	  .help = "only this one's",
	  .offset = AT(server) },
	CLIENT_OPTS(struct tools_args, client),
	{ 0 },
};

const struct opt tools_call_opts[] = {
	{ .name = "timeout",
	  .type = OPT_DURATION,
	  .arg = "TIME",
	  .help = "of all of it, an approval's wait included",
	  .offset = AT(timeout_ms),
	  .min = 100,
	  .max = 24ull * 3600 * 1000 },
	CLIENT_OPTS(struct tools_args, client),
	{ 0 },
};

const struct opt approvals_allow_opts[] = {
	{ .name = "content",
	  .type = OPT_TEXT,
	  .arg = "JSON",
	  .help = "the answer, where a server asks something",
	  .offset = AT(content) },
	CLIENT_OPTS(struct tools_args, client),
	{ 0 },
};

static int add_fields(struct table *t, struct jv item, const char *const *fields)
{
	char text[256];
	int r = 0;

	for (; r == 0 && *fields; fields++)
		r = table_add(t, show_text(jv_get(item, *fields), text, sizeof(text)));
	return r;
}

/* ---- looking ---- */

static int add_server(void *user, struct jv item)
{
	static const char *const fields[] = { "name",  "transport", "place", "status", "tools",
					      "calls", "restarts",  "error", NULL };

	return add_fields(user, item, fields);
}

static int servers(struct client *c, void *args, int n, char **operands, struct err *err)
{
	static const char *const heads[] = { "NAME",  "TRANSPORT", "PLACE", "STATUS", "TOOLS",
					     "CALLS", "RESTARTS",  "ERROR", NULL };

	(void)args, (void)n, (void)operands;
	return client_print_list(c, "/api/v1/tools/servers", heads, add_server, err);
}

/* The first line of it, as far as there is room. */
static const char *first_line(struct jv v, char dst[ABOUT_MAX + 4])
{
	const char *text = jv_text(v);
	size_t n = text ? strcspn(text, "\r\n") : 0, keep = n;

	if (n > ABOUT_MAX)
		for (keep = ABOUT_MAX; keep > 0 && (text[keep] & 0xc0) == 0x80;)
			keep--; /* not in the middle of a character */
	(void)str_format(dst, ABOUT_MAX + 4, "%.*s%s", (int)keep, text ? text : "",
			 keep < n ? "..." : "");
	return dst;
}

static int add_tool(void *user, struct jv item)
{
	static const char *const fields[] = { "server", "name", "policy", NULL };
	char about[ABOUT_MAX + 4];
	int r = add_fields(user, item, fields);

	return r < 0 ? r : table_add(user, first_line(jv_get(item, "description"), about));
}

static int print_tools(struct client *c, const struct tools_args *a, const char *query,
		       struct err *err)
{
	static const char *const heads[] = { "SERVER", "TOOL", "POLICY", "DESCRIPTION", NULL };
	_cleanup_(buf_done) struct buf target = { 0 };
	int r = buf_puts(&target, "/api/v1/tools");

	if (r == 0 && a->server)
		r = url_add_query(&target, "server", a->server);
	if (r == 0 && query)
		r = url_add_query(&target, "query", query);
	return r < 0 ? r : client_print_list(c, target.data, heads, add_tool, err);
}

static int list(struct client *c, void *args, int n, char **operands, struct err *err)
{
	(void)n, (void)operands;
	return print_tools(c, args, NULL, err);
}

static int search(struct client *c, void *args, int n, char **words, struct err *err)
{
	_cleanup_(buf_done) struct buf query = { 0 };

	for (int i = 0; i < n; i++)
		if (buf_printf(&query, "%s%s", i > 0 ? " " : "", words[i]) < 0)
			return err_sys(err, ENOMEM, "query");
	return print_tools(c, args, buf_str(&query), err);
}

static int print_tool(const struct client *c, struct jv tool)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);
	int r;

	if (!c->json) {
		show_object(tool, stdout);
		return 0;
	}
	jw_value(&w, tool);
	r = jw_end(&w);
	return r < 0 ? r : client_print(&b);
}

static int show(struct client *c, void *args, int n, char **names, struct err *err)
{
	_cleanup_(client_doc_done) struct client_doc d = { 0 };
	_cleanup_(buf_done) struct buf target = { 0 };
	int r = client_path(&target, "tools?detail=full&limit=1000&server=%", names[0]);

	(void)args, (void)n;
	if (r == 0)
		r = client_json(c, "GET", target.data, NULL, &d, err);
	if (r < 0)
		return r;
	JV_FOREACH (jv_get(jv_root(d.doc), "items"), it) {
		const char *name = jv_text(jv_get(it.value, "name"));

		if (name && strcmp(name, names[1]) == 0)
			return print_tool(c, it.value);
	}
	return err_set(err, ENOENT, "the server '%.64s' has no tool '%.128s'", names[0], names[1]);
}

/* ---- calling ---- */

/* "-" is standard input. */
static int read_arguments(const char *text, struct buf *ret, struct err *err)
{
	struct jv_doc *doc = NULL;
	int r;

	ret->max = ARGUMENTS_MAX;
	r = strcmp(text, "-") == 0 ? fd_slurp(STDIN_FILENO, ret) : buf_puts(ret, text);
	if (r < 0)
		return err_sys(err, r, "arguments");
	r = jv_parse(buf_str(ret), ret->len, ARGUMENTS_MAX, &doc, err);
	(void)jv_free(doc);
	return r;
}

static int write_call(const struct tools_args *a, const char *arguments, struct buf *ret,
		      struct err *err)
{
	_cleanup_(buf_done) struct buf json = { 0 };
	struct jw w = jw_begin(ret);
	int r = arguments ? read_arguments(arguments, &json, err) : 0;

	if (r < 0)
		return r;
	jw_object_begin(&w);
	if (arguments)
		jw_raw_field(&w, "arguments", buf_str(&json), json.len);
	if (a->timeout_ms)
		jw_double_field(&w, "timeout", (double)a->timeout_ms / 1000);
	jw_object_end(&w);
	return jw_end(&w) < 0 ? err_sys(err, ENOMEM, "arguments") : 0;
}

/* Texts as they are; of all else what it is. */
static int print_content(struct jv result, FILE *to)
{
	JV_FOREACH (jv_get(result, "content"), it) {
		const char *type = jv_text(jv_get(it.value, "type"));
		struct str text;

		if (jv_str(jv_get(it.value, "text"), &text) == 0)
			(void)fprintf(to, "%.*s\n", (int)text.len, text.data);
		else
			(void)fprintf(to, "[%s]\n", type ? type : "?");
	}
	return ferror(to) ? -EIO : 0;
}

static int call(struct client *c, void *args, int n, char **operands, struct err *err)
{
	_cleanup_(buf_done) struct buf target = { 0 }, body = { 0 }, text = { 0 };
	struct httpc_request req = { .method = "POST",
				     .accept = "application/json",
				     .type = "application/json",
				     .timeout_ms = HTTPC_NO_LIMIT,
				     .stall_ms = HTTPC_NO_LIMIT };
	struct httpc_answer answer = { 0 };
	struct jv_doc *doc = NULL;
	bool is_error = false;
	int r = client_path(&target, "tools/%/%/call", operands[0], operands[1]);

	if (r == 0)
		r = write_call(args, n > 2 ? operands[2] : NULL, &body, err);
	if (r < 0)
		return r;
	req.target = target.data;
	req.body = buf_str(&body);
	req.body_len = body.len;
	r = client_call(c, &req, "waiting for the tool", &answer, err);
	text = answer.body;
	if (r == 0)
		r = jv_parse(buf_str(&text), text.len, text.len, &doc, err);
	if (r < 0)
		return r;
	(void)jv_bool(jv_get(jv_root(doc), "isError"), &is_error);
	r = c->json ? client_print(&text) : print_content(jv_root(doc), is_error ? stderr : stdout);
	(void)jv_free(doc);
	return r < 0 ? r : is_error ? CLI_ERROR : 0;
}

/* ---- approvals ---- */

static int add_approval(void *user, struct jv item)
{
	static const char *const fields[] = { "id",    "server",  "tool", "method",
					      "owner", "sandbox", NULL };
	char until[64];
	int r = add_fields(user, item, fields);

	return r < 0 ? r
		     : table_add(user, show_until(jv_get(item, "expiresAt"), until, sizeof(until)));
}

static int approvals(struct client *c, void *args, int n, char **operands, struct err *err)
{
	static const char *const heads[] = { "ID",    "SERVER",  "TOOL",    "METHOD",
					     "OWNER", "SANDBOX", "EXPIRES", NULL };

	(void)args, (void)n, (void)operands;
	return client_print_list(c, "/api/v1/approvals", heads, add_approval, err);
}

static int decide(struct client *c, const char *id, const char *decision, const char *content,
		  struct err *err)
{
	_cleanup_(client_doc_done) struct client_doc d = { 0 };
	_cleanup_(buf_done) struct buf target = { 0 }, body = { 0 }, json = { 0 };
	struct jw w = jw_begin(&body);
	int r = client_path(&target, "approvals/%", id);

	if (r == 0 && content)
		r = read_arguments(content, &json, err);
	if (r < 0)
		return r;
	jw_object_begin(&w);
	jw_str_field(&w, "decision", decision);
	if (content)
		jw_raw_field(&w, "content", buf_str(&json), json.len);
	jw_object_end(&w);
	r = jw_end(&w);
	return r < 0 ? r : client_json(c, "POST", target.data, &body, &d, err);
}

static int decide_all(struct client *c, const struct tools_args *a, int n, char **ids,
		      const char *decision, struct err *err)
{
	int r = 0;

	for (int i = 0; i < n && r == 0; i++)
		r = decide(c, ids[i], decision, a->content, err);
	return r;
}

static int allow(struct client *c, void *args, int n, char **ids, struct err *err)
{
	return decide_all(c, args, n, ids, "allow", err);
}

static int deny(struct client *c, void *args, int n, char **ids, struct err *err)
{
	return decide_all(c, args, n, ids, "deny", err);
}

CLIENT_COMMAND(cmd_tools_servers, tools_args, 0, 0, servers, 0)
CLIENT_COMMAND(cmd_tools_ls, tools_args, 0, 0, list, 0)
CLIENT_COMMAND(cmd_tools_search, tools_args, 1, WORDS_MAX, search, 0)
CLIENT_COMMAND(cmd_tools_show, tools_args, 2, 2, show, 0)
CLIENT_COMMAND(cmd_tools_call, tools_args, 2, 3, call, 0)
CLIENT_COMMAND(cmd_approvals_ls, tools_args, 0, 0, approvals, 0)
CLIENT_COMMAND(cmd_approvals_allow, tools_args, 1, IDS_MAX, allow, 0)
CLIENT_COMMAND(cmd_approvals_deny, tools_args, 1, IDS_MAX, deny, 0)
