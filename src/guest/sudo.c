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
	for (size_t i = 0; i < SUDO_MAX; i++)
		if (s->pids[i] == pid)
			return &s->pids[i];
	return NULL;
}

static void pause_listening(struct guest *g)
{
	(void)source_want(g->epoll_fd, &g->sudo.listener, 0);
	deadline_set(&g->deadlines, &g->sudo.again, clock_now_ms() + LISTEN_AGAIN_MS);
}

/* Who comes waits in the socket's line while there is no place, no process or no descriptor for
 * him. Descriptors that are sent along are never ours: to close one may take as long as its sender
 * likes. */
static void on_listener(struct source *s, uint32_t events)
{
	struct guest *g = LIST_ENTRY(s, struct guest, sudo.listener);
	pid_t *place = find_place(&g->sudo, 0);
	_close_ int conn = place ? accept4(s->fd, NULL, NULL, SOCK_CLOEXEC) : -1;

	(void)events;
	if (place && conn < 0 && (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED))
		return;
	if (conn < 0) {
		pause_listening(g);
		return;
	}
	*place = fork();
	if (*place == 0)
		sudo_serve(conn);
	if (*place < 0) {
		*place = 0;
		pause_listening(g);
		return;
	}
	g->is_childless = false;
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

	if (!place)
		return false;
	*place = 0;
	return true;
}

void sudo_done(struct guest *g)
{
	deadline_clear(&g->sudo.again);
	source_close(g->epoll_fd, &g->sudo.listener);
}
