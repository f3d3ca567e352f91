/* The server over real sockets: answers, and clients that leave. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/id.h"
#include "base/str.h"
#include "check.h"
#include "loop/loop.h"
#include "serve_rig.h"

static void an_answer_in_pieces_is_chunked(void **state)
{
	struct serve_rig *t = *state;

	net_client_puts(&t->c, "GET /answer HTTP/1.1\r\n" H "\r\n");
	net_client_until(&t->c, "\r\n0\r\n\r\n");
	assert_true(net_client_has(&t->c, "Transfer-Encoding: chunked\r\n"));
	assert_string_equal(serve_body_of(buf_str(&t->c.got)),
			    "6\r\nhello \r\n5\r\nworld\r\n0\r\n\r\n");
	assert_int_equal(t->bytes, 11);
	assert_string_equal(
		serve_body_of(net_client_ask(&t->c, "GET /answer-sized HTTP/1.1\r\n" H "\r\n")),
		"hello world");
	assert_false(net_client_has(&t->c, "chunked"));
}

static void a_head_request_gets_the_head_only(void **state)
{
	struct serve_rig *t = *state;

	net_client_puts(&t->c, "HEAD /x HTTP/1.1\r\n" H "\r\nHEAD /answer HTTP/1.1\r\n" H "\r\n"
			       "HEAD /answer-sized HTTP/1.1\r\n" H "\r\nGET /204 HTTP/1.1\r\n" H
			       "\r\nGET /end HTTP/1.1\r\n" H "\r\n");
	net_client_until(&t->c, "GET|/end|");
	assert_false(net_client_has(&t->c, "HEAD|/x|"));
	assert_false(net_client_has(&t->c, "hello"));
	assert_true(net_client_has(&t->c, "Content-Length: 11\r\n"));
	assert_int_equal(net_client_count(&t->c, "\r\n\r\nHTTP/1.1 "), 4);
	assert_true(net_client_has(&t->c, "HTTP/1.1 204 No Content\r\n"));
	assert_int_equal(net_client_count(&t->c, "Content-Length: "), 3);
}

static void a_client_may_close_after_one(void **state)
{
	struct serve_rig *t = *state;

	net_client_puts(&t->c, "GET /x HTTP/1.1\r\n" H "Connection: close\r\n\r\n");
	net_client_until_closed(&t->c);
	assert_true(net_client_has(&t->c, "Connection: close\r\n"));
	assert_true(net_client_has(&t->c, "GET|/x|"));
}

static void headers_cannot_be_split(void **state)
{
	struct serve_rig *t = *state;
	const char *a = net_client_ask(&t->c, "GET /header HTTP/1.1\r\n" H "\r\n");

	assert_memory_equal(a, "HTTP/1.1 201 Created\r\n", 22);
	assert_non_null(strstr(a, "\r\nX-Good: yes, \xc3\xa4\r\n"));
	assert_null(strstr(a, "Set-Cookie"));
	assert_null(strstr(a, "X-Split"));
	assert_null(strstr(a, "Bad"));
	/* And are not there the next time. */
	assert_null(strstr(net_client_ask(&t->c, "GET /x HTTP/1.1\r\n" H "\r\n"), "X-Good"));
}

static void errors_are_json(void **state)
{
	struct serve_rig *t = *state;
	const char *a = net_client_ask(&t->c, "GET /error HTTP/1.1\r\n" H "\r\n");

	assert_memory_equal(a, "HTTP/1.1 409 Conflict\r\n", 23);
	assert_non_null(strstr(a, "Content-Type: application/json\r\n"));
	assert_string_equal(serve_body_of(a), "{\"error\":{\"code\":\"conflict\",\"message\":\"a "
					      "\\\"name\\\" is\\ntaken\",\"details\":null}}");
}

static void a_well_formed_id_of_the_client_comes_back_beside_ours(void **state)
{
	struct serve_rig *t = *state;
	const char *a;

	a = net_client_ask(&t->c, "GET / HTTP/1.1\r\n" H "X-Request-Id: Ab-1_2:3.x\r\n\r\n");
	assert_non_null(strstr(a, "\r\nX-Client-Request-Id: Ab-1_2:3.x\r\n"));
	assert_null(strstr(a, "\r\nX-Request-Id: Ab"));
	a = net_client_ask(&t->c, "GET / HTTP/1.1\r\n" H "X-Request-Id: a b\r\n\r\n");
	assert_null(strstr(a, "X-Client"));
}

static void a_bad_request_is_told_why_and_closed(void **state)
{
	struct serve_rig *t = *state;

	net_client_puts(&t->c,
			"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\nGET / HTTP/1.1\r\n" H "\r\n");
	net_client_until_closed(&t->c);
	assert_memory_equal(buf_str(&t->c.got), "HTTP/1.1 400 ", 13);
	assert_true(net_client_has(&t->c, "Connection: close\r\n"));
	assert_true(net_client_has(&t->c, "\"code\":\"invalid_request\""));
	assert_int_equal(net_client_count(&t->c, "HTTP/1.1"), 1);
	assert_int_equal(t->handled, 0);
	assert_int_equal(t->reports, 1);
	assert_int_equal(t->status, 400);
}

static void a_client_that_leaves_while_it_is_served_is_noticed(void **state)
{
	struct serve_rig *t = *state;

	net_client_puts(&t->c, "GET /keep HTTP/1.1\r\n" H "\r\n");
	net_rig_run_ms(&t->g, 20);
	assert_non_null(t->kept);
	net_client_close(&t->c);
	net_rig_until(&t->g, &t->gone);
	assert_int_equal(t->status, 499);
	assert_int_equal(t->reports, 1);
	net_client_open(&t->c, &t->g);
}

static void a_client_that_leaves_in_the_answer_is_noticed(void **state)
{
	struct serve_rig *t = *state;

	net_client_puts(&t->c, "GET /keep HTTP/1.1\r\n" H "\r\n");
	net_rig_run_ms(&t->g, 20);
	http_begin(t->kept, 200, "text/plain", -1);
	assert_true(http_write(t->kept, "x", 1) > 0);
	net_client_until(&t->c, "x");
	net_client_close(&t->c);
	net_rig_until(&t->g, &t->gone);
	assert_int_equal(t->status, 200); /* that is what was sent */
	net_client_open(&t->c, &t->g);
}

static void a_request_nobody_watches_stays_until_it_is_answered(void **state)
{
	struct serve_rig *t = *state;

	net_client_puts(&t->c, "GET /forget HTTP/1.1\r\n" H "\r\n");
	net_rig_run_ms(&t->g, 20);
	net_client_close(&t->c);
	net_rig_run_ms(&t->g, 50);
	assert_int_equal(http_server_connections(t->g.server), 0);
	assert_int_equal(t->status, 499);
	assert_string_equal(http_path(t->kept), "/forget");
	assert_int_equal(http_header_add(t->kept, "X", "y"), 0);
	http_begin(t->kept, 200, "text/plain", -1);
	assert_int_equal(http_write(t->kept, "x", 1), -EPIPE);
	http_end(t->kept);
	net_rig_run_ms(&t->g, 20);
	assert_int_equal(t->reports, 1);
	net_client_open(&t->c, &t->g);
}

static void who_watches_too_late_is_told_too(void **state)
{
	struct serve_rig *t = *state;

	net_client_puts(&t->c, "GET /forget HTTP/1.1\r\n" H "\r\n");
	net_rig_run_ms(&t->g, 20);
	net_client_close(&t->c);
	net_rig_run_ms(&t->g, 50);
	http_on_gone(t->kept, serve_gone, t);
	assert_false(t->gone);
	net_rig_until(&t->g, &t->gone);
	assert_int_equal(t->reports, 1);
	net_client_open(&t->c, &t->g);
}

static void such_a_request_may_be_answered_when_all_is_closed(void **state)
{
	struct serve_rig *t = *state;

	net_client_puts(&t->c, "GET /forget HTTP/1.1\r\n" H "\r\n");
	net_rig_run_ms(&t->g, 20);
	http_server_close(t->g.server);
	http_reply(t->kept, 200, "text/plain", "x", 1);
	net_client_until_closed(&t->c);
	assert_int_equal(t->c.got.len, 0);
}

static void such_a_request_goes_with_its_server(void **state)
{
	struct serve_rig *t = *state;

	net_client_puts(&t->c, "GET /forget HTTP/1.1\r\n" H "\r\n");
	net_rig_run_ms(&t->g, 20);
	http_server_close(t->g.server);
	net_client_until_closed(&t->c);
	assert_string_equal(http_path(t->kept), "/forget"); /* its handler may come yet */
	t->g.server = http_server_free(t->g.server);        /* leaks are the sanitizer's */
	assert_int_equal(t->reports, 1);
}

static void a_body_wanted_too_late_is_told_to_be_gone(void **state)
{
	struct serve_rig *t = *state;

	net_client_puts(&t->c, "POST /forget HTTP/1.1\r\n" H "Content-Length: 5\r\n\r\nhel");
	net_rig_run_ms(&t->g, 20);
	net_client_close(&t->c);
	net_rig_run_ms(&t->g, 50);
	assert_non_null(t->kept);
	http_body_stream(t->kept, &serve_body_ops, t);
	assert_false(t->body_gone);
	net_rig_until(&t->g, &t->body_gone);
	net_client_open(&t->c, &t->g);
	/* The same when all is closed. */
	net_client_puts(&t->c, "POST /forget HTTP/1.1\r\n" H "Content-Length: 5\r\n\r\nhel");
	net_rig_run_ms(&t->g, 20);
	http_server_close(t->g.server);
	t->body_gone = false;
	http_body_stream(t->kept, &serve_body_ops, t);
	net_rig_until(&t->g, &t->body_gone);
}

static void an_aborted_answer_is_seen_to_be_incomplete(void **state)
{
	struct serve_rig *t = *state;

	net_client_puts(&t->c, "GET /keep HTTP/1.1\r\n" H "\r\n");
	net_rig_run_ms(&t->g, 20);
	http_begin(t->kept, 200, "text/plain", -1);
	assert_true(http_write(t->kept, "x", 1) > 0);
	net_client_until(&t->c, "1\r\nx\r\n");
	http_abort(t->kept);
	net_client_until_closed(&t->c);
	assert_true(t->c.reset);
	assert_false(net_client_has(&t->c, "\r\n0\r\n"));
	assert_false(t->gone);
	assert_int_equal(t->reports, 1);
}

static void an_answer_shorter_than_announced_is_cut(void **state)
{
	struct serve_rig *t = *state;

	net_client_puts(&t->c, "GET /keep HTTP/1.1\r\n" H "\r\nGET /x HTTP/1.1\r\n" H "\r\n");
	net_rig_run_ms(&t->g, 20);
	http_begin(t->kept, 200, "text/plain", 10);
	assert_true(http_write(t->kept, "short", 5) > 0);
	net_client_until(&t->c, "short");
	http_end(t->kept);
	net_client_until_closed(&t->c);
	assert_int_equal(t->handled, 1); /* nothing follows that could be taken for the rest */
}

static void an_answer_longer_than_announced_is_cut(void **state)
{
	struct serve_rig *t = *state;

	net_client_puts(&t->c, "GET /keep HTTP/1.1\r\n" H "\r\n");
	net_rig_run_ms(&t->g, 20);
	http_begin(t->kept, 200, "text/plain", 3);
	assert_int_equal(http_write(t->kept, "longer", 6), -ENOBUFS);
	assert_false(t->gone); /* not from within */
	net_rig_until(&t->g, &t->gone);
	net_client_until_closed(&t->c);
	assert_false(net_client_has(&t->c, "lon"));
}

static void a_slow_reader_is_waited_for_and_the_writer_told(void **state)
{
	struct serve_rig *t = *state;
	char *data = calloc(1, 1 << 20);
	size_t total = 0;

	assert_non_null(data);
	net_client_puts(&t->c, "GET /keep HTTP/1.1\r\n" H "\r\n");
	net_rig_run_ms(&t->g, 20);
	net_client_read(&t->c, false);
	http_begin(t->kept, 200, "application/octet-stream", 10 << 20);
	http_on_drain(t->kept, 1000, serve_drain, t);
	for (int i = 0; i < 10; i++, total += 1 << 20)
		assert_true(http_write(t->kept, data, 1 << 20) >= 0);
	assert_true(http_pending(t->kept) > 1 << 20);
	net_rig_run_ms(&t->g, 30);
	assert_int_equal(t->drains, 0);
	net_client_read(&t->c, true);
	net_rig_until(&t->g, &t->drained);
	http_end(t->kept);
	net_client_until_len(&t->c, total + 100);
	net_rig_run_ms(&t->g, 20);
	assert_int_equal(t->drains, 1);
	assert_int_equal((size_t)(buf_str(&t->c.got) + t->c.got.len - serve_body_of(t->c.got.data)),
			 total);
	free(data);
}

static void a_half_closed_client_still_gets_an_answer_that_is_complete(void **state)
{
	struct serve_rig *t = *state;
	char *data = calloc(1, 8 << 20);

	assert_non_null(data);
	net_client_read(&t->c, false);
	net_client_puts(&t->c, "GET /keep HTTP/1.1\r\n" H "\r\n");
	net_rig_run_ms(&t->g, 20);
	http_reply(t->kept, 200, "application/octet-stream", data, 8 << 20);
	assert_int_equal(shutdown(t->c.fd, SHUT_WR), 0);
	net_rig_run_ms(&t->g, 20);
	net_client_read(&t->c, true);
	net_client_until_closed(&t->c);
	assert_true(t->c.got.len > 8 << 20);
	free(data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(an_answer_in_pieces_is_chunked),
		T(a_head_request_gets_the_head_only),
		T(a_client_may_close_after_one),
		T(headers_cannot_be_split),
		T(errors_are_json),
		T(a_well_formed_id_of_the_client_comes_back_beside_ours),
		T(a_bad_request_is_told_why_and_closed),
		T(a_client_that_leaves_while_it_is_served_is_noticed),
		T(a_client_that_leaves_in_the_answer_is_noticed),
		T(a_request_nobody_watches_stays_until_it_is_answered),
		T(who_watches_too_late_is_told_too),
		T(such_a_request_may_be_answered_when_all_is_closed),
		T(such_a_request_goes_with_its_server),
		T(a_body_wanted_too_late_is_told_to_be_gone),
		T(an_aborted_answer_is_seen_to_be_incomplete),
		T(an_answer_shorter_than_announced_is_cut),
		T(an_answer_longer_than_announced_is_cut),
		T(a_slow_reader_is_waited_for_and_the_writer_told),
		T(a_half_closed_client_still_gets_an_answer_that_is_complete),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
