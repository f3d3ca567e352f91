/* New namespaces, and the namespaces of others. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe.h"

static const struct {
	const char *name;
	unsigned long flag;
} kinds[] = {
	{ "user", CLONE_NEWUSER },     { "mnt", CLONE_NEWNS },  { "pid", CLONE_NEWPID },
	{ "net", CLONE_NEWNET },       { "ipc", CLONE_NEWIPC }, { "uts", CLONE_NEWUTS },
	{ "cgroup", CLONE_NEWCGROUP }, { "time", 0x80 },
};

static int by_unshare(int argc, char **argv)
{
	(void)argc, (void)argv;
	for (size_t i = 0; i < COUNT(kinds); i++) {
		const unsigned long flags[] = { kinds[i].flag, kinds[i].flag | CLONE_NEWUSER };

		for (size_t k = 0; k < COUNT(flags); k++) {
			struct call c = { kinds[i].name, SYS_unshare, { (long)flags[k] } };

			if (!all_refused(&c, 1))
				return PROBE_BROKEN;
		}
	}
	return held("no namespace by unshare");
}

static int by_clone(int argc, char **argv)
{
	(void)argc, (void)argv;
	for (size_t i = 0; i < COUNT(kinds); i++) {
		long pid;

		if (kinds[i].flag == 0x80)
			continue; /* shares its bit with the exit signal: clone cannot say it */
		pid = syscall(SYS_clone, kinds[i].flag | CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
		if (pid == 0)
			_exit(0);
		if (pid > 0)
			return broken("clone made a %s namespace", kinds[i].name);
		pid = syscall(SYS_clone, kinds[i].flag | SIGCHLD | (1ull << 33), 0, 0, 0, 0);
		if (pid == 0)
			_exit(0);
		if (pid > 0)
			return broken("clone with high bits made a %s namespace", kinds[i].name);
	}
	return held("no namespace by clone");
}

struct clone3_args {
	uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls;
	uint64_t set_tid, set_tid_size, cgroup;
};

/* clone3's flags are behind a pointer, where no filter can look: it must not be there at all. */
static int by_clone3(int argc, char **argv)
{
	struct clone3_args plain = { .exit_signal = SIGCHLD };
	struct clone3_args user = { .flags = CLONE_NEWUSER, .exit_signal = SIGCHLD };
	const struct clone3_args *tries[] = { &plain, &user };

	(void)argc, (void)argv;
	for (size_t i = 0; i < COUNT(tries); i++) {
		long pid = syscall(SYS_clone3, tries[i], sizeof(*tries[i]));

		if (pid == 0)
			_exit(0);
		if (pid > 0 || errno != ENOSYS)
			return broken("clone3 gave %ld: %s", pid, strerror(errno));
	}
	return held("clone3: %s", strerror(errno));
}

static int join(int argc, char **argv)
{
	static const char *const owners[] = { "self", "1", "thread-self", "self/task/1" };
	char path[128];

	(void)argc, (void)argv;
	for (size_t o = 0; o < COUNT(owners); o++)
		for (size_t i = 0; i < COUNT(kinds); i++) {
			struct call c = { path, SYS_setns, { 0 } };
			int fd;

			(void)snprintf(path, sizeof(path), "/proc/%s/ns/%s", owners[o],
				       kinds[i].name);
			fd = open(path, O_RDONLY | O_CLOEXEC);
			if (fd >= 0 && o == 1)
				return broken("%s opens", path);
			c.args[0] = fd;
			if (!all_refused(&c, 1))
				return PROBE_BROKEN;
			if (fd >= 0)
				(void)close(fd);
		}
	return held("no namespace by setns");
}

/* nf_tables is reached by a new user and network namespace and a netlink socket: all three closed.
 */
static int netfilter(int argc, char **argv)
{
	const struct call calls[] = {
		{ "unshare user and net", SYS_unshare, { CLONE_NEWUSER | CLONE_NEWNET } },
		{ "netlink netfilter", SYS_socket, { AF_NETLINK, SOCK_RAW, 12 } },
		{ "netlink route", SYS_socket, { AF_NETLINK, SOCK_DGRAM, 0 } },
		{ "raw socket for iptables", SYS_socket, { AF_INET, SOCK_RAW, 255 } },
	};
	int fd = socket(AF_INET, SOCK_DGRAM, 0), v;
	socklen_t n = sizeof(v);

	(void)argc, (void)argv;
	/* The old interface is a socket option: SO_GET_INFO of iptables. */
	if (fd >= 0 && getsockopt(fd, 0 /* SOL_IP */, 64, &v, &n) == 0)
		return broken("iptables answers");
	if (fd >= 0 && setsockopt(fd, 0, 64, &v, sizeof(v)) == 0)
		return broken("iptables takes rules");
	return refuse_calls(calls, COUNT(calls));
}

/* The classic way out of a chroot. */
static int chroot_walk(int argc, char **argv)
{
	struct stat root, up;
	int fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	(void)argc, (void)argv;
	(void)mkdir("/tmp/jail", 0700);
	if (chroot("/tmp/jail") == 0)
		return broken("chroot works");
	if (fd < 0 || fchdir(fd) < 0)
		return not_here("/: %s", strerror(errno));
	for (int i = 0; i < 64; i++)
		(void)chdir("..");
	if (stat(".", &up) < 0 || stat("/", &root) < 0)
		return not_here("stat: %s", strerror(errno));
	if (up.st_dev != root.st_dev || up.st_ino != root.st_ino)
		return broken("above / there is another directory");
	return held("chroot is refused, / is the top");
}

const struct probe probes_namespace[] = {
	{ "by-unshare", by_unshare },
	{ "by-clone", by_clone },
	{ "by-clone3", by_clone3 },
	{ "join", join },
	{ "netfilter", netfilter },
	{ "chroot-walk", chroot_walk },
	{ NULL, NULL },
};
