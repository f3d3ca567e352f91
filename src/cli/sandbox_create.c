#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "cli/box_args.h"
#include "cli/client.h"
#include "cli/command.h"
#include "json/jw.h"

#define TIME_MAX_MS (8760ull * 3600 * 1000) /* the daemon has its own, shorter maximum */

struct create_args {
	struct client_args client;
	const char *name, *template, *snapshot;
	bool get_or_create, cold, auto_resume;
	int on_timeout;
	struct limits limits; /* 0: the daemon's default */
	uint64_t timeout_ms, idle_ms;
	struct opt_list env, metadata, volumes, tools;
};

static const char *const endings[] = { "delete", "pause", "stop", NULL };

#define AT(field) offsetof(struct create_args, field)
const struct opt sandbox_create_opts[] = {
	{ .name = "name",
	  .letter = 'n',
	  .type = OPT_TEXT,
	  .arg = "NAME",
	  .help = "a name that stands for its id while it lives",
	  .offset = AT(name) },
	{ .name = "get-or-create",
	  .type = OPT_FLAG,
	  .help = "take the one of that name if it is there",
	  .offset = AT(get_or_create) },
	{ .name = "template",
	  .letter = 't',
	  .type = OPT_TEXT,
	  .arg = "NAME",
	  .help = "what it is made of: python (the default), node, bash, base",
	  .offset = AT(template) },
	{ .name = "snapshot",
	  .type = OPT_TEXT,
	  .arg = "ID",
	  .help = "what it is made of, instead of a template",
	  .offset = AT(snapshot) },
	{ .name = "volume",
	  .letter = 'v',
	  .type = OPT_LIST,
	  .arg = "NAME:PATH[:ro]",
	  .help = "a volume, below /workspace or at /mnt/NAME; may be repeated",
	  .offset = AT(volumes) },
	LIMIT_OPTS(struct create_args, limits),
	{ .name = "timeout",
	  .type = OPT_DURATION,
	  .arg = "TIME",
	  .help = "how long it lives (1h)",
	  .offset = AT(timeout_ms),
	  .min = 1,
	  .max = TIME_MAX_MS },
	{ .name = "idle-timeout",
	  .type = OPT_DURATION,
	  .arg = "TIME",
	  .help = "end it when nobody used it for so long",
	  .offset = AT(idle_ms),
	  .min = 1,
	  .max = TIME_MAX_MS },
	{ .name = "on-timeout",
	  .type = OPT_CHOICE,
	  .arg = "delete|pause|stop",
	  .help = "what happens when its time is over, or nobody used it (delete)",
	  .offset = AT(on_timeout),
	  .choices = endings },
	{ .name = "auto-resume",
	  .type = OPT_FLAG,
	  .help = "using it resumes it when it is paused or stopped",
	  .offset = AT(auto_resume) },
	{ .name = "env",
	  .letter = 'e',
	  .type = OPT_LIST,
	  .arg = "K=V",
	  .help = "environment of all that runs in it; K alone passes yours on",
	  .offset = AT(env) },
	{ .name = "metadata",
	  .type = OPT_LIST,
	  .arg = "K=V",
	  .help = "for finding it again; may be repeated",
	  .offset = AT(metadata) },
	{ .name = "tools",
	  .type = OPT_LIST,
	  .arg = "SERVER",
	  .help = "whose tools its programs may call, all for everybody's; may be repeated",
	  .offset = AT(tools) },
	{ .name = "cold",
	  .type = OPT_FLAG,
	  .help = "build it anew instead of taking one that waits",
	  .offset = AT(cold) },
	CLIENT_OPTS(struct create_args, client),
	{ 0 },
};

void client_resources(struct jw *w, const struct limits *l)
{
	if (!l->memory_bytes && !l->cpu_milli && !l->pids && !l->disk_bytes)
		return;
	jw_key(w, "resources");
	jw_object_begin(w);
	if (l->memory_bytes)
		jw_uint_field(w, "memory", l->memory_bytes);
	if (l->cpu_milli)
		jw_double_field(w, "cpu", l->cpu_milli / 1000.0);
	if (l->pids)
		jw_uint_field(w, "pids", l->pids);
	if (l->disk_bytes)
		jw_uint_field(w, "disk", l->disk_bytes);
	jw_object_end(w);
}

/* "data:/mnt/data:ro" */
static int put_volumes(struct jw *w, const struct opt_list *volumes, struct err *err)
{
	if (volumes->len == 0)
		return 0;
	jw_key(w, "volumes");
	jw_array_begin(w);
	for (size_t i = 0; i < volumes->len; i++) {
		struct str rest = str_of(volumes->items[i]), name, path, mode = { 0 };

		if (!str_split(&rest, ':', &name) || !str_split(&rest, ':', &path) ||
		    (str_split(&rest, ':', &mode) && !str_is(mode, "ro")) || rest.len > 0)
			return err_set(err, EINVAL,
				       "--volume '%.60s': want NAME:PATH or NAME:PATH:ro",
				       volumes->items[i]);
		jw_object_begin(w);
		jw_key(w, "name");
		jw_string_n(w, name.data, name.len);
		jw_key(w, "path");
		jw_string_n(w, path.data, path.len);
		jw_bool_field(w, "readOnly", mode.len > 0);
		jw_object_end(w);
	}
	jw_array_end(w);
	return 0;
}

static void put_tools(struct jw *w, const struct opt_list *tools)
{
	for (size_t i = 0; i < tools->len; i++)
		if (strcmp(tools->items[i], "all") == 0)
			return jw_bool_field(w, "tools", true);
	if (tools->len == 0)
		return;
	jw_key(w, "tools");
	jw_array_begin(w);
	for (size_t i = 0; i < tools->len; i++)
		jw_string(w, tools->items[i]);
	jw_array_end(w);
}

static int write_body(const struct create_args *a, struct buf *b, struct err *err)
{
	static const struct client_pairs env = { "env", "env", true },
					 metadata = { "metadata", "metadata", false };
	struct jw w = jw_begin(b);
	int r;

	jw_object_begin(&w);
	if (a->name)
		jw_str_field(&w, "name", a->name);
	if (a->template)
		jw_str_field(&w, "template", a->template);
	if (a->snapshot)
		jw_str_field(&w, "snapshot", a->snapshot);
	if (a->get_or_create)
		jw_bool_field(&w, "getOrCreate", true);
	if (a->cold)
		jw_bool_field(&w, "useWarmPool", false);
	if (a->timeout_ms)
		jw_double_field(&w, "timeout", (double)a->timeout_ms / 1000);
	if (a->idle_ms)
		jw_double_field(&w, "idleTimeout", (double)a->idle_ms / 1000);
	if (a->on_timeout >= 0)
		jw_str_field(&w, "onTimeout", endings[a->on_timeout]);
	if (a->auto_resume)
		jw_bool_field(&w, "autoResume", true);
	put_tools(&w, &a->tools);
	client_resources(&w, &a->limits);
	r = client_pairs(&w, &env, &a->env, err);
	if (r == 0)
		r = client_pairs(&w, &metadata, &a->metadata, err);
	if (r == 0)
		r = put_volumes(&w, &a->volumes, err);
	if (r < 0)
		return r;
	jw_object_end(&w);
	r = jw_end(&w);
	return r < 0 ? err_sys(err, r, "request") : 0;
}

static int create(struct client *c, void *args, int n, char **operands, struct err *err)
{
	_cleanup_(client_doc_done) struct client_doc d = { 0 };
	_cleanup_(buf_done) struct buf body = { 0 };
	const struct create_args *a = args;
	const char *id;
	int r;

	(void)n;
	(void)operands;
	if (a->get_or_create && !a->name)
		return err_set(err, EINVAL, "--get-or-create wants --name too");
	r = write_body(a, &body, err);
	if (r == 0)
		r = client_json(c, "POST", "/api/v1/sandboxes", &body, &d, err);
	if (r < 0)
		return r;
	if (c->json)
		return client_print(&d.text);
	id = jv_text(jv_get(jv_root(d.doc), "id"));
	if (!id)
		return err_set(err, EPROTO, "the daemon's answer has no id");
	return printf("%s\n", id) < 0 ? -EIO : 0;
}

int cmd_sandbox_create(const struct command *cmd, int argc, char **argv)
{
	struct create_args args = { .on_timeout = -1 };
	struct client_task task = { &args, &args.client, 0, 0, create };

	return client_run(cmd, argc, argv, &task);
}
