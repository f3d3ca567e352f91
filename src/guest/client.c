#include "guest/client.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "guest/guest.h"

#define LISTEN_AGAIN_MS 100 /* without memory or a number for a new connection */
#define LAST_WORDS_MAX 1024 /* frames of a lost connection that are still heard */

static void resume_all(struct guest *g)
{
	exec_resume_all(g);
	kept_resume_all(g);
	relay_resume_all(g);
	door_resume_all(g);
	bridge_resume(g);
}

/* Everything that belongs to the connection ends with it. */
static void lose(struct guest *g)
{
	source_close(g->epoll_fd, &g->control);
	conn_done(&g->conn);
	conn_init(&g->conn, -1);
	relay_lose_client(g);
	door_free_all(g);
	bridge_lose_client(g);
	kept_rewind_all(g);
	exec_lose_client(g);
}

/* A reset comes in front of frames that can still be read: the client died without having read all
 * of ours. */
enum reading { READ_NOTHING, READ_ONE, READ_RESET, READ_END };

/* One request, or -errno when the client broke the rules. */
static int read_request(struct guest *g)
{
	/* Strings are used where they lie, so they must not be odd places in memory. */
	_Alignas(8) uint8_t frame[WIRE_FRAME_MAX];
	_close_ int fd = -1;
	size_t n_fds = 1;
	ssize_t n = fd_recv(g->control.fd, frame, sizeof(frame), &fd, &n_fds);
	int r;

	if (n == -EAGAIN)
		return READ_NOTHING;
	if (n == 0 || n == -ECONNRESET)
		return n == 0 ? READ_END : READ_RESET;
	r = n < 0 ? (int)n : request_handle(g, frame, (size_t)n, &fd);
	return r < 0 ? r : READ_ONE;
}

/* What was said before the connection was lost counts: an acknowledgement more than all. */
static void hear_out(struct guest *g)
{
	int r = READ_ONE;

	for (int n = 0; n < LAST_WORDS_MAX && (r == READ_ONE || r == READ_RESET); n++)
		r = read_request(g);
}

static void hang_up(struct guest *g, int why)
{
	if (g->listener.fd >= 0) {
		hear_out(g);
		lose(g);
	} else if (!g->over) {
		g->over = why;
	}
}

/* Our own daemon said it, so it is a fault, and guessing what was meant is worse than ending: the
 * box, or, where it has to outlive its clients, the connection. */
static void refuse(struct guest *g, int code)
{
	static const char text[] = "the control socket's rules were broken";

	if (g->listener.fd < 0) {
		guest_fail(g, code, text);
		return;
	}
	conn_send_error(&g->conn, 0, code, text);
	lose(g);
}

static void on_control(struct source *s, uint32_t events)
{
	struct guest *g = LIST_ENTRY(s, struct guest, control);
	int r;

	if (events & EPOLLOUT) {
		conn_flush(&g->conn);
		if (!g->conn.is_blocked)
			resume_all(g);
	} else if (events & EPOLLIN) {
		r = read_request(g);
		if (r == READ_END || r == READ_RESET)
			hang_up(g, 1);
		else if (r < 0)
			refuse(g, r);
	} else {
		hang_up(g, 1);
	}
}

static void take(struct guest *g, int sock)
{
	(void)fd_cloexec(sock, true);
	(void)fd_nonblock(sock, true);
	source_init(&g->control, sock, on_control);
	conn_init(&g->conn, sock);
}

static void on_listener(struct source *s, uint32_t events)
{
	struct guest *g = LIST_ENTRY(s, struct guest, listener);
	int sock = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	(void)events;
	if (sock < 0 && (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED))
		return;
	if (sock < 0) {
		(void)source_want(g->epoll_fd, s, 0);
		deadline_set(&g->deadlines, &g->listen_again, clock_now_ms() + LISTEN_AGAIN_MS);
		return;
	}
	if (g->control.fd >= 0)
		hang_up(g, 0);
	take(g, sock);
	client_begin(g, true);
}

static void on_listen_again(struct deadline *d)
{
	struct guest *g = LIST_ENTRY(d, struct guest, listen_again);

	(void)source_want(g->epoll_fd, &g->listener, EPOLLIN);
}

void client_init(struct guest *g, int sock)
{
	source_init(&g->listener, -1, on_listener);
	deadline_init(&g->listen_again, on_listen_again);
	take(g, sock);
}

void client_done(struct guest *g)
{
	deadline_clear(&g->listen_again);
	source_close(g->epoll_fd, &g->listener);
	source_close(g->epoll_fd, &g->control);
	conn_done(&g->conn);
}

void client_begin(struct guest *g, bool is_resumed)
{
	struct guest_ready ready = { .version = WIRE_VERSION,
				     .warm_python = g->warm.python_fd >= 0,
				     .warm_node = g->warm.node.pid > 0,
				     .resumed = is_resumed,
				     .live = (uint32_t)(exec_count_kept(g) + g->n_kept),
				     .why_code = (uint32_t)g->why_code,
				     .why = g->why };
	uint8_t frame[64 + WHY_MAX];

	conn_send(&g->conn, frame, guest_put_ready(frame, sizeof(frame), &ready));
	exec_tell_all(g);
	kept_tell_all(g);
	resume_all(g);
}

static bool is_option(int sock, int option, int want)
{
	socklen_t size = sizeof(int);
	int value = 0;

	return getsockopt(sock, SOL_SOCKET, option, &value, &size) == 0 && value == want;
}

int client_persist(struct guest *g, int listener)
{
	int r;

	if (!is_option(listener, SO_DOMAIN, AF_UNIX) ||
	    !is_option(listener, SO_TYPE, SOCK_SEQPACKET) || !is_option(listener, SO_ACCEPTCONN, 1))
		return -EPROTO;
	deadline_clear(&g->listen_again);
	source_close(g->epoll_fd, &g->listener);
	(void)fd_nonblock(listener, true);
	source_init(&g->listener, listener, on_listener);
	r = source_want(g->epoll_fd, &g->listener, EPOLLIN);
	if (r < 0)
		source_init(&g->listener, -1, on_listener); /* it was not taken */
	return r;
}

void client_check(struct guest *g)
{
	if (g->conn.broken)
		hang_up(g, g->conn.broken);
}

void client_update(struct guest *g, bool was_blocked)
{
	(void)source_want(g->epoll_fd, &g->control, g->conn.is_blocked ? EPOLLOUT : EPOLLIN);
	if (g->conn.is_blocked && !was_blocked)
		resume_all(g);
}
