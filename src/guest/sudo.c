#include "guest/sudo.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "guest/guest.h"

#define BACKLOG 16
#define LISTEN_AGAIN_MS 100

static pid_t *find_place(struct sudo *s, pid_t pid)
{
	for (size_t i = 0; i <= SUDO_MAX; i++)
		if (s->pids[i] == pid)
			return &s->pids[i];
	return NULL;
}

static void pause_listening(struct guest *g)
{
	(void)source_want(g->epoll_fd, &g->sudo.listener, 0);
	deadline_set(&g->deadlines, &g->sudo.again, clock_now_ms() + LISTEN_AGAIN_MS);
}

/* told: closed when the connection is ours. */
static _Noreturn void accept_one(int listener, int told, bool is_full)
{
	int conn = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

	(void)close(told);
	if (conn < 0)
		_exit(0); /* he did not wait */
	sudo_serve(conn, is_full);
}

/* One at a time, so that no second process is started for the same connection. Who comes meanwhile,
 * or while there is no process to be had, waits in the socket's line. */
static void on_listener(struct source *s, uint32_t events)
{
	struct guest *g = LIST_ENTRY(s, struct guest, sudo.listener);
	pid_t *place = find_place(&g->sudo, 0);
	int told[2];

	(void)events;
	if (!place || pipe2(told, O_CLOEXEC) < 0) {
		pause_listening(g);
		return;
	}
	*place = fork();
	if (*place == 0)
		accept_one(s->fd, told[1], place == &g->sudo.pids[SUDO_MAX]);
	(void)close(told[1]);
	g->sudo.accepting.fd = told[0];
	if (*place < 0 || source_want(g->epoll_fd, &g->sudo.accepting, EPOLLIN) < 0) {
		*place = *place < 0 ? 0 : *place;
		source_close(g->epoll_fd, &g->sudo.accepting);
		pause_listening(g);
		return;
	}
	(void)source_want(g->epoll_fd, s, 0);
	g->is_childless = false;
}

static void on_accepted(struct source *s, uint32_t events)
{
	struct guest *g = LIST_ENTRY(s, struct guest, sudo.accepting);

	(void)events;
	source_close(g->epoll_fd, s);
	(void)source_want(g->epoll_fd, &g->sudo.listener, EPOLLIN);
}

static void on_again(struct deadline *d)
{
	struct guest *g = LIST_ENTRY(d, struct guest, sudo.again);

	(void)source_want(g->epoll_fd, &g->sudo.listener, EPOLLIN);
}

void sudo_init(struct guest *g)
{
	g->sudo = (struct sudo){ 0 };
	source_init(&g->sudo.listener, -1, on_listener);
	source_init(&g->sudo.accepting, -1, on_accepted);
	deadline_init(&g->sudo.again, on_again);
}

int sudo_open(struct guest *g, struct err *err)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX, .sun_path = SUDO_PATH };
	_close_ int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return err_sys(err, errno, "socket of sudo");
	/* Who may is looked at when he is there. */
	if (bind(fd, (struct sockaddr *)&name, sizeof(name)) < 0 || chmod(SUDO_PATH, 0666) < 0 ||
	    listen(fd, BACKLOG) < 0)
		return err_sys(err, errno, "socket of sudo");
	g->sudo.listener.fd = TAKE_FD(fd);
	return source_want(g->epoll_fd, &g->sudo.listener, EPOLLIN);
}

bool sudo_reaped(struct guest *g, pid_t pid)
{
	pid_t *place = find_place(&g->sudo, pid);

	if (pid <= 0 || !place)
		return false;
	*place = 0;
	return true;
}

void sudo_done(struct guest *g)
{
	deadline_clear(&g->sudo.again);
	source_close(g->epoll_fd, &g->sudo.accepting);
	/* The listener goes when we do: in its line may be descriptors that take long to close. */
}
