#include "launch/locks_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/fd.h"
#include "launch/job.h"

#define CHUNK 16384

/* The first lines: what is newest on a processor comes first, and to read on costs the kernel the
 * square of what there is. If there are more, the next time those behind them, so that nothing is
 * hidden by what comes first. from: where to begin; a line that it cuts is none that counts. */
static size_t read_locks(int proc_fd, off_t *from, pid_t pids[LOCKS_MACHINE_MAX])
{
	_close_ int fd = openat(proc_fd, "locks", O_RDONLY | O_CLOEXEC);
	char text[CHUNK];
	size_t n = 0, have = 0;
	off_t at = *from;
	ssize_t r;

	if (fd >= 0 && lseek(fd, at, SEEK_SET) < 0)
		at = 0;
	while (fd >= 0 && n < LOCKS_MACHINE_MAX &&
	       (r = read(fd, text + have, sizeof(text) - have)) > 0) {
		size_t used;

		have += (size_t)r;
		used = locks_parse(text, have, pids, &n, LOCKS_MACHINE_MAX);
		memmove(text, text + used, have - used);
		have -= used;
		at += (off_t)used;
	}
	*from = n < LOCKS_MACHINE_MAX ? 0 : at;
	return n;
}

/* In a process of its own: answers each byte by one, the table filled. Ends when nobody asks. */
static _Noreturn void serve_reader(const struct launch *l, int sock, struct lock_table *table)
{
	pid_t *pids = calloc(LOCKS_MACHINE_MAX, sizeof(*pids));
	sigset_t none;
	off_t from = 0;
	size_t next_box = 0;
	char byte;

	(void)prctl(PR_SET_NAME, LOCKS_READER);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	/* The launcher may be in a template's mounts, which must not live as long as we do. */
	if (!pids || setns(l->view_ns, CLONE_NEWNS) < 0 || job_keep_only(sock, &l->proc_fd, 1) < 0)
		_exit(1);
	while (recv(JOB_FD - 1, &byte, 1, 0) == 1) {
		table->total = read_locks(JOB_FD, &from, pids);
		table->rows = locks_count(pids, table->total, table->holders);
		backlog_read(JOB_FD, &table->backlog, &next_box);
		if (send(JOB_FD - 1, &byte, 1, MSG_NOSIGNAL) != 1)
			break;
	}
	_exit(0);
}

int locks_start_reader(const struct launch *l, struct lock_table *table, pid_t *ret_pid,
		       struct err *err)
{
	int pair[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(err, errno, "reader of file locks");
	pid = fork();
	if (pid == 0)
		serve_reader(l, pair[1], table);
	(void)close(pair[1]);
	if (pid < 0) {
		(void)close(pair[0]);
		return err_sys(err, errno, "reader of file locks");
	}
	*ret_pid = pid;
	return pair[0];
}
