/* Ways to become more than one is: set-id bits, file capabilities, ids, and programs from memory.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "probe.h"

static uint64_t status_field(const char *name)
{
	char all[8192], *p;
	uint64_t v = UINT64_MAX;

	if (slurp("/proc/self/status", all, sizeof(all)) <= 0)
		return v;
	p = strstr(all, name);
	if (p && sscanf(p + strlen(name), ": %llx", (unsigned long long *)&v) != 1)
		v = UINT64_MAX;
	return v;
}

/* no capability in any set, no_new_privs, and a filter: for whoever runs in a box. */
static int nothing_held(int argc, char **argv)
{
	static const char *const sets[] = { "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb" };

	(void)argc, (void)argv;
	for (size_t i = 0; i < COUNT(sets); i++)
		if (status_field(sets[i]) != 0)
			return broken("%s is %llx", sets[i],
				      (unsigned long long)status_field(sets[i]));
	if (status_field("NoNewPrivs") != 1)
		return broken("no_new_privs is off");
	if (status_field("\nSeccomp") != 2)
		return broken("there is no seccomp filter");
	return held("no capability, no_new_privs, filtered");
}

/* ids: prints who we are; with EXPECT, holds when it is so. */
static int ids(int argc, char **argv)
{
	unsigned long want = number(argc, argv, 0, 1000);
	unsigned r, e, s;

	(void)getresuid(&r, &e, &s);
	if (r != want || e != want || s != want)
		return broken("uids %u %u %u", r, e, s);
	return held("uid %u everywhere", r);
}

static int become(int argc, char **argv)
{
	const gid_t groups[] = { 0, 1, 27, 999 };
	const struct call calls[] = {
		{ "setuid 0", SYS_setuid, { 0 } },
		{ "setgid 0", SYS_setgid, { 0 } },
		{ "setresuid 0", SYS_setresuid, { 0, 0, 0 } },
		{ "setreuid 0", SYS_setreuid, { -1, 0 } },
		{ "setresgid 0", SYS_setresgid, { 0, 0, 0 } },
		{ "setgroups", SYS_setgroups, { 4, P(groups) } },
	};

	(void)argc, (void)argv;
	for (size_t i = 0; i < COUNT(calls); i++) {
		struct outcome o = call_apart(&calls[i]);

		if (!o.signal && o.result == 0)
			return broken("%s works", calls[i].what);
	}
	/* setfsuid has no error: it answers with the id that was in force. */
	(void)syscall(SYS_setfsuid, 0);
	if (syscall(SYS_setfsuid, -1) == 0)
		return broken("setfsuid 0 works");
	return held("no other id can be taken");
}

/* Gives a copy of itself the set-id bits and runs it: the ids must stay. Run by root of the box it
 * leaves the file for the user, who runs `suid-use`. */
static int suid_make(int argc, char **argv)
{
	static char self[4 << 20];
	ssize_t n = slurp("/proc/self/exe", self, sizeof(self));
	int fd = open("/tmp/suid", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);

	(void)argc, (void)argv;
	if (n <= 0 || fd < 0 || write(fd, self, (size_t)n) != n)
		return not_here("copy: %s", strerror(errno));
	(void)close(fd);
	if (chmod("/tmp/suid", 06755) < 0)
		return held("no set-id bit: %s", strerror(errno));
	return held("/tmp/suid is set-id, owned by %u", (unsigned)getuid());
}

static int suid_use(int argc, char **argv)
{
	char want[16];

	(void)argc, (void)argv;
	(void)snprintf(want, sizeof(want), "%u", (unsigned)getuid());
	(void)execl("/tmp/suid", "suid", "ids", want, NULL);
	return held("it does not even start: %s", strerror(errno));
}

/* Real set-id programs that came with the system: `su`, `mount` and such, seen from in here. */
static int suid_of_system(int argc, char **argv)
{
	static const char *const dirs[] = { "/usr/bin", "/usr/sbin", "/usr/lib/openssh",
					    "/usr/lib/dbus-1.0", "/usr/libexec" };
	struct statvfs v;
	int found = 0;

	(void)argc, (void)argv;
	for (size_t i = 0; i < COUNT(dirs); i++) {
		DIR *d = opendir(dirs[i]);

		for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
			struct stat st;

			if (fstatat(dirfd(d), e->d_name, &st, 0) < 0 || !(st.st_mode & 06000))
				continue;
			found++;
			if (fstatvfs(dirfd(d), &v) < 0 || !(v.f_flag & ST_NOSUID))
				return broken("%s/%s is set-id and not nosuid", dirs[i], e->d_name);
		}
		if (d)
			(void)closedir(d);
	}
	return held("%d set-id programs, all on nosuid mounts", found);
}

static int file_caps(int argc, char **argv)
{
	static const unsigned char all_caps[20] = {
		1, 0, 0, 2, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0
	};

	(void)argc, (void)argv;
	if (suid_make(0, NULL) != PROBE_HELD)
		return PROBE_BROKEN;
	if (setxattr("/tmp/suid", "security.capability", all_caps, sizeof(all_caps), 0) < 0)
		return held("file capabilities: %s", strerror(errno));
	(void)execl("/tmp/suid", "suid", "nothing-held", NULL);
	return held("it does not even start: %s", strerror(errno));
}

/* A program that is no file: runs, but is bound as everything else is. */
static int from_memory(int argc, char **argv)
{
	static char self[4 << 20];
	char *args[] = { (char *)"memory", (char *)"nothing-held", NULL };
	ssize_t n = slurp("/proc/self/exe", self, sizeof(self));
	int fd = memfd_create("program", MFD_CLOEXEC);

	(void)argc, (void)argv;
	if (fd < 0)
		return held("memfd_create: %s", strerror(errno));
	if (n <= 0 || write(fd, self, (size_t)n) != n)
		return not_here("copy: %s", strerror(errno));
	(void)syscall(SYS_execveat, fd, "", args, (char *[]){ NULL }, AT_EMPTY_PATH);
	return held("execveat: %s", strerror(errno));
}

/* Where nothing needs to run, nothing runs: device and process file systems. */
static int noexec(int argc, char **argv)
{
	static const struct {
		const char *path;
		unsigned long want;
	} places[] = {
		{ "/proc", ST_NOEXEC | ST_NOSUID | ST_NODEV },
		{ "/dev", ST_NOSUID },
		{ "/dev/pts", ST_NOEXEC | ST_NOSUID },
		{ "/dev/shm", ST_NOSUID | ST_NODEV },
		{ "/tmp", ST_NOSUID | ST_NODEV },
		{ "/var/tmp", ST_NOSUID | ST_NODEV },
		{ "/workspace", ST_NOSUID | ST_NODEV },
		{ "/home/user", ST_NOSUID | ST_NODEV },
		{ "/usr", ST_RDONLY | ST_NOSUID | ST_NODEV },
		{ "/etc", ST_RDONLY | ST_NOSUID },
		{ "/", ST_RDONLY | ST_NOSUID }, /* holds the device nodes */
	};

	(void)argc, (void)argv;
	for (size_t i = 0; i < COUNT(places); i++) {
		struct statvfs v;

		if (statvfs(places[i].path, &v) < 0)
			return broken("%s: %s", places[i].path, strerror(errno));
		if ((v.f_flag & places[i].want) != places[i].want)
			return broken("%s has mount flags %#lx, want %#lx", places[i].path,
				      v.f_flag, places[i].want);
	}
	return held("%zu mounts have their flags", COUNT(places));
}

const struct probe probes_privilege[] = {
	{ "nothing-held", nothing_held },
	{ "ids", ids },
	{ "become", become },
	{ "suid-make", suid_make },
	{ "suid-use", suid_use },
	{ "suid-system", suid_of_system },
	{ "file-caps", file_caps },
	{ "from-memory", from_memory },
	{ "noexec", noexec },
	{ NULL, NULL },
};
