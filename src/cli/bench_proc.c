#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/parse.h"
#include "base/str.h"
#include "cli/bench_daemon.h"

void bench_nap_ms(long ms)
{
	struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

	(void)nanosleep(&t, NULL);
}

/* The number that the text begins with. */
static int leading_number(const char *text, uint64_t *ret)
{
	char digits[24];

	text += strspn(text, " \t");
	if (str_format(digits, sizeof(digits), "%.*s", (int)strspn(text, "0123456789"), text) < 0)
		return -ERANGE;
	return parse_u64(digits, 0, UINT64_MAX, ret);
}

int bench_rss(pid_t pid, uint64_t *ret_bytes)
{
	char path[64], text[4096];
	const char *at;
	uint64_t kib;

	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	if (fd_read_file_at(AT_FDCWD, path, text, sizeof(text)) < 0)
		return -ESRCH;
	at = strstr(text, "\nVmRSS:");
	if (!at || leading_number(at + strlen("\nVmRSS:"), &kib) < 0)
		return -EIO;
	*ret_bytes = kib << 10;
	return 0;
}

/* Calls fn with the number of each thread. */
static int each_thread(pid_t pid, int (*fn)(pid_t tid, const char *dir, void *user), void *user)
{
	char path[64];
	uint64_t tid;
	int r = 0;
	DIR *dir;

	(void)snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	if (!dir)
		return -errno;
	for (struct dirent *d; r == 0 && (d = readdir(dir));)
		if (parse_u64(d->d_name, 1, INT32_MAX, &tid) == 0)
			r = fn((pid_t)tid, path, user);
	(void)closedir(dir);
	return r;
}

static int add_cpu(pid_t tid, const char *dir, void *user)
{
	char path[128], text[128];
	uint64_t ns;

	(void)snprintf(path, sizeof(path), "%s/%d/schedstat", dir, (int)tid);
	if (fd_read_file_at(AT_FDCWD, path, text, sizeof(text)) < 0)
		return 0; /* it has ended */
	if (leading_number(text, &ns) < 0)
		return -EIO;
	*(uint64_t *)user += ns;
	return 0;
}

int bench_cpu_ns(pid_t pid, uint64_t *ret_ns)
{
	*ret_ns = 0;
	return each_thread(pid, add_cpu, ret_ns);
}

static int pin_thread(pid_t tid, const char *dir, void *user)
{
	cpu_set_t set;

	(void)dir;
	CPU_ZERO(&set);
	CPU_SET(*(const int *)user, &set);
	return sched_setaffinity(tid, sizeof(set), &set) < 0 && errno != ESRCH ? -errno : 0;
}

int bench_pin(pid_t pid, int cpu)
{
	return each_thread(pid, pin_thread, &cpu);
}

int bench_cpus(int *ret_first, int *ret_other)
{
	cpu_set_t set;
	int found = 0;

	if (sched_getaffinity(0, sizeof(set), &set) < 0)
		return -errno;
	for (int cpu = 0; cpu < CPU_SETSIZE && found < 2; cpu++) {
		if (!CPU_ISSET(cpu, &set))
			continue;
		*(found++ ? ret_other : ret_first) = cpu;
	}
	if (found == 1)
		*ret_other = *ret_first;
	return found ? 0 : -ENOENT;
}

/* By its name: where its program lies is not shown of one that is not dumpable. */
static bool has_name(uint64_t pid, const char *name)
{
	char path[64], text[32];
	ssize_t n;

	(void)snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	n = fd_read_file_at(AT_FDCWD, path, text, sizeof(text));
	return n > 0 && str_is((struct str){ text, (size_t)n - 1 }, name);
}

int bench_child(pid_t parent, const char *name, pid_t *ret)
{
	char path[64], text[4096], word[24];
	struct str rest, pid;
	uint64_t v;

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)parent, (int)parent);
	if (fd_read_file_at(AT_FDCWD, path, text, sizeof(text)) < 0)
		return -ESRCH;
	rest = str_of(text);
	while (str_split(&rest, ' ', &pid)) {
		if (str_format(word, sizeof(word), "%.*s", (int)pid.len, pid.data) < 0 ||
		    parse_u64(word, 1, INT32_MAX, &v) < 0 || (name && !has_name(v, name)))
			continue;
		*ret = (pid_t)v;
		return 0;
	}
	return -ESRCH;
}
