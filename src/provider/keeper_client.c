/* The daemon's end: asks for launchers. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "provider/keeper.h"
#include "provider/keeper_impl.h"

void keeper_client_done(struct keeper_client *k)
{
	k->sock = fd_close(k->sock);
}

int keeper_tie(const struct keeper_client *k, struct err *err)
{
	if (prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0) < 0)
		return err_sys(err, errno, "watch the keeper");
	if (getppid() != k->keeper) /* it died before */
		return err_set(err, EPIPE, "the keeper is gone");
	return 0;
}

static int wait_readable(int fd, uint64_t deadline_ms)
{
	for (;;) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		uint64_t now = clock_now_ms();
		int n;

		if (now >= deadline_ms)
			return -ETIMEDOUT;
		n = poll(&p, 1, (int)(deadline_ms - now));
		if (n > 0)
			return 0;
		if (n < 0 && errno != EINTR)
			return -errno;
	}
}

/* Receives the answer to this request; one to an earlier request that was given up is dropped. */
static int await(struct keeper_client *k, struct keeper_answer *ret, int *ret_fd, struct err *err)
{
	uint64_t deadline_ms = clock_now_ms() + k->wait_ms;

	for (;;) {
		size_t nfds = 1;
		_close_ int fd = -1;
		ssize_t n;
		int r = wait_readable(k->sock, deadline_ms);

		if (r < 0)
			return err_sys(err, r, "wait for the keeper");
		n = fd_recv(k->sock, ret, sizeof(*ret), &fd, &nfds);
		if (n == 0 || n == -ECONNRESET)
			return err_set(err, EPIPE, "the keeper is gone");
		if (n != (ssize_t)sizeof(*ret))
			return err_set(err, EPROTO, "the keeper's answer cannot be read");
		if (ret->number != k->asked)
			continue;
		*ret_fd = TAKE_FD(fd);
		return 0;
	}
}

int keeper_launcher(struct keeper_client *k, int *ret_sock, pid_t *ret_pid, struct err *err)
{
	struct keeper_answer a = { 0 };
	_close_ int sock = -1;
	ssize_t n;
	int r;

	k->asked++;
	n = fd_send(k->sock, &k->asked, 1, NULL, 0);
	if (n == -EPIPE || n == -ECONNRESET)
		return err_set(err, EPIPE, "the keeper is gone");
	if (n < 0)
		return err_sys(err, (int)n, "ask the keeper");
	r = await(k, &a, &sock, err);
	if (r < 0)
		return r;
	a.text[sizeof(a.text) - 1] = '\0';
	if (a.code < 0)
		return err_set(err, -a.code, "%s", a.text);
	if (sock < 0 || a.pid <= 0)
		return err_set(err, EPROTO, "the keeper's answer has no launcher");
	*ret_sock = TAKE_FD(sock);
	*ret_pid = a.pid;
	return 0;
}

static int get_from_keeper(void *self, int *ret_sock, pid_t *ret_pid, struct err *err)
{
	return keeper_launcher(self, ret_sock, ret_pid, err);
}

struct launcher_source keeper_source(struct keeper_client *k)
{
	return (struct launcher_source){ get_from_keeper, k };
}
