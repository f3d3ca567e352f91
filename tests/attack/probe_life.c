/* Processes that do not want to end. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <pthread.h>

#include "probe.h"

/* The harness asks whether anything called so is left. */
#define SURVIVOR "survivor"

static _Noreturn void for_ever(void)
{
	for (;;)
		(void)pause();
}

static void deaf(void)
{
	sigset_t all;

	for (int s = 1; s < 65; s++)
		(void)signal(s, SIG_IGN);
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
}

static int sleeper(int argc, char **argv)
{
	const char *how = text(argc, argv, 0, "plain");

	rename_self(SURVIVOR);
	if (strcmp(how, "deaf") == 0)
		deaf();
	if (strcmp(how, "stopped") == 0)
		(void)raise(SIGSTOP);
	if (strcmp(how, "spin") == 0)
		for (deaf();;)
			;
	for_ever();
}

/* The parent of a vfork waits in the kernel, and ignores signals while it does. */
static int vfork_stuck(int argc, char **argv)
{
	(void)argc, (void)argv;
	rename_self(SURVIVOR);
	deaf();
	if (vfork() == 0)
		for (;;)
			(void)syscall(SYS_pause);
	for_ever();
}

static void let_go(void)
{
	(void)setsid();
	(void)chdir("/");
	for (int fd = 0; fd < 1024; fd++)
		(void)close(fd);
}

/* Hides from whoever looks for it: not dumpable, or with limits that were lowered. */
static void disguise(const char *how)
{
	struct rlimit one = { 1, 1 };

	if (strcmp(how, "hidden") == 0)
		(void)prctl(PR_SET_DUMPABLE, 0);
	if (strcmp(how, "tamper") == 0) {
		(void)setrlimit(RLIMIT_LOCKS, &one);
		(void)setrlimit(RLIMIT_RSS, &one);
	}
}

/* daemon stay|leave [hidden|tamper]: a child that has left session, group, parent and descriptors.
 */
static int daemonize(int argc, char **argv)
{
	bool stay = strcmp(text(argc, argv, 0, "leave"), "stay") == 0;
	int ready[2];
	char c;

	rename_self(SURVIVOR);
	if (pipe2(ready, O_CLOEXEC) < 0)
		return not_here("pipe: %s", strerror(errno));
	if (fork() == 0) {
		(void)setsid();
		if (fork() > 0)
			_exit(0);
		disguise(text(argc, argv, 1, ""));
		let_go();
		deaf();
		for_ever();
	}
	(void)close(ready[1]);
	(void)read(ready[0], &c, 1); /* ends when the daemon has closed everything */
	if (stay)
		for_ever();
	return held("a daemon is left behind");
}

/* A chain that is always a new process: whoever is looked at has already forked and gone. */
static int refork(int argc, char **argv)
{
	uint64_t until = now_ms() + number(argc, argv, 0, 15000);
	pid_t first = getpid();

	rename_self(SURVIVOR);
	if (fork() == 0) {
		let_go();
		deaf();
		(void)signal(SIGCHLD, SIG_IGN);
		while (now_ms() < until)
			for (int i = 0; i < 3; i++)
				if (fork() > 0 && i == 2)
					_exit(0);
		_exit(0);
	}
	if (getpid() == first)
		for_ever();
	_exit(0);
}

/* Takes over as the adoptive parent, so that the orphans do not go to PID 1. */
static int subreaper(int argc, char **argv)
{
	(void)argc, (void)argv;
	rename_self(SURVIVOR);
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
	for (int i = 0; i < 8; i++)
		if (fork() == 0) {
			(void)setsid();
			(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
			if (fork() > 0)
				_exit(0);
			deaf();
			for_ever();
		}
	deaf();
	for_ever();
}

/* The background child keeps the pipe open after its parent has ended. */
static int hold_pipe(int argc, char **argv)
{
	uint64_t ms = number(argc, argv, 0, 60000);

	if (fork() == 0) {
		rename_self(SURVIVOR);
		(void)setsid();
		sleep_ms((unsigned)ms);
		_exit(0);
	}
	return held("a child holds standard output");
}

static void *other_thread(void *arg)
{
	(void)arg;
	for_ever();
}

/* The first thread ends, the process goes on in another one. */
static int leaderless(int argc, char **argv)
{
	pthread_t t;

	(void)argc, (void)argv;
	rename_self(SURVIVOR);
	deaf();
	if (pthread_create(&t, NULL, other_thread, NULL) != 0)
		return not_here("no thread");
	pthread_exit(NULL);
}

/* Ends by itself at about the time it is told, to meet the deadline. */
static int just_then(int argc, char **argv)
{
	sleep_ms((unsigned)number(argc, argv, 0, 200));
	return held("ended by itself");
}

static int dump_core(int argc, char **argv)
{
	(void)argc, (void)argv;
	if (chdir("/tmp") < 0)
		return not_here("/tmp: %s", strerror(errno));
	if (fork_or_die() == 0)
		abort();
	(void)wait(NULL);
	if (access("core", F_OK) == 0)
		return broken("a core file was written");
	return held("no core file");
}

const struct probe probes_life[] = {
	{ "sleeper", sleeper },       { "vfork-stuck", vfork_stuck },
	{ "daemon", daemonize },      { "refork", refork },
	{ "subreaper", subreaper },   { "hold-pipe", hold_pipe },
	{ "leaderless", leaderless }, { "just-then", just_then },
	{ "dump-core", dump_core },   { NULL, NULL },
};
