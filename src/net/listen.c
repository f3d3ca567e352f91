/* Listeners: addresses, sockets, accepting. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/parse.h"
#include "base/str.h"
#include "net/addr.h"
#include "net/exchange.h"
#include "net/server.h"
#include "net/tls_session.h"

#define BACKLOG 1024
#define ACCEPT_BATCH 64 /* in one go, so that others get their turn */

struct listener {
	struct list node;
	struct http_server *server; /* borrowed */
	struct tls *tls;            /* borrowed; NULL: plain */
	struct loop_io *io;         /* owned */
	int fd;                     /* owned */
	char *path;                 /* owned; of a Unix socket, to be removed */
	bool resting;               /* out of descriptors: accepts again after a sweep */
};

/* Best effort: it is small, the socket's buffer is empty, and nobody waits for it. */
static void turn_away(int fd, bool tls)
{
	static const char busy[] = "HTTP/1.1 503 Service Unavailable\r\n"
				   "Content-Type: application/json\r\n"
				   "Retry-After: 1\r\n"
				   "Connection: close\r\n"
				   "\r\n"
				   "{\"error\":{\"code\":\"unavailable\",\"message\":"
				   "\"too many connections\",\"details\":null}}";

	if (!tls) {
		(void)send(fd, busy, sizeof(busy) - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
		(void)shutdown(fd, SHUT_WR);
	}
	(void)fd_close(fd);
}

static void take_in(struct listener *l, int fd, const union addr_any *from)
{
	struct http_server *s = l->server;
	struct tls_session *tls = NULL;
	struct http_request *r;

	if (s->count >= s->o.limits.conns_max) {
		bool is_refused = !server_make_room(s);

		if (s->o.crowded)
			s->o.crowded(s->o.user, is_refused);
		if (is_refused) {
			turn_away(fd, l->tls != NULL);
			return;
		}
	}
	if (l->tls) {
		tls = tls_session_create(l->tls);
		if (!tls) {
			(void)fd_close(fd);
			return;
		}
	}
	r = exchange_create(s, fd, tls);
	if (!r)
		return;
	addr_text(from, r->c.peer, sizeof(r->c.peer));
	server_note_peer(s, &r->c, from);
}

static void on_connect(void *user, unsigned events)
{
	struct listener *l = user;

	(void)events;
	for (int i = 0; i < ACCEPT_BATCH; i++) {
		union addr_any from = { 0 };
		socklen_t n = sizeof(from);
		int fd = accept4(l->fd, &from.any, &n, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd >= 0) {
			take_in(l, fd, &from);
		} else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM ||
			   errno == ENOBUFS) {
			/* The connection stays in the queue and would be told again at once. */
			l->resting = true;
			(void)loop_io_want(l->io, 0);
			return;
		} else if (errno == EAGAIN) {
			return;
		} /* all else is about that one connection only */
	}
}

void server_listeners_tick(struct http_server *s)
{
	LIST_FOREACH (&s->listeners, l, struct listener, node) {
		if (l->resting && loop_io_want(l->io, LOOP_READ) == 0)
			l->resting = false;
	}
}

static struct listener *listener_free(struct listener *l)
{
	if (!l)
		return NULL;
	list_remove(&l->node);
	l->io = loop_io_free(l->io);
	l->fd = fd_close(l->fd);
	if (l->path)
		(void)unlink(l->path);
	free(l->path);
	free(l);
	return NULL;
}

void server_close_listeners(struct http_server *s)
{
	while (!list_is_empty(&s->listeners))
		(void)listener_free(LIST_ENTRY(s->listeners.next, struct listener, node));
}

static int listener_add(struct http_server *s, int fd, const char *path, struct tls *tls)
{
	struct listener *l = calloc(1, sizeof(*l));
	int r = -ENOMEM;

	if (!l) {
		(void)fd_close(fd);
		return r;
	}
	list_init(&l->node);
	l->server = s;
	l->tls = tls;
	l->fd = fd;
	if (path)
		l->path = str_dup(str_of(path));
	if (!path || l->path)
		r = loop_io_create(s->loop, fd, on_connect, l, &l->io);
	if (r == 0)
		r = loop_io_want(l->io, LOOP_READ);
	if (r < 0) {
		(void)listener_free(l);
		return r;
	}
	list_push_back(&s->listeners, &l->node);
	return 0;
}

/* A socket that was left behind may be replaced; one that somebody listens on may not, nor may a
 * file. */
static int clear_path(const union addr_any *a, socklen_t n)
{
	_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct stat st;

	if (fd < 0)
		return -errno;
	if (lstat(a->un.sun_path, &st) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(st.st_mode))
		return -EEXIST;
	if (connect(fd, &a->any, n) == 0)
		return -EADDRINUSE;
	if (errno != ECONNREFUSED)
		return -errno;
	return unlink(a->un.sun_path) < 0 ? -errno : 0;
}

/* The socket's mode, set before it has a name, is that of the name. */
static int open_unix(const union addr_any *a, socklen_t n)
{
	_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int r = clear_path(a, n);

	if (fd < 0)
		return -errno;
	if (r < 0)
		return r;
	if (fchmod(fd, 0600) < 0 || bind(fd, &a->any, n) < 0)
		return -errno;
	if (listen(fd, BACKLOG) < 0) {
		r = -errno;
		(void)unlink(a->un.sun_path);
		return r;
	}
	return TAKE_FD(fd);
}

/* Options of the listening socket are inherited by what it accepts. */
static int bind_tcp(const union addr_any *a, socklen_t n)
{
	_close_ int fd = socket(a->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int on = 1, off = 0;

	if (fd < 0)
		return -errno;
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
	    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) < 0)
		return -errno;
	if (a->any.sa_family == AF_INET6 &&
	    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, addr_is_any(a) ? &off : &on, sizeof(on)) < 0)
		return -errno;
	return bind(fd, &a->any, n) < 0 ? -errno : TAKE_FD(fd);
}

int net_bind(const char *addr, struct err *err)
{
	union addr_any a = { 0 };
	socklen_t n;
	int fd, r = addr_parse(addr, &a, &n);

	if (r < 0)
		return err_set(err, EINVAL,
			       "listen on '%.100s': want address:port, :port or unix:/path", addr);
	if (a.any.sa_family == AF_UNIX) {
		fd = open_unix(&a, n);
	} else {
		fd = bind_tcp(&a, n);
		/* A machine without IPv6 has only the other kind of "all addresses". */
		if (fd == -EAFNOSUPPORT && addr_is_any(&a))
			fd = bind_tcp(&a, addr_any_v4(&a));
	}
	return fd < 0 ? err_sys(err, fd, "listen on '%.100s'", addr) : fd;
}

int net_listen_on(struct http_server *s, int fd, struct tls *tls, struct err *err)
{
	union addr_any a = { 0 };
	socklen_t n = sizeof(a);
	int r = getsockname(fd, &a.any, &n) < 0 ? -errno : 0;
	bool is_unix = a.any.sa_family == AF_UNIX;

	if (r == 0 && !is_unix && listen(fd, BACKLOG) < 0)
		r = -errno;
	if (r == 0)
		r = listener_add(s, fd, is_unix ? a.un.sun_path : NULL, tls);
	else
		(void)fd_close(fd);
	if (r < 0)
		return err_sys(err, r, "listen on port %d", is_unix ? 0 : addr_port(&a));
	return is_unix ? 0 : addr_port(&a);
}

int net_listen(struct http_server *s, const char *addr, struct tls *tls, struct err *err)
{
	int fd = net_bind(addr, err);

	return fd < 0 ? fd : net_listen_on(s, fd, tls, err);
}
