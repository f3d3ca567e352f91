/* Templates of one's own: create, ls, show, rm; their aliases. */
#include <errno.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "base/str.h"
#include "cli/act.h"
#include "cli/box_args.h"
#include "cli/client.h"
#include "cli/command.h"
#include "cli/show.h"
#include "cli/table.h"
#include "cli/template_file.h"
#include "json/jw.h"

#define IDS_MAX 1000

struct template_args {
	struct client_args client;
	const char *file, *from, *snapshot, *about;
	struct limits limits;
	struct opt_list env, writable, preload, preload_node;
	const char *user, *workdir;
	bool writable_root;
	const char *start, *ready_command, *ready_http;
	uint32_t ready_port;
	uint64_t start_ms;
};

#define AT(field) offsetof(struct template_args, field)
const struct opt template_create_opts[] = {
	{ .name = "file",
	  .letter = 'f',
	  .type = OPT_TEXT,
	  .arg = "FILE",
	  .help = "what it says, as YAML; options add to it",
	  .offset = AT(file) },
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
	{ .name = "user",
	  .type = OPT_TEXT,
	  .arg = "NAME",
	  .help = "who runs what names nobody",
	  .offset = AT(user) },
	{ .name = "workdir",
	  .type = OPT_TEXT,
	  .arg = "PATH",
	  .help = "where that runs",
	  .offset = AT(workdir) },
	{ .name = "writable-root",
	  .type = OPT_FLAG,
	  .help = "all of the root can be written to",
	  .offset = AT(writable_root) },
	{ .name = "writable",
	  .type = OPT_LIST,
	  .arg = "PATH",
	  .help = "a directory that can be written to; may be repeated",
	  .offset = AT(writable) },
	{ .name = "preload",
	  .type = OPT_LIST,
	  .arg = "MODULE",
	  .help = "a module that Python has imported already; may be repeated",
	  .offset = AT(preload) },
	{ .name = "preload-node",
	  .type = OPT_LIST,
	  .arg = "MODULE",
	  .help = "a module that Node has loaded already; may be repeated",
	  .offset = AT(preload_node) },
	{ .name = "start",
	  .type = OPT_TEXT,
	  .arg = "COMMAND",
	  .help = "what runs in a sandbox from its beginning",
	  .offset = AT(start) },
	{ .name = "ready-command",
	  .type = OPT_TEXT,
	  .arg = "COMMAND",
	  .help = "it is ready when this ends with 0",
	  .offset = AT(ready_command) },
	{ .name = "ready-port",
	  .type = OPT_COUNT,
	  .arg = "PORT",
	  .help = "it is ready when something listens there",
	  .offset = AT(ready_port),
	  .max = 65535 },
	{ .name = "ready-http",
	  .type = OPT_TEXT,
	  .arg = "PATH",
	  .help = "it is ready when a GET of this there answers 2xx",
	  .offset = AT(ready_http) },
	{ .name = "start-timeout",
	  .type = OPT_DURATION,
	  .arg = "TIME",
	  .help = "for it to become ready (30s)",
	  .offset = AT(start_ms),
	  .min = 1000,
	  .max = 600000 },
	CLIENT_OPTS(struct template_args, client),
	{ 0 },
};

static void write_text(struct jw *w, const char *name, const char *text)
{
	if (text)
		jw_str_field(w, name, text);
}

static void write_list(struct jw *w, const char *name, const struct opt_list *l)
{
	if (l->len == 0)
		return;
	jw_key(w, name);
	jw_array_begin(w);
	for (size_t i = 0; i < l->len; i++)
		jw_string(w, l->items[i]);
	jw_array_end(w);
}

static void write_start(struct jw *w, const struct template_args *a)
{
	if (!a->start)
		return;
	jw_key(w, "start");
	jw_object_begin(w);
	jw_str_field(w, "command", a->start);
	write_text(w, "readyCommand", a->ready_command);
	if (a->ready_port > 0)
		jw_uint_field(w, "readyPort", a->ready_port);
	write_text(w, "readyHttp", a->ready_http);
	if (a->start_ms > 0)
		jw_double_field(w, "timeout", (double)a->start_ms / 1e3);
	jw_object_end(w);
}

/* All members but the name, which the command line has. */
static int copy_file(const char *path, struct jw *w, struct err *err)
{
	struct jv_doc *file = NULL;
	int r = template_file(path, &file, err);

	if (r == 0 && jv_kind(jv_root(file)) != JV_OBJECT)
		r = err_set(err, EINVAL, "'%.150s': want a mapping", path);
	if (r == 0)
		JV_FOREACH (jv_root(file), it) {
			if (str_is(it.key, "name"))
				continue;
			jw_key_n(w, it.key.data, it.key.len);
			jw_value(w, it.value);
		}
	(void)jv_free(file);
	return r;
}

static int write_body(const struct template_args *a, const char *name, struct buf *b,
		      struct err *err)
{
	static const struct client_pairs env = { "env", "env", true };
	struct jw w = jw_begin(b);
	int r;

	if (!a->start && (a->ready_command || a->ready_http || a->ready_port || a->start_ms))
		return err_set(err, EINVAL, "--ready-... and --start-timeout need --start");
	jw_object_begin(&w);
	jw_str_field(&w, "name", name);
	r = a->file ? copy_file(a->file, &w, err) : 0;
	if (r < 0)
		return r;
	write_text(&w, "from", a->from);
	write_text(&w, "snapshot", a->snapshot);
	write_text(&w, "description", a->about);
	write_text(&w, "user", a->user);
	write_text(&w, "workdir", a->workdir);
	if (a->writable_root)
		jw_bool_field(&w, "writableRoot", true);
	write_list(&w, "writablePaths", &a->writable);
	write_list(&w, "preload", &a->preload);
	write_list(&w, "preloadNode", &a->preload_node);
	write_start(&w, a);
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

static int show(struct client *c, void *args, int n, char **names, struct err *err)
{
	(void)args;
	(void)n;
	return client_show(c, "templates/%", names[0], err);
}

static int alias(struct client *c, void *args, int n, char **names, struct err *err)
{
	_cleanup_(client_doc_done) struct client_doc d = { 0 };
	_cleanup_(buf_done) struct buf body = { 0 }, target = { 0 };
	struct jw w = jw_begin(&body);
	uint64_t version;
	int r = parse_u64(names[2], 1, UINT32_MAX, &version);

	(void)args;
	(void)n;
	if (r < 0)
		return err_set(err, EINVAL, "'%.40s' is not a version", names[2]);
	jw_object_begin(&w);
	jw_uint_field(&w, "version", version);
	jw_object_end(&w);
	r = jw_end(&w);
	if (r == 0)
		r = client_path(&target, "templates/%/aliases/%", names[0], names[1]);
	if (r < 0)
		return err_sys(err, r, "request");
	r = client_json(c, "PUT", buf_str(&target), &body, &d, err);
	if (r < 0)
		return r;
	return c->json                                                       ? client_print(&d.text)
	       : printf("%s\n", jv_text(jv_get(jv_root(d.doc), "name"))) < 0 ? -EIO
									     : 0;
}

static int add_alias(void *user, struct jv item)
{
	static const char *const fields[] = { "name", "template", "updatedAt" };
	char text[256];
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof(fields) / sizeof(fields[0]); i++)
		r = table_add(user, show_text(jv_get(item, fields[i]), text, sizeof(text)));
	return r;
}

static int aliases(struct client *c, void *args, int n, char **names, struct err *err)
{
	static const char *const heads[] = { "NAME", "TEMPLATE", "SET", NULL };
	_cleanup_(buf_done) struct buf target = { 0 };
	int r = client_path(&target, "templates/%/aliases", names[0]);

	(void)args;
	(void)n;
	return r < 0 ? err_sys(err, r, "request")
		     : client_print_list(c, buf_str(&target), heads, add_alias, err);
}

static int unalias(struct client *c, void *args, int n, char **names, struct err *err)
{
	_cleanup_(client_doc_done) struct client_doc d = { 0 };
	_cleanup_(buf_done) struct buf target = { 0 };
	int r = client_path(&target, "templates/%/aliases/%", names[0], names[1]);

	(void)args;
	(void)n;
	return r < 0 ? err_sys(err, r, "request")
		     : client_json(c, "DELETE", buf_str(&target), NULL, &d, err);
}

static int rm(struct client *c, void *args, int n, char **ids, struct err *err)
{
	struct act act = { "DELETE", "templates/%", c, NULL, 0, NULL };

	(void)args;
	(void)err;
	return act_on_each(&act, n, ids);
}

CLIENT_COMMAND(cmd_template_create, template_args, 1, 1, create, 0)
CLIENT_COMMAND(cmd_template_ls, template_args, 0, 0, ls, 0)
CLIENT_COMMAND(cmd_template_show, template_args, 1, 1, show, 0)
CLIENT_COMMAND(cmd_template_rm, template_args, 1, IDS_MAX, rm, 0)
CLIENT_COMMAND(cmd_template_alias, template_args, 3, 3, alias, 0)
CLIENT_COMMAND(cmd_template_aliases, template_args, 1, 1, aliases, 0)
CLIENT_COMMAND(cmd_template_unalias, template_args, 2, 2, unalias, 0)
