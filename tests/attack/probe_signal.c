/* Signals to those who should not get any. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe.h"

/* Every signal to PID 1, by every call there is. That it still answers is asked from outside. */
static int shoot_init(int argc, char **argv)
{
	siginfo_t info = { .si_code = SI_QUEUE };
	int pidfd = (int)syscall(SYS_pidfd_open, 1, 0), delivered = 0;

	(void)argc, (void)argv;
	if (!in_a_box())
		return not_here("this does not look like a box");
	for (int round = 0; round < 3; round++)
		for (int s = 1; s < 65; s++) {
			delivered += kill(1, s) == 0;
			delivered += syscall(SYS_tgkill, 1, 1, s) == 0;
			delivered += syscall(SYS_tkill, 1, s) == 0;
			info.si_signo = s;
			(void)syscall(SYS_rt_sigqueueinfo, 1, s, &info);
			(void)syscall(SYS_rt_tgsigqueueinfo, 1, 1, s, &info);
			if (pidfd >= 0)
				(void)syscall(SYS_pidfd_send_signal, pidfd, s, NULL, 0);
		}
	if (kill(1, 0) < 0 && errno == ESRCH)
		return broken("PID 1 is gone");
	return held("%d signals were let through, PID 1 stands", delivered);
}

/* Kills everything it may, which outside a box would be everything. */
static int shoot_all(int argc, char **argv)
{
	pid_t child;
	int status = 0;

	(void)argc, (void)argv;
	if (!in_a_box())
		return not_here("this does not look like a box");
	child = fork_or_die();
	if (child == 0)
		for (;;)
			(void)pause();
	if (kill(-1, SIGKILL) < 0)
		return not_here("kill(-1): %s", strerror(errno));
	(void)waitpid(child, &status, 0);
	if (!WIFSIGNALED(status))
		return broken("kill(-1) missed the child");
	return held("everything of this user is dead");
}

/* signal-outside PID...: processes of the machine and of other boxes. */
static int outside(int argc, char **argv)
{
	for (int i = 0; i < argc; i++) {
		pid_t pid = (pid_t)number(argc, argv, i, 0);

		if (pid <= 512)
			continue; /* may well exist in here */
		if (kill(pid, 0) == 0 || errno != ESRCH)
			return broken("process %d can be seen: %s", (int)pid, strerror(errno));
		if (syscall(SYS_pidfd_open, pid, 0) >= 0)
			return broken("process %d can be opened", (int)pid);
	}
	return held("%d processes of others are unknown here", argc);
}

/* Asks the kernel to send SIGIO to a process group or a process of its choice. */
static int by_owner(int argc, char **argv)
{
	int fds[2];

	(void)argc, (void)argv;
	if (!in_a_box() || pipe(fds) < 0)
		return not_here("pipe: %s", strerror(errno));
	(void)fcntl(fds[0], F_SETOWN, 1);
	(void)fcntl(fds[0], 10 /* F_SETSIG */, SIGKILL);
	(void)fcntl(fds[0], F_SETFL, O_ASYNC | O_NONBLOCK);
	for (int i = 0; i < 100; i++)
		(void)write(fds[1], "x", 1);
	sleep_ms(50);
	if (kill(1, 0) < 0 && errno == ESRCH)
		return broken("PID 1 is gone");
	return held("SIGIO does not reach PID 1");
}

struct robust_list_head {
	void *next;
	long offset;
	void *pending;
};

/* A list of locks that points everywhere is walked by the kernel when the process ends. */
static int robust(int argc, char **argv)
{
	struct robust_list_head *head = shared(4096);
	size_t len = 0;
	void *got = NULL;

	(void)argc, (void)argv;
	if (syscall(SYS_get_robust_list, 1, &got, &len) == 0)
		return broken("the robust list of PID 1 can be read");
	for (int i = 0; i < 200; i++) {
		pid_t pid = fork_or_die();

		if (pid == 0) {
			head->next = i % 2 ? (void *)head : (void *)(uintptr_t)0xffff800000000000u;
			head->offset = i % 3 ? -8 : 0x7fffffffffff;
			head->pending = (void *)(uintptr_t)(i * 4096);
			(void)syscall(SYS_set_robust_list, head, sizeof(*head));
			_exit(0);
		}
		(void)waitpid(pid, NULL, 0);
	}
	return held("200 ends with a wild robust list");
}

const struct probe probes_signal[] = {
	{ "shoot-init", shoot_init }, { "shoot-all", shoot_all }, { "signal-outside", outside },
	{ "signal-owner", by_owner }, { "robust", robust },       { NULL, NULL },
};
