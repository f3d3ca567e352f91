/* A socket of somebody else's on the loop: what is told of its end, and when all is sent. */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "check.h"
#include "loop/loop.h"
#include "net/sock.h"

struct rig {
	struct loop *loop;
	struct sock *sock;
	int peer;
	struct buf in;
	int ended; /* 1: not yet */
	unsigned ends, drains;
	size_t want; /* bytes of input that end the loop; 0: none do */
};

static void on_input(void *user, const char *data, size_t n)
{
	struct rig *g = user;

	assert_int_equal(g->ended, 1);
	assert_int_equal(buf_append(&g->in, data, n), 0);
	if (g->want > 0 && g->in.len >= g->want)
		loop_stop(g->loop);
}

static void on_drained(void *user)
{
	struct rig *g = user;

	g->drains++;
	loop_stop(g->loop);
}

static void on_ended(void *user, int r)
{
	struct rig *g = user;

	g->ended = r;
	g->ends++;
	loop_stop(g->loop);
}

/* Both ends of a TCP connection: a socket pair knows no reset. */
static void connect_pair(int pair[2])
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t size = sizeof(at);

	assert_int_equal(bind(listener, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &size), 0);
	pair[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(pair[0], (struct sockaddr *)&at, sizeof(at)), 0);
	pair[1] = accept(listener, NULL, NULL);
	assert_true(pair[1] >= 0);
	(void)close(listener);
}

static int setup(void **state)
{
	static const struct sock_ops ops = { on_input, on_drained, on_ended };
	struct rig *g = calloc(1, sizeof(*g));
	int pair[2];

	assert_non_null(g);
	connect_pair(pair);
	g->peer = pair[1];
	g->ended = 1;
	assert_int_equal(loop_create(&g->loop, NULL), 0);
	assert_int_equal(sock_create(g->loop, pair[0], (size_t)64 << 20, &ops, g, &g->sock), 0);
	*state = g;
	return 0;
}

static int teardown(void **state)
{
	struct rig *g = *state;

	(void)sock_free(g->sock);
	loop_run(g->loop);
	(void)loop_free(g->loop);
	(void)fd_close(g->peer);
	buf_done(&g->in);
	free(g);
	return 0;
}

static void peer_says(struct rig *g, const char *text)
{
	assert_int_equal(send(g->peer, text, strlen(text), 0), (ssize_t)strlen(text));
}

/* Closing with bytes unread is what resets a connection. */
static void reset_by_peer(struct rig *g)
{
	char byte;

	assert_int_equal(recv(g->peer, &byte, 1, MSG_PEEK), 1);
	g->peer = fd_close(g->peer);
}

static void an_answer_before_a_reset_is_told_before_it(void **state)
{
	struct rig *g = *state;

	assert_int_equal(sock_write(g->sock, "request", 7), 0);
	peer_says(g, "no more, please");
	reset_by_peer(g);
	/* The write finds out first. */
	(void)sock_write(g->sock, "body", 4);
	(void)sock_write(g->sock, "body", 4);
	loop_run(g->loop);
	assert_int_equal(g->ends, 1);
	assert_true(g->ended < 0);
	assert_string_equal(buf_str(&g->in), "no more, please");
}

static void a_break_is_told_at_once_while_nobody_takes_input(void **state)
{
	struct rig *g = *state;

	sock_pause(g->sock, true);
	assert_int_equal(sock_write(g->sock, "request", 7), 0);
	peer_says(g, "unread");
	reset_by_peer(g);
	(void)sock_write(g->sock, "body", 4);
	(void)sock_write(g->sock, "body", 4);
	loop_run(g->loop);
	assert_int_equal(g->ends, 1);
	assert_int_equal(g->in.len, 0);
}

static void the_peers_end_is_no_break(void **state)
{
	struct rig *g = *state;

	peer_says(g, "bye");
	assert_int_equal(shutdown(g->peer, SHUT_WR), 0);
	loop_run(g->loop);
	assert_int_equal(g->ended, 0);
	assert_string_equal(buf_str(&g->in), "bye");
	assert_int_equal(sock_write(g->sock, "still", 5), 0);
	assert_int_equal(sock_pending(g->sock), 0);
}

static void after_a_shutdown_it_is_told_when_all_is_sent(void **state)
{
	static char much[8u << 20];
	struct rig *g = *state;
	char bytes[65536];
	size_t got = 0;
	ssize_t n;

	assert_int_equal(sock_write(g->sock, much, sizeof(much)), 0);
	assert_true(sock_pending(g->sock) > 0);
	sock_shutdown(g->sock);
	assert_int_equal(sock_write(g->sock, "x", 1), -EPIPE);
	/* The peer takes a little and says so each time, until nothing waits here. */
	while (g->drains == 0) {
		n = recv(g->peer, bytes, sizeof(bytes), 0);
		assert_true(n > 0);
		got += (size_t)n;
		peer_says(g, ".");
		g->want = g->in.len + 1;
		loop_run(g->loop);
	}
	assert_int_equal(g->drains, 1);
	assert_int_equal(sock_pending(g->sock), 0);
	while ((n = recv(g->peer, bytes, sizeof(bytes), 0)) > 0)
		got += (size_t)n;
	assert_int_equal(n, 0);
	assert_int_equal(got, sizeof(much));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(an_answer_before_a_reset_is_told_before_it, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_break_is_told_at_once_while_nobody_takes_input,
						setup, teardown),
		cmocka_unit_test_setup_teardown(the_peers_end_is_no_break, setup, teardown),
		cmocka_unit_test_setup_teardown(after_a_shutdown_it_is_told_when_all_is_sent, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
