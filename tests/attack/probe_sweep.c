/* Every system call number once, to see which ones the filter lets through. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <sys/wait.h>

#include "probe.h"

/* Arguments that no call can do anything with, but for those whose answer to nonsense looks like a
 * refusal. The kernel's own ENOSYS for an unknown futex operation is such a case. */
static void arguments(long nr, long args[6])
{
	for (int i = 0; i < 6; i++)
		args[i] = -1;
	if (nr == SYS_futex)
		args[1] = 1; /* FUTEX_WAKE of a bad address */
	if (nr == SYS_socket)
		args[0] = 1; /* AF_UNIX of a bad type */
	if (nr == SYS_socketpair)
		args[0] = 1;
	if (nr == SYS_prlimit64)
		args[0] = 0; /* one's own limit of a bad number */
	if (nr == SYS_clone)
		args[0] = 0x00010000 /* CLONE_THREAD alone: EINVAL */;
}

/* Ends or never ends by its nature: known to be allowed when the child did not come back. */
static int try_one(long nr, struct outcome *o)
{
	pid_t pid = fork(), self = getpid();
	int status = 0;
	long a[6];

	if (pid == 0) {
		self = getpid();
		(void)signal(SIGALRM, SIG_DFL);
		(void)alarm(1);
		arguments(nr, a);
		o->result = syscall(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
		o->error = errno;
		if (getpid() != self) /* it made another process */
			_exit(0);
		_exit(1);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		return -1;
	o->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	return WIFEXITED(status) && WEXITSTATUS(status) == 1;
}

/* sweep FROM TO: prints the numbers that were not refused, "n" a line, then the verdict. */
static int sweep(int argc, char **argv)
{
	long from = (long)number(argc, argv, 0, 0), to = (long)number(argc, argv, 1, 600);
	struct outcome *o = shared(sizeof(*o));

	if (!in_a_box())
		return not_here("this does not look like a box");
	for (long nr = from; nr < to; nr++) {
		int returned;

		*o = (struct outcome){ 0 };
		returned = try_one(nr, o);
		if (returned < 0)
			return not_here("number %ld: %s", nr, strerror(errno));
		if (o->signal == SIGSYS)
			continue;
		if (returned && o->result == -1 && (o->error == EPERM || o->error == ENOSYS))
			continue;
		printf("%ld\n", nr);
	}
	return held("swept %ld to %ld", from, to - 1);
}

const struct probe probes_sweep[] = {
	{ "sweep", sweep },
	{ NULL, NULL },
};
