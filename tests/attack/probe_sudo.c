/* The socket by which a box's user becomes root, where there is one. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guest/sudo.h"
#include "probe.h"
#include "spec/guest.h"

#define SUDO "/usr/bin/sudo"
#define HANG_UP_MS 15000
#define MESSAGE_MAX (80u << 10)
#define FDS_MAX 32

/* -1: nobody listens, or the line is full. */
static int dial(int flags)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX, .sun_path = SUDO_PATH };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0);

	if (fd >= 0 && connect(fd, (struct sockaddr *)&name, sizeof(name)) == 0)
		return fd;
	if (fd >= 0)
		(void)close(fd);
	return -1;
}

/* Runs sudo with these words to its end: the exit code, or -1. */
static int run_sudo(char *const *words)
{
	int status = 0, null = open("/dev/null", O_RDWR | O_CLOEXEC);
	pid_t pid = fork_or_die();

	if (pid == 0) {
		(void)dup2(null, 1);
		(void)dup2(null, 2);
		(void)execv(SUDO, words);
		_exit(127);
	}
	(void)close(null);
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static bool works(void)
{
	char *words[] = { (char *)(uintptr_t) "sudo", (char *)(uintptr_t) "true", NULL };

	return run_sudo(words) == 0;
}

static int none(int argc, char **argv)
{
	(void)argc, (void)argv;
	if (dial(0) >= 0)
		return broken(SUDO_PATH " takes a connection");
	return held("nobody listens");
}

/* The rest of the line is another attack, made by that user. */
static int run_as(const char *user, int argc, char **argv)
{
	char *words[32] = { (char *)(uintptr_t) "sudo", (char *)(uintptr_t) "-u",
			    (char *)(uintptr_t)user };
	static char self[256];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n <= 0 || argc > 26)
		return broken("own program");
	words[3] = self;
	memcpy(words + 4, argv, (size_t)argc * sizeof(argv[0]));
	(void)execv(SUDO, words);
	return broken(SUDO ": %s", strerror(errno));
}

static int via(int argc, char **argv)
{
	return run_as("root", argc, argv);
}

static int via_nobody(int argc, char **argv)
{
	return run_as("nobody", argc, argv);
}

static ssize_t send_with(int sock, const void *data, size_t n, const int *fds, size_t n_fds)
{
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(FDS_MAX * sizeof(int))];
	} control = { 0 };
	struct iovec part = { (void *)(uintptr_t)data, n };
	struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1 };

	if (n_fds > 0) {
		control.head.cmsg_level = SOL_SOCKET;
		control.head.cmsg_type = SCM_RIGHTS;
		control.head.cmsg_len = CMSG_LEN(n_fds * sizeof(int));
		memcpy(CMSG_DATA(&control.head), fds, n_fds * sizeof(int));
		m.msg_control = &control;
		m.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
	}
	return sendmsg(sock, &m, MSG_NOSIGNAL);
}

/* Until the other end has closed; false: it waits for more. */
static bool hangs_up(int sock)
{
	struct pollfd p = { .fd = sock, .events = POLLIN };
	char answer[1024];

	while (poll(&p, 1, HANG_UP_MS) == 1) {
		ssize_t n = recv(sock, answer, sizeof(answer), MSG_DONTWAIT);

		if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
			return true;
	}
	return false;
}

/* Nothing, noise, a head with noise behind it, one that lies about its length. */
static size_t make_message(unsigned kind, unsigned char *dst)
{
	size_t n = kind % 5 == 0 ? 0 : (size_t)rand() % (kind % 7 == 0 ? MESSAGE_MAX : 600);
	struct wire_head head = { WIRE_VERSION, G_EXEC, 0, 0 };

	for (size_t i = 0; i < n; i++)
		dst[i] = (unsigned char)(rand() >> 7);
	if (kind % 5 < 2 || n < sizeof(head))
		return n;
	head.len = (uint32_t)(n - sizeof(head));
	if (kind % 5 == 4)
		head.len += 1 + (uint32_t)rand() % 100;
	memcpy(dst, &head, sizeof(head));
	return n;
}

static int garbage(int argc, char **argv)
{
	uint64_t rounds = number(argc, argv, 0, 120);
	unsigned char *message = malloc(MESSAGE_MAX);
	int fds[FDS_MAX];

	if (!message || dial(0) < 0)
		return not_here("no sudo here");
	srand(1);
	for (int i = 0; i < FDS_MAX; i++)
		fds[i] = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (unsigned i = 0; i < rounds; i++) {
		int sock = dial(0);

		if (sock < 0)
			return broken("round %u: no connection: %s", i, strerror(errno));
		(void)send_with(sock, message, make_message(i, message), fds,
				i % 3 == 0 ? SUDO_FDS : (size_t)rand() % FDS_MAX);
		if (!hangs_up(sock))
			return broken("round %u: it waits for more", i);
		(void)close(sock);
	}
	return works() ? held("%u messages", (unsigned)rounds)
		       : broken("sudo does not work any more");
}

/* As many connections as there are to be had, and not a word. */
static int flood(int argc, char **argv)
{
	int fds[400], n = 0;
	uint64_t until_ms;

	(void)argc, (void)argv;
	until_ms = now_ms() + 3000;
	while (n < 400 && now_ms() < until_ms) {
		fds[n] = dial(SOCK_NONBLOCK);
		if (fds[n] >= 0)
			n++;
		else
			sleep_ms(5);
	}
	if (n == 0)
		return not_here("no sudo here");
	printf("ready\n");
	(void)fflush(stdout);
	sleep_ms(1000);
	for (int i = 0; i < n; i++)
		(void)close(fds[i]);
	return works() ? held("%d connections", n) : broken("sudo does not work any more");
}

/* A connection with data on its way that nobody takes. */
static int open_stuck(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	static char zeros[65536];
	socklen_t size = sizeof(a);

	if (listener < 0 || fd < 0 || bind(listener, (struct sockaddr *)&a, sizeof(a)) < 0 ||
	    listen(listener, 1) < 0 || getsockname(listener, (struct sockaddr *)&a, &size) < 0)
		return fd;
	(void)connect(fd, (struct sockaddr *)&a, sizeof(a));
	(void)accept(listener, NULL, NULL); /* stays open, unread */
	while (send(fd, zeros, sizeof(zeros), MSG_NOSIGNAL) > 0)
		;
	(void)close(listener);
	return fd;
}

/* Whoever closes `stuck` last from now on waits an hour, unless he ends. */
static void send_and_end(int sock, int stuck)
{
	struct linger on = { 1, 3600 };
	int fds[] = {
		sock,  epoll_create1(EPOLL_CLOEXEC),  eventfd(0, EFD_CLOEXEC),
		stuck, open("/", O_PATH | O_CLOEXEC), open("/proc/self/mem", O_RDWR | O_CLOEXEC),
		stuck
	};

	(void)setsockopt(stuck, SOL_SOCKET, SO_LINGER, &on, sizeof(on));
	(void)send_with(sock, "x", 1, fds, COUNT(fds));
	_exit(0);
}

static int descriptors(int argc, char **argv)
{
	(void)argc, (void)argv;
	for (int i = 0; i < 20; i++) {
		int sock = dial(0), stuck = open_stuck(), go[2];
		pid_t pid;

		if (sock < 0)
			return i == 0 ? not_here("no sudo here") : broken("no connection");
		if (pipe(go) < 0)
			return broken("pipe");
		pid = fork_or_die();
		if (pid == 0) {
			(void)close(go[1]);
			(void)read(go[0], &(char){ 0 }, 1);
			send_and_end(sock, stuck);
		}
		(void)close(stuck); /* before it would take an hour */
		(void)close(go[0]);
		(void)close(go[1]);
		(void)waitpid(pid, NULL, 0);
		if (!hangs_up(sock))
			return broken("it waits for more");
		(void)close(sock);
	}
	/* Whoever else may try as well, but is never heard. */
	if (getuid() != 0 && getuid() != 1000)
		return held("descriptors of all kinds, by somebody else");
	return works() ? held("descriptors of all kinds") : broken("sudo does not work any more");
}

/* Lets root start what tries to outlive us, and stays. */
static int survivors(int argc, char **argv)
{
	char self[256] = "";

	(void)argc, (void)argv;
	if (readlink("/proc/self/exe", self, sizeof(self) - 1) <= 0)
		return broken("own program");
	for (int i = 0; i < 6; i++) {
		char *words[] = { (char *)(uintptr_t) "sudo",
				  (char *)(uintptr_t) "setsid",
				  (char *)(uintptr_t) "-f",
				  self,
				  (char *)(uintptr_t) "sit",
				  (char *)(uintptr_t) "survivor",
				  NULL };

		if (run_sudo(words) != 0)
			return not_here("no sudo here");
	}
	printf("ready\n");
	(void)fflush(stdout);
	for (;;)
		(void)pause();
}

/* Those who ask are gone before, while and after they are heard. */
static int orphans(int argc, char **argv)
{
	char self[256] = "",
	     *words[] = { (char *)(uintptr_t) "sudo", self, (char *)(uintptr_t) "sit",
			  (char *)(uintptr_t) "survivor", NULL };
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	(void)argc, (void)argv;
	if (readlink("/proc/self/exe", self, sizeof(self) - 1) <= 0 || !works())
		return not_here("no sudo here");
	for (unsigned i = 0; i < 100; i++) {
		pid_t pid = fork_or_die();

		if (pid == 0) {
			(void)dup2(null, 1);
			(void)dup2(null, 2);
			(void)execv(SUDO, words);
			_exit(127);
		}
		(void)usleep(i * 37 % 5000);
		(void)kill(pid, SIGKILL);
		(void)waitpid(pid, NULL, 0);
	}
	return works() ? held("100 who were killed") : broken("sudo does not work any more");
}

/* Who may open a file of PID 1 may still not learn what is in it. */
static int init_secrets(int argc, char **argv)
{
	static const char *const files[] = { "mem",   "environ", "auxv",    "maps",
					     "smaps", "io",      "syscall", "personality",
					     "stack", "pagemap", "timers" };
	static const char *const links[] = { "exe", "root", "cwd", "fd/0", "fd/3", "ns/user" };
	char path[64], byte[8];

	(void)argc, (void)argv;
	for (size_t i = 0; i < COUNT(files); i++) {
		(void)snprintf(path, sizeof(path), "/proc/1/%s", files[i]);
		if (slurp(path, byte, sizeof(byte)) > 0)
			return broken("%s can be read", path);
	}
	for (size_t i = 0; i < COUNT(links); i++) {
		(void)snprintf(path, sizeof(path), "/proc/1/%s", links[i]);
		if (readlink(path, byte, sizeof(byte)) >= 0 || open(path, O_PATH | O_CLOEXEC) >= 0)
			return broken("%s can be followed", path);
	}
	return held("nothing of PID 1 can be learned");
}

/* For root: he sees all. What was killed may take a moment to be gone. */
static int none_left(int argc, char **argv)
{
	const char *name = text(argc, argv, 0, "survivor");
	uint64_t until_ms = now_ms() + HANG_UP_MS;

	while (count_processes(name) > 0 && now_ms() < until_ms)
		sleep_ms(20);
	return count_processes(name) > 0 ? broken("%d are left", count_processes(name))
					 : held("none is left");
}

const struct probe probes_sudo[] = {
	{ "sudo-none", none },
	{ "via-sudo", via },
	{ "via-nobody", via_nobody },
	{ "sudo-garbage", garbage },
	{ "sudo-flood", flood },
	{ "sudo-descriptors", descriptors },
	{ "sudo-survivors", survivors },
	{ "sudo-orphans", orphans },
	{ "sudo-none-left", none_left },
	{ "init-secrets", init_secrets },
	{ NULL, NULL },
};
