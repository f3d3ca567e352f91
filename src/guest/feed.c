#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "guest/exec.h"
#include "guest/pty.h"

/* The key press that ends a terminal's input; twice where a line is half written, because the first
 * one only hands that over. False when the terminal is full. */
static bool write_terminal_end(struct exec *x)
{
	char eof[2];
	size_t n = x->in.last == '\n' ? 1 : 2;

	eof[0] = eof[1] = pty_eof_char(x->input.fd);
	if (x->input.fd >= 0 && write(x->input.fd, eof, n) < 0 && errno == EAGAIN)
		return false;
	in_reopen(&x->in);
	x->in.last = '\n';
	return true;
}

/* Writes what it takes; how many bytes. Who reads no more takes everything. */
static size_t write_input(struct exec *x)
{
	size_t total = 0, n;
	const char *data;

	while ((data = in_next(&x->in, &n)) && n > 0) {
		ssize_t r = x->input.fd < 0 ? (ssize_t)n : write(x->input.fd, data, n);

		if (r < 0 && errno == EAGAIN)
			break;
		if (r < 0 && errno != EINTR)
			source_close(x->guest->epoll_fd, &x->input);
		if (r > 0) {
			in_took(&x->in, (size_t)r);
			total += (size_t)r;
		}
	}
	return total;
}

void exec_feed(struct exec *x)
{
	struct guest *g = x->guest;
	size_t total, waiting;
	bool is_stuck = false;

	if (x->is_reaped)
		return;
	if (g->conn.is_blocked) {
		(void)source_want(g->epoll_fd, &x->input, 0);
		return;
	}
	total = write_input(x);
	if (total > 0 && !x->is_orphan)
		conn_send_u64(&g->conn, G_TAKEN, x->id, total);
	if (in_is_at_end(&x->in) && x->in.is_terminal)
		is_stuck = !write_terminal_end(x);
	else if (in_is_at_end(&x->in))
		source_close(g->epoll_fd, &x->input);
	(void)in_next(&x->in, &waiting);
	(void)source_want(g->epoll_fd, &x->input, is_stuck || waiting > 0 ? EPOLLOUT : 0);
}

void exec_on_input(struct source *s, uint32_t events)
{
	(void)events;
	exec_feed(LIST_ENTRY(s, struct exec, input));
}

int exec_stdin(struct exec *x, const void *data, size_t n)
{
	int r;

	if (x->is_reaped) {
		if (n > 0)
			conn_send_u64(&x->guest->conn, G_TAKEN, x->id, n);
		return 0;
	}
	r = in_push(&x->in, data, n);
	if (r < 0)
		return r;
	exec_feed(x);
	return 0;
}
