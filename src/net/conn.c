#include "net/conn.h"

#include <assert.h>
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "loop/loop.h"
#include "net/server.h"
#include "net/tls_session.h"

#define READ_AHEAD ((size_t)16 << 10) /* while the owner wants nothing; also shows a hang-up */
#define FLUSH_AT ((size_t)64 << 10)   /* queued output that does not wait for the turn's end */
#define KEEP_MAX ((size_t)64 << 10)   /* memory that an empty buffer may keep */
#define LINGER_MAX ((size_t)4 << 20)

enum { TODO_FLUSH = 1, TODO_OFFER = 2, TODO_LOSE = 4 };

static void on_ready(void *user, unsigned events);

int conn_init(struct conn *c, struct http_server *s, const struct conn_ops *ops, int fd,
	      struct tls_session *tls)
{
	int r;

	c->server = s;
	c->loop = s->loop;
	c->ops = ops;
	c->fd = fd;
	c->tls = tls;
	list_init(&c->node);
	list_init(&c->todo_node);
	buf_init(&c->in, READ_AHEAD + 2 * SERVER_READ_SIZE);
	buf_init(&c->out, s->o.limits.pending_max + 2 * SERVER_READ_SIZE);
	c->since_ms = c->output_ms = c->queued_ms = loop_now_ms(c->loop);
	r = loop_io_create(c->loop, fd, on_ready, c, &c->io);
	if (r == 0)
		r = loop_io_want(c->io, LOOP_READ);
	if (r < 0) {
		c->io = loop_io_free(c->io);
		c->fd = fd_close(c->fd);
		c->state = CONN_CLOSED;
		return r;
	}
	server_add(s, c);
	return 0;
}

void conn_done(struct conn *c)
{
	assert(c->state == CONN_CLOSED);
	c->tls = tls_session_free(c->tls);
	buf_done(&c->in);
	buf_done(&c->out);
	buf_done(&c->cipher);
}

static void add_todo(struct conn *c, unsigned what)
{
	if (c->state == CONN_CLOSED)
		return;
	c->todo |= what;
	server_todo(c->server, c);
}

void conn_fail(struct conn *c)
{
	add_todo(c, TODO_LOSE);
}

void conn_close(struct conn *c)
{
	if (c->state == CONN_CLOSED)
		return;
	c->state = CONN_CLOSED;
	c->io = loop_io_free(c->io);
	c->fd = fd_close(c->fd);
	c->todo = 0;
	list_remove(&c->todo_node);
	server_bury(c->server, c);
}

void conn_reset(struct conn *c)
{
	struct linger now = { .l_onoff = 1, .l_linger = 0 };

	if (c->fd >= 0)
		(void)setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	conn_close(c);
}

void conn_lose(struct conn *c)
{
	if (c->state == CONN_CLOSED)
		return;
	conn_close(c);
	c->ops->gone(c);
}

size_t conn_pending(const struct conn *c)
{
	return c->out.len - c->out_sent + c->cipher.len - c->cipher_sent;
}

/* Reading stops when the owner is busy and a little is read ahead; then only the peer's hang-up is
 * watched, so that a request whose client has left is noticed. */
static unsigned wanted_events(const struct conn *c)
{
	unsigned events = conn_pending(c) > 0 ? LOOP_WRITE : 0;

	if (c->state == CONN_LINGERING)
		return events | LOOP_READ;
	if (c->state != CONN_OPEN)
		return events;
	if (c->ops->wants(c) || c->in.len < READ_AHEAD)
		return events | LOOP_READ;
	return events | LOOP_HANGUP;
}

static void settle(struct conn *c)
{
	if (c->state != CONN_CLOSED && loop_io_want(c->io, wanted_events(c)) < 0)
		conn_fail(c);
}

/* Output. */

static void empty(struct buf *b, size_t *sent)
{
	*sent = 0;
	if (b->cap > KEEP_MAX)
		buf_done(b);
	else
		buf_clear(b);
}

/* Sends from b[*sent]; true when all of it is gone. */
static bool send_buf(struct conn *c, struct buf *b, size_t *sent)
{
	while (*sent < b->len) {
		ssize_t n = send(c->fd, b->data + *sent, b->len - *sent, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno != EAGAIN)
			conn_fail(c);
		if (n < 0)
			return false;
		*sent += (size_t)n;
		c->output_ms = loop_now_ms(c->loop);
	}
	empty(b, sent);
	return true;
}

/* One record after another: no more is encrypted than the socket takes. */
static void flush_tls(struct conn *c)
{
	for (;;) {
		ssize_t n = 0;

		if (!send_buf(c, &c->cipher, &c->cipher_sent))
			return;
		if (c->out_sent < c->out.len)
			n = tls_session_write(c->tls, c->out.data + c->out_sent,
					      c->out.len - c->out_sent);
		if (n > 0)
			c->out_sent += (size_t)n;
		if (n > 0 && c->out_sent == c->out.len)
			empty(&c->out, &c->out_sent);
		if (n < 0 || tls_session_take(c->tls, &c->cipher) < 0) {
			conn_fail(c);
			return;
		}
		if (c->cipher.len == 0)
			return;
	}
}

static void flush(struct conn *c)
{
	if (c->tls)
		flush_tls(c);
	else
		(void)send_buf(c, &c->out, &c->out_sent);
}

void conn_set_low_water(struct conn *c, size_t n)
{
	c->low_water = n;
	c->above = conn_pending(c) > n;
}

static void queue(struct conn *c, const void *data, size_t n)
{
	if (conn_pending(c) == 0)
		c->output_ms = loop_now_ms(c->loop);
	if (c->out_sent > c->out.len / 2) {
		buf_drop(&c->out, c->out_sent);
		c->out_sent = 0;
	}
	if (buf_append(&c->out, data, n) < 0)
		conn_fail(c);
	if (conn_pending(c) > c->low_water)
		c->above = true;
}

void conn_queue(struct conn *c, const void *data, size_t n)
{
	if (c->state != CONN_OPEN)
		return;
	c->queued_ms = loop_now_ms(c->loop);
	queue(c, data, n);
	if (conn_pending(c) >= FLUSH_AT && !(c->todo & TODO_LOSE))
		flush(c);
	add_todo(c, TODO_FLUSH);
}

/* What the socket takes of plain parts. */
static size_t send_parts(struct conn *c, struct iovec *parts, int count)
{
	struct msghdr m = { .msg_iov = parts, .msg_iovlen = (size_t)count };
	ssize_t n;

	do
		n = sendmsg(c->fd, &m, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	if (n < 0 && errno != EAGAIN)
		conn_fail(c);
	return n > 0 ? (size_t)n : 0;
}

void conn_send(struct conn *c, struct iovec *parts, int count)
{
	size_t sent = 0;

	if (c->state != CONN_OPEN)
		return;
	c->queued_ms = loop_now_ms(c->loop);
	if (!c->tls && conn_pending(c) == 0)
		sent = send_parts(c, parts, count);
	for (int i = 0; i < count; i++) {
		size_t done = sent < parts[i].iov_len ? sent : parts[i].iov_len;

		sent -= done;
		if (done < parts[i].iov_len)
			queue(c, (char *)parts[i].iov_base + done, parts[i].iov_len - done);
	}
	if (c->tls)
		flush(c);
	if (conn_pending(c) > 0)
		add_todo(c, TODO_FLUSH);
}

/* The output is sent: closes, or says so to the peer and waits for it to do the same. Closing a
 * socket with unread input would destroy what the peer has not read yet. */
static void finish_now(struct conn *c)
{
	if (c->tls && c->state == CONN_FINISHING) {
		tls_session_end(c->tls);
		flush(c); /* best effort: the answer itself is complete */
	}
	if (!c->linger || shutdown(c->fd, SHUT_WR) < 0) {
		conn_close(c);
		return;
	}
	c->state = CONN_LINGERING;
	c->since_ms = loop_now_ms(c->loop);
	buf_done(&c->out);
	buf_done(&c->cipher);
	c->out_sent = c->cipher_sent = 0;
	add_todo(c, TODO_FLUSH); /* for its settling */
}

void conn_finish(struct conn *c, bool linger)
{
	if (c->state != CONN_OPEN)
		return;
	c->state = CONN_FINISHING;
	c->linger = linger;
	if (conn_pending(c) == 0)
		finish_now(c);
	else
		add_todo(c, TODO_FLUSH);
}

/* Output was sent: who waited for that? */
static void after_flush(struct conn *c)
{
	if (c->state == CONN_FINISHING && conn_pending(c) == 0)
		finish_now(c);
	if (c->state == CONN_OPEN && c->above && conn_pending(c) <= c->low_water) {
		c->above = false;
		c->ops->drained(c);
	}
	settle(c);
}

/* Input. */

static void offer(struct conn *c, const char *data, size_t n)
{
	const struct conn_ops *ops;
	bool kept = c->in.len > 0;
	size_t taken = 0;

	if (kept) {
		if (buf_append(&c->in, data, n) < 0) {
			conn_fail(c);
			return;
		}
		data = c->in.data;
		n = c->in.len;
	}
	c->offering = true;
	do { /* once more when an upgrade has changed the owner */
		ops = c->ops;
		taken += ops->input(c, data + taken, n - taken);
	} while (c->ops != ops && c->state == CONN_OPEN);
	c->offering = false;
	if (c->state != CONN_OPEN)
		return; /* nobody looks at input any more */
	if (kept)
		buf_drop(&c->in, taken);
	else if (taken < n && buf_append(&c->in, data + taken, n - taken) < 0)
		conn_fail(c);
	if (c->in.len == 0 && c->in.cap > READ_AHEAD)
		buf_done(&c->in);
}

void conn_resume(struct conn *c)
{
	if (!c->offering) /* otherwise input() looks itself */
		add_todo(c, TODO_OFFER);
}

/* The peer will send no more. A peer that has only closed its own side still gets the answers that
 * are complete. */
static void on_end(struct conn *c)
{
	if (c->state == CONN_OPEN && conn_pending(c) > 0 && c->ops->is_over(c)) {
		conn_finish(c, false);
		settle(c);
	} else {
		conn_lose(c);
	}
}

static void decrypt(struct conn *c, const char *data, size_t n)
{
	ssize_t got = tls_session_feed(c->tls, data, n);

	while (got >= 0 && c->state == CONN_OPEN) {
		got = tls_session_read(c->tls, c->server->plain, SERVER_READ_SIZE);
		if (got == 0)
			break;
		if (got > 0)
			offer(c, c->server->plain, (size_t)got);
	}
	if (c->state == CONN_CLOSED)
		return;
	flush(c); /* handshake, alerts, tickets */
	if (got == -EPIPE)
		on_end(c);
	else if (got < 0)
		conn_lose(c);
}

static void on_readable(struct conn *c)
{
	ssize_t n = recv(c->fd, c->server->bytes, SERVER_READ_SIZE, 0);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n < 0) {
		conn_lose(c);
	} else if (n == 0) {
		on_end(c);
	} else if (c->state == CONN_LINGERING) {
		c->lingered += (size_t)n;
		if (c->lingered > LINGER_MAX)
			conn_close(c);
	} else if (c->state == CONN_OPEN) {
		if (c->tls)
			decrypt(c, c->server->bytes, (size_t)n);
		else
			offer(c, c->server->bytes, (size_t)n);
		settle(c);
	}
}

static void on_ready(void *user, unsigned events)
{
	struct conn *c = user;

	if (events & LOOP_WRITE) {
		flush(c);
		after_flush(c);
	}
	if (c->state != CONN_CLOSED && events & LOOP_READ)
		on_readable(c);
	else if (c->state != CONN_CLOSED && events & LOOP_HANGUP)
		conn_lose(c);
	settle(c);
}

void conn_run_todo(struct conn *c)
{
	unsigned what = c->todo;

	c->todo = 0;
	if (what & TODO_LOSE) {
		conn_lose(c);
		return;
	}
	if (what & TODO_FLUSH) {
		flush(c);
		after_flush(c);
	}
	if (what & TODO_OFFER && c->state == CONN_OPEN) {
		offer(c, "", 0);
		settle(c);
	}
}

void conn_tick(struct conn *c, uint64_t now_ms)
{
	const struct http_limits *limits = &c->server->o.limits;

	if (c->state == CONN_LINGERING) {
		if (now_ms - c->since_ms >= limits->linger_ms)
			conn_close(c);
	} else if (conn_pending(c) > 0 && now_ms - c->output_ms >= limits->write_ms) {
		conn_lose(c);
	} else if (c->tls && !tls_session_is_ready(c->tls)) {
		if (now_ms - c->since_ms >= limits->handshake_ms)
			conn_lose(c);
	} else if (c->state == CONN_OPEN) {
		c->ops->tick(c, now_ms);
	}
}
