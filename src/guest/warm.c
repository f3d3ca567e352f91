#include "guest/warm.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include "base/utf8.h"
#include "guest/node.h"
#include "guest/python.h"
#include "guest/user.h"
#include "spec/warm.h"

#define LOGIN_VARS 4
#define STACK_TOUCHED (176u << 10)
#define PARK_WAIT_MS 10000 /* a template that takes longer is broken */
#define BEGIN_WAIT_MS 5000 /* for one that waits to say that it begins */
#define TAKE_TRIES 2

/* A request on its way to an interpreter. */
struct warm_scratch {
	struct guest_exec exec; /* with the variables of a login */
	char login[LOGIN_VARS][USER_PATH_MAX + 16];
	_Alignas(8) char message[sizeof(struct warm_run) + WIRE_FRAME_MAX];
};
#define TOUCHED (sizeof(struct warm_scratch) - WIRE_FRAME_MAX + 4096)

void warm_init(struct warm *w)
{
	*w = (struct warm){ .python_fd = -1,
			    .parked_fd = -1,
			    .node = { .in = -1, .out = -1, .err = -1 } };
}

void warm_done(struct warm *w)
{
	w->python_fd = fd_close(w->python_fd);
	w->parked_fd = fd_close(w->parked_fd);
	spawn_close(&w->node);
	free(TAKE(w->scratch));
	warm_end_free(w->parked_end);
	w->parked_end = NULL;
}

static struct warm_scratch *need_scratch(struct warm *w)
{
	if (!w->scratch) {
		w->scratch = malloc(sizeof(*w->scratch));
		if (w->scratch)
			memset(w->scratch, 0, TOUCHED);
	}
	return w->scratch;
}

static void drop_parked(struct warm *w)
{
	w->parked_fd = fd_close(w->parked_fd);
	w->parked_pid = 0;
	warm_end_free(w->parked_end);
	w->parked_end = NULL;
}

/* Without the template there is no Python any more; those that wait are served. */
static void drop_template(struct warm *w)
{
	w->python_fd = fd_close(w->python_fd);
	w->is_asked = false;
	if (w->python_pid > 0) /* it may not be what it was: its end is not left to itself */
		(void)kill(w->python_pid, SIGKILL);
}

void warm_distrust(struct warm *w)
{
	drop_parked(w);
	drop_template(w);
}

const char *warm_plain(char *text)
{
	text[strnlen(text, WHY_MAX)] = '\0';
	for (char *p = text; *p; p++)
		if (*p < ' ' || *p > '~')
			*p = '?';
	return text;
}

static int wait_readable(int fd, int timeout_ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	int r;

	do
		r = poll(&p, 1, timeout_ms);
	while (r < 0 && errno == EINTR);
	return r > 0 ? 0 : -ETIMEDOUT;
}

/* Read-only, and NULL when it cannot be had: then its end is seen when it is reaped. Of a file that
 * can still shrink, reading would end us. */
static const struct warm_end *map_end(int fd)
{
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS);
	void *page;

	if (seals < 0 || !(seals & F_SEAL_SHRINK) || fstat(fd, &st) < 0 ||
	    st.st_size < WARM_END_SIZE)
		return NULL;
	page = mmap(NULL, WARM_END_SIZE, PROT_READ, MAP_SHARED, fd, 0);
	return page == MAP_FAILED ? NULL : page;
}

/* A template that runs foreign code may name any process: only a child of ours, and none that we
 * know already, can be the one that waits. Executions and file operations are looked at by
 * exec_start(). */
static bool is_believable(const struct warm *w, pid_t pid)
{
	siginfo_t info;

	if (!w->is_foreign)
		return true;
	return pid != w->python_pid && pid != w->node.pid &&
	       waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

/* Takes the next parked Python from the template, which may have failed to fork one: then it lives
 * on, and can do so when the box has room again. */
static int take_parked(struct warm *w)
{
	struct warm_parked parked;
	int fds[WARM_PARKED_FDS] = { -1, -1 };
	size_t nfds = WARM_PARKED_FDS;
	ssize_t n = wait_readable(w->python_fd, PARK_WAIT_MS);

	if (n == 0)
		n = fd_recv(w->python_fd, &parked, sizeof(parked), fds, &nfds);
	w->is_asked = false;
	if (n == (ssize_t)sizeof(parked) && nfds == 0 && parked.pid == -1)
		return -ENOENT;
	if (n != (ssize_t)sizeof(parked) || nfds <= WARM_PARKED_SOCK || parked.pid <= 0 ||
	    !is_believable(w, parked.pid)) {
		for (size_t i = 0; n >= 0 && i < nfds; i++)
			(void)fd_close(fds[i]);
		drop_template(w);
		return -ENOENT;
	}
	w->parked_fd = fds[WARM_PARKED_SOCK];
	w->parked_pid = parked.pid;
	w->parked_end = nfds > WARM_PARKED_END ? map_end(fds[WARM_PARKED_END]) : NULL;
	(void)fd_close(fds[WARM_PARKED_END]);
	return 0;
}

void warm_end_free(const struct warm_end *end)
{
	if (end)
		(void)munmap((void *)(uintptr_t)end, WARM_END_SIZE);
}

bool warm_has_ended(const struct warm_end *end, pid_t pid, int *ret_status, struct rusage *ret_used)
{
	if (!end || !__atomic_load_n(&end->is_said, __ATOMIC_ACQUIRE) || end->pid != pid)
		return false;
	*ret_status = (int)(end->code & 0xff) << 8;
	*ret_used = (struct rusage){
		.ru_utime = { (time_t)(end->user_us / 1000000), (long)(end->user_us % 1000000) },
		.ru_stime = { (time_t)(end->sys_us / 1000000), (long)(end->sys_us % 1000000) },
		.ru_maxrss = (long)end->max_rss_kb,
	};
	return true;
}

/* As deep as a request goes: its pages are then at hand when the first one comes. */
static __attribute__((noinline)) void touch_stack(void)
{
	char pad[STACK_TOUCHED];

	explicit_bzero(pad, sizeof(pad));
}

int warm_adopt_python(struct warm *w, int python_fd, struct err *err)
{
	struct user ahead;
	int r;

	(void)user_load_again(&w->user, "", &ahead, NULL);
	(void)need_scratch(w);
	touch_stack();
	w->python_fd = python_fd;
	(void)fd_cloexec(python_fd, true);
	r = take_parked(w);
	return r < 0 ? err_set(err, ENOENT, "the waiting Python is gone") : 0;
}

int warm_start_python(struct warm *w, int lib_fd, const char *modules, struct err *err)
{
	_close_ int sock = -1;
	int r;

	w->is_foreign = true;
	r = python_start(lib_fd, modules, &w->python_pid, &sock, err);
	if (r == 0)
		r = python_wait(sock, WARM_PRELOAD_MS, err);
	if (r == 0)
		return warm_adopt_python(w, TAKE_FD(sock), err);
	drop_template(w);
	return r;
}

bool warm_lacks_python(const struct warm *w)
{
	return w->python_fd >= 0 && w->parked_fd < 0 && !w->is_asked;
}

void warm_park(struct warm *w)
{
	char ask = WARM_FORK;

	if (!warm_lacks_python(w))
		return;
	if (fd_send(w->python_fd, &ask, 1, NULL, 0) == 1)
		w->is_asked = true;
	else
		drop_template(w);
}

static int need_parked(struct warm *w)
{
	if (w->parked_fd >= 0)
		return 0;
	warm_park(w);
	return w->is_asked ? take_parked(w) : -ENOENT;
}

/* Settings that the interpreter reads at its start, with the value it was started with. Anything
 * else would have made a different interpreter. */
static const struct {
	const char *name;
	const char *value;
} fixed[] = {
	{ "PATH", WARM_PATH },     { "HOME", WARM_HOME },   { "LANG", WARM_LANG },
	{ "LC_CTYPE", WARM_LANG }, { "LC_ALL", WARM_LANG },
};

bool warm_is_value(const char *value, const char *started_with)
{
	size_t n = strlen(started_with);

	return strncmp(value, started_with, n) == 0 &&
	       (value[n] == '\0' || (started_with[0] == '/' && value[n] == ':'));
}

static bool is_servable_var(const char *var)
{
	for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++) {
		size_t n = strlen(fixed[i].name);

		if (strncmp(var, fixed[i].name, n) == 0 && var[n] == '=')
			return warm_is_value(var + n + 1, fixed[i].value);
	}
	/* These two are looked at again when a program takes over. */
	if (strncmp(var, "PYTHONUNBUFFERED=", 17) == 0 ||
	    strcmp(var, "PYTHONPATH=" GUEST_TOOLS_LIB) == 0)
		return true;
	return strncmp(var, "PYTHON", 6) != 0;
}

static bool is_servable(const struct guest_exec *e)
{
	if ((e->flags & EXEC_PTY) || !utf8_is_valid(e->code, strlen(e->code)))
		return false;
	for (size_t i = 0; i < e->envc; i++)
		if (!is_servable_var(e->envp[i]))
			return false;
	return true;
}

/* Our ends come back in ours, the interpreter's in fds (owned, but for a borrowed 0). */
static int open_streams(bool has_stdin, struct spawned *ours, int fds[WARM_STREAMS])
{
	int *const mine[WARM_STREAMS] = { &ours->in, &ours->out, &ours->err };

	for (int i = 0; i < WARM_STREAMS; i++) {
		int p[2], my_end = i == 0 ? 1 : 0;

		if (i == 0 && !has_stdin)
			continue;
		if (pipe2(p, O_CLOEXEC) < 0)
			return -errno;
		(void)fcntl(p[my_end], F_SETFL, O_NONBLOCK);
		*mine[i] = p[my_end];
		fds[i] = p[!my_end];
	}
	return 0;
}

static void close_streams(int fds[WARM_STREAMS])
{
	for (int i = 0; i < WARM_STREAMS; i++)
		if (fds[i] != STDIN_FILENO)
			(void)fd_close(fds[i]);
}

static int fill_run(const struct user *u, uint64_t mark, struct warm_run *ret)
{
	*ret = (struct warm_run){ .mark = mark, .uid = u->uid, .gid = u->gid };
	if (u->ngroups > WARM_GROUPS_MAX)
		return -E2BIG;
	ret->ngroups = (uint32_t)u->ngroups;
	memcpy(ret->groups, u->groups, u->ngroups * sizeof(u->groups[0]));
	return str_copy(ret->home, sizeof(ret->home), u->home);
}

/* One message: who to be, what to run, and the streams. */
static int send_order(int sock, const struct warm_run *run, struct warm_scratch *s,
		      const int fds[WARM_STREAMS])
{
	const struct guest_exec *e = &s->exec;
	long n = guest_put_exec(s->message + sizeof(*run), WIRE_FRAME_MAX, 1, e);
	int answer = 0;
	ssize_t r;

	if (n < 0)
		return (int)n;
	memcpy(s->message, run, sizeof(*run));
	r = fd_send(sock, s->message, sizeof(*run) + (size_t)n, fds, WARM_STREAMS);
	if (r < 0)
		return (int)r;
	if (!e->cwd[0])
		return 0;
	if (wait_readable(sock, BEGIN_WAIT_MS) < 0)
		return -ETIMEDOUT;
	if (fd_recv(sock, &answer, sizeof(answer), NULL, NULL) != (ssize_t)sizeof(answer))
		return -EPIPE;
	return answer;
}

/* EXEC_LOGIN as for any program: variables of the request win over those of the passwd file. */
static void add_login(struct guest_exec *e, const struct user *u, char store[][USER_PATH_MAX + 16])
{
	const char *const vars[LOGIN_VARS][2] = { { "HOME", u->home },
						  { "USER", u->name },
						  { "LOGNAME", u->name },
						  { "SHELL", u->shell } };

	for (size_t i = 0; (e->flags & EXEC_LOGIN) && i < LOGIN_VARS; i++) {
		size_t n = strlen(vars[i][0]);
		bool has = !vars[i][1][0] || e->envc >= GUEST_ARGS_MAX;

		for (size_t k = 0; k < e->envc && !has; k++)
			has = strncmp(e->envp[k], vars[i][0], n) == 0 && e->envp[k][n] == '=';
		if (!has &&
		    str_format(store[i], sizeof(store[i]), "%s=%s", vars[i][0], vars[i][1]) == 0)
			e->envp[e->envc++] = store[i];
	}
	e->envp[e->envc] = NULL;
}

/* -EPIPE: the one that waited is gone. -ENOENT: this request is not for it. */
static int take_python(struct warm *w, const struct user *u, struct spawned *ret)
{
	const struct guest_exec *e = &w->scratch->exec;
	struct spawned ours = { .in = -1, .out = -1, .err = -1, .warm = 1, .mark = ret->mark };
	int fds[WARM_STREAMS] = { STDIN_FILENO, -1, -1 };
	struct warm_run run;
	int r = fill_run(u, ret->mark, &run);

	if (r == 0)
		r = open_streams(e->flags & EXEC_STDIN, &ours, fds);
	if (r == 0)
		r = send_order(w->parked_fd, &run, w->scratch, fds);
	ours.pid = w->parked_pid;
	ours.end = TAKE(w->parked_end);
	drop_parked(w);
	close_streams(fds);
	if (r < 0) {
		warm_end_free(ours.end);
		spawn_close(&ours);
		if (r == -ETIMEDOUT) { /* it must not begin after all, nor its like */
			(void)kill(ours.pid, SIGKILL);
			drop_template(w);
		}
		return r == -EPIPE || r == -ECONNRESET ? -EPIPE : -ENOENT;
	}
	*ret = ours;
	return 0;
}

/* Of one that died on its way to us nobody has told: another takes its place. */
static int take_living(struct warm *w, const struct user *u, struct spawned *ret)
{
	int r = -EPIPE;

	for (int i = 0; i < TAKE_TRIES && r == -EPIPE; i++)
		r = need_parked(w) < 0 ? -ENOENT : take_python(w, u, ret);
	return r < 0 ? -ENOENT : 0;
}

int warm_take(struct warm *w, const struct guest_exec *e, struct spawned *ret, struct err *err)
{
	struct warm_scratch *s;
	struct user u;

	if (e->kind == EXEC_COMMAND || user_load_again(&w->user, e->user, &u, NULL) < 0)
		return -ENOENT;
	s = need_scratch(w);
	if (!s)
		return -ENOENT;
	s->exec = *e;
	add_login(&s->exec, &u, s->login);
	if (e->kind == EXEC_NODE)
		return node_take(w, &s->exec, &u, ret, err);
	/* One that we started is nobody but the box's user. */
	if (w->is_foreign && u.uid != USER_DEFAULT)
		return -ENOENT;
	return is_servable(&s->exec) ? take_living(w, &u, ret) : -ENOENT;
}

void warm_reaped(struct warm *w, pid_t pid)
{
	if (w->parked_fd >= 0 && pid == w->parked_pid)
		drop_parked(w);
	if (w->python_pid > 0 && pid == w->python_pid) {
		w->python_pid = 0;
		drop_template(w);
	}
	if (w->node.pid > 0 && pid == w->node.pid) {
		spawn_close(&w->node);
		w->node.pid = 0;
	}
}
