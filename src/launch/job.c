#include "launch/job.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"
#include "launch/process.h"

#define SAFE_FD 64 /* above every number that is given out below */

int job_keep_only(int sock, const int *fds, size_t nfds)
{
	int kept[FD_PASS_MAX + 1];

	kept[0] = fcntl(sock, F_DUPFD_CLOEXEC, SAFE_FD);
	for (size_t i = 0; i < nfds; i++)
		kept[i + 1] = fcntl(fds[i], F_DUPFD_CLOEXEC, SAFE_FD);
	for (size_t i = 0; i <= nfds; i++)
		if (kept[i] < 0 || dup3(kept[i], JOB_FD - 1 + (int)i, O_CLOEXEC) < 0)
			return -errno;
	return syscall(SYS_close_range, JOB_FD + nfds, ~0u, 0) < 0 ? -errno : 0;
}

static void child(pid_t parent, int sock, job_work work, const void *arg, const int *fds,
		  size_t nfds)
{
	struct job_result res = { 0 };
	struct err err = { 0 };
	int out[FD_PASS_MAX];
	size_t nout = 0;
	sigset_t none;
	int r;

	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent ||
	    job_keep_only(sock, fds, nfds) < 0)
		_exit(1);
	r = work(arg, &res, out, &nout, &err);
	if (r < 0 && err.code == 0)
		(void)err_sys(&err, r, "work on a disk");
	res.code = r < 0 ? -err.code : 0;
	(void)str_copy(res.text, sizeof(res.text), err.text);
	(void)fd_send(JOB_FD - 1, &res, sizeof(res), out, nout);
	_exit(0);
}

/* Whoever waits is told, and it is forgotten. The process is reaped like any other child. */
static void finish(struct launch *l, struct job *j, const struct job_result *r, int *fds,
		   size_t nfds)
{
	launch_unwatch(l, j->sock);
	j->sock = fd_close(j->sock);
	list_remove(&j->node);
	l->job_count--;
	j->done(l, j, r, fds, nfds);
	for (size_t i = 0; i < nfds; i++)
		(void)fd_close(fds[i]);
	free(j);
}

static void heard(struct launch *l, struct source *self)
{
	struct job *j = (struct job *)self;
	struct job_result r = { 0 };
	int fds[FD_PASS_MAX];
	size_t nfds = FD_PASS_MAX;
	ssize_t n = fd_recv(j->sock, &r, sizeof(r), fds, &nfds);

	if (n == -EAGAIN || n == -EINTR)
		return;
	if (n != (ssize_t)sizeof(r)) {
		nfds = 0;
		r = (struct job_result){ .code = -EIO, .text = "work on a disk was cut short" };
	}
	r.text[sizeof(r.text) - 1] = '\0';
	finish(l, j, &r, fds, nfds);
}

int job_start(struct launch *l, const struct job *j, job_work work, const void *arg, const int *fds,
	      size_t nfds, struct err *err)
{
	struct job *mine;
	pid_t parent = getpid();
	int pair[2], r;

	if (l->job_count >= JOBS_MAX)
		return err_set(err, EAGAIN, "%d jobs are under way, no more", JOBS_MAX);
	mine = malloc(sizeof(*mine));
	if (!mine)
		return err_sys(err, ENOMEM, "job");
	*mine = *j;
	mine->source.ready = heard;
	mine->due_ms = clock_now_ms() + JOB_MS;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
		r = err_sys(err, errno, "job");
		free(mine);
		return r;
	}
	mine->sock = pair[0];
	r = launch_watch(l, mine->sock, &mine->source, err);
	mine->pid = r < 0 ? -1 : fork();
	if (mine->pid == 0)
		child(parent, pair[1], work, arg, fds, nfds);
	(void)close(pair[1]);
	if (mine->pid < 0) {
		r = r < 0 ? r : err_sys(err, errno, "job");
		launch_unwatch(l, mine->sock);
		(void)close(mine->sock);
		free(mine);
		return r;
	}
	list_push_back(&l->jobs, &mine->node);
	l->job_count++;
	return 0;
}

/* What it worked on is left alone only when it is gone; one that cannot be killed is stuck in the
 * kernel, and ends with the call that it is in. */
static void end_job(struct launch *l, struct job *j, const struct job_result *r)
{
	(void)kill(j->pid, SIGKILL);
	if (process_reap(j->pid, PROCESS_KILLED_MS) < 0)
		log_error("launch", "process %d, which works on a disk, does not end", (int)j->pid);
	finish(l, j, r, NULL, 0);
}

void job_cancel(struct launch *l, struct job *j)
{
	struct job_result r = { .code = -ECANCELED, .text = "the box has ended meanwhile" };

	end_job(l, j, &r);
}

void jobs_expire(struct launch *l)
{
	uint64_t now = clock_now_ms();
	struct job_result r = { .code = -ETIMEDOUT, .text = "work on a disk took too long" };

	LIST_FOREACH (&l->jobs, j, struct job, node) {
		char detail[PROCESS_DETAIL_MAX];

		if (now < j->due_ms)
			continue;
		process_describe(l->proc_fd, j->pid, detail, sizeof(detail));
		log_error("launch", "work on a disk is given up after %u ms; process %d: %s",
			  JOB_MS, (int)j->pid, detail);
		end_job(l, j, &r);
		return; /* another may have gone with it; the next turn sees to it */
	}
}

struct job *job_find(const struct launch *l, const char *id, const char *box_id)
{
	LIST_FOREACH (&l->jobs, j, struct job, node)
		if ((!id || strcmp(j->id, id) == 0) && (!box_id || strcmp(j->box_id, box_id) == 0))
			return j;
	return NULL;
}

void jobs_close(struct launch *l)
{
	while (!list_is_empty(&l->jobs))
		job_cancel(l, LIST_ENTRY(l->jobs.next, struct job, node));
}
