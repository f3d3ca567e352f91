/* Executions from outside: ps, kill, wait. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "cli/client.h"
#include "cli/command.h"
#include "cli/ending.h"
#include "cli/show.h"
#include "cli/table.h"
#include "cli/when.h"
#include "json/jw.h"

#define WAIT_S "600" /* the daemon waits no longer at a time */
#define WAIT_MS 630000u

static const char *const heads[] = { "EXECUTION", "KIND", "STATUS", "EXIT",
				     "AGE",       "TIME", "OUTPUT", NULL };

static int add_row(void *user, struct jv item)
{
	static const char *const fields[] = { "executionId", "kind", "status", "exitCode" };
	struct jv since = jv_get(item, "startedAt");
	char text[256], span[WHEN_SIZE] = "-";
	double ms;
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof(fields) / sizeof(fields[0]); i++)
		r = table_add(user, show_text(jv_get(item, fields[i]), text, sizeof(text)));
	if (r == 0)
		r = table_add(user, show_since(since, text, sizeof(text)));
	if (jv_kind(jv_get(item, "completedAt")) == JV_STRING &&
	    jv_double(jv_get(item, "durationMs"), &ms) == 0)
		when_span((int64_t)ms, span);
	if (r == 0)
		r = table_add(user, span);
	if (r == 0)
		r = table_add(user, show_text(jv_get(item, "outputBytes"), text, sizeof(text)));
	return r;
}

static int ps(struct client *c, void *args, int n, char **operands, struct err *err)
{
	_cleanup_(buf_done) struct buf target = { 0 };
	int r = client_path(&target, "sandboxes/%/executions", operands[0]);

	(void)args;
	(void)n;
	return r < 0 ? r : client_print_list(c, target.data, heads, add_row, err);
}

int cmd_ps(const struct command *cmd, int argc, char **argv)
{
	struct client_args args = { 0 };
	struct client_task task = { &args, &args, 1, 1, ps };

	return client_run(cmd, argc, argv, &task);
}

struct kill_args {
	struct client_args client;
	const char *signal;
	bool tree;
};

#define AT(field) offsetof(struct kill_args, field)
const struct opt kill_opts[] = {
	{ .name = "signal",
	  .letter = 's',
	  .type = OPT_TEXT,
	  .arg = "SIGNAL",
	  .help = "this one, such as INT or 2 (TERM, then KILL, to all it started)",
	  .offset = AT(signal) },
	{ .name = "tree",
	  .type = OPT_FLAG,
	  .help = "to everything it started, not to its first process alone",
	  .offset = AT(tree) },
	CLIENT_OPTS(struct kill_args, client),
	{ 0 },
};

static int write_signal(const struct kill_args *a, struct buf *b)
{
	struct jw w = jw_begin(b);
	uint32_t number;

	jw_object_begin(&w);
	if (parse_u32(a->signal, 1, 64, &number) == 0)
		jw_uint_field(&w, "signal", number);
	else
		jw_str_field(&w, "signal", a->signal);
	jw_bool_field(&w, "tree", a->tree);
	jw_object_end(&w);
	return jw_end(&w);
}

static int kill_one(struct client *c, void *args, int n, char **operands, struct err *err)
{
	_cleanup_(client_doc_done) struct client_doc d = { 0 };
	_cleanup_(buf_done) struct buf target = { 0 }, body = { 0 };
	const struct kill_args *a = args;
	int r = client_path(&target, "sandboxes/%/executions/%/%", operands[0], operands[1],
			    a->signal ? "signal" : "cancel");

	(void)n;
	if (r == 0 && a->signal)
		r = write_signal(a, &body);
	if (r == 0)
		r = client_json(c, "POST", target.data, a->signal ? &body : NULL, &d, err);
	if (r < 0)
		return r;
	if (c->json)
		return client_print(&(struct buf){ .data = (char *)"{}", .len = 2 });
	return 0;
}

int cmd_kill(const struct command *cmd, int argc, char **argv)
{
	struct kill_args args = { 0 };
	struct client_task task = { &args, &args.client, 2, 2, kill_one };

	return client_run(cmd, argc, argv, &task);
}

static int wait_one(struct client *c, void *args, int n, char **operands, struct err *err)
{
	_cleanup_(buf_done) struct buf target = { 0 };
	struct httpc_request req = { .method = "GET",
				     .accept = "application/json",
				     .timeout_ms = WAIT_MS,
				     .stall_ms = HTTPC_NO_LIMIT };
	_cleanup_(client_doc_done) struct client_doc d = { 0 };
	struct httpc_answer answer = { .status = 202 };
	int r = client_path(&target, "sandboxes/%/executions/%/wait?timeout=" WAIT_S, operands[0],
			    operands[1]);

	(void)args;
	(void)n;
	req.target = buf_str(&target);
	while (r == 0 && answer.status == 202) {
		buf_done(&answer.body);
		r = client_call(c, &req, "waiting for the execution's end", &answer, err);
	}
	if (r < 0)
		return r;
	d.text = answer.body;
	r = jv_parse(buf_str(&d.text), d.text.len, d.text.len, &d.doc, err);
	if (r == 0 && c->json)
		r = client_print(&d.text);
	return r < 0 ? r : ending_say(jv_root(d.doc), 0);
}

int cmd_wait(const struct command *cmd, int argc, char **argv)
{
	struct client_args args = { 0 };
	struct client_task task = { &args, &args, 2, 2, wait_one };

	return client_run(cmd, argc, argv, &task);
}
