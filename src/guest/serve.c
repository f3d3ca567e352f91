#include "guest/serve.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "guest/guest.h"

#define REAP_AT_ONCE 1024 /* zombies taken in one turn of the loop */

void guest_fail(struct guest *g, int code, const char *text)
{
	if (g->over)
		return;
	conn_send_error(&g->conn, 0, code, text);
	g->over = code < 0 ? code : -code;
}

/* Unique among all guests of the machine that are not in boxes: tests run as ordinary processes. */
uint64_t guest_new_mark(struct guest *g)
{
	return g->next_mark++;
}

static void reap(struct guest *g)
{
	struct rusage used;
	int status, n = 0;
	pid_t pid = 0;

	while (n < REAP_AT_ONCE && (pid = wait4(-1, &status, WNOHANG, &used)) > 0) {
		n++;
		if (!exec_reaped(g, pid, status, &used) && !relay_reaped(g, pid))
			warm_reaped(&g->warm, pid);
	}
	g->must_reap_more = pid > 0;
	g->is_childless = pid < 0 && errno == ECHILD;
	if (g->is_childless)
		g->has_leftovers = false;
	if (n > 0)
		exec_settle(g);
}

static void on_signal(struct source *s, uint32_t events)
{
	struct guest *g = LIST_ENTRY(s, struct guest, signals);
	struct signalfd_siginfo info;

	(void)events;
	while (read(s->fd, &info, sizeof(info)) < 0 && errno == EINTR)
		;
	reap(g);
}

/* One request. rd: the payload, frame: all of it. A negative result: the client broke the rules. */
struct request {
	struct guest *guest;
	uint32_t id;
	struct rd rd;
	const void *frame;
	size_t size;
};

static bool is_id_free(struct guest *g, uint32_t id)
{
	return id != 0 && !exec_find(g, id) && !relay_find(g, id);
}

static int on_exec(struct request *q)
{
	struct guest_exec e;
	int r = guest_get_exec(&q->rd, &e);

	if (r == -EPROTO || !is_id_free(q->guest, q->id))
		return -EPROTO;
	if (r < 0)
		conn_send_error(&q->guest->conn, q->id, r, "exec: a value is out of bounds");
	else
		exec_start(q->guest, q->id, &e);
	return 0;
}

static int on_file(struct request *q)
{
	struct guest_file f;
	int r = guest_get_file(&q->rd, &f);

	if (r == -EPROTO || !is_id_free(q->guest, q->id))
		return -EPROTO;
	if (r < 0)
		conn_send_error(&q->guest->conn, q->id, r, "file: a value is out of bounds");
	else
		relay_start(q->guest, q->id, &f);
	return 0;
}

static int on_stdin(struct request *q)
{
	struct exec *x = exec_find(q->guest, q->id);
	size_t n;
	const void *data = rd_rest(&q->rd, &n);

	if (n > GUEST_CHUNK)
		return -EPROTO;
	return x ? exec_stdin(x, data, n) : 0;
}

static int on_data(struct request *q)
{
	struct relay *r = relay_find(q->guest, q->id);
	size_t n;

	(void)rd_rest(&q->rd, &n);
	if (n > GUEST_CHUNK)
		return -EPROTO;
	return r ? relay_pass(r, q->frame, q->size) : 0;
}

static int on_credit(struct request *q)
{
	struct exec *x = exec_find(q->guest, q->id);
	struct relay *r = relay_find(q->guest, q->id);
	uint64_t n = rd_u64(&q->rd);

	if (rd_end(&q->rd) < 0)
		return -EPROTO;
	if (x)
		return exec_credit(x, n);
	return r ? relay_pass(r, q->frame, q->size) : 0;
}

static int on_kill(struct request *q)
{
	struct exec *x = exec_find(q->guest, q->id);
	uint32_t signo = rd_u32(&q->rd);
	uint8_t is_tree = rd_u8(&q->rd);

	if (rd_end(&q->rd) < 0 || is_tree > 1)
		return -EPROTO;
	return x ? exec_signal(x, signo, is_tree) : 0;
}

static int on_resize(struct request *q)
{
	struct exec *x = exec_find(q->guest, q->id);
	uint16_t rows = rd_u16(&q->rd);
	uint16_t cols = rd_u16(&q->rd);

	if (rd_end(&q->rd) < 0)
		return -EPROTO;
	return x ? exec_resize(x, rows, cols) : 0;
}

static int on_cancel(struct request *q)
{
	struct exec *x = exec_find(q->guest, q->id);
	struct relay *r = relay_find(q->guest, q->id);

	if (rd_end(&q->rd) < 0)
		return -EPROTO;
	if (x)
		exec_cancel(x);
	return r ? relay_cancel(r) : 0;
}

static int on_ping(struct request *q)
{
	uint8_t frame[32];

	if (rd_end(&q->rd) < 0)
		return -EPROTO;
	conn_send(&q->guest->conn, frame,
		  guest_put_raw(frame, sizeof(frame), G_PONG, q->id, NULL, 0));
	return 0;
}

static const struct {
	uint16_t type;
	int (*handle)(struct request *q);
} requests[] = {
	{ G_EXEC, on_exec },   { G_STDIN, on_stdin },   { G_CREDIT, on_credit },
	{ G_SIGNAL, on_kill }, { G_RESIZE, on_resize }, { G_FILE, on_file },
	{ G_DATA, on_data },   { G_CANCEL, on_cancel }, { G_PING, on_ping },
};

static int handle(struct guest *g, const void *frame, size_t n)
{
	struct request q = { .guest = g, .frame = frame, .size = n };
	struct wire_head head;
	int r = wire_open(frame, n, &head, &q.rd);

	if (r < 0)
		return r;
	q.id = head.id;
	for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++)
		if (requests[i].type == head.type)
			return requests[i].handle(&q);
	return -EPROTO;
}

static void read_request(struct guest *g)
{
	/* Strings are used where they lie, so they must not be odd places in memory. */
	_Alignas(8) uint8_t frame[WIRE_FRAME_MAX];
	size_t no_fds = 0;
	ssize_t n = fd_recv(g->control.fd, frame, sizeof(frame), NULL, &no_fds);
	int r;

	if (n == -EAGAIN)
		return;
	if (n == 0 || n == -ECONNRESET) {
		g->over = 1;
		return;
	}
	r = n < 0 ? (int)n : handle(g, frame, (size_t)n);
	/* Our own daemon said it, so it is a fault, and guessing what was meant is worse than
	 * ending. */
	if (r < 0)
		guest_fail(g, r, "the control socket's rules were broken");
}

static void on_control(struct source *s, uint32_t events)
{
	struct guest *g = LIST_ENTRY(s, struct guest, control);

	if (events & EPOLLOUT) {
		conn_flush(&g->conn);
		if (!g->conn.is_blocked) {
			exec_resume_all(g);
			relay_resume_all(g);
		}
	} else if (events & EPOLLIN) {
		read_request(g);
	} else {
		g->over = 1;
	}
}

static void run_deadlines(struct guest *g)
{
	uint64_t now_ms;
	struct deadline *d;

	if (list_is_empty(&g->deadlines))
		return;
	now_ms = clock_now_ms();
	if (deadline_wait_ms(&g->deadlines, now_ms) > 0)
		return;
	reap(g); /* what is over already was in time */
	while ((d = deadline_take(&g->deadlines, now_ms)))
		d->expired(d);
}

/* The full socket is felt at once, not only by those who met it. */
static void update_control(struct guest *g, bool was_blocked)
{
	(void)source_want(g->epoll_fd, &g->control, g->conn.is_blocked ? EPOLLOUT : EPOLLIN);
	if (g->conn.is_blocked && !was_blocked) {
		exec_resume_all(g);
		relay_resume_all(g);
	}
}

static int next_wait_ms(const struct guest *g)
{
	if (g->must_reap_more)
		return 0;
	return list_is_empty(&g->deadlines) ? -1 : deadline_wait_ms(&g->deadlines, clock_now_ms());
}

static void run(struct guest *g)
{
	while (!g->over) {
		bool was_blocked = g->conn.is_blocked;
		int r = source_wait(g->epoll_fd, next_wait_ms(g));

		if (r < 0)
			guest_fail(g, r, "waiting for events failed");
		if (g->must_reap_more)
			reap(g);
		run_deadlines(g);
		if (g->conn.broken && !g->over)
			g->over = g->conn.broken;
		update_control(g, was_blocked);
	}
}

static int open_signals(struct guest *g, struct err *err)
{
	sigset_t child;
	int fd;

	(void)sigemptyset(&child);
	(void)sigaddset(&child, SIGCHLD);
	(void)sigprocmask(SIG_BLOCK, &child, NULL);
	fd = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		return err_sys(err, errno, "signalfd");
	source_init(&g->signals, fd, on_signal);
	return source_want(g->epoll_fd, &g->signals, EPOLLIN);
}

static int open_all(struct guest *g, struct err *err)
{
	int r;

	g->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (g->epoll_fd < 0)
		return err_sys(err, errno, "epoll_create1");
	r = tree_open(&g->tree, err);
	if (r == 0)
		r = open_signals(g, err);
	if (r == 0)
		r = source_want(g->epoll_fd, &g->control, EPOLLIN);
	return r;
}

/* No interpreter is no reason to have no box: it is only slower. */
static void say_ready(struct guest *g, const struct guest_options *options)
{
	struct guest_ready ready = { .version = WIRE_VERSION };
	uint8_t frame[64];

	if (options->python_fd >= 0)
		ready.warm_python = warm_adopt_python(&g->warm, options->python_fd, NULL) == 0;
	if (options->node)
		ready.warm_node = warm_start_node(&g->warm, guest_new_mark(g), NULL) == 0;
	conn_send(&g->conn, frame, guest_put_ready(frame, sizeof(frame), &ready));
}

static void init(struct guest *g, int sock)
{
	*g = (struct guest){ .epoll_fd = -1, .next_mark = ((uint64_t)getpid() << 32) + 1 };
	g->tree.proc_fd = g->tree.spare_fd = -1;
	source_init(&g->control, sock, on_control);
	source_init(&g->signals, -1, on_signal);
	conn_init(&g->conn, sock);
	warm_init(&g->warm);
	list_init(&g->execs);
	list_init(&g->lingering);
	list_init(&g->relays);
	list_init(&g->deadlines);
	(void)fd_cloexec(sock, true);
	(void)fd_nonblock(sock, true);
}

static void done(struct guest *g)
{
	exec_free_all(g);
	relay_free_all(g);
	warm_done(&g->warm);
	tree_close(&g->tree);
	conn_done(&g->conn);
	source_close(g->epoll_fd, &g->signals);
	source_close(g->epoll_fd, &g->control);
	g->epoll_fd = fd_close(g->epoll_fd);
}

int guest_serve(int sock, const struct guest_options *options)
{
	struct err err = { 0 };
	struct guest g;
	int r;

	init(&g, sock);
	g.oom_fd = options->oom_fd;
	r = open_all(&g, &err);
	if (r < 0) {
		guest_fail(&g, r, err.text);
	} else {
		say_ready(&g, options);
		run(&g);
	}
	r = g.over < 0 ? g.over : 0;
	done(&g);
	return r;
}
