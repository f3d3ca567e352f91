/* Socket families and kinds: only Unix, and TCP and UDP over IP, may exist. */
#include <errno.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "probe.h"

/* Everything from AF_UNSPEC to far beyond the last one, but the three that are allowed. */
static int families(int argc, char **argv)
{
	static const long types[] = { SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_SEQPACKET };

	(void)argc, (void)argv;
	for (long family = 0; family < 64; family++) {
		if (family == AF_UNIX || family == AF_INET || family == AF_INET6)
			continue;
		for (size_t i = 0; i < COUNT(types); i++) {
			char what[32];
			struct call c = { what, SYS_socket, { family, types[i], 0 } };
			struct call pair = { what, SYS_socketpair, { family, types[i], 0, 8 } };

			(void)snprintf(what, sizeof(what), "family %ld type %ld", family, types[i]);
			if (!all_refused(&c, 1) || !all_refused(&pair, 1))
				return PROBE_BROKEN;
		}
	}
	return held("61 families refused");
}

static int netlink(int argc, char **argv)
{
	static const char *const names[] = { "route",     "unused", "usersock", "firewall",
					     "sock_diag", "nflog",  "xfrm",     "selinux",
					     "iscsi",     "audit",  "fib",      "connector",
					     "netfilter", "ip6_fw", "dnrtmsg",  "uevent",
					     "generic" };

	(void)argc, (void)argv;
	for (size_t i = 0; i < COUNT(names); i++) {
		struct call raw = { names[i], SYS_socket, { AF_NETLINK, SOCK_RAW, (long)i } };

		if (!all_refused(&raw, 1))
			return PROBE_BROKEN;
	}
	return held("%zu netlink protocols refused", COUNT(names));
}

/* Kinds and transports that IP also carries. */
static int transports(int argc, char **argv)
{
	const struct call calls[] = {
		{ "raw ICMP", SYS_socket, { AF_INET, SOCK_RAW, IPPROTO_ICMP } },
		{ "raw with headers", SYS_socket, { AF_INET, SOCK_RAW, IPPROTO_RAW } },
		{ "raw IPv6", SYS_socket, { AF_INET6, SOCK_RAW, IPPROTO_RAW } },
		{ "ping", SYS_socket, { AF_INET, SOCK_DGRAM, IPPROTO_ICMP } },
		{ "ping IPv6", SYS_socket, { AF_INET6, SOCK_DGRAM, IPPROTO_ICMPV6 } },
		{ "SCTP", SYS_socket, { AF_INET, SOCK_STREAM, 132 } },
		{ "SCTP packets", SYS_socket, { AF_INET, SOCK_SEQPACKET, 132 } },
		{ "sequenced packets", SYS_socket, { AF_INET, SOCK_SEQPACKET, 0 } },
		{ "DCCP", SYS_socket, { AF_INET, 6, 33 } },
		{ "type DCCP", SYS_socket, { AF_INET, 6, 0 } },
		{ "UDP-Lite", SYS_socket, { AF_INET, SOCK_DGRAM, 136 } },
		{ "MPTCP", SYS_socket, { AF_INET, SOCK_STREAM, 262 } },
		{ "packet socket by its old name",
		  SYS_socket,
		  { AF_INET, 10 /* SOCK_PACKET */, 0 } },
		{ "raw, non-blocking", SYS_socket, { AF_INET, SOCK_RAW | SOCK_NONBLOCK, 0 } },
		{ "reliable datagrams", SYS_socket, { AF_INET6, 4 /* SOCK_RDM */, 0 } },
		{ "pair of Internet sockets", SYS_socketpair, { AF_INET, SOCK_STREAM, 0, 8 } },
	};

	(void)argc, (void)argv;
	return refuse_calls(calls, COUNT(calls));
}

/* abstract NAME...: connects to abstract sockets that are bound outside this box. */
static int abstract(int argc, char **argv)
{
	static const int types[] = { SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET };

	for (int i = 0; i < argc; i++)
		for (size_t t = 0; t < COUNT(types); t++) {
			struct sockaddr_un a = { .sun_family = AF_UNIX };
			size_t n = strlen(argv[i]);
			int fd = socket(AF_UNIX, types[t], 0);

			if (fd < 0 || n > sizeof(a.sun_path) - 1)
				return not_here("socket: %s", strerror(errno));
			memcpy(a.sun_path + 1, argv[i], n);
			if (connect(fd, (struct sockaddr *)&a,
				    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n)) ==
			    0)
				return broken("abstract socket %s answers", argv[i]);
			(void)close(fd);
		}
	return held("none of %d abstract sockets answers: %s", argc, strerror(errno));
}

/* Credentials on a message are checked by the kernel: nobody can speak as somebody else. */
static int credentials(int argc, char **argv)
{
	union {
		char space[CMSG_SPACE(sizeof(struct ucred))];
		struct cmsghdr align;
	} control = { { 0 } };
	char byte = 'x';
	struct iovec iov = { &byte, 1 };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = control.space,
			    .msg_controllen = sizeof(control.space) };
	struct ucred fake = { .pid = 1, .uid = 0, .gid = 0 };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	int pair[2], on = 1;

	(void)argc, (void)argv;
	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) < 0)
		return not_here("socketpair: %s", strerror(errno));
	(void)setsockopt(pair[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof(on));
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_CREDENTIALS;
	c->cmsg_len = CMSG_LEN(sizeof(fake));
	memcpy(CMSG_DATA(c), &fake, sizeof(fake));
	if (sendmsg(pair[0], &m, 0) >= 0)
		return broken("can speak as pid 1, uid 0");
	return held("false credentials: %s", strerror(errno));
}

const struct probe probes_socket[] = {
	{ "families", families }, { "netlink", netlink },         { "transports", transports },
	{ "abstract", abstract }, { "credentials", credentials }, { NULL, NULL },
};
