/* One box and another: what they share by accident. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <poll.h>

#include "probe.h"

/* sit NAME: lives in the neighbour during the whole suite. */
static int sit(int argc, char **argv)
{
	rename_self(text(argc, argv, 0, "neighbour"));
	puts("ready");
	fflush(stdout);
	for (;;)
		(void)pause();
	return 0;
}

/* socket-over PATH MS: binds a path that another box also uses; nobody else's caller may come. */
static int socket_over(int argc, char **argv)
{
	const char *path = text(argc, argv, 0, "/tmp/shared.sock");
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	struct pollfd p = { .fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0),
			    .events = POLLIN };

	(void)snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
	(void)unlink(path);
	if (p.fd < 0 || bind(p.fd, (struct sockaddr *)&a, sizeof(a)) < 0 || listen(p.fd, 8) < 0)
		return not_here("%s: %s", path, strerror(errno));
	puts("ready");
	fflush(stdout);
	if (poll(&p, 1, (int)number(argc, argv, 1, 1000)) > 0)
		return broken("another box's caller came to %s", path);
	return held("nobody came to %s", path);
}

/* socket-call PATH: the path is another box's, so there is nobody. */
static int socket_call(int argc, char **argv)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)snprintf(a.sun_path, sizeof(a.sun_path), "%s",
		       text(argc, argv, 0, "/tmp/shared.sock"));
	if (fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0)
		return broken("%s answers", a.sun_path);
	return held("%s: %s", a.sun_path, strerror(errno));
}

static bool is_zombie(pid_t pid)
{
	char path[64], stat_[512], *p;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (slurp(path, stat_, sizeof(stat_)) <= 0)
		return true;
	p = strrchr(stat_, ')');
	return p && p[1] && p[2] == 'Z';
}

/* burn-pids TARGET: forks until the next process number is TARGET's, then sits there under it. */
static int burn_pids(int argc, char **argv)
{
	pid_t target = (pid_t)number(argc, argv, 0, 10);
	uint64_t until = now_ms() + 60000;

	while (now_ms() < until) {
		pid_t pid = vfork();

		if (pid == 0)
			_exit(0);
		if (pid > 0)
			(void)waitpid(pid, NULL, 0);
		if (pid != target - 1)
			continue;
		pid = fork_or_die();
		if (pid == 0)
			for (;;)
				(void)pause();
		if (pid != target) {
			(void)kill(pid, SIGKILL);
			continue;
		}
		puts("ready");
		fflush(stdout);
		sleep_ms((unsigned)number(argc, argv, 1, 1000));
		return kill(pid, 0) == 0 && !is_zombie(pid) ? held("the stranger lives")
							    : broken("the stranger was hit");
	}
	return not_here("number %d did not come round", (int)target);
}

const struct probe probes_cross[] = {
	{ "sit", sit },
	{ "socket-over", socket_over },
	{ "socket-call", socket_call },
	{ "burn-pids", burn_pids },
	{ NULL, NULL },
};
