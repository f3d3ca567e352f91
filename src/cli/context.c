/* `holt context`: stateful interpreters in sandboxes. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "cli/act.h"
#include "cli/command.h"
#include "cli/context_args.h"
#include "cli/show.h"
#include "cli/table.h"
#include "json/jw.h"

#define CODE_MAX (1u << 20)
#define CONTEXTS_MAX 16
#define TIME_MAX_MS (24ull * 3600 * 1000)

#define AT(field) offsetof(struct context_args, field)
#define LANGUAGE                                                                    \
	{                                                                           \
		.name = "language", .letter = 'l', .type = OPT_TEXT, .arg = "NAME", \
		.help = "python, javascript, typescript, bash, r or java (python)", \
		.offset = AT(language)                                              \
	}
#define TIMEOUT                                                                                 \
	{                                                                                       \
		.name = "timeout", .type = OPT_DURATION, .arg = "TIME",                         \
		.help = "interrupt what runs longer (30s)", .offset = AT(timeout_ms), .min = 1, \
		.max = TIME_MAX_MS                                                              \
	}

const struct opt context_create_opts[] = {
	LANGUAGE,
	{ .name = "name",
	  .letter = 'n',
	  .type = OPT_TEXT,
	  .arg = "NAME",
	  .help = "another name for its id; unique in the sandbox",
	  .offset = AT(name) },
	{ .name = "cwd",
	  .type = OPT_TEXT,
	  .arg = "DIR",
	  .help = "where it begins (/workspace)",
	  .offset = AT(cwd) },
	{ .name = "env",
	  .letter = 'e',
	  .type = OPT_LIST,
	  .arg = "K=V",
	  .help = "set a variable; K alone passes yours on",
	  .offset = AT(env) },
	CLIENT_OPTS(struct context_args, client),
	{ 0 },
};

const struct opt context_run_opts[] = {
	{ .name = "file",
	  .letter = 'f',
	  .type = OPT_TEXT,
	  .arg = "FILE",
	  .help = "the code (standard input)",
	  .offset = AT(file) },
	TIMEOUT,
	CLIENT_OPTS(struct context_args, client),
	{ 0 },
};

const struct opt repl_opts[] = {
	LANGUAGE,
	TIMEOUT,
	CLIENT_OPTS(struct context_args, client),
	{ 0 },
};

int context_make(struct client *c, const struct context_args *a, const char *sandbox,
		 struct buf *ret_id, struct err *err)
{
	static const struct client_pairs pairs = { "env", "env", true };
	_cleanup_(client_doc_done) struct client_doc d = { 0 };
	_cleanup_(buf_done) struct buf target = { 0 }, body = { 0 };
	struct jw w = jw_begin(&body);
	const char *id;
	int r;

	jw_object_begin(&w);
	if (a->language)
		jw_str_field(&w, "language", a->language);
	if (a->name)
		jw_str_field(&w, "name", a->name);
	if (a->cwd)
		jw_str_field(&w, "cwd", a->cwd);
	r = client_pairs(&w, &pairs, &a->env, err);
	if (r < 0)
		return r;
	jw_object_end(&w);
	r = jw_end(&w);
	if (r == 0)
		r = client_path(&target, "sandboxes/%/contexts", sandbox);
	if (r < 0)
		return err_sys(err, r, "request");
	r = client_json(c, "POST", target.data, &body, &d, err);
	if (r < 0)
		return r;
	id = jv_text(jv_get(jv_root(d.doc), "contextId"));
	if (!id)
		return err_set(err, EPROTO, "the answer has no contextId");
	return c->json ? client_print(&d.text) : buf_puts(ret_id, id);
}

static int create(struct client *c, void *args, int n, char **operands, struct err *err)
{
	_cleanup_(buf_done) struct buf id = { 0 };
	int r = context_make(c, args, operands[0], &id, err);

	(void)n;
	return r == 0 && id.len > 0 ? client_print(&id) : r;
}

int cmd_context_create(const struct command *cmd, int argc, char **argv)
{
	struct context_args args = { 0 };
	struct client_task task = { &args, &args.client, 1, 1, create };

	return client_run(cmd, argc, argv, &task);
}

/* ---- listing, removing ---- */

static int add_row(void *user, struct jv item)
{
	static const char *const fields[] = { "contextId", "name",   "language", "state",
					      "runs",      "queued", "createdAt" };
	char text[256];
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof(fields) / sizeof(fields[0]); i++)
		r = table_add(user, show_text(jv_get(item, fields[i]), text, sizeof(text)));
	return r;
}

static int list(struct client *c, void *args, int n, char **operands, struct err *err)
{
	static const char *const heads[] = { "ID",   "NAME",   "LANGUAGE", "STATE",
					     "RUNS", "QUEUED", "CREATED",  NULL };
	_cleanup_(buf_done) struct buf target = { 0 };
	int r = client_path(&target, "sandboxes/%/contexts", operands[0]);

	(void)args;
	(void)n;
	return r < 0 ? r : client_print_list(c, target.data, heads, add_row, err);
}

int cmd_context_ls(const struct command *cmd, int argc, char **argv)
{
	struct client_args args = { 0 };
	struct client_task task = { &args, &args, 1, 1, list };

	return client_run(cmd, argc, argv, &task);
}

static int remove_each(struct client *c, void *args, int n, char **operands, struct err *err)
{
	_cleanup_(buf_done) struct buf target = { 0 };
	struct act act = { .client = c, .method = "DELETE" };
	int r = client_path(&target, "sandboxes/%/contexts/", operands[0]);

	(void)args;
	(void)err;
	if (r == 0) /* the rest of a pattern: behind what every path begins with */
		r = buf_puts(&target, "%");
	if (r < 0)
		return err_sys(err, r, "request");
	act.pattern = target.data + strlen("/api/v1/");
	return act_on_each(&act, n - 1, operands + 1);
}

int cmd_context_rm(const struct command *cmd, int argc, char **argv)
{
	struct client_args args = { 0 };
	struct client_task task = { &args, &args, 2, 1 + CONTEXTS_MAX, remove_each };

	return client_run(cmd, argc, argv, &task);
}

/* ---- running ---- */

int context_read_code(const char *file, struct buf *ret, struct err *err)
{
	_close_ int own = file ? open(file, O_RDONLY | O_CLOEXEC) : -1;
	int fd = file ? own : STDIN_FILENO;
	char piece[4096];
	ssize_t n;

	if (fd < 0)
		return err_sys(err, errno, "'%.200s'", file);
	ret->max = CODE_MAX;
	while ((n = read(fd, piece, sizeof(piece))) > 0)
		if (buf_append(ret, piece, (size_t)n) < 0)
			return err_set(err, E2BIG, "the code is longer than %u bytes", CODE_MAX);
	return n < 0 ? err_sys(err, errno, "read the code") : 0;
}

static int run(struct client *c, void *args, int n, char **operands, struct err *err)
{
	_cleanup_(buf_done) struct buf code = { 0 };
	const struct context_args *a = args;
	int r;

	if (n > 2 && a->file)
		return err_set(err, EINVAL, "want the code, or a file with it");
	r = n > 2 ? buf_puts(&code, operands[2]) : context_read_code(a->file, &code, err);
	if (r < 0)
		return err_code(err) ? r : err_sys(err, r, "code");
	context_block_signals();
	return context_run_code(c, a, operands[0], operands[1], &code, NULL, err);
}

int cmd_context_run(const struct command *cmd, int argc, char **argv)
{
	struct context_args args = { 0 };
	struct client_task task = { &args, &args.client, 2, 3, run };

	return client_run(cmd, argc, argv, &task);
}
