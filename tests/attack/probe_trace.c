/* Other processes' memory, registers and descriptors: PID 1's, a sibling's, one's own. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe.h"

/* ptrace PID: attach and seize; where it worked, let go at once. */
static int trace(int argc, char **argv)
{
	pid_t pid = (pid_t)number(argc, argv, 0, 1);

	if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) == 0) {
		(void)ptrace(PTRACE_DETACH, pid, NULL, NULL);
		return broken("PTRACE_SEIZE of %d works", (int)pid);
	}
	if (!is_refusal(errno) && errno != ESRCH)
		return broken("PTRACE_SEIZE of %d: %s", (int)pid, strerror(errno));
	if (ptrace(PTRACE_ATTACH, pid, NULL, NULL) == 0) {
		(void)ptrace(PTRACE_DETACH, pid, NULL, NULL);
		return broken("PTRACE_ATTACH to %d works", (int)pid);
	}
	return held("ptrace of %d: %s", (int)pid, strerror(errno));
}

static int trace_sibling(int argc, char **argv)
{
	pid_t sibling = fork_or_die();
	char arg[16];
	char *args[] = { arg };
	int r;

	(void)argc, (void)argv;
	if (sibling == 0)
		for (;;)
			(void)pause();
	(void)snprintf(arg, sizeof(arg), "%d", (int)sibling);
	r = trace(1, args);
	end_children();
	return r;
}

static int memory_of(int argc, char **argv)
{
	long pid = (long)number(argc, argv, 0, 1);
	char here[64] = { 0 };
	struct iovec local = { here, sizeof(here) }, remote = { (void *)0x400000, sizeof(here) };
	const struct call calls[] = {
		{ "process_vm_readv",
		  SYS_process_vm_readv,
		  { pid, P(&local), 1, P(&remote), 1, 0 } },
		{ "process_vm_writev",
		  SYS_process_vm_writev,
		  { pid, P(&local), 1, P(&remote), 1, 9 } },
	};

	return refuse_calls(calls, COUNT(calls));
}

/* Everything of PID 1 that /proc could show. */
static int init_files(int argc, char **argv)
{
	static const char *const files[] = {
		"mem",    "environ",   "maps",       "smaps",           "smaps_rollup",
		"auxv",   "pagemap",   "stack",      "syscall",         "personality",
		"fd/0",   "fd/3",      "fdinfo/3",   "root/etc/passwd", "cwd/x",
		"exe",    "map_files", "task/1/mem", "task/1/environ",  "io",
		"timers", "ns/net",    "numa_maps",  "patch_state",     "oom_score_adj/",
	};
	char path[64];

	(void)argc, (void)argv;
	for (size_t i = 0; i < COUNT(files); i++)
		for (int flags = O_RDONLY; flags <= O_RDWR; flags++) {
			char byte;
			int fd;

			(void)snprintf(path, sizeof(path), "/proc/1/%s", files[i]);
			fd = open(path, flags | O_CLOEXEC | O_NONBLOCK);
			if (fd >= 0 && read(fd, &byte, 1) > 0)
				return broken("%s can be read", path);
			if (fd >= 0 && flags != O_RDONLY)
				return broken("%s opens for writing", path);
			if (fd >= 0)
				(void)close(fd);
		}
	if (readlink("/proc/1/exe", path, sizeof(path)) > 0 ||
	    readlink("/proc/1/cwd", path, sizeof(path)) > 0 ||
	    readlink("/proc/1/root", path, sizeof(path)) > 0 ||
	    readlink("/proc/1/fd/3", path, sizeof(path)) > 0)
		return broken("links of PID 1 can be read");
	return held("nothing of PID 1 is readable");
}

/* Copying a descriptor out of PID 1: its control socket is number 3. */
static int steal_fd(int argc, char **argv)
{
	long pidfd = syscall(SYS_pidfd_open, 1, 0);

	(void)argc, (void)argv;
	for (long fd = 0; fd < 16; fd++) {
		struct call c = { "pidfd_getfd", SYS_pidfd_getfd, { pidfd, fd, 0 } };

		if (!all_refused(&c, 1))
			return PROBE_BROKEN;
	}
	return held("no descriptor of PID 1 can be copied");
}

/* prctl on oneself that would loosen something; on others there is no prctl. */
static int loosen(int argc, char **argv)
{
	const struct call calls[] = {
		{ "PR_SET_MM", SYS_prctl, { PR_SET_MM, PR_SET_MM_BRK, 0, 0, 0 } },
		{ "PR_SET_MM with high bits", SYS_prctl, { PR_SET_MM | (1l << 32), 99, 0, 0, 0 } },
	};

	(void)argc, (void)argv;
	if (prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0)
		return broken("no_new_privs can be taken back");
	if (prctl(PR_SET_SECUREBITS, 0) == 0)
		return broken("securebits can be set");
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, 21, 0, 0) == 0)
		return broken("an ambient capability can be raised");
	if (prctl(PR_SET_SECCOMP, 0, 0, 0, 0) == 0)
		return broken("seccomp can be switched off");
	return refuse_calls(calls, COUNT(calls));
}

/* Being dumpable again opens oneself, and only oneself. */
static int dumpable(int argc, char **argv)
{
	(void)argc, (void)argv;
	(void)prctl(PR_SET_DUMPABLE, 1);
	(void)prctl(PR_SET_PDEATHSIG, SIGCONT);
	if (access("/proc/1/environ", R_OK) == 0 && open("/proc/1/environ", O_RDONLY) >= 0)
		return broken("PID 1 became readable");
	return held("PID 1 stays closed");
}

const struct probe probes_trace[] = {
	{ "trace", trace },         { "trace-sibling", trace_sibling },
	{ "memory-of", memory_of }, { "init-files", init_files },
	{ "steal-fd", steal_fd },   { "loosen", loosen },
	{ "dumpable", dumpable },   { NULL, NULL },
};
