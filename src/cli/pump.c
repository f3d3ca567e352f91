#include "cli/pump.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "cli/term.h"

#define WRITE_STEP 4096u  /* what a pipe that polls writable takes without blocking (PIPE_BUF) */
#define STOP_WAIT_MS 2000 /* after a cancel; then the box is destroyed anyway */
#define OUTPUT_MAX_BYTES (64u << 20)

struct state {
	struct pump *p;
	struct guest_client *g;
	uint32_t id;
	int sigfd; /* owned */
	bool tty;
	struct term term;
	struct {
		char data[GUEST_CHUNK];
		size_t pos, len;
		bool open; /* our standard input may give more */
		bool told; /* the box knows its end */
	} in;
	uint64_t give_up_ms; /* 0: not stopping */
	bool over;           /* the last frame of the execution was seen, or we gave up */
};

static const int stop_signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };

static void signal_set(sigset_t *set)
{
	(void)sigemptyset(set);
	for (size_t i = 0; i < sizeof(stop_signals) / sizeof(stop_signals[0]); i++)
		(void)sigaddset(set, stop_signals[i]);
	(void)sigaddset(set, SIGWINCH);
}

void pump_block_signals(void)
{
	sigset_t set;

	signal_set(&set);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
}

static void on_started(void *user, uint32_t pid, bool warm)
{
	struct state *s = user;

	(void)pid;
	s->p->outcome.started = true;
	s->p->outcome.warm = warm;
}

/* Keeps the bytes; unless they are collected, none more come until these are written. */
static void on_output(void *user, int stream, uint64_t offset, const void *data, size_t n)
{
	struct state *s = user;

	(void)offset;
	(void)buf_append(stream == 2 ? &s->p->err : &s->p->out, data, n);
	if (!s->p->collect)
		guest_hold(s->g, s->id, true);
}

static void on_exited(void *user, const struct guest_exit *ex)
{
	struct state *s = user;

	s->p->outcome.exit = *ex;
	s->p->outcome.ended = true;
	s->over = true;
}

static void on_failed(void *user, int code, const char *text)
{
	struct state *s = user;

	s->p->outcome.fail_code = code;
	(void)snprintf(s->p->outcome.fail_text, sizeof(s->p->outcome.fail_text), "%s", text);
	s->over = true;
}

static const struct guest_callbacks callbacks = {
	.started = on_started,
	.output = on_output,
	.exited = on_exited,
	.failed = on_failed,
};

/* Ends the execution; a second call ends the waiting for it as well. */
static void stop(struct state *s)
{
	if (s->give_up_ms || guest_cancel(s->g, s->id) < 0) {
		s->over = true;
		return;
	}
	s->give_up_ms = clock_now_ms() + STOP_WAIT_MS;
}

static void on_signal(struct state *s)
{
	struct signalfd_siginfo info;
	uint16_t rows, cols;

	if (read(s->sigfd, &info, sizeof(info)) != sizeof(info))
		return;
	if (info.ssi_signo == SIGWINCH) {
		if (s->tty && term_size(&rows, &cols))
			(void)guest_resize(s->g, s->id, rows, cols);
		return;
	}
	if (s->p->outcome.signal == 0)
		s->p->outcome.signal = (int)info.ssi_signo;
	stop(s);
}

/* Our standard input, once poll() says it has something. */
static void read_input(struct state *s)
{
	ssize_t n = read(STDIN_FILENO, s->in.data, sizeof(s->in.data));

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n <= 0)
		s->in.open = false; /* an unreadable one counts as its end */
	s->in.pos = 0;
	s->in.len = n > 0 ? (size_t)n : 0;
}

static void pass_input(struct state *s)
{
	ssize_t n;

	if (s->in.told || s->over)
		return;
	if (s->in.pos < s->in.len) {
		n = guest_stdin(s->g, s->id, s->in.data + s->in.pos, s->in.len - s->in.pos);
		if (n > 0)
			s->in.pos += (size_t)n;
		else if (n < 0 && n != -EAGAIN)
			s->in.told = true; /* it has ended; nobody reads */
	}
	if (s->in.pos == s->in.len && !s->in.open && guest_stdin(s->g, s->id, NULL, 0) != -EAGAIN)
		s->in.told = true;
}

/* Writes what one poll() allows. A reader that left ends the execution, as SIGPIPE would. */
static void write_output(struct state *s, int fd, struct buf *b)
{
	ssize_t n = write(fd, b->data, b->len < WRITE_STEP ? b->len : WRITE_STEP);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n < 0) {
		buf_clear(b);
		s->p->outcome.output_closed = true;
		if (!s->over)
			stop(s);
		return;
	}
	buf_drop(b, (size_t)n);
}

static bool is_drained(const struct state *s)
{
	return s->p->collect || (s->p->out.len == 0 && s->p->err.len == 0);
}

enum { WATCH_SIGNAL, WATCH_GUEST, WATCH_IN, WATCH_OUT, WATCH_ERR, WATCH_COUNT };

static void fill_polls(const struct state *s, struct pollfd polls[WATCH_COUNT])
{
	bool collect = s->p->collect;
	bool may_read = s->in.open && s->in.pos == s->in.len && !s->over;

	polls[WATCH_SIGNAL] = (struct pollfd){ .fd = s->sigfd, .events = POLLIN };
	polls[WATCH_GUEST] =
		(struct pollfd){ .fd = s->over ? -1 : guest_fd(s->g), .events = POLLIN };
	if (guest_wants_write(s->g))
		polls[WATCH_GUEST].events |= POLLOUT;
	polls[WATCH_IN] = (struct pollfd){ .fd = may_read ? STDIN_FILENO : -1, .events = POLLIN };
	polls[WATCH_OUT] = (struct pollfd){ .fd = !collect && s->p->out.len ? STDOUT_FILENO : -1,
					    .events = POLLOUT };
	polls[WATCH_ERR] = (struct pollfd){ .fd = !collect && s->p->err.len ? STDERR_FILENO : -1,
					    .events = POLLOUT };
}

static int wait_ms(const struct state *s)
{
	uint64_t now;

	if (!s->give_up_ms)
		return -1;
	now = clock_now_ms();
	return s->give_up_ms > now ? (int)(s->give_up_ms - now) : 0;
}

static int turn(struct state *s, struct err *err)
{
	struct pollfd polls[WATCH_COUNT];
	int n;

	fill_polls(s, polls);
	n = poll(polls, WATCH_COUNT, wait_ms(s));
	if (n < 0 && errno != EINTR)
		return err_sys(err, errno, "poll");
	if (n == 0) { /* the deadline of a cancel */
		s->over = true;
		return 0;
	}
	if (polls[WATCH_SIGNAL].revents)
		on_signal(s);
	if (polls[WATCH_OUT].revents)
		write_output(s, STDOUT_FILENO, &s->p->out);
	if (polls[WATCH_ERR].revents)
		write_output(s, STDERR_FILENO, &s->p->err);
	if (polls[WATCH_IN].revents)
		read_input(s);
	if (polls[WATCH_GUEST].revents && !s->over)
		(void)guest_dispatch(s->g);
	if (is_drained(s) && !s->over)
		guest_hold(s->g, s->id, false);
	pass_input(s);
	return 0;
}

static int loop(struct state *s, struct err *err)
{
	int r = 0;

	/* After a signal, output that nobody takes is not waited for. */
	while (r == 0 && !(s->over && (is_drained(s) || s->p->outcome.signal)))
		r = turn(s, err);
	return r;
}

int pump_run(struct pump *p, struct guest_client *g, const struct guest_exec *e, struct err *err)
{
	struct state s = { .p = p, .g = g, .in.open = true, .tty = (e->flags & EXEC_PTY) != 0 };
	_close_ int sigfd = -1;
	sigset_t set;
	int r;

	p->out.max = p->err.max = OUTPUT_MAX_BYTES;
	signal_set(&set);
	sigfd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (sigfd < 0)
		return err_sys(err, errno, "signalfd");
	s.sigfd = sigfd;
	r = guest_exec(g, e, &callbacks, &s, &s.id, err);
	if (r < 0)
		return r;
	if (s.tty)
		term_raw(&s.term);
	r = loop(&s, err);
	term_restore(&s.term);
	guest_forget(g, s.id);
	return r;
}

void pump_done(struct pump *p)
{
	buf_done(&p->out);
	buf_done(&p->err);
}
