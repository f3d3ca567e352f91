#include "cli/remote.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/ending.h"
#include "cli/follow.h"
#include "httpc/url.h"

#define WRITE_STEP 4096u /* what a pipe that polls writable takes without blocking (PIPE_BUF) */
#define INPUT_MAX 65536u
#define BUSY_MS 200 /* before input is offered again to a daemon that is busy */

enum { SLOT_SIGNAL, SLOT_IN, SLOT_OUT, SLOT_ERR, SLOT_COUNT };

struct remote {
	struct remote_run *run;
	struct follow follow;
	int sigfd; /* owned */
	struct buf out, err;
	struct {
		char data[INPUT_MAX];
		size_t len;
		bool open;               /* our standard input may give more */
		bool told;               /* the execution knows its end, or does not read */
		bool offer;              /* data is to be sent (again) */
		struct buf target;       /* owned */
		struct httpc_call *call; /* owned */
	} in;
	struct {
		const char *wanted;      /* what to do next; NULL: nothing */
		struct buf target;       /* owned */
		struct httpc_call *call; /* owned */
	} control;
	unsigned interrupts;
	int signal;   /* that told us to stop; 0: none */
	bool leaving; /* told twice */
	bool output_closed;
	int code;
};

/* What is done to the execution: the last part of its path, and a body. */
#define CANCEL "cancel"
#define INTERRUPT "{\"signal\":\"SIGINT\",\"tree\":true}"
#define QUIT "{\"signal\":\"SIGQUIT\",\"tree\":true}"

static void signal_set(sigset_t *set)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };

	(void)sigemptyset(set);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		(void)sigaddset(set, signals[i]);
}

void remote_block_signals(void)
{
	sigset_t set;

	signal_set(&set);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
}

/* --- events -------------------------------------------------------------------------------- */

static int on_start(void *user, struct jv execution)
{
	struct remote *r = user;

	(void)execution;
	return str_copy(r->run->id, sizeof(r->run->id), r->follow.id);
}

static int on_output(void *user, int stream, const void *data, size_t n)
{
	struct remote *r = user;
	int e;

	if (r->run->discard || r->output_closed)
		return 0;
	e = buf_append(stream == 2 ? &r->err : &r->out, data, n);
	r->follow.hold = true; /* until it is written */
	return e;
}

static int on_gap(void *user, uint64_t omitted)
{
	(void)user;
	cli_say("%llu bytes of output were not kept", (unsigned long long)omitted);
	return 0;
}

static int on_end(void *user, struct jv execution)
{
	struct remote *r = user;

	if (r->output_closed)
		r->code = CLI_SIGNAL + SIGPIPE;
	else if (r->signal)
		r->code = CLI_SIGNAL + r->signal;
	else
		r->code = ending_say(execution, r->run->timeout_ms);
	return 0;
}

static const struct follow_ops ops = {
	.start = on_start,
	.output = on_output,
	.gap = on_gap,
	.end = on_end,
};

/* --- signals ------------------------------------------------------------------------------- */

static void stop(struct remote *r, int signo)
{
	r->leaving = r->signal != 0;
	r->signal = signo;
	r->control.wanted = CANCEL;
}

static void on_signal(struct remote *r)
{
	struct signalfd_siginfo info;

	if (read(r->sigfd, &info, sizeof(info)) != sizeof(info))
		return;
	if ((info.ssi_signo == SIGINT || info.ssi_signo == SIGQUIT) && r->interrupts++ == 0)
		r->control.wanted = info.ssi_signo == SIGINT ? INTERRUPT : QUIT;
	else
		stop(r, (int)info.ssi_signo);
}

static int begin_control(struct remote *r, struct err *err)
{
	const char *what = r->control.wanted;
	struct httpc_request req = { .method = "POST" };
	int e;

	if (!what || r->control.call || !r->follow.id[0])
		return 0;
	r->control.wanted = NULL;
	buf_clear(&r->control.target);
	e = client_path(&r->control.target, "sandboxes/%/executions/%/%", r->run->sandbox,
			r->follow.id, strcmp(what, CANCEL) == 0 ? CANCEL : "signal");
	if (e < 0)
		return err_sys(err, e, "request");
	req.target = r->control.target.data;
	if (strcmp(what, CANCEL) != 0) {
		req.type = "application/json";
		req.body = what;
		req.body_len = strlen(what);
	}
	return httpc_begin(r->run->client->http, &req, &r->control.call, err);
}

/* That it has ended already is no failure; of others the person who pressed the key is told. */
static void finish_control(struct remote *r)
{
	struct err err = { 0 };
	int e;

	if (!r->control.call || !httpc_is_over(r->control.call))
		return;
	e = httpc_result(r->control.call, NULL, &err);
	if (e < 0 && e != -EBUSY)
		cli_say("%s", err.text);
	r->control.call = httpc_call_free(r->control.call);
}

/* --- input --------------------------------------------------------------------------------- */

static void read_input(struct remote *r)
{
	ssize_t n = read(STDIN_FILENO, r->in.data, sizeof(r->in.data));

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n <= 0)
		r->in.open = false; /* an unreadable one counts as its end */
	r->in.len = n > 0 ? (size_t)n : 0;
	r->in.offer = true;
}

static int begin_input(struct remote *r, struct err *err)
{
	struct httpc_request req = { .method = "POST",
				     .type = "application/octet-stream",
				     .body = r->in.data,
				     .body_len = r->in.len,
				     /* it waits until the program reads */
				     .timeout_ms = HTTPC_NO_LIMIT,
				     .stall_ms = HTTPC_NO_LIMIT };
	int e;

	if (!r->in.offer || r->in.call || r->in.told || r->follow.over)
		return 0;
	r->in.offer = false;
	buf_clear(&r->in.target);
	e = client_path(&r->in.target, "sandboxes/%/executions/%/stdin", r->run->sandbox,
			r->follow.id);
	if (e == 0 && !r->in.open)
		e = url_add_query(&r->in.target, "eof", "1");
	if (e < 0)
		return err_sys(err, e, "request");
	req.target = r->in.target.data;
	return httpc_begin(r->run->client->http, &req, &r->in.call, err);
}

static int finish_input(struct remote *r, struct err *err)
{
	int e;

	if (!r->in.call || !httpc_is_over(r->in.call))
		return 0;
	e = httpc_result(r->in.call, NULL, err);
	r->in.call = httpc_call_free(r->in.call);
	if (e == 0)
		r->in.told = !r->in.open;
	else if (e == -EBUSY) /* it has ended, or closed its input: nobody reads */
		r->in.told = true;
	else if (e == -EAGAIN)
		r->in.offer = true;
	else
		return e; /* whether these bytes arrived nobody knows */
	err_clear(err);
	return 0;
}

/* --- output -------------------------------------------------------------------------------- */

/* Writes what one poll() allows. A reader that left ends the execution, as SIGPIPE would. */
static void write_output(struct remote *r, int fd, struct buf *b)
{
	ssize_t n = write(fd, b->data, b->len < WRITE_STEP ? b->len : WRITE_STEP);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n < 0) {
		r->output_closed = true;
		r->code = CLI_SIGNAL + SIGPIPE;
		r->control.wanted = CANCEL;
		buf_clear(&r->out);
		buf_clear(&r->err);
		return;
	}
	buf_drop(b, (size_t)n);
}

static bool is_drained(const struct remote *r)
{
	return r->out.len == 0 && r->err.len == 0;
}

/* --- the loop ------------------------------------------------------------------------------ */

static void fill_slots(const struct remote *r, struct pollfd slots[SLOT_COUNT])
{
	bool may_read = r->follow.id[0] && !r->follow.over && r->in.open && !r->in.call &&
			!r->in.offer && !r->in.told;

	slots[SLOT_SIGNAL] = (struct pollfd){ .fd = r->sigfd, .events = POLLIN };
	slots[SLOT_IN] = (struct pollfd){ .fd = may_read ? STDIN_FILENO : -1, .events = POLLIN };
	slots[SLOT_OUT] =
		(struct pollfd){ .fd = r->out.len ? STDOUT_FILENO : -1, .events = POLLOUT };
	slots[SLOT_ERR] =
		(struct pollfd){ .fd = r->err.len ? STDERR_FILENO : -1, .events = POLLOUT };
}

static int turn(struct remote *r, struct err *err)
{
	struct pollfd slots[SLOT_COUNT];
	int e;

	fill_slots(r, slots);
	e = follow_turn(&r->follow, slots, SLOT_COUNT, r->in.offer ? BUSY_MS : -1, err);
	if (e < 0)
		return e;
	if (slots[SLOT_SIGNAL].revents)
		on_signal(r);
	if (slots[SLOT_OUT].revents && r->out.len)
		write_output(r, STDOUT_FILENO, &r->out);
	if (slots[SLOT_ERR].revents && r->err.len)
		write_output(r, STDERR_FILENO, &r->err);
	if (slots[SLOT_IN].revents)
		read_input(r);
	if (is_drained(r))
		follow_resume(&r->follow);
	finish_control(r);
	e = begin_control(r, err);
	if (e == 0)
		e = finish_input(r, err);
	return e < 0 ? e : begin_input(r, err);
}

static int loop(struct remote *r, struct err *err)
{
	int e = 0;

	/* After a signal, output that nobody takes is not waited for. */
	while (e == 0 && !r->leaving && !(r->follow.over && (is_drained(r) || r->signal)))
		e = turn(r, err);
	if (e == 0 && r->leaving)
		return CLI_SIGNAL + r->signal;
	return e < 0 ? e : r->code;
}

static void remote_done(struct remote *r)
{
	r->in.call = httpc_call_free(r->in.call);
	r->control.call = httpc_call_free(r->control.call);
	follow_done(&r->follow);
	buf_done(&r->in.target);
	buf_done(&r->control.target);
	buf_done(&r->out);
	buf_done(&r->err);
	(void)close(r->sigfd);
}

int remote_run(struct remote_run *run, struct err *err)
{
	struct remote r = { .run = run, .in.open = !run->no_stdin };
	sigset_t set;
	int e;

	signal_set(&set);
	r.sigfd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (r.sigfd < 0)
		return err_sys(err, errno, "signalfd");
	r.follow = (struct follow){ .client = run->client,
				    .ops = &ops,
				    .user = &r,
				    .sandbox = run->sandbox,
				    .route = run->route };
	e = follow_start(&r.follow, run->body, err);
	if (e == 0)
		e = loop(&r, err);
	remote_done(&r);
	return e;
}
