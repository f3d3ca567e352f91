/* A connection of a program in a box, which may send anything: what it costs. */
#include "check.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "config/config.h"
#include "tools/bridge_impl.h"

#define PING "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n"
#define PONG "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n"

struct world {
	struct config config;
	struct bridges all;
	struct bridge b;
	int peer; /* the program's end */
};

static int make_world(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	struct err err = { 0 };
	int ends[2];

	assert_non_null(w);
	w->config.mcp_box_calls = 1000;
	w->config.mcp_box_bytes = 1u << 30;
	w->all.deps.config = &w->config;
	assert_int_equal(loop_create(&w->all.deps.loop, &err), 0);
	w->b.all = &w->all;
	list_init(&w->b.conns);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends),
			 0);
	w->peer = ends[0];
	bridge_conn_open(&w->b, ends[1]);
	assert_int_equal(w->b.n_conns, 1);
	*state = w;
	return 0;
}

static int end_world(void **state)
{
	struct world *w = *state;

	LIST_FOREACH (&w->b.conns, c, struct bridge_conn, node)
		bridge_conn_close(c);
	assert_int_equal(w->b.waiting, 0);
	assert_int_equal(w->b.out, 0);
	(void)fd_close(w->peer);
	(void)loop_free(w->all.deps.loop);
	free(w);
	return 0;
}

static struct bridge_conn *conn_of(const struct world *w)
{
	return LIST_ENTRY(w->b.conns.next, struct bridge_conn, node);
}

static void stop(void *user)
{
	loop_stop(user);
}

static void turn(const struct world *w)
{
	struct loop_task task;

	loop_task_init(&task, stop, w->all.deps.loop);
	loop_task_post(w->all.deps.loop, &task);
	loop_run(w->all.deps.loop);
}

static void send_all(const struct world *w, const char *data, size_t n)
{
	while (n > 0) {
		ssize_t sent = send(w->peer, data, n, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (sent > 0) {
			data += sent;
			n -= (size_t)sent;
		}
		turn(w);
	}
}

/* The next answer, which is expected to be this. */
static void expect(const struct world *w, const char *text)
{
	char got[512];
	size_t n = 0;

	while (n < strlen(text)) {
		ssize_t more = recv(w->peer, got + n, strlen(text) - n, MSG_DONTWAIT);

		n += more > 0 ? (size_t)more : 0;
		if (n < strlen(text))
			turn(w);
	}
	assert_memory_equal(got, text, n);
}

static double cpu_seconds(void)
{
	struct timespec t;

	assert_int_equal(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t), 0);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Each moved all that stood behind it: seconds for what takes milliseconds. */
static void lines_with_nothing_in_them_cost_next_to_nothing(void **state)
{
	static char lines[8u << 20];
	struct world *w = *state;
	double begun = cpu_seconds();

	memset(lines, '\n', sizeof(lines));
	send_all(w, lines, sizeof(lines));
	send_all(w, PING, strlen(PING));
	expect(w, PONG);
	assert_true(cpu_seconds() - begun < 2.0);
}

static void what_a_long_line_took_is_given_back(void **state)
{
	static char lines[3u << 20];
	struct world *w = *state;

	memset(lines, ' ', sizeof(lines));
	memcpy(lines, PING, strlen(PING) - 1);
	lines[sizeof(lines) - 2] = '\n';
	lines[sizeof(lines) - 1] = ' '; /* of the next one */
	send_all(w, lines, sizeof(lines));
	expect(w, PONG);
	while (w->b.waiting != 1)
		turn(w);
	assert_true(conn_of(w)->in.cap < 256u << 10);
	send_all(w, PING PING, 2 * strlen(PING));
	expect(w, PONG PONG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(lines_with_nothing_in_them_cost_next_to_nothing,
						make_world, end_world),
		cmocka_unit_test_setup_teardown(what_a_long_line_took_is_given_back, make_world,
						end_world),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
