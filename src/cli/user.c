#include <errno.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "cli/act.h"
#include "cli/client.h"
#include "cli/command.h"
#include "cli/show.h"
#include "cli/table.h"
#include "json/jw.h"

#define USERS_MAX 1000

struct user_args {
	struct client_args client;
	int role;
	bool disable, enable, reset;
	uint32_t sandboxes, executions, pids; /* UINT32_MAX: not said */
	const char *cpu, *memory, *disk;
	const char *read, *write, *exec, *create;
};

static const char *const roles[] = { "viewer", "user", "admin", NULL };

#define AT(field) offsetof(struct user_args, field)
#define TEXT(name_, arg_, field_, help_)                                                          \
	{                                                                                         \
		.name = name_, .type = OPT_TEXT, .arg = arg_, .help = help_, .offset = AT(field_) \
	}
#define COUNT(name_, field_, help_)                                              \
	{                                                                        \
		.name = name_, .type = OPT_COUNT, .arg = "COUNT", .help = help_, \
		.offset = AT(field_), .max = 1000000000                          \
	}
#define LIMITS                                                                                 \
	{ .name = "role",                                                                      \
	  .letter = 'r',                                                                       \
	  .type = OPT_CHOICE,                                                                  \
	  .arg = "viewer|user|admin",                                                          \
	  .help = "what none of their keys reaches above (user)",                              \
	  .offset = AT(role),                                                                  \
	  .choices = roles },                                                                  \
		COUNT("sandboxes", sandboxes, "sandboxes, stopped ones too (0: no limit)"),    \
		TEXT("cpu", "CORES", cpu, "processor time of all their sandboxes"),            \
		TEXT("memory", "SIZE", memory, "memory of all their sandboxes"),               \
		TEXT("disk", "SIZE", disk, "files of all their sandboxes"),                    \
		COUNT("executions", executions, "executions started in a day (UTC)"),          \
		COUNT("pids", pids, "processes of all their sandboxes"),                       \
		TEXT("rate-read", "RATE", read, "requests of a key that look, such as 600/m"), \
		TEXT("rate-write", "RATE", write, "requests of a key that change something"),  \
		TEXT("rate-exec", "RATE", exec, "executions that a key starts"),               \
		TEXT("rate-create", "RATE", create, "sandboxes that a key makes"),             \
		CLIENT_OPTS(struct user_args, client)

const struct opt user_create_opts[] = { LIMITS, { 0 } };
const struct opt user_set_opts[] = {
	{ .name = "disable",
	  .type = OPT_FLAG,
	  .help = "refuse all their keys and tokens from now on",
	  .offset = AT(disable) },
	{ .name = "enable", .type = OPT_FLAG, .help = "let them in again", .offset = AT(enable) },
	{ .name = "reset-limits",
	  .type = OPT_FLAG,
	  .help = "what is not said here is everybody's again",
	  .offset = AT(reset) },
	LIMITS,
	{ 0 },
};

static void write_text(struct jw *w, const char *name, const char *text)
{
	if (text)
		jw_str_field(w, name, text);
}

static void write_count(struct jw *w, const char *name, uint32_t n)
{
	if (n != UINT32_MAX)
		jw_uint_field(w, name, n);
}

static int write_body(const struct user_args *a, const char *name, struct buf *b)
{
	struct jw w = jw_begin(b);

	jw_object_begin(&w);
	write_text(&w, "name", name);
	if (a->role >= 0)
		jw_str_field(&w, "role", roles[a->role]);
	if (a->disable || a->enable)
		jw_str_field(&w, "status", a->disable ? "disabled" : "active");
	if (a->reset)
		jw_bool_field(&w, "resetLimits", true);
	jw_key(&w, "quota");
	jw_object_begin(&w);
	write_count(&w, "sandboxes", a->sandboxes);
	write_text(&w, "cpu", a->cpu);
	write_text(&w, "memory", a->memory);
	write_text(&w, "disk", a->disk);
	write_count(&w, "executions", a->executions);
	write_count(&w, "pids", a->pids);
	jw_object_end(&w);
	jw_key(&w, "rateLimits");
	jw_object_begin(&w);
	write_text(&w, "read", a->read);
	write_text(&w, "write", a->write);
	write_text(&w, "exec", a->exec);
	write_text(&w, "create", a->create);
	jw_object_end(&w);
	jw_object_end(&w);
	return jw_end(&w);
}

static int create(struct client *c, void *args, int n, char **names, struct err *err)
{
	_cleanup_(client_doc_done) struct client_doc d = { 0 };
	_cleanup_(buf_done) struct buf body = { 0 };
	int r = write_body(args, names[0], &body);

	(void)n;
	if (r == 0)
		r = client_json(c, "POST", "/api/v1/users", &body, &d, err);
	return r < 0 ? r : client_print_object(c, &d);
}

static int set(struct client *c, void *args, int n, char **names, struct err *err)
{
	_cleanup_(client_doc_done) struct client_doc d = { 0 };
	_cleanup_(buf_done) struct buf body = { 0 }, target = { 0 };
	const struct user_args *a = args;
	int r;

	(void)n;
	if (a->disable && a->enable)
		return err_set(err, EINVAL, "either --disable or --enable");
	r = write_body(a, NULL, &body);
	if (r == 0)
		r = client_path(&target, "users/%", names[0]);
	if (r == 0)
		r = client_json(c, "PATCH", buf_str(&target), &body, &d, err);
	return r < 0 ? r : client_print_object(c, &d);
}

static int inspect(struct client *c, void *args, int n, char **names, struct err *err)
{
	_cleanup_(client_doc_done) struct client_doc d = { 0 };
	_cleanup_(buf_done) struct buf target = { 0 };
	int r = n > 0 ? client_path(&target, "users/%", names[0]) : client_path(&target, "user");

	(void)args;
	if (r == 0)
		r = client_json(c, "GET", buf_str(&target), NULL, &d, err);
	return r < 0 ? r : client_print_object(c, &d);
}

static const char *const heads[] = { "NAME", "ROLE",       "STATUS", "SANDBOXES", "CPU", "MEMORY",
				     "DISK", "EXECUTIONS", "PIDS",   "AGE",       NULL };

/* "3/10": what they have, and what they may. */
static int add_use(struct table *t, struct jv item, const char *kind)
{
	char used[64], limit[64], text[160];

	(void)show_text(jv_get(jv_get(item, "use"), kind), used, sizeof(used));
	(void)show_text(jv_get(jv_get(item, "quota"), kind), limit, sizeof(limit));
	(void)snprintf(text, sizeof(text), "%s/%s", used, limit);
	return table_add(t, text);
}

static int add_row(void *user, struct jv item)
{
	static const char *const fields[] = { "name", "role", "status" };
	static const char *const kinds[] = { "sandboxes", "cpu",        "memory",
					     "disk",      "executions", "pids" };
	char text[256];
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof(fields) / sizeof(fields[0]); i++)
		r = table_add(user, show_text(jv_get(item, fields[i]), text, sizeof(text)));
	for (size_t i = 0; r == 0 && i < sizeof(kinds) / sizeof(kinds[0]); i++)
		r = add_use(user, item, kinds[i]);
	if (r == 0)
		r = table_add(user, show_since(jv_get(item, "createdAt"), text, sizeof(text)));
	return r;
}

static int list(struct client *c, void *args, int n, char **operands, struct err *err)
{
	(void)args;
	(void)n;
	(void)operands;
	return client_print_list(c, "/api/v1/users", heads, add_row, err);
}

static int remove_each(struct client *c, void *args, int n, char **names, struct err *err)
{
	struct act act = { "DELETE", "users/%", c, NULL, 0, NULL };

	(void)args;
	(void)err;
	return act_on_each(&act, n, names);
}

static int run_with_limits(const struct command *cmd, int argc, char **argv,
			   int (*run)(struct client *, void *, int, char **, struct err *))
{
	struct user_args args = {
		.role = -1, .sandboxes = UINT32_MAX, .executions = UINT32_MAX, .pids = UINT32_MAX
	};
	struct client_task task = { &args, &args.client, 1, 1, run };

	return client_run(cmd, argc, argv, &task);
}

int cmd_user_create(const struct command *cmd, int argc, char **argv)
{
	return run_with_limits(cmd, argc, argv, create);
}

int cmd_user_set(const struct command *cmd, int argc, char **argv)
{
	return run_with_limits(cmd, argc, argv, set);
}

int cmd_user_inspect(const struct command *cmd, int argc, char **argv)
{
	struct client_args args = { 0 };
	struct client_task task = { &args, &args, 0, 1, inspect };

	return client_run(cmd, argc, argv, &task);
}

int cmd_user_ls(const struct command *cmd, int argc, char **argv)
{
	struct client_args args = { 0 };
	struct client_task task = { &args, &args, 0, 0, list };

	return client_run(cmd, argc, argv, &task);
}

int cmd_user_rm(const struct command *cmd, int argc, char **argv)
{
	struct client_args args = { 0 };
	struct client_task task = { &args, &args, 1, USERS_MAX, remove_each };

	return client_run(cmd, argc, argv, &task);
}
