#include "httpc/ws_client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <wslay/wslay.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "httpc/handshake.h"
#include "httpc/httpc_impl.h"
#include "httpc/problem.h"

#define FDS_MAX 8

struct ws_client {
	struct httpc *client;           /* borrowed */
	CURL *easy;                     /* owned: the connection */
	curl_socket_t fd;               /* the connection's own */
	wslay_event_context_ptr frames; /* owned */
	ws_message_fn fn;
	void *user;
	struct buf early; /* bytes that came right behind the handshake */
	uint64_t heard_ms;
	bool held, progress, broken;
	/* What goes out stays at its place until it is gone: TLS wants a retry from the same
	 * address.
	 */
	char out[16384];
	size_t out_pos, out_len;
	char words[CURL_ERROR_SIZE];
};

/* --- bytes --------------------------------------------------------------------------------- */

/* Bytes, or -EAGAIN, or -ECONNRESET at the end and for every failure. */
static ssize_t receive(struct ws_client *w, void *dst, size_t size)
{
	size_t n = 0;
	CURLcode code = curl_easy_recv(w->easy, dst, size, &n);

	if (code == CURLE_AGAIN)
		return -EAGAIN;
	if (code != CURLE_OK || n == 0)
		return -ECONNRESET;
	w->heard_ms = clock_now_ms();
	return (ssize_t)n;
}

static int flush(struct ws_client *w)
{
	while (w->out_pos < w->out_len) {
		size_t n = 0;
		CURLcode code =
			curl_easy_send(w->easy, w->out + w->out_pos, w->out_len - w->out_pos, &n);

		if (code == CURLE_AGAIN)
			return -EAGAIN;
		if (code != CURLE_OK)
			return -ECONNRESET;
		w->out_pos += n;
	}
	w->out_pos = w->out_len = 0;
	return 0;
}

/* --- what wslay calls ---------------------------------------------------------------------- */

static ssize_t on_recv(wslay_event_context_ptr ctx, uint8_t *dst, size_t size, int flags,
		       void *user)
{
	struct ws_client *w = user;
	size_t early = w->early.len < size ? w->early.len : size;
	ssize_t n;

	(void)flags;
	if (w->held) {
		wslay_event_set_error(ctx, WSLAY_ERR_WOULDBLOCK);
		return -1;
	}
	if (early > 0) {
		memcpy(dst, w->early.data, early);
		buf_drop(&w->early, early);
		return (ssize_t)early;
	}
	n = receive(w, dst, size);
	if (n > 0)
		return n;
	w->broken |= n != -EAGAIN;
	wslay_event_set_error(ctx,
			      n == -EAGAIN ? WSLAY_ERR_WOULDBLOCK : WSLAY_ERR_CALLBACK_FAILURE);
	return -1;
}

static ssize_t on_send(wslay_event_context_ptr ctx, const uint8_t *data, size_t n, int flags,
		       void *user)
{
	struct ws_client *w = user;
	size_t room = sizeof(w->out) - w->out_len;

	(void)flags;
	if (room == 0) {
		int r = flush(w);

		w->broken |= r == -ECONNRESET;
		if (r < 0) {
			wslay_event_set_error(ctx, r == -EAGAIN ? WSLAY_ERR_WOULDBLOCK
								: WSLAY_ERR_CALLBACK_FAILURE);
			return -1;
		}
		room = sizeof(w->out);
	}
	n = n < room ? n : room;
	memcpy(w->out + w->out_len, data, n);
	w->out_len += n;
	return (ssize_t)n;
}

static int on_mask(wslay_event_context_ptr ctx, uint8_t *dst, size_t n, void *user)
{
	(void)ctx;
	(void)user;
	return getrandom(dst, n, 0) == (ssize_t)n ? 0 : -1;
}

static void on_message(wslay_event_context_ptr ctx, const struct wslay_event_on_msg_recv_arg *m,
		       void *user)
{
	struct ws_client *w = user;

	(void)ctx;
	w->progress = true;
	if (m->opcode == WSLAY_TEXT_FRAME || m->opcode == WSLAY_BINARY_FRAME)
		w->fn(w->user, m->opcode == WSLAY_TEXT_FRAME, m->msg, m->msg_length);
}

static const struct wslay_event_callbacks callbacks = {
	.recv_callback = on_recv,
	.send_callback = on_send,
	.genmask_callback = on_mask,
	.on_msg_recv_callback = on_message,
};

/* --- opening it ---------------------------------------------------------------------------- */

static int connect_to(struct ws_client *w, struct err *err)
{
	bool bad = false;
	CURLcode code;

	w->easy = curl_easy_init();
	if (!w->easy || httpc_configure(w->client, w->easy) < 0)
		return err_sys(err, ENOMEM, "connection");
	bad |= curl_easy_setopt(w->easy, CURLOPT_URL, w->client->url.base);
	bad |= curl_easy_setopt(w->easy, CURLOPT_CONNECT_ONLY, 1L);
	bad |= curl_easy_setopt(w->easy, CURLOPT_HTTPPROXYTUNNEL, 1L);
	bad |= curl_easy_setopt(w->easy, CURLOPT_ERRORBUFFER, w->words);
	if (bad)
		return err_sys(err, ENOMEM, "connection");
	code = curl_easy_perform(w->easy);
	if (code == CURLE_OK)
		code = curl_easy_getinfo(w->easy, CURLINFO_ACTIVESOCKET, &w->fd);
	return code == CURLE_OK ? 0 : httpc_curl_problem(w->client, w->easy, code, w->words, err);
}

static int wait_for(struct ws_client *w, short events, uint64_t end_ms, struct err *err)
{
	struct pollfd p = { .fd = w->fd, .events = events };
	uint64_t now = clock_now_ms();

	if (now >= end_ms || (poll(&p, 1, (int)(end_ms - now)) == 0))
		return err_set(err, ETIMEDOUT, "%s: no answer in time", w->client->given);
	return 0;
}

static int broke(const struct ws_client *w, struct err *err)
{
	return err_set(err, ECONNRESET, "%s: the connection broke", w->client->given);
}

static int send_opening(struct ws_client *w, const struct handshake *h, uint64_t end_ms,
			struct err *err)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	size_t pos = 0;
	int r = handshake_write(&b, h);

	if (r < 0)
		return err_sys(err, r, "handshake");
	while (r == 0 && pos < b.len) {
		size_t n = 0;
		CURLcode code = curl_easy_send(w->easy, b.data + pos, b.len - pos, &n);

		if (code != CURLE_OK && code != CURLE_AGAIN)
			r = broke(w, err);
		else if (code == CURLE_AGAIN)
			r = wait_for(w, POLLOUT, end_ms, err);
		pos += n;
	}
	explicit_bzero(b.data, b.len); /* it has the key */
	return r;
}

/* Adds to w->early. */
static int receive_more(struct ws_client *w, uint64_t end_ms, struct err *err)
{
	char data[4096];
	ssize_t n = receive(w, data, sizeof(data));
	int r;

	if (n == -EAGAIN)
		return wait_for(w, POLLIN, end_ms, err);
	if (n < 0)
		return broke(w, err);
	r = buf_append(&w->early, data, (size_t)n);
	return r < 0 ? err_sys(err, r, "handshake") : 0;
}

/* The server said no, and why. */
static int refused(struct ws_client *w, const struct handshake_answer *a, uint64_t end_ms,
		   struct err *err)
{
	struct err ignored;
	size_t have;

	while (w->early.len < a->head_len + a->body_length)
		if (receive_more(w, end_ms, &ignored) < 0)
			break;
	have = w->early.len - a->head_len;
	return httpc_problem(a->status, w->early.data + a->head_len,
			     have < a->body_length ? have : a->body_length, err);
}

static int shake_hands(struct ws_client *w, const char *target, struct err *err)
{
	_cleanup_(buf_done) struct buf full = { 0 };
	struct handshake h = { .host = w->client->url.host, .bearer = w->client->key };
	uint64_t end_ms = clock_now_ms() + (uint64_t)w->client->connect_ms;
	struct handshake_answer answer;
	int r;

	(void)buf_puts(&full, w->client->url.prefix);
	if (buf_puts(&full, target) < 0)
		return err_sys(err, ENOMEM, "handshake");
	h.target = full.data;
	handshake_make_key(&h);
	r = send_opening(w, &h, end_ms, err);
	while (r == 0) {
		r = handshake_read(&h, w->early.data, w->early.len, &answer, err);
		if (r != -EAGAIN)
			break;
		r = receive_more(w, end_ms, err);
	}
	if (r < 0)
		return r;
	if (answer.status != 101)
		return refused(w, &answer, end_ms, err);
	buf_drop(&w->early, answer.head_len);
	return 0;
}

int ws_client_open(struct httpc *c, const char *target, ws_message_fn fn, void *user,
		   struct ws_client **ret, struct err *err)
{
	_cleanup_(ws_client_free_p) struct ws_client *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return err_sys(err, ENOMEM, "connection");
	w->client = c;
	w->fn = fn;
	w->user = user;
	r = connect_to(w, err);
	if (r == 0)
		r = shake_hands(w, target, err);
	if (r < 0)
		return r;
	if (wslay_event_context_client_init(&w->frames, &callbacks, w) != 0)
		return err_sys(err, ENOMEM, "connection");
	wslay_event_config_set_max_recv_msg_length(w->frames, WS_MESSAGE_MAX);
	*ret = TAKE(w);
	return 0;
}

struct ws_client *ws_client_free(struct ws_client *w)
{
	if (!w)
		return NULL;
	if (w->frames)
		wslay_event_context_free(w->frames);
	curl_easy_cleanup(w->easy);
	buf_done(&w->early);
	free(w);
	return NULL;
}

/* --- moving it ----------------------------------------------------------------------------- */

/* Receives and sends what there is. */
static int move(struct ws_client *w, struct err *err)
{
	int r = 0;

	if (wslay_event_want_read(w->frames))
		r = wslay_event_recv(w->frames);
	if (r == 0 && wslay_event_want_write(w->frames))
		r = wslay_event_send(w->frames);
	if (r == WSLAY_ERR_NOMEM)
		return err_sys(err, ENOMEM, "connection");
	if (flush(w) == -ECONNRESET)
		w->broken = true;
	if (wslay_event_get_close_received(w->frames))
		return 1; /* our own goodbye was sent with the rest, if there was anybody to hear it
			   */
	if (r != 0 || w->broken)
		return broke(w, err);
	if (!wslay_event_get_read_enabled(w->frames))
		return err_set(err, EPROTO, "%s: the server broke the protocol", w->client->given);
	return 0;
}

static int wait_turn(struct ws_client *w, struct pollfd *fds, size_t n, int timeout_ms,
		     struct err *err)
{
	struct pollfd all[FDS_MAX + 1];
	uint64_t silent = clock_now_ms() - w->heard_ms;
	int left;

	n = n < FDS_MAX ? n : FDS_MAX;
	if (n > 0)
		memcpy(all, fds, n * sizeof(*fds));
	all[n] = (struct pollfd){ .fd = w->fd, .events = (short)(w->held ? 0 : POLLIN) };
	if (w->out_len > 0)
		all[n].events |= POLLOUT;
	if (all[n].events == 0)
		all[n].fd = -1; /* a hang-up would be told again and again */
	left = w->held ? -1 : silent < WS_SILENCE_MS ? (int)(WS_SILENCE_MS - silent) : 0;
	if (timeout_ms < 0 || (left >= 0 && left < timeout_ms))
		timeout_ms = left;
	if (poll(all, n + 1, timeout_ms) < 0 && errno != EINTR)
		return err_sys(err, errno, "poll");
	if (n > 0)
		memcpy(fds, all, n * sizeof(*fds));
	return 0;
}

int ws_client_turn(struct ws_client *w, struct pollfd *fds, size_t n, int timeout_ms,
		   struct err *err)
{
	int r;

	w->progress = false;
	r = move(w, err);
	if (r != 0)
		return r;
	r = wait_turn(w, fds, n, w->progress ? 0 : timeout_ms, err);
	if (r == 0)
		r = move(w, err);
	if (r == 0 && !w->held && clock_now_ms() - w->heard_ms >= WS_SILENCE_MS)
		return err_set(err, ETIMEDOUT, "%s: the server says nothing any more",
			       w->client->given);
	return r;
}

unsigned ws_client_code(const struct ws_client *w)
{
	return wslay_event_get_status_code_received(w->frames);
}

void ws_client_hold(struct ws_client *w, bool on)
{
	if (w->held && !on)
		w->heard_ms = clock_now_ms(); /* the silence was ours */
	w->held = on;
}

int ws_client_send(struct ws_client *w, bool text, const void *data, size_t n)
{
	struct wslay_event_msg m = {
		.opcode = text ? WSLAY_TEXT_FRAME : WSLAY_BINARY_FRAME,
		.msg = data,
		.msg_length = n,
	};

	switch (wslay_event_queue_msg(w->frames, &m)) {
	case 0:
		return 0;
	case WSLAY_ERR_NO_MORE_MSG:
		return -EPIPE;
	case WSLAY_ERR_NOMEM:
		return -ENOMEM;
	default:
		return -EINVAL;
	}
}

size_t ws_client_pending(const struct ws_client *w)
{
	return wslay_event_get_queued_msg_length(w->frames) + w->out_len - w->out_pos;
}

void ws_client_close(struct ws_client *w)
{
	(void)wslay_event_queue_close(w->frames, WSLAY_CODE_NORMAL_CLOSURE, NULL, 0);
}
