/* A server as a process of this machine (stdio_spawn.h). */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "loop/loop.h"
#include "mcpc/stdio_impl.h"

#define CHUNK 65536u
#define DRAIN_CHUNKS 64u /* of what it has left when it ends */
#define END_MS 5000      /* that a killed process may take to be gone */

struct host {
	struct stdio s;
	struct stdio_process p;                                /* -1 in each: not started */
	struct loop_io *control_io, *in_io, *out_io, *said_io; /* owned */
	struct loop_task soon;                                 /* frees it */
	bool is_gone;                                          /* it has ended */
};

static struct host *host_of(struct stdio *s)
{
	return (struct host *)s;
}

/* ---- what is said ---- */

static void close_in(struct host *h)
{
	h->in_io = loop_io_free(h->in_io);
	h->p.in = fd_close(h->p.in);
}

static void close_out(struct host *h)
{
	h->out_io = loop_io_free(h->out_io);
	h->p.out = fd_close(h->p.out);
}

static void close_said(struct host *h)
{
	h->said_io = loop_io_free(h->said_io);
	h->p.said = fd_close(h->p.said);
}

/* Of what went wrong here its end tells. */
static void flush(struct stdio *s)
{
	struct host *h = host_of(s);

	while (h->p.in >= 0 && s->out_at < s->out.len) {
		ssize_t n = write(h->p.in, s->out.data + s->out_at, s->out.len - s->out_at);

		if (n > 0) {
			s->out_at += (size_t)n;
			continue;
		}
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		close_in(h);
	}
	if (h->in_io)
		(void)loop_io_want(h->in_io, s->out_at < s->out.len ? LOOP_WRITE : 0);
}

static void on_room(void *user, unsigned events)
{
	(void)events;
	flush(user);
}

/* False: nothing more comes, now or for ever (*ret_end). */
static bool read_some(struct host *h, int fd, void (*take)(struct stdio *, const char *, size_t),
		      bool *ret_end)
{
	char data[CHUNK];
	ssize_t n = read(fd, data, sizeof(data));

	*ret_end = n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
	if (n > 0)
		take(&h->s, data, (size_t)n);
	return n > 0;
}

static void on_out(void *user, unsigned events)
{
	struct host *h = user;
	bool is_end;

	(void)events;
	(void)read_some(h, h->p.out, stdio_feed, &is_end);
	if (!is_end)
		return;
	close_out(h);
	stdio_fell_silent(&h->s);
}

static void on_said(void *user, unsigned events)
{
	struct host *h = user;
	bool is_end;

	(void)events;
	(void)read_some(h, h->p.said, stdio_said, &is_end);
	if (is_end)
		close_said(h);
}

/* ---- the end ---- */

static void close_control(struct host *h)
{
	h->control_io = loop_io_free(h->control_io);
	h->p.control = fd_close(h->p.control);
	h->is_gone = true;
}

/* Who waited for it says how it ended; who was killed as well says nothing. */
static struct stdio_ended read_end(const struct host *h)
{
	struct stdio_ended ended;

	if (recv(h->p.control, &ended, sizeof(ended), MSG_DONTWAIT) != (ssize_t)sizeof(ended))
		ended = (struct stdio_ended){ .signo = SIGKILL };
	return ended;
}

static void on_ended(void *user, unsigned events)
{
	struct host *h = user;
	struct stdio_ended ended = read_end(h);
	bool is_end = false;

	(void)events;
	for (unsigned i = 0; h->p.out >= 0 && i < DRAIN_CHUNKS; i++)
		if (!read_some(h, h->p.out, stdio_feed, &is_end))
			break;
	for (unsigned i = 0; h->p.said >= 0 && i < DRAIN_CHUNKS; i++)
		if (!read_some(h, h->p.said, stdio_said, &is_end))
			break;
	stdio_said(&h->s, "\n", 1);
	close_control(h);
	close_in(h);
	close_out(h);
	close_said(h);
	if (h->s.is_closing)
		(void)stdio_free(&h->s);
	else
		stdio_lose_ended(&h->s, ended.exit_code, ended.signo);
}

static void free_soon(void *user)
{
	(void)stdio_free(user);
}

static void hang_up(struct stdio *s)
{
	struct host *h = host_of(s);

	close_in(h);
	if (h->is_gone)
		loop_task_post(s->yard->loop, &h->soon);
}

static void signal_all(const struct host *h, uint8_t signo)
{
	if (h->p.control >= 0)
		(void)send(h->p.control, &signo, sizeof(signo), MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void terminate(struct stdio *s)
{
	signal_all(host_of(s), SIGTERM);
}

static void end_now(struct stdio *s)
{
	signal_all(host_of(s), SIGKILL);
}

static void drop(struct stdio *s)
{
	struct host *h = host_of(s);
	struct pollfd p = { .fd = h->p.control, .events = POLLIN };

	loop_task_cancel(&h->soon);
	if (h->p.control >= 0) {
		signal_all(h, SIGKILL);
		(void)poll(&p, 1, END_MS);
	}
	close_control(h);
	close_in(h);
	close_out(h);
	close_said(h);
}

static const struct stdio_ops host_ops = {
	.flush = flush,
	.hang_up = hang_up,
	.terminate = terminate,
	.kill = end_now,
	.drop = drop,
};

/* ---- the beginning ---- */

static int watch(struct host *h, int fd, void (*ready)(void *, unsigned), unsigned events,
		 struct loop_io **ret)
{
	int r = loop_io_create(h->s.yard->loop, fd, ready, h, ret);

	return r < 0 || !events ? r : loop_io_want(*ret, events);
}

static int watch_all(struct host *h, struct err *err)
{
	int r = watch(h, h->p.in, on_room, 0, &h->in_io);

	if (r == 0)
		r = watch(h, h->p.out, on_out, LOOP_READ, &h->out_io);
	if (r == 0)
		r = watch(h, h->p.said, on_said, LOOP_READ, &h->said_io);
	if (r == 0)
		r = watch(h, h->p.control, on_ended, LOOP_READ, &h->control_io);
	return r < 0 ? err_sys(err, r, "watch the server") : 0;
}

static int spawn(const struct stdio_yard *y, const struct stdio_spec *spec,
		 struct stdio_process *ret, struct err *err)
{
	return y->spawner.spawn ? y->spawner.spawn(y->spawner.self, spec, ret, err)
				: stdio_spawn(spec, ret, NULL, err);
}

int stdio_host_open(struct stdio_yard *y, const struct stdio_spec *spec,
		    struct mcpc_transport **ret, struct err *err)
{
	struct host *h = calloc(1, sizeof(*h));
	int r;

	if (!h)
		return err_sys(err, ENOMEM, "server");
	h->p = STDIO_PROCESS_NONE;
	loop_task_init(&h->soon, free_soon, h);
	r = stdio_init(&h->s, y, &host_ops, spec, err);
	if (r == 0)
		r = spawn(y, spec, &h->p, err);
	if (r == 0)
		r = watch_all(h, err);
	if (r < 0) {
		(void)stdio_free(&h->s);
		return r;
	}
	*ret = &h->s.t;
	return 0;
}
