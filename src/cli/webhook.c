/* Webhooks from the command line. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/str.h"
#include "cli/act.h"
#include "cli/client.h"
#include "cli/command.h"
#include "cli/show.h"
#include "cli/table.h"
#include "json/jw.h"

#define IDS_MAX 1000
#define SECRET_MAX 1024u

struct webhook_args {
	struct client_args client;
	const char *url, *secret_file;
	struct opt_list events;
	bool all_owners, enable, disable, rotate;
};

#define AT(field) offsetof(struct webhook_args, field)
/* No --secret: everybody on the machine can read arguments. */
#define COMMON_OPTS                                                                      \
	{ .name = "event",                                                               \
	  .letter = 'e',                                                                 \
	  .type = OPT_LIST,                                                              \
	  .arg = "KIND",                                                                 \
	  .help = "which events: a kind, or sandbox.*; may be repeated (all)",           \
	  .offset = AT(events) },                                                        \
		{ .name = "secret-file",                                                 \
		  .type = OPT_TEXT,                                                      \
		  .arg = "FILE",                                                         \
		  .help = "what signs the messages (one is made up, and printed)",       \
		  .offset = AT(secret_file) },                                           \
	{                                                                                \
		.name = "disable", .type = OPT_FLAG,                                     \
		.help = "send nothing; events are kept for later", .offset = AT(disable) \
	}

const struct opt webhook_create_opts[] = {
	COMMON_OPTS,
	{ .name = "all-owners",
	  .type = OPT_FLAG,
	  .help = "everybody's events; for admins",
	  .offset = AT(all_owners) },
	CLIENT_OPTS(struct webhook_args, client),
	{ 0 },
};

const struct opt webhook_set_opts[] = {
	{ .name = "to", .type = OPT_TEXT, .arg = "URL", .help = "where to", .offset = AT(url) },
	COMMON_OPTS,
	{ .name = "enable",
	  .type = OPT_FLAG,
	  .help = "go on where it stopped",
	  .offset = AT(enable) },
	{ .name = "rotate-secret",
	  .type = OPT_FLAG,
	  .help = "make another secret, and print it",
	  .offset = AT(rotate) },
	CLIENT_OPTS(struct webhook_args, client),
	{ 0 },
};

static void wipe(struct buf *b)
{
	if (b->data)
		explicit_bzero(b->data, b->len);
	buf_done(b);
}

/* The file's first line. */
static int write_secret(struct jw *w, const char *path, struct err *err)
{
	_cleanup_(wipe) struct buf b = { .max = SECRET_MAX };
	_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	int r = fd < 0 ? -errno : fd_slurp(fd, &b);

	if (r < 0)
		return err_sys(err, r, "'%s'", path);
	jw_key(w, "secret");
	jw_string_n(w, buf_str(&b), strcspn(buf_str(&b), "\n"));
	return 0;
}

static int write_body(const struct webhook_args *a, const char *name, struct buf *b,
		      struct err *err)
{
	struct jw w = jw_begin(b);
	int r = 0;

	jw_object_begin(&w);
	if (name)
		jw_str_field(&w, "name", name);
	if (a->url)
		jw_str_field(&w, "url", a->url);
	if (a->events.len > 0) {
		jw_key(&w, "events");
		jw_array_begin(&w);
		for (size_t i = 0; i < a->events.len; i++)
			jw_string(&w, a->events.items[i]);
		jw_array_end(&w);
	}
	if (a->secret_file)
		r = write_secret(&w, a->secret_file, err);
	if (a->enable || a->disable)
		jw_bool_field(&w, "enabled", a->enable);
	if (a->all_owners)
		jw_bool_field(&w, "allOwners", true);
	if (a->rotate)
		jw_bool_field(&w, "rotateSecret", true);
	jw_object_end(&w);
	return r < 0 ? r : jw_end(&w);
}

/* The id, and the secret if there is a new one: each a line. */
static int put(struct client *c, const char *method, const char *target, struct buf *body,
	       struct err *err)
{
	_cleanup_(client_doc_done) struct client_doc d = { 0 };
	const char *id, *secret;
	int r = client_json(c, method, target, body, &d, err);

	if (r < 0)
		return r;
	if (c->json)
		return client_print(&d.text);
	id = jv_text(jv_get(jv_root(d.doc), "id"));
	secret = jv_text(jv_get(jv_root(d.doc), "secret"));
	if (!id)
		return err_set(err, EPROTO, "the daemon's answer has no id");
	return printf("%s\n", id) < 0 || (secret && printf("%s\n", secret) < 0) ? -EIO : 0;
}

static int create(struct client *c, void *args, int n, char **operands, struct err *err)
{
	_cleanup_(wipe) struct buf body = { 0 };
	struct webhook_args *a = args;
	int r;

	(void)n;
	a->url = operands[1];
	r = write_body(a, operands[0], &body, err);
	return r < 0 ? r : put(c, "POST", "/api/v1/webhooks", &body, err);
}

static int set(struct client *c, void *args, int n, char **ids, struct err *err)
{
	_cleanup_(wipe) struct buf body = { 0 };
	_cleanup_(buf_done) struct buf target = { 0 };
	const struct webhook_args *a = args;
	int r;

	(void)n;
	if (a->enable && a->disable)
		return err_set(err, EINVAL, "--enable and --disable: want one of them");
	r = write_body(a, NULL, &body, err);
	if (r == 0)
		r = client_path(&target, "webhooks/%", ids[0]);
	return r < 0 ? r : put(c, "PATCH", target.data, &body, err);
}

static int add_row(void *user, struct jv item)
{
	static const char *const fields[] = { "id", "name", "status", "url", "createdAt" };
	char text[256];
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof(fields) / sizeof(fields[0]); i++)
		r = table_add(user, show_text(jv_get(item, fields[i]), text, sizeof(text)));
	return r;
}

static int list(struct client *c, void *args, int n, char **operands, struct err *err)
{
	static const char *const heads[] = { "ID", "NAME", "STATUS", "URL", "CREATED", NULL };

	(void)args;
	(void)n;
	(void)operands;
	return client_print_list(c, "/api/v1/webhooks", heads, add_row, err);
}

static int show(struct client *c, void *args, int n, char **ids, struct err *err)
{
	(void)args;
	(void)n;
	return client_show(c, "webhooks/%", ids[0], err);
}

static int add_delivery(void *user, struct jv item)
{
	static const char *const fields[] = { "seq",        "kind",   "status", "attempts",
					      "httpStatus", "lastAt", "error" };
	char text[256];
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof(fields) / sizeof(fields[0]); i++)
		r = table_add(user, show_text(jv_get(item, fields[i]), text, sizeof(text)));
	return r;
}

static int deliveries(struct client *c, void *args, int n, char **ids, struct err *err)
{
	static const char *const heads[] = { "SEQ",  "KIND", "STATUS", "ATTEMPTS",
					     "HTTP", "LAST", "ERROR",  NULL };
	_cleanup_(buf_done) struct buf target = { 0 };
	int r = client_path(&target, "webhooks/%/deliveries", ids[0]);

	(void)args;
	(void)n;
	return r < 0 ? r : client_print_list(c, target.data, heads, add_delivery, err);
}

static int test(struct client *c, void *args, int n, char **ids, struct err *err)
{
	_cleanup_(client_doc_done) struct client_doc d = { 0 };
	_cleanup_(buf_done) struct buf target = { 0 };
	int r = client_path(&target, "webhooks/%/test", ids[0]);
	bool is_delivered = false;
	uint64_t ms = 0;

	(void)args;
	(void)n;
	if (r == 0)
		r = client_json(c, "POST", target.data, NULL, &d, err);
	if (r < 0)
		return r;
	(void)jv_bool(jv_get(jv_root(d.doc), "delivered"), &is_delivered);
	(void)jv_u64(jv_get(jv_root(d.doc), "tookMs"), &ms);
	if (c->json)
		r = client_print(&d.text);
	else if (is_delivered)
		r = printf("delivered in %llu ms\n", (unsigned long long)ms) < 0 ? -EIO : 0;
	if (r < 0 || is_delivered)
		return r;
	return c->json ? CLI_ERROR
		       : err_set(err, EIO, "not delivered: %s",
				 jv_text(jv_get(jv_root(d.doc), "error")));
}

static int rm(struct client *c, void *args, int n, char **ids, struct err *err)
{
	struct act act = { "DELETE", "webhooks/%", c, NULL, 0, NULL };

	(void)args;
	(void)err;
	return act_on_each(&act, n, ids);
}

CLIENT_COMMAND(cmd_webhook_create, webhook_args, 2, 2, create, 0)
CLIENT_COMMAND(cmd_webhook_set, webhook_args, 1, 1, set, 0)
CLIENT_COMMAND(cmd_webhook_ls, webhook_args, 0, 0, list, 0)
CLIENT_COMMAND(cmd_webhook_show, webhook_args, 1, 1, show, 0)
CLIENT_COMMAND(cmd_webhook_test, webhook_args, 1, 1, test, 0)
CLIENT_COMMAND(cmd_webhook_deliveries, webhook_args, 1, 1, deliveries, 0)
CLIENT_COMMAND(cmd_webhook_rm, webhook_args, 1, IDS_MAX, rm, 0)
