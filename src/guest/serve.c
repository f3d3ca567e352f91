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
#include "base/str.h"
#include "guest/client.h"
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
		if (!exec_reaped(g, pid, status, &used) && !relay_reaped(g, pid) &&
		    !sudo_reaped(g, pid) && !bridge_reaped(g, pid))
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

static void run_deadlines(struct guest *g, const struct pace_wait *w)
{
	struct deadline *d;

	if (list_is_empty(&g->deadlines)) {
		pace_rest(&g->pace);
		return;
	}
	deadline_delay(&g->deadlines, pace_frozen_ms(&g->pace, w));
	if (deadline_wait_ms(&g->deadlines, w->to_ms) > 0)
		return;
	reap(g); /* what is over already was in time */
	while ((d = deadline_take(&g->deadlines, w->to_ms)))
		d->expired(d);
}

/* -1 without an end. */
static int next_wait_ms(const struct guest *g, uint64_t now_ms)
{
	int ms = deadline_wait_ms(&g->deadlines, now_ms);

	if (g->must_reap_more)
		return 0;
	return ms < PACE_TICK_MS ? ms : PACE_TICK_MS;
}

/* Waits for an event and has it handled. */
static struct pace_wait wait_once(struct guest *g)
{
	uint64_t now_ms = clock_now_ms();
	int ms = next_wait_ms(g, now_ms);
	struct pace_wait w = { .from_ms = now_ms, .asked_ms = ms < 0 ? UINT64_MAX : (uint64_t)ms };
	int r = source_wait(g->epoll_fd, ms);

	w.is_interrupted = r == -EINTR;
	w.to_ms = clock_now_ms();
	if (r < 0 && r != -EINTR)
		guest_fail(g, r, "waiting for events failed");
	return w;
}

static void run(struct guest *g)
{
	while (!g->over) {
		bool was_blocked = g->conn.is_blocked;
		struct pace_wait w = wait_once(g);

		if (g->must_reap_more)
			reap(g);
		run_deadlines(g, &w);
		client_check(g);
		client_update(g, was_blocked);
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

/* Told to the client when the template has asked for modules; the first reason counts. */
static void note_lack(struct guest *g, const struct err *err)
{
	if (g->why_code != 0)
		return;
	g->why_code = err->code;
	(void)str_format(g->why, sizeof(g->why), "%.*s", WHY_MAX, err->text);
}

/* No interpreter is no reason to have no box: it is only slower. */
static void start_interpreters(struct guest *g, const struct guest_options *options)
{
	const char *modules = options->preload_node ? options->preload_node : "";
	struct err err = { 0 };

	if (options->python_fd >= 0)
		(void)warm_adopt_python(&g->warm, options->python_fd, NULL);
	else if (options->preload &&
		 warm_start_python(&g->warm, options->lib_fd, options->preload, &err) < 0)
		note_lack(g, &err);
	if (!options->node)
		return;
	err = (struct err){ 0 };
	if (warm_start_node(&g->warm, guest_new_mark(g), modules, &err) < 0 && modules[0])
		note_lack(g, &err);
}

static void park(struct deadline *d)
{
	warm_park(&LIST_ENTRY(d, struct guest, park)->warm);
}

static void init(struct guest *g, int sock)
{
	*g = (struct guest){ .epoll_fd = -1,
			     .lock_fd = -1,
			     .next_mark = ((uint64_t)getpid() << 32) + 1 };
	g->tree.proc_fd = g->tree.spare_fd = -1;
	client_init(g, sock);
	source_init(&g->signals, -1, on_signal);
	warm_init(&g->warm);
	deadline_init(&g->park, park);
	list_init(&g->execs);
	list_init(&g->lingering);
	list_init(&g->kept);
	list_init(&g->relays);
	list_init(&g->doors);
	list_init(&g->deadlines);
	sudo_init(g);
	bridge_init(g);
	pace_open(&g->pace);
}

static void done(struct guest *g)
{
	exec_free_all(g);
	kept_free_all(g);
	relay_free_all(g);
	door_free_all(g);
	sudo_done(g);
	bridge_done(g);
	warm_done(&g->warm);
	tree_close(&g->tree);
	client_done(g);
	source_close(g->epoll_fd, &g->signals);
	pace_close(&g->pace);
	g->lock_fd = fd_close(g->lock_fd);
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
	if (r == 0 && options->sudo)
		r = sudo_open(&g, &err);
	if (r < 0) {
		guest_fail(&g, r, err.text);
	} else {
		start_interpreters(&g, options);
		client_begin(&g, false);
		run(&g);
	}
	r = g.over < 0 ? g.over : 0;
	done(&g);
	return r;
}
