#include "guest/conn.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "spec/guest.h"

void conn_init(struct conn *c, int fd)
{
	*c = (struct conn){ .fd = fd };
	buf_init(&c->queue, CONN_QUEUE_MAX);
}

void conn_done(struct conn *c)
{
	buf_done(&c->queue);
}

bool conn_is_free(const struct conn *c)
{
	return c->fd >= 0 && !c->is_blocked;
}

/* True when the message is gone, or can never go. */
static bool try_send(struct conn *c, const void *frame, size_t n)
{
	ssize_t r = fd_send(c->fd, frame, n, NULL, 0);

	if (r == -EAGAIN) {
		c->is_blocked = true;
		return false;
	}
	if (r < 0)
		c->broken = (int)r;
	return true;
}

void conn_send(struct conn *c, const void *frame, long n)
{
	int r;

	if (c->broken || c->fd < 0)
		return;
	if (n < 0) {
		c->broken = (int)n;
		return;
	}
	if (!c->is_blocked && try_send(c, frame, (size_t)n))
		return;
	r = buf_append(&c->queue, frame, (size_t)n);
	if (r < 0)
		c->broken = r;
}

void conn_send_u64(struct conn *c, uint16_t type, uint32_t id, uint64_t v)
{
	uint8_t frame[32];

	conn_send(c, frame, guest_put_u64(frame, sizeof(frame), type, id, v));
}

void conn_send_error(struct conn *c, uint32_t id, int code, const char *text)
{
	uint8_t frame[512];

	conn_send(c, frame,
		  guest_put_error(frame, sizeof(frame), id, code < 0 ? -code : code, text));
}

int conn_send_fd(struct conn *c, const void *frame, long n, int fd)
{
	ssize_t r;

	if (!conn_is_free(c))
		return -EAGAIN;
	if (c->broken || n < 0) {
		c->broken = c->broken ? c->broken : (int)n;
		return 0;
	}
	r = fd_send(c->fd, frame, (size_t)n, &fd, 1);
	if (r == -EAGAIN)
		c->is_blocked = true;
	if (r == -EAGAIN || r == -ETOOMANYREFS)
		return (int)r;
	if (r < 0)
		c->broken = (int)r;
	return 0;
}

#define OUTPUT_HEAD (sizeof(struct wire_head) + 1 + 8)

static void put_output_head(uint8_t *dst, uint32_t id, const struct out_chunk *chunk)
{
	struct wire_head head = { WIRE_VERSION, G_OUTPUT, id, (uint32_t)(9 + chunk->len) };

	memcpy(dst, &head, sizeof(head));
	dst[sizeof(head)] = (uint8_t)(chunk->stream + 1);
	memcpy(dst + sizeof(head) + 1, &chunk->offset, sizeof(chunk->offset));
}

bool conn_send_output(struct conn *c, uint32_t id, const struct out_chunk *chunk)
{
	uint8_t head[OUTPUT_HEAD];
	struct iovec parts[2] = { { head, sizeof(head) },
				  { (void *)(uintptr_t)chunk->data, chunk->len } };
	struct msghdr msg = { .msg_iov = parts, .msg_iovlen = 2 };
	ssize_t r;

	if (!conn_is_free(c))
		return false;
	if (c->broken)
		return true;
	put_output_head(head, id, chunk);
	do
		r = sendmsg(c->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (r < 0 && errno == EINTR);
	if (r < 0 && errno == EAGAIN) {
		c->is_blocked = true;
		return false;
	}
	if (r < 0)
		c->broken = -errno;
	return true;
}

void conn_send_unsent(struct conn *c, uint32_t id, struct out *o)
{
	while (out_has_unsent(o)) {
		struct out_chunk chunk = out_next(o);

		if (!conn_send_output(c, id, &chunk))
			return;
		out_sent(o, &chunk);
	}
}

/* The queue is whole frames, each with its length in its head. */
static size_t first_frame(const struct conn *c)
{
	struct wire_head head;

	memcpy(&head, c->queue.data, sizeof(head));
	return sizeof(head) + head.len;
}

void conn_flush(struct conn *c)
{
	c->is_blocked = false;
	while (c->queue.len > 0 && !c->broken) {
		size_t n = first_frame(c);

		if (!try_send(c, c->queue.data, n))
			return;
		buf_drop(&c->queue, n);
	}
	/* Full sockets are rare: the memory is not kept for the next one. */
	buf_done(&c->queue);
	buf_init(&c->queue, CONN_QUEUE_MAX);
}
