#include "net/sock.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/fd.h"
#include "loop/loop.h"

#define READ_SIZE ((size_t)32 << 10)
#define LAST_READS 64               /* of a connection that is broken */
#define KEEP_MAX ((size_t)64 << 10) /* memory that an empty queue may keep */

struct sock {
	struct loop *loop;  /* borrowed */
	struct loop_io *io; /* owned */
	int fd;             /* owned */
	const struct sock_ops *ops;
	void *user;
	struct buf out; /* not sent: from out_sent on */
	size_t out_sent;
	uint64_t bytes; /* both ways */
	bool is_paused, is_above;
	bool is_read_over;  /* the peer has ended its side */
	bool is_write_over; /* we end ours behind what waits */
	bool is_shut;       /* and have said so */
	int broken;         /* -errno */
	bool is_told;       /* of it */
	bool is_busy;       /* a callback of ours is on the stack */
	bool is_freed;      /* by it */
};

static void on_ready(void *user, unsigned events);

int sock_create(struct loop *l, int fd, size_t pending_max, const struct sock_ops *ops, void *user,
		struct sock **ret)
{
	struct sock *s = calloc(1, sizeof(*s));
	int r = s ? loop_io_create(l, fd, on_ready, s, &s->io) : -ENOMEM;

	if (r == 0)
		r = loop_io_want(s->io, LOOP_READ);
	if (r < 0) {
		if (s)
			(void)loop_io_free(s->io);
		free(s);
		(void)fd_close(fd);
		return r;
	}
	s->loop = l;
	s->fd = fd;
	s->ops = ops;
	s->user = user;
	buf_init(&s->out, pending_max);
	*ret = s;
	return 0;
}

struct sock *sock_free(struct sock *s)
{
	if (!s)
		return NULL;
	s->io = loop_io_free(s->io);
	s->fd = fd_close(s->fd);
	buf_done(&s->out);
	s->is_freed = true;
	if (!s->is_busy)
		free(s);
	return NULL;
}

void sock_set_ops(struct sock *s, const struct sock_ops *ops, void *user)
{
	s->ops = ops;
	s->user = user;
}

size_t sock_pending(const struct sock *s)
{
	return s->out.len - s->out_sent;
}

/* Also of one that is broken: the next turn of the loop finds that out and says so. */
static void settle(struct sock *s)
{
	unsigned want = 0;

	if (s->is_freed)
		return;
	if ((!s->is_paused && !s->is_read_over) || (s->broken && !s->is_told))
		want |= LOOP_READ;
	if (sock_pending(s) > 0 || (s->broken && !s->is_told))
		want |= LOOP_WRITE;
	(void)loop_io_want(s->io, s->is_told ? 0 : want);
}

static void fail(struct sock *s, int r)
{
	if (!s->broken)
		s->broken = r;
}

static void drop_sent(struct sock *s)
{
	if (s->out_sent == s->out.len) {
		s->out_sent = 0;
		if (s->out.cap > KEEP_MAX)
			buf_done(&s->out);
		else
			buf_clear(&s->out);
	} else if (s->out_sent > s->out.len / 2) {
		buf_drop(&s->out, s->out_sent);
		s->out_sent = 0;
	}
}

static size_t send_parts(struct sock *s, struct iovec *parts, int count)
{
	struct msghdr m = { .msg_iov = parts, .msg_iovlen = (size_t)count };
	ssize_t n;

	do
		n = sendmsg(s->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n < 0 && errno != EAGAIN)
		fail(s, -errno);
	return n > 0 ? (size_t)n : 0;
}

static void shut(struct sock *s)
{
	if (!s->is_write_over || s->is_shut || sock_pending(s) > 0 || s->broken)
		return;
	s->is_shut = true;
	(void)shutdown(s->fd, SHUT_WR);
}

static void flush(struct sock *s)
{
	while (sock_pending(s) > 0 && !s->broken) {
		struct iovec part = { s->out.data + s->out_sent, sock_pending(s) };
		size_t n = send_parts(s, &part, 1);

		if (n == 0)
			break;
		s->out_sent += n;
	}
	drop_sent(s);
	shut(s);
}

int sock_send(struct sock *s, struct iovec *parts, int count)
{
	size_t sent = 0, all = 0;

	if (s->is_freed || s->broken || s->is_write_over)
		return -EPIPE;
	for (int i = 0; i < count; i++)
		all += parts[i].iov_len;
	if (all > s->out.max - s->out.len)
		drop_sent(s);
	if (sock_pending(s) == 0)
		sent = send_parts(s, parts, count);
	if (all - sent > s->out.max - s->out.len)
		return -ENOBUFS;
	for (int i = 0; i < count; i++) {
		size_t done = sent < parts[i].iov_len ? sent : parts[i].iov_len;

		sent -= done;
		if (buf_append(&s->out, (char *)parts[i].iov_base + done, parts[i].iov_len - done) <
		    0)
			return -ENOMEM;
	}
	s->bytes += all;
	if (sock_pending(s) > SOCK_LOW)
		s->is_above = true;
	settle(s);
	return 0;
}

uint64_t sock_bytes(const struct sock *s)
{
	return s->bytes;
}

int sock_write(struct sock *s, const void *data, size_t n)
{
	struct iovec part = { (void *)(uintptr_t)data, n };

	return sock_send(s, &part, 1);
}

void sock_shutdown(struct sock *s)
{
	s->is_write_over = true;
	s->is_above = sock_pending(s) > 0;
	shut(s);
}

void sock_pause(struct sock *s, bool on)
{
	s->is_paused = on;
	settle(s);
}

static void read_some(struct sock *s)
{
	char bytes[READ_SIZE];
	ssize_t n;

	do
		n = recv(s->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n > 0) {
		s->bytes += (size_t)n;
		s->ops->input(s->user, bytes, (size_t)n);
	} else if (n == 0) {
		s->is_read_over = true;
		if (!s->broken)
			s->ops->ended(s->user, 0);
	} else if (s->broken) {
		s->is_read_over = true; /* that was all */
	} else if (errno != EAGAIN) {
		fail(s, -errno);
	}
}

/* What the peer said before it broke off is told first: an answer that came early must not be lost
 * with the request that it makes superfluous. */
static void tell_broken(struct sock *s)
{
	for (int i = 0; i < LAST_READS && s->broken && !s->is_freed; i++)
		if (!s->is_paused && !s->is_read_over)
			read_some(s);
	if (s->is_freed || !s->broken || s->is_told)
		return;
	s->is_told = true;
	s->ops->ended(s->user, s->broken);
}

static void on_ready(void *user, unsigned events)
{
	struct sock *s = user;

	s->is_busy = true;
	if (events & LOOP_WRITE && !s->broken)
		flush(s);
	if (s->is_above && sock_pending(s) <= (s->is_write_over ? 0 : SOCK_LOW) && !s->broken) {
		s->is_above = false;
		s->ops->drained(s->user);
	}
	if (!s->is_freed && events & LOOP_READ && !s->is_paused && !s->is_read_over && !s->broken)
		read_some(s);
	tell_broken(s);
	s->is_busy = false;
	if (s->is_freed)
		free(s);
	else
		settle(s);
}
