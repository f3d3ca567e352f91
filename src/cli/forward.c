#include "cli/forward.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include "cli/client.h"
#include "httpc/ws_client.h"

#define STEP (64u << 10)
#define PENDING_MAX (256u << 10) /* bytes that the daemon has not taken: ours wait */
#define CLOSE_NORMAL 1000u

struct carry {
	struct ws_client *ws; /* owned */
	int fd;               /* borrowed */
	struct buf out;       /* from inside, not written yet */
	bool our_end;         /* our side sends no more, and the box knows */
	bool their_end, told; /* theirs sends no more; our side knows */
};

static void carry_done(struct carry *k)
{
	k->ws = ws_client_free(k->ws);
	buf_done(&k->out);
}

static void on_message(void *user, bool text, const void *data, size_t n)
{
	struct carry *k = user;

	if (text)
		return;
	k->their_end |= n == 0;
	if (n > 0)
		(void)buf_append(&k->out, data, n);
	ws_client_hold(k->ws, k->out.len > 0); /* until it is written */
}

static int read_ours(struct carry *k, struct err *err)
{
	char data[STEP];
	ssize_t n = recv(k->fd, data, sizeof(data), MSG_DONTWAIT);
	int r;

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return 0;
	if (n < 0)
		return err_sys(err, errno, "our side");
	k->our_end = n == 0; /* an empty message says so */
	r = ws_client_send(k->ws, false, data, (size_t)n);
	return r < 0 && r != -EPIPE ? err_sys(err, r, "connection") : 0;
}

static int write_theirs(struct carry *k, struct err *err)
{
	ssize_t n = send(k->fd, k->out.data, k->out.len, MSG_NOSIGNAL | MSG_DONTWAIT);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return 0;
	if (n < 0)
		return err_sys(err, errno, "our side");
	buf_drop(&k->out, (size_t)n);
	if (k->out.len == 0)
		ws_client_hold(k->ws, false);
	return 0;
}

static void tell_end(struct carry *k)
{
	if (!k->their_end || k->told || k->out.len > 0)
		return;
	k->told = true;
	(void)shutdown(k->fd, SHUT_WR);
}

static int turn(struct carry *k, struct err *err)
{
	bool may_read = !k->our_end && ws_client_pending(k->ws) < PENDING_MAX;
	struct pollfd slot = { .fd = k->fd };
	int r;

	slot.events = (short)((may_read ? POLLIN : 0) | (k->out.len > 0 ? POLLOUT : 0));
	if (slot.events == 0)
		slot.fd = -1; /* a hang-up would be told again and again */
	r = ws_client_turn(k->ws, &slot, 1, -1, err);
	if (r == 0 && k->out.len > 0 && slot.revents)
		r = write_theirs(k, err);
	if (r == 0 && may_read && slot.revents & (POLLIN | POLLHUP | POLLERR))
		r = read_ours(k, err);
	tell_end(k);
	return r;
}

int forward_carry(struct client *c, const char *sandbox, uint16_t port, int fd, struct err *err)
{
	_cleanup_(carry_done) struct carry k = { .fd = fd };
	_cleanup_(buf_done) struct buf target = { 0 };
	char number[8];
	int r;

	(void)str_format(number, sizeof(number), "%u", port);
	r = client_path(&target, "sandboxes/%/tcp/%", sandbox, number);
	if (r < 0)
		return err_sys(err, r, "request");
	r = ws_client_open(c->http, target.data, on_message, &k, &k.ws, err);
	while (r == 0)
		r = turn(&k, err);
	if (r < 0)
		return r;
	/* The peer has closed it; what came before that is whole. */
	(void)fd_write_all(fd, buf_str(&k.out), k.out.len);
	if (ws_client_code(k.ws) == CLOSE_NORMAL)
		return 0;
	return err_set(err, ECONNRESET, "port %u: the connection inside broke (%u)", port,
		       ws_client_code(k.ws));
}
