/* What the guest waits for: a descriptor and what to do when it is ready. Level-triggered, one
 * event at a time, so that no event can outlive what it is about. */
#pragma once

#include <stdint.h>

struct source {
	int fd;          /* owned; -1: none */
	uint32_t events; /* waited for: EPOLLIN, EPOLLOUT; 0: not in the set at all */
	void (*ready)(struct source *s, uint32_t events);
};

void source_init(struct source *s, int fd, void (*ready)(struct source *s, uint32_t events));
/* 0 takes it out of the set: a hang-up would be told for ever otherwise. 0 or -errno. */
int source_want(int epoll_fd, struct source *s, uint32_t events);
void source_close(int epoll_fd, struct source *s);
/* Waits for one event and calls its source. 0, also when the time is over, or -errno; -EINTR for a
 * wait that something cut. */
int source_wait(int epoll_fd, int timeout_ms);
