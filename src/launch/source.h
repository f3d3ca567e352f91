/* Something that epoll watches: the first member of what it belongs to. */
#pragma once

struct launch;

struct source {
	void (*ready)(struct launch *l, struct source *self);
};
