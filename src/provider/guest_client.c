#include "provider/guest_client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/fd.h"
#include "provider/guest_state.h"

#define QUEUE_MAX (4u << 20) /* bytes waiting for a box that does not read */
/* Credits are given in steps: one frame for many outputs. */
#define CREDIT_STEP (GUEST_WINDOW / 4)
/* Frames of one dispatch: the socket stays readable, so the next one comes. */
#define TURN_MAX 64

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

void guest_set_hooks(struct guest_client *g, const struct guest_hooks *hooks, void *user)
{
	g->hooks = *hooks;
	g->hooks_user = user;
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

bool guest_is_foreign(const struct guest_client *g)
{
	return g->is_foreign;
}

int guest_fd(const struct guest_client *g)
{
	return g->fd;
}

bool guest_wants_write(const struct guest_client *g)
{
	return !list_is_empty(&g->queue);
}

struct op *client_find_op(const struct guest_client *g, uint32_t id)
{
	LIST_FOREACH (&g->ops, op, struct op, node)
		if (op->id == id)
			return op;
	return NULL;
}

int client_add_op(struct guest_client *g, uint32_t id, enum op_kind kind, struct op **ret)
{
	struct op *op;

	if (g->ops_len == CLIENT_OPS_MAX)
		return -EAGAIN;
	op = calloc(1, sizeof(*op));
	if (!op)
		return -ENOMEM;
	op->id = id;
	op->kind = kind;
	list_push_front(&g->ops, &op->node);
	g->ops_len++;
	*ret = op;
	return 0;
}

/* The next id that nothing has; an operation of ours begins with it. */
static int begin_op(struct guest_client *g, enum op_kind kind, const struct guest_callbacks *cb,
		    void *user, struct op **ret, struct err *err)
{
	int e;

	if (g->broken)
		return err_sys(err, g->broken, "the box is gone");
	if (g->live_left > 0)
		return err_set(err, EAGAIN, "the box has not yet said what lives in it");
	do
		g->last_id = g->last_id == UINT32_MAX ? 1 : g->last_id + 1;
	while (client_find_op(g, g->last_id));
	e = client_add_op(g, g->last_id, kind, ret);
	if (e == -EAGAIN)
		return err_set(err, EAGAIN, "the box runs %u operations, no more", CLIENT_OPS_MAX);
	if (e < 0)
		return err_sys(err, e, "operation");
	if (cb)
		(*ret)->cb = *cb;
	(*ret)->user = user;
	return 0;
}

void client_end_op(struct guest_client *g, struct op *op)
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

		client_end_op(g, op);
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
int client_send(struct guest_client *g, const void *frame, long n)
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

int client_send_empty(struct guest_client *g, uint16_t type, uint32_t id)
{
	uint8_t frame[CLIENT_SMALL_FRAME];

	return client_send(g, frame, guest_put_raw(frame, sizeof(frame), type, id, NULL, 0));
}

int client_credit(struct guest_client *g, struct op *op)
{
	uint8_t frame[CLIENT_SMALL_FRAME];
	int e;

	if (!op->is_manual)
		op->safe = op->owed;
	if (op->held || op->safe < CREDIT_STEP)
		return 0;
	e = client_send(g, frame, guest_put_u64(frame, sizeof(frame), G_CREDIT, op->id, op->safe));
	if (e < 0)
		return e;
	op->owed -= op->safe;
	op->safe = 0;
	return 0;
}

/* One frame: 1, 0 when there is none, or the end of the connection. */
static int take_one(struct guest_client *g)
{
	uint8_t frame[WIRE_FRAME_MAX];
	_close_ int fd = -1;
	size_t n_fds = 1;
	ssize_t n = fd_recv(g->fd, frame, sizeof(frame), &fd, &n_fds);

	if (n == -EAGAIN)
		return 0;
	if (n <= 0 && n != -EMSGSIZE)
		return fail_all(g, -EPIPE, "the box is gone");
	if (n < 0 || client_take_frame(g, frame, (size_t)n, &fd) < 0)
		return fail_all(g, -EPROTO,
				g->is_foreign ? "the box is of another version"
					      : "the box broke the protocol");
	return 1;
}

int guest_dispatch(struct guest_client *g)
{
	int e, r = 1;

	if (g->broken)
		return g->broken;
	e = flush(g);
	for (int i = 0; i < TURN_MAX && r > 0; i++)
		r = take_one(g);
	if (r < 0)
		return r;
	if (e < 0)
		return fail_all(g, -EPIPE, "the box is gone");
	return 0;
}

/* Sends the frame that starts the operation; undoes it when that fails. */
static int start(struct guest_client *g, struct op *op, const void *frame, long n, uint32_t *ret_id,
		 struct err *err)
{
	uint32_t id = op->id;
	int e = client_send(g, frame, n);

	if (e < 0) {
		client_end_op(g, op);
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
	int r = begin_op(g, OP_EXEC, cb, user, &op, err);

	if (r < 0)
		return r;
	return start(g, op, frame, guest_put_exec(frame, sizeof(frame), op->id, e), ret_id, err);
}

int guest_file(struct guest_client *g, const struct guest_file *f, const struct guest_callbacks *cb,
	       void *user, uint32_t *ret_id, struct err *err)
{
	uint8_t frame[WIRE_FRAME_MAX];
	struct op *op;
	int r = begin_op(g, f->op == FILE_WATCH ? OP_WATCH : OP_FILE, cb, user, &op, err);

	if (r < 0)
		return r;
	return start(g, op, frame, guest_put_file(frame, sizeof(frame), op->id, f), ret_id, err);
}

int guest_ping(struct guest_client *g, const struct guest_callbacks *cb, void *user,
	       uint32_t *ret_id, struct err *err)
{
	uint8_t frame[CLIENT_SMALL_FRAME];
	struct op *op;
	int r = begin_op(g, OP_PING, cb, user, &op, err);

	if (r < 0)
		return r;
	return start(g, op, frame, guest_put_raw(frame, sizeof(frame), G_PING, op->id, NULL, 0),
		     ret_id, err);
}

static int open_door(struct guest_client *g, enum op_kind kind, const struct guest_connect *c,
		     const struct guest_callbacks *cb, void *user, uint32_t *ret_id,
		     struct err *err)
{
	uint16_t type = kind == OP_LISTEN ? G_LISTEN : G_CONNECT;
	uint8_t frame[CLIENT_SMALL_FRAME];
	struct op *op;
	int r = begin_op(g, kind, cb, user, &op, err);

	if (r < 0)
		return r;
	return start(g, op, frame, guest_put_connect(frame, sizeof(frame), type, op->id, c), ret_id,
		     err);
}

int guest_connect(struct guest_client *g, const struct guest_connect *c,
		  const struct guest_callbacks *cb, void *user, uint32_t *ret_id, struct err *err)
{
	return open_door(g, OP_CONNECT, c, cb, user, ret_id, err);
}

int guest_listen(struct guest_client *g, const struct guest_connect *c,
		 const struct guest_callbacks *cb, void *user, uint32_t *ret_id, struct err *err)
{
	return open_door(g, OP_LISTEN, c, cb, user, ret_id, err);
}

/* Sends up to n bytes in chunks while the window and the queue have room. */
static ssize_t send_stream(struct guest_client *g, uint16_t type, uint32_t id, const void *data,
			   size_t n)
{
	uint8_t frame[sizeof(struct wire_head) + GUEST_CHUNK];
	struct op *op = client_find_op(g, id);
	size_t done = 0;
	int e;

	if (!op)
		return g->broken ? g->broken : -ENOENT;
	if (n == 0)
		return client_send(g, frame,
				   guest_put_raw(frame, sizeof(frame), type, id, NULL, 0));
	while (done < n && op->in_flight < GUEST_WINDOW) {
		size_t part = n - done;

		part = part < GUEST_CHUNK ? part : GUEST_CHUNK;
		part = part < GUEST_WINDOW - op->in_flight ? part : GUEST_WINDOW - op->in_flight;
		e = client_send(g, frame,
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
	uint8_t frame[CLIENT_SMALL_FRAME];
	struct wr w;

	if (!client_find_op(g, id))
		return -ENOENT;
	wire_begin(&w, frame, sizeof(frame), G_SIGNAL, id);
	wr_u32(&w, (uint32_t)signo);
	wr_u8(&w, tree);
	return client_send(g, frame, wire_finish(&w));
}

int guest_resize(struct guest_client *g, uint32_t id, uint16_t rows, uint16_t cols)
{
	uint8_t frame[CLIENT_SMALL_FRAME];
	struct wr w;

	if (!client_find_op(g, id))
		return -ENOENT;
	wire_begin(&w, frame, sizeof(frame), G_RESIZE, id);
	wr_u16(&w, rows);
	wr_u16(&w, cols);
	return client_send(g, frame, wire_finish(&w));
}

int guest_cancel(struct guest_client *g, uint32_t id)
{
	return client_find_op(g, id) ? client_send_empty(g, G_CANCEL, id) : -ENOENT;
}

void guest_hold(struct guest_client *g, uint32_t id, bool hold)
{
	struct op *op = client_find_op(g, id);

	if (!op)
		return;
	op->held = hold;
	(void)client_credit(g, op);
}

void guest_manual_credit(struct guest_client *g, uint32_t id)
{
	struct op *op = client_find_op(g, id);

	if (op)
		op->is_manual = true;
}

int guest_credit(struct guest_client *g, uint32_t id, uint64_t n)
{
	struct op *op = client_find_op(g, id);

	if (g->broken)
		return g->broken;
	if (!op)
		return 0;
	if (!op->is_manual || n > op->owed - op->safe)
		return -EINVAL;
	op->safe += (size_t)n;
	return client_credit(g, op);
}

int guest_ack(struct guest_client *g, uint32_t id)
{
	return client_send_empty(g, G_ACK, id);
}

void guest_forget(struct guest_client *g, uint32_t id)
{
	struct op *op = client_find_op(g, id);

	if (!op)
		return;
	op->cb = (struct guest_callbacks){ 0 };
	op->is_manual = op->held = false; /* nobody is left to say what is safe */
	(void)client_credit(g, op);
}
