/* `holt repl`: lines of a person, or of a pipe, one run each, in a context of its own. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
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

/* ---- lines ---- */

enum got { GOT_LINE, GOT_END, GOT_BREAK, GOT_STOP };

struct input {
	struct buf bytes; /* owned: read, and not taken */
	int sigfd;        /* owned */
	int signal;       /* with GOT_STOP */
	bool is_person;
	bool is_over;
};

static void input_done(struct input *in)
{
	buf_done(&in->bytes);
	if (in->sigfd >= 0)
		(void)close(in->sigfd);
}

static enum got on_signal(struct input *in)
{
	struct signalfd_siginfo info;

	if (read(in->sigfd, &info, sizeof(info)) != sizeof(info))
		return GOT_LINE; /* nothing */
	in->signal = (int)info.ssi_signo;
	/* A person takes back what they have typed; a pipe's reader is told to end. */
	return in->signal == SIGINT && in->is_person ? GOT_BREAK : GOT_STOP;
}

static int read_more(struct input *in)
{
	char data[4096];
	ssize_t n = read(STDIN_FILENO, data, sizeof(data));

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return 0;
	in->is_over = n <= 0;
	return n > 0 ? buf_append(&in->bytes, data, (size_t)n) : 0;
}

/* Waits until a line is there, with its end unless it is the last. */
static enum got wait_line(struct input *in, size_t *ret_len)
{
	for (;;) {
		struct pollfd polls[] = { { .fd = in->sigfd, .events = POLLIN },
					  { .fd = STDIN_FILENO, .events = POLLIN } };
		const char *end =
			in->bytes.len > 0 ? memchr(in->bytes.data, '\n', in->bytes.len) : NULL;
		enum got got;

		*ret_len = end ? (size_t)(end - in->bytes.data) + 1 : in->bytes.len;
		if (end || (in->is_over && in->bytes.len > 0))
			return GOT_LINE;
		if (in->is_over || (poll(polls, 2, -1) < 0 && errno != EINTR))
			return GOT_END;
		got = polls[0].revents ? on_signal(in) : GOT_LINE;
		if (got != GOT_LINE)
			return got;
		if (polls[1].revents && read_more(in) < 0)
			return GOT_END;
	}
}

/* One piece of code. GOT_END: the input's, with none. */
static enum got read_piece(struct input *in, struct buf *code)
{
	bool is_more;

	buf_clear(code);
	do {
		size_t n = 0, begin = code->len;
		enum got got;

		if (in->is_person)
			(void)fputs(code->len > 0 ? "... " : ">>> ", stderr);
		got = wait_line(in, &n);
		if (got == GOT_END && code->len > 0)
			return GOT_LINE;
		if (got != GOT_LINE)
			return got;
		if (buf_append(code, in->bytes.data, n) < 0)
			return GOT_END;
		buf_drop(&in->bytes, n);
		n -= code->data[code->len - 1] == '\n';
		is_more = is_open(code, code->data + begin, n);
	} while (is_more);
	return GOT_LINE;
}

static bool is_blank(const struct buf *code)
{
	return strspn(buf_str(code), " \t\r\n") == code->len;
}

/* Ctrl-C ends what runs or takes back what is typed, and the loop goes on: for a person. */
static int loop(struct client *c, const struct context_args *a, const char *sandbox,
		const char *context, struct err *err)
{
	_cleanup_(buf_done) struct buf code = { .max = 1u << 20 };
	_cleanup_(input_done) struct input in = {
		.is_person = isatty(STDIN_FILENO) && isatty(STDERR_FILENO), .sigfd = -1
	};
	int r = 0;
	enum got got;

	in.sigfd = context_signal_fd(err);
	if (in.sigfd < 0)
		return in.sigfd;
	while (r >= 0 && (got = read_piece(&in, &code)) != GOT_END) {
		if (got == GOT_STOP)
			return CLI_SIGNAL + in.signal;
		if (got == GOT_BREAK)
			(void)fputs("\n", stderr);
		if (got == GOT_BREAK || is_blank(&code))
			continue;
		r = context_run_code(c, a, sandbox, context, &code, &in.signal, err);
		if (in.signal != 0 && !(in.is_person && in.signal == SIGINT))
			return r;
	}
	if (in.is_person)
		(void)fputs("\n", stderr);
	return r < 0 ? r : in.is_person ? CLI_OK : r;
}

static int repl(struct client *c, void *args, int n, char **operands, struct err *err)
{
	_cleanup_(buf_done) struct buf sandbox = { 0 }, context = { 0 };
	bool json = c->json;
	int r;

	context_block_signals(); /* whenever one comes, what was made is removed */
	r = n > 0 ? buf_puts(&sandbox, operands[0]) : make_sandbox(c, &sandbox, err);

	if (r < 0)
		return err_code(err) ? r : err_sys(err, r, "sandbox");
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
