#include "guest/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include "guest/pty.h"
#include "guest/user.h"

#define OOM_FIRST "1000" /* the first to go */
#define CHILD_STACK (16u << 10)
/* How long a program may take to begin. The box's own processes can stop the new one on its way, so
 * it is woken again and again, and given up in the end. */
#define WAKE_EVERY_MS 20
#define GIVE_UP_MS 10000

enum step {
	STEP_NONE,
	STEP_TERMINAL,
	STEP_STREAMS,
	STEP_MARK,
	STEP_CPU,
	STEP_USER,
	STEP_CWD,
	STEP_EXEC
};

/* Shared with the child, which runs in our memory until it execs. */
struct start {
	const struct spawn_plan *plan;
	const char *search; /* PATH, or NULL when argv[0] holds a slash */
	int fds[3];         /* become 0, 1 and 2; -1: as ours, /dev/null */
	int alive;          /* futex: the kernel clears it when the child leaves our memory */
	enum step failed_step;
	int failed_errno;
	char path[PATH_MAX];
};

/* NOTE: what is IN_CHILD runs in our own address space on a borrowed stack while we wait: system
 * calls only, no libc that keeps state, nothing that allocates, no sanitizer that remembers the
 * stack. */
#define IN_CHILD __attribute__((no_sanitize("address", "undefined")))

IN_CHILD static int fail(struct start *s, enum step step)
{
	s->failed_step = step;
	s->failed_errno = errno;
	return -1;
}

IN_CHILD static int set_mark(uint64_t mark)
{
	struct rlimit locks = { mark, mark };
	struct rlimit rss = { GUEST_MARK_SUM - mark, GUEST_MARK_SUM - mark };

	if (syscall(SYS_prlimit64, 0, RLIMIT_LOCKS, &locks, NULL) < 0)
		return -1;
	return (int)syscall(SYS_prlimit64, 0, RLIMIT_RSS, &rss, NULL);
}

/* SIGXCPU at the limit, SIGKILL a second later; never above what the box allows. */
IN_CHILD static int set_cpu_limit(uint32_t seconds)
{
	struct rlimit have, want = { seconds, (rlim_t)seconds + 1 };

	if (syscall(SYS_prlimit64, 0, RLIMIT_CPU, NULL, &have) < 0)
		return -1;
	if (want.rlim_max > have.rlim_max)
		want.rlim_max = have.rlim_max;
	if (want.rlim_cur > want.rlim_max)
		want.rlim_cur = want.rlim_max;
	return (int)syscall(SYS_prlimit64, 0, RLIMIT_CPU, &want, NULL);
}

IN_CHILD static int enter_cwd(const struct spawn_plan *p)
{
	if (p->cwd[0])
		return (int)syscall(SYS_chdir, p->cwd);
	if (p->cwd_fd > 0)
		return (int)syscall(SYS_fchdir, p->cwd_fd);
	if (syscall(SYS_chdir, p->user->home) == 0)
		return 0;
	return (int)syscall(SYS_chdir, "/");
}

IN_CHILD static int set_streams(const struct start *s)
{
	for (int i = 0; i < 3; i++)
		if (s->fds[i] >= 0 && syscall(SYS_dup3, s->fds[i], i, 0) < 0)
			return -1;
	/* Everything of ours is close-on-exec already; this is for what we might forget one day. */
	(void)syscall(SYS_close_range, 3, ~0u, CLOSE_RANGE_CLOEXEC);
	for (size_t i = 0; i < s->plan->n_passed; i++)
		if (syscall(SYS_dup3, s->plan->passed[i], 3 + (int)i, 0) < 0)
			return -1;
	return 0;
}

/* dir "/" name; an empty directory is the working one. False when it does not fit. */
IN_CHILD static bool join_path(char *dst, const char *dir, size_t dir_len, const char *name)
{
	size_t n = 0;

	if (dir_len >= PATH_MAX - 2)
		return false;
	while (n < dir_len) {
		dst[n] = dir[n];
		n++;
	}
	if (n > 0)
		dst[n++] = '/';
	while (*name && n < PATH_MAX - 1)
		dst[n++] = *name++;
	dst[n] = '\0';
	return *name == '\0';
}

/* Tries each directory as execvp() does: "not here" goes on, "may not" is remembered. */
IN_CHILD static void exec_search(struct start *s)
{
	const char *dir = s->search;
	bool is_refused = false;

	for (;;) {
		size_t n = 0;

		while (dir[n] && dir[n] != ':')
			n++;
		if (join_path(s->path, dir, n, s->plan->argv[0]))
			(void)syscall(SYS_execve, s->path, s->plan->argv, s->plan->envp);
		else
			errno = ENOENT;
		if (errno == EACCES)
			is_refused = true;
		else if (errno != ENOENT && errno != ENOTDIR)
			return;
		if (!dir[n])
			break;
		dir += n + 1;
	}
	errno = is_refused ? EACCES : ENOENT;
}

IN_CHILD static int prepare(struct start *s)
{
	const struct spawn_plan *p = s->plan;
	uint64_t no_signals = 0;

	(void)syscall(SYS_setsid);
	if ((p->flags & EXEC_PTY) && syscall(SYS_ioctl, s->fds[0], TIOCSCTTY, 0) < 0)
		return fail(s, STEP_TERMINAL);
	if (set_streams(s) < 0)
		return fail(s, STEP_STREAMS);
	if (p->mark && set_mark(p->mark) < 0)
		return fail(s, STEP_MARK);
	if (p->cpu_seconds && set_cpu_limit(p->cpu_seconds) < 0)
		return fail(s, STEP_CPU);
	if (user_become(p->user) < 0)
		return fail(s, STEP_USER);
	if (enter_cwd(p) < 0)
		return fail(s, STEP_CWD);
	(void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &no_signals, NULL, sizeof(no_signals));
	return 0;
}

IN_CHILD static int run_child(void *arg)
{
	struct start *s = arg;

	if (prepare(s) == 0) {
		if (s->plan->plain) /* if it fails, argv says why */
			(void)syscall(SYS_execve, s->plan->plain[0], s->plan->plain, s->plan->envp);
		if (s->search)
			exec_search(s);
		else
			(void)syscall(SYS_execve, s->plan->argv[0], s->plan->argv, s->plan->envp);
		(void)fail(s, STEP_EXEC);
	}
	(void)syscall(SYS_exit_group, 127);
	return 127;
}

/* Waits until the child runs its program or is dead; either way it no longer uses our memory. */
static void wait_started(struct start *s, pid_t pid)
{
	struct timespec t = { .tv_nsec = WAKE_EVERY_MS * 1000000L };
	uint64_t begun_ms = 0;

	while (__atomic_load_n(&s->alive, __ATOMIC_ACQUIRE)) {
		/* Not FUTEX_PRIVATE: the kernel wakes the shared kind. */
		if (syscall(SYS_futex, &s->alive, FUTEX_WAIT, 1, &t, NULL, 0) == 0 ||
		    errno != ETIMEDOUT)
			continue;
		if (begun_ms == 0)
			begun_ms = clock_now_ms();
		(void)kill(pid, clock_now_ms() - begun_ms > GIVE_UP_MS ? SIGKILL : SIGCONT);
	}
}

static int tell(const struct start *s, struct err *err)
{
	const struct spawn_plan *p = s->plan;
	int e = s->failed_errno;

	switch (s->failed_step) {
	case STEP_USER:
		/* Without privilege there is one user, and he can become nobody else. */
		if (e == EINVAL || (e == EPERM && getuid() != 0))
			return err_set(err, EINVAL, "user %u: not an id of this box", p->user->uid);
		return err_sys(err, e, "become user %u", p->user->uid);
	case STEP_CWD:
		return err_sys(err, e, "chdir '%.160s'", p->cwd);
	case STEP_EXEC:
		return err_sys(err, e, "exec '%.160s'", p->argv[0]);
	case STEP_TERMINAL:
		return err_sys(err, e, "take the terminal for '%.120s'", p->argv[0]);
	default:
		return err_sys(err, e, "prepare '%.160s' (step %d)", p->argv[0], s->failed_step);
	}
}

/* When memory is short the program goes, not we: what fills it may be charged to no process at all
 * (files, pipes), and then the kernel would find us as good as any. The score belongs to memory
 * that is shared until the exec, so it is ours too for that time, and then ours is put back. */
struct oom {
	int fd;
	char before[16];
};

static void oom_raise(struct oom *o, int own_fd)
{
	ssize_t n;

	o->fd = own_fd > 0 ? fcntl(own_fd, F_DUPFD_CLOEXEC, 3)
			   : open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
	n = o->fd < 0 ? -1 : pread(o->fd, o->before, sizeof(o->before) - 1, 0);
	if (n <= 0) {
		o->fd = fd_close(o->fd);
		return;
	}
	o->before[n] = '\0';
	(void)pwrite(o->fd, OOM_FIRST, strlen(OOM_FIRST), 0);
}

/* Without privilege our own file is closed to us, unless it was opened in time. Then the program's
 * is written, by its user: what it starts before that keeps our score. */
static void oom_lower(struct oom *o, const struct user *u, pid_t pid)
{
	char path[40];
	int user;

	if (o->fd >= 0) {
		(void)pwrite(o->fd, o->before, strlen(o->before), 0);
		o->fd = fd_close(o->fd);
		return;
	}
	user = setfsuid(u->uid);
	if (str_format(path, sizeof(path), "/proc/%d/oom_score_adj", (int)pid) == 0)
		(void)fd_write_file_at(AT_FDCWD, path, OOM_FIRST);
	(void)setfsuid((uid_t)user);
}

/* CLONE_VM without CLONE_VFORK: as quick, but a child that is stopped on its way cannot hold us. */
static int clone_child(struct start *s, pid_t *ret, struct err *err)
{
	_Alignas(16) char stack[CHILD_STACK];
	int flags = CLONE_VM | CLONE_CHILD_CLEARTID | SIGCHLD;
	struct oom oom;
	int failed;
	pid_t pid;

	s->alive = 1;
	oom_raise(&oom, s->plan->oom_fd);
	pid = clone(run_child, stack + sizeof(stack), flags, s, NULL, NULL, &s->alive);
	failed = pid < 0 ? errno : 0;
	if (pid > 0)
		wait_started(s, pid);
	oom_lower(&oom, s->plan->user, pid);
	if (failed)
		return err_sys(err, failed, "start '%.160s'", s->plan->argv[0]);
	/* The child's change of user has made our shared memory whatever fs.suid_dumpable says. */
	(void)prctl(PR_SET_DUMPABLE, 0);
	if (s->failed_step != STEP_NONE) {
		(void)waitpid(pid, NULL, 0);
		return tell(s, err);
	}
	*ret = pid;
	return 0;
}

static const char *find_path(const char *const *envp)
{
	for (; *envp; envp++)
		if (strncmp(*envp, "PATH=", 5) == 0)
			return (*envp)[5] ? *envp + 5 : GUEST_PATH;
	return GUEST_PATH;
}

/* One stream: our end non-blocking, the child's end not. ours: which end is ours, 0 reads. */
static int make_pipe(int ours, int *ret_ours, int *ret_child, struct err *err)
{
	int p[2];

	if (pipe2(p, O_CLOEXEC) < 0)
		return err_sys(err, errno, "make a pipe");
	(void)fcntl(p[ours], F_SETFL, O_NONBLOCK);
	*ret_ours = p[ours];
	*ret_child = p[!ours];
	return 0;
}

static int open_pipes(const struct spawn_plan *p, struct spawned *ours, int fds[3], struct err *err)
{
	int r = 0;

	if (p->n_passed > 0)
		return 0;
	if (p->flags & EXEC_STDIN)
		r = make_pipe(1, &ours->in, &fds[0], err);
	if (r == 0)
		r = make_pipe(0, &ours->out, &fds[1], err);
	if (r == 0)
		r = make_pipe(0, &ours->err, &fds[2], err);
	return r;
}

static int open_terminal(const struct spawn_plan *p, struct spawned *ours, int fds[3],
			 struct err *err)
{
	int r = pty_open(p->user, p->rows, p->cols, &ours->out, &fds[0], err);

	if (r < 0)
		return r;
	fds[1] = fcntl(fds[0], F_DUPFD_CLOEXEC, 3);
	fds[2] = fcntl(fds[0], F_DUPFD_CLOEXEC, 3);
	ours->in = fcntl(ours->out, F_DUPFD_CLOEXEC, 3);
	if (fds[1] < 0 || fds[2] < 0 || ours->in < 0)
		return err_sys(err, errno, "duplicate a terminal");
	return 0;
}

static int open_streams(const struct spawn_plan *p, struct spawned *ours, int fds[3],
			struct err *err)
{
	if (!p->fds)
		return p->flags & EXEC_PTY ? open_terminal(p, ours, fds, err)
					   : open_pipes(p, ours, fds, err);
	memcpy(fds, p->fds, 3 * sizeof(fds[0]));
	return 0;
}

void spawn_close(struct spawned *s)
{
	s->in = fd_close(s->in);
	s->out = fd_close(s->out);
	s->err = fd_close(s->err);
}

int spawn_start(const struct spawn_plan *plan, struct spawned *ret, struct err *err)
{
	struct spawned ours = { .in = -1, .out = -1, .err = -1, .mark = plan->mark };
	struct start s;
	int r;

	if (!plan->argv[0] || !plan->argv[0][0])
		return err_set(err, EINVAL, "exec: no program given");
	s.plan = plan;
	s.search = strchr(plan->argv[0], '/') ? NULL : find_path(plan->envp);
	s.fds[0] = s.fds[1] = s.fds[2] = -1;
	s.failed_step = STEP_NONE;
	r = open_streams(plan, &ours, s.fds, err);
	if (r == 0)
		r = clone_child(&s, &ours.pid, err);
	for (int i = 0; i < 3 && !plan->fds; i++)
		(void)fd_close(s.fds[i]);
	if (r < 0)
		spawn_close(&ours);
	else
		*ret = ours;
	return r;
}
