#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/fd.h"
#include "cli/command.h"
#include "cli/run.h"

#define CODE_MAX (16u << 20)
#define CODE_INLINE_MAX (32u << 10) /* longer code goes into the box as a file */

struct run_code_args {
	struct box_args box;
	int lang;
	const char *file;
};

/* A language: how its code is run when it fits in a request, and when it must be a file. */
static const struct language {
	uint8_t kind;
	const char *program, *flag, *path;
} languages[] = {
	{ EXEC_PYTHON, "python3", NULL, "/tmp/main.py" },
	{ EXEC_NODE, "node", NULL, "/tmp/main.js" },
	{ EXEC_COMMAND, "bash", "-c", "/tmp/main.sh" },
};
static const char *const language_names[] = { "python", "node", "bash", NULL };

const struct opt run_code_opts[] = {
	{ .name = "lang",
	  .letter = 'l',
	  .type = OPT_CHOICE,
	  .arg = "python|node|bash",
	  .help = "language of the code; required",
	  .offset = offsetof(struct run_code_args, lang),
	  .choices = language_names },
	{ .name = "file",
	  .letter = 'f',
	  .type = OPT_TEXT,
	  .arg = "FILE",
	  .help = "file with the code; - is standard input (the default)",
	  .offset = offsetof(struct run_code_args, file) },
	{ 0 },
};

static bool is_stdin(const char *file)
{
	return !file || strcmp(file, "-") == 0;
}

static int read_code(const char *file, struct buf *ret, struct err *err)
{
	_close_ int fd = -1;
	int r;

	if (!is_stdin(file)) {
		fd = open(file, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			return err_sys(err, errno, "--file '%.100s'", file);
	}
	r = fd_slurp(fd < 0 ? STDIN_FILENO : fd, ret);
	if (r == -E2BIG)
		return err_set(err, E2BIG, "code is at most %u MiB long", CODE_MAX >> 20);
	if (r < 0)
		return err_sys(err, r, "read the code");
	if (memchr(buf_str(ret), '\0', ret->len))
		return err_set(err, EINVAL, "code holds a NUL byte: that is no program text");
	return 0;
}

/* Fills argv and code; says so when the code must become a file first. */
static void plan(const struct language *lang, const struct buf *code, struct guest_exec *e,
		 struct run_request *req)
{
	if (code->len > CODE_INLINE_MAX) {
		e->kind = EXEC_COMMAND;
		e->argv[e->argc++] = lang->program;
		e->argv[e->argc++] = lang->path;
		req->file_path = lang->path;
		req->file_data = code->data;
		req->file_len = code->len;
		return;
	}
	e->kind = lang->kind;
	if (lang->kind != EXEC_COMMAND) {
		e->code = buf_str(code);
		if (lang->kind == EXEC_NODE) /* where a program looks for its own name */
			e->argv[e->argc++] = lang->path;
		return;
	}
	e->argv[e->argc++] = lang->program;
	e->argv[e->argc++] = lang->flag;
	e->argv[e->argc++] = buf_str(code);
	e->argv[e->argc++] = lang->program;
}

int cmd_run_code(const struct command *cmd, int argc, char **argv)
{
	struct run_code_args args = { .box = BOX_ARGS_INIT, .lang = -1 };
	_cleanup_(buf_done) struct buf code = { .max = CODE_MAX };
	struct guest_exec e = { .code = "" };
	struct run_request req = { .box = &args.box, .exec = &e };
	struct err err = { 0 };
	int n = cli_parse(cmd, argc, argv, &args);

	if (n <= 0)
		return -n;
	if (args.lang < 0) {
		cli_say("--lang is missing: wants one of python, node, bash");
		return CLI_USAGE;
	}
	if (read_code(args.file, &code, &err) < 0)
		return cli_fail(&err);
	plan(&languages[args.lang], &code, &e, &req);
	if (argc - n + e.argc > GUEST_ARGS_MAX) {
		cli_say("a program has at most %d arguments", GUEST_ARGS_MAX);
		return CLI_USAGE;
	}
	for (; n < argc; n++)
		e.argv[e.argc++] = argv[n];
	req.no_input = is_stdin(args.file);
	return run_in_box(&req);
}
