/* A port inside a sandbox as bytes, whatever their protocol: a WebSocket whose binary messages are
 * what goes over a connection that was made inside. An empty message says that its side sends no
 * more, as a half-closed connection does; the socket is closed once both have. */
#include <errno.h>
#include <stdlib.h>

#include "api/call.h"
#include "api/handlers.h"
#include "api/problem.h"
#include "api/proxy.h"
#include "api/socket.h"
#include "base/err.h"
#include "loop/loop.h"
#include "net/http.h"
#include "net/sock.h"
#include "net/ws.h"
#include "sandbox/ports.h"
#include "sandbox/sandbox.h"

#define CLOSE_NORMAL 1000
#define CLOSE_UNSUPPORTED 1003
#define CLOSE_FAILURE 1011
/* One message more than where reading stops. */
#define PENDING_MAX ((size_t)SOCKET_MESSAGE_MAX + SOCKET_PENDING_HIGH)

struct pipe {
	struct call_stream base;
	struct api_call *call; /* NULL once it is a WebSocket */
	struct port_use *use;  /* owned; NULL: gone */
	struct sock *sock;     /* owned; NULL: not yet connected, or broken */
	struct ws *ws;
	uint16_t port;
	bool client_ended, box_ended; /* sends no more */
};

static void pipe_free(struct pipe *p)
{
	call_stream_end(&p->base);
	port_use_end(p->use);
	(void)sock_free(p->sock);
	free(p);
}

static void hang_up(struct pipe *p, unsigned code, const char *reason)
{
	p->sock = sock_free(p->sock);
	ws_close(p->ws, code, reason); /* closed() follows */
}

static void close_when_over(struct pipe *p)
{
	if (p->sock && p->client_ended && p->box_ended && sock_pending(p->sock) == 0)
		hang_up(p, CLOSE_NORMAL, "both sides have ended");
}

/* ---- from the box ---- */

static void sock_input(void *user, const char *data, size_t n)
{
	struct pipe *p = user;
	ssize_t pending = ws_send_binary(p->ws, data, n);

	port_use_touch(p->use);
	port_use_count(p->use, sock_bytes(p->sock));
	if (pending == -EPIPE)
		return; /* closed() comes */
	if (pending < 0)
		hang_up(p, CLOSE_FAILURE, "out of memory");
	else if ((size_t)pending > SOCKET_PENDING_HIGH)
		sock_pause(p->sock, true);
}

static void sock_drained(void *user)
{
	struct pipe *p = user;

	ws_pause(p->ws, false);
	close_when_over(p);
}

static void sock_ended(void *user, int r)
{
	struct pipe *p = user;

	if (r < 0)
		return hang_up(p, CLOSE_FAILURE, "the connection broke");
	p->box_ended = true;
	if (ws_send_binary(p->ws, NULL, 0) == -ENOMEM)
		return hang_up(p, CLOSE_FAILURE, "out of memory");
	close_when_over(p);
}

/* ---- from the client ---- */

static void message(void *user, struct ws *w, bool text, const void *data, size_t n)
{
	struct pipe *p = user;

	if (!p->sock)
		return;
	if (text)
		return hang_up(p, CLOSE_UNSUPPORTED, "messages are binary here");
	if (p->client_ended)
		return hang_up(p, CLOSE_UNSUPPORTED, "an empty message was the last one");
	port_use_touch(p->use);
	if (n == 0) {
		p->client_ended = true;
		sock_shutdown(p->sock);
		return close_when_over(p);
	}
	if (sock_write(p->sock, data, n) < 0)
		return; /* broken: it says so by itself */
	port_use_count(p->use, sock_bytes(p->sock));
	if (sock_pending(p->sock) > SOCKET_PENDING_HIGH)
		ws_pause(w, true);
}

static void drained(void *user, struct ws *w)
{
	struct pipe *p = user;

	(void)w;
	if (p->sock)
		sock_pause(p->sock, false);
}

static void closed(void *user, struct ws *w, unsigned code, const char *reason)
{
	(void)w;
	(void)code;
	(void)reason;
	pipe_free(user);
}

/* ---- the connection inside ---- */

static struct api_call *give_up(struct pipe *p)
{
	struct api_call *c = p->call;

	pipe_free(p);
	http_on_gone(c->http, NULL, NULL);
	return c;
}

static void cut(struct call_stream *base)
{
	struct pipe *p = LIST_ENTRY(base, struct pipe, base);

	if (p->ws)
		hang_up(p, SOCKET_CLOSE_REFUSED, CALL_KEY_ENDED);
	else
		problem_status(give_up(p), 401, "%s", CALL_KEY_ENDED);
}

static void connected(void *user, int fd)
{
	static const struct sock_ops sock_ops = { sock_input, sock_drained, sock_ended };
	static const struct ws_ops ws_ops = { message, drained, closed };
	static const struct ws_options options = { .message_max = SOCKET_MESSAGE_MAX,
						   .low_water = SOCKET_PENDING_LOW };
	struct pipe *p = user;
	struct api_call *c = p->call;
	int r = sock_create(c->api->deps.loop, fd, PENDING_MAX, &sock_ops, p, &p->sock);

	if (r < 0)
		return problem_reply(give_up(p), &(struct err){ -r, "connection to the port" });
	http_on_gone(c->http, NULL, NULL);
	p->call = NULL;
	p->ws = ws_accept(c->http, &ws_ops, p, &options);
	if (!p->ws)
		return pipe_free(p); /* answered */
	/* A connection over which nothing goes keeps no sandbox from being idle. */
	port_use_set_busy(p->use, false);
}

static void failed(void *user, const struct err *err)
{
	struct pipe *p = user;
	unsigned port = p->port;

	p->use = NULL;
	proxy_reply_unreached(give_up(p), port, err);
}

static void ended(void *user)
{
	struct pipe *p = user;

	p->use = NULL;
	hang_up(p, CLOSE_FAILURE, "the sandbox ended, or the port was closed");
}

static void gone(void *user, struct http_request *r)
{
	(void)r;
	pipe_free(user);
}

/* ---- beginning ---- */

static void dial(struct api_call *c, struct sandbox *sb, const struct proxy_target *target)
{
	static const struct port_use_ops ops = { .connected = connected,
						 .failed = failed,
						 .ended = ended };
	struct pipe *p = calloc(1, sizeof(*p));
	struct sandbox_info info;
	struct err err = { 0 };

	if (!p)
		return problem_reply(c, &(struct err){ ENOMEM, "connection" });
	sandbox_info(sb, &info);
	p->call = c;
	p->port = target->port;
	p->base.cut = cut;
	/* Without a key it is the port's token, or the port is open to all: closing it ends this,
	 * and the end of its owner. */
	if (c->who->owner[0] == '\0')
		call_stream_watch(c, &p->base, "ws", info.owner);
	else if (!call_stream_begin(c, &p->base, "ws", info.id))
		return free(p);
	if (port_dial(sb, target->port, &ops, p, &p->use, &err) == 0)
		return http_on_gone(c->http, gone, p);
	pipe_free(p);
	problem_reply_box(c, &err);
}

void api_port_tcp(struct api_call *c)
{
	const struct port_info *port;
	struct sandbox *sb;

	port = proxy_find_port(c, &sb);
	if (!port)
		return;
	/* Before anything is connected: is this a WebSocket at all? */
	if (!http_header(c->http, "Sec-WebSocket-Key")) {
		(void)http_header_add(c->http, "Upgrade", "websocket");
		return problem_status(c, 426, "this is a WebSocket");
	}
	proxy_wake(c, sb, port, &(struct proxy_target){ .port = port->port }, dial);
}
