#include "launch/still.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/parse.h"
#include "base/str.h"
#include "launch/launch.h"

#define WAIT_MS 2000
#define CHILDREN_MAX 4096 /* bytes of numbers */

bool still_is_by_signal(const struct box *b)
{
	return cgroup_missing_of(b->cell.cgroup) & CONTROLLER_FREEZER;
}

static int send_signal(const struct box *b, int signo)
{
	/* One that was adopted is not our child: its number alone could be another's by now. */
	long r = b->pidfd >= 0 ? syscall(SYS_pidfd_send_signal, b->pidfd, signo, NULL, 0)
			       : kill(b->pid, signo);

	return r < 0 ? -errno : 0;
}

int still_hold(struct box *b, struct err *err)
{
	int r;

	if (!still_is_by_signal(b))
		return b->frozen ? 0
				 : cgroup_ops_of(b->cell.cgroup)->freeze(b->cell.cgroup, true, err);
	r = send_signal(b, SIGSTOP);
	return r < 0 ? err_sys(err, r, "stop a box") : 0;
}

int still_release(struct box *b, struct err *err)
{
	int r;

	if (!still_is_by_signal(b))
		return b->frozen
			       ? 0
			       : cgroup_ops_of(b->cell.cgroup)->freeze(b->cell.cgroup, false, err);
	r = send_signal(b, SIGCONT);
	return r < 0 ? err_sys(err, r, "let a box go on") : 0;
}

/* The letter of its state; '\0': it is gone. */
static char state_of(int proc_fd, pid_t pid)
{
	char path[32], text[1024];
	const char *end;

	(void)str_format(path, sizeof(path), "%d/stat", (int)pid);
	if (fd_read_file_at(proc_fd, path, text, sizeof(text)) < 0)
		return '\0';
	end = strrchr(text, ')');
	return end && end[1] == ' ' ? end[2] : '\0';
}

/* Those that have ended and wait to be heard of do nothing any more. */
static int has_no_children(int proc_fd, pid_t pid, struct err *err)
{
	char path[48], text[CHILDREN_MAX], one[16];
	struct str rest, part;
	uint32_t child;
	int r;

	(void)str_format(path, sizeof(path), "%d/task/%d/children", (int)pid, (int)pid);
	r = fd_read_file_at(proc_fd, path, text, sizeof(text));
	if (r == -ENOENT)
		return err_set(err, EOPNOTSUPP,
			       "a snapshot needs a cgroup freezer: see holt doctor");
	if (r < 0)
		return r == -E2BIG ? -EBUSY : err_sys(err, r, "processes of a box");
	rest = str_trim(str_of(text));
	while (str_split(&rest, ' ', &part)) {
		(void)str_format(one, sizeof(one), "%.*s", (int)part.len, part.data);
		if (part.len == 0 || parse_u32(one, 1, INT32_MAX, &child) < 0)
			continue;
		if (!strchr("ZX", state_of(proc_fd, (pid_t)child)))
			return -EBUSY;
	}
	return 0;
}

int still_wait(int proc_fd, pid_t pid, struct err *err)
{
	int r = -EBUSY;

	for (int i = 0; i < WAIT_MS && r == -EBUSY; i++) {
		char state = state_of(proc_fd, pid);

		if (state == '\0')
			return err_set(err, ESRCH, "the box has ended");
		/* Not before it stands still itself: it could start one more. */
		if (state == 'T')
			r = has_no_children(proc_fd, pid, err);
		if (r == -EBUSY)
			(void)usleep(1000);
	}
	if (r == -EBUSY)
		return err_set(
			err, EOPNOTSUPP,
			"a snapshot needs a cgroup freezer (see holt doctor), or a sandbox in "
			"which nothing runs");
	return r;
}
