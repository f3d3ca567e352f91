#include <errno.h>

#include "guest/client.h"
#include "guest/guest.h"

/* One request. rd: the payload, frame: all of it. A negative result: the client broke the rules. */
struct request {
	struct guest *guest;
	uint32_t id;
	struct rd rd;
	const void *frame;
	size_t size;
	int *fd; /* owned by who asked; -1: none came with it */
};

static bool is_id_free(struct guest *g, uint32_t id)
{
	return id != 0 && !exec_find(g, id) && !relay_find(g, id) && !kept_find(g, id) &&
	       !door_find(g, id) && !bridge_has(g, id);
}

static int on_exec(struct request *q)
{
	struct guest_exec e;
	int r = guest_get_exec(&q->rd, &e);

	if (r == -EPROTO || !is_id_free(q->guest, q->id))
		return -EPROTO;
	if (r < 0)
		conn_send_error(&q->guest->conn, q->id, r, "exec: a value is out of bounds");
	else
		exec_start(q->guest, q->id, &e);
	return 0;
}

static int on_file(struct request *q)
{
	struct guest_file f;
	int r = guest_get_file(&q->rd, &f);

	if (r == -EPROTO || !is_id_free(q->guest, q->id))
		return -EPROTO;
	if (r < 0)
		conn_send_error(&q->guest->conn, q->id, r, "file: a value is out of bounds");
	else
		relay_start(q->guest, q->id, &f);
	return 0;
}

static int on_door(struct request *q, uint16_t type,
		   void (*open)(struct guest *g, uint32_t id, const struct guest_connect *c))
{
	struct guest_connect c;
	int r = guest_get_connect(&q->rd, type, &c);

	if (r == -EPROTO || !is_id_free(q->guest, q->id))
		return -EPROTO;
	if (r < 0)
		conn_send_error(&q->guest->conn, q->id, r, "port: a value is out of bounds");
	else
		open(q->guest, q->id, &c);
	return 0;
}

static int on_connect(struct request *q)
{
	return on_door(q, G_CONNECT, door_connect);
}

static void listen_there(struct guest *g, uint32_t id, const struct guest_connect *c)
{
	if (c->address == ADDRESS_UNIX)
		bridge_listen(g, id, c);
	else
		door_listen(g, id, c);
}

static int on_listen(struct request *q)
{
	return on_door(q, G_LISTEN, listen_there);
}

static int on_stdin(struct request *q)
{
	struct exec *x = exec_find(q->guest, q->id);
	size_t n;
	const void *data = rd_rest(&q->rd, &n);

	if (n > GUEST_CHUNK)
		return -EPROTO;
	return x ? exec_stdin(x, data, n) : 0;
}

static int on_data(struct request *q)
{
	struct relay *r = relay_find(q->guest, q->id);
	size_t n;

	(void)rd_rest(&q->rd, &n);
	if (n > GUEST_CHUNK)
		return -EPROTO;
	return r ? relay_pass(r, q->frame, q->size) : 0;
}

static int on_credit(struct request *q)
{
	struct exec *x = exec_find(q->guest, q->id);
	struct kept *k = kept_find(q->guest, q->id);
	struct relay *r = relay_find(q->guest, q->id);
	uint64_t n = rd_u64(&q->rd);

	if (rd_end(&q->rd) < 0)
		return -EPROTO;
	if (x)
		return exec_credit(x, n);
	if (k)
		return kept_credit(k, n);
	return r ? relay_pass(r, q->frame, q->size) : 0;
}

static int on_kill(struct request *q)
{
	struct exec *x = exec_find(q->guest, q->id);
	uint32_t signo = rd_u32(&q->rd);
	uint8_t is_tree = rd_u8(&q->rd);

	if (rd_end(&q->rd) < 0 || is_tree > 1)
		return -EPROTO;
	return x ? exec_signal(x, signo, is_tree) : 0;
}

static int on_resize(struct request *q)
{
	struct exec *x = exec_find(q->guest, q->id);
	uint16_t rows = rd_u16(&q->rd);
	uint16_t cols = rd_u16(&q->rd);

	if (rd_end(&q->rd) < 0)
		return -EPROTO;
	return x ? exec_resize(x, rows, cols) : 0;
}

static int on_cancel(struct request *q)
{
	struct exec *x = exec_find(q->guest, q->id);
	struct relay *r = relay_find(q->guest, q->id);
	struct door *d = door_find(q->guest, q->id);

	if (rd_end(&q->rd) < 0)
		return -EPROTO;
	if (x)
		exec_cancel(x);
	if (d)
		door_cancel(d);
	if (bridge_has(q->guest, q->id))
		bridge_cancel(q->guest);
	return r ? relay_cancel(r) : 0;
}

static int on_ping(struct request *q)
{
	uint8_t frame[32];

	if (rd_end(&q->rd) < 0)
		return -EPROTO;
	conn_send(&q->guest->conn, frame,
		  guest_put_raw(frame, sizeof(frame), G_PONG, q->id, NULL, 0));
	return 0;
}

static int on_ack(struct request *q)
{
	struct exec *x = exec_find(q->guest, q->id);
	struct kept *k = kept_find(q->guest, q->id);

	if (rd_end(&q->rd) < 0)
		return -EPROTO;
	if (x)
		exec_ack(x);
	if (k)
		kept_ack(q->guest, k);
	return 0;
}

static int on_persist(struct request *q)
{
	int r;

	if (rd_end(&q->rd) < 0 || q->id != 0)
		return -EPROTO;
	r = client_persist(q->guest, *q->fd);
	if (r == 0)
		*q->fd = -1;
	return r;
}

static const struct {
	uint16_t type;
	int (*handle)(struct request *q);
} requests[] = {
	{ G_EXEC, on_exec },       { G_STDIN, on_stdin },   { G_CREDIT, on_credit },
	{ G_SIGNAL, on_kill },     { G_RESIZE, on_resize }, { G_FILE, on_file },
	{ G_DATA, on_data },       { G_CANCEL, on_cancel }, { G_PING, on_ping },
	{ G_PERSIST, on_persist }, { G_ACK, on_ack },       { G_CONNECT, on_connect },
	{ G_LISTEN, on_listen },
};

int request_handle(struct guest *g, const void *frame, size_t n, int *fd)
{
	struct request q = { .guest = g, .frame = frame, .size = n, .fd = fd };
	struct wire_head head;
	int r = wire_open(frame, n, &head, &q.rd);

	if (r < 0)
		return r;
	q.id = head.id;
	for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++)
		if (requests[i].type == head.type)
			return requests[i].handle(&q);
	return -EPROTO;
}
