#include "base/machine.h"

#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/parse.h"
#include "base/str.h"

#define RESERVE_MIN (128ull << 20)
#define RESERVE_MAX (4ull << 30)
#define CPUS_MAX 8192

static bool parse_number(const char *text, uint64_t *ret)
{
	char digits[24];

	text += strspn(text, " \t");
	return str_format(digits, sizeof(digits), "%.*s", (int)strspn(text, "0123456789"), text) ==
		       0 &&
	       parse_u64(digits, 0, UINT64_MAX, ret) == 0;
}

bool machine_parse_meminfo(const char *text, const char *name, uint64_t *ret)
{
	size_t n = strlen(name);
	uint64_t kib;

	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, name, n) != 0 || line[n] != ':')
			continue;
		if (!parse_number(line + n + 1, &kib) || kib > UINT64_MAX / 1024)
			return false;
		*ret = kib * 1024;
		return true;
	}
	return false;
}

bool machine_parse_loadavg(const char *text, uint32_t *ret)
{
	const char *slash = strchr(text, '/');
	uint64_t v;

	if (!slash || !parse_number(slash + 1, &v) || v > UINT32_MAX)
		return false;
	*ret = (uint32_t)v;
	return true;
}

static bool read_number(const char *path, uint64_t *ret)
{
	char text[64];

	return fd_read_file_at(AT_FDCWD, path, text, sizeof(text)) > 0 && parse_number(text, ret);
}

/* The least of what a group and those above it allow. */
static uint64_t least_in_groups(const char *mount, const char *group, const char *file)
{
	uint64_t least = UINT64_MAX, v;
	char dir[PATH_MAX], path[PATH_MAX + 64];
	char *slash;

	if (str_format(dir, sizeof(dir), "%s", group) < 0)
		return least;
	do {
		if (str_format(path, sizeof(path), "%s%s/%s", mount, dir, file) == 0 &&
		    read_number(path, &v) && v < least)
			least = v;
		slash = strrchr(dir, '/');
		if (slash)
			*slash = '\0';
	} while (slash);
	return least;
}

/* What our own control group may use, of either version; the largest number: no limit. */
static uint64_t group_memory(void)
{
	char text[4096], group[PATH_MAX];
	uint64_t least = UINT64_MAX, v;
	struct str rest, line;

	if (fd_read_file_at(AT_FDCWD, "/proc/self/cgroup", text, sizeof(text)) <= 0)
		return least;
	rest = str_of(text);
	while (str_split(&rest, '\n', &line)) {
		const char *memory = memmem(line.data, line.len, ":memory:", 8);
		bool is_v2 = str_starts(line, "0::");
		const char *at = memory ? memory + 8 : is_v2 ? line.data + 3 : NULL;

		if (!at || str_format(group, sizeof(group), "%.*s",
				      (int)(line.data + line.len - at), at) < 0)
			continue;
		v = is_v2 ? least_in_groups("/sys/fs/cgroup", group, "memory.max")
			  : least_in_groups("/sys/fs/cgroup/memory", group,
					    "memory.limit_in_bytes");
		least = v < least ? v : least;
	}
	return least;
}

static uint64_t read_memory(void)
{
	uint64_t total = UINT64_MAX, group = group_memory();
	char text[4096];

	if (fd_read_file_at(AT_FDCWD, "/proc/meminfo", text, sizeof(text)) <= 0 ||
	    !machine_parse_meminfo(text, "MemTotal", &total))
		total = UINT64_MAX;
	return total < group ? total : group;
}

static uint32_t read_cpus(void)
{
	cpu_set_t *set = CPU_ALLOC(CPUS_MAX);
	size_t size = CPU_ALLOC_SIZE(CPUS_MAX);
	uint32_t n = UINT32_MAX;

	if (set && sched_getaffinity(0, size, set) == 0)
		n = (uint32_t)CPU_COUNT_S(size, set);
	CPU_FREE(set);
	return n;
}

static uint32_t read_processes(void)
{
	static const char *const files[] = { "/proc/sys/kernel/pid_max",
					     "/proc/sys/kernel/threads-max" };
	uint64_t least = UINT32_MAX, v;

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		if (read_number(files[i], &v) && v < least)
			least = v;
	return (uint32_t)least;
}

void machine_read(struct machine *ret)
{
	*ret = (struct machine){ read_memory(), read_cpus(), read_processes() };
}

uint64_t machine_reserve(const struct machine *m)
{
	uint64_t tenth = m->memory_bytes / 10;

	if (tenth < RESERVE_MIN)
		return RESERVE_MIN < m->memory_bytes / 2 ? RESERVE_MIN : m->memory_bytes / 2;
	return tenth < RESERVE_MAX ? tenth : RESERVE_MAX;
}

struct machine_gauge machine_gauge_open(void)
{
	return (struct machine_gauge){ open("/proc/meminfo", O_RDONLY | O_CLOEXEC),
				       open("/proc/loadavg", O_RDONLY | O_CLOEXEC) };
}

void machine_gauge_close(struct machine_gauge *g)
{
	g->meminfo = fd_close(g->meminfo);
	g->loadavg = fd_close(g->loadavg);
}

static bool reread_file(int fd, char *text, size_t size)
{
	ssize_t n = fd < 0 ? -1 : pread(fd, text, size - 1, 0);

	if (n <= 0)
		return false;
	text[n] = '\0';
	return true;
}

bool machine_gauge_read(const struct machine_gauge *g, struct machine_use *ret)
{
	char text[4096];

	return reread_file(g->meminfo, text, sizeof(text)) &&
	       machine_parse_meminfo(text, "MemAvailable", &ret->memory_left) &&
	       reread_file(g->loadavg, text, sizeof(text)) &&
	       machine_parse_loadavg(text, &ret->processes);
}
