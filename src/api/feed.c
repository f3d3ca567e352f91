#include "api/feed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/call.h"
#include "base/cleanup.h"
#include "base/id.h"
#include "base/list.h"
#include "base/str.h"
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
	bool is_taken; /* and on its way to the box */
	char sandbox_id[ID_LEN + 1];
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

/* 1: all taken, 0: must wait for room, -errno. Not again after 1. */
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

/* 1: all of it is in the box. What is only taken would be lost with this process. */
static int move(struct feed *f)
{
	int r = f->is_taken ? 1 : push(f->x, f->data, f->len, &f->at, f->eof);

	f->is_taken = r > 0;
	return r > 0 && !exec_stdin_is_sent(f->x) ? 0 : r;
}

static struct feed *first_of(struct api *api, const struct execution *x)
{
	LIST_FOREACH (&api->feeds, f, struct feed, node)
		if (f->x == x)
			return f;
	return NULL;
}

/* Who waits before a new one. */
struct line {
	size_t execution, sandbox, sandbox_bytes;
};

static struct line look(struct api *api, const struct execution *x, const char *sandbox_id)
{
	struct line line = { 0 };

	LIST_FOREACH (&api->feeds, f, struct feed, node) {
		line.execution += f->x == x;
		if (strcmp(f->sandbox_id, sandbox_id) != 0)
			continue;
		line.sandbox++;
		line.sandbox_bytes += f->len;
	}
	return line;
}

/* A program that does not read must not make us keep all that its clients send: they may leave, and
 * what they sent stays. */
static bool is_full(const struct line *line, size_t more)
{
	return line->execution >= FEED_LINE_MAX || line->sandbox >= FEED_SANDBOX_MAX ||
	       line->sandbox_bytes + more > FEED_SANDBOX_BYTES;
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
		int r = move(f);

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
	struct exec_info info;

	if (!f)
		return -ENOMEM;
	list_init(&f->node);
	f->api = api;
	f->x = exec_ref(x);
	exec_info(x, &info);
	(void)str_copy(f->sandbox_id, sizeof(f->sandbox_id), info.sandbox_id);
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
	struct exec_info info;
	struct line line;
	size_t at = 0;
	struct feed *f;
	bool is_taken;
	int r = 0;

	exec_info(x, &info);
	line = look(api, x, info.sandbox_id);
	if (n > FEED_MAX)
		return -E2BIG;
	if (is_full(&line, n))
		return -EAGAIN;
	if (line.execution == 0 && n <= FEED_PIECE) /* is taken whole or not at all */
		r = push(x, data, n, &at, eof);
	is_taken = r > 0;
	if (r < 0 || (is_taken && exec_stdin_is_sent(x)))
		return r;
	/* Before any of it is taken: who is told that it was not may send it again. */
	r = feed_create(api, x, data, n, &f);
	if (r < 0)
		return is_taken ? 1 : r; /* NOTE: without memory nobody can wait for it */
	f->eof = eof;
	f->is_taken = is_taken;
	if (line.execution == 0)
		r = move(f);
	if (r != 0) {
		feed_free(f);
		return r;
	}
	f->done = done;
	f->user = user;
	list_push_back(&api->feeds, &f->node);
	if (line.execution == 0)
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
