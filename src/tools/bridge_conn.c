/* A connection of a program in a box: lines in, lines out, and who waits for whom. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "tools/bridge_impl.h"
#include "json/rpc.h"

#define PIECE (64u << 10)     /* bytes taken in a turn of the loop */
#define KEEP_MAX (128u << 10) /* of a buffer that holds little */

void bridge_conn_close(struct bridge_conn *c)
{
	struct bridge *b = c->b;

	LIST_FOREACH (&c->calls, call, struct bridge_call, node)
		bridge_call_free(call);
	b->waiting -= c->in.len;
	b->out -= c->out.len;
	b->n_conns--;
	list_remove(&c->node);
	c->io = loop_io_free(c->io);
	c->fd = fd_close(c->fd);
	buf_done(&c->in);
	buf_done(&c->out);
	free(c);
}

static bool has_line(const struct bridge_conn *c)
{
	return c->in.len > c->seen;
}

/* Nobody is asked for more while answers pile up or much is under way. */
static bool may_take(const struct bridge_conn *c)
{
	return !c->is_bad && c->b->out < BRIDGE_OUT_MAX && c->b->n_calls < BRIDGE_CALLS_MAX;
}

static bool may_read(const struct bridge_conn *c)
{
	return !c->is_over && !has_line(c) && may_take(c);
}

static bool is_finished(const struct bridge_conn *c)
{
	return c->is_over && !has_line(c) && c->out.len == 0 && list_is_empty(&c->calls);
}

/* Of one that is refused: all is said, and what it still sends is dropped until it has heard it. To
 * close at once would take back what was said. */
static bool is_draining(const struct bridge_conn *c)
{
	return c->is_bad && !c->is_over && c->out.len == 0 && list_is_empty(&c->calls);
}

/* c may be gone afterwards. */
static void update(struct bridge_conn *c)
{
	unsigned want = (may_read(c) || is_draining(c) ? LOOP_READ : 0u) |
			(c->out.len > 0 ? LOOP_WRITE : 0u);

	if (is_draining(c))
		(void)shutdown(c->fd, SHUT_WR);
	if (is_finished(c) || loop_io_want(c->io, want) < 0)
		bridge_conn_close(c);
}

/* What a long line or answer has grown is not counted once it is gone: it is given back. */
static void shrink(struct buf *b)
{
	struct buf small = { .max = b->max };

	if (b->cap <= KEEP_MAX || b->len >= b->cap / 4 || buf_append(&small, b->data, b->len) < 0)
		return;
	buf_done(b);
	*b = small;
}

static int flush(struct bridge_conn *c)
{
	while (c->out.len > 0) {
		ssize_t n = send(c->fd, c->out.data, c->out.len, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0)
			return errno == EAGAIN || errno == EINTR ? 0 : -errno;
		buf_drop(&c->out, (size_t)n);
		c->b->out -= (size_t)n;
	}
	shrink(&c->out);
	return 0;
}

void bridge_conn_say(struct bridge_conn *c, struct buf *line)
{
	size_t before = c->out.len;

	if (buf_append(&c->out, buf_str(line), line->len) < 0 || buf_putc(&c->out, '\n') < 0)
		c->is_bad = true;
	c->b->out += c->out.len - before;
}

/* The first line from `at` on that is whole; false: there is none. A search begins where the last
 * one ended. */
static bool find_line(struct bridge_conn *c, size_t at, size_t *ret_n)
{
	const char *end =
		has_line(c) ? memchr(c->in.data + c->seen, '\n', c->in.len - c->seen) : NULL;

	if (!end) {
		c->seen = c->in.len;
		return false;
	}
	*ret_n = (size_t)(end - c->in.data) - at;
	return true;
}

static void drop_input(struct bridge_conn *c)
{
	c->b->waiting -= c->in.len;
	buf_clear(&c->in);
	c->seen = 0;
	c->is_bad = true;
}

/* Dropped together: a piece may be nothing but ends of lines. */
static void take_lines(struct bridge_conn *c)
{
	size_t at = 0, n;

	while (may_take(c) && find_line(c, at, &n)) {
		if (n > 0)
			bridge_take(c, c->in.data + at, n);
		at += n + 1;
		c->seen = at;
	}
	buf_drop(&c->in, at);
	c->b->waiting -= at;
	c->seen -= at;
	shrink(&c->in);
	if (c->is_bad)
		drop_input(c);
}

/* -errno: it is lost. */
static int fill(struct bridge_conn *c)
{
	char piece[PIECE];
	ssize_t n = recv(c->fd, piece, sizeof(piece), MSG_DONTWAIT);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (n == 0)
		c->is_over = true;
	if (n == 0 || c->is_bad)
		return 0;
	if (buf_append(&c->in, piece, (size_t)n) < 0) {
		bridge_refuse(c, NULL, RPC_INVALID, "the line is too long");
		drop_input(c);
		return 0;
	}
	c->b->waiting += (size_t)n;
	if (c->b->waiting > BRIDGE_WAITING_MAX) {
		bridge_refuse(c, NULL, RPC_INVALID, "too much is asked in lines that do not end");
		drop_input(c);
	}
	return 0;
}

/* c may be gone afterwards. */
static void go_on(struct bridge_conn *c)
{
	int r;

	do { /* what is sent makes room for more */
		take_lines(c);
		r = flush(c);
	} while (r == 0 && has_line(c) && may_take(c));
	if (r < 0)
		bridge_conn_close(c);
	else
		update(c);
}

static void on_io(void *user, unsigned events)
{
	struct bridge_conn *c = user;
	struct bridge *b = c->b;
	int r = 0;

	if ((may_read(c) || is_draining(c)) && (events & LOOP_READ))
		r = fill(c);
	if (r < 0)
		bridge_conn_close(c);
	else
		go_on(c);
	bridge_go_on(b);
}

static bool is_reset(int fd)
{
	socklen_t size = sizeof(int);
	int code = 0;

	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &size) < 0 || code != 0;
}

void bridge_look(struct bridge *b)
{
	LIST_FOREACH (&b->conns, c, struct bridge_conn, node)
		if (!list_is_empty(&c->calls) && is_reset(c->fd))
			bridge_conn_close(c);
	bridge_go_on(b);
}

void bridge_go_on(struct bridge *b)
{
	LIST_FOREACH (&b->conns, c, struct bridge_conn, node)
		go_on(c);
}

void bridge_conn_open(struct bridge *b, int fd)
{
	struct bridge_conn *c = b->n_conns < BRIDGE_CONNS_MAX ? calloc(1, sizeof(*c)) : NULL;

	if (!c) {
		(void)fd_close(fd);
		return;
	}
	c->b = b;
	c->fd = fd;
	list_init(&c->calls);
	buf_init(&c->in, BRIDGE_LINE_MAX);
	list_push_back(&b->conns, &c->node);
	b->n_conns++;
	if (loop_io_create(b->all->deps.loop, fd, on_io, c, &c->io) < 0)
		bridge_conn_close(c);
	else
		update(c);
}
