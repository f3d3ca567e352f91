/* A server as a process of this machine: as whoever we are, in a session of its own, with an
 * environment that holds nothing but what everybody needs and what its row says. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/fd.h"
#include "base/str.h"
#include "loop/loop.h"
#include "mcpc/stdio_impl.h"

#define CHUNK 65536u
#define DRAIN_CHUNKS 64u /* of what it has left when it ends */
#define PATH_DEFAULT "/usr/local/bin:/usr/bin:/bin"

/* Of our own environment; no more: what else stands there is ours. */
static const char *const passed_on[] = { "HOME", "LANG",   "LC_ALL", "LOGNAME",
					 "PATH", "TMPDIR", "TZ",     "USER" };
#define N_PASSED (sizeof(passed_on) / sizeof(passed_on[0]))

struct host {
	struct stdio s;
	pid_t pid; /* 0: not started; also its group's */
	int pidfd, in, out, said;
	struct loop_io *pid_io, *in_io, *out_io, *said_io; /* owned */
	struct loop_task soon;                             /* frees it */
	bool is_gone;                                      /* it has ended and was waited for */
};

static struct host *host_of(struct stdio *s)
{
	return (struct host *)s;
}

/* ---- what is said ---- */

static void close_in(struct host *h)
{
	h->in_io = loop_io_free(h->in_io);
	h->in = fd_close(h->in);
}

static void close_out(struct host *h)
{
	h->out_io = loop_io_free(h->out_io);
	h->out = fd_close(h->out);
}

static void close_said(struct host *h)
{
	h->said_io = loop_io_free(h->said_io);
	h->said = fd_close(h->said);
}

/* Of what went wrong here its end tells. */
static void flush(struct stdio *s)
{
	struct host *h = host_of(s);

	while (h->in >= 0 && s->out_at < s->out.len) {
		ssize_t n = write(h->in, s->out.data + s->out_at, s->out.len - s->out_at);

		if (n > 0) {
			s->out_at += (size_t)n;
			continue;
		}
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		close_in(h);
	}
	if (h->in_io)
		(void)loop_io_want(h->in_io, s->out_at < s->out.len ? LOOP_WRITE : 0);
}

static void on_room(void *user, unsigned events)
{
	(void)events;
	flush(user);
}

/* False: nothing more comes, now or for ever (*ret_end). */
static bool read_some(struct host *h, int fd, void (*take)(struct stdio *, const char *, size_t),
		      bool *ret_end)
{
	char data[CHUNK];
	ssize_t n = read(fd, data, sizeof(data));

	*ret_end = n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
	if (n > 0)
		take(&h->s, data, (size_t)n);
	return n > 0;
}

static void on_out(void *user, unsigned events)
{
	struct host *h = user;
	bool is_end;

	(void)events;
	(void)read_some(h, h->out, stdio_feed, &is_end);
	if (!is_end)
		return;
	close_out(h);
	stdio_fell_silent(&h->s);
}

static void on_said(void *user, unsigned events)
{
	struct host *h = user;
	bool is_end;

	(void)events;
	(void)read_some(h, h->said, stdio_said, &is_end);
	if (is_end)
		close_said(h);
}

/* ---- the end ---- */

static void reap(struct host *h, siginfo_t *ret)
{
	/* Before it is waited for: until then its number, and its group's, is nobody else's. */
	(void)kill(-h->pid, SIGKILL);
	while (waitid(P_PID, (id_t)h->pid, ret, WEXITED) < 0 && errno == EINTR)
		;
	h->is_gone = true;
	h->pid_io = loop_io_free(h->pid_io);
	h->pidfd = fd_close(h->pidfd);
}

static void on_ended(void *user, unsigned events)
{
	struct host *h = user;
	siginfo_t how = { 0 };
	bool is_end = false;

	(void)events;
	for (unsigned i = 0; h->out >= 0 && i < DRAIN_CHUNKS; i++)
		if (!read_some(h, h->out, stdio_feed, &is_end))
			break;
	for (unsigned i = 0; h->said >= 0 && i < DRAIN_CHUNKS; i++)
		if (!read_some(h, h->said, stdio_said, &is_end))
			break;
	stdio_said(&h->s, "\n", 1);
	reap(h, &how);
	close_in(h);
	close_out(h);
	close_said(h);
	if (h->s.is_closing)
		(void)stdio_free(&h->s);
	else if (how.si_code == CLD_EXITED)
		stdio_lose_ended(&h->s, how.si_status, 0);
	else
		stdio_lose_ended(&h->s, 0, how.si_status);
}

static void free_soon(void *user)
{
	(void)stdio_free(user);
}

static void hang_up(struct stdio *s)
{
	struct host *h = host_of(s);

	close_in(h);
	if (h->is_gone)
		loop_task_post(s->yard->loop, &h->soon);
}

static void terminate(struct stdio *s)
{
	const struct host *h = host_of(s);

	if (!h->is_gone)
		(void)kill(-h->pid, SIGTERM);
}

static void end_now(struct stdio *s)
{
	const struct host *h = host_of(s);

	if (!h->is_gone)
		(void)kill(-h->pid, SIGKILL);
}

static void drop(struct stdio *s)
{
	struct host *h = host_of(s);
	siginfo_t how;

	loop_task_cancel(&h->soon);
	if (h->pid > 0 && !h->is_gone)
		reap(h, &how);
	h->pid_io = loop_io_free(h->pid_io);
	h->pidfd = fd_close(h->pidfd);
	close_in(h);
	close_out(h);
	close_said(h);
}

static const struct stdio_ops host_ops = {
	.flush = flush,
	.hang_up = hang_up,
	.terminate = terminate,
	.kill = end_now,
	.drop = drop,
};

/* ---- the beginning ---- */

static const char *pair_value(const struct jv_pairs *env, const char *name)
{
	for (size_t i = 0; i < env->len; i++)
		if (strcmp(env->items[i].name, name) == 0)
			return env->items[i].value;
	return NULL;
}

static char **make_env(struct host *h)
{
	const struct jv_pairs *own = &h->s.env;
	char **env = arena_array(h->s.arena, N_PASSED + own->len + 1, sizeof(*env));
	size_t n = 0;

	for (size_t i = 0; env && i < N_PASSED; i++) {
		const char *value = getenv(passed_on[i]);

		if (!value || pair_value(own, passed_on[i]))
			continue;
		env[n] = arena_printf(h->s.arena, "%s=%s", passed_on[i], value);
		if (!env[n++])
			return NULL;
	}
	for (size_t i = 0; env && i < own->len; i++) {
		env[n] = arena_printf(h->s.arena, "%s=%s", own->items[i].name, own->items[i].value);
		if (!env[n++])
			return NULL;
	}
	return env;
}

static char **make_argv(struct host *h, const struct stdio_spec *spec)
{
	char **argv = arena_array(h->s.arena, spec->argc + 1, sizeof(*argv));

	for (size_t i = 0; argv && i < spec->argc; i++) {
		argv[i] = arena_strndup(h->s.arena, spec->argv[i], strlen(spec->argv[i]));
		if (!argv[i])
			return NULL;
	}
	return argv;
}

/* As a shell would look for it, with the PATH that the program will see. */
static const char *find_program(struct host *h, const char *name)
{
	const char *own = pair_value(&h->s.env, "PATH"), *ours = getenv("PATH");
	struct str rest = str_of(own ? own : ours ? ours : PATH_DEFAULT), dir;

	if (strchr(name, '/'))
		return name;
	while (str_split(&rest, ':', &dir)) {
		char *path =
			dir.len ? arena_printf(h->s.arena, "%.*s/%s", (int)dir.len, dir.data, name)
				: NULL;

		if (path && access(path, X_OK) == 0)
			return path;
	}
	return NULL;
}

struct start {
	const char *path, *cwd;
	char **argv, **env;
	int fds[3]; /* its input, output and errors: above 2 */
};

/* In the child, which has one thread of many: nothing but system calls. Its session is its own, so
 * its group too: what it starts is ended with it. It does not outlive us, however we end. */
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

static int spawn(const struct start *st, pid_t *ret)
{
	int ends[2], e = 0;
	pid_t pid, parent = getpid();

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (pid == 0) {
		e = become(st, parent);
		(void)!write(ends[1], &e, sizeof(e));
		_exit(127);
	}
	if (pid < 0)
		e = errno;
	(void)close(ends[1]);
	/* The end without a word is the program's beginning. */
	if (pid > 0 && TEMP_FAILURE_RETRY(read(ends[0], &e, sizeof(e))) > 0)
		(void)TEMP_FAILURE_RETRY(waitpid(pid, NULL, 0));
	(void)close(ends[0]);
	*ret = pid;
	return -e;
}

/* A pipe whose far end lies above the places that it goes to. */
static int open_pipe(int *ret_read, int *ret_write, bool far_reads)
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
	*ret_read = far_reads ? far : ends[0];
	*ret_write = far_reads ? ends[1] : far;
	return 0;
}

static int start(struct host *h, const struct stdio_spec *spec, struct err *err)
{
	_close_ int in = -1, out = -1, said = -1;
	struct start st = { .cwd = spec->cwd[0] ? spec->cwd : "/" };
	int r = open_pipe(&in, &h->in, true);

	if (r == 0)
		r = open_pipe(&h->out, &out, false);
	if (r == 0)
		r = open_pipe(&h->said, &said, false);
	if (r < 0)
		return err_sys(err, r, "pipes of the server");
	st.path = find_program(h, spec->argv[0]);
	if (!st.path)
		return err_set(err, ENOENT, "command: there is no program '%.120s'", spec->argv[0]);
	st.argv = make_argv(h, spec);
	st.env = make_env(h);
	if (!st.argv || !st.env)
		return err_sys(err, ENOMEM, "server");
	st.fds[0] = in;
	st.fds[1] = out;
	st.fds[2] = said;
	r = spawn(&st, &h->pid);
	if (r < 0)
		return err_sys(err, r, "start '%.120s'", st.path);
	h->pidfd = (int)syscall(SYS_pidfd_open, h->pid, 0);
	return h->pidfd < 0 ? err_sys(err, errno, "watch '%.120s'", st.path) : 0;
}

static int watch(struct host *h, int fd, void (*ready)(void *, unsigned), unsigned events,
		 struct loop_io **ret)
{
	int r = loop_io_create(h->s.yard->loop, fd, ready, h, ret);

	return r < 0 || !events ? r : loop_io_want(*ret, events);
}

int stdio_host_open(struct stdio_yard *y, const struct stdio_spec *spec,
		    struct mcpc_transport **ret, struct err *err)
{
	struct host *h = calloc(1, sizeof(*h));
	int r;

	if (!h)
		return err_sys(err, ENOMEM, "server");
	h->pidfd = h->in = h->out = h->said = -1;
	loop_task_init(&h->soon, free_soon, h);
	r = stdio_init(&h->s, y, &host_ops, spec, err);
	if (r == 0)
		r = start(h, spec, err);
	if (r == 0) {
		r = watch(h, h->in, on_room, 0, &h->in_io);
		if (r == 0)
			r = watch(h, h->out, on_out, LOOP_READ, &h->out_io);
		if (r == 0)
			r = watch(h, h->said, on_said, LOOP_READ, &h->said_io);
		if (r == 0)
			r = watch(h, h->pidfd, on_ended, LOOP_READ, &h->pid_io);
		if (r < 0)
			(void)err_sys(err, r, "watch the server");
	}
	if (r < 0) {
		(void)stdio_free(&h->s);
		return r;
	}
	*ret = &h->s.t;
	return 0;
}
