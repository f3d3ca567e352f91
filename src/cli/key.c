#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/act.h"
#include "cli/client.h"
#include "cli/command.h"
#include "cli/show.h"
#include "cli/table.h"
#include "daemon/admin_key.h"
#include "json/jw.h"

#define TIME_MAX_MS (87600ull * 3600 * 1000)
#define KEYS_MAX 1000

struct key_args {
	struct client_args client;
	const char *name, *owner, *state_dir;
	bool is_admin;
	int role;
	uint64_t expires_ms;
	struct opt_list scopes;
};

static const char *const roles[] = { "viewer", "user", "admin", NULL };
#define ADMIN 2 /* among them */

#define AT(field) offsetof(struct key_args, field)
const struct opt key_create_opts[] = {
	{ .name = "name",
	  .letter = 'n',
	  .type = OPT_TEXT,
	  .arg = "NAME",
	  .help = "what the list calls it; required",
	  .offset = AT(name) },
	{ .name = "role",
	  .letter = 'r',
	  .type = OPT_CHOICE,
	  .arg = "viewer|user|admin",
	  .help = "what it may do (as much as your own)",
	  .offset = AT(role),
	  .choices = roles },
	{ .name = "admin", .type = OPT_FLAG, .help = "as --role admin", .offset = AT(is_admin) },
	{ .name = "state-dir",
	  .type = OPT_TEXT,
	  .arg = "DIR",
	  .help = "make an admin key while the daemon of this directory does not run; for root and "
		  "its owner",
	  .offset = AT(state_dir) },
	{ .name = "owner",
	  .letter = 'o',
	  .type = OPT_TEXT,
	  .arg = "NAME",
	  .help = "whose objects it reaches (your own)",
	  .offset = AT(owner) },
	{ .name = "scope",
	  .letter = 's',
	  .type = OPT_LIST,
	  .arg = "SCOPE",
	  .help = "no more than this of what the role gives; may be repeated",
	  .offset = AT(scopes) },
	{ .name = "expires",
	  .type = OPT_DURATION,
	  .arg = "TIME",
	  .help = "refuse it after so long (never)",
	  .offset = AT(expires_ms),
	  .min = 1,
	  .max = TIME_MAX_MS },
	CLIENT_OPTS(struct key_args, client),
	{ 0 },
};

static int write_body(const struct key_args *a, struct buf *b)
{
	struct jw w = jw_begin(b);

	jw_object_begin(&w);
	jw_str_field(&w, "name", a->name);
	if (a->is_admin || a->role >= 0)
		jw_str_field(&w, "role", roles[a->is_admin ? ADMIN : a->role]);
	if (a->owner)
		jw_str_field(&w, "owner", a->owner);
	if (a->scopes.len > 0) {
		jw_key(&w, "scopes");
		jw_array_begin(&w);
		for (size_t i = 0; i < a->scopes.len; i++)
			jw_string(&w, a->scopes.items[i]);
		jw_array_end(&w);
	}
	if (a->expires_ms)
		jw_double_field(&w, "expiresIn", (double)a->expires_ms / 1000);
	jw_object_end(&w);
	return jw_end(&w);
}

static int create(struct client *c, void *args, int n, char **operands, struct err *err)
{
	_cleanup_(client_doc_done) struct client_doc d = { 0 };
	_cleanup_(buf_done) struct buf body = { 0 };
	const struct key_args *a = args;
	const char *key;
	int r;

	(void)n;
	(void)operands;
	if (!a->name)
		return err_set(err, EINVAL, "--name is missing");
	r = write_body(a, &body);
	if (r == 0)
		r = client_json(c, "POST", "/api/v1/keys", &body, &d, err);
	if (r < 0)
		return r;
	if (c->json)
		return client_print(&d.text);
	key = jv_text(jv_get(jv_root(d.doc), "key"));
	if (!key)
		return err_set(err, EPROTO, "the daemon's answer has no key");
	return printf("%s\n", key) < 0 ? -EIO : 0;
}

static const char *const heads[] = { "ID",  "NAME",    "ROLE",      "OWNER",
				     "AGE", "EXPIRES", "LAST USED", NULL };

static int add_row(void *user, struct jv item)
{
	static const char *const fields[] = { "id", "name", "role", "owner" };
	char text[256];
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof(fields) / sizeof(fields[0]); i++)
		r = table_add(user, show_text(jv_get(item, fields[i]), text, sizeof(text)));
	if (r == 0)
		r = table_add(user, show_since(jv_get(item, "createdAt"), text, sizeof(text)));
	if (r == 0)
		r = table_add(user, show_until(jv_get(item, "expiresAt"), text, sizeof(text)));
	if (r == 0)
		r = table_add(user, show_since(jv_get(item, "lastUsedAt"), text, sizeof(text)));
	return r;
}

static int list(struct client *c, void *args, int n, char **operands, struct err *err)
{
	(void)args;
	(void)n;
	(void)operands;
	return client_print_list(c, "/api/v1/keys", heads, add_row, err);
}

static int check_offline(const struct key_args *a, struct err *err)
{
	if (!a->is_admin && a->role != ADMIN)
		return err_set(err, EINVAL, "--state-dir makes admin keys only: give --admin too");
	if (a->owner || a->scopes.len > 0)
		return err_set(
			err, EINVAL,
			"--owner and --scope need a daemon: they do not go with --state-dir");
	return 0;
}

static int create_offline(const struct key_args *a)
{
	int64_t expires_ms = a->expires_ms ? clock_wall_ms() + (int64_t)a->expires_ms : 0;
	char key[API_KEY_SIZE];
	struct err err = { 0 };
	int r = check_offline(a, &err);

	if (r < 0) {
		cli_say("%s", err.text);
		return CLI_USAGE;
	}
	r = admin_key_make_offline(a->state_dir, a->name ? a->name : "admin", expires_ms, key,
				   &err);
	if (r < 0)
		return cli_fail(&err);
	r = printf(a->client.json ? "{\"key\":\"%s\"}\n" : "%s\n", key);
	explicit_bzero(key, sizeof(key));
	return r < 0 ? CLI_ERROR : 0;
}

int cmd_key_create(const struct command *cmd, int argc, char **argv)
{
	struct key_args args = { .role = -1 };
	struct client_task task = { &args, &args.client, 0, 0, create };
	int n = cli_parse(cmd, argc, argv, &args);

	if (n <= 0)
		return -n;
	if (args.state_dir)
		return cli_takes(cmd, argc, argv, n, 0, 0) ? create_offline(&args) : CLI_USAGE;
	args = (struct key_args){ .role = -1 };
	return client_run(cmd, argc, argv, &task);
}

int cmd_key_ls(const struct command *cmd, int argc, char **argv)
{
	struct client_args args = { 0 };
	struct client_task task = { &args, &args, 0, 0, list };

	return client_run(cmd, argc, argv, &task);
}

static int revoke_each(struct client *c, void *args, int n, char **ids, struct err *err)
{
	struct act act = { "DELETE", "keys/%", c, NULL, 0, NULL };

	(void)args;
	(void)err;
	return act_on_each(&act, n, ids);
}

int cmd_key_revoke(const struct command *cmd, int argc, char **argv)
{
	struct client_args args = { 0 };
	struct client_task task = { &args, &args, 1, KEYS_MAX, revoke_each };

	return client_run(cmd, argc, argv, &task);
}
