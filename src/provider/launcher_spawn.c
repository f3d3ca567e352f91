/* Finds and starts holt-launch, greets it, and helps one to its end that hangs. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/map.h"
#include "base/str.h"
#include "provider/launcher_impl.h"

#ifndef HOLT_LIBEXECDIR
#define HOLT_LIBEXECDIR "/usr/libexec/holt"
#endif
#define PROGRAM LAUNCHER_PROGRAM
/* Where the launcher finds its descriptors, and as what it is told so. */
#define CHILD_SOCK 3
#define CHILD_SOCK_TEXT "3"
#define CHILD_STATE 4
#define CHILD_STATE_TEXT "4"
#define KILLED_MS 5000
#define HELLO_MS 60000 /* a launcher may wait for what an earlier one left to die */

/* The launcher lies beside this program in a build tree, in libexec once installed. */
static int find_program(char *dst, size_t size, struct err *err)
{
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;

	self[n > 0 ? n : 0] = '\0';
	slash = strrchr(self, '/');
	if (slash) {
		*slash = '\0';
		if (str_format(dst, size, "%s/" PROGRAM, self) == 0 && access(dst, X_OK) == 0)
			return 0;
	}
	if (str_copy(dst, size, HOLT_LIBEXECDIR "/" PROGRAM) == 0 && access(dst, X_OK) == 0)
		return 0;
	return err_set(err, ENOENT, PROGRAM " is neither in '%s' nor in '" HOLT_LIBEXECDIR "'",
		       self);
}

#define ARGS_MAX 16
struct args {
	const char *argv[ARGS_MAX];
	char netns[16], cgroups[16], layers[24], build[16];
};

static void build_args(struct args *a, const struct launcher_options *o, const char *program)
{
	size_t n = 0;

	a->argv[n++] = program;
	a->argv[n++] = "--fd";
	a->argv[n++] = CHILD_SOCK_TEXT;
	a->argv[n++] = "--cgroup";
	a->argv[n++] = o->cgroup ? o->cgroup : "auto";
	if (o->persistent) {
		a->argv[n++] = "--state";
		a->argv[n++] = CHILD_STATE_TEXT;
	}
	if (o->spare_netns) {
		(void)str_format(a->netns, sizeof(a->netns), "%u", o->spare_netns);
		a->argv[n++] = "--spare-netns";
		a->argv[n++] = a->netns;
	}
	if (o->spare_cgroups) {
		(void)str_format(a->cgroups, sizeof(a->cgroups), "%u", o->spare_cgroups);
		a->argv[n++] = "--spare-cgroups";
		a->argv[n++] = a->cgroups;
	}
	if (o->layers_bytes) {
		(void)str_format(a->layers, sizeof(a->layers), "%llu",
				 (unsigned long long)o->layers_bytes);
		a->argv[n++] = "--layers";
		a->argv[n++] = a->layers;
	}
	if (o->build_ms) {
		(void)str_format(a->build, sizeof(a->build), "%u", o->build_ms);
		a->argv[n++] = "--build-timeout";
		a->argv[n++] = a->build;
	}
	a->argv[n] = NULL;
}

/* In a session of its own: a Ctrl-C at the terminal must reach us and not the launcher, which has
 * the boxes to clear away. It starts with default signals and nothing blocked. */
static int set_attributes(posix_spawnattr_t *attr)
{
	sigset_t none, all;
	int e;

	(void)sigemptyset(&none);
	(void)sigfillset(&all);
	e = posix_spawnattr_setsigmask(attr, &none);
	if (!e)
		e = posix_spawnattr_setsigdefault(attr, &all);
	if (!e)
		e = posix_spawnattr_setflags(attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
							   POSIX_SPAWN_SETSID);
	return e;
}

/* Both descriptors lie above the places that they go to. */
static int spawn(const struct args *a, int sock, int state_fd, pid_t *ret)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	int e = posix_spawn_file_actions_init(&files);

	if (e)
		return -e;
	e = posix_spawnattr_init(&attr);
	if (e) {
		(void)posix_spawn_file_actions_destroy(&files);
		return -e;
	}
	e = posix_spawn_file_actions_adddup2(&files, sock, CHILD_SOCK);
	if (!e && state_fd >= 0)
		e = posix_spawn_file_actions_adddup2(&files, state_fd, CHILD_STATE);
	if (!e)
		e = set_attributes(&attr);
	if (!e)
		e = posix_spawn(ret, a->argv[0], &files, &attr, (char *const *)a->argv, environ);
	(void)posix_spawnattr_destroy(&attr);
	(void)posix_spawn_file_actions_destroy(&files);
	return -e;
}

/* A descriptor that lies where the launcher's will be would be overwritten by the other one. */
static int lift(int fd)
{
	return fcntl(fd, F_DUPFD_CLOEXEC, CHILD_STATE + 1);
}

int launcher_spawn(const struct launcher_options *o, int *ret_sock, pid_t *ret_pid, struct err *err)
{
	_close_ int ours = -1, near = -1, theirs = -1, state = -1;
	char found[PATH_MAX];
	struct args args;
	int pair[2], e;

	if (!o->program) {
		e = find_program(found, sizeof(found), err);
		if (e < 0)
			return e;
	}
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(err, errno, "socketpair");
	ours = pair[0];
	near = pair[1];
	theirs = lift(near);
	if (theirs < 0)
		return err_sys(err, errno, "start " PROGRAM);
	if (o->persistent && (state = lift(o->state_fd)) < 0)
		return err_sys(err, errno, "the state directory of " PROGRAM);
	build_args(&args, o, o->program ? o->program : found);
	e = spawn(&args, theirs, state, ret_pid);
	if (e < 0)
		return err_sys(err, e, "start '%s'", args.argv[0]);
	*ret_sock = TAKE_FD(ours);
	return 0;
}

static struct launcher *create(int sock, pid_t pid)
{
	struct launcher *l = calloc(1, sizeof(*l));

	if (!l) {
		(void)fd_close(sock);
		return NULL;
	}
	l->sock = sock;
	l->pid = pid;
	list_init(&l->pending);
	list_init(&l->queue);
	list_init(&l->deaths);
	l->by_id = map_create(LAUNCHER_PENDING_MAX);
	return l->by_id ? l : launcher_stop(l);
}

static bool is_living_child(pid_t pid)
{
	return pid > 0 && waitpid(pid, NULL, WNOHANG) == 0;
}

void launcher_bury(pid_t pid, int patience_ms)
{
	struct pollfd p = { .events = POLLIN };

	if (!is_living_child(pid))
		return;
	p.fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (p.fd >= 0 && poll(&p, 1, patience_ms) == 0) {
		(void)kill(pid, SIGKILL);
		if (poll(&p, 1, KILLED_MS) == 0) {
			log_error("launcher", "process %d was killed and does not end", (int)pid);
			(void)fd_close(p.fd);
			return; /* stuck in the kernel: it keeps its locks, so none takes its place
				 */
		}
	}
	(void)fd_close(p.fd);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

/* A child that does not even answer would not end at the end of its socket either. */
void launcher_kill(struct launcher *l)
{
	if (is_living_child(l->pid))
		(void)kill(l->pid, SIGKILL);
	(void)launcher_end(l, -EPIPE, PROGRAM " does not answer");
}

int launcher_connect(int sock, pid_t pid, struct launcher **ret, struct err *err)
{
	_cleanup_(launcher_stop_p) struct launcher *l = create(sock, pid);
	int e;

	if (!l)
		return err_sys(err, ENOMEM, "start " PROGRAM);
	e = fd_nonblock(sock, true);
	if (e < 0)
		return err_sys(err, e, "start " PROGRAM);
	e = launcher_hello_sync(l, HELLO_MS, err);
	if (e == -ETIMEDOUT && is_living_child(pid))
		(void)kill(pid, SIGKILL);
	if (e < 0)
		return e;
	*ret = TAKE(l);
	return 0;
}

int launcher_start(const struct launcher_options *o, struct launcher **ret, struct err *err)
{
	int sock = -1, e;
	pid_t pid = 0;

	e = launcher_spawn(o, &sock, &pid, err);
	if (e == 0)
		e = launcher_connect(sock, pid, ret, err);
	if (e == 0)
		launcher_set_patience(*ret, 2 * (o->build_ms ? o->build_ms : LAUNCHER_BUILD_MS));
	return e;
}
