#include "guest/loop.h"

#include <errno.h>
#include <stddef.h>
#include <sys/epoll.h>

#include "base/fd.h"

void source_init(struct source *s, int fd, void (*ready)(struct source *s, uint32_t events))
{
	*s = (struct source){ .fd = fd, .ready = ready };
}

int source_want(int epoll_fd, struct source *s, uint32_t events)
{
	struct epoll_event e = { .events = events, .data.ptr = s };
	int op = events == 0 ? EPOLL_CTL_DEL : s->events == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;

	if (s->fd < 0 || s->events == events)
		return 0;
	if (epoll_ctl(epoll_fd, op, s->fd, &e) < 0)
		return -errno;
	s->events = events;
	return 0;
}

void source_close(int epoll_fd, struct source *s)
{
	/* A duplicate elsewhere (a child on its way to exec) would keep a closed one in the set. */
	(void)source_want(epoll_fd, s, 0);
	s->fd = fd_close(s->fd);
}

int source_wait(int epoll_fd, int timeout_ms)
{
	struct epoll_event e;
	struct source *s;
	int n = epoll_wait(epoll_fd, &e, 1, timeout_ms);

	if (n < 0)
		return -errno;
	if (n == 0)
		return 0;
	s = e.data.ptr;
	s->ready(s, e.events);
	return 0;
}
