/* What happened, and with -f what happens: a connection that breaks is made again behind the last
 * event. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "cli/client.h"
#include "cli/command.h"
#include "cli/show.h"
#include "cli/table.h"
#include "httpc/sse_reader.h"
#include "httpc/url.h"

#define EVENT_MAX (1u << 20)
#define TRIES_MAX 10u

struct events_args {
	struct client_args client;
	bool follow, security;
	const char *kind, *sandbox;
};

#define AT(field) offsetof(struct events_args, field)
const struct opt events_opts[] = {
	{ .name = "follow",
	  .letter = 'f',
	  .type = OPT_FLAG,
	  .help = "go on with what happens",
	  .offset = AT(follow) },
	{ .name = "security",
	  .type = OPT_FLAG,
	  .help = "refusals and kills by limits instead",
	  .offset = AT(security) },
	{ .name = "kind",
	  .type = OPT_TEXT,
	  .arg = "KIND",
	  .help = "only of that kind",
	  .offset = AT(kind) },
	{ .name = "sandbox",
	  .type = OPT_TEXT,
	  .arg = "ID",
	  .help = "with -f: only what is about it",
	  .offset = AT(sandbox) },
	CLIENT_OPTS(struct events_args, client),
	{ 0 },
};

struct printer {
	bool json;
	struct err *err;
	struct sse_reader reader;
	char last[SSE_ID_MAX + 1];
};

static int print_item(struct jv item)
{
	char at[64], kind[128], subject[128], owner[128];
	struct jv data = jv_get(item, "data");

	return printf("%s  %-20s %-22s %s\n", show_text(jv_get(item, "at"), at, sizeof(at)),
		      show_text(jv_get(item, "kind"), kind, sizeof(kind)),
		      show_text(jv_get(data, "subject"), subject, sizeof(subject)),
		      show_text(jv_get(item, "owner"), owner, sizeof(owner))) < 0
		       ? -EIO
		       : 0;
}

static int add_row(void *user, struct jv item)
{
	char text[128];
	int r = table_add(user, show_text(jv_get(item, "at"), text, sizeof(text)));

	if (r == 0)
		r = table_add(user, show_text(jv_get(item, "kind"), text, sizeof(text)));
	if (r == 0)
		r = table_add(user, show_text(jv_get(jv_get(item, "data"), "subject"), text,
					      sizeof(text)));
	return r < 0 ? r : table_add(user, show_text(jv_get(item, "owner"), text, sizeof(text)));
}

static int on_event(void *user, const struct sse_event *e)
{
	struct printer *p = user;
	struct jv_doc *doc = NULL;
	int r;

	if (e->id[0])
		(void)str_copy(p->last, sizeof(p->last), e->id);
	if (p->json)
		r = printf("%.*s\n", (int)e->len, e->data) < 0 ? -EIO : 0;
	else if (jv_parse(e->data, e->len, EVENT_MAX, &doc, NULL) < 0)
		r = 0; /* nothing that we know */
	else
		r = print_item(jv_root(doc));
	(void)jv_free(doc);
	(void)fflush(stdout);
	return r;
}

static int on_data(void *user, const void *data, size_t n)
{
	struct printer *p = user;

	return sse_reader_feed(&p->reader, data, n, on_event, p);
}

/* One connection, until it ends. */
static int stream(struct client *c, const char *target, struct printer *p, struct err *err)
{
	_cleanup_(buf_done) struct buf header = { 0 };
	const char *headers[2] = { NULL, NULL };
	struct httpc_request req = { .method = "GET",
				     .target = target,
				     .accept = "text/event-stream",
				     .headers = headers,
				     .data = on_data,
				     .user = p,
				     .timeout_ms = HTTPC_NO_LIMIT };
	int r;

	if (p->last[0]) {
		if (buf_printf(&header, "Last-Event-ID: %s", p->last) < 0)
			return err_sys(err, ENOMEM, "events");
		headers[0] = header.data;
	}
	sse_reader_init(&p->reader, EVENT_MAX);
	r = httpc_request(c->http, &req, NULL, err);
	sse_reader_done(&p->reader);
	return r;
}

static bool is_broken(int r)
{
	return r == 0 || r == -ECONNRESET || r == -ETIMEDOUT || r == -ECONNREFUSED;
}

static int follow(struct client *c, const char *target, struct printer *p, struct err *err)
{
	unsigned failures = 0;

	while (failures < TRIES_MAX) {
		char before[sizeof(p->last)];
		struct err why = { 0 };
		int r;

		memcpy(before, p->last, sizeof(before));
		r = stream(c, target, p, &why);
		if (!is_broken(r)) {
			(void)err_copy(err, &why);
			return r;
		}
		failures = strcmp(before, p->last) != 0 ? 0 : failures + 1;
		(void)sleep(1);
	}
	return err_set(err, ECONNREFUSED, "the daemon cannot be reached any more");
}

static int show(struct client *c, void *args, int n, char **operands, struct err *err)
{
	_cleanup_(buf_done) struct buf target = { 0 };
	static const char *const heads[] = { "AT", "KIND", "SUBJECT", "OWNER", NULL };
	const struct events_args *a = args;
	struct printer p = { .json = c->json, .err = err };
	int r = buf_puts(&target, a->security ? "/api/v1/security-events" : "/api/v1/events");

	(void)n;
	(void)operands;
	if (r == 0 && a->kind)
		r = url_add_query(&target, "kind", a->kind);
	if (r == 0 && a->sandbox && a->follow)
		r = url_add_query(&target, "sandbox", a->sandbox);
	if (r < 0)
		return err_sys(err, r, "events");
	if (a->follow && a->security)
		return err_set(err, EINVAL, "--follow and --security do not go together");
	if (a->follow)
		return follow(c, target.data, &p, err);
	return client_print_list(c, target.data, heads, add_row, err);
}

int cmd_events(const struct command *cmd, int argc, char **argv)
{
	struct events_args args = { 0 };
	struct client_task task = { &args, &args.client, 0, 0, show };

	return client_run(cmd, argc, argv, &task);
}
