/* What the machine looks like from outside. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "attack.h"
#include "base/cleanup.h"
#include "base/fd.h"
#include "base/parse.h"
#include "base/str.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define CGROUP_ROOT "/sys/fs/cgroup"

static const char *const sysctls[] = {
	"kernel/core_pattern",  "kernel/modprobe",
	"kernel/hostname",      "kernel/domainname",
	"kernel/sysrq",         "kernel/panic",
	"kernel/pid_max",       "kernel/randomize_va_space",
	"kernel/shmmax",        "kernel/threads-max",
	"vm/overcommit_memory", "vm/swappiness",
	"vm/panic_on_oom",      "fs/suid_dumpable",
	"net/ipv4/ip_forward",  "user/max_user_namespaces",
	"fs/mqueue/queues_max",
};

static void append_file(struct buf *b, const char *name, const char *path)
{
	_cleanup_(buf_done) struct buf text = { .max = 4u << 20 };
	_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd >= 0)
		(void)fd_slurp(fd, &text);
	(void)buf_printf(b, "%s=", name);
	(void)buf_append(b, buf_str(&text), text.len);
	(void)buf_putc(b, '\n');
}

/* Name, size, owner, mode and contents of everything in our directory on the machine. */
static void append_dir(struct buf *b, const char *dir, int depth)
{
	DIR *d = opendir(dir);

	for (struct dirent *e = d ? readdir(d) : NULL; e && depth < 4; e = readdir(d)) {
		char path[1024];
		struct stat st;

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		(void)snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		if (lstat(path, &st) < 0)
			continue;
		(void)buf_printf(b, "%s %o %u %llu %lld\n", path, st.st_mode, st.st_uid,
				 (unsigned long long)st.st_ino, (long long)st.st_mtime);
		if (S_ISDIR(st.st_mode))
			append_dir(b, path, depth + 1);
		else if (S_ISREG(st.st_mode))
			append_file(b, path, path);
	}
	if (d)
		(void)closedir(d);
}

void machine_look(struct world *w, struct machine *ret)
{
	char path[128];

	*ret = (struct machine){ 0 };
	for (size_t i = 0; i < COUNT(sysctls); i++) {
		(void)snprintf(path, sizeof(path), "/proc/sys/%s", sysctls[i]);
		append_file(&ret->sysctls, sysctls[i], path);
	}
	if (geteuid() == 0) /* others may mount where an ordinary user lives */
		append_file(&ret->mounts, "mounts", "/proc/self/mountinfo");
	append_dir(&ret->canaries, w->dir, 0);
}

void machine_done(struct machine *m)
{
	buf_done(&m->sysctls);
	buf_done(&m->mounts);
	buf_done(&m->canaries);
}

static bool is_pid(const char *name, pid_t *ret)
{
	uint32_t v;

	if (parse_u32(name, 1, INT32_MAX, &v) < 0)
		return false;
	*ret = (pid_t)v;
	return true;
}

/* The parent's number from /proc/<pid>/stat; -1 when the process is gone. */
static pid_t parent_of(pid_t pid)
{
	char path[64], text[1024], *p;
	int ppid;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (fd_read_file_at(AT_FDCWD, path, text, sizeof(text)) < 0)
		return -1;
	p = strrchr(text, ')');
	if (!p || sscanf(p + 1, " %*c %d", &ppid) != 1)
		return -1;
	return ppid;
}

static bool descends(pid_t pid, pid_t root)
{
	for (int depth = 0; pid > 1 && depth < 64; depth++) {
		pid = parent_of(pid);
		if (pid == root)
			return true;
	}
	return false;
}

int machine_descendants(pid_t root)
{
	DIR *d = opendir("/proc");
	int n = 0;
	pid_t pid;

	if (!d)
		return -1;
	for (struct dirent *e = readdir(d); e; e = readdir(d))
		if (is_pid(e->d_name, &pid) && descends(pid, root))
			n++;
	(void)closedir(d);
	return n;
}

static bool has_ids(pid_t pid, uint32_t base, uint32_t count)
{
	char path[64], text[4096], *p;
	unsigned real, effective, saved, file;

	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	if (fd_read_file_at(AT_FDCWD, path, text, sizeof(text)) < 0)
		return false;
	p = strstr(text, "\nUid:");
	if (!p || sscanf(p, "\nUid: %u %u %u %u", &real, &effective, &saved, &file) != 4)
		return false;
	return real - base < count || effective - base < count || saved - base < count ||
	       file - base < count;
}

uint64_t machine_ticks(void)
{
	struct timespec t = { 0 };

	(void)clock_gettime(CLOCK_BOOTTIME, &t);
	return (uint64_t)t.tv_sec * 100 + (uint64_t)t.tv_nsec / 10000000;
}

/* When a process began, in ticks since the start of the machine; 0 when it is gone. */
static uint64_t began_at(pid_t pid)
{
	char path[64], text[1024], *p;
	unsigned long long ticks = 0;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (fd_read_file_at(AT_FDCWD, path, text, sizeof(text)) < 0)
		return 0;
	p = strrchr(text, ')');
	for (int field = 2; p && field < 22; field++)
		p = strchr(p + 1, ' ');
	if (!p || sscanf(p, " %llu", &ticks) != 1)
		return 0;
	return ticks;
}

static void print_process(pid_t pid)
{
	char path[64], text[1024];

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (fd_read_file_at(AT_FDCWD, path, text, sizeof(text)) > 0)
		printf("process: %.100s\n", text);
}

/* Ids are given out again at once, so only processes that are older than `before` count. */
int machine_with_ids(uint32_t base, uint32_t count, uint64_t before, bool print)
{
	DIR *d = opendir("/proc");
	int n = 0;
	pid_t pid;

	if (!d)
		return -1;
	for (struct dirent *e = readdir(d); e; e = readdir(d))
		if (is_pid(e->d_name, &pid) && has_ids(pid, base, count) &&
		    descends(pid, getpid()) && /* a stranger's launcher may have the ids now */
		    began_at(pid) - 1 < before - 1) {
			if (print)
				print_process(pid);
			n++;
		}
	(void)closedir(d);
	return n;
}

/* A launcher that lives holds a lock on its directory. */
static bool is_locked(const char *path)
{
	_close_ int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0;
}

/* Groups at and below directories called `name` (NULL: any launcher's); those unlocked go to stale.
 */
static int walk_groups(const char *dir, int depth, bool below, struct buf *stale, const char *name)
{
	DIR *d = depth > 6 ? NULL : opendir(dir);
	int n = 0;

	for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
		char path[1024];
		bool ours = below || (name ? strcmp(e->d_name, name) == 0
					   : strncmp(e->d_name, "holt.", 5) == 0);

		if (e->d_type != DT_DIR || e->d_name[0] == '.')
			continue;
		(void)snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		n += ours;
		if (ours && !below && stale && !is_locked(path))
			(void)buf_printf(stale, "%s\n", path);
		n += walk_groups(path, depth + 1, ours, stale, name);
	}
	if (d)
		(void)closedir(d);
	return n;
}

void machine_stale_groups(struct buf *ret)
{
	(void)walk_groups(CGROUP_ROOT, 0, false, ret, NULL);
}

/* The launcher's directory in a path like /x/holt.<instance>/<box>. */
static bool instance_of(pid_t member, char *dst, size_t size)
{
	char path[64], text[4096], *p;
	size_t n;

	(void)snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)member);
	if (fd_read_file_at(AT_FDCWD, path, text, sizeof(text)) < 0)
		return false;
	p = strstr(text, "/holt.");
	n = p ? strcspn(p + 1, "/\n") : 0;
	if (n == 0 || n >= size)
		return false;
	memcpy(dst, p + 1, n);
	dst[n] = '\0';
	return true;
}

int machine_groups(pid_t member)
{
	char instance[64];

	return instance_of(member, instance, sizeof(instance))
		       ? walk_groups(CGROUP_ROOT, 0, false, NULL, instance)
		       : 0;
}

int machine_fds(pid_t pid)
{
	char path[64];
	DIR *d;
	int n = 0;

	(void)snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	d = opendir(path);
	if (!d)
		return -1;
	for (struct dirent *e = readdir(d); e; e = readdir(d))
		n += e->d_name[0] != '.';
	(void)closedir(d);
	return n;
}

/* State and place in the kernel of a process and all below it, for whoever reads a failure. */
void machine_explain(pid_t root)
{
	DIR *d = opendir("/proc");
	char path[64], text[512];
	pid_t pid;

	for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
		if (!is_pid(e->d_name, &pid) || (pid != root && !descends(pid, root)))
			continue;
		print_process(pid);
		(void)snprintf(path, sizeof(path), "/proc/%d/wchan", (int)pid);
		if (fd_read_file_at(AT_FDCWD, path, text, sizeof(text)) > 0)
			printf("  in %s\n", text);
	}
	if (d)
		(void)closedir(d);
}

uint64_t machine_ns(pid_t pid, const char *kind)
{
	char path[64];
	struct stat st;

	(void)snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)pid, kind);
	return stat(path, &st) < 0 ? 0 : st.st_ino;
}

uint64_t machine_rss(pid_t pid)
{
	char path[64], text[256];
	unsigned long long size = 0, resident = 0;

	(void)snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
	if (fd_read_file_at(AT_FDCWD, path, text, sizeof(text)) < 0 ||
	    sscanf(text, "%llu %llu", &size, &resident) != 2)
		return 0;
	return resident * 4096;
}
