#include "telemetry/process.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/parse.h"
#include "base/str.h"
#include "telemetry/metrics.h"

#define START_FIELD 22 /* in /proc/PID/stat: when it started, in ticks since boot */

/* The n-th word of a text, counted from 1, as a number; 0 when it is none. */
static uint64_t word(const char *text, size_t n)
{
	struct str rest = str_of(text), part = { 0 };
	char copy[32];
	uint64_t v = 0;

	while (n-- > 0)
		if (!str_split(&rest, ' ', &part))
			return 0;
	if (str_format(copy, sizeof(copy), "%.*s", (int)part.len, part.data) == 0)
		(void)parse_u64(copy, 0, UINT64_MAX, &v);
	return v;
}

/* Seconds since 1970; 0 when it cannot be told. */
static double start_time(void)
{
	char text[1024];
	const char *behind = NULL;
	struct timespec boot;
	uint64_t ticks;

	if (fd_read_file_at(AT_FDCWD, "/proc/self/stat", text, sizeof(text)) < 0)
		return 0;
	behind = strrchr(text, ')'); /* of the name, which may hold anything; it is field 2 */
	if (!behind || behind[1] != ' ')
		return 0;
	ticks = word(behind + 2, START_FIELD - 2);
	if (ticks == 0 || clock_gettime(CLOCK_BOOTTIME, &boot) < 0)
		return 0;
	return (double)clock_wall_ms() / 1e3 - ((double)boot.tv_sec + (double)boot.tv_nsec / 1e9 -
						(double)ticks / (double)sysconf(_SC_CLK_TCK));
}

static size_t open_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	size_t n = 0;

	if (!dir)
		return 0;
	for (const struct dirent *e; (e = readdir(dir));)
		n += e->d_name[0] != '.';
	(void)closedir(dir);
	return n - 1; /* the directory itself */
}

void process_sample(struct metrics *m)
{
	char text[256];
	struct rusage used;
	size_t fds = open_fds();

	metrics_set(m, METRIC_BUILD_INFO, LABELS(HOLT_VERSION), 1);
	if (metrics_value(m, METRIC_START_TIME_SECONDS, LABELS()) == 0)
		metrics_set(m, METRIC_START_TIME_SECONDS, LABELS(), start_time());
	if (fd_read_file_at(AT_FDCWD, "/proc/self/statm", text, sizeof(text)) > 0)
		metrics_set(m, METRIC_RESIDENT_MEMORY_BYTES, LABELS(),
			    (double)word(text, 2) * (double)sysconf(_SC_PAGESIZE));
	if (fds > 0)
		metrics_set(m, METRIC_OPEN_FDS, LABELS(), (double)fds);
	if (getrusage(RUSAGE_SELF, &used) == 0)
		metrics_set(m, METRIC_CPU_SECONDS_TOTAL, LABELS(),
			    (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
				    (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6);
}
