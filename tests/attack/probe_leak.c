/* What a box could learn about the machine it runs on. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "probe.h"

/* The secrets as arguments; our own command line has them too and is left out. */
struct search {
	char **secrets;
	int count, files;
	char pid[16];
};

static const char *find_secret(const struct search *s, const char *data, size_t n)
{
	for (int i = 0; i < s->count; i++)
		if (memmem(data, n, s->secrets[i], strlen(s->secrets[i])))
			return s->secrets[i];
	return NULL;
}

static int search_file(struct search *s, const char *path)
{
	static char data[256 << 10];
	ssize_t n = slurp(path, data, sizeof(data));
	const char *secret;

	if (n <= 0)
		return 0;
	s->files++;
	secret = find_secret(s, data, (size_t)n);
	return secret ? broken("%s tells '%s'", path, secret) : 0;
}

static bool is_our_own(const struct search *s, const char *path)
{
	size_t n = strlen(s->pid);

	if (strncmp(path, "/proc/self", 10) == 0 || strncmp(path, "/proc/thread-self", 17) == 0)
		return true; /* the same files as under our number */
	if (strstr(path, "/cmdline") && strncmp(path, "/proc/", 6) == 0 &&
	    strncmp(path + 6, s->pid, n) == 0)
		return true;
	return strncmp(path, "/proc/", 6) == 0 && strncmp(path + 6, s->pid, n) == 0 &&
	       (strstr(path, "/mem") || strstr(path, "/pagemap"));
}

static int search_tree(struct search *s, const char *dir, int depth);

/* One name: itself, what it holds, or where it points. */
static int search_entry(struct search *s, const char *path, const char *name, int depth)
{
	char target[1024];
	struct stat st;
	ssize_t n;

	if (is_our_own(s, path) || strncmp(path, "/usr/", 5) == 0 || lstat(path, &st) < 0)
		return 0;
	if (find_secret(s, name, strlen(name)))
		return broken("a name tells: %s", path);
	if (S_ISDIR(st.st_mode))
		return search_tree(s, path, depth + 1);
	if (S_ISREG(st.st_mode))
		return search_file(s, path);
	n = S_ISLNK(st.st_mode) ? readlink(path, target, sizeof(target)) : 0;
	if (n > 0 && find_secret(s, target, (size_t)n))
		return broken("%s points to %.*s", path, (int)n, target);
	return 0;
}

static int search_tree(struct search *s, const char *dir, int depth)
{
	DIR *d = depth > 7 ? NULL : opendir(dir);
	int found = 0;

	for (struct dirent *e = d ? readdir(d) : NULL; e && !found; e = readdir(d)) {
		char path[1024];

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		(void)snprintf(path, sizeof(path), "%s/%s", strcmp(dir, "/") ? dir : "", e->d_name);
		found = search_entry(s, path, e->d_name, depth);
	}
	if (d)
		(void)closedir(d);
	return found;
}

/* leak-search SECRET...: no readable file outside /usr holds any of these. */
static int search(int argc, char **argv)
{
	struct search s = { .secrets = argv, .count = argc };

	(void)snprintf(s.pid, sizeof(s.pid), "%d", (int)getpid());
	if (search_tree(&s, "/", 0))
		return PROBE_BROKEN;
	for (char **e = environ; *e; e++)
		if (find_secret(&s, *e, strlen(*e)))
			return broken("the environment tells %s", *e);
	return held("%d files, none tells any of %d secrets", s.files, argc);
}

/* What counts the doings of the whole machine: a channel between boxes, and a clock of neighbours.
 */
static int counters(int argc, char **argv)
{
	static const char *const paths[] = {
		"/proc/buddyinfo",
		"/proc/cgroups",
		"/proc/diskstats",
		"/proc/interrupts",
		"/proc/key-users",
		"/proc/locks",
		"/proc/mdstat",
		"/proc/pressure/cpu",
		"/proc/pressure/io",
		"/proc/pressure/memory",
		"/proc/schedstat",
		"/proc/slabinfo",
		"/proc/softirqs",
		"/proc/swaps",
		"/proc/timer_list",
		"/proc/vmallocinfo",
		"/proc/vmstat",
		"/proc/zoneinfo",
		"/proc/irq/0/spurious",
		"/proc/sys/fs/aio-nr",
		"/proc/sys/fs/dentry-state",
		"/proc/sys/fs/file-nr",
		"/proc/sys/fs/inode-nr",
		"/proc/sys/fs/inode-state",
		"/proc/sys/fs/quota/syncs",
		"/proc/sys/kernel/pty/nr",
	};
	char data[256];

	(void)argc, (void)argv;
	for (size_t i = 0; i < COUNT(paths); i++)
		if (slurp(paths[i], data, sizeof(data)) > 0)
			return broken("%s tells: %.20s", paths[i], data);
	return held("none of %zu counters can be read", COUNT(paths));
}

static int environment(int argc, char **argv)
{
	static const char *const known[] = { "PATH",   "HOME",         "USER",   "LOGNAME",
					     "SHELL",  "LANG",         "TERM",   "PWD",
					     "TMPDIR", "HOLT_SANDBOX", "LC_ALL", "HOSTNAME" };

	(void)argc, (void)argv;
	for (char **e = environ; *e; e++) {
		bool ok = false;

		for (size_t i = 0; i < COUNT(known); i++)
			ok |= strncmp(*e, known[i], strlen(known[i])) == 0 &&
			      (*e)[strlen(known[i])] == '=';
		if (!ok)
			return broken("the environment has %s", *e);
	}
	return held("the environment is the box's own");
}

static int names(int argc, char **argv)
{
	struct utsname u;

	(void)argc, (void)argv;
	if (uname(&u) < 0)
		return not_here("uname: %s", strerror(errno));
	if (strcmp(u.nodename, "sandbox") != 0)
		return broken("the host is called %s", u.nodename);
	if (strcmp(u.domainname, "(none)") != 0 && u.domainname[0])
		return broken("the domain is called %s", u.domainname);
	return held("host %s", u.nodename);
}

/* Accounts: the few that programs need, none of a person. */
static int accounts(int argc, char **argv)
{
	static const char *const known[] = {
		"root",    "user",  "nobody", "daemon", "bin", "sys",
		"nogroup", "users", "tty",    "mail",   "adm", "staff"
	};
	char all[8192];

	(void)argc, (void)argv;
	for (int file = 0; file < 2; file++) {
		const char *path = file ? "/etc/group" : "/etc/passwd";

		if (slurp(path, all, sizeof(all)) <= 0)
			return broken("%s: %s", path, strerror(errno));
		for (char *line = all; *line; line += strcspn(line, "\n") + 1) {
			bool ok = false;

			for (size_t i = 0; i < COUNT(known); i++)
				ok |= strncmp(line, known[i], strlen(known[i])) == 0 &&
				      line[strlen(known[i])] == ':';
			if (!ok)
				return broken("%s has %.60s", path, line);
		}
	}
	return held("only the box's own accounts");
}

/* Files of /etc that are about this machine, its users and its network. */
static int etc_files(int argc, char **argv)
{
	static const char *const files[] = {
		"/etc/machine-id",
		"/etc/shadow",
		"/etc/gshadow",
		"/etc/ssh",
		"/etc/sudoers",
		"/etc/fstab",
		"/etc/crontab",
		"/etc/network",
		"/etc/NetworkManager",
		"/etc/systemd",
		"/etc/krb5.keytab",
		"/etc/ssl/private",
		"/etc/letsencrypt",
		"/etc/docker",
		"/etc/kubernetes",
		"/etc/default/grub",
		"/etc/postgresql",
		"/etc/subuid",
		"/etc/apt/auth.conf",
		"/etc/apt/sources.list",
		"/etc/environment",
		"/var/lib/dbus/machine-id",
		"/var/log/syslog",
		"/var/lib/systemd/random-seed",
		"/root/.ssh",
		"/root/.bash_history",
		"/home/user/.ssh",
		"/boot/vmlinuz",
		"/var/run/utmp",
		"/var/log/wtmp",
		"/var/spool/cron",
		"/run/systemd",
		"/run/secrets",
		"/var/run/secrets",
		"/lost+found",
		"/mnt",
		"/media",
		"/srv",
	};
	char path[256];

	(void)argc, (void)argv;
	for (size_t i = 0; i < COUNT(files); i++) {
		(void)snprintf(path, sizeof(path), "%s", files[i]);
		if (access(path, F_OK) == 0 && access(path, R_OK) == 0) {
			DIR *d = opendir(path);
			char byte[2];
			int n = 0;

			for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d))
				n++;
			if (d)
				(void)closedir(d);
			if (n > 2 || (!d && slurp(path, byte, sizeof(byte)) > 0))
				return broken("%s is here", path);
		}
	}
	return held("%zu files of the machine are not here", COUNT(files));
}

/* Sources and roots of the mounts: no path of the machine but the system directories. */
static int mounts(int argc, char **argv)
{
	static const char *const roots[] = { "/",
					     "/usr",
					     "/bin",
					     "/lib",
					     "/lib64",
					     "/sbin",
					     "/dev/null",
					     "/sys",
					     "/null",
					     "/zero",
					     "/full",
					     "/random",
					     "/urandom",
					     "/tty",
					     "/etc/ssl/certs",
					     "/etc/alternatives",
					     "/etc/ld.so.cache",
					     "/tmp",
					     "/workspace",
					     "/home",
					     "/home/user",
					     "/var/tmp",
					     "/dev",
					     "/shm",
					     "/etc",
					     "/user",
					     "/root" };
	static char all[64 << 10];
	int n = 0;

	(void)argc, (void)argv;
	if (slurp("/proc/self/mountinfo", all, sizeof(all)) <= 0)
		return not_here("mountinfo: %s", strerror(errno));
	for (char *line = all; *line; line += strcspn(line, "\n") + 1, n++) {
		char root[256];
		bool ok = false;

		if (sscanf(line, "%*s %*s %*s %255s", root) != 1)
			continue;
		for (size_t i = 0; i < COUNT(roots); i++)
			ok |= strcmp(roots[i], root) == 0;
		if (!ok)
			return broken("a mount shows %s", root);
	}
	return held("%d mounts, none shows a path of the machine", n);
}

/* A process that is neither PID 1 nor we; its name, or "". */
static void find_stranger(char *ret, size_t size)
{
	DIR *d = opendir("/proc");
	char self[16];

	(void)snprintf(self, sizeof(self), "%d", (int)getpid());
	ret[0] = '\0';
	for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d))
		if (e->d_name[0] >= '1' && e->d_name[0] <= '9' && strcmp(e->d_name, self) != 0 &&
		    strcmp(e->d_name, "1") != 0)
			(void)snprintf(ret, size, "%.20s", e->d_name);
	if (d)
		(void)closedir(d);
}

/* Only ourselves; what served the upload may take a moment to go. */
static int processes(int argc, char **argv)
{
	char stranger[32] = "";

	(void)argc, (void)argv;
	for (int i = 0; i < 50; i++) {
		find_stranger(stranger, sizeof(stranger));
		if (!stranger[0])
			return held("only itself");
		sleep_ms(20);
	}
	return broken("process %s is seen", stranger);
}

const struct probe probes_leak[] = {
	{ "leak-search", search }, { "counters", counters },   { "environment", environment },
	{ "names", names },        { "accounts", accounts },   { "etc-files", etc_files },
	{ "mounts-seen", mounts }, { "processes", processes }, { NULL, NULL },
};
