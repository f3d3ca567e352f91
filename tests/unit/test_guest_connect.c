/* Doors of the guest: connections made and accepted inside, handed out as descriptors. Without a
 * box around it, "inside" is this machine's own loopback. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "check.h"
#include "guest_rig.h"

static int start(void **state)
{
	static struct guest_rig rig;

	rig_start(&rig);
	*state = &rig;
	return 0;
}

static int stop(void **state)
{
	rig_stop(*state, 0);
	return 0;
}

/* A listener of the test; its port. */
static int listen_here(int backlog, uint16_t *ret_port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t n = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, n), 0);
	assert_int_equal(listen(fd, backlog), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &n), 0);
	*ret_port = ntohs(a.sin_port);
	return fd;
}

static int dial(uint16_t port)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_port = htons(port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

static void ask(struct guest_rig *rig, uint16_t type, uint32_t id, uint16_t port, uint8_t address)
{
	struct guest_connect c = { .port = port, .address = address };
	uint8_t frame[64];
	long n = guest_put_connect(frame, sizeof(frame), type, id, &c);

	assert_int_equal(fd_send(rig->sock, frame, (size_t)n, NULL, 0), n);
}

/* The next frame within ten seconds; its descriptor or -1. */
static int hear(struct guest_rig *rig, struct wire_head *head, struct rd *payload)
{
	struct pollfd p = { .fd = rig->sock, .events = POLLIN };
	size_t n_fds = 1;
	int fd = -1;
	ssize_t n;

	assert_int_equal(poll(&p, 1, 10000), 1);
	n = fd_recv(rig->sock, rig->frame, sizeof(rig->frame), &fd, &n_fds);
	assert_true(n > 0);
	assert_int_equal(wire_open(rig->frame, (size_t)n, head, payload), 0);
	return n_fds == 1 ? fd : -1;
}

static uint64_t expect_done(struct guest_rig *rig, uint32_t id)
{
	struct wire_head head;
	struct rd payload;

	assert_int_equal(hear(rig, &head, &payload), -1);
	assert_int_equal(head.type, G_DONE);
	assert_int_equal(head.id, id);
	return rd_u64(&payload);
}

static int expect_socket(struct guest_rig *rig, uint32_t id)
{
	struct wire_head head;
	struct rd payload;
	int fd = hear(rig, &head, &payload);

	assert_int_equal(head.type, G_SOCKET);
	assert_int_equal(head.id, id);
	assert_true(fd >= 0);
	return fd;
}

static void expect_error(struct guest_rig *rig, uint32_t id, uint32_t code, const char *text)
{
	struct wire_head head;
	struct rd payload;

	assert_int_equal(hear(rig, &head, &payload), -1);
	assert_int_equal(head.type, G_ERROR);
	assert_int_equal(head.id, id);
	assert_int_equal(rd_u32(&payload), code);
	assert_non_null(strstr(rd_str(&payload), text));
}

/* What goes in at one end comes out at the other. */
static void expect_joined(int a, int b)
{
	char got[4] = "";

	assert_int_equal(send(a, "abc", 3, MSG_NOSIGNAL), 3);
	assert_int_equal(fd_nonblock(b, false), 0);
	assert_int_equal(fd_read_all(b, got, 3), 3);
	assert_string_equal(got, "abc");
}

static void a_connection_made_inside_comes_out_as_a_descriptor(void **state)
{
	uint16_t port;
	int listener = listen_here(8, &port), out, in;

	ask(*state, G_CONNECT, 5, port, ADDRESS_V4);
	out = expect_socket(*state, 5);
	assert_int_equal(expect_done(*state, 5), 0);
	in = accept(listener, NULL, NULL);
	assert_true(in >= 0);
	expect_joined(out, in);
	expect_joined(in, out);
	(void)close(out);
	(void)close(in);
	(void)close(listener);
}

static void a_port_without_a_listener_is_refused_in_words(void **state)
{
	uint16_t port;
	int listener = listen_here(8, &port);
	char want[64];

	(void)close(listener);
	ask(*state, G_CONNECT, 5, port, ADDRESS_V4);
	(void)snprintf(want, sizeof(want), "nothing listens on port %u", port);
	expect_error(*state, 5, ECONNREFUSED, want);
	ask(*state, G_CONNECT, 5, port, ADDRESS_V4); /* the id is free again */
	expect_error(*state, 5, ECONNREFUSED, want);
}

static void values_out_of_bounds_are_refused_and_break_nothing(void **state)
{
	ask(*state, G_CONNECT, 1, 0, ADDRESS_V4);
	expect_error(*state, 1, EINVAL, "out of bounds");
	ask(*state, G_CONNECT, 2, 80, ADDRESS_COUNT);
	expect_error(*state, 2, EINVAL, "out of bounds");
}

static void a_listener_hands_out_every_connection_until_it_is_cancelled(void **state)
{
	struct guest_rig *rig = *state;
	uint64_t port;

	ask(rig, G_LISTEN, 9, 0, ADDRESS_V4);
	port = expect_done(rig, 9);
	assert_in_range(port, 1, 65535);
	for (int i = 0; i < 3; i++) {
		int in = dial((uint16_t)port), out = expect_socket(rig, 9);

		expect_joined(in, out);
		expect_joined(out, in);
		(void)close(in);
		(void)close(out);
	}
	rig_raw(rig, G_CANCEL, 9, NULL, 0);
	expect_error(rig, 9, ECANCELED, "cancelled");
	ask(rig, G_CONNECT, 10, (uint16_t)port, ADDRESS_V4);
	expect_error(rig, 10, ECONNREFUSED, "nothing listens");
}

static void a_taken_port_cannot_be_listened_on_again(void **state)
{
	uint16_t port;
	int listener = listen_here(8, &port);

	ask(*state, G_LISTEN, 3, port, ADDRESS_V4);
	expect_error(*state, 3, EADDRINUSE, "port");
	(void)close(listener);
}

static void connections_on_their_way_and_listeners_are_counted(void **state)
{
	struct guest_rig *rig = *state;

	for (uint32_t id = 1; id <= 128; id++) {
		ask(rig, G_LISTEN, id, 0, ADDRESS_V4);
		assert_true(expect_done(rig, id) > 0);
	}
	ask(rig, G_LISTEN, 129, 0, ADDRESS_V4);
	expect_error(rig, 129, EAGAIN, "too many");
	rig_raw(rig, G_CANCEL, 77, NULL, 0);
	expect_error(rig, 77, ECANCELED, "cancelled");
	ask(rig, G_LISTEN, 129, 0, ADDRESS_V4);
	assert_true(expect_done(rig, 129) > 0);
}

/* The client reads nothing: the control socket holds some 280 of them, the listener's backlog the
 * others, and none is lost. */
static void a_full_control_socket_loses_no_connection(void **state)
{
	enum { COUNT = 320 };
	struct guest_rig *rig = *state;
	int in[COUNT], out[COUNT];
	uint64_t port;

	ask(rig, G_LISTEN, 1, 0, ADDRESS_V4);
	port = expect_done(rig, 1);
	for (int i = 0; i < COUNT; i++)
		in[i] = dial((uint16_t)port);
	for (int i = 0; i < COUNT; i++)
		out[i] = expect_socket(rig, 1);
	for (int i = 0; i < COUNT; i++) {
		(void)close(in[i]);
		(void)close(out[i]);
	}
}

static void a_lost_client_takes_its_listeners_along(void **state)
{
	static struct guest_rig rig;
	struct guest_ready ready;
	uint64_t port;

	(void)state;
	rig_start(&rig);
	rig_persist(&rig);
	ask(&rig, G_LISTEN, 4, 0, ADDRESS_V4);
	port = expect_done(&rig, 4);
	rig_hang_up(&rig);
	rig_connect(&rig, &ready);
	ask(&rig, G_CONNECT, 4, (uint16_t)port, ADDRESS_V4);
	expect_error(&rig, 4, ECONNREFUSED, "nothing listens");
	rig_end(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_connection_made_inside_comes_out_as_a_descriptor,
						start, stop),
		cmocka_unit_test_setup_teardown(a_port_without_a_listener_is_refused_in_words,
						start, stop),
		cmocka_unit_test_setup_teardown(values_out_of_bounds_are_refused_and_break_nothing,
						start, stop),
		cmocka_unit_test_setup_teardown(
			a_listener_hands_out_every_connection_until_it_is_cancelled, start, stop),
		cmocka_unit_test_setup_teardown(a_taken_port_cannot_be_listened_on_again, start,
						stop),
		cmocka_unit_test_setup_teardown(connections_on_their_way_and_listeners_are_counted,
						start, stop),
		cmocka_unit_test_setup_teardown(a_full_control_socket_loses_no_connection, start,
						stop),
		cmocka_unit_test(a_lost_client_takes_its_listeners_along),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
