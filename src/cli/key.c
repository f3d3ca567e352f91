#include <errno.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "cli/act.h"
#include "cli/client.h"
#include "cli/command.h"
#include "cli/show.h"
#include "cli/table.h"
#include "json/jw.h"

#define TIME_MAX_MS (87600ull * 3600 * 1000)
#define KEYS_MAX 1000

struct key_args {
	struct client_args client;
	const char *name, *owner;
	int role;
	uint64_t expires_ms;
	struct opt_list scopes;
};

static const char *const roles[] = { "viewer", "user", "admin", NULL };

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
	if (a->role >= 0)
		jw_str_field(&w, "role", roles[a->role]);
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

int cmd_key_create(const struct command *cmd, int argc, char **argv)
{
	struct key_args args = { .role = -1 };
	struct client_task task = { &args, &args.client, 0, 0, create };

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
	struct act act = { "DELETE", "keys/%", c, NULL, 0 };

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
