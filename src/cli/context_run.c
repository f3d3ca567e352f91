/* Code in a context, followed to its end: what it writes as it comes, and Ctrl-C on its way in. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/command.h"
#include "cli/context_args.h"
#include "httpc/sse_reader.h"
#include "json/jw.h"

#define EVENT_MAX (16u << 20)

CLEANUP_FUNC(struct jv_doc *, jv_free)

struct following {
	struct client *client; /* borrowed */
	const char *sandbox, *context;
	struct httpc_call *call;      /* owned: the run */
	struct httpc_call *interrupt; /* owned; NULL: none was asked for */
	struct buf interrupt_target;  /* owned: as long as that is under way */
	struct sse_reader reader;
	struct err *err; /* borrowed */
	int sigfd;       /* owned */
	int signal;      /* that came; 0: none */
	int code;        /* how the run ended, as an exit code */
	bool is_over;
};

/* ---- signals ---- */

static void signal_set(sigset_t *set)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };

	(void)sigemptyset(set);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		(void)sigaddset(set, signals[i]);
}

void context_block_signals(void)
{
	sigset_t set;

	signal_set(&set);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
}

int context_signal_fd(struct err *err)
{
	sigset_t set;
	int fd;

	signal_set(&set);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? err_sys(err, errno, "signalfd") : fd;
}

/* ---- what comes ---- */

static void put(FILE *to, struct jv text)
{
	struct str s;

	if (jv_str(text, &s) == 0 && s.len > 0)
		(void)fwrite(s.data, 1, s.len, to);
	(void)fflush(to);
}

static void put_line(FILE *to, struct jv text)
{
	struct str s;

	if (jv_str(text, &s) < 0)
		return;
	put(to, text);
	if (s.len == 0 || s.data[s.len - 1] != '\n')
		(void)fputc('\n', to);
	(void)fflush(to);
}

static void put_error(struct jv error)
{
	struct jv trace = jv_get(error, "traceback");

	put_line(stderr, jv_len(trace) > 0 ? trace : jv_get(error, "value"));
}

static int code_of(struct jv end)
{
	const char *status = jv_text(jv_get(end, "status"));
	int64_t code = 0;

	if (jv_kind(jv_get(end, "reason")) == JV_STRING)
		cli_say("%.200s", jv_text(jv_get(end, "reason")));
	if (status && strcmp(status, "timeout") == 0)
		return CLI_TIMED_OUT;
	if (jv_i64(jv_get(end, "exitCode"), &code) == 0)
		return (int)code;
	return status && strcmp(status, "ok") == 0 ? CLI_OK : CLI_FAILED;
}

static int on_event(void *user, const struct sse_event *e)
{
	_cleanup_(jv_free_p) struct jv_doc *doc = NULL;
	struct following *f = user;
	int r = jv_parse(e->data, e->len, EVENT_MAX, &doc, f->err);
	struct jv v = jv_root(doc);

	if (r < 0)
		return r;
	if (strcmp(e->event, "stdout") == 0) {
		put(stdout, jv_get(v, "text"));
	} else if (strcmp(e->event, "stderr") == 0) {
		put(stderr, jv_get(v, "text"));
	} else if (strcmp(e->event, "result") == 0 || strcmp(e->event, "display") == 0) {
		put_line(stdout, jv_get(v, "text"));
	} else if (strcmp(e->event, "error") == 0) {
		put_error(v);
	} else if (strcmp(e->event, "end") == 0) {
		f->code = code_of(v);
		f->is_over = true;
	}
	return 0;
}

static int on_data(void *user, const void *data, size_t n)
{
	struct following *f = user;

	return sse_reader_feed(&f->reader, data, n, on_event, f);
}

/* ---- what goes ---- */

static int write_body(const struct context_args *a, const struct buf *code, bool stream,
		      struct buf *b)
{
	struct jw w = jw_begin(b);

	jw_object_begin(&w);
	jw_key(&w, "code");
	jw_string_n(&w, buf_str(code), code->len);
	if (a->timeout_ms)
		jw_double_field(&w, "timeout", (double)a->timeout_ms / 1000);
	if (stream)
		jw_bool_field(&w, "stream", true);
	jw_object_end(&w);
	return jw_end(&w);
}

/* One at a time; what it answers does not matter, the run does. */
static void interrupt(struct following *f)
{
	struct httpc_request req = { .method = "POST" };
	struct err ignored;

	if (f->interrupt && !httpc_is_over(f->interrupt))
		return;
	f->interrupt = httpc_call_free(f->interrupt);
	buf_clear(&f->interrupt_target);
	if (client_path(&f->interrupt_target, "sandboxes/%/contexts/%/interrupt", f->sandbox,
			f->context) < 0)
		return;
	req.target = f->interrupt_target.data;
	(void)httpc_begin(f->client->http, &req, &f->interrupt, &ignored);
}

static void on_signal(struct following *f)
{
	struct signalfd_siginfo info;

	if (read(f->sigfd, &info, sizeof(info)) != sizeof(info))
		return;
	f->signal = (int)info.ssi_signo;
	interrupt(f);
}

/* Another signal than SIGINT is not waited for: what was asked for is on its way. */
static int turns(struct following *f, struct err *err)
{
	struct pollfd slot = { .fd = f->sigfd, .events = POLLIN };
	int r = 0;

	while (r == 0 && !httpc_is_over(f->call)) {
		bool leaves = f->signal != 0 && f->signal != SIGINT;

		if (leaves && (!f->interrupt || httpc_is_over(f->interrupt)))
			break;
		r = httpc_turn(f->client->http, &slot, 1, -1, err);
		if (r == 0 && slot.revents)
			on_signal(f);
	}
	return r;
}

static void following_done(struct following *f)
{
	f->call = httpc_call_free(f->call);
	f->interrupt = httpc_call_free(f->interrupt);
	sse_reader_done(&f->reader);
	buf_done(&f->interrupt_target);
	if (f->sigfd >= 0)
		(void)close(f->sigfd);
}

static int finish(struct following *f, struct err *err)
{
	struct httpc_answer answer = { 0 };
	int r;

	if (!httpc_is_over(f->call))
		return CLI_SIGNAL + f->signal;
	r = httpc_result(f->call, &answer, err);
	if (r == 0 && f->client->json)
		r = client_print(&answer.body);
	else if (r == 0 && !f->is_over)
		r = err_set(err, ECONNRESET, "the daemon ended the answer before the run");
	f->client->status = answer.status;
	buf_done(&answer.body);
	if (r < 0)
		return r;
	return f->signal != 0 ? CLI_SIGNAL + f->signal : f->code;
}

int context_run_code(struct client *c, const struct context_args *a, const char *sandbox,
		     const char *context, const struct buf *code, int *ret_signal, struct err *err)
{
	_cleanup_(following_done) struct following f = {
		.client = c, .sandbox = sandbox, .context = context, .err = err, .sigfd = -1
	};
	_cleanup_(buf_done) struct buf target = { 0 }, body = { 0 };
	struct httpc_request req = { .method = "POST",
				     .type = "application/json",
				     .user = &f,
				     .timeout_ms = HTTPC_NO_LIMIT,
				     .stall_ms = c->json ? HTTPC_NO_LIMIT : 0 };
	int r = write_body(a, code, !c->json, &body);

	sse_reader_init(&f.reader, EVENT_MAX);
	if (r == 0)
		r = client_path(&target, "sandboxes/%/contexts/%/run", sandbox, context);
	if (r < 0)
		return err_sys(err, r, "request");
	req.target = target.data;
	req.body = body.data;
	req.body_len = body.len;
	if (!c->json) {
		req.accept = "text/event-stream";
		req.data = on_data;
	}
	f.sigfd = context_signal_fd(err);
	r = f.sigfd < 0 ? f.sigfd : httpc_begin(c->http, &req, &f.call, err);
	if (r == 0)
		r = turns(&f, err);
	if (ret_signal)
		*ret_signal = f.signal;
	return r < 0 ? r : finish(&f, err);
}
