/* What outlives sandboxes: snapshots, volumes, warm pools; and forks. */
#include <errno.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "cli/act.h"
#include "cli/client.h"
#include "cli/command.h"
#include "cli/show.h"
#include "cli/table.h"
#include "json/jw.h"

#define IDS_MAX 1000
#define FORK_COUNT_MAX 64
#define POOL_MAX 1000

struct keep_args {
	struct client_args client;
	const char *name, *template;
	uint32_t count, min, max;
	uint64_t size_bytes;
	struct opt_list preload;
};

#define AT(field) offsetof(struct keep_args, field)
#define NAME(help_)                                                                              \
	{                                                                                        \
		.name = "name", .letter = 'n', .type = OPT_TEXT, .arg = "NAME", .help = (help_), \
		.offset = AT(name)                                                               \
	}

const struct opt snapshot_create_opts[] = {
	NAME("what to call it"),
	CLIENT_OPTS(struct keep_args, client),
	{ 0 },
};

const struct opt fork_opts[] = {
	{ .name = "count",
	  .letter = 'c',
	  .type = OPT_COUNT,
	  .arg = "N",
	  .help = "how many, all or none (1)",
	  .offset = AT(count),
	  .min = 1,
	  .max = FORK_COUNT_MAX },
	NAME("of the new one; of several NAME-1, NAME-2, ..."),
	CLIENT_OPTS(struct keep_args, client),
	{ 0 },
};

const struct opt volume_create_opts[] = {
	{ .name = "size",
	  .letter = 's',
	  .type = OPT_SIZE,
	  .arg = "SIZE",
	  .help = "as much as it may hold; required",
	  .offset = AT(size_bytes),
	  .min = 4 << 20,
	  .max = 1ll << 40 },
	CLIENT_OPTS(struct keep_args, client),
	{ 0 },
};

#define POOL_OPTS                                                                     \
	{ .name = "min",                                                              \
	  .type = OPT_COUNT,                                                          \
	  .arg = "N",                                                                 \
	  .help = "boxes that wait at least",                                         \
	  .offset = AT(min),                                                          \
	  .max = POOL_MAX },                                                          \
		{ .name = "max",                                                      \
		  .type = OPT_COUNT,                                                  \
		  .arg = "N",                                                         \
		  .help = "boxes that wait at most",                                  \
		  .offset = AT(max),                                                  \
		  .max = POOL_MAX },                                                  \
	{                                                                             \
		.name = "preload", .type = OPT_LIST, .arg = "MODULE",                 \
		.help = "a module that Python has imported already; may be repeated", \
		.offset = AT(preload)                                                 \
	}

const struct opt pool_create_opts[] = {
	{ .name = "template",
	  .letter = 't',
	  .type = OPT_TEXT,
	  .arg = "NAME",
	  .help = "whose boxes wait; required",
	  .offset = AT(template) },
	POOL_OPTS,
	CLIENT_OPTS(struct keep_args, client),
	{ 0 },
};

const struct opt pool_set_opts[] = {
	POOL_OPTS,
	CLIENT_OPTS(struct keep_args, client),
	{ 0 },
};

/* Sends the body, and prints this field of the answer. */
static int make(struct client *c, const char *method, const char *target, struct buf *body,
		const char *field, struct err *err)
{
	_cleanup_(client_doc_done) struct client_doc d = { 0 };
	const char *id;
	int r = client_json(c, method, target, body, &d, err);

	if (r < 0)
		return r;
	if (c->json)
		return client_print(&d.text);
	id = jv_text(jv_get(jv_root(d.doc), field));
	if (!id)
		return err_set(err, EPROTO, "the daemon's answer has no %s", field);
	return printf("%s\n", id) < 0 ? -EIO : 0;
}

static int add_row(void *user, struct jv item, const char *const *fields)
{
	char text[256];
	int r = 0;

	for (size_t i = 0; r == 0 && fields[i]; i++)
		r = table_add(user, show_text(jv_get(item, fields[i]), text, sizeof(text)));
	return r;
}

/* ---- snapshots and forks ---- */

static int snapshot_create(struct client *c, void *args, int n, char **ids, struct err *err)
{
	_cleanup_(buf_done) struct buf body = { 0 }, target = { 0 };
	const struct keep_args *a = args;
	struct jw w = jw_begin(&body);
	int r;

	(void)n;
	jw_object_begin(&w);
	if (a->name)
		jw_str_field(&w, "name", a->name);
	jw_object_end(&w);
	r = jw_end(&w);
	if (r == 0)
		r = client_path(&target, "sandboxes/%/snapshots", ids[0]);
	return r < 0 ? r : make(c, "POST", target.data, &body, "id", err);
}

static int snapshot_row(void *user, struct jv item)
{
	static const char *const fields[] = { "id",    "name", "sandboxId", "template",
					      "files", "size", "createdAt", NULL };

	return add_row(user, item, fields);
}

static int snapshot_ls(struct client *c, void *args, int n, char **operands, struct err *err)
{
	static const char *const heads[] = { "ID",    "NAME", "SANDBOX", "TEMPLATE",
					     "FILES", "SIZE", "CREATED", NULL };

	(void)args;
	(void)n;
	(void)operands;
	return client_print_list(c, "/api/v1/snapshots", heads, snapshot_row, err);
}

static int snapshot_rm(struct client *c, void *args, int n, char **ids, struct err *err)
{
	struct act act = { "DELETE", "snapshots/%", c, NULL, 0, NULL };

	(void)args;
	(void)err;
	return act_on_each(&act, n, ids);
}

static int print_forks(struct client *c, const struct client_doc *d)
{
	if (c->json)
		return client_print(&d->text);
	JV_FOREACH (jv_get(jv_root(d->doc), "items"), it) {
		const char *id = jv_text(jv_get(it.value, "id"));

		if (id && printf("%s\n", id) < 0)
			return -EIO;
	}
	return 0;
}

static int fork_it(struct client *c, void *args, int n, char **ids, struct err *err)
{
	_cleanup_(client_doc_done) struct client_doc d = { 0 };
	_cleanup_(buf_done) struct buf body = { 0 }, target = { 0 };
	const struct keep_args *a = args;
	struct jw w = jw_begin(&body);
	int r;

	(void)n;
	jw_object_begin(&w);
	jw_uint_field(&w, "count", a->count);
	if (a->name)
		jw_str_field(&w, "name", a->name);
	jw_object_end(&w);
	r = jw_end(&w);
	if (r == 0)
		r = client_path(&target, "sandboxes/%/fork", ids[0]);
	if (r == 0)
		r = client_json(c, "POST", target.data, &body, &d, err);
	return r < 0 ? r : print_forks(c, &d);
}

/* ---- volumes ---- */

static int volume_create(struct client *c, void *args, int n, char **names, struct err *err)
{
	_cleanup_(buf_done) struct buf body = { 0 };
	const struct keep_args *a = args;
	struct jw w = jw_begin(&body);
	int r;

	(void)n;
	if (a->size_bytes == 0)
		return err_set(err, EINVAL, "--size is missing");
	jw_object_begin(&w);
	jw_str_field(&w, "name", names[0]);
	jw_uint_field(&w, "size", a->size_bytes);
	jw_object_end(&w);
	r = jw_end(&w);
	return r < 0 ? r : make(c, "POST", "/api/v1/volumes", &body, "id", err);
}

static int volume_row(void *user, struct jv item)
{
	static const char *const fields[] = { "id", "name", "size", "status", "createdAt", NULL };

	return add_row(user, item, fields);
}

static int volume_ls(struct client *c, void *args, int n, char **operands, struct err *err)
{
	static const char *const heads[] = { "ID", "NAME", "SIZE", "STATUS", "CREATED", NULL };

	(void)args;
	(void)n;
	(void)operands;
	return client_print_list(c, "/api/v1/volumes", heads, volume_row, err);
}

static int volume_rm(struct client *c, void *args, int n, char **ids, struct err *err)
{
	struct act act = { "DELETE", "volumes/%", c, NULL, 0, NULL };

	(void)args;
	(void)err;
	return act_on_each(&act, n, ids);
}

/* ---- warm pools ---- */

static int write_pool(const struct keep_args *a, const char *name, struct buf *b)
{
	struct jw w = jw_begin(b);

	jw_object_begin(&w);
	if (name) {
		jw_str_field(&w, "name", name);
		jw_str_field(&w, "runtime", a->template);
	}
	if (a->min != UINT32_MAX)
		jw_uint_field(&w, "minSize", a->min);
	if (a->max != UINT32_MAX)
		jw_uint_field(&w, "maxSize", a->max);
	if (a->preload.len > 0) {
		jw_key(&w, "preloadPackages");
		jw_array_begin(&w);
		for (size_t i = 0; i < a->preload.len; i++)
			jw_string(&w, a->preload.items[i]);
		jw_array_end(&w);
	}
	jw_object_end(&w);
	return jw_end(&w);
}

static int pool_create(struct client *c, void *args, int n, char **names, struct err *err)
{
	_cleanup_(buf_done) struct buf body = { 0 };
	const struct keep_args *a = args;
	int r;

	(void)n;
	if (!a->template)
		return err_set(err, EINVAL, "--template is missing");
	r = write_pool(a, names[0], &body);
	return r < 0 ? r : make(c, "POST", "/api/v1/warmpools", &body, "id", err);
}

static int pool_set(struct client *c, void *args, int n, char **ids, struct err *err)
{
	_cleanup_(buf_done) struct buf body = { 0 }, target = { 0 };
	int r = write_pool(args, NULL, &body);

	(void)n;
	if (r == 0)
		r = client_path(&target, "warmpools/%", ids[0]);
	return r < 0 ? r : make(c, "PATCH", target.data, &body, "id", err);
}

static int pool_row(void *user, struct jv item)
{
	static const char *const fields[] = { "id",      "name",      "template", "minSize",
					      "maxSize", "createdAt", NULL };

	return add_row(user, item, fields);
}

static int pool_ls(struct client *c, void *args, int n, char **operands, struct err *err)
{
	static const char *const heads[] = {
		"ID", "NAME", "TEMPLATE", "MIN", "MAX", "CREATED", NULL
	};

	(void)args;
	(void)n;
	(void)operands;
	return client_print_list(c, "/api/v1/warmpools", heads, pool_row, err);
}

static int pool_rm(struct client *c, void *args, int n, char **ids, struct err *err)
{
	struct act act = { "DELETE", "warmpools/%", c, NULL, 0, NULL };

	(void)args;
	(void)err;
	return act_on_each(&act, n, ids);
}

static int pool_status(struct client *c, void *args, int n, char **ids, struct err *err)
{
	(void)args;
	(void)n;
	return client_show(c, "warmpools/%/status", ids[0], err);
}

/* ---- entry points ---- */

#define KEEP_DEFAULTS .count = 1, .min = UINT32_MAX, .max = UINT32_MAX
CLIENT_COMMAND(cmd_snapshot_create, keep_args, 1, 1, snapshot_create, KEEP_DEFAULTS)
CLIENT_COMMAND(cmd_snapshot_ls, keep_args, 0, 0, snapshot_ls, KEEP_DEFAULTS)
CLIENT_COMMAND(cmd_snapshot_rm, keep_args, 1, IDS_MAX, snapshot_rm, KEEP_DEFAULTS)
CLIENT_COMMAND(cmd_fork, keep_args, 1, 1, fork_it, KEEP_DEFAULTS)
CLIENT_COMMAND(cmd_volume_create, keep_args, 1, 1, volume_create, KEEP_DEFAULTS)
CLIENT_COMMAND(cmd_volume_ls, keep_args, 0, 0, volume_ls, KEEP_DEFAULTS)
CLIENT_COMMAND(cmd_volume_rm, keep_args, 1, IDS_MAX, volume_rm, KEEP_DEFAULTS)
CLIENT_COMMAND(cmd_pool_create, keep_args, 1, 1, pool_create, KEEP_DEFAULTS)
CLIENT_COMMAND(cmd_pool_set, keep_args, 1, 1, pool_set, KEEP_DEFAULTS)
CLIENT_COMMAND(cmd_pool_ls, keep_args, 0, 0, pool_ls, KEEP_DEFAULTS)
CLIENT_COMMAND(cmd_pool_rm, keep_args, 1, IDS_MAX, pool_rm, KEEP_DEFAULTS)
CLIENT_COMMAND(cmd_pool_status, keep_args, 1, 1, pool_status, KEEP_DEFAULTS)
