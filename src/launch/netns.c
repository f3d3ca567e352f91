#include "launch/netns.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include "launch/process.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* Every counter of a network namespace that a program in it can move: packets and connections of
 * each protocol, and of the loopback device; and sockets in the file system's name space, which
 * move none. Connections that linger have moved counters. (To read /proc/net/tcp takes the kernel
 * milliseconds: it walks the hash table of the whole machine.) */
static const char *const evidence[] = {
	"dev", "snmp", "snmp6", "netstat", "unix", "packet", "igmp"
};

static int read_evidence(struct netns *n, struct buf *ret)
{
	buf_clear(ret);
	for (size_t i = 0; i < COUNT(evidence); i++) {
		char path[40];
		_close_ int fd = -1;
		int r;

		(void)str_format(path, sizeof(path), "thread-self/net/%s", evidence[i]);
		fd = openat(n->proc_fd, path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			continue; /* this kernel keeps no such table */
		r = fd_slurp(fd, ret);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Programs expect localhost to work, also without a network. */
static int loopback_up(void)
{
	struct ifreq req = { .ifr_name = "lo" };
	_close_ int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (sock < 0)
		return -errno;
	req.ifr_flags = IFF_UP | IFF_RUNNING;
	return ioctl(sock, SIOCSIFFLAGS, &req) < 0 ? -errno : 0;
}

/* Connections that linger are charged to no control group. Where the limit cannot be set (old
 * kernels, without root), the kernel's own holds: 131072. */
static void bound_lingering(const struct netns *n)
{
	(void)fd_write_file_at(n->proc_fd, "sys/net/ipv4/tcp_max_tw_buckets", NETNS_LINGERING_MAX);
}

static int current(struct netns *n)
{
	return openat(n->proc_fd, "thread-self/ns/net", O_RDONLY | O_CLOEXEC);
}

static int go_back(const struct netns *n)
{
	return setns(n->host_fd, CLONE_NEWNET) < 0 ? -errno : 0;
}

/* Goes into a new one and comes back. */
static int make_here(struct netns *n, struct err *err)
{
	int fd = -1, r = unshare(CLONE_NEWNET) < 0 ? -errno : loopback_up();

	if (r == 0)
		bound_lingering(n);
	if (r == 0 && n->fresh.len == 0 && read_evidence(n, &n->fresh) < 0)
		buf_clear(&n->fresh); /* then none is ever recycled */
	if (r == 0)
		r = fd = current(n);
	if (go_back(n) < 0 && r >= 0) {
		(void)close(fd);
		r = -EPERM;
	}
	return r < 0 ? err_sys(err, r, "network namespace") : fd;
}

/* Who cannot come back lets another process go. */
static int make_apart(struct netns *n, struct err *err)
{
	int pair[2], fd = -1;
	char word = 0;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(err, errno, "network namespace");
	pid = fork();
	if (pid == 0) {
		(void)close(pair[0]);
		bool is_made = unshare(CLONE_NEWNET) == 0 && loopback_up() == 0;

		if (is_made)
			bound_lingering(n);
		if (is_made && send(pair[1], "n", 1, 0) == 1)
			(void)recv(pair[1], &word, 1, 0); /* until it has been opened */
		_exit(0);
	}
	(void)close(pair[1]);
	if (pid > 0 && process_hear(pair[0], PROCESS_HELPER_MS) < 0)
		(void)kill(pid, SIGKILL);
	else if (pid > 0 && recv(pair[0], &word, 1, 0) == 1)
		fd = netns_of(n, pid);
	(void)close(pair[0]);
	if (pid > 0) /* one that does not end is reaped when it does */
		(void)process_reap(pid, PROCESS_KILLED_MS);
	return fd < 0 ? err_set(err, EPERM, "network namespace: could not be made") : fd;
}

static int make(struct netns *n, struct err *err)
{
	return n->can_return ? make_here(n, err) : make_apart(n, err);
}

int netns_init(struct netns *n, int proc_fd, unsigned want, struct err *err)
{
	*n = (struct netns){ .proc_fd = proc_fd, .host_fd = -1 };
	n->want = want < NETNS_STOCK_MAX ? want : NETNS_STOCK_MAX;
	buf_init(&n->fresh, 256u << 10);
	buf_init(&n->seen, 256u << 10);
	n->host_fd = current(n);
	if (n->host_fd < 0)
		return err_sys(err, errno, "network namespace of the machine");
	n->can_return = go_back(n) == 0; /* into what we are in: a matter of rights */
	return 0;
}

void netns_done(struct netns *n)
{
	while (n->count > 0)
		(void)close(n->stock[--n->count]);
	n->host_fd = fd_close(n->host_fd);
	buf_done(&n->fresh);
	buf_done(&n->seen);
}

int netns_take(struct netns *n, struct err *err)
{
	return n->count > 0 ? n->stock[--n->count] : make(n, err);
}

int netns_of(struct netns *n, int pid)
{
	char path[32];

	(void)str_format(path, sizeof(path), "%d/ns/net", pid);
	return openat(n->proc_fd, path, O_RDONLY | O_CLOEXEC);
}

static bool looks_new(struct netns *n, int fd)
{
	bool is_same = setns(fd, CLONE_NEWNET) == 0 && read_evidence(n, &n->seen) == 0 &&
		       n->seen.len == n->fresh.len &&
		       memcmp(n->seen.data, n->fresh.data, n->seen.len) == 0;

	return go_back(n) == 0 && is_same;
}

bool netns_recycle(struct netns *n, int fd)
{
	_close_ int owned = fd;

	if (fd < 0 || !n->can_return || n->count >= n->want || n->fresh.len == 0 ||
	    !looks_new(n, fd))
		return false;
	n->stock[n->count++] = TAKE_FD(owned);
	return true;
}

bool netns_refill(struct netns *n)
{
	int fd = n->count >= n->want ? -1 : make(n, NULL);

	if (fd < 0)
		return false;
	n->stock[n->count++] = fd;
	return true;
}
