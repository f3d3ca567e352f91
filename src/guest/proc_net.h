/* Lines of /proc/net/tcp and tcp6: which of them are sockets that listen. Sans-I/O. */
#pragma once

#include <netinet/in.h>
#include <stdint.h>

#include "base/str.h"

struct proc_net_socket {
	char address[INET6_ADDRSTRLEN]; /* as people write it */
	uint16_t port;
	uint64_t inode; /* what /proc/PID/fd names it by; 0: it has none */
};

/* 0, -ENOENT for one that does not listen, -EINVAL for what is no such line, as is its heading. */
int proc_net_parse(struct str line, struct proc_net_socket *ret);
