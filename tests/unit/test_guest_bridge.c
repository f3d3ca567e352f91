/* The box's Unix socket: what programs connect to comes out as a TCP connection, carried by a
 * process of its own. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "check.h"
#include "guest/bridge.h"
#include "guest_rig.h"

struct world {
	struct guest_rig rig;
	char dir[64], path[96];
};

static void make_place(struct world *w)
{
	(void)snprintf(w->dir, sizeof(w->dir), "/tmp/bridge-XXXXXX");
	assert_non_null(mkdtemp(w->dir));
	assert_int_equal(chmod(w->dir, 0777), 0); /* the box's user is another */
	(void)snprintf(w->path, sizeof(w->path), "%s/in/tools.sock", w->dir);
}

static void drop_place(struct world *w)
{
	char in[80];

	(void)snprintf(in, sizeof(in), "%s/in", w->dir);
	(void)unlink(w->path);
	(void)rmdir(in);
	(void)rmdir(w->dir);
}

static int start(void **state)
{
	static struct world w;

	make_place(&w);
	rig_start(&w.rig);
	*state = &w;
	return 0;
}

static int stop(void **state)
{
	struct world *w = *state;

	rig_stop(&w->rig, 0);
	drop_place(w);
	return 0;
}

static void ask(struct guest_rig *rig, uint16_t type, uint32_t id, uint16_t port, const char *path)
{
	struct guest_connect c = { .port = port, .address = ADDRESS_UNIX, .path = path };
	uint8_t frame[512];
	long n = guest_put_connect(frame, sizeof(frame), type, id, &c);

	assert_true(n > 0);
	assert_int_equal(fd_send(rig->sock, frame, (size_t)n, NULL, 0), n);
}

static int hear(struct guest_rig *rig, struct wire_head *head, struct rd *payload)
{
	struct pollfd p = { .fd = rig->sock, .events = POLLIN };
	size_t n_fds = 1;
	int fd = -1;
	ssize_t n;

	assert_int_equal(poll(&p, 1, 30000), 1);
	n = fd_recv(rig->sock, rig->frame, sizeof(rig->frame), &fd, &n_fds);
	assert_true(n > 0);
	assert_int_equal(wire_open(rig->frame, (size_t)n, head, payload), 0);
	return n_fds == 1 ? fd : -1;
}

static void expect_done(struct guest_rig *rig, uint32_t id)
{
	struct wire_head head;
	struct rd payload;

	assert_int_equal(hear(rig, &head, &payload), -1);
	assert_int_equal(head.type, G_DONE);
	assert_int_equal(head.id, id);
}

static void expect_error(struct guest_rig *rig, uint32_t id, uint32_t code)
{
	struct wire_head head;
	struct rd payload;

	assert_int_equal(hear(rig, &head, &payload), -1);
	assert_int_equal(head.type, G_ERROR);
	assert_int_equal(head.id, id);
	assert_int_equal(rd_u32(&payload), code);
}

static int expect_socket(struct guest_rig *rig, uint32_t id)
{
	struct wire_head head;
	struct rd payload;
	int fd = hear(rig, &head, &payload);

	assert_int_equal(head.type, G_SOCKET);
	assert_int_equal(head.id, id);
	assert_true(fd >= 0);
	assert_int_equal(fd_nonblock(fd, false), 0);
	return fd;
}

static int dial(const struct world *w)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)snprintf(a.sun_path, sizeof(a.sun_path), "%s", w->path);
	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

static void expect_joined(int a, int b)
{
	char got[4] = "";

	assert_int_equal(send(a, "abc", 3, MSG_NOSIGNAL), 3);
	assert_int_equal(fd_read_all(b, got, 3), 3);
	assert_string_equal(got, "abc");
}

static void what_is_connected_to_the_socket_comes_out_as_tcp(void **state)
{
	struct world *w = *state;
	socklen_t size = sizeof(int);
	int domain = 0;
	struct stat st;

	ask(&w->rig, G_LISTEN, 7, 0, w->path);
	expect_done(&w->rig, 7);
	assert_int_equal(stat(w->path, &st), 0);
	assert_int_equal(st.st_mode, S_IFSOCK | 0600);
	assert_int_equal(st.st_uid, getuid() == 0 ? 1000 : getuid());
	for (int i = 0; i < 3; i++) {
		int in = dial(w), out = expect_socket(&w->rig, 7);

		assert_int_equal(getsockopt(out, SOL_SOCKET, SO_DOMAIN, &domain, &size), 0);
		assert_int_equal(domain, AF_INET);
		expect_joined(in, out);
		expect_joined(out, in);
		(void)close(in);
		(void)close(out);
	}
	rig_raw(&w->rig, G_CANCEL, 7, NULL, 0);
	expect_error(&w->rig, 7, ECANCELED);
}

static void a_program_that_says_it_is_done_still_hears_the_answer(void **state)
{
	struct world *w = *state;
	char got[8] = "";
	int in, out;

	ask(&w->rig, G_LISTEN, 7, 0, w->path);
	expect_done(&w->rig, 7);
	in = dial(w);
	out = expect_socket(&w->rig, 7);
	assert_int_equal(send(in, "ask", 3, MSG_NOSIGNAL), 3);
	assert_int_equal(shutdown(in, SHUT_WR), 0);
	assert_int_equal(fd_read_all(out, got, sizeof(got)), 3);
	assert_int_equal(send(out, "answer", 6, MSG_NOSIGNAL), 6);
	(void)close(out);
	assert_int_equal(fd_read_all(in, got, sizeof(got)), 6);
	(void)close(in);
}

static void a_program_that_is_gone_resets_the_connection(void **state)
{
	struct world *w = *state;
	char got[8] = "";
	int in, out;

	ask(&w->rig, G_LISTEN, 7, 0, w->path);
	expect_done(&w->rig, 7);
	in = dial(w);
	out = expect_socket(&w->rig, 7);
	expect_joined(in, out);
	(void)close(in);
	/* An end of file may come first, of what it does not send any more. */
	while (fd_read_all(out, got, sizeof(got)) == 0 && send(out, "x", 1, MSG_NOSIGNAL) == 1)
		;
	assert_true(send(out, "x", 1, MSG_NOSIGNAL) < 0);
	(void)close(out);
}

/* Sends a connection along whose end takes an hour to close, and is gone: a process that ends does
 * not wait for it. */
static void send_slow(const struct world *w, int full)
{
	pid_t pid = fork();
	int status = -1;

	if (pid == 0)
		_exit(fd_send(dial(w), "x", 1, &full, 1) == 1 ? 0 : 1);
	(void)close(full);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* One end that is full and lingers; the other is the caller's. */
static int make_slow(int *ret_other)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct linger slow = { 1, 3600 };
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int full = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t n = sizeof(a);
	static char much[65536];

	assert_int_equal(bind(listener, (struct sockaddr *)&a, n), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&a, &n), 0);
	assert_int_equal(connect(full, (struct sockaddr *)&a, n), 0);
	*ret_other = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	assert_int_equal(setsockopt(full, SOL_SOCKET, SO_LINGER, &slow, sizeof(slow)), 0);
	while (send(full, much, sizeof(much), MSG_NOSIGNAL | MSG_DONTWAIT) > 0)
		;
	(void)close(listener);
	return full;
}

/* Whoever drops it last is held for an hour: a process that nobody waits for. */
static void descriptors_that_are_sent_along_stop_nobody(void **state)
{
	struct world *w = *state;
	int in, out, other = -1, full = make_slow(&other);

	/* While nobody listens it waits in the line, so that he who sent it is gone before. */
	ask(&w->rig, G_LISTEN, 7, 0, w->path);
	expect_done(&w->rig, 7);
	rig_raw(&w->rig, G_CANCEL, 7, NULL, 0);
	expect_error(&w->rig, 7, ECANCELED);
	send_slow(w, full);
	ask(&w->rig, G_LISTEN, 8, 0, w->path);
	expect_done(&w->rig, 8);
	(void)close(expect_socket(&w->rig, 8));
	in = dial(w);
	out = expect_socket(&w->rig, 8);
	expect_joined(in, out);
	(void)close(in);
	(void)close(out);
	(void)close(other); /* what was to be waited for ends here */
}

static void more_connections_than_there_may_be_wait_and_none_is_lost(void **state)
{
	enum { COUNT = BRIDGE_MAX + 16 };
	struct world *w = *state;
	int in[COUNT], out[COUNT];

	ask(&w->rig, G_LISTEN, 7, 0, w->path);
	expect_done(&w->rig, 7);
	for (int i = 0; i < COUNT; i++)
		in[i] = dial(w);
	for (int i = 0; i < BRIDGE_MAX; i++)
		out[i] = expect_socket(&w->rig, 7);
	assert_true(rig_is_quiet(&w->rig, 300));
	for (int i = 0; i < BRIDGE_MAX; i++) {
		(void)close(in[i]);
		(void)close(out[i]);
	}
	for (int i = BRIDGE_MAX; i < COUNT; i++) {
		out[i] = expect_socket(&w->rig, 7);
		expect_joined(out[i], in[i]);
	}
	for (int i = BRIDGE_MAX; i < COUNT; i++) {
		(void)close(in[i]);
		(void)close(out[i]);
	}
}

static void a_box_has_one_socket_and_it_is_at_a_whole_path(void **state)
{
	struct world *w = *state;
	char longer[200];

	ask(&w->rig, G_CONNECT, 1, 0, w->path);
	expect_error(&w->rig, 1, EINVAL);
	ask(&w->rig, G_LISTEN, 1, 80, w->path);
	expect_error(&w->rig, 1, EINVAL);
	ask(&w->rig, G_LISTEN, 1, 0, "tools.sock");
	expect_error(&w->rig, 1, EINVAL);
	memset(longer, 'a', sizeof(longer) - 1);
	longer[0] = '/';
	longer[sizeof(longer) - 1] = '\0';
	ask(&w->rig, G_LISTEN, 1, 0, longer);
	expect_error(&w->rig, 1, ENAMETOOLONG);
	ask(&w->rig, G_LISTEN, 1, 0, "/no/such/place/tools.sock");
	expect_error(&w->rig, 1, ENOENT);
	ask(&w->rig, G_LISTEN, 1, 0, w->path);
	expect_done(&w->rig, 1);
	ask(&w->rig, G_LISTEN, 2, 0, w->path);
	expect_error(&w->rig, 2, EBUSY);
}

static void the_next_client_finds_the_socket_again(void **state)
{
	static struct world w;
	struct guest_ready ready;
	int in, out;

	(void)state;
	make_place(&w);
	rig_start(&w.rig);
	rig_persist(&w.rig);
	ask(&w.rig, G_LISTEN, 4, 0, w.path);
	expect_done(&w.rig, 4);
	rig_hang_up(&w.rig);
	rig_connect(&w.rig, &ready);
	in = dial(&w); /* waits until somebody listens again */
	ask(&w.rig, G_LISTEN, 9, 0, w.path);
	expect_done(&w.rig, 9);
	out = expect_socket(&w.rig, 9);
	expect_joined(in, out);
	(void)close(in);
	(void)close(out);
	rig_end(&w.rig);
	drop_place(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_is_connected_to_the_socket_comes_out_as_tcp,
						start, stop),
		cmocka_unit_test_setup_teardown(
			a_program_that_says_it_is_done_still_hears_the_answer, start, stop),
		cmocka_unit_test_setup_teardown(a_program_that_is_gone_resets_the_connection, start,
						stop),
		cmocka_unit_test_setup_teardown(descriptors_that_are_sent_along_stop_nobody, start,
						stop),
		cmocka_unit_test_setup_teardown(
			more_connections_than_there_may_be_wait_and_none_is_lost, start, stop),
		cmocka_unit_test_setup_teardown(a_box_has_one_socket_and_it_is_at_a_whole_path,
						start, stop),
		cmocka_unit_test(the_next_client_finds_the_socket_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
