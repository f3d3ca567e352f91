#include "api/feed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/call.h"
#include "base/cleanup.h"
#include "base/list.h"
#include "sandbox/exec.h"

#define FEED_PIECE (32u << 10)

struct feed {
	struct list node; /* api->feeds: all executions' lines, each in its order */
	struct api *api;
	struct execution *x;    /* held */
	struct exec_wait *wait; /* owned */
	void (*done)(void *user, int r);
	void *user;
	bool eof;
	size_t len, at;
	char data[];
};

static void feed_free(struct feed *f)
{
	list_remove(&f->node);
	if (f->wait)
		exec_unwait(f->wait);
	exec_unref(f->x);
	free(f);
}

/* 1: all taken, 0: must wait for room, -errno. */
static int push(struct execution *x, const char *data, size_t n, size_t *at, bool eof)
{
	while (*at < n) {
		size_t piece = n - *at < FEED_PIECE ? n - *at : FEED_PIECE;
		int r = exec_stdin(x, data + *at, piece);

		if (r == -EAGAIN)
			return 0;
		if (r < 0)
			return r;
		*at += piece;
	}
	if (eof) {
		int r = exec_stdin_end(x);

		return r == -EAGAIN ? 0 : r < 0 ? r : 1;
	}
	return 1;
}

static struct feed *first_of(struct api *api, const struct execution *x)
{
	LIST_FOREACH (&api->feeds, f, struct feed, node)
		if (f->x == x)
			return f;
	return NULL;
}

static size_t line_len(struct api *api, const struct execution *x)
{
	size_t n = 0;

	LIST_FOREACH (&api->feeds, f, struct feed, node)
		n += f->x == x;
	return n;
}

static void finish(struct feed *f, int r)
{
	void (*done)(void *user, int r) = f->done;
	void *user = f->user;

	feed_free(f);
	if (done)
		done(user, r);
}

/* There is room: the line moves on, one after the other. */
static void room(void *user)
{
	struct feed *f = user;
	struct api *api = f->api;
	struct execution *x = exec_ref(f->x);

	for (f = first_of(api, x); f; f = first_of(api, x)) {
		int r = push(x, f->data, f->len, &f->at, f->eof);

		if (r == 0) {
			exec_on_room(x, room, f);
			break;
		}
		finish(f, r > 0 ? 0 : r);
	}
	if (!f)
		exec_on_room(x, NULL, NULL);
	exec_unref(x);
}

static void ended(void *user, struct execution *x)
{
	struct feed *f = user;

	(void)x;
	if (first_of(f->api, f->x) == f)
		exec_on_room(f->x, NULL, NULL);
	f->wait = NULL; /* it has called: it is gone */
	finish(f, -EPIPE);
}

static int feed_create(struct api *api, struct execution *x, const void *data, size_t n,
		       struct feed **ret)
{
	struct feed *f = calloc(1, sizeof(*f) + n);

	if (!f)
		return -ENOMEM;
	list_init(&f->node);
	f->api = api;
	f->x = exec_ref(x);
	f->len = n;
	if (n > 0)
		memcpy(f->data, data, n);
	f->wait = exec_wait(x, ended, f);
	if (!f->wait) {
		feed_free(f);
		return -ENOMEM;
	}
	*ret = f;
	return 0;
}

int feed_start(struct api *api, struct execution *x, const void *data, size_t n, bool eof,
	       void (*done)(void *user, int r), void *user, struct feed **ret)
{
	size_t waiting = line_len(api, x), at = 0;
	struct feed *f;
	int r = 0;

	if (n > FEED_MAX)
		return -E2BIG;
	if (waiting >= FEED_LINE_MAX)
		return -EAGAIN;
	if (waiting == 0)
		r = push(x, data, n, &at, eof);
	if (r != 0)
		return r;
	r = feed_create(api, x, n > at ? (const char *)data + at : NULL, n - at, &f);
	if (r < 0)
		return r;
	f->eof = eof;
	f->done = done;
	f->user = user;
	list_push_back(&api->feeds, &f->node);
	if (waiting == 0)
		exec_on_room(x, room, f);
	if (ret)
		*ret = f;
	return 0;
}

void feed_leave(struct feed *f)
{
	if (f)
		f->done = NULL;
}

void feed_forget(struct api *api)
{
	while (!list_is_empty(&api->feeds)) {
		struct feed *f = LIST_ENTRY(api->feeds.next, struct feed, node);

		exec_on_room(f->x, NULL, NULL);
		feed_free(f);
	}
}
