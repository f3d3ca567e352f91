/* Connections that a box hands out: what the client takes, and what it does not believe. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "check.h"
#include "client_rig.h"
#include "provider/guest_client.h"

struct got {
	int sockets, done, failed, code;
	uint64_t count;
};

static void on_socket(void *user, int fd)
{
	struct got *g = user;

	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	(void)close(fd);
	g->sockets++;
}

static void on_done(void *user, uint64_t count)
{
	struct got *g = user;

	g->done++;
	g->count = count;
}

static void on_failed(void *user, int code, const char *text)
{
	struct got *g = user;

	(void)text;
	g->failed++;
	g->code = code;
}

static const struct guest_callbacks callbacks = { .socket = on_socket,
						  .done = on_done,
						  .failed = on_failed };

static const struct guest_connect port_80 = { .port = 80 };

static void say_socket(struct client_rig *rig, uint32_t id, int fd)
{
	uint8_t frame[32];
	long n = guest_put_raw(frame, sizeof(frame), G_SOCKET, id, NULL, 0);

	assert_int_equal(fd_send(rig->guest, frame, (size_t)n, &fd, fd >= 0), n);
}

/* Both ends of a TCP connection. */
static void make_pair(int pair[2])
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t n = sizeof(a);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(listener, (struct sockaddr *)&a, n), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&a, &n), 0);
	pair[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(pair[0], (struct sockaddr *)&a, n), 0);
	pair[1] = accept(listener, NULL, NULL);
	assert_true(pair[1] >= 0);
	(void)close(listener);
}

static void a_connection_comes_out_once_and_then_it_is_done(void **state)
{
	struct client_rig *rig = *state;
	struct got g = { 0 };
	struct err err = { 0 };
	uint32_t id;
	int pair[2];

	make_pair(pair);
	assert_int_equal(guest_connect(rig->client, &port_80, &callbacks, &g, &id, &err), 0);
	rig_expect(rig, G_CONNECT, id);
	say_socket(rig, id, pair[0]);
	rig_say_u64(rig, G_DONE, id, 0);
	assert_int_equal(guest_dispatch(rig->client), 0);
	assert_int_equal(g.sockets, 1);
	assert_int_equal(g.done, 1);
	assert_int_equal(g.failed, 0);
	(void)close(pair[0]);
	(void)close(pair[1]);
}

static void a_listener_tells_its_port_and_many_connections(void **state)
{
	struct client_rig *rig = *state;
	struct got g = { 0 };
	struct err err = { 0 };
	uint32_t id;
	int pair[2];

	make_pair(pair);
	assert_int_equal(
		guest_listen(rig->client, &(struct guest_connect){ 0 }, &callbacks, &g, &id, &err),
		0);
	rig_expect(rig, G_LISTEN, id);
	rig_say_u64(rig, G_DONE, id, 4711);
	say_socket(rig, id, pair[0]);
	say_socket(rig, id, pair[1]);
	assert_int_equal(guest_dispatch(rig->client), 0);
	assert_int_equal(g.count, 4711);
	assert_int_equal(g.sockets, 2);
	rig_say_error(rig, id, ECANCELED, "cancelled");
	assert_int_equal(guest_dispatch(rig->client), 0);
	assert_int_equal(g.failed, 1);
	(void)close(pair[0]);
	(void)close(pair[1]);
}

static void refuse_fd(struct client_rig *rig, int fd)
{
	struct got g = { 0 };
	struct err err = { 0 };
	uint32_t id;

	assert_int_equal(guest_connect(rig->client, &port_80, &callbacks, &g, &id, &err), 0);
	say_socket(rig, id, fd);
	assert_int_equal(guest_dispatch(rig->client), -EPROTO);
	assert_int_equal(g.sockets, 0);
	assert_int_equal(g.failed, 1);
	(void)fd_close(fd);
}

static void a_file_is_no_connection(void **state)
{
	refuse_fd(*state, open("/dev/null", O_RDWR | O_CLOEXEC));
}

static void a_unix_socket_is_no_connection(void **state)
{
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	refuse_fd(*state, pair[0]);
	(void)close(pair[1]);
}

static void a_datagram_socket_is_no_connection(void **state)
{
	refuse_fd(*state, socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
}

static void a_listening_socket_is_no_connection(void **state)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(listen(fd, 1), 0);
	refuse_fd(*state, fd);
}

static void no_descriptor_is_no_connection(void **state)
{
	refuse_fd(*state, -1);
}

static void a_socket_that_is_connected_to_nothing_is_dropped(void **state)
{
	struct client_rig *rig = *state;
	struct got g = { 0 };
	struct err err = { 0 };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	uint32_t id;

	assert_int_equal(guest_connect(rig->client, &port_80, &callbacks, &g, &id, &err), 0);
	say_socket(rig, id, fd);
	rig_say_u64(rig, G_DONE, id, 0);
	assert_int_equal(guest_dispatch(rig->client), 0);
	assert_int_equal(g.sockets, 0);
	assert_int_equal(g.done, 1);
	(void)close(fd);
}

static void a_second_connection_for_one_question_is_a_lie(void **state)
{
	struct client_rig *rig = *state;
	struct got g = { 0 };
	struct err err = { 0 };
	uint32_t id;
	int pair[2];

	make_pair(pair);
	assert_int_equal(guest_connect(rig->client, &port_80, &callbacks, &g, &id, &err), 0);
	say_socket(rig, id, pair[0]);
	say_socket(rig, id, pair[1]);
	assert_int_equal(guest_dispatch(rig->client), -EPROTO);
	assert_int_equal(g.sockets, 1);
	(void)close(pair[0]);
	(void)close(pair[1]);
}

static void done_without_a_connection_is_a_lie(void **state)
{
	struct client_rig *rig = *state;
	struct got g = { 0 };
	struct err err = { 0 };
	uint32_t id;

	assert_int_equal(guest_connect(rig->client, &port_80, &callbacks, &g, &id, &err), 0);
	rig_say_u64(rig, G_DONE, id, 0);
	assert_int_equal(guest_dispatch(rig->client), -EPROTO);
	assert_int_equal(g.failed, 1);
}

static void a_descriptor_with_any_other_frame_is_closed(void **state)
{
	struct client_rig *rig = *state;
	struct seen s = { 0 };
	uint32_t id = rig_start(rig, &s);
	uint8_t frame[32];
	int pair[2], n;
	char byte;
	long size = guest_put_u64(frame, sizeof(frame), G_TAKEN, id, 0);

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(fd_send(rig->guest, frame, (size_t)size, &pair[0], 1), size);
	(void)close(pair[0]);
	assert_int_equal(guest_dispatch(rig->client), 0);
	n = (int)recv(pair[1], &byte, 1, MSG_DONTWAIT);
	assert_int_equal(n, 0); /* nobody holds the other end */
	(void)close(pair[1]);
	seen_done(&s);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
	const struct CMUnitTest tests[] = {
		T(a_connection_comes_out_once_and_then_it_is_done),
		T(a_listener_tells_its_port_and_many_connections),
		T(a_file_is_no_connection),
		T(a_unix_socket_is_no_connection),
		T(a_datagram_socket_is_no_connection),
		T(a_listening_socket_is_no_connection),
		T(no_descriptor_is_no_connection),
		T(a_socket_that_is_connected_to_nothing_is_dropped),
		T(a_second_connection_for_one_question_is_a_lie),
		T(done_without_a_connection_is_a_lie),
		T(a_descriptor_with_any_other_frame_is_closed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
