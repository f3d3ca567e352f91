#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "launch/netns.h"

/* Each case runs in a child: it changes the network namespace of its process. */
static void in_child(void (*body)(struct netns *n))
{
	pid_t pid;
	int status;

	if (geteuid() != 0)
		skip();
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct err err = { 0 };
		struct netns n;

		if (netns_init(&n, open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC), 4, &err) < 0)
			_exit(2);
		body(&n);
		netns_done(&n);
		(void)close(n.proc_fd);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

#define CHECK(what)                             \
	do {                                    \
		if (!(what))                    \
			_exit(__LINE__ & 0x7f); \
	} while (0)

static void loop_a_packet(void)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(9) };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	CHECK(fd >= 0);
	(void)sendto(fd, "x", 1, 0, (struct sockaddr *)&to, sizeof(to));
	(void)close(fd);
}

/* Connections that linger are charged to nobody: each namespace has its own limit of them. */
static void bound_lingering(struct netns *n)
{
	char text[32] = { 0 };
	int fd = netns_take(n, NULL), file;

	CHECK(fd >= 0 && setns(fd, CLONE_NEWNET) == 0);
	file = open("/proc/sys/net/ipv4/tcp_max_tw_buckets", O_RDONLY | O_CLOEXEC);
	CHECK(file >= 0 && read(file, text, sizeof(text) - 1) > 0);
	CHECK(strcmp(text, NETNS_LINGERING_MAX "\n") == 0);
	(void)close(file);
	(void)close(fd);
}

static void recycle_untouched(struct netns *n)
{
	int fd = netns_take(n, NULL);

	CHECK(fd >= 0);
	CHECK(netns_recycle(n, fd));
	CHECK(n->count == 1);
}

static void refuse_used(struct netns *n)
{
	int fd = netns_take(n, NULL);

	CHECK(fd >= 0 && setns(fd, CLONE_NEWNET) == 0);
	loop_a_packet();
	CHECK(!netns_recycle(n, fd));
	CHECK(n->count == 0);
}

/* A connection attempt to nowhere moves no packet, but the kernel counts that there was no route.
 */
static void refuse_unroutable(struct netns *n)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(80) };
	int fd = netns_take(n, NULL), sock;

	CHECK(fd >= 0 && setns(fd, CLONE_NEWNET) == 0);
	sock = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	to.sin_addr.s_addr = htonl(0x01010101);
	CHECK(connect(sock, (struct sockaddr *)&to, sizeof(to)) < 0);
	(void)close(sock);
	CHECK(!netns_recycle(n, fd));
}

static void stop_at_want(struct netns *n)
{
	for (int i = 0; i < 10; i++)
		(void)netns_refill(n);
	CHECK(n->count == 4);
	CHECK(!netns_refill(n));
}

static void an_untouched_namespace_is_used_again(void **state)
{
	(void)state;
	in_child(recycle_untouched);
}

static void one_packet_is_enough_to_drop_a_namespace(void **state)
{
	(void)state;
	in_child(refuse_used);
}

static void an_attempt_without_a_route_is_enough_too(void **state)
{
	(void)state;
	in_child(refuse_unroutable);
}

static void the_stock_is_filled_to_what_is_wanted(void **state)
{
	(void)state;
	in_child(stop_at_want);
}

static void connections_that_linger_are_bounded(void **state)
{
	(void)state;
	in_child(bound_lingering);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(connections_that_linger_are_bounded),
		cmocka_unit_test(an_untouched_namespace_is_used_again),
		cmocka_unit_test(one_packet_is_enough_to_drop_a_namespace),
		cmocka_unit_test(an_attempt_without_a_route_is_enough_too),
		cmocka_unit_test(the_stock_is_filled_to_what_is_wanted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
