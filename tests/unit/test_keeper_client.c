/* The daemon's end of the keeper's socket: the test plays the keeper. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "check.h"
#include "provider/keeper.h"
#include "provider/keeper_impl.h"

static struct keeper_client client_of(int *ret_far)
{
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	*ret_far = pair[1];
	return (struct keeper_client){ .sock = pair[0], .wait_ms = 200 };
}

static void say(int far, uint32_t number, int code, pid_t pid, int fd)
{
	struct keeper_answer a;

	memset(&a, 0, sizeof(a));
	a.number = number;
	a.code = code;
	a.pid = pid;
	memset(a.text, 'x', sizeof(a.text)); /* without an end */
	assert_int_equal(fd_send(far, &a, sizeof(a), &fd, fd >= 0 ? 1 : 0), sizeof(a));
}

static int open_fds(void)
{
	int n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void an_answer_that_came_too_late_is_not_taken_for_the_next(void **state)
{
	int far, sock = -1, before;
	struct keeper_client k = client_of(&far);
	pid_t pid = 0;
	uint8_t byte;
	size_t nfds = 0;

	(void)state;
	before = open_fds();
	assert_int_equal(keeper_launcher(&k, &sock, &pid, NULL), -ETIMEDOUT);
	say(far, 1, 0, 11, STDIN_FILENO);
	say(far, 2, 0, 22, STDIN_FILENO);
	assert_int_equal(keeper_launcher(&k, &sock, &pid, NULL), 0);
	assert_int_equal(pid, 22);
	assert_int_equal(open_fds(), before + 1);
	assert_int_equal(fd_recv(far, &byte, 1, NULL, &nfds), 1);
	assert_int_equal(byte, 1);
	(void)fd_close(sock);
	(void)fd_close(far);
	keeper_client_done(&k);
}

static void an_answer_that_is_none_is_refused(void **state)
{
	int far, sock = -1, before;
	struct keeper_client k = client_of(&far);
	struct err err = { 0 };
	pid_t pid = 0;

	(void)state;
	before = open_fds();
	assert_int_equal(fd_send(far, "short", 5, NULL, 0), 5);
	assert_int_equal(keeper_launcher(&k, &sock, &pid, NULL), -EPROTO);
	say(far, 2, 0, 22, -1);
	assert_int_equal(keeper_launcher(&k, &sock, &pid, NULL), -EPROTO);
	say(far, 3, 0, 0, STDIN_FILENO);
	assert_int_equal(keeper_launcher(&k, &sock, &pid, NULL), -EPROTO);
	say(far, 4, -EMFILE, 0, STDIN_FILENO);
	assert_int_equal(keeper_launcher(&k, &sock, &pid, &err), -EMFILE);
	assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
	assert_int_equal(sock, -1);
	assert_int_equal(open_fds(), before);
	far = fd_close(far);
	assert_int_equal(keeper_launcher(&k, &sock, &pid, &err), -EPIPE);
	assert_string_equal(err.text, "the keeper is gone");
	keeper_client_done(&k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_answer_that_came_too_late_is_not_taken_for_the_next),
		cmocka_unit_test(an_answer_that_is_none_is_refused),
	};

	return cmocka_run_group_tests_name("keeper_client", tests, NULL, NULL);
}
