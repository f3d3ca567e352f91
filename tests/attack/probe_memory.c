/* Memory by every way the kernel hands it out. A child takes it, so that the one who is killed for
 * it is not the one who reports. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "probe.h"

#define MIB (1ull << 20)
#define STEP (256u << 10)
#define PAGE 4096u

/* How much has been taken, in bytes, told to the parent as it grows. */
struct taken {
	_Atomic uint64_t bytes;
};
typedef int take_fn(struct taken *t, uint64_t want);

static int take_anonymous(struct taken *t, uint64_t want, int flags)
{
	for (uint64_t n = 0; n < want; n += STEP) {
		char *p = mmap(NULL, STEP, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);

		if (p == MAP_FAILED)
			return errno;
		memset(p, (int)(n >> 18) | 1, STEP);
		t->bytes += STEP;
	}
	return 0;
}

static int take_private(struct taken *t, uint64_t want)
{
	return take_anonymous(t, want, MAP_PRIVATE);
}

static int take_shared(struct taken *t, uint64_t want)
{
	return take_anonymous(t, want, MAP_SHARED);
}

static int take_locked(struct taken *t, uint64_t want)
{
	for (uint64_t n = 0; n < want; n += STEP) {
		char *p = mmap(NULL, STEP, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			       0);

		if (p == MAP_FAILED || mlock(p, STEP) < 0)
			return errno;
		t->bytes += STEP;
	}
	return 0;
}

static int fill_fd(struct taken *t, int fd, uint64_t want)
{
	char block[PAGE * 4];

	memset(block, 'm', sizeof(block));
	for (uint64_t n = 0; n < want; n += sizeof(block)) {
		ssize_t w = write(fd, block, sizeof(block));

		if (w <= 0)
			return w < 0 ? errno : ENOSPC;
		t->bytes += (uint64_t)w;
	}
	return 0;
}

static int take_memfd(struct taken *t, uint64_t want)
{
	int fd = memfd_create("m", MFD_CLOEXEC);

	return fd < 0 ? errno : fill_fd(t, fd, want);
}

static int take_shm(struct taken *t, uint64_t want)
{
	int fd = open("/dev/shm/m", O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	return fd < 0 ? errno : fill_fd(t, fd, want);
}

static int take_tmp(struct taken *t, uint64_t want)
{
	int fd = open("/tmp/m", O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	return fd < 0 ? errno : fill_fd(t, fd, want);
}

static int take_sysv(struct taken *t, uint64_t want)
{
	for (uint64_t n = 0; n < want; n += 4 * MIB) {
		int id = shmget(IPC_PRIVATE, 4 * MIB, IPC_CREAT | 0600);
		char *p = id < 0 ? NULL : shmat(id, NULL, 0);

		if (!p || P(p) == -1)
			return errno;
		for (uint64_t k = 0; k < 4 * MIB; k += PAGE, t->bytes += PAGE)
			p[k] = 1;
	}
	return 0;
}

/* A reader that never reads: fills one end and goes on to the next pair. */
static int fill_pairs(struct taken *t, uint64_t want, int (*make)(int fds[2]))
{
	char block[65536];
	int fds[2];

	memset(block, 'p', sizeof(block));
	while (t->bytes < want && make(fds) == 0) {
		ssize_t n;

		(void)fcntl(fds[1], F_SETFL, O_NONBLOCK);
		while (t->bytes < want && (n = write(fds[1], block, sizeof(block))) > 0)
			t->bytes += (uint64_t)n;
	}
	return errno;
}

/* The fd limit is per process, so several of them. */
static int many_fill(struct taken *t, uint64_t want, int (*make)(int fds[2]))
{
	for (int i = 0; i < 12; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			(void)fill_pairs(t, want, make);
			(void)pause();
			_exit(0);
		}
	}
	for (int idle = 0; idle < 60 && t->bytes < want;) {
		uint64_t before = t->bytes;

		sleep_ms(50);
		idle = t->bytes == before ? idle + 1 : 0;
		if (waitpid(-1, NULL, WNOHANG) > 0)
			(void)raise(SIGKILL); /* one was killed: so are we */
	}
	return EMFILE;
}

static int make_pipe(int fds[2])
{
	if (pipe2(fds, O_CLOEXEC) < 0)
		return -1;
	(void)fcntl(fds[1], F_SETPIPE_SZ, 1 << 20);
	return 0;
}

static int make_sockets(int fds[2])
{
	int big = 8 << 20;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
		return -1;
	(void)setsockopt(fds[1], SOL_SOCKET, SO_SNDBUF, &big, sizeof(big));
	return 0;
}

/* Two ends of a connection on loopback. */
static int make_tcp(int fds[2])
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t n = sizeof(a);
	int big = 4 << 20, door = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	fds[1] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	(void)setsockopt(fds[1], SOL_SOCKET, SO_SNDBUF, &big, sizeof(big));
	(void)setsockopt(door, SOL_SOCKET, SO_RCVBUF, &big, sizeof(big));
	if (bind(door, (struct sockaddr *)&a, n) < 0 || listen(door, 1) < 0 ||
	    getsockname(door, (struct sockaddr *)&a, &n) < 0 ||
	    connect(fds[1], (struct sockaddr *)&a, n) < 0)
		return -1;
	fds[0] = accept(door, NULL, NULL);
	(void)close(door);
	return fds[0] < 0 ? -1 : 0;
}

static int take_pipes(struct taken *t, uint64_t want)
{
	return many_fill(t, want, make_pipe);
}

static int take_sockets(struct taken *t, uint64_t want)
{
	return many_fill(t, want, make_sockets);
}

static int take_tcp(struct taken *t, uint64_t want)
{
	return many_fill(t, want, make_tcp);
}

/* An access control list with as many entries as there may be, for each of many files. */
static int take_acls(struct taken *t, uint64_t want)
{
	static struct {
		uint32_t version;
		struct {
			uint16_t tag, rights;
			uint32_t id;
		} entries[8191];
	} acl = { .version = 2 };
	const size_t last = COUNT(acl.entries) - 1;
	char path[64];

	for (size_t i = 0; i <= last; i++) { /* owner, users, group, mask, others */
		acl.entries[i].tag = i == 0          ? 0x01
				     : i < last - 2  ? 0x02
				     : i == last - 2 ? 0x04
				     : i == last - 1 ? 0x10
						     : 0x20;
		acl.entries[i].id = acl.entries[i].tag == 0x02 ? (uint32_t)getuid() : UINT32_MAX;
	}
	for (unsigned i = 0; t->bytes < want; i++) {
		(void)snprintf(path, sizeof(path), "/tmp/acl%u", i);
		if (mknod(path, S_IFREG | 0600, 0) < 0 ||
		    setxattr(path, "system.posix_acl_access", &acl, sizeof(acl), 0) < 0)
			return errno;
		t->bytes += sizeof(acl);
	}
	return 0;
}

/* One page of tables for each 2 MiB that is looked at; the page itself is the zero page. */
static int take_tables(struct taken *t, uint64_t want)
{
	const uint64_t chunk = 8ull << 30, stride = 2 * MIB;

	while (t->bytes < want) {
		volatile char *p = mmap(NULL, chunk, PROT_READ,
					MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		if (p == MAP_FAILED)
			return errno;
		for (uint64_t k = 0; k < chunk && t->bytes < want; k += stride, t->bytes += PAGE)
			(void)p[k];
	}
	return 0;
}

/* Kernel objects behind names: inodes and directory entries of small files. */
static int take_names(struct taken *t, uint64_t want)
{
	char path[64];

	for (unsigned i = 0; t->bytes < want; i++) {
		int fd;

		(void)snprintf(path, sizeof(path), "/tmp/n%08u", i);
		fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		if (fd < 0)
			return errno;
		if (write(fd, "x", 1) != 1)
			return errno;
		(void)close(fd);
		t->bytes += PAGE + 1024;
	}
	return 0;
}

/* Names that do not exist are remembered too. */
static int take_negative(struct taken *t, uint64_t want)
{
	char path[128];

	for (unsigned i = 0; i < want / 192; i++) {
		(void)snprintf(path, sizeof(path), "/tmp/absent-%032u", i);
		if (access(path, F_OK) == 0)
			return EEXIST;
	}
	t->bytes = 0; /* the kernel may drop them at any time: nothing is kept from anybody */
	return ENOENT;
}

static const struct {
	const char *name;
	take_fn *take;
} ways[] = {
	{ "private", take_private }, { "shared", take_shared }, { "locked", take_locked },
	{ "memfd", take_memfd },     { "shm", take_shm },       { "tmp", take_tmp },
	{ "sysv", take_sysv },       { "pipes", take_pipes },   { "sockets", take_sockets },
	{ "tables", take_tables },   { "names", take_names },   { "negative", take_negative },
	{ "tcp", take_tcp },         { "acls", take_acls },
};

static int report(const char *name, const struct taken *t, uint64_t want, int status)
{
	unsigned long long mib = t->bytes / MIB;

	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
		return held("%s: killed for it at %llu MiB", name, mib);
	if (t->bytes >= want)
		return broken("%s: all %llu MiB given", name, mib);
	return held("%s: refused at %llu MiB: %s", name, mib, strerror(WEXITSTATUS(status)));
}

/* memory WAY MIB: tries to get that much, which is a multiple of what the box has. */
static int memory(int argc, char **argv)
{
	const char *name = text(argc, argv, 0, "private");
	uint64_t want = number(argc, argv, 1, 256) * MIB;
	struct taken *t = shared(sizeof(*t));
	int status = 0;

	for (size_t i = 0; i < COUNT(ways); i++) {
		pid_t pid;

		if (strcmp(ways[i].name, name) != 0)
			continue;
		pid = fork_or_die();
		if (pid == 0)
			_exit(ways[i].take(t, want));
		(void)waitpid(pid, &status, 0);
		return report(name, t, want, status);
	}
	return not_here("no way called %s", name);
}

/* Memory from inside many processes at once, so that somebody is always in the allocator. */
static int memory_crowd(int argc, char **argv)
{
	uint64_t want = number(argc, argv, 0, 256) * MIB;
	struct taken *t = shared(sizeof(*t));
	int killed = 0, status;

	for (int i = 0; i < 16; i++) {
		pid_t pid = fork_or_die();

		if (pid == 0) {
			(void)take_private(t, want / 16);
			sleep_ms(300);
			_exit(0);
		}
	}
	while (waitpid(-1, &status, 0) > 0)
		killed += WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
	if (killed == 0)
		return broken("16 processes hold %llu MiB", (unsigned long long)(want / MIB));
	return held("killed %d of 16 processes", killed);
}

/* A client that sends so much and is gone. */
static int leave_client(const struct sockaddr_in *to, size_t bytes)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char block[1024];
	size_t sent = 0;

	memset(block, 'b', sizeof(block));
	if (fd < 0 || connect(fd, (const struct sockaddr *)to, sizeof(*to)) < 0) {
		(void)close(fd);
		return -1;
	}
	(void)fcntl(fd, F_SETFL, O_NONBLOCK);
	while (sent < bytes && write(fd, block, sizeof(block)) > 0)
		sent += sizeof(block);
	return close(fd);
}

/* backlog COUNT KIB MS: so many connections that nobody accepts, with so much in each. */
static int backlog(int argc, char **argv)
{
	unsigned count = (unsigned)number(argc, argv, 0, 100);
	size_t bytes = number(argc, argv, 1, 4) << 10;
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t n = sizeof(a);
	int door = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (bind(door, (struct sockaddr *)&a, n) < 0 || listen(door, 4096) < 0 ||
	    getsockname(door, (struct sockaddr *)&a, &n) < 0)
		return broken("no listener: %s", strerror(errno));
	for (unsigned i = 0; i < count; i++)
		if (leave_client(&a, bytes) < 0)
			return broken("client %u: %s", i, strerror(errno));
	(void)puts("ready");
	(void)fflush(stdout);
	sleep_ms((unsigned)number(argc, argv, 2, 1000));
	return held("%u connections with %zu bytes each", count, bytes);
}

const struct probe probes_memory[] = {
	{ "memory", memory },
	{ "backlog", backlog },
	{ "memory-crowd", memory_crowd },
	{ NULL, NULL },
};
