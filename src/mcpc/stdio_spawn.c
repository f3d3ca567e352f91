#include "mcpc/stdio_spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include "mcpc/stdio.h"

#define ARENA_MAX (4u << 20)
#define PATH_DEFAULT "/usr/local/bin:/usr/bin:/bin"

/* Of our own environment; no more: what else stands there is ours. */
static const char *const passed_on[] = { "HOME", "LANG",   "LC_ALL", "LOGNAME",
					 "PATH", "TMPDIR", "TZ",     "USER" };
#define N_PASSED (sizeof(passed_on) / sizeof(passed_on[0]))

struct start {
	const char *path, *cwd;
	char **argv, **env;
	int fds[3];  /* its input, output and errors: above 2 */
	int control; /* of the one who waits for it */
	int life;    /* held open by that one as long as the program is there */
	int failed;  /* where an error number is written to; closed by a program that has begun */
};

/* ---- what the program is given ---- */

static const char *pair_value(const struct jv_pairs *env, const char *name)
{
	for (size_t i = 0; i < env->len; i++)
		if (strcmp(env->items[i].name, name) == 0)
			return env->items[i].value;
	return NULL;
}

static char **make_env(struct arena *a, const struct jv_pairs *own)
{
	char **env = arena_array(a, N_PASSED + own->len + 1, sizeof(*env));
	size_t n = 0;

	for (size_t i = 0; env && i < N_PASSED; i++) {
		const char *value = getenv(passed_on[i]);

		if (!value || pair_value(own, passed_on[i]))
			continue;
		env[n] = arena_printf(a, "%s=%s", passed_on[i], value);
		if (!env[n++])
			return NULL;
	}
	for (size_t i = 0; env && i < own->len; i++) {
		env[n] = arena_printf(a, "%s=%s", own->items[i].name, own->items[i].value);
		if (!env[n++])
			return NULL;
	}
	return env;
}

static char **make_argv(struct arena *a, const struct stdio_spec *spec)
{
	char **argv = arena_array(a, spec->argc + 1, sizeof(*argv));

	for (size_t i = 0; argv && i < spec->argc; i++) {
		argv[i] = arena_strndup(a, spec->argv[i], strlen(spec->argv[i]));
		if (!argv[i])
			return NULL;
	}
	return argv;
}

/* As a shell would look for it, with the PATH that the program will see. */
static const char *find_program(struct arena *a, const struct stdio_spec *spec)
{
	const char *own = pair_value(&spec->env, "PATH"), *ours = getenv("PATH");
	const char *name = spec->argv[0];
	struct str rest = str_of(own ? own : ours ? ours : PATH_DEFAULT), dir;

	if (strchr(name, '/'))
		return name;
	while (str_split(&rest, ':', &dir)) {
		char *path =
			dir.len ? arena_printf(a, "%.*s/%s", (int)dir.len, dir.data, name) : NULL;

		if (path && access(path, X_OK) == 0)
			return path;
	}
	return NULL;
}

static int prepare(struct arena *a, const struct stdio_spec *spec, struct start *ret,
		   struct err *err)
{
	ret->path = find_program(a, spec);
	if (!ret->path)
		return err_set(err, ENOENT, "command: there is no program '%.120s'", spec->argv[0]);
	ret->cwd = spec->cwd[0] ? spec->cwd : "/";
	ret->argv = make_argv(a, spec);
	ret->env = make_env(a, &spec->env);
	return ret->argv && ret->env ? 0 : err_sys(err, ENOMEM, "server");
}

/* ---- the program. From here on in children of a process that may have had many threads: nothing
 * but system calls. ---- */

/* Its session is its own, so its group too: what it starts is ended with it. It does not outlive
 * who waits for it. */
static int become(const struct start *st, pid_t parent)
{
	struct sigaction standard = { .sa_handler = SIG_DFL };
	sigset_t none;

	for (int i = 1; i < NSIG; i++)
		(void)sigaction(i, &standard, NULL); /* some cannot be changed, nor were they */
	(void)sigemptyset(&none);
	if (sigprocmask(SIG_SETMASK, &none, NULL) < 0 || setsid() < 0 ||
	    prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return errno;
	if (getppid() != parent)
		return ESRCH;
	for (int i = 0; i < 3; i++)
		if (dup2(st->fds[i], i) < 0)
			return errno;
	if (chdir(st->cwd) < 0)
		return errno;
	(void)execve(st->path, st->argv, st->env);
	return errno;
}

/* ---- who waits for it ---- */

/* False: nobody is at the other end any more. */
static bool pass_signal_on(int control, pid_t pid)
{
	uint8_t signo = 0;
	ssize_t n = TEMP_FAILURE_RETRY(recv(control, &signo, 1, 0));

	if (n == 1 && (signo == SIGTERM || signo == SIGKILL))
		(void)kill(-pid, signo);
	return n > 0;
}

static _Noreturn void wait_for_end(int control, int life, pid_t pid)
{
	struct pollfd p[] = { { .fd = control, .events = POLLIN },
			      { .fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN } };
	struct stdio_ended ended = { .signo = SIGKILL };
	siginfo_t how = { 0 };

	while (p[1].fd >= 0 && p[1].revents == 0 && poll(p, 2, -1) >= 0)
		if (p[0].revents && p[1].revents == 0 && !pass_signal_on(control, pid))
			break;
	/* Before it is waited for: until then its number, and its group's, is nobody else's. */
	(void)kill(-pid, SIGKILL);
	while (waitid(P_PID, (id_t)pid, &how, WEXITED) < 0 && errno == EINTR)
		;
	if (how.si_code == CLD_EXITED)
		ended = (struct stdio_ended){ .exit_code = how.si_status };
	else
		ended.signo = how.si_status;
	(void)close(life); /* who is told of the end may ask for the next one at once */
	(void)send(control, &ended, sizeof(ended), MSG_NOSIGNAL);
	_exit(0);
}

static _Noreturn void be_waiter(const struct start *st)
{
	const int kept[] = { st->control, st->life };
	pid_t self = getpid(), pid;
	sigset_t all;
	int e;

	(void)sigfillset(&all); /* it ends when the program does, or our user */
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	pid = fork();
	if (pid == 0) {
		e = become(st, self);
		(void)!write(st->failed, &e, sizeof(e));
		_exit(127);
	}
	if (pid < 0) {
		e = errno;
		(void)!write(st->failed, &e, sizeof(e));
		_exit(1);
	}
	(void)prctl(PR_SET_NAME, "holt-waiter", 0, 0, 0);
	fd_close_others(0, kept, 2);
	wait_for_end(st->control, st->life, pid);
}

/* The waiter is nobody's child, so that nobody has to wait for it in turn. */
static int start(struct start *st)
{
	int ends[2], e = 0;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	st->failed = ends[1];
	pid = fork();
	if (pid == 0) {
		pid_t waiter = fork();

		if (waiter == 0)
			be_waiter(st);
		_exit(waiter < 0 ? errno : 0);
	}
	if (pid < 0)
		e = errno;
	(void)close(ends[1]);
	if (pid > 0) {
		int status = 0;

		(void)TEMP_FAILURE_RETRY(waitpid(pid, &status, 0));
		/* The end without a word is the program's beginning. */
		if (WIFEXITED(status) && WEXITSTATUS(status))
			e = WEXITSTATUS(status);
		else
			(void)!TEMP_FAILURE_RETRY(read(ends[0], &e, sizeof(e)));
	}
	(void)close(ends[0]);
	return -e;
}

/* ---- descriptors ---- */

/* A pipe whose far end lies above the places that it goes to. */
static int open_pipe(int *ret_near, int *ret_far, bool far_reads)
{
	int ends[2], far;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	far = fcntl(ends[far_reads ? 0 : 1], F_DUPFD_CLOEXEC, 3);
	if (far < 0) {
		int e = errno;

		(void)close(ends[0]);
		(void)close(ends[1]);
		return -e;
	}
	(void)close(ends[far_reads ? 0 : 1]);
	*ret_far = far;
	*ret_near = ends[far_reads ? 1 : 0];
	return fd_nonblock(*ret_near, true);
}

static int open_control(int *ret_near, int *ret_far)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	*ret_near = pair[0];
	*ret_far = pair[1];
	return fd_nonblock(pair[0], true);
}

void stdio_process_close(struct stdio_process *p)
{
	p->in = fd_close(p->in);
	p->out = fd_close(p->out);
	p->said = fd_close(p->said);
	p->control = fd_close(p->control);
}

static void free_arena(struct arena **a)
{
	*a = arena_free(*a);
}

int stdio_spawn(const struct stdio_spec *spec, struct stdio_process *ret, int *ret_life,
		struct err *err)
{
	_cleanup_(free_arena) struct arena *a = arena_create(ARENA_MAX);
	_cleanup_(stdio_process_close) struct stdio_process near = STDIO_PROCESS_NONE;
	_close_ int in = -1, out = -1, said = -1, control = -1, life = -1, alive = -1;
	struct start st = { 0 };
	int r = a ? open_pipe(&near.in, &in, true) : -ENOMEM;

	if (r == 0)
		r = open_pipe(&near.out, &out, false);
	if (r == 0)
		r = open_pipe(&near.said, &said, false);
	if (r == 0)
		r = open_control(&near.control, &control);
	if (r == 0)
		r = open_pipe(&life, &alive, false);
	if (r < 0)
		return err_sys(err, r, "pipes of the server");
	r = prepare(a, spec, &st, err);
	if (r < 0)
		return r;
	st.fds[0] = in;
	st.fds[1] = out;
	st.fds[2] = said;
	st.control = control;
	st.life = alive;
	r = start(&st);
	if (r < 0)
		return err_sys(err, r, "start '%.120s'", st.path);
	*ret = near;
	near = STDIO_PROCESS_NONE;
	if (ret_life)
		*ret_life = TAKE_FD(life);
	return 0;
}
