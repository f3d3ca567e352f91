/* The network that is not there. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "probe.h"

struct address {
	struct sockaddr_storage sa;
	socklen_t len;
};

/* 0, or -1 when the text is no numeric address in any form the library takes. */
static int parse_address(const char *host, const char *port, struct address *ret)
{
	struct addrinfo hints = { .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV };
	struct addrinfo *list = NULL;

	if (getaddrinfo(host, port, &hints, &list) != 0)
		return -1;
	memcpy(&ret->sa, list->ai_addr, list->ai_addrlen);
	ret->len = list->ai_addrlen;
	freeaddrinfo(list);
	return 0;
}

/* Whether anything answers or takes a byte: a refusal by our own loopback does not count. */
static bool answers_tcp(const struct address *a)
{
	int fd = socket(a->sa.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), error = 0;
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	socklen_t n = sizeof(error);
	bool yes = false;

	if (fd < 0)
		return false;
	if (connect(fd, (const struct sockaddr *)&a->sa, a->len) == 0)
		yes = true;
	else if (errno == EINPROGRESS && poll(&p, 1, 300) > 0 &&
		 getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &n) == 0)
		yes = error == 0;
	else if (errno == EINPROGRESS)
		yes = true; /* it went out somewhere and hangs: there is a route */
	(void)close(fd);
	return yes;
}

static bool leaves_udp(const struct address *a)
{
	int fd = socket(a->sa.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0), on = 1;
	bool yes;

	if (fd < 0)
		return false;
	(void)setsockopt(fd, SOL_SOCKET, SO_BROADCAST, &on, sizeof(on));
	yes = sendto(fd, "holt", 4, 0, (const struct sockaddr *)&a->sa, a->len) == 4;
	(void)close(fd);
	return yes;
}

/* reach PORT ADDRESS...: none may answer; a datagram must find no route, but for loopback's. */
static int reach(int argc, char **argv)
{
	static const char *const known[] = {
		"127.0.0.1",
		"127.0.0.2",
		"0.0.0.0",
		"::1",
		"::",
		"::ffff:127.0.0.1",
		"::ffff:169.254.169.254",
		"169.254.169.254",
		"fd00:ec2::254",
		"fe80::1",
		"10.0.0.1",
		"172.17.0.1",
		"192.168.0.1",
		"100.100.100.200",
		"224.0.0.1",
		"255.255.255.255",
		"ff02::1",
		"8.8.8.8",
		"2001:4860:4860::8888",
		"2852039166",
		"0251.0376.0251.0376",
		"0xa9fea9fe",
		"1.1.1.1",
	};
	const char *port = text(argc, argv, 0, "80");
	int total = (int)COUNT(known) + argc - 1;

	for (int i = 0; i < total; i++) {
		const char *host = i < argc - 1 ? argv[i + 1] : known[i - (argc - 1)];
		struct address a;

		if (parse_address(host, port, &a) < 0)
			continue;
		if (answers_tcp(&a))
			return broken("%s port %s answers", host, port);
		if (leaves_udp(&a) && strncmp(host, "127.", 4) != 0 &&
		    strcmp(host, "0.0.0.0") != 0 && !strstr(host, "127.0.0.1") && host[0] != ':')
			return broken("a datagram to %s finds a way", host);
	}
	return held("%d addresses are out of reach", total);
}

static int interfaces(int argc, char **argv)
{
	struct ifreq list[16];
	struct ifconf conf = { .ifc_len = sizeof(list), .ifc_req = list };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	char text_[4096], *p = text_;

	(void)argc, (void)argv;
	if (fd >= 0 && ioctl(fd, SIOCGIFCONF, &conf) == 0)
		for (int i = 0; i < (int)(conf.ifc_len / (int)sizeof(list[0])); i++)
			if (strcmp(list[i].ifr_name, "lo") != 0)
				return broken("interface %s is here", list[i].ifr_name);
	if (fd >= 0) {
		struct ifreq r = { .ifr_name = "lo" };

		r.ifr_flags = 0;
		if (ioctl(fd, SIOCSIFFLAGS, &r) == 0)
			return broken("lo can be taken down");
		(void)snprintf(r.ifr_name, sizeof(r.ifr_name), "tap0");
		if (ioctl(fd, SIOCGIFINDEX, &r) == 0)
			return broken("tap0 is here");
	}
	if (slurp("/proc/net/route", text_, sizeof(text_)) > 0 && (p = strchr(text_, '\n')) && p[1])
		return broken("there is a route: %.100s", p + 1);
	return held("only lo, and no route");
}

static bool local_answers(const char *path, int type)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
	bool yes;

	(void)snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
	yes = fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0;
	if (fd >= 0)
		(void)close(fd);
	return yes;
}

/* Services of the machine that answer on a path. */
static int services(int argc, char **argv)
{
	static const char *const paths[] = {
		"/run/systemd/resolve/io.systemd.Resolve",
		"/run/nscd/socket",
		"/var/run/nscd/socket",
		"/run/dbus/system_bus_socket",
		"/run/avahi-daemon/socket",
		"/run/docker.sock",
		"/var/run/docker.sock",
		"/run/containerd/containerd.sock",
		"/run/systemd/private",
		"/run/systemd/notify",
		"/run/systemd/journal/socket",
		"/dev/log",
		"/run/udev/control",
		"/run/snapd.socket",
		"/run/lxd.socket",
		"/var/run/postgresql/.s.PGSQL.5432",
		"/tmp/.X11-unix/X0",
		"/run/user/0/bus",
		"/run/user/1000/bus",
		"/run/acpid.socket",
	};

	(void)argc, (void)argv;
	for (size_t i = 0; i < COUNT(paths); i++)
		if (access(paths[i], F_OK) == 0 || local_answers(paths[i], SOCK_STREAM) ||
		    local_answers(paths[i], SOCK_DGRAM))
			return broken("%s is here", paths[i]);
	return held("%zu services are not here", COUNT(paths));
}

static int dns(int argc, char **argv)
{
	struct addrinfo *list = NULL;
	char conf[4096], *p = conf;
	int r = getaddrinfo("example.com", "80", NULL, &list);

	(void)argc, (void)argv;
	if (r == 0)
		return broken("example.com has an address");
	if (slurp("/etc/resolv.conf", conf, sizeof(conf)) > 0)
		for (; (p = strstr(p, "nameserver")); p++) {
			char server[64];
			struct address a;

			if (sscanf(p, "nameserver %63s", server) == 1 &&
			    parse_address(server, "53", &a) == 0 &&
			    strncmp(server, "127.", 4) != 0 && leaves_udp(&a))
				return broken("nameserver %s is in reach", server);
		}
	return held("no name has an address: %s", gai_strerror(r));
}

static int listener(int family, int type, uint16_t port)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	int fd = socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1, r;

	if (fd < 0)
		return -1;
	if (family == AF_INET6)
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
	r = family == AF_INET ? bind(fd, (struct sockaddr *)&v4, sizeof(v4))
			      : bind(fd, (struct sockaddr *)&v6, sizeof(v6));
	if (r < 0 || (type == SOCK_STREAM && listen(fd, 8) < 0))
		return -1;
	return fd;
}

/* listen PORT MS: broken when anybody comes, for all who could come are outside. */
static int listen_(int argc, char **argv)
{
	uint16_t port = (uint16_t)number(argc, argv, 0, 4242);
	struct pollfd p[4] = { { .fd = listener(AF_INET, SOCK_STREAM, port) },
			       { .fd = listener(AF_INET, SOCK_DGRAM, port) },
			       { .fd = listener(AF_INET6, SOCK_STREAM, port) },
			       { .fd = listener(AF_INET6, SOCK_DGRAM, port) } };

	if (p[0].fd < 0 || p[1].fd < 0)
		return broken("port %u is not free in here: %s", port, strerror(errno));
	for (int i = 0; i < 4; i++)
		p[i].events = POLLIN;
	puts("ready");
	fflush(stdout);
	if (poll(p, 4, (int)number(argc, argv, 1, 1000)) > 0)
		return broken("somebody came to port %u", port);
	return held("nobody came to port %u", port);
}

/* One's own loopback works, and is one's own. */
static int loopback(int argc, char **argv)
{
	uint16_t port = (uint16_t)number(argc, argv, 0, 4242);
	int fd = listener(AF_INET, SOCK_STREAM, port);
	struct address a;
	char text_[16];

	(void)snprintf(text_, sizeof(text_), "%u", port);
	if (fd < 0 || parse_address("127.0.0.1", text_, &a) < 0)
		return broken("port %u is not free in here: %s", port, strerror(errno));
	if (!answers_tcp(&a))
		return not_here("loopback does not work");
	sleep_ms(20);
	if (accept4(fd, NULL, NULL, 0) < 0)
		return broken("the connection went elsewhere: %s", strerror(errno));
	return held("port %u is this box's own", port);
}

const struct probe probes_net[] = {
	{ "reach", reach }, { "interfaces", interfaces }, { "services", services },
	{ "dns", dns },     { "listen", listen_ },        { "loopback", loopback },
	{ NULL, NULL },
};
