#include "provider/guest_client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/list.h"

#define OPS_MAX 4096u        /* live ids of one box */
#define QUEUE_MAX (4u << 20) /* bytes waiting for a box that does not read */
#define CREDIT_STEP                                                                  \
	(GUEST_WINDOW / 4) /* credits are given in steps: one frame for many outputs \
			    */
#define SMALL_FRAME_MAX 64

enum op_kind { OP_EXEC, OP_FILE, OP_WATCH, OP_PING };

/* One live execution or file operation. */
struct op {
	struct list node;
	uint32_t id;
	enum op_kind kind;
	struct guest_callbacks cb;
	void *user;
	size_t owed;      /* bytes received and not yet credited */
	size_t in_flight; /* bytes sent that the guest has not taken */
	bool held;
};

struct queued {
	struct list node;
	size_t len;
	uint8_t frame[];
};

struct guest_client {
	int fd; /* owned */
	uint32_t last_id;
	struct list ops;   /* owned struct op, newest first */
	struct list queue; /* owned struct queued, oldest first */
	size_t ops_len, queue_bytes;
	int broken; /* negative errno once the box is gone or lied */
};

int guest_create(int fd, struct guest_client **ret, struct err *err)
{
	struct guest_client *g = calloc(1, sizeof(*g));
	int e = g ? fd_nonblock(fd, true) : -ENOMEM;

	if (e < 0) {
		free(g);
		(void)fd_close(fd);
		return err_sys(err, e, "open the box's socket");
	}
	g->fd = fd;
	list_init(&g->ops);
	list_init(&g->queue);
	*ret = g;
	return 0;
}

static void drop_queue(struct guest_client *g)
{
	LIST_FOREACH (&g->queue, q, struct queued, node) {
		list_remove(&q->node);
		free(q);
	}
	g->queue_bytes = 0;
}

struct guest_client *guest_free(struct guest_client *g)
{
	if (!g)
		return NULL;
	drop_queue(g);
	LIST_FOREACH (&g->ops, op, struct op, node)
		free(op);
	(void)fd_close(g->fd);
	free(g);
	return NULL;
}

int guest_fd(const struct guest_client *g)
{
	return g->fd;
}

bool guest_wants_write(const struct guest_client *g)
{
	return !list_is_empty(&g->queue);
}

static struct op *find(const struct guest_client *g, uint32_t id)
{
	LIST_FOREACH (&g->ops, op, struct op, node)
		if (op->id == id)
			return op;
	return NULL;
}

static int add_op(struct guest_client *g, enum op_kind kind, const struct guest_callbacks *cb,
		  void *user, struct op **ret, struct err *err)
{
	struct op *op;

	if (g->broken)
		return err_sys(err, g->broken, "the box is gone");
	if (g->ops_len == OPS_MAX)
		return err_set(err, EAGAIN, "the box runs %u operations, no more", OPS_MAX);
	op = calloc(1, sizeof(*op));
	if (!op)
		return err_sys(err, ENOMEM, "operation");
	do
		g->last_id = g->last_id == UINT32_MAX ? 1 : g->last_id + 1;
	while (find(g, g->last_id));
	op->id = g->last_id;
	op->kind = kind;
	if (cb)
		op->cb = *cb;
	op->user = user;
	list_push_front(&g->ops, &op->node);
	g->ops_len++;
	*ret = op;
	return 0;
}

static void end_op(struct guest_client *g, struct op *op)
{
	list_remove(&op->node);
	g->ops_len--;
	free(op);
}

/* Every live id gets its failed(). The list is detached first: a callback may start nothing any
 * more (broken is set), but it may ask about ids. */
static int fail_all(struct guest_client *g, int code, const char *text)
{
	if (g->broken)
		return g->broken;
	g->broken = code;
	drop_queue(g);
	while (!list_is_empty(&g->ops)) {
		struct op *op = LIST_ENTRY(g->ops.next, struct op, node);
		struct guest_callbacks cb = op->cb;
		void *user = op->user;

		end_op(g, op);
		if (cb.failed)
			cb.failed(user, -code, text);
	}
	return code;
}

static int enqueue(struct guest_client *g, const void *frame, size_t n)
{
	struct queued *q;

	if (g->queue_bytes + n > QUEUE_MAX)
		return -EAGAIN;
	q = malloc(sizeof(*q) + n);
	if (!q)
		return -ENOMEM;
	q->len = n;
	memcpy(q->frame, frame, n);
	list_push_back(&g->queue, &q->node);
	g->queue_bytes += n;
	return 0;
}

/* Sends now, or queues behind what is waiting. A socket that is gone is found by the next dispatch,
 * so that callbacks are only ever called from there. */
static int send_frame(struct guest_client *g, const void *frame, long n)
{
	ssize_t sent;

	if (n < 0)
		return (int)n;
	if (g->broken)
		return g->broken;
	if (!list_is_empty(&g->queue))
		return enqueue(g, frame, (size_t)n);
	sent = fd_send(g->fd, frame, (size_t)n, NULL, 0);
	if (sent == -EAGAIN)
		return enqueue(g, frame, (size_t)n);
	return sent < 0 ? (int)sent : 0;
}

static int flush(struct guest_client *g)
{
	while (!list_is_empty(&g->queue)) {
		struct queued *q = LIST_ENTRY(g->queue.next, struct queued, node);
		ssize_t n = fd_send(g->fd, q->frame, q->len, NULL, 0);

		if (n == -EAGAIN)
			return 0;
		if (n < 0)
			return (int)n;
		g->queue_bytes -= q->len;
		list_remove(&q->node);
		free(q);
	}
	return 0;
}

/* -EPROTO when the guest never reads its credits: the queue is full of them. */
static int credit(struct guest_client *g, struct op *op)
{
	uint8_t frame[SMALL_FRAME_MAX];
	int e;

	if (op->held || op->owed < CREDIT_STEP)
		return 0;
	e = send_frame(g, frame, guest_put_u64(frame, sizeof(frame), G_CREDIT, op->id, op->owed));
	op->owed = 0;
	return e == -EAGAIN ? -EPROTO : 0; /* a dead socket is the next read's business */
}

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
	return credit(g, op);
}

static int on_data(struct guest_client *g, struct op *op, struct rd *r)
{
	size_t n;
	const void *data = rd_rest(r, &n);

	if (rd_end(r) < 0 || owe(op, n) < 0)
		return -EPROTO;
	if (op->cb.data)
		op->cb.data(op->user, data, n);
	return credit(g, op);
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
	if (op->kind != OP_WATCH)
		end_op(g, op);
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
	end_op(g, op);
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
	end_op(g, op);
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
	end_op(g, op);
	if (cb.failed)
		cb.failed(user, (int)code, text);
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
	{ G_ENTRY, FOR(OP_FILE), on_entry },
	{ G_EVENT, FOR(OP_WATCH), on_event },
	{ G_DONE, FOR(OP_FILE) | FOR(OP_WATCH), on_done },
	{ G_PONG, FOR(OP_PING), on_pong },
	{ G_ERROR, FOR(OP_EXEC) | FOR(OP_FILE) | FOR(OP_WATCH) | FOR(OP_PING), on_error },
};

static const struct incoming *find_incoming(uint16_t type)
{
	for (size_t i = 0; i < sizeof(incoming) / sizeof(incoming[0]); i++)
		if (incoming[i].type == type)
			return &incoming[i];
	return NULL;
}

/* Handles one frame; a negative result ends the connection. */
static int on_frame(struct guest_client *g, const void *frame, size_t n)
{
	const struct incoming *in;
	struct wire_head head;
	struct op *op;
	struct rd r;

	if (wire_open(frame, n, &head, &r) < 0)
		return -EPROTO;
	if (head.type == G_READY)
		return 0; /* the launcher's business */
	in = find_incoming(head.type);
	if (!in || (head.id == 0 && head.type == G_ERROR))
		return -EPROTO;
	op = find(g, head.id);
	if (!op)
		return 0; /* of an id that has just ended */
	return in->kinds & FOR(op->kind) ? in->on(g, op, &r) : -EPROTO;
}

int guest_dispatch(struct guest_client *g)
{
	uint8_t frame[WIRE_FRAME_MAX];
	size_t no_fds = 0;
	int e;

	if (g->broken)
		return g->broken;
	e = flush(g);
	for (;;) {
		ssize_t n = fd_recv(g->fd, frame, sizeof(frame), NULL, &no_fds);

		if (n == -EAGAIN)
			break;
		if (n == -EMSGSIZE)
			return fail_all(g, -EPROTO, "the box broke the protocol");
		if (n <= 0)
			return fail_all(g, -EPIPE, "the box is gone");
		if (on_frame(g, frame, (size_t)n) < 0)
			return fail_all(g, -EPROTO, "the box broke the protocol");
	}
	if (e < 0)
		return fail_all(g, -EPIPE, "the box is gone");
	return 0;
}

/* Sends the frame that starts the operation; undoes it when that fails. */
static int start(struct guest_client *g, struct op *op, const void *frame, long n, uint32_t *ret_id,
		 struct err *err)
{
	uint32_t id = op->id;
	int e = send_frame(g, frame, n);

	if (e < 0) {
		end_op(g, op);
		if (e == -E2BIG)
			return err_set(err, E2BIG, "request is above %u bytes", WIRE_PAYLOAD_MAX);
		return err_sys(err, e, "request to the box");
	}
	if (ret_id)
		*ret_id = id;
	return 0;
}

int guest_exec(struct guest_client *g, const struct guest_exec *e, const struct guest_callbacks *cb,
	       void *user, uint32_t *ret_id, struct err *err)
{
	uint8_t frame[WIRE_FRAME_MAX];
	struct op *op;
	int r = add_op(g, OP_EXEC, cb, user, &op, err);

	if (r < 0)
		return r;
	return start(g, op, frame, guest_put_exec(frame, sizeof(frame), op->id, e), ret_id, err);
}

int guest_file(struct guest_client *g, const struct guest_file *f, const struct guest_callbacks *cb,
	       void *user, uint32_t *ret_id, struct err *err)
{
	uint8_t frame[WIRE_FRAME_MAX];
	struct op *op;
	int r = add_op(g, f->op == FILE_WATCH ? OP_WATCH : OP_FILE, cb, user, &op, err);

	if (r < 0)
		return r;
	return start(g, op, frame, guest_put_file(frame, sizeof(frame), op->id, f), ret_id, err);
}

int guest_ping(struct guest_client *g, const struct guest_callbacks *cb, void *user,
	       uint32_t *ret_id, struct err *err)
{
	uint8_t frame[SMALL_FRAME_MAX];
	struct op *op;
	int r = add_op(g, OP_PING, cb, user, &op, err);

	if (r < 0)
		return r;
	return start(g, op, frame, guest_put_raw(frame, sizeof(frame), G_PING, op->id, NULL, 0),
		     ret_id, err);
}

/* Sends up to n bytes in chunks while the window and the queue have room. */
static ssize_t send_stream(struct guest_client *g, uint16_t type, uint32_t id, const void *data,
			   size_t n)
{
	uint8_t frame[sizeof(struct wire_head) + GUEST_CHUNK];
	struct op *op = find(g, id);
	size_t done = 0;
	int e;

	if (!op)
		return g->broken ? g->broken : -ENOENT;
	if (n == 0)
		return send_frame(g, frame, guest_put_raw(frame, sizeof(frame), type, id, NULL, 0));
	while (done < n && op->in_flight < GUEST_WINDOW) {
		size_t part = n - done;

		part = part < GUEST_CHUNK ? part : GUEST_CHUNK;
		part = part < GUEST_WINDOW - op->in_flight ? part : GUEST_WINDOW - op->in_flight;
		e = send_frame(g, frame,
			       guest_put_raw(frame, sizeof(frame), type, id,
					     (const char *)data + done, part));
		if (e < 0)
			return done ? (ssize_t)done : e;
		op->in_flight += part;
		done += part;
	}
	return (ssize_t)done;
}

ssize_t guest_stdin(struct guest_client *g, uint32_t id, const void *data, size_t n)
{
	return send_stream(g, G_STDIN, id, data, n);
}

ssize_t guest_data(struct guest_client *g, uint32_t id, const void *data, size_t n)
{
	return send_stream(g, G_DATA, id, data, n);
}

int guest_signal(struct guest_client *g, uint32_t id, int signo, bool tree)
{
	uint8_t frame[SMALL_FRAME_MAX];
	struct wr w;

	if (!find(g, id))
		return -ENOENT;
	wire_begin(&w, frame, sizeof(frame), G_SIGNAL, id);
	wr_u32(&w, (uint32_t)signo);
	wr_u8(&w, tree);
	return send_frame(g, frame, wire_finish(&w));
}

int guest_resize(struct guest_client *g, uint32_t id, uint16_t rows, uint16_t cols)
{
	uint8_t frame[SMALL_FRAME_MAX];
	struct wr w;

	if (!find(g, id))
		return -ENOENT;
	wire_begin(&w, frame, sizeof(frame), G_RESIZE, id);
	wr_u16(&w, rows);
	wr_u16(&w, cols);
	return send_frame(g, frame, wire_finish(&w));
}

int guest_cancel(struct guest_client *g, uint32_t id)
{
	uint8_t frame[SMALL_FRAME_MAX];

	if (!find(g, id))
		return -ENOENT;
	return send_frame(g, frame, guest_put_raw(frame, sizeof(frame), G_CANCEL, id, NULL, 0));
}

void guest_hold(struct guest_client *g, uint32_t id, bool hold)
{
	struct op *op = find(g, id);

	if (!op)
		return;
	op->held = hold;
	(void)credit(g, op);
}

void guest_forget(struct guest_client *g, uint32_t id)
{
	struct op *op = find(g, id);

	if (op)
		op->cb = (struct guest_callbacks){ 0 };
}
