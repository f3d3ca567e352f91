#include "guest/bridge.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include "guest/guest.h"
#include "guest/user.h"

#define BACKLOG 64
#define LISTEN_AGAIN_MS 100

static pid_t *find_place(struct bridge *b, pid_t pid)
{
	for (size_t i = 0; i < BRIDGE_MAX; i++)
		if (b->pids[i] == pid)
			return &b->pids[i];
	return NULL;
}

/* One at a time, so that no second process is started for the same connection, and none for one
 * that could not be told of. */
static void update(struct guest *g)
{
	struct bridge *b = &g->bridge;
	bool is_free = b->id != 0 && b->coming.fd < 0 && b->out < 0 && conn_is_free(&g->conn);

	(void)source_want(g->epoll_fd, &b->listener, is_free ? EPOLLIN : 0);
}

static void pause_listening(struct guest *g)
{
	(void)source_want(g->epoll_fd, &g->bridge.listener, 0);
	deadline_set(&g->deadlines, &g->bridge.again, clock_now_ms() + LISTEN_AGAIN_MS);
}

static int start_carrier(struct guest *g, pid_t *place)
{
	struct err err = { 0 };
	struct user u;
	int pair[2], r;

	r = user_load_again(&g->warm.user, "", &u, &err);
	if (r < 0)
		return r;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
		return -errno;
	*place = fork();
	if (*place == 0)
		carry_one(g->bridge.listener.fd, pair[1], &u);
	(void)close(pair[1]);
	g->bridge.coming.fd = pair[0];
	r = *place < 0 ? -errno : source_want(g->epoll_fd, &g->bridge.coming, EPOLLIN);
	if (*place < 0)
		*place = 0;
	if (r < 0)
		source_close(g->epoll_fd, &g->bridge.coming); /* which ends him */
	g->is_childless = false;
	return r;
}

static void on_listener(struct source *s, uint32_t events)
{
	struct guest *g = LIST_ENTRY(s, struct guest, bridge.listener);
	pid_t *place = find_place(&g->bridge, 0);

	(void)events;
	if (!place || start_carrier(g, place) < 0)
		pause_listening(g);
	else
		update(g);
}

static void hand_out(struct guest *g)
{
	struct bridge *b = &g->bridge;
	uint8_t frame[32];
	int r = conn_send_fd(&g->conn, frame,
			     guest_put_raw(frame, sizeof(frame), G_SOCKET, b->id, NULL, 0), b->out);

	if (r != -EAGAIN)
		b->out = fd_close(b->out);
}

/* It has its connection, or there was none to be had. */
static void on_coming(struct source *s, uint32_t events)
{
	struct guest *g = LIST_ENTRY(s, struct guest, bridge.coming);
	size_t n_fds = 1;
	char byte;
	int fd = -1;

	(void)events;
	if (fd_recv(s->fd, &byte, 1, &fd, &n_fds) > 0 && n_fds == 1)
		g->bridge.out = fd;
	source_close(g->epoll_fd, s);
	if (g->bridge.out >= 0)
		hand_out(g);
	update(g);
}

static void on_again(struct deadline *d)
{
	update(LIST_ENTRY(d, struct guest, bridge.again));
}

void bridge_init(struct guest *g)
{
	g->bridge = (struct bridge){ .out = -1 };
	source_init(&g->bridge.listener, -1, on_listener);
	source_init(&g->bridge.coming, -1, on_coming);
	deadline_init(&g->bridge.again, on_again);
}

/* With the user's rights over files, for a moment: what lies on the way was put there by him. */
static void act_as(uint32_t uid, uint32_t gid)
{
	if (uid == 0) {
		(void)syscall(SYS_setfsuid, uid);
		(void)syscall(SYS_setfsgid, gid);
	} else {
		(void)syscall(SYS_setfsgid, gid);
		(void)syscall(SYS_setfsuid, uid);
	}
}

static int make_parent(const struct sockaddr_un *where)
{
	char dir[sizeof(where->sun_path)];
	char *slash;

	(void)str_copy(dir, sizeof(dir), where->sun_path);
	slash = strrchr(dir, '/');
	if (!slash || slash == dir)
		return 0;
	*slash = '\0';
	return mkdir(dir, 0755) < 0 && errno != EEXIST ? -errno : 0;
}

static int open_listener(const struct sockaddr_un *where, const struct user *u)
{
	_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int r;

	/* A new socket has the mode that its descriptor has. */
	if (fd < 0 || fchmod(fd, 0600) < 0)
		return -errno;
	act_as(u->uid, u->gid);
	r = make_parent(where);
	if (r == 0) {
		(void)unlink(where->sun_path); /* of a box that went on from a copy of this one */
		if (bind(fd, (const struct sockaddr *)where, sizeof(*where)) < 0)
			r = -errno;
	}
	act_as(geteuid(), getegid());
	if (r == 0 && listen(fd, BACKLOG) < 0)
		r = -errno;
	return r < 0 ? r : TAKE_FD(fd);
}

static int open_at(struct guest *g, const char *path, struct err *err)
{
	struct sockaddr_un where = { .sun_family = AF_UNIX };
	struct bridge *b = &g->bridge;
	struct user u;
	int r;

	if (b->id != 0)
		return err_set(err, EBUSY, "the box has its socket already");
	if (str_copy(where.sun_path, sizeof(where.sun_path), path) < 0)
		return err_set(err, ENAMETOOLONG, "socket %.100s", path);
	if (b->listener.fd >= 0) /* it is never closed: see sudo_done() */
		return strcmp(b->where.sun_path, where.sun_path) == 0
			       ? 0
			       : err_set(err, EBUSY, "the box has a socket elsewhere");
	r = user_load_again(&g->warm.user, "", &u, err);
	if (r < 0)
		return r;
	r = open_listener(&where, &u);
	if (r < 0)
		return err_sys(err, r, "socket %s", path);
	b->listener.fd = r;
	b->where = where;
	return 0;
}

void bridge_listen(struct guest *g, uint32_t id, const struct guest_connect *c)
{
	struct err err = { 0 };
	int r = open_at(g, c->path, &err);

	if (r < 0) {
		conn_send_error(&g->conn, id, r, err.text);
		return;
	}
	g->bridge.id = id;
	conn_send_u64(&g->conn, G_DONE, id, 0);
	update(g);
}

bool bridge_has(const struct guest *g, uint32_t id)
{
	return id != 0 && g->bridge.id == id;
}

void bridge_cancel(struct guest *g)
{
	conn_send_error(&g->conn, g->bridge.id, ECANCELED, "cancelled");
	bridge_lose_client(g);
}

void bridge_resume(struct guest *g)
{
	if (g->bridge.out >= 0 && conn_is_free(&g->conn))
		hand_out(g);
	update(g);
}

void bridge_lose_client(struct guest *g)
{
	struct bridge *b = &g->bridge;

	b->id = 0;
	b->out = fd_close(b->out);
	source_close(g->epoll_fd, &b->coming);
	deadline_clear(&b->again);
	update(g);
}

bool bridge_reaped(struct guest *g, pid_t pid)
{
	pid_t *place = find_place(&g->bridge, pid);

	if (pid <= 0 || !place)
		return false;
	*place = 0;
	return true;
}

void bridge_done(struct guest *g)
{
	bridge_lose_client(g);
}
