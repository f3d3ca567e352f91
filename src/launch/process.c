#include "launch/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/parse.h"
#include "base/str.h"

#define STAT_START 22 /* its number in proc(5); the name, which may hold anything, is 2 */
#define STAT_NAME 2
#define STAT_PARENT 4
#define GENERATIONS_MAX 8
#define STATUS_MAX 16384 /* masks of CPUs and memory nodes grow with the machine */

/* A number behind the name. */
static int parse_field(const char *stat, int n, uint64_t *ret)
{
	const char *name_end = strrchr(stat, ')');
	struct str rest = str_of(name_end), field;
	char number[24];

	if (!name_end || name_end[1] != ' ')
		return -EINVAL;
	for (int i = STAT_NAME; i <= n; i++)
		if (!str_split(&rest, ' ', &field))
			return -EINVAL;
	if (str_format(number, sizeof(number), "%.*s", (int)field.len, field.data) < 0)
		return -EINVAL;
	return parse_u64(number, 0, UINT64_MAX, ret) < 0 ? -EINVAL : 0;
}

int process_parse_start(const char *stat, uint64_t *ret_ticks)
{
	return parse_field(stat, STAT_START, ret_ticks);
}

static int read_field(int proc_fd, pid_t pid, int n, uint64_t *ret)
{
	char path[24], text[1024];
	int r;

	(void)str_format(path, sizeof(path), "%d/stat", (int)pid);
	r = fd_read_file_at(proc_fd, path, text, sizeof(text));
	return r < 0 ? r : parse_field(text, n, ret);
}

int process_start(int proc_fd, pid_t pid, uint64_t *ret_ticks)
{
	return read_field(proc_fd, pid, STAT_START, ret_ticks);
}

bool process_descends(pid_t pid, pid_t of)
{
	_close_ int proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	uint64_t parent = 0;

	for (int i = 0; i < GENERATIONS_MAX && pid > 1; i++) {
		if (pid == of)
			return true;
		if (read_field(proc, pid, STAT_PARENT, &parent) < 0)
			return false;
		pid = (pid_t)parent;
	}
	return false;
}

bool process_parse_is_init(const char *status)
{
	struct str rest = str_of(status), line, word, last = { 0 };
	int n = 0;

	while (str_split(&rest, '\n', &line)) {
		if (!str_split(&line, '\t', &word) || !str_is(word, "NSpid:"))
			continue;
		for (; str_split(&line, '\t', &last); n++)
			;
		break;
	}
	return n >= 2 && str_is(last, "1");
}

bool process_is_init(int proc_fd, pid_t pid)
{
	char path[24], text[STATUS_MAX];

	(void)str_format(path, sizeof(path), "%d/status", (int)pid);
	return fd_read_file_at(proc_fd, path, text, sizeof(text)) > 0 &&
	       process_parse_is_init(text);
}

/* The descriptor comes first: what it stands for still lives after its start was read, so the start
 * that was read is its own. */
int process_open(int proc_fd, pid_t pid, uint64_t ticks)
{
	_close_ int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	uint64_t found;
	int r;

	if (fd < 0)
		return -errno;
	r = process_start(proc_fd, pid, &found);
	if (r == -ENOENT || (r == 0 && found != ticks) || process_wait(fd, 0) == 0)
		return -ESRCH;
	return r < 0 ? r : TAKE_FD(fd);
}

int process_hear(int sock, int timeout_ms)
{
	struct pollfd p = { .fd = sock, .events = POLLIN };
	int n;

	do
		n = poll(&p, 1, timeout_ms);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	return n > 0 ? 0 : -ETIMEDOUT;
}

int process_wait(int pidfd, int timeout_ms)
{
	return process_hear(pidfd, timeout_ms);
}

int process_reap(pid_t pid, int timeout_ms)
{
	_close_ int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	if (fd >= 0 && process_wait(fd, timeout_ms) < 0)
		return -ETIMEDOUT;
	for (int i = 0; waitpid(pid, NULL, WNOHANG) == 0; i++) {
		if (i >= timeout_ms)
			return -ETIMEDOUT;
		(void)poll(NULL, 0, 1); /* there was no descriptor for it */
	}
	return 0;
}

/* One file of /proc/PID as one line; "?": it cannot be read. */
static void read_line(int proc_fd, pid_t pid, const char *file, char *dst, size_t size)
{
	char path[32];
	int n;

	(void)str_format(path, sizeof(path), "%d/%s", (int)pid, file);
	n = fd_read_file_at(proc_fd, path, dst, size);
	if (n <= 0)
		(void)str_copy(dst, size, "?");
	for (int i = 0; i < n; i++)
		if (dst[i] == '\n')
			dst[i] = i + 1 < n ? ';' : '\0';
}

void process_describe(int proc_fd, pid_t pid, char *dst, size_t size)
{
	char stat[512], name[32], wchan[64], call[200], stack[1024];
	const char *state = NULL;

	if (pid <= 0) {
		(void)str_copy(dst, size, "not known");
		return;
	}
	read_line(proc_fd, pid, "stat", stat, sizeof(stat));
	read_line(proc_fd, pid, "comm", name, sizeof(name));
	read_line(proc_fd, pid, "wchan", wchan, sizeof(wchan));
	read_line(proc_fd, pid, "syscall", call, sizeof(call));
	read_line(proc_fd, pid, "stack", stack, sizeof(stack));
	state = strrchr(stat, ')');
	if (str_format(dst, size, "%s, state %c, waits in %s, system call %s, kernel stack %s",
		       name, state && state[1] ? state[2] : '?', wchan, call, stack) < 0)
		(void)str_copy(dst, size, "too much to tell");
}

void process_kill(int pidfd)
{
	(void)syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
}
