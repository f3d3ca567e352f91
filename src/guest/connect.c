/* Doors: connections between the box's own programs and whoever asks outside. The connection is
 * made or accepted here, inside the box's network, and its descriptor is handed out over the
 * control socket; what goes over it never comes by here. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "guest/guest.h"

#define CONNECT_MS 5000 /* on one machine: only a full backlog takes any time */
#define ACCEPT_AGAIN_MS 100
#define BACKLOG 64

struct door {
	struct list node;
	struct guest *guest; /* borrowed */
	uint32_t id;
	uint16_t port;
	bool is_listener;
	bool is_connected;  /* it waits only for room in the control socket */
	struct source sock; /* the connection, or the listener */
	int accepted;       /* owned: waits for room in the control socket; -1: none */
	struct deadline deadline;
};

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

static socklen_t address_of(const struct guest_connect *c, union address *ret)
{
	if (c->address == ADDRESS_V6) {
		*ret = (union address){ .v6 = { .sin6_family = AF_INET6,
						.sin6_port = htons(c->port),
						.sin6_addr = IN6ADDR_LOOPBACK_INIT } };
		return sizeof(ret->v6);
	}
	*ret = (union address){ .v4 = { .sin_family = AF_INET,
					.sin_port = htons(c->port),
					.sin_addr.s_addr = htonl(INADDR_LOOPBACK) } };
	return sizeof(ret->v4);
}

static void door_free(struct door *d)
{
	struct guest *g = d->guest;

	source_close(g->epoll_fd, &d->sock);
	(void)fd_close(d->accepted);
	deadline_clear(&d->deadline);
	list_remove(&d->node);
	g->n_doors--;
	free(d);
}

static void fail(struct door *d, int code)
{
	struct err err = { 0 };

	if (code == -ECONNREFUSED)
		(void)err_set(&err, ECONNREFUSED, "nothing listens on port %u", d->port);
	else
		(void)err_sys(&err, code, "port %u", d->port);
	conn_send_error(&d->guest->conn, d->id, code, err.text);
	door_free(d);
}

static int send_out(struct door *d, int fd)
{
	uint8_t frame[32];

	return conn_send_fd(&d->guest->conn, frame,
			    guest_put_raw(frame, sizeof(frame), G_SOCKET, d->id, NULL, 0), fd);
}

static void finish_connect(struct door *d)
{
	int r = send_out(d, d->sock.fd);

	d->is_connected = true;
	if (r == -EAGAIN) {
		/* It can always be written, which is no news while there is no room. */
		(void)source_want(d->guest->epoll_fd, &d->sock, 0);
	} else if (r < 0) {
		fail(d, r);
	} else {
		conn_send_u64(&d->guest->conn, G_DONE, d->id, 0);
		door_free(d);
	}
}

static void on_connected(struct door *d)
{
	socklen_t size = sizeof(int);
	int code = 0;

	if (getsockopt(d->sock.fd, SOL_SOCKET, SO_ERROR, &code, &size) < 0)
		code = errno;
	if (code != 0)
		fail(d, -code);
	else
		finish_connect(d);
}

/* One at a time: what cannot be sent is not accepted, and the backlog is the box's own. */
static void on_accept(struct door *d)
{
	int fd = d->accepted;

	if (fd < 0)
		fd = accept4(d->sock.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd >= 0) {
		d->accepted = send_out(d, fd) == -EAGAIN ? fd : fd_close(fd);
	} else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
		/* It stays in the backlog and would be told again at once. */
		(void)source_want(d->guest->epoll_fd, &d->sock, 0);
		deadline_set(&d->guest->deadlines, &d->deadline, clock_now_ms() + ACCEPT_AGAIN_MS);
	}
}

static void update_listener(struct door *d)
{
	(void)source_want(d->guest->epoll_fd, &d->sock,
			  conn_is_free(&d->guest->conn) ? EPOLLIN : 0);
}

static void on_ready(struct source *s, uint32_t events)
{
	struct door *d = LIST_ENTRY(s, struct door, sock);

	(void)events;
	if (d->is_listener)
		on_accept(d);
	else
		on_connected(d);
}

static void on_deadline(struct deadline *dl)
{
	struct door *d = LIST_ENTRY(dl, struct door, deadline);

	if (d->is_listener)
		update_listener(d);
	else if (!d->is_connected)
		fail(d, -ETIMEDOUT);
}

static struct door *door_create(struct guest *g, uint32_t id, const struct guest_connect *c)
{
	struct door *d = g->n_doors < GUEST_DOORS_MAX ? calloc(1, sizeof(*d)) : NULL;

	if (!d) {
		conn_send_error(&g->conn, id, g->n_doors < GUEST_DOORS_MAX ? ENOMEM : EAGAIN,
				"too many connections are being made in this box");
		return NULL;
	}
	d->guest = g;
	d->id = id;
	d->port = c->port;
	d->accepted = -1;
	source_init(&d->sock,
		    socket(c->address == ADDRESS_V6 ? AF_INET6 : AF_INET,
			   SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0),
		    on_ready);
	deadline_init(&d->deadline, on_deadline);
	list_push_back(&g->doors, &d->node);
	g->n_doors++;
	if (d->sock.fd < 0) {
		fail(d, -errno);
		return NULL;
	}
	return d;
}

void door_connect(struct guest *g, uint32_t id, const struct guest_connect *c)
{
	struct door *d = door_create(g, id, c);
	union address to;
	socklen_t size = address_of(c, &to);
	int r;

	if (!d)
		return;
	if (connect(d->sock.fd, &to.any, size) == 0) {
		finish_connect(d);
		return;
	}
	r = errno == EINPROGRESS ? source_want(g->epoll_fd, &d->sock, EPOLLOUT) : -errno;
	if (r < 0)
		fail(d, r);
	else
		deadline_set(&g->deadlines, &d->deadline, clock_now_ms() + CONNECT_MS);
}

static int begin_listening(struct door *d, const struct guest_connect *c)
{
	union address at;
	socklen_t size = address_of(c, &at);
	int on = 1;

	if (setsockopt(d->sock.fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
	    bind(d->sock.fd, &at.any, size) < 0 || listen(d->sock.fd, BACKLOG) < 0 ||
	    getsockname(d->sock.fd, &at.any, &size) < 0)
		return -errno;
	d->port = ntohs(c->address == ADDRESS_V6 ? at.v6.sin6_port : at.v4.sin_port);
	return source_want(d->guest->epoll_fd, &d->sock, EPOLLIN);
}

void door_listen(struct guest *g, uint32_t id, const struct guest_connect *c)
{
	struct door *d = door_create(g, id, c);
	int r;

	if (!d)
		return;
	d->is_listener = true;
	r = begin_listening(d, c);
	if (r < 0)
		fail(d, r);
	else
		conn_send_u64(&g->conn, G_DONE, id, d->port);
}

struct door *door_find(struct guest *g, uint32_t id)
{
	LIST_FOREACH (&g->doors, d, struct door, node)
		if (d->id == id)
			return d;
	return NULL;
}

void door_cancel(struct door *d)
{
	conn_send_error(&d->guest->conn, d->id, ECANCELED, "cancelled");
	door_free(d);
}

void door_resume_all(struct guest *g)
{
	LIST_FOREACH (&g->doors, d, struct door, node) {
		if (d->is_listener && d->accepted >= 0 && conn_is_free(&g->conn))
			on_accept(d);
		if (d->is_listener)
			update_listener(d);
		else if (d->is_connected && conn_is_free(&g->conn))
			finish_connect(d);
	}
}

void door_free_all(struct guest *g)
{
	LIST_FOREACH (&g->doors, d, struct door, node)
		door_free(d);
}
