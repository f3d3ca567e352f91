#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "guest/fileop.h"
#include "guest/guest.h"
#include "guest/home.h"
#include "guest/path.h"
#include "guest/user.h"

#define CANCEL_PATIENCE_MS 500
#define ORPHAN_PATIENCE_MS 5000 /* nobody waits: time enough to leave nothing behind */
/* The client's window in the smallest frames there are. */
#define RELAY_QUEUE_MAX (GUEST_WINDOW * (sizeof(struct wire_head) + 1) + WIRE_FRAME_MAX)

/* A file operation's process and the frames on their way to it. */
struct relay {
	struct list node;
	struct guest *guest; /* borrowed */
	uint32_t id;
	pid_t pid; /* 0 once reaped */
	struct source sock;
	struct buf queue; /* whole frames for the process */
	struct deadline deadline;
	bool is_watch; /* its first G_DONE says "armed" and ends nothing */
	bool is_cancelled;
	bool is_orphan; /* its client is gone: what it says is dropped */
};

static struct relay *relay_free(struct relay *r)
{
	struct guest *g = r->guest;

	/* Not reaped, so the number is still its own. */
	if (r->pid > 0)
		(void)kill(r->pid, SIGKILL);
	source_close(g->epoll_fd, &r->sock);
	deadline_clear(&r->deadline);
	buf_done(&r->queue);
	list_remove(&r->node);
	g->n_relays--;
	free(r);
	return NULL;
}

static void end_with_error(struct relay *r)
{
	if (r->is_orphan)
		; /* nobody asks */
	else if (r->is_cancelled)
		conn_send_error(&r->guest->conn, r->id, ECANCELED, "cancelled");
	else
		conn_send_error(&r->guest->conn, r->id, EIO, "the file operation was killed");
	(void)relay_free(r);
}

static bool is_for_client(uint16_t type)
{
	static const uint16_t types[] = { G_ENTRY, G_FOUND, G_DATA, G_EVENT,
					  G_TAKEN, G_DONE,  G_ERROR };

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (types[i] == type)
			return true;
	return false;
}

/* Hands one frame of the process on. True when there is nothing more to come. */
static bool hand_on(struct relay *r)
{
	uint8_t frame[WIRE_FRAME_MAX];
	struct wire_head head;
	size_t no_fds = 0;
	struct rd payload;
	ssize_t n = fd_recv(r->sock.fd, frame, sizeof(frame), NULL, &no_fds);

	if (n == -EAGAIN)
		return false;
	if (n <= 0 || wire_open(frame, (size_t)n, &head, &payload) < 0 || head.id != r->id ||
	    !is_for_client(head.type)) {
		end_with_error(r);
		return true;
	}
	if (!r->is_orphan)
		conn_send(&r->guest->conn, frame, n);
	if (head.type == G_DONE && r->is_watch) {
		r->is_watch = false;
		return false;
	}
	if (head.type != G_DONE && head.type != G_ERROR)
		return false;
	(void)relay_free(r);
	return true;
}

/* What nobody hears needs no room in the control socket. */
static bool can_hand_on(const struct relay *r)
{
	return r->is_orphan || !r->guest->conn.is_blocked;
}

static void update(struct relay *r)
{
	uint32_t events = r->queue.len > 0 ? EPOLLOUT : 0;

	events |= can_hand_on(r) ? EPOLLIN : 0;
	(void)source_want(r->guest->epoll_fd, &r->sock, events);
}

static void flush_queue(struct relay *r)
{
	while (r->queue.len > 0) {
		struct wire_head head;
		size_t n;

		memcpy(&head, r->queue.data, sizeof(head));
		n = sizeof(head) + head.len;
		if (fd_send(r->sock.fd, r->queue.data, n, NULL, 0) == -EAGAIN)
			return;
		buf_drop(&r->queue, n); /* a send that failed otherwise will show as the end */
	}
}

static void on_sock(struct source *s, uint32_t events)
{
	struct relay *r = LIST_ENTRY(s, struct relay, sock);

	if (events & EPOLLOUT)
		flush_queue(r);
	if ((events & ~(uint32_t)EPOLLOUT) && can_hand_on(r) && hand_on(r))
		return;
	update(r);
}

static void on_patience_over(struct deadline *d)
{
	struct relay *r = LIST_ENTRY(d, struct relay, deadline);

	if (r->pid > 0)
		(void)kill(r->pid, SIGKILL); /* its socket ends, and that ends the rest */
}

/* Files of others are made by root, who becomes them one by one; where there is no root, by the
 * only user there is. */
static bool makes_others(const struct guest_file *f)
{
	return f->op == FILE_TAR_PUT && (f->flags & FILE_OWNERS);
}

static const char *whose(const struct guest_file *f)
{
	if (!makes_others(f))
		return f->user;
	return getuid() == 0 ? "0" : "";
}

static int become(const struct guest_file *f, const struct user *u)
{
	if (makes_others(f))
		return user_take_ids(u);
	return f->flags & FILE_AS_ROOT ? user_become_with_root(u) : user_become(u);
}

static void refuse_operation(const struct relay *r, int sock, int code, const char *text)
{
	uint8_t frame[512];
	long n = guest_put_error(frame, sizeof(frame), r->id, code, text);

	if (n > 0)
		(void)fd_send(sock, frame, (size_t)n, NULL, 0);
}

struct homely { /* texts of paths as seen from the user's home */
	char path[PATH_BYTES], target[PATH_BYTES];
	struct buf sources;
};

static int find_sources(struct guest_file *f, const struct user *u, struct homely *h,
			struct err *err)
{
	const char *p = f->sources;
	int r = 0;

	for (; r == 0 && p < f->sources + f->sources_len; p += strlen(p) + 1) {
		r = home_resolve(u->home, p, h->target, err);
		if (r == 0)
			r = buf_append(&h->sources, h->target, strlen(h->target) + 1);
	}
	f->sources = buf_str(&h->sources);
	f->sources_len = h->sources.len;
	return r;
}

static int find_home(struct guest_file *f, const struct user *u, struct homely *h, struct err *err)
{
	int r = 0;

	if (!(f->flags & FILE_AT_HOME))
		return 0;
	if (f->op == FILE_COMPOSE)
		r = find_sources(f, u, h, err);
	if (r == 0)
		r = home_resolve(u->home, f->path, h->path, err);
	f->path = h->path;
	if (r < 0 || f->op != FILE_RENAME)
		return r;
	r = home_resolve(u->home, f->target, h->target, err);
	f->target = h->target;
	return r;
}

/* What the paths are below. */
static int open_root(const struct guest_file *f)
{
	_close_ int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (root < 0 || !(f->flags & FILE_BELOW))
		return root < 0 ? -errno : TAKE_FD(root);
	return path_open(root, f->target, O_PATH | O_DIRECTORY, NULL);
}

static _Noreturn void run_operation(const struct relay *r, int sock, const struct guest_file *f,
				    const struct user *u)
{
	int root = open_root(f);
	int lock = r->guest->lock_fd;
	struct guest_file own = *f;
	struct homely home = { 0 };
	struct err err = { 0 };
	sigset_t none;

	if (root < 0) {
		refuse_operation(r, sock, -root, "the root of the path cannot be opened");
		_exit(1);
	}
	if (f->flags & FILE_BELOW)
		own.target = ""; /* which else means something to some */
	fd_close_others(STDERR_FILENO + 1, (const int[]){ sock, root, lock }, 3);
	if (become(f, u) < 0) {
		refuse_operation(r, sock, errno, "the user is not one of this box");
		_exit(1);
	}
	if (find_home(&own, u, &home, &err) < 0) {
		refuse_operation(r, sock, err.code, err.text);
		_exit(1);
	}
	(void)signal(SIGPIPE, SIG_IGN);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	_exit(fileop_run(sock, r->id, &own, root, lock));
}

/* Gives names to files or takes them. */
static bool takes_names(uint8_t op)
{
	return op == FILE_WRITE || op == FILE_REPLACE || op == FILE_RENAME || op == FILE_REMOVE ||
	       op == FILE_TAR_PUT || op == FILE_COMPOSE;
}

/* Our end does not wait, the operation's does. */
static int fork_operation(struct relay *r, const struct guest_file *f, const struct user *u,
			  struct err *err)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(err, errno, "make a socket pair");
	r->sock.fd = pair[0];
	(void)fd_nonblock(pair[0], true);
	/* Not before it is wanted: most boxes never write a file. */
	if (takes_names(f->op) && r->guest->lock_fd < 0)
		r->guest->lock_fd = memfd_create("lock", MFD_CLOEXEC);
	r->pid = fork();
	if (r->pid == 0)
		run_operation(r, pair[1], f, u);
	(void)fd_close(pair[1]);
	if (r->pid < 0) {
		r->pid = 0;
		return err_sys(err, errno, "start a file operation");
	}
	return 0;
}

static struct relay *relay_create(struct guest *g, uint32_t id, bool is_watch)
{
	struct relay *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->guest = g;
	r->id = id;
	r->is_watch = is_watch;
	source_init(&r->sock, -1, on_sock);
	deadline_init(&r->deadline, on_patience_over);
	buf_init(&r->queue, RELAY_QUEUE_MAX);
	list_push_back(&g->relays, &r->node);
	g->n_relays++;
	return r;
}

static int start(struct guest *g, uint32_t id, const struct guest_file *f, struct err *err)
{
	struct relay *r;
	struct user u;
	int e;

	if (g->n_relays >= GUEST_RELAYS_MAX)
		return err_set(err, E2BIG, "too many file operations at once in this box");
	e = user_load_again(&g->warm.user, whose(f), &u, err);
	if (e < 0)
		return e;
	r = relay_create(g, id, f->op == FILE_WATCH);
	if (!r)
		return err_sys(err, ENOMEM, "start a file operation");
	e = fork_operation(r, f, &u, err);
	if (e < 0) {
		(void)relay_free(r);
		return e;
	}
	g->is_childless = false;
	update(r);
	return 0;
}

void relay_start(struct guest *g, uint32_t id, const struct guest_file *f)
{
	struct err err = { 0 };
	int e = start(g, id, f, &err);

	if (e < 0)
		conn_send_error(&g->conn, id, e, err.text);
}

struct relay *relay_find(struct guest *g, uint32_t id)
{
	LIST_FOREACH (&g->relays, r, struct relay, node)
		if (r->id == id && !r->is_orphan)
			return r;
	return NULL;
}

bool relay_has_pid(const struct guest *g, pid_t pid)
{
	LIST_FOREACH (&g->relays, r, struct relay, node)
		if (r->pid == pid)
			return true;
	return false;
}

int relay_pass(struct relay *r, const void *frame, size_t n)
{
	int e = buf_append(&r->queue, frame, n);

	if (e < 0)
		return -EPROTO; /* more than the window allows */
	flush_queue(r);
	update(r);
	return 0;
}

int relay_cancel(struct relay *r)
{
	uint8_t frame[32];
	long n = guest_put_raw(frame, sizeof(frame), G_CANCEL, r->id, NULL, 0);

	if (r->is_cancelled || n < 0)
		return 0;
	r->is_cancelled = true;
	deadline_set(&r->guest->deadlines, &r->deadline, clock_now_ms() + CANCEL_PATIENCE_MS);
	return relay_pass(r, frame, (size_t)n);
}

/* The end of its socket says it: no queue in front of that, and no room to be waited for. */
static void orphan(struct relay *r)
{
	r->is_orphan = true;
	buf_clear(&r->queue);
	(void)shutdown(r->sock.fd, SHUT_WR);
	if (!r->is_cancelled)
		deadline_set(&r->guest->deadlines, &r->deadline,
			     clock_now_ms() + ORPHAN_PATIENCE_MS);
	update(r);
}

void relay_lose_client(struct guest *g)
{
	LIST_FOREACH (&g->relays, r, struct relay, node)
		if (!r->is_orphan)
			orphan(r);
}

bool relay_reaped(struct guest *g, pid_t pid)
{
	LIST_FOREACH (&g->relays, r, struct relay, node)
		if (r->pid == pid) {
			r->pid = 0; /* its last frames may still be in the socket */
			return true;
		}
	return false;
}

void relay_resume_all(struct guest *g)
{
	LIST_FOREACH (&g->relays, r, struct relay, node)
		update(r);
}

void relay_free_all(struct guest *g)
{
	LIST_FOREACH (&g->relays, r, struct relay, node)
		(void)relay_free(r);
}
