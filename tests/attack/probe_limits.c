/* Raising what was set: rlimits, priority, scheduling, and exec with what is too large. */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe.h"

static int raise_rlimits(int argc, char **argv)
{
	(void)argc, (void)argv;
	for (int which = 0; which < 16; which++) {
		struct rlimit now, more, after;

		if (getrlimit(which, &now) < 0 || now.rlim_max == RLIM_INFINITY)
			continue;
		more = (struct rlimit){ now.rlim_max + 1, now.rlim_max + 1 };
		(void)setrlimit(which, &more);
		(void)getrlimit(which, &after);
		if (after.rlim_max > now.rlim_max)
			return broken("rlimit %d rose above %llu", which,
				      (unsigned long long)now.rlim_max);
		more.rlim_cur = more.rlim_max = RLIM_INFINITY;
		(void)setrlimit(which, &more);
		(void)getrlimit(which, &after);
		if (after.rlim_max != now.rlim_max)
			return broken("rlimit %d became unlimited", which);
	}
	return held("no hard limit rises");
}

/* These must be there at all, and be finite. */
static int finite_rlimits(int argc, char **argv)
{
	static const struct {
		const char *name;
		int which;
		rlim_t most;
	} want[] = {
		{ "core", RLIMIT_CORE, 1 },
		{ "nofile", RLIMIT_NOFILE, 1024 },
		{ "nice", RLIMIT_NICE, 20 },
		{ "rtprio", RLIMIT_RTPRIO, 0 },
		{ "memlock", RLIMIT_MEMLOCK, 64 << 20 },
		{ "msgqueue", RLIMIT_MSGQUEUE, 64 << 20 },
		{ "sigpending", RLIMIT_SIGPENDING, 100000 },
	};

	(void)argc, (void)argv;
	for (size_t i = 0; i < COUNT(want); i++) {
		struct rlimit r;

		(void)getrlimit(want[i].which, &r);
		if (r.rlim_max > want[i].most)
			return broken("hard limit of %s is %llu", want[i].name,
				      (unsigned long long)r.rlim_max);
	}
	return held("%zu limits are set", COUNT(want));
}

static int others_rlimits(int argc, char **argv)
{
	struct rlimit r;

	(void)argc, (void)argv;
	if (prlimit(1, RLIMIT_NOFILE, NULL, &r) == 0)
		return broken("the limits of PID 1 can be read");
	if (!is_refusal(errno))
		return broken("PID 1: %s", strerror(errno));
	return held("PID 1: %s", strerror(errno));
}

struct sched_attr_v0 {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};

static int schedule(int argc, char **argv)
{
	struct sched_attr_v0 fifo = { .size = 48, .policy = SCHED_FIFO, .priority = 50 };
	struct sched_attr_v0 deadline = {
		.size = 48, .policy = 6, .runtime = 5000000, .deadline = 9000000, .period = 9000000
	};
	struct sched_param p = { .sched_priority = 1 };
	unsigned long all[16];
	const struct call calls[] = {
		{ "SCHED_FIFO", SYS_sched_setscheduler, { 0, SCHED_FIFO, P(&p) } },
		{ "SCHED_RR", SYS_sched_setscheduler, { 0, SCHED_RR, P(&p) } },
		{ "sched_setattr FIFO", SYS_sched_setattr, { 0, P(&fifo), 0 } },
		{ "sched_setattr DEADLINE", SYS_sched_setattr, { 0, P(&deadline), 0 } },
		{ "nice -20", SYS_setpriority, { PRIO_PROCESS, 0, -20 } },
		{ "ionice realtime", SYS_ioprio_set, { 1, 0, (1 << 13) | 0 } },
		{ "affinity of PID 1", SYS_sched_setaffinity, { 1, sizeof(all), P(all) } },
		{ "scheduler of PID 1", SYS_sched_setscheduler, { 1, 77, P(&p) } },
		{ "move_pages", SYS_move_pages, { 1, 0, 0, 0, 0, 0 } },
		{ "migrate_pages", SYS_migrate_pages, { 1, 64, P(all), P(all) } },
	};

	(void)argc, (void)argv;
	memset(all, 0xff, sizeof(all));
	return refuse_calls(calls, COUNT(calls));
}

static int exec_errno(char *const *argv, char *const *envp)
{
	int status = 0;
	pid_t pid = fork_or_die();

	if (pid == 0) {
		(void)execve("/proc/self/exe", argv, envp);
		_exit(errno);
	}
	(void)waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static char *long_text(size_t n, const char *start)
{
	char *s = malloc(n + 1);

	if (!s)
		abort();
	memset(s, 'e', n);
	memcpy(s, start, strlen(start));
	s[n] = '\0';
	return s;
}

static int huge_exec(int argc, char **argv)
{
	char *env_1m[] = { long_text(1 << 20, "BIG="), NULL };
	char *plain[] = { (char *)"p", (char *)"--list", NULL };
	static char *many[200001];
	int r;

	(void)argc, (void)argv;
	r = exec_errno(plain, env_1m);
	if (r != E2BIG)
		return broken("a 1 MiB variable ended with %d", r);
	for (size_t i = 0; i + 1 < COUNT(many); i++)
		many[i] = (char *)"0123456789012345678901234567890123456789";
	r = exec_errno(many, plain + 2);
	if (r != E2BIG)
		return broken("200000 arguments ended with %d", r);
	r = exec_errno(plain + 2, plain + 2);
	if (r < 0)
		return broken("no argv[0] ended with signal %d", -r);
	return held("too large is refused, an empty argv is survived");
}

const struct probe probes_limits[] = {
	{ "raise-rlimits", raise_rlimits },   { "finite-rlimits", finite_rlimits },
	{ "others-rlimits", others_rlimits }, { "schedule", schedule },
	{ "huge-exec", huge_exec },           { NULL, NULL },
};
