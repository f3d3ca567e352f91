/* The objects that hang on a loop. libuv wants a handle's memory until its close callback, so each
 * free function closes and the callback frees. */
#include <errno.h>
#include <stdlib.h>

#include "loop/loop.h"
#include "loop/loop_uv.h"

static void on_closed(uv_handle_t *h)
{
	free(h->data);
}

struct loop_timer {
	uv_timer_t uv;
	void (*fire)(void *user);
	void *user;
};

static void on_timer(uv_timer_t *uv)
{
	struct loop_timer *t = uv->data;

	t->fire(t->user);
}

int loop_timer_create(struct loop *l, void (*fire)(void *user), void *user, struct loop_timer **ret)
{
	struct loop_timer *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	(void)uv_timer_init(&l->uv, &t->uv); /* cannot fail */
	t->uv.data = t;
	t->fire = fire;
	t->user = user;
	*ret = t;
	return 0;
}

void loop_timer_start(struct loop_timer *t, uint64_t after_ms, uint64_t repeat_ms)
{
	(void)uv_timer_start(&t->uv, on_timer, after_ms, repeat_ms); /* fails only when closing */
}

void loop_timer_stop(struct loop_timer *t)
{
	(void)uv_timer_stop(&t->uv);
}

struct loop_timer *loop_timer_free(struct loop_timer *t)
{
	if (t)
		uv_close((uv_handle_t *)&t->uv, on_closed);
	return NULL;
}

struct loop_io {
	uv_poll_t uv;
	unsigned want;
	void (*ready)(void *user, unsigned events);
	void *user;
};

static void on_poll(uv_poll_t *uv, int status, int events)
{
	struct loop_io *io = uv->data;
	unsigned told = 0;

	if (status < 0) {
		/* libuv has stopped watching. The next read or write tells the reason. */
		io->want = 0;
		told = LOOP_READ | LOOP_WRITE;
	}
	if (events & UV_READABLE)
		told |= LOOP_READ;
	if (events & UV_WRITABLE)
		told |= LOOP_WRITE;
	if (events & UV_DISCONNECT)
		told |= LOOP_HANGUP;
	io->ready(io->user, told);
}

int loop_io_create(struct loop *l, int fd, void (*ready)(void *user, unsigned events), void *user,
		   struct loop_io **ret)
{
	struct loop_io *io = calloc(1, sizeof(*io));
	int r;

	if (!io)
		return -ENOMEM;
	r = uv_poll_init(&l->uv, &io->uv, fd);
	if (r < 0) {
		free(io);
		return r;
	}
	io->uv.data = io;
	io->ready = ready;
	io->user = user;
	*ret = io;
	return 0;
}

int loop_io_want(struct loop_io *io, unsigned events)
{
	int uv = 0, r;

	if (events == io->want)
		return 0;
	if (events & LOOP_READ)
		uv |= UV_READABLE;
	if (events & LOOP_WRITE)
		uv |= UV_WRITABLE;
	if (events & LOOP_HANGUP)
		uv |= UV_DISCONNECT;
	r = uv == 0 ? uv_poll_stop(&io->uv) : uv_poll_start(&io->uv, uv, on_poll);
	if (r == 0)
		io->want = events;
	return r;
}

struct loop_io *loop_io_free(struct loop_io *io)
{
	if (io)
		uv_close((uv_handle_t *)&io->uv, on_closed);
	return NULL;
}

struct loop_wake {
	uv_async_t uv;
	void (*woken)(void *user);
	void *user;
};

static void on_async(uv_async_t *uv)
{
	struct loop_wake *w = uv->data;

	w->woken(w->user);
}

int loop_wake_create(struct loop *l, void (*woken)(void *user), void *user, struct loop_wake **ret)
{
	struct loop_wake *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return -ENOMEM;
	w->woken = woken;
	w->user = user;
	w->uv.data = w;
	r = uv_async_init(&l->uv, &w->uv, on_async);
	if (r < 0) {
		free(w);
		return r;
	}
	*ret = w;
	return 0;
}

void loop_wake_send(struct loop_wake *w)
{
	(void)uv_async_send(&w->uv); /* fails only for what is no handle */
}

struct loop_wake *loop_wake_free(struct loop_wake *w)
{
	if (w)
		uv_close((uv_handle_t *)&w->uv, on_closed);
	return NULL;
}

struct loop_signal {
	uv_signal_t uv;
	void (*caught)(void *user, int signo);
	void *user;
};

static void on_signal(uv_signal_t *uv, int signo)
{
	struct loop_signal *s = uv->data;

	s->caught(s->user, signo);
}

int loop_signal_create(struct loop *l, int signo, void (*caught)(void *user, int signo), void *user,
		       struct loop_signal **ret)
{
	struct loop_signal *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	r = uv_signal_init(&l->uv, &s->uv);
	if (r < 0) {
		free(s);
		return r;
	}
	s->uv.data = s;
	s->caught = caught;
	s->user = user;
	r = uv_signal_start(&s->uv, on_signal, signo);
	if (r < 0) {
		(void)loop_signal_free(s);
		return r;
	}
	*ret = s;
	return 0;
}

struct loop_signal *loop_signal_free(struct loop_signal *s)
{
	if (s)
		uv_close((uv_handle_t *)&s->uv, on_closed);
	return NULL;
}
