#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "provider/guest_state.h"

/* Counts bytes against the window; the guest may be a full window ahead of our credits, and our
 * credits up to a step behind. */
static int owe(struct op *op, size_t n)
{
	op->owed += n;
	return op->owed > 2 * GUEST_WINDOW ? -EPROTO : 0;
}

static int on_started(struct guest_client *g, struct op *op, struct rd *r)
{
	uint32_t pid = rd_u32(r);
	bool warm = rd_u8(r) != 0;

	(void)g;
	if (rd_end(r) < 0)
		return -EPROTO;
	if (op->cb.started)
		op->cb.started(op->user, pid, warm);
	return 0;
}

/* A guest that never reads fills the queue, and that is its fault; a dead socket is the next read's
 * business. */
static int blame(int e)
{
	return e == -EAGAIN ? -EPROTO : 0;
}

/* The callback may hold or cancel the id but cannot end it: op stays valid until its last frame. */
static int on_output(struct guest_client *g, struct op *op, struct rd *r)
{
	uint8_t stream = rd_u8(r);
	uint64_t offset = rd_u64(r);
	size_t n;
	const void *data = rd_rest(r, &n);

	if (rd_end(r) < 0 || (stream != 1 && stream != 2) || owe(op, n) < 0)
		return -EPROTO;
	if (op->cb.output)
		op->cb.output(op->user, stream, offset, data, n);
	return blame(client_credit(g, op));
}

static int on_data(struct guest_client *g, struct op *op, struct rd *r)
{
	size_t n;
	const void *data = rd_rest(r, &n);

	if (rd_end(r) < 0 || owe(op, n) < 0)
		return -EPROTO;
	if (op->cb.data)
		op->cb.data(op->user, data, n);
	return blame(client_credit(g, op));
}

static int on_taken(struct guest_client *g, struct op *op, struct rd *r)
{
	uint64_t n = rd_u64(r);

	(void)g;
	if (rd_end(r) < 0 || n > op->in_flight)
		return -EPROTO;
	op->in_flight -= (size_t)n;
	if (op->cb.taken)
		op->cb.taken(op->user, n);
	return 0;
}

static int on_entry(struct guest_client *g, struct op *op, struct rd *r)
{
	struct guest_entry entry;

	(void)g;
	if (guest_get_entry(r, &entry) < 0)
		return -EPROTO;
	if (op->cb.entry)
		op->cb.entry(op->user, &entry);
	return 0;
}

static int on_found(struct guest_client *g, struct op *op, struct rd *r)
{
	struct guest_found found;

	(void)g;
	if (guest_get_found(r, &found) < 0)
		return -EPROTO;
	if (op->cb.found)
		op->cb.found(op->user, &found);
	return 0;
}

static int on_event(struct guest_client *g, struct op *op, struct rd *r)
{
	uint8_t event = rd_u8(r);
	const char *path = rd_str(r);

	(void)g;
	if (rd_end(r) < 0 || event > EVENT_OVERFLOW)
		return -EPROTO;
	if (op->cb.event)
		op->cb.event(op->user, (enum guest_event)event, path);
	return 0;
}

static int on_done(struct guest_client *g, struct op *op, struct rd *r)
{
	struct guest_callbacks cb = op->cb;
	void *user = op->user;
	uint64_t n = rd_u64(r);

	if (rd_end(r) < 0)
		return -EPROTO;
	if (op->kind == OP_CONNECT && !op->has_socket)
		return -EPROTO;
	if (op->kind != OP_WATCH && op->kind != OP_LISTEN)
		client_end_op(g, op);
	if (cb.done)
		cb.done(user, n);
	return 0;
}

static int on_pong(struct guest_client *g, struct op *op, struct rd *r)
{
	struct guest_callbacks cb = op->cb;
	void *user = op->user;

	if (rd_end(r) < 0)
		return -EPROTO;
	client_end_op(g, op);
	if (cb.done)
		cb.done(user, 0);
	return 0;
}

static int on_exit_frame(struct guest_client *g, struct op *op, struct rd *r)
{
	struct guest_callbacks cb = op->cb;
	void *user = op->user;
	struct guest_exit ex;

	if (guest_get_exit(r, &ex) < 0)
		return -EPROTO;
	client_end_op(g, op);
	if (cb.exited)
		cb.exited(user, &ex);
	return 0;
}

static int on_error(struct guest_client *g, struct op *op, struct rd *r)
{
	struct guest_callbacks cb = op->cb;
	void *user = op->user;
	uint32_t code = rd_u32(r);
	const char *text = rd_str(r);

	if (rd_end(r) < 0 || code == 0 || code > 4095)
		return -EPROTO;
	client_end_op(g, op);
	if (cb.failed)
		cb.failed(user, (int)code, text);
	return 0;
}

static bool is_option(int fd, int option, int want)
{
	socklen_t size = sizeof(int);
	int value = -1;

	return getsockopt(fd, SOL_SOCKET, option, &value, &size) == 0 && value == want;
}

/* The box's holt-init may have been taken over: a descriptor that can do anything but carry bytes
 * between us and a program in the box (a file, a listener, a packet socket, one that is connected
 * to nothing) is not let in. */
static bool is_tcp(int fd)
{
	static const struct linger none;

	return (is_option(fd, SO_DOMAIN, AF_INET) || is_option(fd, SO_DOMAIN, AF_INET6)) &&
	       is_option(fd, SO_TYPE, SOCK_STREAM) && is_option(fd, SO_PROTOCOL, IPPROTO_TCP) &&
	       is_option(fd, SO_ACCEPTCONN, 0) &&
	       /* close() must not wait for what the other end has not taken. */
	       setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none)) == 0;
}

static bool is_connected(int fd)
{
	struct sockaddr_storage peer;
	socklen_t size = sizeof(peer);

	return getpeername(fd, (struct sockaddr *)&peer, &size) == 0;
}

static int on_socket(struct op *op, struct rd *r, int *fd)
{
	if (rd_end(r) < 0 || *fd < 0 || (op->kind == OP_CONNECT && op->has_socket) || !is_tcp(*fd))
		return -EPROTO;
	op->has_socket = true;
	/* One that its other end has reset meanwhile is no lie, and of no use. */
	if (op->cb.socket && is_connected(*fd))
		op->cb.socket(op->user, TAKE_FD(*fd));
	return 0;
}

#define FOR(k) (1u << (k))
/* What a guest may say, and to which kind of operation. */
static const struct incoming {
	uint16_t type;
	unsigned kinds;
	int (*on)(struct guest_client *g, struct op *op, struct rd *r);
} incoming[] = {
	{ G_OUTPUT, FOR(OP_EXEC), on_output },
	{ G_EXIT, FOR(OP_EXEC), on_exit_frame },
	{ G_STARTED, FOR(OP_EXEC), on_started },
	{ G_TAKEN, FOR(OP_EXEC) | FOR(OP_FILE), on_taken },
	{ G_DATA, FOR(OP_FILE), on_data },
	{ G_ENTRY, FOR(OP_FILE) | FOR(OP_WATCH), on_entry },
	{ G_FOUND, FOR(OP_FILE), on_found },
	{ G_EVENT, FOR(OP_WATCH), on_event },
	{ G_DONE, FOR(OP_FILE) | FOR(OP_WATCH) | FOR(OP_CONNECT) | FOR(OP_LISTEN), on_done },
	{ G_PONG, FOR(OP_PING), on_pong },
	{ G_ERROR,
	  FOR(OP_EXEC) | FOR(OP_FILE) | FOR(OP_WATCH) | FOR(OP_PING) | FOR(OP_CONNECT) |
		  FOR(OP_LISTEN),
	  on_error },
};

static const struct incoming *find_incoming(uint16_t type)
{
	for (size_t i = 0; i < sizeof(incoming) / sizeof(incoming[0]); i++)
		if (incoming[i].type == type)
			return &incoming[i];
	return NULL;
}

static int on_ready(struct guest_client *g, struct rd *r)
{
	struct guest_ready ready;

	if (g->is_ready || guest_get_ready(r, &ready) < 0 || ready.live > CLIENT_OPS_MAX)
		return -EPROTO;
	g->is_ready = true;
	g->live_left = ready.live;
	if (g->hooks.ready)
		g->hooks.ready(g->hooks_user, &ready);
	return 0;
}

/* Nobody knows it: it ends, and is forgotten there. Until then its id is taken. */
static int disown(struct guest_client *g, struct op *op)
{
	int e = client_send_empty(g, G_CANCEL, op->id);

	guest_forget(g, op->id);
	if (e == 0)
		e = client_send_empty(g, G_ACK, op->id);
	return blame(e);
}

/* An execution that lives goes on as if it had been started here. */
static int on_live(struct guest_client *g, uint32_t id, struct rd *r)
{
	struct guest_callbacks cb = { 0 };
	struct guest_live live;
	void *user = NULL;
	struct op *op;

	if (g->live_left == 0 || guest_get_live(r, id, &live) < 0 || client_find_op(g, id))
		return -EPROTO;
	if (client_add_op(g, id, OP_EXEC, &op) < 0)
		return -EPROTO; /* without memory for it, it cannot be followed */
	g->live_left--;
	g->last_id = id > g->last_id ? id : g->last_id;
	op->in_flight = live.stdin_kept;
	if (!g->hooks.live || !g->hooks.live(g->hooks_user, &live, &cb, &user))
		return disown(g, op);
	op->cb = cb;
	op->user = user;
	return 0;
}

static int take_socket(struct guest_client *g, uint32_t id, struct rd *r, int *fd)
{
	struct op *op = client_find_op(g, id);

	if (!op)
		return 0;
	return op->kind == OP_CONNECT || op->kind == OP_LISTEN ? on_socket(op, r, fd) : -EPROTO;
}

int client_take_frame(struct guest_client *g, const void *frame, size_t n, int *fd)
{
	const struct incoming *in;
	struct wire_head head;
	struct op *op;
	struct rd r;
	int e = wire_open(frame, n, &head, &r);

	g->is_foreign = e == -EPROTONOSUPPORT;
	if (e < 0)
		return -EPROTO;
	if (head.type == G_READY)
		return on_ready(g, &r);
	if (head.type == G_LIVE)
		return on_live(g, head.id, &r);
	if (head.type == G_SOCKET)
		return take_socket(g, head.id, &r, fd);
	in = find_incoming(head.type);
	if (!in || (head.id == 0 && head.type == G_ERROR))
		return -EPROTO;
	op = client_find_op(g, head.id);
	if (!op)
		return 0; /* of an id that has just ended */
	return in->kinds & FOR(op->kind) ? in->on(g, op, &r) : -EPROTO;
}
