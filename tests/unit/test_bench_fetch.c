#include "cli/bench_fetch.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "check.h"
#include "cli/bench_daemon.h"

static int collect(void *user, const void *data, size_t n)
{
	return buf_append(user, data, n);
}

static int refuse(void *user, const void *data, size_t n)
{
	(void)user;
	(void)data;
	(void)n;
	return -EPIPE;
}

#define LENGTH "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\ncontent-length: 5\r\n\r\nhello"
#define CHUNKS                                                       \
	"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n" \
	"3\r\nhel\r\nA;x=y\r\nlo, world!\r\n0\r\nTrailer: x\r\n\r\n"

static void feed_by(const char *text, size_t step, struct fetch_answer *a, struct buf *body)
{
	size_t len = strlen(text);

	for (size_t i = 0; i < len; i += step) {
		size_t part = len - i < step ? len - i : step;

		assert_int_not_equal(a->state, FETCH_DONE);
		assert_int_equal(fetch_feed(a, text + i, part, collect, body), part);
	}
	assert_int_equal(a->state, FETCH_DONE);
}

static void an_answer_may_come_in_pieces_of_any_size(void **state)
{
	(void)state;
	for (size_t step = 1; step < 90; step++) {
		struct fetch_answer a = { 0 }, c = { 0 };
		struct buf body = { 0 };

		feed_by(LENGTH, step, &a, &body);
		assert_int_equal(a.status, 200);
		assert_string_equal(buf_str(&body), "hello");
		buf_clear(&body);
		feed_by(CHUNKS, step, &c, &body);
		assert_int_equal(c.status, 201);
		assert_string_equal(buf_str(&body), "hello, world!");
		buf_done(&body);
	}
}

static void one_header_is_kept(void **state)
{
	static const char text[] =
		"HTTP/1.1 200 OK\r\nMcp-Session: no\r\nmcp-session-id:  abc-1\r\n"
		"Content-Length: 0\r\n\r\n";
	static const char head[] = "HTTP/1.1 200 OK\r\nMcp-Session-Id: ";
	struct fetch_answer a = { .keep = "Mcp-Session-Id" }, b = { .keep = "Mcp-Session-Id" };
	struct buf body = { 0 }, wide = { 0 };

	(void)state;
	feed_by(text, 7, &a, &body);
	assert_string_equal(a.kept, "abc-1");
	buf_done(&body);
	assert_int_equal(buf_puts(&wide, head), 0);
	for (size_t i = 0; i < FETCH_KEPT_MAX; i++)
		assert_int_equal(buf_putc(&wide, 'x'), 0);
	assert_int_equal(buf_puts(&wide, "\r\n"), 0);
	assert_true(fetch_feed(&b, wide.data, wide.len, NULL, NULL) < 0);
	buf_done(&wide);
}

static void what_follows_an_answer_is_left(void **state)
{
	struct fetch_answer a = { 0 };

	(void)state;
	assert_int_equal(fetch_feed(&a, LENGTH "HTTP", strlen(LENGTH) + 4, NULL, NULL),
			 strlen(LENGTH));
	assert_int_equal(a.state, FETCH_DONE);
}

static void an_answer_without_a_body_ends_with_its_head(void **state)
{
	static const char *const heads[] = {
		"HTTP/1.1 204 No Content\r\n\r\n",
		"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
	};

	(void)state;
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		struct fetch_answer a = { 0 };

		assert_int_equal(fetch_feed(&a, heads[i], strlen(heads[i]), refuse, NULL),
				 strlen(heads[i]));
		assert_int_equal(a.state, FETCH_DONE);
	}
}

static void what_is_no_answer_is_refused(void **state)
{
	static const char *const bad[] = {
		"SSH-2.0-x\r\n",
		"HTTP/1.1 abc\r\n",
		"HTTP/1.1 200 OK\r\nno colon\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\naXX\r\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct fetch_answer a = { 0 };

		assert_int_equal(fetch_feed(&a, bad[i], strlen(bad[i]), NULL, NULL), -EPROTO);
	}
}

static void a_line_without_an_end_is_refused(void **state)
{
	struct fetch_answer a = { 0 };
	char x[FETCH_LINE_MAX - 1];

	(void)state;
	memset(x, 'x', sizeof(x));
	assert_int_equal(fetch_feed(&a, x, sizeof(x), NULL, NULL), sizeof(x));
	assert_int_equal(fetch_feed(&a, x, 1, NULL, NULL), -E2BIG);
}

static void the_readers_failure_is_passed_on(void **state)
{
	struct fetch_answer a = { 0 };

	(void)state;
	assert_int_equal(fetch_feed(&a, LENGTH, strlen(LENGTH), refuse, NULL), -EPIPE);
}

static void a_process_is_weighed(void **state)
{
	uint64_t before, after, rss = 0, until = clock_now_ms() + 30;
	int first = -1, other = -1;

	(void)state;
	assert_int_equal(bench_rss(getpid(), &rss), 0);
	assert_in_range(rss, 1 << 16, 1ull << 40);
	assert_int_equal(bench_cpu_ns(getpid(), &before), 0);
	while (clock_now_ms() < until)
		;
	assert_int_equal(bench_cpu_ns(getpid(), &after), 0);
	assert_true(after > before);
	assert_int_equal(bench_cpus(&first, &other), 0);
	assert_true(first >= 0 && other >= first);
	assert_int_equal(bench_rss(0x7fffffff, &rss), -ESRCH);
}

static void a_child_is_found_by_its_name(void **state)
{
	pid_t child, found = 0;

	(void)state;
	(void)prctl(PR_SET_NAME, "named", 0, 0, 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		(void)pause();
		_exit(0);
	}
	assert_int_equal(bench_child(getpid(), NULL, &found), 0);
	assert_int_equal(found, child);
	assert_int_equal(bench_child(getpid(), "named", &found), 0);
	assert_int_equal(found, child);
	assert_int_equal(bench_child(getpid(), "another", &found), -ESRCH);
	(void)kill(child, SIGKILL);
	(void)waitpid(child, NULL, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_answer_may_come_in_pieces_of_any_size),
		cmocka_unit_test(one_header_is_kept),
		cmocka_unit_test(what_follows_an_answer_is_left),
		cmocka_unit_test(an_answer_without_a_body_ends_with_its_head),
		cmocka_unit_test(what_is_no_answer_is_refused),
		cmocka_unit_test(a_line_without_an_end_is_refused),
		cmocka_unit_test(the_readers_failure_is_passed_on),
		cmocka_unit_test(a_process_is_weighed),
		cmocka_unit_test(a_child_is_found_by_its_name),
	};

	return cmocka_run_group_tests_name("bench_fetch", tests, NULL, NULL);
}
