/* Processes and threads by the thousand. Every bomb has a ceiling of its own, well above the box's.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe.h"

static int bounded(uint64_t made, uint64_t limit, const char *what)
{
	if (made > limit)
		return broken("%llu %s, limit %llu", (unsigned long long)made, what,
			      (unsigned long long)limit);
	return held("stopped at %llu %s: %s", (unsigned long long)made, what, strerror(errno));
}

static int fork_all(int argc, char **argv)
{
	uint64_t limit = number(argc, argv, 0, 64), made = 0;
	int saved = 0, r;

	while (made < limit * 4) {
		pid_t pid = fork();

		if (pid == 0) {
			(void)pause();
			_exit(0);
		}
		saved = errno;
		if (pid < 0)
			break;
		made++;
	}
	errno = saved;
	r = bounded(made, limit, "processes");
	end_children();
	return r;
}

struct chain {
	atomic_uint depth;
	unsigned ceiling;
};

/* Each child is made by vfork's own flags and makes the next; the parents stand still. */
static int vfork_link(void *arg)
{
	struct chain *c = arg;
	char *stack;

	if (atomic_fetch_add(&c->depth, 1) >= c->ceiling)
		return 0;
	stack = malloc(16384);
	if (!stack || clone(vfork_link, stack + 16384, CLONE_VM | CLONE_VFORK | SIGCHLD, c) < 0)
		return 0;
	return 0;
}

static int vfork_chain(int argc, char **argv)
{
	uint64_t limit = number(argc, argv, 0, 64);
	struct chain *c = shared(sizeof(*c));

	c->ceiling = (unsigned)limit * 4;
	(void)vfork_link(c);
	errno = EAGAIN;
	return bounded(atomic_load(&c->depth), limit + 1, "vforked processes");
}

static void *sit(void *arg)
{
	(void)pause();
	return arg;
}

static int threads(int argc, char **argv)
{
	uint64_t limit = number(argc, argv, 0, 64), made = 0;
	pthread_attr_t attr;
	pthread_t t;

	(void)pthread_attr_init(&attr);
	(void)pthread_attr_setstacksize(&attr, 16384);
	while (made < limit * 4) {
		errno = pthread_create(&t, &attr, sit, NULL);
		if (errno)
			break;
		made++;
	}
	return bounded(made, limit, "threads");
}

struct bomb {
	atomic_uint alive;
	uint64_t end_ms;
	unsigned ceiling;
};

/* Everybody forks for ever; the counter is what keeps a box that leaks from hurting the machine. */
static void explode(struct bomb *b)
{
	(void)signal(SIGCHLD, SIG_IGN);
	while (now_ms() < b->end_ms) {
		pid_t pid;

		if (atomic_load(&b->alive) >= b->ceiling)
			continue;
		pid = fork();
		if (pid == 0)
			atomic_fetch_add(&b->alive, 1);
		else if (pid < 0)
			(void)sched_yield();
	}
	atomic_fetch_sub(&b->alive, 1);
}

static int fork_bomb(int argc, char **argv)
{
	struct bomb *b = shared(sizeof(*b));
	uint64_t limit = number(argc, argv, 0, 64), ms = number(argc, argv, 1, 20000);
	pid_t self = getpid();

	b->ceiling = (unsigned)limit * 8;
	b->end_ms = now_ms() + ms;
	rename_self("bomb");
	explode(b);
	if (getpid() != self)
		_exit(0);
	return held("the bomb burned out");
}

/* Children that nobody waits for: they count until their parent ends. */
static int zombies(int argc, char **argv)
{
	uint64_t limit = number(argc, argv, 0, 64), made = 0;

	while (made < limit * 4) {
		pid_t pid = fork();

		if (pid == 0)
			_exit(0);
		if (pid < 0)
			break;
		made++;
	}
	return bounded(made, limit, "zombies");
}

static bool orphan(void)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		pid_t inner = fork();

		_exit(inner < 0);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

/* Orphans by the thousand: PID 1 must take every one away. */
static int orphans(int argc, char **argv)
{
	uint64_t want = number(argc, argv, 0, 3000), made = 0, until;
	int left;

	rename_self("orphan");
	until = now_ms() + 20000;
	while (made < want && now_ms() < until) {
		if (orphan())
			made++;
		else
			sleep_ms(1); /* the limit: reaping makes room */
	}
	for (int i = 0; i < 100 && count_processes("orphan") > 1; i++)
		sleep_ms(20);
	left = count_processes("orphan");
	if (made < want || left != 1)
		return broken("%llu orphans made, %d of them left", (unsigned long long)made,
			      left - 1);
	return held("%llu orphans made and reaped", (unsigned long long)made);
}

static void *leave(void *arg)
{
	if (arg)
		_exit(0);
	return NULL;
}

/* Groups of threads that end each other in the middle of their births. */
static int exit_storm(int argc, char **argv)
{
	uint64_t rounds = number(argc, argv, 0, 500);

	for (uint64_t i = 0; i < rounds; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			pthread_t t;

			for (int k = 0; k < 8; k++)
				(void)pthread_create(&t, NULL, leave, k == 5 ? &t : NULL);
			_exit(0);
		}
		if (pid > 0 && i % 2)
			(void)waitpid(pid, NULL, 0);
		else if (pid < 0)
			while (waitpid(-1, NULL, WNOHANG) > 0)
				;
	}
	while (waitpid(-1, NULL, 0) > 0)
		;
	return held("%llu groups ended", (unsigned long long)rounds);
}

static int count_named(int argc, char **argv)
{
	const char *name = text(argc, argv, 0, "bomb");
	int n = 0;

	for (int i = 0; i < 50; i++) { /* the dead may not have been reaped yet */
		n = count_processes(name);
		if (n == 0)
			return held("no process is called %s", name);
		sleep_ms(20);
	}
	return broken("%d processes are called %s", n, name);
}

static int some_named(int argc, char **argv)
{
	const char *name = text(argc, argv, 0, "neighbour");
	int n = count_processes(name);

	return n > 0 ? held("%d processes are called %s", n, name)
		     : broken("no process is called %s", name);
}

const struct probe probes_process[] = {
	{ "fork-all", fork_all },     { "vfork-chain", vfork_chain },
	{ "threads", threads },       { "fork-bomb", fork_bomb },
	{ "zombies", zombies },       { "orphans", orphans },
	{ "exit-storm", exit_storm }, { "none-named", count_named },
	{ "some-named", some_named }, { NULL, NULL },
};
