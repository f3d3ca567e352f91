#include "warm/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/fd.h"
#include "spec/guest.h"
#include "spec/warm.h"
#include "warm/begin.h"
#include "warm/python.h"

#define MESSAGE_MAX (sizeof(struct warm_run) + WIRE_FRAME_MAX)
#define EXIT_CANNOT_BEGIN 126
#define SOCK_AT 3
#define TOUCHED 4096 /* bytes of a request that are at hand */
#define STACK_TOUCHED (48 << 10)
#define TOUCHES 2 /* the second goes through memory that the first one freed */

/* One request as it came in; lives as long as the process, whose environment points into it. */
struct order {
	struct warm_run run;
	struct guest_exec exec;
	int streams[WARM_STREAMS];
	_Alignas(16) char message[MESSAGE_MAX];
};

static int receive(int sock, struct order *o)
{
	size_t nfds = WARM_STREAMS;
	ssize_t n = fd_recv(sock, o->message, sizeof(o->message), o->streams, &nfds);
	struct wire_head head;
	struct rd payload;

	if (n <= 0)
		return n < 0 ? (int)n : -EPIPE;
	if (nfds != WARM_STREAMS || (size_t)n < sizeof(o->run))
		return -EPROTO;
	memcpy(&o->run, o->message, sizeof(o->run));
	if (o->run.ngroups > WARM_GROUPS_MAX)
		return -EPROTO;
	if (wire_open(o->message + sizeof(o->run), (size_t)n - sizeof(o->run), &head, &payload) < 0)
		return -EPROTO;
	return guest_get_exec(&payload, &o->exec);
}

static int set_mark(uint64_t mark)
{
	struct rlimit locks = { mark, mark };
	struct rlimit rss = { GUEST_MARK_SUM - mark, GUEST_MARK_SUM - mark };

	if (setrlimit(RLIMIT_LOCKS, &locks) < 0 || setrlimit(RLIMIT_RSS, &rss) < 0)
		return -errno;
	return 0;
}

/* SIGXCPU at the limit, SIGKILL a second later; never above what the box allows. */
static int set_cpu_limit(uint32_t seconds)
{
	struct rlimit have, want = { seconds, (rlim_t)seconds + 1 };

	if (getrlimit(RLIMIT_CPU, &have) < 0)
		return -errno;
	if (want.rlim_max > have.rlim_max)
		want.rlim_max = have.rlim_max;
	if (want.rlim_cur > want.rlim_max)
		want.rlim_cur = want.rlim_max;
	return setrlimit(RLIMIT_CPU, &want) < 0 ? -errno : 0;
}

/* Raw calls: there is one thread, and libc's would look for others. */
static int become_user(const struct warm_run *run)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { { 0 } };
	bool is_same = getuid() == run->uid && getgid() == run->gid;

	if (syscall(SYS_setgroups, run->ngroups, run->groups) < 0 && !(errno == EPERM && is_same))
		return -errno;
	if (syscall(SYS_setresgid, run->gid, run->gid, run->gid) < 0 ||
	    syscall(SYS_setresuid, run->uid, run->uid, run->uid) < 0 ||
	    syscall(SYS_capset, &head, none) < 0)
		return -errno;
	/* As after an exec: a program may look at its own /proc/self. Until here nobody could. */
	return prctl(PR_SET_DUMPABLE, 1) < 0 ? -errno : 0;
}

static int enter_cwd(const struct order *o)
{
	if (o->exec.cwd[0])
		return chdir(o->exec.cwd) < 0 ? -errno : 0;
	if (chdir(o->run.home) == 0)
		return 0;
	return chdir("/") < 0 ? -errno : 0;
}

static int take_streams(const struct order *o)
{
	for (int i = 0; i < WARM_STREAMS; i++)
		if (dup2(o->streams[i], i) < 0)
			return -errno;
	return 0;
}

/* What a program started by holt-init goes through, but for what was done while parked. */
static int take_over(const struct order *o)
{
	int r = take_streams(o);

	if (r == 0 && o->run.mark)
		r = set_mark(o->run.mark);
	if (r == 0 && o->exec.cpu_seconds)
		r = set_cpu_limit(o->exec.cpu_seconds);
	if (r == 0)
		r = become_user(&o->run);
	return r < 0 ? r : enter_cwd(o);
}

/* Where a copy would not do, the real thing: this process is where it must be already. */
static void start_fresh(const struct guest_exec *e)
{
	const char **argv = calloc(e->argc + 4, sizeof(*argv));

	if (!argv)
		return;
	argv[0] = "python3";
	argv[1] = "-c";
	argv[2] = e->code;
	for (size_t i = 0; i < e->argc; i++)
		argv[3 + i] = e->argv[i];
	(void)execvpe("python3", (char *const *)(uintptr_t)argv, (char *const *)(uintptr_t)e->envp);
}

static _Noreturn void run_order(struct python *py, int sock, struct order *o)
{
	int r = take_over(o);

	if (o->exec.cwd[0])
		(void)fd_send(sock, &r, sizeof(r), NULL, 0);
	(void)close_range(SOCK_AT, ~0u, 0);
	if (r < 0)
		_exit(EXIT_CANNOT_BEGIN);
	r = begin_run(py, &o->exec);
	if (r == -ESTALE)
		start_fresh(&o->exec);
	if (r < 0)
		_exit(EXIT_CANNOT_BEGIN);
	exit(python_run(py, o->exec.code));
}

/* Small requests fit into what is written to here: no page of it is new when they come. */
static struct order *make_order(void)
{
	struct order *o =
		mmap(NULL, sizeof(*o), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (o == MAP_FAILED)
		return NULL;
	memset(&o->run, 0, sizeof(o->run));
	memset(&o->exec, 0, sizeof(o->exec));
	memset(o->message, 0, TOUCHED);
	return o;
}

/* The same for what a run needs of the stack. */
static void touch_stack(void)
{
	char pad[STACK_TOUCHED];

	explicit_bzero(pad, sizeof(pad));
}

/* Of exactly one page and sealed: a program that stretches its mapping finds nothing behind it. */
static int make_end(struct warm_end **ret)
{
	_close_ int fd = memfd_create("end", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	void *page;

	if (fd < 0 || ftruncate(fd, WARM_END_SIZE) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		return -errno;
	page = mmap(NULL, WARM_END_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		return -errno;
	*ret = page;
	return TAKE_FD(fd);
}

/* A parked child. Until its order comes it has the template's ids: nothing in the box can signal,
 * trace or read it. */
static _Noreturn void park(struct python *py, int sock)
{
	struct order *o = make_order();
	struct err err = { 0 };

	(void)prctl(PR_SET_NAME, "python3");
	(void)setsid();
	(void)fd_write_file_at(AT_FDCWD, "/proc/self/oom_score_adj", "1000");
	touch_stack();
	if (!o || python_after_fork_child(py, &err) < 0)
		_exit(EXIT_CANNOT_BEGIN);
	for (int i = 0; i < TOUCHES; i++)
		if (python_touch(py, &err) < 0)
			_exit(EXIT_CANNOT_BEGIN);
	if (fd_send(sock, &(int32_t){ getpid() }, sizeof(int32_t), NULL, 0) < 0 ||
	    receive(sock, o) < 0)
		_exit(EXIT_CANNOT_BEGIN);
	run_order(py, sock, o);
}

/* Forks twice, so that the child is PID 1's, which reaps it as any other program. */
static int fork_parked(struct python *py, int theirs, int ours, struct warm_end *end)
{
	int status;
	pid_t pid;

	python_before_fork(py);
	pid = fork();
	if (pid == 0) {
		pid = fork();
		if (pid != 0)
			_exit(pid < 0);
		(void)close(theirs);
		(void)dup2(ours, SOCK_AT);
		(void)close_range(SOCK_AT + 1, ~0u, 0);
		py->end = end;
		park(py, SOCK_AT);
	}
	python_after_fork_parent(py);
	if (pid < 0)
		return -errno;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return status == 0 ? 0 : -EAGAIN;
}

/* Parks one and hands its socket over once it waits, with the page for its end where the box's
 * level allows to make one. A child that died on the way is told as pid -1, so that holt-init does
 * not wait for it. */
static int add_parked(struct python *py, int sock)
{
	struct warm_end *end = NULL;
	_close_ int end_fd = make_end(&end);
	struct warm_parked parked = { -1 };
	int pair[2], r;
	ssize_t n = -1;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	r = fork_parked(py, pair[0], pair[1], end);
	if (end)
		(void)munmap(end, WARM_END_SIZE);
	(void)close(pair[1]);
	if (r == 0)
		n = fd_recv(pair[0], &parked.pid, sizeof(parked.pid), NULL, &(size_t){ 0 });
	if (n != sizeof(parked.pid))
		parked.pid = -1;
	n = fd_send(
		sock, &parked, sizeof(parked),
		(int[WARM_PARKED_FDS]){ [WARM_PARKED_SOCK] = pair[0], [WARM_PARKED_END] = end_fd },
		parked.pid < 0 ? 0
		: end_fd < 0   ? WARM_PARKED_END
			       : WARM_PARKED_FDS);
	(void)close(pair[0]);
	return n < 0 ? (int)n : 0;
}

void worker_serve(struct python *py, int sock)
{
	char ask = 0;

	(void)prctl(PR_SET_DUMPABLE, 0);
	(void)dup2(sock, SOCK_AT);
	(void)close_range(SOCK_AT + 1, ~0u, 0);
	while (add_parked(py, SOCK_AT) == 0)
		if (fd_recv(SOCK_AT, &ask, 1, NULL, &(size_t){ 0 }) != 1 || ask != WARM_FORK)
			break;
	_exit(0);
}
