#include "net/upstream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "net/http1.h"
#include "net/sock.h"

#define PENDING_MAX ((size_t)1 << 20)

enum upstream_state {
	UPSTREAM_RESTING, /* nothing is asked */
	UPSTREAM_HEAD,    /* waits for the answer's head */
	UPSTREAM_INTERIM, /* reads an interim answer to its end */
	UPSTREAM_SWITCH,  /* reads a 101 to its end */
	UPSTREAM_BODY,
	UPSTREAM_RAW, /* after a 101 */
	UPSTREAM_OVER,
};

struct upstream {
	struct sock *sock;    /* owned */
	struct http1 *parser; /* owned */
	enum upstream_state state;
	const struct upstream_ops *ops;
	void *user;
	void (*lost)(void *user);
	void *lost_user;
	unsigned interim;
	bool is_silent;
	bool is_sent;       /* all of the request */
	bool is_keep_alive; /* the server says so */
	bool is_busy, is_freed;
};

static void input(void *user, const char *data, size_t n);
static void drained(void *user);
static void ended(void *user, int r);
static const struct sock_ops sock_ops = { input, drained, ended };

int upstream_create(struct loop *l, int fd, const struct http_limits *limits, struct upstream **ret)
{
	struct upstream *u = calloc(1, sizeof(*u));
	int r;

	if (!u) {
		(void)fd_close(fd);
		return -ENOMEM;
	}
	u->parser = http1_create_answers(limits);
	r = sock_create(l, fd, PENDING_MAX, &sock_ops, u, &u->sock);
	if (r == 0 && u->parser) {
		*ret = u;
		return 0;
	}
	(void)upstream_free(u);
	return r < 0 ? r : -ENOMEM;
}

struct upstream *upstream_free(struct upstream *u)
{
	if (!u)
		return NULL;
	u->sock = sock_free(u->sock);
	u->is_freed = true;
	if (u->is_busy)
		return NULL;
	(void)http1_free(u->parser);
	free(u);
	return NULL;
}

int upstream_begin(struct upstream *u, const struct upstream_ops *ops, void *user, bool is_head,
		   const void *head, size_t n)
{
	if (u->state != UPSTREAM_RESTING)
		return -EPIPE;
	u->state = UPSTREAM_HEAD;
	u->ops = ops;
	u->user = user;
	u->lost = NULL;
	u->interim = 0;
	u->is_silent = true;
	u->is_sent = false;
	http1_expect(u->parser, is_head);
	return sock_write(u->sock, head, n);
}

int upstream_write(struct upstream *u, const void *data, size_t n, bool chunked)
{
	static const char digits[] = "0123456789abcdef";
	char size[18];
	size_t i = sizeof(size);
	struct iovec parts[3];

	if (n == 0)
		return 0;
	if (!chunked)
		return sock_write(u->sock, data, n);
	size[--i] = '\n';
	size[--i] = '\r';
	for (size_t left = n; left > 0; left >>= 4)
		size[--i] = digits[left & 15];
	parts[0] = (struct iovec){ size + i, sizeof(size) - i };
	parts[1] = (struct iovec){ (void *)(uintptr_t)data, n };
	parts[2] = (struct iovec){ size + sizeof(size) - 2, 2 };
	return sock_send(u->sock, parts, 3);
}

void upstream_write_end(struct upstream *u, bool chunked)
{
	u->is_sent = true;
	if (chunked)
		(void)sock_write(u->sock, "0\r\n\r\n", 5);
}

uint64_t upstream_bytes(const struct upstream *u)
{
	return sock_bytes(u->sock);
}

size_t upstream_pending(const struct upstream *u)
{
	return sock_pending(u->sock);
}

void upstream_pause(struct upstream *u, bool on)
{
	sock_pause(u->sock, on);
}

void upstream_shutdown(struct upstream *u)
{
	sock_shutdown(u->sock);
}

bool upstream_is_silent(const struct upstream *u)
{
	return u->is_silent;
}

void upstream_rest(struct upstream *u, void (*lost)(void *user), void *user)
{
	u->lost = lost;
	u->lost_user = user;
	sock_pause(u->sock, false);
}

static void fail(struct upstream *u, int code, const char *why)
{
	enum upstream_state was = u->state;

	u->state = UPSTREAM_OVER;
	if (was == UPSTREAM_OVER)
		return;
	if (was != UPSTREAM_RESTING)
		u->ops->failed(u->user, code, why);
	else if (u->lost)
		u->lost(u->lost_user);
}

static void on_head(struct upstream *u)
{
	const struct http1_head *head = http1_head(u->parser);

	u->is_keep_alive = head->keep_alive;
	if (head->status == 101) {
		u->state = UPSTREAM_SWITCH;
	} else if (head->status < 200) {
		u->state = UPSTREAM_INTERIM;
		if (++u->interim > UPSTREAM_INTERIM_MAX)
			fail(u, -EPROTO, "too many interim answers");
	} else {
		u->state = UPSTREAM_BODY;
		u->ops->head(u->user, head);
	}
}

static void on_end(struct upstream *u, bool is_closed)
{
	bool can_reuse = u->is_keep_alive && u->is_sent && !is_closed && !sock_pending(u->sock);

	if (u->state == UPSTREAM_INTERIM) {
		u->state = UPSTREAM_HEAD;
	} else if (u->state == UPSTREAM_SWITCH) {
		u->state = UPSTREAM_RAW;
		u->ops->head(u->user, http1_head(u->parser));
	} else {
		u->state = can_reuse ? UPSTREAM_RESTING : UPSTREAM_OVER;
		u->ops->end(u->user, can_reuse);
	}
}

/* One step; false when there is nothing more to do with these bytes. */
static bool step(struct upstream *u, const char **data, size_t *n)
{
	struct str piece = { 0 };

	if (u->is_freed || u->state == UPSTREAM_OVER)
		return false;
	if (u->state == UPSTREAM_RAW) {
		if (*n > 0)
			u->ops->data(u->user, *data, *n);
		return false;
	}
	if (u->state == UPSTREAM_RESTING) { /* it speaks unasked */
		if (*n > 0)
			fail(u, -EPROTO, "");
		return false;
	}
	switch (http1_next(u->parser, data, n, &piece)) {
	case HTTP1_MORE:
		return false;
	case HTTP1_HEAD:
		on_head(u);
		break;
	case HTTP1_DATA:
		u->ops->data(u->user, piece.data, piece.len);
		break;
	case HTTP1_END:
		on_end(u, false);
		break;
	case HTTP1_BAD:
		fail(u, -EPROTO, http1_reason(u->parser));
		return false;
	}
	return true;
}

static void leave(struct upstream *u)
{
	u->is_busy = false;
	if (u->is_freed)
		(void)upstream_free(u);
}

static void input(void *user, const char *data, size_t n)
{
	struct upstream *u = user;

	u->is_busy = true;
	u->is_silent = false;
	while (step(u, &data, &n))
		;
	leave(u);
}

static void drained(void *user)
{
	struct upstream *u = user;

	u->is_busy = true;
	if (u->state != UPSTREAM_RESTING && u->state != UPSTREAM_OVER)
		u->ops->drained(u->user);
	leave(u);
}

static void ended(void *user, int r)
{
	struct upstream *u = user;

	u->is_busy = true;
	if (r == 0 && u->state == UPSTREAM_RAW) {
		u->state = UPSTREAM_OVER;
		u->ops->end(u->user, false);
	} else if (r == 0 && u->state == UPSTREAM_BODY && http1_finish(u->parser) == HTTP1_END) {
		on_end(u, true);
	} else {
		fail(u, -ECONNRESET, "the connection was closed on the way");
	}
	leave(u);
}
