/* The server over real sockets: requests and their bodies. */
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

static void a_request_is_seen_whole_and_its_answer_too(void **state)
{
	struct serve_rig *t = *state;
	const char *a = net_client_ask(&t->c, "GET /a%20b?q=x%2By+z&r HTTP/1.1\r\n" H
					      "X-A: 1\r\nX-B: 2\r\n\r\n");

	assert_memory_equal(a, "HTTP/1.1 200 OK\r\nDate: ", 23);
	assert_non_null(strstr(a, " GMT\r\nContent-Type: text/plain\r\nContent-Length: "));
	assert_non_null(strstr(a, "\r\nX-Request-Id: "));
	assert_null(strstr(a, "Connection:"));
	assert_string_equal(serve_body_of(a),
			    "GET|/a%20b|q=x%2By+z&r|q=1:x+y z|x=1|127.0.0.1|0|Host,X-A,X-B,");
	assert_int_equal(t->reports, 1);
	assert_int_equal(t->status, 200);
	assert_int_equal(t->bytes, strlen(serve_body_of(a)));
	assert_string_equal(t->path, "/a%20b");
}

static void bad_escapes_in_a_query_are_told(void **state)
{
	struct serve_rig *t = *state;

	assert_non_null(
		strstr(net_client_ask(&t->c, "GET /?q=%zz HTTP/1.1\r\n" H "\r\n"), "|q=-22:-|"));
	assert_non_null(
		strstr(net_client_ask(&t->c, "GET /?q=%00 HTTP/1.1\r\n" H "\r\n"), "|q=-22:-|"));
	assert_non_null(
		strstr(net_client_ask(&t->c, "GET /?q=%4 HTTP/1.1\r\n" H "\r\n"), "|q=-22:-|"));
	assert_non_null(strstr(net_client_ask(&t->c, "GET /?%71=es+c HTTP/1.1\r\n" H "\r\n"),
			       "|q=1:es c|"));
	assert_non_null(
		strstr(net_client_ask(&t->c, "GET /?q%=1 HTTP/1.1\r\n" H "\r\n"), "|q=-22:-|"));
	assert_non_null(
		strstr(net_client_ask(&t->c, "GET /?&a=1&q&q=2 HTTP/1.1\r\n" H "\r\n"), "|q=1:|"));
	assert_non_null(
		strstr(net_client_ask(&t->c, "GET /?qq=1 HTTP/1.1\r\n" H "\r\n"), "|q=0:-|"));
}

static void a_connection_serves_many_requests(void **state)
{
	struct serve_rig *t = *state;

	for (unsigned i = 1; i <= 50; i++) {
		assert_non_null(
			strstr(net_client_ask(&t->c, "GET /x HTTP/1.1\r\n" H "\r\n"), "GET|/x|"));
		assert_int_equal(t->reports, i);
	}
	assert_int_equal(http_server_connections(t->g.server), 1);
}

static void requests_sent_together_are_answered_in_order(void **state)
{
	struct serve_rig *t = *state;
	const char *a, *b;

	net_client_puts(&t->c, "GET /keep HTTP/1.1\r\n" H "\r\n"
			       "POST /collect HTTP/1.1\r\n" H "Content-Length: 5\r\n\r\nhello"
			       "GET /last HTTP/1.1\r\n" H "\r\n");
	net_rig_run_ms(&t->g, 20);
	assert_int_equal(t->handled, 1); /* one after the other */
	http_reply(t->kept, 200, "text/plain", "first", 5);
	net_client_until(&t->c, "GET|/last|");
	a = strstr(buf_str(&t->c.got), "first");
	b = strstr(buf_str(&t->c.got), "hello");
	assert_true(a && b && a < b && b < strstr(b, "GET|/last|"));
	assert_int_equal(t->handled, 3);
}

static void a_flood_of_requests_is_not_read_ahead(void **state)
{
	struct serve_rig *t = *state;
	struct buf many = { 0 };

	for (int i = 0; i < 40000; i++)
		(void)buf_puts(&many, "GET /x HTTP/1.1\r\n" H "\r\n");
	net_client_puts(&t->c, "GET /keep HTTP/1.1\r\n" H "\r\n");
	for (int i = 0; i < 100; i++) { /* more than the buffers of both sides hold */
		(void)send(t->c.fd, many.data, many.len, MSG_NOSIGNAL | MSG_DONTWAIT);
		net_rig_run_ms(&t->g, 1);
	}
	assert_int_equal(t->handled, 1);
	assert_int_equal(send(t->c.fd, many.data, many.len, MSG_NOSIGNAL | MSG_DONTWAIT), -1);
	buf_done(&many);
}

static void a_client_that_leaves_behind_unread_requests_is_noticed(void **state)
{
	struct serve_rig *t = *state;

	net_client_puts(&t->c, "GET /keep HTTP/1.1\r\n" H "\r\n");
	for (int i = 0; i < 4000; i++) /* more than is read ahead, less than the socket holds */
		net_client_puts(&t->c, "GET /x HTTP/1.1\r\n" H "\r\n");
	net_rig_run_ms(&t->g, 20);
	assert_non_null(t->kept);
	net_client_close(&t->c);
	net_rig_until(&t->g, &t->gone);
	assert_int_equal(t->handled, 1);
	net_client_open(&t->c, &t->g);
}

static void a_body_is_collected(void **state)
{
	struct serve_rig *t = *state;
	const char *a;

	a = net_client_ask(&t->c, "POST /collect HTTP/1.1\r\n" H "Content-Length: 5\r\n\r\nhello");
	assert_string_equal(serve_body_of(a), "hello");
	t->ended = false;
	a = net_client_ask(&t->c,
			   "POST /collect HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n"
			   "3\r\nabc\r\n2\r\nde\r\n0\r\nT: x\r\n\r\n");
	assert_string_equal(serve_body_of(a), "abcde");
	t->ended = false;
	a = net_client_ask(&t->c, "POST /collect HTTP/1.1\r\n" H "\r\n");
	assert_string_equal(serve_body_of(a), "");
	assert_int_equal(t->reports, 3);
}

static void a_body_may_be_of_the_limit_and_not_above(void **state)
{
	struct serve_rig *t = *state;
	char *data = calloc(1, 100001);
	struct net_client other;

	assert_non_null(data);
	memset(data, 'x', 100001);
	net_client_puts(&t->c, "POST /collect HTTP/1.1\r\n" H "Content-Length: 100000\r\n\r\n");
	net_client_send(&t->c, data, 100000);
	net_client_until_len(&t->c, 100000 + 100);
	assert_int_equal(t->status, 200);
	t->ended = false;
	/* Announced: refused at once. */
	net_client_forget(&t->c);
	net_client_puts(&t->c, "POST /collect HTTP/1.1\r\n" H "Content-Length: 100001\r\n\r\n");
	net_client_until(&t->c, "\"details\":null}}");
	assert_true(net_client_has(&t->c, "HTTP/1.1 413 "));
	assert_true(net_client_has(&t->c, "Connection: close\r\n"));
	assert_true(net_client_has(&t->c, "\"code\":\"invalid_request\""));
	net_client_until_closed(&t->c);
	/* Not announced: refused when it has come. */
	net_client_open(&other, &t->g);
	net_client_puts(&other, "POST /collect HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n"
				"186A1\r\n");
	net_client_send(&other, data, 100001);
	net_client_until(&other, "HTTP/1.1 413 ");
	assert_false(t->ended);
	assert_int_equal(t->status, 413);
	net_client_close(&other);
	free(data);
}

static void a_body_streams_in_pieces_and_waits_when_paused(void **state)
{
	struct serve_rig *t = *state;

	t->pause = true;
	net_client_puts(&t->c, "POST /stream HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n"
			       "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n");
	net_rig_run_ms(&t->g, 20);
	assert_int_equal(t->pieces, 1);
	assert_string_equal(buf_str(&t->body), "abc");
	http_body_pause(t->kept, false);
	net_rig_run_ms(&t->g, 20);
	assert_int_equal(t->pieces, 2);
	assert_false(t->ended); /* nor the end while paused */
	http_body_pause(t->kept, false);
	net_client_until(&t->c, "abcde");
	assert_true(t->ended);
}

static void a_paused_body_holds_its_client_back(void **state)
{
	struct serve_rig *t = *state;
	char *data = calloc(1, 16 << 20);
	size_t sent = 0;

	assert_non_null(data);
	t->pause = true;
	net_client_puts(&t->c, "POST /stream HTTP/1.1\r\n" H "Content-Length: 16777216\r\n\r\n");
	for (int i = 0; i < 50; i++) {
		ssize_t n = send(t->c.fd, data, (16 << 20) - sent, MSG_NOSIGNAL | MSG_DONTWAIT);

		sent += n > 0 ? (size_t)n : 0;
		net_rig_run_ms(&t->g, 1);
	}
	assert_true(sent < 16 << 20);
	assert_true(t->body.len <= 65536);
	assert_int_equal(t->pieces, 1);
	free(data);
}

static void a_client_that_leaves_in_its_body_is_told(void **state)
{
	struct serve_rig *t = *state;

	net_client_puts(&t->c, "POST /stream HTTP/1.1\r\n" H "Content-Length: 10\r\n\r\nhello");
	net_rig_run_ms(&t->g, 20);
	assert_int_equal(t->body.len, 5);
	net_client_close(&t->c);
	net_rig_until(&t->g, &t->body_gone);
	assert_int_equal(t->status, 499);
	assert_int_equal(http_server_connections(t->g.server), 0);
	net_client_open(&t->c, &t->g);
}

static void a_bad_chunk_in_a_streamed_body_is_an_error_for_both(void **state)
{
	struct serve_rig *t = *state;

	net_client_puts(&t->c, "POST /stream HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n"
			       "3\r\nabc\r\nzz\r\n");
	net_client_until(&t->c, "HTTP/1.1 400 ");
	net_client_until_closed(&t->c);
	assert_true(t->body_gone);
	assert_false(t->ended);
	assert_int_equal(t->reports, 1);
	assert_int_equal(t->status, 400);
}

static void collecting_from_a_client_that_leaves_ends_the_request(void **state)
{
	struct serve_rig *t = *state;

	net_client_puts(&t->c, "POST /collect HTTP/1.1\r\n" H "Content-Length: 10\r\n\r\nhello");
	net_rig_run_ms(&t->g, 20);
	net_client_close(&t->c);
	for (int i = 0; i < 1000 && t->reports == 0; i++)
		net_rig_run_ms(&t->g, 1);
	assert_int_equal(t->status, 499);
	assert_false(t->ended);
	net_client_open(&t->c, &t->g);
}

static void a_small_body_that_nobody_took_is_read_away(void **state)
{
	struct serve_rig *t = *state;
	const char *a;

	a = net_client_ask(&t->c, "POST /x HTTP/1.1\r\n" H "Content-Length: 5\r\n\r\nhello");
	assert_non_null(strstr(a, "POST|/x|"));
	a = net_client_ask(&t->c, "POST /x HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n"
				  "3\r\nGET\r\n0\r\n\r\n");
	assert_non_null(strstr(a, "POST|/x|"));
	a = net_client_ask(&t->c, "GET /y HTTP/1.1\r\n" H "\r\n");
	assert_non_null(strstr(a, "GET|/y|"));
	assert_int_equal(t->handled, 3);
}

static void a_large_body_that_nobody_took_ends_the_connection(void **state)
{
	struct serve_rig *t = *state;
	char *data = calloc(1, 65537);
	struct net_client other;

	assert_non_null(data);
	net_client_puts(&t->c, "POST /x HTTP/1.1\r\n" H "Content-Length: 65537\r\n\r\n");
	net_client_send(&t->c, data, 65537);
	net_client_until(&t->c, "POST|/x|");
	net_client_until_closed(&t->c);
	assert_int_equal(t->status, 200);
	/* One of 64 KiB is still read. */
	net_client_open(&other, &t->g);
	net_client_puts(&other, "POST /x HTTP/1.1\r\n" H "Content-Length: 65536\r\n\r\n");
	net_client_send(&other, data, 65536);
	net_client_until(&other, "POST|/x|");
	assert_non_null(strstr(net_client_ask(&other, "GET /y HTTP/1.1\r\n" H "\r\n"), "GET|/y|"));
	net_client_close(&other);
	/* As is the beginning of a chunked one. */
	net_client_open(&other, &t->g);
	net_client_puts(&other, "POST /x HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n"
				"10001\r\n");
	net_client_send(&other, data, 65537);
	net_client_until_closed(&other);
	assert_true(net_client_has(&other, "POST|/x|"));
	net_client_close(&other);
	free(data);
}

static void an_answer_may_come_before_the_body_has(void **state)
{
	struct serve_rig *t = *state;

	net_client_puts(&t->c, "POST /early HTTP/1.1\r\n" H "Content-Length: 10\r\n\r\nhello");
	net_client_until(&t->c, "early");
	net_client_puts(&t->c, "world");
	assert_non_null(strstr(net_client_ask(&t->c, "GET /y HTTP/1.1\r\n" H "\r\n"), "GET|/y|"));
	assert_int_equal(t->pieces, 1); /* the rest is nobody's any more */
	assert_false(t->body_gone);
}

static void who_waits_for_a_sign_gets_it_when_the_body_is_wanted(void **state)
{
	struct serve_rig *t = *state;

	net_client_puts(&t->c, "POST /collect HTTP/1.1\r\n" H
			       "Expect: 100-continue\r\nContent-Length: 5\r\n\r\n");
	net_client_until(&t->c, "HTTP/1.1 100 Continue\r\n\r\n");
	assert_int_equal(t->c.got.len, 25);
	assert_string_equal(serve_body_of(net_client_ask(&t->c, "hello")), "hello");
}

static void who_waits_for_a_sign_in_vain_is_answered_and_closed(void **state)
{
	struct serve_rig *t = *state;

	net_client_puts(&t->c, "POST /x HTTP/1.1\r\n" H
			       "Expect: 100-continue\r\nContent-Length: 5\r\n\r\n");
	net_client_until_closed(&t->c);
	assert_false(net_client_has(&t->c, "100 Continue"));
	assert_true(net_client_has(&t->c, "POST|/x|"));
}

static void a_body_above_the_limit_gets_no_sign(void **state)
{
	struct serve_rig *t = *state;

	net_client_puts(&t->c, "POST /collect HTTP/1.1\r\n" H
			       "Expect: 100-continue\r\nContent-Length: 100001\r\n\r\n");
	net_client_until_closed(&t->c);
	assert_memory_equal(buf_str(&t->c.got), "HTTP/1.1 413 ", 13);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_request_is_seen_whole_and_its_answer_too),
		T(bad_escapes_in_a_query_are_told),
		T(a_connection_serves_many_requests),
		T(requests_sent_together_are_answered_in_order),
		T(a_flood_of_requests_is_not_read_ahead),
		T(a_client_that_leaves_behind_unread_requests_is_noticed),
		T(a_body_is_collected),
		T(a_body_may_be_of_the_limit_and_not_above),
		T(a_body_streams_in_pieces_and_waits_when_paused),
		T(a_paused_body_holds_its_client_back),
		T(a_client_that_leaves_in_its_body_is_told),
		T(a_bad_chunk_in_a_streamed_body_is_an_error_for_both),
		T(collecting_from_a_client_that_leaves_ends_the_request),
		T(a_small_body_that_nobody_took_is_read_away),
		T(a_large_body_that_nobody_took_ends_the_connection),
		T(an_answer_may_come_before_the_body_has),
		T(who_waits_for_a_sign_gets_it_when_the_body_is_wanted),
		T(who_waits_for_a_sign_in_vain_is_answered_and_closed),
		T(a_body_above_the_limit_gets_no_sign),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
