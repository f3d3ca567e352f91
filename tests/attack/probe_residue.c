/* Leaves a mark in every place that could outlive a box, and looks for such marks. */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "probe.h"

#define MARK "holt-residue"
#define KEY 0x484f4c54
#define PORT 4343

static const char *const places[] = { "/tmp", "/var/tmp", "/workspace", "/home/user", "/dev/shm" };

static struct sockaddr_un mark_address(void)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };

	memcpy(a.sun_path + 1, MARK, strlen(MARK));
	return a;
}

static const struct sockaddr_in port_address = { .sin_family = AF_INET };

static int port_socket(bool bind_it)
{
	struct sockaddr_in a = port_address;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	a.sin_port = htons(PORT);
	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd >= 0 && (bind_it ? bind(fd, (struct sockaddr *)&a, sizeof(a))
				: connect(fd, (struct sockaddr *)&a, sizeof(a))) == 0)
		return fd;
	if (fd >= 0)
		(void)close(fd);
	return -1;
}

static void fill_files(void)
{
	char path[128];

	for (size_t i = 0; i < COUNT(places); i++) {
		(void)snprintf(path, sizeof(path), "%s/" MARK, places[i]);
		(void)spill(path, MARK);
		(void)snprintf(path, sizeof(path), "%s/." MARK, places[i]);
		(void)spill(path, MARK);
	}
}

static void fill_ipc(void)
{
	struct {
		long type;
		char body[32];
	} m = { 1, MARK };
	int id = shmget(KEY, 4096, IPC_CREAT | 0666);
	char *p = id < 0 ? (char *)-1 : shmat(id, NULL, 0);
	mqd_t q = mq_open("/" MARK, O_CREAT | O_RDWR, 0666, NULL);

	if (P(p) != -1)
		memcpy(p, MARK, sizeof(MARK));
	(void)semget(KEY, 4, IPC_CREAT | 0666);
	id = msgget(KEY, IPC_CREAT | 0666);
	(void)msgsnd(id, &m, sizeof(m.body), IPC_NOWAIT);
	if (q >= 0)
		(void)mq_send(q, MARK, strlen(MARK), 0);
}

/* Connections on loopback: counters rise, and the ends linger in the kernel. */
static void fill_net(void)
{
	int fd = port_socket(true);

	if (fd < 0 || listen(fd, 64) < 0)
		return;
	for (int i = 0; i < 32; i++) {
		int c = port_socket(false), s = c < 0 ? -1 : accept(fd, NULL, NULL);

		if (c >= 0)
			(void)close(c);
		if (s >= 0)
			(void)close(s);
	}
}

/* residue-fill [stay]: with `stay`, a process goes on holding sockets and memory. */
static int fill(int argc, char **argv)
{
	struct sockaddr_un a = mark_address();
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	fill_files();
	fill_ipc();
	fill_net();
	rename_self(MARK);
	if (bind(fd, (struct sockaddr *)&a,
		 offsetof(struct sockaddr_un, sun_path) + 1 + strlen(MARK)) < 0 ||
	    listen(fd, 8) < 0)
		return broken("the mark's socket is taken: %s", strerror(errno));
	if (fork() == 0) {
		(void)setsid();
		for (int i = 0; i < 3; i++)
			(void)close(i);
		for (;;)
			(void)pause();
	}
	(void)text(argc, argv, 0, "");
	return held("marks left");
}

static int look_files(void)
{
	for (size_t i = 0; i < COUNT(places); i++) {
		DIR *d = opendir(places[i]);

		for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d))
			if (strstr(e->d_name, MARK))
				return broken("%s/%s is here", places[i], e->d_name);
		if (d)
			(void)closedir(d);
	}
	return 0;
}

static int look_ipc(void)
{
	if (shmget(KEY, 0, 0) >= 0 || errno != ENOENT)
		return broken("shared memory is here: %s", strerror(errno));
	if (semget(KEY, 0, 0) >= 0 || errno != ENOENT)
		return broken("semaphores are here: %s", strerror(errno));
	if (msgget(KEY, 0) >= 0 || errno != ENOENT)
		return broken("a message queue is here: %s", strerror(errno));
	if (mq_open("/" MARK, O_RDONLY) >= 0)
		return broken("a POSIX queue is here");
	return 0;
}

/* Bytes that ever went over lo, and sockets that the kernel still remembers. */
static int look_counters(void)
{
	char text_[16384], *p;
	unsigned long long bytes = 0;
	int lines = 0;

	if (slurp("/proc/net/dev", text_, sizeof(text_)) > 0 && (p = strstr(text_, "lo:")) &&
	    sscanf(p, "lo: %llu", &bytes) == 1 && bytes != 0)
		return broken("%llu bytes have been over lo before", bytes);
	if (slurp("/proc/net/tcp", text_, sizeof(text_)) > 0)
		for (p = text_; (p = strchr(p, '\n')); p++)
			lines++;
	if (lines > 1)
		return broken("%d TCP sockets are remembered", lines - 1);
	return 0;
}

static int look(int argc, char **argv)
{
	struct sockaddr_un a = mark_address();
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	(void)argc, (void)argv;
	if (look_files() || look_ipc() || look_counters())
		return PROBE_BROKEN;
	if (connect(fd, (struct sockaddr *)&a,
		    offsetof(struct sockaddr_un, sun_path) + 1 + strlen(MARK)) == 0)
		return broken("the mark's abstract socket answers");
	if (port_socket(false) >= 0)
		return broken("port %d answers", PORT);
	if (port_socket(true) < 0)
		return broken("port %d is taken: %s", PORT, strerror(errno));
	if (count_processes(MARK) != 0)
		return broken("a process of another box is here");
	if (getpid() > 64)
		return broken("process numbers go on at %d", (int)getpid());
	for (char **e = environ; *e; e++)
		if (strstr(*e, MARK))
			return broken("the environment has %s", *e);
	return held("no mark of anybody");
}

const struct probe probes_residue[] = {
	{ "residue-fill", fill },
	{ "residue-look", look },
	{ NULL, NULL },
};
