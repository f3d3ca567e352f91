#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/parse.h"
#include "base/str.h"
#include "launch/cgroup_impl.h"

#define PROCS_TEXT_MAX (4u << 20) /* half a million processes */

int cgroup_write(int dir, const char *group, const char *file, const char *text)
{
	char path[NAME_MAX];
	int r;

	r = str_format(path, sizeof(path), "%s/%s", group, file);
	return r < 0 ? r : fd_write_file_at(dir, path, text);
}

int cgroup_write_u64(int dir, const char *group, const char *file, uint64_t value)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%" PRIu64, value);
	return cgroup_write(dir, group, file, text);
}

int cgroup_read(int dir, const char *group, const char *file, char *dst, size_t size)
{
	char path[NAME_MAX];
	int r;

	r = str_format(path, sizeof(path), "%s/%s", group, file);
	if (r < 0)
		return r;
	r = fd_read_file_at(dir, path, dst, size);
	if (r > 0 && dst[r - 1] == '\n')
		dst[--r] = '\0';
	return r;
}

int cgroup_read_u64(int dir, const char *group, const char *file, uint64_t *ret)
{
	char text[32];
	int r;

	r = cgroup_read(dir, group, file, text, sizeof(text));
	if (r < 0)
		return r;
	if (strcmp(text, "max") == 0) {
		*ret = UINT64_MAX;
		return 0;
	}
	return parse_u64(text, 0, UINT64_MAX, ret);
}

int cgroup_read_key(int dir, const char *group, const char *file, const char *key, uint64_t *ret)
{
	char text[1024], number[24];
	struct str rest, line, word;
	int r;

	r = cgroup_read(dir, group, file, text, sizeof(text));
	if (r < 0)
		return r;
	rest = str_of(text);
	while (str_split(&rest, '\n', &line)) {
		if (!str_split(&line, ' ', &word) || !str_is(word, key))
			continue;
		r = str_format(number, sizeof(number), "%.*s", (int)line.len, line.data);
		return r < 0 ? r : parse_u64(number, 0, UINT64_MAX, ret);
	}
	return -ENODATA;
}

void cgroup_nap(unsigned try)
{
	long ns = try < 6 ? 100000L <<
	try:
		5000000L;

	(void)nanosleep(&(struct timespec){ .tv_nsec = ns }, NULL);
}

int cgroup_wait_text(int dir, const char *group, const char *file, const char *text)
{
	uint64_t deadline = clock_now_ms() + CGROUP_WAIT_MS;
	char now[256];
	int r;

	for (unsigned try = 0;; try++) {
		r = cgroup_read(dir, group, file, now, sizeof(now));
		if (r < 0)
			return r;
		if (strstr(now, text))
			return 0;
		if (clock_now_ms() >= deadline)
			return -ETIMEDOUT;
		cgroup_nap(try);
	}
}

static int slurp(int dir, const char *group, const char *file, struct buf *b)
{
	char path[NAME_MAX];
	_close_ int fd = -1;
	int r;

	r = str_format(path, sizeof(path), "%s/%s", group, file);
	if (r < 0)
		return r;
	fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd_slurp(fd, b);
}

/* One number a line. A process outside our pid namespace is shown as 0: no one to signal or move.
 */
static size_t scan_pids(struct str text, pid_t *dst)
{
	struct str line;
	size_t n = 0;

	while (str_split(&text, '\n', &line)) {
		pid_t pid = 0;

		for (size_t i = 0; i < line.len && i < 9; i++)
			if (line.data[i] >= '0' && line.data[i] <= '9')
				pid = pid * 10 + (line.data[i] - '0');
		if (pid > 0)
			dst[n++] = pid;
	}
	return n;
}

int cgroup_read_procs(int dir, const char *group, pid_t **ret, size_t *ret_n)
{
	_cleanup_(buf_done) struct buf text = { .max = PROCS_TEXT_MAX };
	pid_t *pids;
	int r;

	r = slurp(dir, group, "cgroup.procs", &text);
	if (r < 0)
		return r;
	pids = calloc(text.len / 2 + 1, sizeof(*pids)); /* a digit and a newline each, at least */
	if (!pids)
		return -ENOMEM;
	*ret_n = scan_pids((struct str){ text.data, text.len }, pids);
	*ret = pids;
	return 0;
}

int cgroup_memory_error(struct err *err, int code, uint64_t bytes, const char *file)
{
	if (bytes % (1 << 20) == 0)
		return err_sys(err, code, "memory limit %" PRIu64 " MiB: write %s", bytes >> 20,
			       file);
	return err_sys(err, code, "memory limit %" PRIu64 " bytes: write %s", bytes, file);
}
