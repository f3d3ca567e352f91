#include "guest/chan.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

void chan_init(struct chan *c, int sock, uint32_t id, bool takes_data)
{
	c->sock = sock;
	c->id = id;
	c->window = GUEST_WINDOW;
	c->taken = 0;
	c->takes_data = takes_data;
	c->cancelled = false;
}

/* Handles a frame that is not G_DATA. Frames of other ids are not ours to judge. */
static int on_frame(struct chan *c, const struct wire_head *head, struct rd *r)
{
	uint64_t credit;

	if (head->id != c->id)
		return 0;
	if (head->type == G_CANCEL) {
		c->cancelled = true;
		return -ECANCELED;
	}
	if (head->type != G_CREDIT)
		return -EPROTO;
	credit = rd_u64(r);
	if (rd_end(r) < 0)
		return -EPROTO;
	/* A client that credits more than it got must not widen the window. */
	c->window = credit < GUEST_WINDOW - c->window ? c->window + (uint32_t)credit : GUEST_WINDOW;
	return 0;
}

/* One frame into c->in. -EAGAIN only with MSG_DONTWAIT. */
static int receive(struct chan *c, int flags, struct wire_head *head, struct rd *r)
{
	ssize_t n;

	do
		n = recv(c->sock, c->in, sizeof(c->in), flags);
	while (n < 0 && errno == EINTR);
	if (n < 0 && errno == EAGAIN)
		return -EAGAIN;
	if (n <= 0) {
		c->cancelled = true; /* nobody is left to read an answer */
		return -ECANCELED;
	}
	return wire_open(c->in, (size_t)n, head, r);
}

int chan_check(struct chan *c)
{
	struct wire_head head;
	struct rd payload;
	int r;

	if (c->cancelled)
		return -ECANCELED;
	if (c->takes_data)
		return 0;
	for (;;) {
		r = receive(c, MSG_DONTWAIT, &head, &payload);
		if (r == -EAGAIN)
			return 0;
		if (r == 0)
			r = on_frame(c, &head, &payload);
		if (r < 0)
			return r;
	}
}

/* The peer may be slow. Waiting happens in poll() and not in send(), so that a cancel is seen;
 * while data is to come in, the next frame may be such data and is left where it is. */
static int wait_writable(struct chan *c)
{
	struct pollfd p = { c->sock, POLLOUT, 0 };

	if (!c->takes_data)
		p.events |= POLLIN;
	if (poll(&p, 1, -1) < 0 && errno != EINTR)
		return -errno;
	return chan_check(c);
}

static int send_frame(struct chan *c, long n)
{
	ssize_t sent;
	int r;

	if (n < 0)
		return (int)n;
	for (;;) {
		sent = send(c->sock, c->out, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (sent >= 0)
			return 0;
		if (errno == EPIPE || errno == ECONNRESET)
			c->cancelled = true;
		else if (errno != EAGAIN && errno != EINTR)
			return -errno;
		r = c->cancelled ? -ECANCELED : wait_writable(c);
		if (r < 0)
			return r;
	}
}

int chan_entry(struct chan *c, const struct guest_entry *e)
{
	return send_frame(c, guest_put_entry(c->out, sizeof(c->out), c->id, e));
}

int chan_found(struct chan *c, const struct guest_found *f)
{
	return send_frame(c, guest_put_found(c->out, sizeof(c->out), c->id, f));
}

int chan_event(struct chan *c, enum guest_event event, const char *path)
{
	struct wr w;

	wire_begin(&w, c->out, sizeof(c->out), G_EVENT, c->id);
	wr_u8(&w, (uint8_t)event);
	wr_str(&w, path);
	return send_frame(c, wire_finish(&w));
}

int chan_u64(struct chan *c, enum guest_type type, uint64_t v)
{
	return send_frame(c, guest_put_u64(c->out, sizeof(c->out), (uint16_t)type, c->id, v));
}

static int wait_window(struct chan *c, size_t n)
{
	struct wire_head head;
	struct rd payload;
	int r = chan_check(c);

	while (r == 0 && c->window < n) {
		r = receive(c, 0, &head, &payload);
		if (r == 0)
			r = on_frame(c, &head, &payload);
	}
	return r;
}

int chan_data(struct chan *c, const void *data, size_t n)
{
	const uint8_t *p = data;
	size_t part;
	int r;

	for (; n > 0; n -= part, p += part) {
		part = n < GUEST_CHUNK ? n : GUEST_CHUNK;
		r = wait_window(c, part);
		if (r < 0)
			return r;
		r = send_frame(c, guest_put_raw(c->out, sizeof(c->out), G_DATA, c->id, p, part));
		if (r < 0)
			return r;
		c->window -= (uint32_t)part;
	}
	return 0;
}

int chan_take(struct chan *c, const void **ret, size_t *ret_n)
{
	struct wire_head head;
	struct rd payload;
	int r;

	r = c->taken > 0 ? chan_u64(c, G_TAKEN, c->taken) : 0;
	c->taken = 0;
	if (r < 0)
		return r;
	do {
		r = receive(c, 0, &head, &payload);
		if (r == 0 && (head.id != c->id || head.type != G_DATA))
			r = on_frame(c, &head, &payload);
		if (r < 0)
			return r;
	} while (head.id != c->id || head.type != G_DATA);
	*ret = rd_rest(&payload, ret_n);
	c->taken = *ret_n;
	return 0;
}

void chan_error(struct chan *c, int code, const char *text)
{
	long n = guest_put_error(c->out, sizeof(c->out), c->id, code, text);

	if (n > 0)
		(void)send(c->sock, c->out, (size_t)n, MSG_NOSIGNAL);
}

void chan_close(struct chan *c)
{
	(void)shutdown(c->sock, SHUT_RD);
	while (recv(c->sock, c->in, sizeof(c->in), MSG_DONTWAIT) > 0)
		;
}
