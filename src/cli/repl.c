/* `holt repl`: lines of a person, or of a pipe, one run each, in a context of its own. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/command.h"
#include "cli/context_args.h"
#include "json/jw.h"

static void remove_at(struct client *c, const char *pattern, const char *a, const char *b)
{
	_cleanup_(client_doc_done) struct client_doc d = { 0 };
	_cleanup_(buf_done) struct buf target = { 0 };
	struct err err = { 0 };

	if (client_path(&target, pattern, a, b) < 0 ||
	    client_json(c, "DELETE", target.data, NULL, &d, &err) < 0)
		cli_say("%s", err.text); /* its time to live ends it */
}

static int make_sandbox(struct client *c, struct buf *ret_id, struct err *err)
{
	_cleanup_(client_doc_done) struct client_doc d = { 0 };
	_cleanup_(buf_done) struct buf body = { 0 };
	const char *id;
	int r = buf_puts(&body, "{}");

	if (r == 0)
		r = client_json(c, "POST", "/api/v1/sandboxes", &body, &d, err);
	if (r < 0)
		return r;
	id = jv_text(jv_get(jv_root(d.doc), "id"));
	return id ? buf_puts(ret_id, id) : err_set(err, EPROTO, "the answer has no id");
}

/* Whether more lines belong to it: an open bracket, a block or a line that goes on. */
static bool is_open(const struct buf *code, const char *line, size_t n)
{
	int depth = 0;

	for (size_t i = 0; i < code->len; i++) {
		depth += strchr("([{", code->data[i]) && code->data[i] ? 1 : 0;
		depth -= strchr(")]}", code->data[i]) && code->data[i] ? 1 : 0;
	}
	if (depth > 0)
		return true;
	if (n > 0 && (line[n - 1] == ':' || line[n - 1] == '\\'))
		return true;
	/* Inside a block until an empty line; a one-line program has none. */
	return n > 0 && memchr(code->data, '\n', code->len - 1) &&
	       (line[0] == ' ' || line[0] == '\t');
}

/* One piece of code; false at the end of the input. */
static bool read_piece(struct buf *code, bool is_person)
{
	_free_ char *line = NULL;
	size_t room = 0;
	ssize_t n;

	buf_clear(code);
	do {
		if (is_person)
			(void)fputs(code->len > 0 ? "... " : ">>> ", stderr);
		n = getline(&line, &room, stdin);
		if (n <= 0)
			return code->len > 0;
		if (buf_append(code, line, (size_t)n) < 0)
			return false;
		if (line[n - 1] == '\n')
			n--;
	} while (is_open(code, line, (size_t)n));
	return true;
}

static int loop(struct client *c, const struct context_args *a, const char *sandbox,
		const char *context, struct err *err)
{
	_cleanup_(buf_done) struct buf code = { .max = 1u << 20 };
	bool is_person = isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
	int r = 0;

	while (r >= 0 && read_piece(&code, is_person)) {
		if (strspn(code.data, " \t\r\n") == code.len)
			continue;
		r = context_run_code(c, a, sandbox, context, &code, err);
	}
	return r < 0 ? r : is_person ? CLI_OK : r;
}

static int repl(struct client *c, void *args, int n, char **operands, struct err *err)
{
	_cleanup_(buf_done) struct buf sandbox = { 0 }, context = { 0 };
	bool json = c->json;
	int r = n > 0 ? buf_puts(&sandbox, operands[0]) : make_sandbox(c, &sandbox, err);

	if (r < 0)
		return err->code ? r : err_sys(err, r, "sandbox");
	c->json = false; /* of its runs only */
	r = context_make(c, args, sandbox.data, &context, err);
	c->json = json;
	if (r == 0)
		r = loop(c, args, sandbox.data, context.data, err);
	if (n == 0)
		remove_at(c, "sandboxes/%", sandbox.data, NULL);
	else if (context.len > 0)
		remove_at(c, "sandboxes/%/contexts/%", sandbox.data, context.data);
	return r;
}

int cmd_repl(const struct command *cmd, int argc, char **argv)
{
	struct context_args args = { 0 };
	struct client_task task = { &args, &args.client, 0, 1, repl };

	return client_run(cmd, argc, argv, &task);
}
