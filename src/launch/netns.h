/* Network namespaces, made ahead. Making one costs more than the rest of a box together, joining
 * one almost nothing. A used one goes back into stock only when nothing in it can be told from a
 * new one; otherwise it is dropped. */
#pragma once

#include <stdbool.h>

#include "base/buf.h"

struct err;

#define NETNS_STOCK_MAX 256
#define NETNS_LINGERING_MAX \
	"4096" /* connections in TIME-WAIT, about 1 MiB of the kernel's memory */

struct netns {
	int proc_fd;     /* borrowed: the machine's /proc */
	int host_fd;     /* owned: the namespace the launcher was born in, and stays in */
	bool can_return; /* into that, from another: without privilege not */
	int stock[NETNS_STOCK_MAX];
	unsigned count, want;
	struct buf fresh; /* what the counters of a new one look like */
	struct buf seen;  /* scratch */
};

int netns_init(struct netns *n, int proc_fd, unsigned want, struct err *err);
void netns_done(struct netns *n);
/* An unused namespace, from stock or new: its descriptor, the caller's. The caller may find itself
 * in another namespace afterwards. */
int netns_take(struct netns *n, struct err *err);
/* The namespace of a box, held beyond its end; -1 when it cannot be had. */
int netns_of(struct netns *n, int pid);
/* Takes fd. True when the namespace was as good as new and is back in stock. */
bool netns_recycle(struct netns *n, int fd);
/* Makes one more when the stock is short; true when it did something. */
bool netns_refill(struct netns *n);
