/* The process between a connection to the box's Unix socket and the end that goes out: it carries
 * bytes and looks at none. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "guest/bridge.h"
#include "guest/user.h"

#define FIRST_FD 3
#define CONNECT_MS 5000

struct way {          /* one direction */
	int from, to; /* borrowed */
	size_t held, at;
	bool is_over; /* the end of it was passed on */
	char bytes[16384];
};

static bool is_same(const struct sockaddr_in *a, const struct sockaddr_in *b)
{
	return a->sin_port == b->sin_port && a->sin_addr.s_addr == b->sin_addr.s_addr;
}

/* Whoever else in the box got in there is sent away. */
static int accept_own(int listener, int mine)
{
	struct sockaddr_in own = { 0 }, peer = { 0 };
	socklen_t size = sizeof(own), n = sizeof(peer);
	struct pollfd p = { .fd = listener, .events = POLLIN };

	if (getsockname(mine, (struct sockaddr *)&own, &size) < 0)
		return -1;
	while (poll(&p, 1, CONNECT_MS) > 0) {
		int fd = accept4(listener, (struct sockaddr *)&peer, &n,
				 SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd >= 0 && is_same(&own, &peer))
			return fd;
		(void)fd_close(fd);
		n = sizeof(peer);
	}
	return -1;
}

/* Both ends of a connection over the loopback. */
static int make_pair(int ret[2])
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	_close_ int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	_close_ int mine = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	socklen_t size = sizeof(at);

	if (listener < 0 || mine < 0 || bind(listener, (struct sockaddr *)&at, size) < 0 ||
	    listen(listener, 4) < 0 || getsockname(listener, (struct sockaddr *)&at, &size) < 0 ||
	    (connect(mine, (struct sockaddr *)&at, size) < 0 && errno != EINPROGRESS))
		return -1;
	ret[1] = accept_own(listener, mine);
	if (ret[1] < 0)
		return -1;
	ret[0] = TAKE_FD(mine);
	return 0;
}

/* False: it cannot go on. */
static bool move(struct way *w)
{
	ssize_t n;

	if (w->at < w->held) {
		n = send(w->to, w->bytes + w->at, w->held - w->at, MSG_NOSIGNAL);
		if (n < 0)
			return errno == EAGAIN || errno == EINTR;
		w->at += (size_t)n;
		return true;
	}
	n = read(w->from, w->bytes, sizeof(w->bytes));
	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	w->at = 0;
	w->held = (size_t)n;
	if (n == 0) {
		w->is_over = true;
		(void)shutdown(w->to, SHUT_WR);
	}
	return true;
}

static bool is_full(const struct way *w)
{
	return w->at < w->held;
}

/* Who is gone is told of for ever: not while there is nothing to be done with it. */
static struct pollfd look(int fd, const struct way *from, const struct way *to)
{
	short events = (short)((!from->is_over && !is_full(from) ? POLLIN : 0) |
			       (is_full(to) ? POLLOUT : 0));

	return (struct pollfd){ is_full(from) && !is_full(to) ? -1 : fd, events, 0 };
}

/* Until the other end is closed; false: the program is gone, and does not wait for an answer. */
static bool carry(int conn, int tcp)
{
	struct way in = { .from = conn, .to = tcp }, out = { .from = tcp, .to = conn };

	while (!out.is_over) {
		struct pollfd p[2] = { look(conn, &in, &out), look(tcp, &out, &in) };

		if (poll(p, 2, -1) < 0 && errno != EINTR)
			return false;
		if ((p[0].revents & POLLERR) || ((p[0].revents & POLLHUP) && in.is_over))
			return false;
		if (p[1].revents & POLLERR)
			return true;
		if (((p[0].revents & (POLLIN | POLLHUP)) || (p[1].revents & POLLOUT)) && !move(&in))
			return false;
		if (((p[1].revents & (POLLIN | POLLHUP)) || (p[0].revents & POLLOUT)) &&
		    !move(&out))
			return false;
	}
	return true;
}

/* Nothing of holt-init's stays open here but /dev/null. */
static int keep_only(int a, int b)
{
	unsigned low = (unsigned)(a < b ? a : b), high = (unsigned)(a < b ? b : a);

	if ((low > FIRST_FD && syscall(SYS_close_range, FIRST_FD, low - 1, 0) < 0) ||
	    (high > low + 1 && syscall(SYS_close_range, low + 1, high - 1, 0) < 0))
		return -1;
	return (int)syscall(SYS_close_range, high + 1, ~0u, 0);
}

_Noreturn void carry_one(int listener, int pair, const struct user *u)
{
	static const struct linger at_once = { .l_onoff = 1 };
	int conn, tcp[2], r;

	(void)signal(SIGPIPE, SIG_IGN);
	if (user_become(u) < 0)
		_exit(1);
	conn = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (conn < 0)
		_exit(0); /* he did not wait */
	if (make_pair(tcp) < 0)
		_exit(1);
	r = (int)fd_send(pair, "", 1, &tcp[1], 1);
	(void)close(tcp[1]);
	if (r < 0 || keep_only(conn, tcp[0]) < 0)
		_exit(1);
	/* Whoever answers hears at once that nobody is there any more. */
	if (!carry(conn, tcp[0]))
		(void)setsockopt(tcp[0], SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
	_exit(0);
}
