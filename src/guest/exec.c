#include "guest/exec.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "guest/pty.h"

/* A terminal has no count of what its far side wrote: this much is read of it at the most. */
#define TERMINAL_DRAIN GUEST_WINDOW
#define SCRATCH_SIZE (16u << 10)
#define BARREN_NS 300000000u
/* How long after an end another Python is made to wait. A box that was for one run is gone by then,
 * and a client that is in a hurry waits for its fork anyway. */
#define PARK_MS 3

static void free_exec(struct exec *x)
{
	struct guest *g = x->guest;

	for (int i = 0; i < OUT_STREAMS; i++)
		source_close(g->epoll_fd, &x->streams[i]);
	source_close(g->epoll_fd, &x->input);
	deadline_clear(&x->deadline);
	out_done(&x->out);
	in_done(&x->in);
	warm_end_free(x->end);
	(void)kept_free(x->kept);
	list_remove(&x->node);
	free(x);
}

static void send_exit(struct exec *x)
{
	uint8_t frame[128];

	x->exit.flags |= x->out.is_truncated ? EXIT_TRUNCATED : 0;
	conn_send(&x->guest->conn, frame, guest_put_exit(frame, sizeof(frame), x->id, &x->exit));
}

/* Its end waits for G_ACK; what is left of the execution itself is like that of any other. */
static void keep_end(struct exec *x)
{
	struct kept *k = x->kept;

	x->kept = NULL;
	k->exit = x->exit;
	k->stdin_taken = x->in.ring.head;
	k->out = x->out;
	out_init(&x->out, 0);
	kept_add(x->guest, k);
}

/* The pipes stay open for those who still write into them, or they would die of it; what they write
 * is read and dropped. There is an end to this patience: the oldest is closed. */
static void linger(struct exec *x)
{
	struct guest *g = x->guest;

	out_done(&x->out);
	in_done(&x->in);
	x->is_lingering = true;
	list_push_back(&g->lingering, &x->node);
	for (int i = 0; i < OUT_STREAMS; i++)
		(void)source_want(g->epoll_fd, &x->streams[i], EPOLLIN);
	if (++g->n_lingering <= GUEST_LINGERING_MAX)
		return;
	g->n_lingering--;
	free_exec(LIST_ENTRY(g->lingering.next, struct exec, node));
}

/* Nothing was started since. After a while the pids could have gone round, so this is an answer for
 * the short ones only, and it is them that looking through /proc would slow down. */
static bool is_barren(const struct exec *x)
{
	return x->newest > 0 && clock_now_ns() - x->started_ns < BARREN_NS &&
	       tree_newest(&x->guest->tree) == x->newest;
}

static bool has_leftovers(struct exec *x)
{
	return !x->guest->is_childless && !is_barren(x) &&
	       tree_count_but(&x->guest->tree, x->mark, x->ended) > 0;
}

static void finish(struct exec *x)
{
	struct guest *g = x->guest;

	if (x->phase == EXEC_RUNS && has_leftovers(x)) {
		x->exit.flags |= EXIT_LEFTOVERS;
		g->has_leftovers = true;
	}
	x->exit.output_bytes = x->out.written;
	if (x->kept)
		keep_end(x);
	else if (!x->is_orphan)
		send_exit(x);
	deadline_clear(&x->deadline);
	if (warm_lacks_python(&g->warm))
		deadline_set(&g->deadlines, &g->park, clock_now_ms() + PARK_MS);
	list_remove(&x->node);
	g->n_execs--;
	if (x->streams[0].fd >= 0 || x->streams[1].fd >= 0)
		linger(x);
	else
		free_exec(x);
}

static bool is_finished(const struct exec *x)
{
	/* What is kept may be sent when it has ended. */
	if (!x->is_reaped || (!x->kept && out_has_unsent(&x->out)))
		return false;
	if (x->phase != EXEC_RUNS && !x->is_tree_gone)
		return false;
	for (int i = 0; i < OUT_STREAMS; i++)
		if (x->streams[i].fd >= 0 && x->drain[i] > 0)
			return false;
	return true;
}

/* Bytes that wait in a pipe. */
static uint64_t waiting_in(const struct exec *x, enum out_stream i)
{
	int n = 0;

	return ioctl(x->streams[i].fd, FIONREAD, &n) < 0 ? 0 : (uint64_t)n;
}

/* There is no room for what may be there: where there is nothing, nothing is waited for. */
static void look_without_room(struct exec *x, enum out_stream i)
{
	if (x->is_reaped && !x->is_waiting && !x->in.is_terminal && waiting_in(x, i) == 0)
		x->drain[i] = 0;
}

/* Reads once. How many bytes; 0: nothing there, no room, or the end, at which the stream closes. */
static size_t read_stream(struct exec *x, enum out_stream i)
{
	char scratch[SCRATCH_SIZE];
	char *to = scratch;
	size_t n = sizeof(scratch);
	ssize_t r;

	if (!x->is_lingering && !out_is_dropping(&x->out)) {
		to = out_space(&x->out, &n);
		if (!to)
			out_abandon(&x->out); /* no memory: flagged as truncated when more comes */
		if (!to || n == 0) {
			look_without_room(x, i);
			return 0;
		}
	}
	r = read(x->streams[i].fd, to, n);
	if (r < 0 && (errno == EAGAIN || errno == EINTR)) {
		x->drain[i] = x->is_waiting ? UINT64_MAX : 0;
		return 0;
	}
	if (r <= 0) { /* a terminal's end is EIO */
		source_close(x->guest->epoll_fd, &x->streams[i]);
		return 0;
	}
	if (!x->is_lingering)
		out_commit(&x->out, i, (size_t)r);
	if (!x->is_waiting)
		x->drain[i] -= (uint64_t)r < x->drain[i] ? (uint64_t)r : x->drain[i];
	return (size_t)r;
}

static void send_unsent(struct exec *x)
{
	conn_send_unsent(&x->guest->conn, x->id, &x->out);
}

static void drain(struct exec *x)
{
	for (enum out_stream i = 0; i < OUT_STREAMS; i++)
		while (x->streams[i].fd >= 0 && x->drain[i] > 0 && read_stream(x, i) > 0)
			send_unsent(x);
}

static void update_streams(struct exec *x)
{
	struct guest *g = x->guest;
	/* While nobody is connected, nothing is blocked, and the window is filled. */
	bool can_keep = !g->conn.is_blocked && ring_room(&x->out.ring) > 0;
	bool can_read = can_keep || out_is_dropping(&x->out);

	for (int i = 0; i < OUT_STREAMS; i++) {
		bool is_wanted = can_read && (!x->is_reaped || x->drain[i] > 0);

		(void)source_want(g->epoll_fd, &x->streams[i], is_wanted ? EPOLLIN : 0);
	}
}

/* Does all that can be done now. x may be gone afterwards. */
static void advance(struct exec *x)
{
	send_unsent(x);
	if (x->is_reaped)
		drain(x);
	/* Whoever cancels does not wait for a reader that holds back. */
	if (x->is_reaped && (x->exit.flags & EXIT_CANCELLED) && ring_room(&x->out.ring) == 0 &&
	    !out_has_unsent(&x->out)) {
		out_abandon(&x->out);
		drain(x);
	}
	if (is_finished(x)) {
		finish(x);
		return;
	}
	update_streams(x);
}

static void note_exit(struct exec *x, int status, const struct rusage *used);

/* Its streams are closed and it has said how it ends. It is killed all the same: what it said comes
 * true, whoever wrote it there. */
static void take_word(struct exec *x)
{
	struct rusage used;
	int status;

	if (x->is_reaped || x->phase != EXEC_RUNS || x->streams[0].fd >= 0 ||
	    x->streams[1].fd >= 0 || !warm_has_ended(x->end, x->pid, &status, &used))
		return;
	x->ended = x->pid;
	(void)kill(x->pid, SIGKILL);
	note_exit(x, status, &used);
}

static void on_stream(struct exec *x, enum out_stream i, uint32_t events)
{
	if (events & EPOLLIN || x->in.is_terminal)
		(void)read_stream(x, i);
	else /* hung up and empty: no memory has to be found for what does not come */
		source_close(x->guest->epoll_fd, &x->streams[i]);
	if (!x->is_lingering) {
		take_word(x);
		advance(x);
	} else if (x->streams[0].fd < 0 && x->streams[1].fd < 0) {
		x->guest->n_lingering--;
		free_exec(x);
	}
}

static void on_stdout(struct source *s, uint32_t events)
{
	on_stream(LIST_ENTRY(s, struct exec, streams[OUT_STDOUT]), OUT_STDOUT, events);
}

static void on_stderr(struct source *s, uint32_t events)
{
	on_stream(LIST_ENTRY(s, struct exec, streams[OUT_STDERR]), OUT_STDERR, events);
}

struct exec *exec_create(struct guest *g, uint32_t id, const struct guest_exec *e)
{
	struct exec *x = calloc(1, sizeof(*x));

	if (!x)
		return NULL;
	if (e->flags & EXEC_KEEP) {
		x->kept = kept_create(id, e->tag, e->flags & EXEC_PTY ? LIVE_PTY : 0);
		if (!x->kept) {
			free(x);
			return NULL;
		}
	}
	x->guest = g;
	x->id = id;
	x->grace_ms = e->grace_ms;
	x->is_whole = (e->flags & EXEC_WHOLE) && !(e->flags & EXEC_PTY);
	x->started_ns = clock_now_ns();
	source_init(&x->streams[OUT_STDOUT], -1, on_stdout);
	source_init(&x->streams[OUT_STDERR], -1, on_stderr);
	source_init(&x->input, -1, exec_on_input);
	out_init(&x->out, e->output_limit);
	in_init(&x->in, e->flags & EXEC_PTY);
	deadline_init(&x->deadline, exec_expired);
	return x;
}

void exec_free_new(struct exec *x)
{
	if (x)
		(void)kept_free(x->kept);
	free(x);
}

void exec_adopt(struct exec *x, const struct spawned *s)
{
	struct guest *g = x->guest;

	if (x->kept) {
		x->kept->pid = (uint32_t)s->pid;
		x->kept->flags |= s->warm ? LIVE_WARM : 0;
		x->kept->started_ns = x->started_ns;
	}
	x->pid = s->pid;
	x->mark = s->mark;
	x->end = s->end;
	if (!s->warm)
		x->newest = x->newest < 0 ? -1 : s->pid;
	x->streams[OUT_STDOUT].fd = s->out;
	x->streams[OUT_STDERR].fd = s->err;
	x->input.fd = s->in;
	list_push_back(&g->execs, &x->node);
	g->n_execs++;
	g->is_childless = false;
	update_streams(x);
}

struct exec *exec_find(struct guest *g, uint32_t id)
{
	LIST_FOREACH (&g->execs, x, struct exec, node)
		if (x->id == id && !x->is_orphan)
			return x;
	return NULL;
}

bool exec_has_pid(const struct guest *g, pid_t pid)
{
	LIST_FOREACH (&g->execs, x, struct exec, node)
		if (x->pid == pid)
			return true;
	return false;
}

int exec_credit(struct exec *x, uint64_t n)
{
	int r = out_credit(&x->out, n);

	if (r == 0)
		advance(x);
	return r;
}

void exec_ack(struct exec *x)
{
	x->kept = kept_free(x->kept);
}

int exec_resize(struct exec *x, uint16_t rows, uint16_t cols)
{
	if (!x->in.is_terminal)
		return -EPROTO;
	if (x->streams[OUT_STDOUT].fd >= 0)
		(void)pty_resize(x->streams[OUT_STDOUT].fd, rows, cols);
	return 0;
}

/* How much of what the process has written is still on its way to us. Others may go on writing:
 * that is no longer its output. */
static void measure_drain(struct exec *x)
{
	for (int i = 0; i < OUT_STREAMS; i++) {
		uint64_t n;

		if (x->streams[i].fd < 0)
			continue;
		n = x->in.is_terminal ? TERMINAL_DRAIN : waiting_in(x, (enum out_stream)i);
		/* At least one look where there is room for one: it finds the end where there is
		 * nothing else. */
		if (n == 0 && ring_room(&x->out.ring) > 0)
			n = 1;
		x->drain[i] = n;
	}
}

void exec_wait_no_more(struct exec *x)
{
	if (!x->is_waiting)
		return;
	x->is_waiting = false;
	measure_drain(x);
}

static uint64_t to_us(struct timeval t)
{
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_usec;
}

static void note_exit(struct exec *x, int status, const struct rusage *used)
{
	x->is_reaped = true;
	x->pid = 0;
	x->exit.code = (uint32_t)(WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	x->exit.flags |= WIFSIGNALED(status) ? EXIT_SIGNALED : 0;
	x->exit.wall_us = (clock_now_ns() - x->started_ns) / 1000;
	x->exit.user_us = to_us(used->ru_utime);
	x->exit.sys_us = to_us(used->ru_stime);
	x->exit.max_rss_bytes = (uint64_t)used->ru_maxrss * 1024;
	x->is_waiting = x->is_whole && x->phase == EXEC_RUNS && !WIFSIGNALED(status);
	if (x->phase == EXEC_RUNS && !x->is_waiting)
		deadline_clear(&x->deadline);
	source_close(x->guest->epoll_fd, &x->input);
	measure_drain(x);
	for (int i = 0; i < OUT_STREAMS && x->is_waiting; i++)
		x->drain[i] = UINT64_MAX;
}

bool exec_reaped(struct guest *g, pid_t pid, int status, const struct rusage *used)
{
	LIST_FOREACH (&g->execs, x, struct exec, node)
		if (x->pid == pid && !x->is_reaped) {
			note_exit(x, status, used);
			return true;
		}
	return false;
}

void exec_settle(struct guest *g)
{
	LIST_FOREACH (&g->execs, x, struct exec, node) {
		if (!x->is_reaped)
			continue;
		if (x->phase != EXEC_RUNS && !x->is_tree_gone)
			x->is_tree_gone = !has_leftovers(x);
		advance(x);
	}
}

void exec_resume_all(struct guest *g)
{
	LIST_FOREACH (&g->execs, x, struct exec, node) {
		exec_feed(x);
		advance(x);
	}
}

size_t exec_count_kept(const struct guest *g)
{
	size_t n = 0;

	LIST_FOREACH (&g->execs, x, struct exec, node)
		n += x->kept ? 1 : 0;
	return n;
}

void exec_tell_all(struct guest *g)
{
	LIST_FOREACH (&g->execs, x, struct exec, node) {
		bool is_open = x->input.fd >= 0 && !x->in.is_ended;
		struct guest_live rest = {
			.flags = is_open ? LIVE_STDIN : 0,
			.stdin_taken = x->in.ring.head,
			.stdin_kept = x->is_reaped ? 0 : (uint32_t)ring_len(&x->in.ring),
		};

		if (x->kept)
			kept_tell(g, x->kept, &x->out, &rest);
	}
}

void exec_lose_client(struct guest *g)
{
	LIST_FOREACH (&g->execs, x, struct exec, node) {
		if (x->kept)
			out_rewind(&x->out);
		else if (!x->is_orphan)
			exec_abandon(x);
	}
	exec_resume_all(g); /* who waited for room in the socket, or has nothing more to say */
}

void exec_free_all(struct guest *g)
{
	LIST_FOREACH (&g->execs, x, struct exec, node) {
		/* PID 1 takes everything with it; anyone else must see to it himself. */
		if (!g->tree.is_everything)
			(void)tree_kill(&g->tree, x->mark);
		free_exec(x);
	}
	LIST_FOREACH (&g->lingering, x, struct exec, node)
		free_exec(x);
}
