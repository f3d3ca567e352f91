/* Kernel objects in bulk: descriptors, timers, watches, queues, semaphores. Each must run into a
 * limit or cost only what the box pays for. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <mqueue.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "probe.h"

static int make_dup(unsigned i)
{
	(void)i;
	return dup(0);
}

static int make_eventfd(unsigned i)
{
	(void)i;
	return eventfd(0, 0);
}

static int make_timerfd(unsigned i)
{
	(void)i;
	return timerfd_create(CLOCK_MONOTONIC, 0);
}

static int make_signalfd(unsigned i)
{
	sigset_t set;

	(void)i;
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGUSR1);
	return signalfd(-1, &set, 0);
}

static int make_epoll(unsigned i)
{
	(void)i;
	return epoll_create1(0);
}

static int make_inotify(unsigned i)
{
	(void)i;
	return inotify_init1(0);
}

static int make_timer(unsigned i)
{
	struct sigevent e = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	timer_t t;

	(void)i;
	return timer_create(CLOCK_MONOTONIC, &e, &t);
}

/* Queued signals count against the user. */
static int make_pending(unsigned i)
{
	union sigval v = { .sival_int = (int)i };
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGRTMIN);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	return sigqueue(getpid(), SIGRTMIN, v);
}

static int make_watch(unsigned i)
{
	static int fd = -1; /* one instance holds them all */
	char path[64];

	if (fd < 0)
		fd = inotify_init1(0);
	(void)snprintf(path, sizeof(path), "/tmp/w%u", i);
	(void)mkdir(path, 0700);
	return inotify_add_watch(fd, path, IN_ALL_EVENTS);
}

static int make_mqueue(unsigned i)
{
	struct mq_attr a = { .mq_maxmsg = 2, .mq_msgsize = 512 };
	char name[32];

	(void)snprintf(name, sizeof(name), "/q%u", i);
	return mq_open(name, O_CREAT | O_RDWR, 0600, &a);
}

static int make_sem(unsigned i)
{
	char name[32];

	(void)snprintf(name, sizeof(name), "/s%u", i);
	return sem_open(name, O_CREAT, 0600, 1) == SEM_FAILED ? -1 : 0;
}

static int make_sysv_sem(unsigned i)
{
	(void)i;
	return semget(IPC_PRIVATE, 250, IPC_CREAT | 0600);
}

static int make_sysv_shm(unsigned i)
{
	(void)i;
	return shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);
}

/* Messages stay in the kernel until somebody reads them. */
static int make_sysv_msg(unsigned i)
{
	struct {
		long type;
		char body[8192];
	} m = { 1, { 0 } };
	int id = msgget(IPC_PRIVATE, IPC_CREAT | 0600);

	(void)i;
	while (id >= 0 && msgsnd(id, &m, sizeof(m.body), IPC_NOWAIT) == 0)
		;
	return id;
}

static int make_lock(unsigned i)
{
	struct flock l = { .l_type = F_WRLCK, .l_start = (off_t)i * 2, .l_len = 1 };
	static int fd = -1; /* one file, many ranges */

	if (fd < 0)
		fd = open("/tmp/lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	return fcntl(fd, F_SETLK, &l);
}

static const struct {
	const char *name;
	int (*make)(unsigned i);
	unsigned ceiling; /* reached without being stopped or paying for it: broken */
} kinds[] = {
	{ "fds", make_dup, 70000 },           { "eventfd", make_eventfd, 70000 },
	{ "timerfd", make_timerfd, 70000 },   { "signalfd", make_signalfd, 70000 },
	{ "epoll", make_epoll, 70000 },       { "inotify", make_inotify, 70000 },
	{ "watches", make_watch, 300000 },    { "timers", make_timer, 400000 },
	{ "pending", make_pending, 400000 },  { "mqueue", make_mqueue, 70000 },
	{ "semaphores", make_sem, 300000 },   { "sysv-sem", make_sysv_sem, 40000 },
	{ "sysv-shm", make_sysv_shm, 40000 }, { "sysv-msg", make_sysv_msg, 40000 },
	{ "locks", make_lock, 20000 },
};

/* bulk KIND [MOST]: makes them until something stops it. */
static int bulk(int argc, char **argv)
{
	const char *name = text(argc, argv, 0, "fds");
	unsigned *made = shared(sizeof(*made));
	int status = 0;
	size_t k = 0;

	while (k < COUNT(kinds) && strcmp(kinds[k].name, name) != 0)
		k++;
	if (k == COUNT(kinds))
		return not_here("no kind called %s", name);
	pid_t pid = fork_or_die();
	if (pid == 0) {
		while (*made < kinds[k].ceiling && kinds[k].make(*made) >= 0)
			++*made;
		_exit(errno);
	}
	(void)waitpid(pid, &status, 0);
	if (*made >= kinds[k].ceiling)
		return broken("%u of %s and no end", *made, name);
	if (*made > number(argc, argv, 1, kinds[k].ceiling))
		return broken("%u of %s", *made, name);
	if (WIFSIGNALED(status))
		return held("%s: killed for it at %u", name, *made);
	return held("%s: stopped at %u: %s", name, *made, strerror(WEXITSTATUS(status)));
}

static int send_fd(int sock, int fd)
{
	union {
		char space[CMSG_SPACE(sizeof(int) * 200)];
		struct cmsghdr align;
	} control = { { 0 } };
	char byte = 'x';
	struct iovec iov = { &byte, 1 };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = control.space,
			    .msg_controllen = sizeof(control.space) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	int fds[200];

	for (size_t i = 0; i < COUNT(fds); i++)
		fds[i] = fd;
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(fds));
	memcpy(CMSG_DATA(c), fds, sizeof(fds));
	return sendmsg(sock, &m, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -1 : (int)COUNT(fds);
}

/* Descriptors that nobody holds, only sockets: sent and never received. MS: how long to keep them.
 */
static int fds_in_flight(int argc, char **argv)
{
	uint64_t keep_ms = number(argc, argv, 0, 0), sent = 0;
	int error = 0;

	for (int i = 0; i < 300 && error != ETOOMANYREFS; i++) {
		int pair[2], n;

		if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) < 0) {
			error = errno;
			break;
		}
		while ((n = send_fd(pair[0], pair[1])) > 0)
			sent += (uint64_t)n;
		error = errno;
	}
	if (keep_ms) {
		puts("filled");
		fflush(stdout);
		sleep_ms((unsigned)keep_ms);
	}
	if (sent > 20000)
		return broken("%llu descriptors in flight", (unsigned long long)sent);
	return held("%llu descriptors in flight: %s", (unsigned long long)sent, strerror(error));
}

/* hold-locks COUNT WAYS: so many locks, by so many processes, which then wait to be ended for them.
 */
static int hold_locks(int argc, char **argv)
{
	unsigned count = (unsigned)number(argc, argv, 0, 6000);
	unsigned ways = (unsigned)number(argc, argv, 1, 1);

	for (unsigned w = 0; w < ways; w++)
		if (fork_or_die() == 0) {
			for (unsigned i = 0; i < count / ways; i++)
				if (make_lock(w * count + i) < 0)
					_exit(1);
			sleep_ms(600000);
			_exit(0);
		}
	for (unsigned w = 0; w < ways; w++) {
		int status = 0;

		(void)wait(&status);
		if (!WIFSIGNALED(status))
			return broken("a process with locks ended with %d", WEXITSTATUS(status));
	}
	return held("%u processes with %u locks were ended", ways, count);
}

/* Locks of open files, whose process is gone: the list still has its number, which is another's one
 * day. */
static void leave_flocks(unsigned count)
{
	int fds[1000];
	pid_t pid;

	for (unsigned i = 0; i < count; i++) {
		fds[i] = open("/tmp/flock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
		if (fds[i] < 0)
			_exit(1);
	}
	pid = fork_or_die();
	for (unsigned i = 0; pid == 0 && i < count; i++)
		if (flock(fds[i], LOCK_SH) < 0)
			_exit(1);
	if (pid == 0)
		_exit(0);
	(void)waitpid(pid, NULL, 0);
}

/* flock-flood WAYS MS: more than the launcher reads. */
static int flood_flocks(int argc, char **argv)
{
	unsigned ways = (unsigned)number(argc, argv, 0, 19);
	unsigned ms = (unsigned)number(argc, argv, 1, 10000);
	int done[2];
	char byte;

	if (pipe(done) < 0)
		return broken("pipe: %s", strerror(errno));
	for (unsigned w = 0; w < ways; w++) { /* one after another: who lives never has many */
		if (fork_or_die() == 0) {
			leave_flocks(900);
			(void)!write(done[1], "", 1);
			sleep_ms(ms);
			_exit(0);
		}
		if (read(done[0], &byte, 1) != 1)
			return broken("pipe: %s", strerror(errno));
	}
	puts("ready");
	fflush(stdout);
	sleep_ms(ms);
	return held("%u locks", ways * 900);
}

/* keep-locks COUNT MS: so many are everybody's right. */
static int keep_locks(int argc, char **argv)
{
	unsigned count = (unsigned)number(argc, argv, 0, 1000);

	for (unsigned i = 0; i < count; i++)
		if (make_lock(i) < 0)
			return broken("lock %u: %s", i, strerror(errno));
	sleep_ms((unsigned)number(argc, argv, 1, 5000));
	return held("%u locks", count);
}

/* Locks that /proc/locks shows no owner of: of a process that is gone, and of an open file. */
static int hidden_locks(int argc, char **argv)
{
	const struct call sharing = { "clone with CLONE_FILES", SYS_clone, { 0x400 | SIGCHLD } };
	struct flock l = { .l_type = F_WRLCK, .l_len = 1 };
	int fd = open("/tmp/lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	(void)argc, (void)argv;
	if (fcntl(fd, 37 /* F_OFD_SETLK */, &l) == 0 || errno != EINVAL)
		return broken("a lock of an open file: %s", strerror(errno));
	return refuse_calls(&sharing, 1);
}

/* bulk-hold KIND MS: takes all of a kind that it can get and keeps them, for neighbours to notice.
 */
static int bulk_hold(int argc, char **argv)
{
	const char *name = text(argc, argv, 0, "inotify");
	unsigned made = 0;

	for (size_t k = 0; k < COUNT(kinds); k++)
		if (strcmp(kinds[k].name, name) == 0)
			while (made < kinds[k].ceiling && kinds[k].make(made) >= 0)
				made++;
	printf("filled %u\n", made);
	fflush(stdout);
	sleep_ms((unsigned)number(argc, argv, 1, 2000));
	return held("%u of %s kept", made, name);
}

/* bulk-one KIND COUNT: a modest number of them must be there for everybody. */
static int bulk_some(int argc, char **argv)
{
	const char *name = text(argc, argv, 0, "inotify");
	uint64_t want = number(argc, argv, 1, 4);

	for (size_t k = 0; k < COUNT(kinds); k++)
		for (unsigned i = 0; strcmp(kinds[k].name, name) == 0 && i < want; i++)
			if (kinds[k].make(i) < 0)
				return broken("%s number %u: %s", name, i, strerror(errno));
	return held("%llu of %s", (unsigned long long)want, name);
}

const struct probe probes_bulk[] = {
	{ "bulk", bulk },
	{ "fds-in-flight", fds_in_flight },
	{ "hold-locks", hold_locks },
	{ "hidden-locks", hidden_locks },
	{ "flock-flood", flood_flocks },
	{ "keep-locks", keep_locks },
	{ "bulk-hold", bulk_hold },
	{ "bulk-some", bulk_some },
	{ NULL, NULL },
};
