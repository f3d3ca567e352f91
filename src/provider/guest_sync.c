/* The blocking forms: each drives one operation to its end with poll(). */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/err.h"
#include "provider/guest_client.h"

#define SILENCE_MS 60000 /* of a box that is to do something for us */

/* What the callbacks of one blocking call collect. */
struct wait {
	bool ended;
	int code; /* positive errno of failed() */
	char text[200];
	struct guest_result *result;      /* of an execution */
	struct buf *data;                 /* of a read */
	const struct guest_callbacks *cb; /* the caller's, of any other file operation */
	void *user;
};

static void on_started(void *user, uint32_t pid, bool warm)
{
	struct wait *w = user;

	(void)pid;
	w->result->warm = warm;
}

static void on_output(void *user, int stream, uint64_t offset, const void *data, size_t n)
{
	struct wait *w = user;

	(void)offset;
	(void)buf_append(stream == 2 ? &w->result->err : &w->result->out, data, n);
}

static void on_exited(void *user, const struct guest_exit *ex)
{
	struct wait *w = user;

	w->result->exit = *ex;
	w->ended = true;
}

static void on_data(void *user, const void *data, size_t n)
{
	struct wait *w = user;

	if (w->data)
		(void)buf_append(w->data, data, n);
	if (w->cb && w->cb->data)
		w->cb->data(w->user, data, n);
}

static void on_entry(void *user, const struct guest_entry *entry)
{
	struct wait *w = user;

	if (w->cb && w->cb->entry)
		w->cb->entry(w->user, entry);
}

static void on_done(void *user, uint64_t count)
{
	struct wait *w = user;

	w->ended = true;
	if (w->cb && w->cb->done)
		w->cb->done(w->user, count);
}

static void on_failed(void *user, int code, const char *text)
{
	struct wait *w = user;

	w->ended = true;
	w->code = code;
	(void)snprintf(w->text, sizeof(w->text), "%s", text); /* a cut is fine */
}

static const struct guest_callbacks callbacks = {
	.started = on_started,
	.output = on_output,
	.exited = on_exited,
	.data = on_data,
	.entry = on_entry,
	.done = on_done,
	.failed = on_failed,
};

/* One turn: waits for the socket and handles it. -ETIMEDOUT, or 0; errors come by failed(). */
static int turn(struct guest_client *g, int timeout_ms)
{
	struct pollfd p = { .fd = guest_fd(g), .events = POLLIN };
	int n;

	if (guest_wants_write(g))
		p.events |= POLLOUT;
	n = poll(&p, 1, timeout_ms);
	if (n < 0 && errno != EINTR)
		return -errno;
	if (n == 0)
		return -ETIMEDOUT;
	(void)guest_dispatch(g);
	return 0;
}

/* Where the bytes come from that go into the box. */
struct feed {
	const char *data;
	size_t left;
	bool open; /* the end of file is still to be sent */
	ssize_t (*send)(struct guest_client *g, uint32_t id, const void *data, size_t n);
};

static void feed_some(struct guest_client *g, uint32_t id, struct feed *f)
{
	ssize_t n;

	if (f->left > 0) {
		n = f->send(g, id, f->data, f->left);
		if (n > 0) {
			f->data += n;
			f->left -= (size_t)n;
		} else if (n < 0 && n != -EAGAIN) {
			f->left = 0; /* its end is on the way */
			f->open = false;
		}
	}
	if (f->left == 0 && f->open && f->send(g, id, NULL, 0) != -EAGAIN)
		f->open = false;
}

/* silence_ms: how long the box may say nothing; -1: for ever, as a program may. */
static int drive(struct guest_client *g, uint32_t id, struct wait *w, struct feed *f,
		 int silence_ms, struct err *err)
{
	while (!w->ended) {
		int e;

		if (f->left > 0 || f->open)
			feed_some(g, id, f);
		e = turn(g, silence_ms);
		if (e < 0) {
			guest_forget(g, id);
			return err_sys(err, e, "wait for the box");
		}
	}
	return w->code ? err_set(err, w->code, "%s", w->text) : 0;
}

void guest_result_done(struct guest_result *r)
{
	buf_done(&r->out);
	buf_done(&r->err);
}

/* One with an end of its own is over by then, and the box has said so. */
static int exec_silence_ms(const struct guest_exec *e)
{
	uint64_t ms = (uint64_t)e->timeout_ms + e->grace_ms + SILENCE_MS;

	return e->timeout_ms == 0 || ms > INT_MAX ? -1 : (int)ms;
}

int guest_exec_sync(struct guest_client *g, const struct guest_exec *e, const void *in,
		    size_t in_len, struct guest_result *ret, struct err *err)
{
	struct guest_result result = { 0 };
	struct wait w = { .result = &result };
	struct feed f = { in, in_len, (e->flags & EXEC_STDIN) != 0, guest_stdin };
	uint32_t id;
	int r = guest_exec(g, e, &callbacks, &w, &id, err);

	if (r < 0)
		return r;
	r = drive(g, id, &w, &f, exec_silence_ms(e), err);
	if (r == 0 && (e->flags & EXEC_KEEP))
		(void)guest_ack(g, id); /* a lost connection is the next call's business */
	if (r == 0 && (result.out.failed || result.err.failed))
		r = err_set(err, E2BIG, "output is above %u bytes", BUF_MAX);
	if (r < 0) {
		guest_result_done(&result);
		return r;
	}
	*ret = result;
	return 0;
}

int guest_read_sync(struct guest_client *g, const char *path, struct buf *ret, struct err *err)
{
	struct guest_file f = { .op = FILE_READ, .user = "", .path = path, .target = "" };
	struct wait w = { .data = ret };
	struct feed none = { 0 };
	uint32_t id;
	int r = guest_file(g, &f, &callbacks, &w, &id, err);

	if (r < 0)
		return r;
	r = drive(g, id, &w, &none, SILENCE_MS, err);
	if (r == 0 && ret->failed)
		return err_set(err, E2BIG, "'%.100s' is larger than its buffer may grow", path);
	return r;
}

int guest_write_sync(struct guest_client *g, const char *path, const void *data, size_t n,
		     uint32_t mode, struct err *err)
{
	struct guest_file f = { .op = FILE_WRITE,
				.flags = FILE_PARENTS,
				.mode = mode,
				.user = "",
				.path = path,
				.target = "" };
	struct wait w = { 0 };
	struct feed feed = { data, n, true, guest_data };
	uint32_t id;
	int r = guest_file(g, &f, &callbacks, &w, &id, err);

	if (r < 0)
		return r;
	return drive(g, id, &w, &feed, SILENCE_MS, err);
}

int guest_file_sync(struct guest_client *g, const struct guest_file *f,
		    const struct guest_callbacks *cb, void *user, struct err *err)
{
	struct wait w = { .cb = cb, .user = user };
	struct feed none = { 0 };
	uint32_t id;
	int r = guest_file(g, f, &callbacks, &w, &id, err);

	if (r < 0)
		return r;
	return drive(g, id, &w, &none, SILENCE_MS, err);
}

int guest_ping_sync(struct guest_client *g, int timeout_ms)
{
	uint64_t deadline = clock_now_ms() + (timeout_ms > 0 ? (uint64_t)timeout_ms : 0);
	struct wait w = { 0 };
	uint32_t id;
	int r = guest_ping(g, &callbacks, &w, &id, NULL);

	if (r < 0)
		return r;
	while (r == 0 && !w.ended) {
		uint64_t now = clock_now_ms();

		r = turn(g, timeout_ms < 0 ? -1 : now < deadline ? (int)(deadline - now) : 0);
	}
	if (r < 0) {
		guest_forget(g, id);
		return r;
	}
	return -w.code;
}
