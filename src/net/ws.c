#include "net/ws.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <wslay/wslay.h>

#include "base/list.h"
#include "base/str.h"
#include "base/utf8.h"
#include "loop/loop.h"
#include "net/exchange.h"
#include "net/ws_handshake.h"

#define REASON_MAX 123
#define PIECES_MAX 4096u /* frames of one message: each costs memory of its own */

/* A message that came while paused. There are few: wslay reads 4 KiB ahead at most. */
struct held {
	struct list node;
	bool text;
	size_t n;
	char data[];
};

struct ws {
	struct http_request *r; /* borrowed: it lives as long as we */
	wslay_event_context_ptr ctx;
	const struct ws_ops *ops; /* borrowed */
	void *user;
	struct ws_options o;
	const char *protocol;
	const char *in; /* what is being offered */
	size_t left;
	unsigned pieces;  /* frames of the message that is coming */
	struct list held; /* of struct held, owned */
	bool paused;
	bool closing; /* ours was sent */
	bool pinged;  /* and nothing heard since */
	bool broken;  /* beyond repair */
	uint64_t heard_ms, pinged_ms, closing_ms;
	unsigned code;     /* of the peer's close, or of ours */
	unsigned bad_code; /* what we, and not wslay, find wrong; 0: nothing */
	char reason[REASON_MAX + 1];
};

static const struct conn_ops ws_conn_ops;

static struct ws *ws_of(const struct conn *c)
{
	return LIST_ENTRY(c, struct http_request, c)->ws;
}

static void ws_free(struct ws *w)
{
	LIST_FOREACH (&w->held, h, struct held, node) {
		free(h);
	}
	wslay_event_context_free(w->ctx);
	free(w);
}

/* The last thing that happens to w. linger: the peer may still be sending. */
static void end(struct ws *w, unsigned code, bool linger)
{
	struct http_request *r = w->r;

	w->ops->closed(w->user, w, code, w->reason);
	r->ws = NULL;
	ws_free(w);
	exchange_leave_upgrade(r, linger);
}

/* No memory, most likely: gone at the end of the turn. */
static void fail(struct ws *w)
{
	w->broken = true;
	conn_fail(&w->r->c);
}

/* wslay's side. */

static ssize_t on_recv(wslay_event_context_ptr ctx, uint8_t *dst, size_t n, int flags, void *user)
{
	struct ws *w = user;

	(void)flags;
	if (n > w->left)
		n = w->left;
	if (n == 0 || w->paused) {
		wslay_event_set_error(ctx, WSLAY_ERR_WOULDBLOCK);
		return -1;
	}
	memcpy(dst, w->in, n);
	w->in += n;
	w->left -= n;
	return (ssize_t)n;
}

static ssize_t on_send(wslay_event_context_ptr ctx, const uint8_t *data, size_t n, int flags,
		       void *user)
{
	struct ws *w = user;

	(void)ctx;
	(void)flags;
	conn_queue(&w->r->c, data, n);
	return (ssize_t)n;
}

static void hold(struct ws *w, bool text, const uint8_t *data, size_t n)
{
	struct held *h = malloc(sizeof(*h) + n);

	if (!h) {
		fail(w);
		return;
	}
	h->text = text;
	h->n = n;
	if (n > 0)
		memcpy(h->data, data, n);
	list_push_back(&w->held, &h->node);
}

static void note_close(struct ws *w, const struct wslay_event_on_msg_recv_arg *a)
{
	size_t n = a->msg_length > 2 ? a->msg_length - 2 : 0;

	if (w->closing) /* the answer to ours */
		return;
	w->code = a->msg_length >= 2 ? a->status_code : WSLAY_CODE_NO_STATUS_RCVD;
	if (n > REASON_MAX)
		n = REASON_MAX;
	if (n > 0)
		memcpy(w->reason, a->msg + 2, n);
	w->reason[n] = '\0';
	if (!utf8_is_valid(w->reason, n))
		w->bad_code = WSLAY_CODE_INVALID_FRAME_PAYLOAD_DATA;
}

static void on_message(wslay_event_context_ptr ctx, const struct wslay_event_on_msg_recv_arg *a,
		       void *user)
{
	struct ws *w = user;
	bool text = a->opcode == WSLAY_TEXT_FRAME;

	(void)ctx;
	if (a->opcode == WSLAY_CONNECTION_CLOSE)
		note_close(w, a);
	else if (wslay_is_ctrl_frame(a->opcode) || w->closing || w->bad_code)
		return; /* pings are answered by wslay; after our goodbye nobody listens */
	else if (w->paused || !list_is_empty(&w->held))
		hold(w, text, a->msg, a->msg_length);
	else
		w->ops->message(w->user, w, text, a->msg, a->msg_length);
}

/* A goodbye with half a code is one to wslay, and it counts bytes but not pieces. */
static void on_frame(wslay_event_context_ptr ctx,
		     const struct wslay_event_on_frame_recv_start_arg *a, void *user)
{
	struct ws *w = user;

	(void)ctx;
	if (a->opcode == WSLAY_CONNECTION_CLOSE && a->payload_length == 1)
		w->bad_code = WSLAY_CODE_PROTOCOL_ERROR;
	if (wslay_is_ctrl_frame(a->opcode))
		return; /* may stand between the pieces */
	w->pieces = a->opcode == WSLAY_CONTINUATION_FRAME ? w->pieces + 1 : 1;
	if (w->pieces > PIECES_MAX)
		w->bad_code = WSLAY_CODE_MESSAGE_TOO_BIG;
}

static const struct wslay_event_callbacks callbacks = {
	.recv_callback = on_recv,
	.send_callback = on_send,
	.on_frame_recv_start_callback = on_frame,
	.on_msg_recv_callback = on_message,
};

/* What wslay has queued goes to the connection, which sends it at the end of the turn. */
static void flush(struct ws *w)
{
	if (wslay_event_send(w->ctx) != 0)
		fail(w);
}

/* The connection's side. */

static void deliver_held(struct ws *w)
{
	while (!w->paused && !list_is_empty(&w->held)) {
		struct held *h = LIST_ENTRY(w->held.next, struct held, node);

		list_remove(&h->node);
		if (!w->closing)
			w->ops->message(w->user, w, h->text, h->data, h->n);
		free(h);
	}
}

/* What is not even a frame, wslay ends without a code, and not every bad goodbye is one to it: the
 * reason is ours to tell. */
static void refuse(struct ws *w, unsigned code)
{
	const char close[] = { '\x88', 2, (char)(code >> 8), (char)(code & 255) };

	if (!wslay_event_get_close_sent(w->ctx))
		conn_queue(&w->r->c, close, sizeof(close));
	if (!w->closing) {
		w->code = code;
		w->reason[0] = '\0';
	}
	end(w, w->code, true);
}

static size_t ws_input(struct conn *c, const char *data, size_t n)
{
	struct ws *w = ws_of(c);
	size_t taken;

	if (n > 0) {
		w->heard_ms = loop_now_ms(c->loop);
		w->pinged = false;
	}
	deliver_held(w);
	/* A client that sends and does not read what it gets is held back. */
	if (w->paused || conn_pending(c) > w->o.pending_max)
		return 0;
	w->in = data;
	w->left = n;
	if (wslay_event_recv(w->ctx) != 0 || w->bad_code) {
		refuse(w, w->bad_code ? w->bad_code : WSLAY_CODE_PROTOCOL_ERROR);
		return n;
	}
	taken = n - w->left;
	w->in = NULL;
	w->left = 0;
	flush(w);
	if (!w->broken && wslay_event_get_close_sent(w->ctx) &&
	    !wslay_event_get_read_enabled(w->ctx)) {
		/* Both have said goodbye, or the peer broke the rules and was told so. */
		bool proper = wslay_event_get_close_received(w->ctx);

		if (!proper && !w->closing)
			w->code = wslay_event_get_status_code_sent(w->ctx);
		end(w, w->code, !proper);
		return n;
	}
	return taken;
}

static bool ws_wants(const struct conn *c)
{
	const struct ws *w = ws_of(c);

	return !w->paused && conn_pending(c) <= w->o.pending_max;
}

static bool ws_is_over(const struct conn *c)
{
	(void)c;
	return false;
}

static void ws_drained(struct conn *c)
{
	struct ws *w = ws_of(c);

	conn_resume(c);
	if (w->ops->drain && !w->closing)
		w->ops->drain(w->user, w);
}

static void ws_gone(struct conn *c)
{
	struct ws *w = ws_of(c);

	end(w, w->closing || wslay_event_get_close_received(w->ctx) ? w->code : 1006, false);
}

static void send_ping(struct ws *w, uint64_t now_ms)
{
	const struct wslay_event_msg ping = { .opcode = WSLAY_PING };

	if (wslay_event_queue_msg(w->ctx, &ping) != 0)
		return;
	w->pinged = true;
	w->pinged_ms = now_ms;
	flush(w);
}

static void ws_tick(struct conn *c, uint64_t now_ms)
{
	struct ws *w = ws_of(c);

	if (w->closing) {
		if (now_ms - w->closing_ms >= w->o.pong_ms)
			conn_lose(c);
	} else if (w->pinged) {
		if (now_ms - w->pinged_ms >= w->o.pong_ms && !w->paused)
			conn_lose(c);
	} else if (now_ms - w->heard_ms >= w->o.ping_ms && !w->paused) {
		send_ping(w, now_ms);
	}
}

static void ws_leave(struct conn *c)
{
	ws_close(ws_of(c), WSLAY_CODE_GOING_AWAY, "the server is shutting down");
}

static const struct conn_ops ws_conn_ops = {
	.input = ws_input,
	.wants = ws_wants,
	.is_over = ws_is_over,
	.drained = ws_drained,
	.gone = ws_gone,
	.tick = ws_tick,
	.leave = ws_leave,
};

/* The user's side. */

static struct ws *ws_create(struct http_request *r, const struct ws_ops *ops, void *user,
			    const struct ws_options *o)
{
	struct ws *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	list_init(&w->held);
	w->r = r;
	w->ops = ops;
	w->user = user;
	if (o)
		w->o = *o;
	w->o.message_max = w->o.message_max ? w->o.message_max : 1 << 20;
	w->o.pending_max = w->o.pending_max ? w->o.pending_max : 4 << 20;
	w->o.low_water = w->o.low_water ? w->o.low_water : 64 << 10;
	w->o.ping_ms = w->o.ping_ms ? w->o.ping_ms : 30000;
	w->o.pong_ms = w->o.pong_ms ? w->o.pong_ms : 10000;
	if (wslay_event_context_server_init(&w->ctx, &callbacks, w) != 0) {
		free(w);
		return NULL;
	}
	wslay_event_config_set_max_recv_msg_length(w->ctx, w->o.message_max);
	return w;
}

struct ws *ws_accept(struct http_request *r, const struct ws_ops *ops, void *user,
		     const struct ws_options *o)
{
	static const struct ws_options none;
	const char *protocol;
	struct ws *w;

	if (r->c.state != CONN_OPEN) { /* the client has left; this ends the request */
		http_reply_error(r, 503, "unavailable", "gone");
		return NULL;
	}
	if (!ws_handshake(r, o ? o : &none, &protocol))
		return NULL;
	w = ws_create(r, ops, user, o);
	if (!w) {
		http_reply_error(r, 500, "internal", "out of memory");
		return NULL;
	}
	w->protocol = protocol;
	w->heard_ms = loop_now_ms(r->c.loop);
	r->ws = w;
	exchange_upgrade(r, &ws_conn_ops);
	conn_set_low_water(&r->c, w->o.low_water);
	return w;
}

const char *ws_protocol(const struct ws *w)
{
	return w->protocol;
}

struct http_request *ws_request(const struct ws *w)
{
	return w->r;
}

static ssize_t send_message(struct ws *w, uint8_t opcode, const void *data, size_t n)
{
	const struct wslay_event_msg m = { .opcode = opcode, .msg = data, .msg_length = n };
	struct conn *c = &w->r->c;

	if (w->closing || w->broken || c->state != CONN_OPEN ||
	    wslay_event_get_close_sent(w->ctx) || wslay_event_get_close_received(w->ctx))
		return -EPIPE;
	if (n > w->o.pending_max || conn_pending(c) > w->o.pending_max - n)
		return -ENOBUFS;
	if (wslay_event_queue_msg(w->ctx, &m) != 0)
		return -ENOMEM;
	flush(w);
	return (ssize_t)conn_pending(c);
}

ssize_t ws_send_text(struct ws *w, const char *data, size_t n)
{
	if (!utf8_is_valid(data, n))
		return -EINVAL;
	return send_message(w, WSLAY_TEXT_FRAME, data, n);
}

ssize_t ws_send_binary(struct ws *w, const void *data, size_t n)
{
	return send_message(w, WSLAY_BINARY_FRAME, data, n);
}

size_t ws_pending(const struct ws *w)
{
	return conn_pending(&w->r->c);
}

void ws_pause(struct ws *w, bool on)
{
	if (w->paused == on)
		return;
	w->paused = on;
	w->pinged = false;
	w->heard_ms = loop_now_ms(w->r->c.loop);
	if (!on)
		conn_resume(&w->r->c);
}

void ws_close(struct ws *w, unsigned code, const char *reason)
{
	struct str text = str_of(reason);

	if (w->closing || wslay_event_get_close_received(w->ctx))
		return;
	if (text.len > REASON_MAX) /* at a character's border */
		text.len = utf8_prefix(text.data, REASON_MAX, NULL);
	w->closing = true;
	w->closing_ms = loop_now_ms(w->r->c.loop);
	w->paused = false;
	w->code = code;
	memcpy(w->reason, text.data ? text.data : "", text.len);
	w->reason[text.len] = '\0';
	if (wslay_event_queue_close(w->ctx, (uint16_t)code, (const uint8_t *)text.data, text.len) !=
	    0)
		fail(w);
	flush(w);
	conn_resume(&w->r->c);
}
