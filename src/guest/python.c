#include "guest/python.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include "guest/spawn.h"
#include "guest/user.h"
#include "guest/warm.h"
#include "spec/launch.h"
#include "spec/warm.h"

#define PASSED_FD 16 /* spawn.h */

static int spawn(const char *modules, const int passed[2], pid_t *ret_pid, struct err *err)
{
	char mode[TEMPLATE_PRELOAD_MAX + 32];
	const char *const argv[] = { "python3", NULL };
	const char *const envp[] = { "LD_PRELOAD=/proc/self/fd/4",
				     mode,
				     "PATH=" WARM_PATH,
				     "HOME=" WARM_HOME,
				     "LANG=" WARM_LANG,
				     NULL };
	struct spawn_plan plan = {
		.argv = argv, .envp = envp, .cwd = "/", .passed = passed, .n_passed = 2
	};
	struct spawned s;
	struct user u;
	int r = user_load("", &u, err);

	if (r == 0 && str_format(mode, sizeof(mode), "HOLT_WARM=template:%s", modules) < 0)
		r = err_set(err, E2BIG, "preload: too long");
	if (r < 0)
		return r;
	plan.user = &u;
	r = spawn_start(&plan, &s, err);
	if (r == 0)
		*ret_pid = s.pid;
	return r == -ENOENT ? err_set(err, ENOPKG, "preload: there is no python3") : r;
}

int python_start(int lib_fd, const char *modules, pid_t *ret_pid, int *ret_sock, struct err *err)
{
	_close_ int ours = -1, theirs = -1, lib = fcntl(lib_fd, F_DUPFD_CLOEXEC, PASSED_FD);
	int pair[2], r;

	if (lib < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(err, errno, "preload");
	ours = pair[0];
	theirs = fcntl(pair[1], F_DUPFD_CLOEXEC, PASSED_FD);
	(void)close(pair[1]);
	if (theirs < 0)
		return err_sys(err, errno, "preload");
	r = spawn(modules, (int[]){ theirs, lib }, ret_pid, err);
	if (r == 0)
		*ret_sock = TAKE_FD(ours);
	return r;
}

int python_wait(int sock, int timeout_ms, struct err *err)
{
	struct pollfd p = { .fd = sock, .events = POLLIN };
	struct warm_failed f;
	ssize_t n;
	int r;

	do
		r = poll(&p, 1, timeout_ms);
	while (r < 0 && errno == EINTR);
	if (r <= 0)
		return err_set(err, ETIMEDOUT, "preload: Python has not imported it in %d ms",
			       timeout_ms);
	n = recv(sock, &f, sizeof(f), MSG_PEEK | MSG_DONTWAIT);
	if (n <= 0)
		return err_set(err, ECHILD, "preload: Python ended while it imported it");
	if ((size_t)n == sizeof(struct warm_parked))
		return 0;
	if ((size_t)n != sizeof(f))
		return err_set(err, EPROTO, "preload: Python says what it should not");
	f.text[sizeof(f.text) - 1] = '\0';
	return err_set(err, f.code == ENOPKG ? ENOPKG : EIO, "%s", warm_plain(f.text));
}
