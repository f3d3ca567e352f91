/* The server over real sockets: requests, bodies, answers, clients that leave. */
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
#include "net_rig.h"

#define H "Host: a\r\n"

struct test {
	struct net_rig g;
	struct net_client c;
	struct http_request *kept; /* of /keep: answered by the test */
	struct buf body;           /* of /stream */
	unsigned handled, pieces, drains;
	bool gone, ended, body_gone, pause, drained;
	/* What done() was told last. */
	int status;
	uint64_t bytes;
	unsigned reports;
	char path[64];
};

static void on_gone(void *user, struct http_request *r)
{
	struct test *t = user;

	assert_ptr_equal(r, t->kept);
	t->gone = true;
	t->kept = NULL;
}

static void got(void *user, struct http_request *r, const char *data, size_t n)
{
	struct test *t = user;

	t->ended = true;
	assert_int_equal(data[n], '\0');
	http_reply(r, 200, "text/plain", data, n);
}

static void on_data(void *user, struct http_request *r, const char *data, size_t n)
{
	struct test *t = user;

	assert_int_equal(buf_append(&t->body, data, n), 0);
	t->pieces++;
	if (t->pause)
		http_body_pause(r, true);
	if (strcmp(http_path(r), "/early") == 0)
		http_reply(r, 200, "text/plain", "early", 5);
}

static void on_end(void *user, struct http_request *r)
{
	struct test *t = user;

	t->ended = true;
	http_reply(r, 200, "text/plain", buf_str(&t->body), t->body.len);
}

static void on_body_gone(void *user, struct http_request *r)
{
	struct test *t = user;

	(void)r;
	t->body_gone = true;
	t->kept = NULL;
}

static const struct http_body_ops body_ops = { on_data, on_end, on_body_gone };

static void describe(struct http_request *r)
{
	struct buf b = { 0 };
	const char *v = "-", *name;
	int n = http_query(r, "q", &v);

	(void)buf_printf(&b, "%s|%s|%s|q=%d:%s|x=%s|%s|%d|", http_method(r), http_path(r),
			 http_query_string(r), n, v,
			 http_header(r, "x-a") ? http_header(r, "x-a") : "-", http_peer(r),
			 http_is_tls(r));
	for (unsigned i = 0; (v = http_header_at(r, i, &name)); i++)
		(void)buf_printf(&b, "%s,", name);
	http_reply(r, 200, "text/plain", b.data, b.len);
	buf_done(&b);
}

static void on_drain(void *user, struct http_request *r)
{
	struct test *t = user;

	assert_true(http_pending(r) <= 1000);
	t->drains++;
	t->drained = true;
}

static void stream_answer(struct test *t, struct http_request *r)
{
	http_begin(r, 200, "text/plain", strstr(http_path(r), "sized") ? 11 : -1);
	assert_true(http_write(r, "hello ", 6) > 0);
	assert_true(http_write(r, "", 0) > 0);
	assert_true(http_write(r, "world", 5) > 0);
	http_end(r);
	(void)t;
}

static void handle(void *user, struct http_request *r)
{
	struct test *t = user;
	const char *path = http_path(r);

	t->handled++;
	assert_true(id_is_valid(http_request_id(r)));
	for (unsigned i = 0; i < HTTP_USER_SLOTS; i++)
		assert_null(http_user(r, i)); /* nothing of the request before */
	http_user_set(r, 1, t);
	assert_ptr_equal(http_user(r, 1), t);
	assert_int_equal(arena_used(http_arena(r)), 0);
	assert_non_null(arena_alloc(http_arena(r), 100));
	if (strcmp(path, "/collect") == 0) {
		http_body_collect(r, 100000, got, t);
		assert_false(t->ended); /* never from within */
	} else if (strcmp(path, "/stream") == 0 || strcmp(path, "/early") == 0) {
		t->kept = r;
		http_body_stream(r, &body_ops, t);
	} else if (strncmp(path, "/answer", 7) == 0) {
		stream_answer(t, r);
	} else if (strcmp(path, "/keep") == 0) {
		t->kept = r;
		http_on_gone(r, on_gone, t);
	} else if (strcmp(path, "/forget") == 0) {
		t->kept = r; /* nobody tells when the client leaves */
	} else if (strcmp(path, "/header") == 0) {
		assert_int_equal(http_header_add(r, "X-Good", "yes, \xc3\xa4"), 0);
		assert_int_equal(http_header_add(r, "X-Split", "a\r\nSet-Cookie: b"), -EINVAL);
		assert_int_equal(http_header_add(r, "X-Ctl", "a\x01"), -EINVAL);
		assert_int_equal(http_header_add(r, "X Bad", "a"), -EINVAL);
		assert_int_equal(http_header_add(r, "X:Bad", "a"), -EINVAL);
		assert_int_equal(http_header_add(r, "", "a"), -EINVAL);
		http_reply(r, 201, NULL, NULL, 0);
	} else if (strcmp(path, "/204") == 0) {
		http_reply(r, 204, NULL, NULL, 0);
	} else if (strcmp(path, "/error") == 0) {
		http_reply_error(r, 409, "conflict", "a \"name\" is\ntaken");
	} else {
		describe(r);
	}
}

static void done(void *user, const struct http_request *r, int status, uint64_t bytes,
		 uint64_t took_us)
{
	struct test *t = user;

	t->status = status;
	t->bytes = bytes;
	t->reports++;
	assert_true(took_us < 60000000);
	assert_int_equal(str_copy(t->path, sizeof(t->path), http_path(r)), 0);
	assert_true(id_is_valid(http_request_id(r)));
	assert_true(!http_header(r, "host") || strcmp(http_header(r, "host"), "a") == 0);
}

static int setup(void **state)
{
	struct test *t = calloc(1, sizeof(*t));
	struct http_server_options o = { .handle = handle, .done = done, .user = t };

	assert_non_null(t);
	net_rig_open(&t->g, &o);
	net_client_open(&t->c, &t->g);
	*state = t;
	return 0;
}

static int teardown(void **state)
{
	struct test *t = *state;

	net_client_close(&t->c);
	net_rig_close(&t->g);
	buf_done(&t->body);
	free(t);
	return 0;
}

static const char *body_of(const char *answer)
{
	const char *end = strstr(answer, "\r\n\r\n");

	assert_non_null(end);
	return end + 4;
}

static void a_request_is_seen_whole_and_its_answer_too(void **state)
{
	struct test *t = *state;
	const char *a = net_client_ask(&t->c, "GET /a%20b?q=x%2By+z&r HTTP/1.1\r\n" H
					      "X-A: 1\r\nX-B: 2\r\n\r\n");

	assert_memory_equal(a, "HTTP/1.1 200 OK\r\nDate: ", 23);
	assert_non_null(strstr(a, " GMT\r\nContent-Type: text/plain\r\nContent-Length: "));
	assert_non_null(strstr(a, "\r\nX-Request-Id: "));
	assert_null(strstr(a, "Connection:"));
	assert_string_equal(body_of(a),
			    "GET|/a%20b|q=x%2By+z&r|q=1:x+y z|x=1|127.0.0.1|0|Host,X-A,X-B,");
	assert_int_equal(t->reports, 1);
	assert_int_equal(t->status, 200);
	assert_int_equal(t->bytes, strlen(body_of(a)));
	assert_string_equal(t->path, "/a%20b");
}

static void bad_escapes_in_a_query_are_told(void **state)
{
	struct test *t = *state;

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
	struct test *t = *state;

	for (unsigned i = 1; i <= 50; i++) {
		assert_non_null(
			strstr(net_client_ask(&t->c, "GET /x HTTP/1.1\r\n" H "\r\n"), "GET|/x|"));
		assert_int_equal(t->reports, i);
	}
	assert_int_equal(http_server_connections(t->g.server), 1);
}

static void requests_sent_together_are_answered_in_order(void **state)
{
	struct test *t = *state;
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
	struct test *t = *state;
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
	struct test *t = *state;

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
	struct test *t = *state;
	const char *a;

	a = net_client_ask(&t->c, "POST /collect HTTP/1.1\r\n" H "Content-Length: 5\r\n\r\nhello");
	assert_string_equal(body_of(a), "hello");
	t->ended = false;
	a = net_client_ask(&t->c,
			   "POST /collect HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n"
			   "3\r\nabc\r\n2\r\nde\r\n0\r\nT: x\r\n\r\n");
	assert_string_equal(body_of(a), "abcde");
	t->ended = false;
	a = net_client_ask(&t->c, "POST /collect HTTP/1.1\r\n" H "\r\n");
	assert_string_equal(body_of(a), "");
	assert_int_equal(t->reports, 3);
}

static void a_body_may_be_of_the_limit_and_not_above(void **state)
{
	struct test *t = *state;
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
	struct test *t = *state;

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
	struct test *t = *state;
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
	struct test *t = *state;

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
	struct test *t = *state;

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
	struct test *t = *state;

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
	struct test *t = *state;
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
	struct test *t = *state;
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
	struct test *t = *state;

	net_client_puts(&t->c, "POST /early HTTP/1.1\r\n" H "Content-Length: 10\r\n\r\nhello");
	net_client_until(&t->c, "early");
	net_client_puts(&t->c, "world");
	assert_non_null(strstr(net_client_ask(&t->c, "GET /y HTTP/1.1\r\n" H "\r\n"), "GET|/y|"));
	assert_int_equal(t->pieces, 1); /* the rest is nobody's any more */
	assert_false(t->body_gone);
}

static void who_waits_for_a_sign_gets_it_when_the_body_is_wanted(void **state)
{
	struct test *t = *state;

	net_client_puts(&t->c, "POST /collect HTTP/1.1\r\n" H
			       "Expect: 100-continue\r\nContent-Length: 5\r\n\r\n");
	net_client_until(&t->c, "HTTP/1.1 100 Continue\r\n\r\n");
	assert_int_equal(t->c.got.len, 25);
	assert_string_equal(body_of(net_client_ask(&t->c, "hello")), "hello");
}

static void who_waits_for_a_sign_in_vain_is_answered_and_closed(void **state)
{
	struct test *t = *state;

	net_client_puts(&t->c, "POST /x HTTP/1.1\r\n" H
			       "Expect: 100-continue\r\nContent-Length: 5\r\n\r\n");
	net_client_until_closed(&t->c);
	assert_false(net_client_has(&t->c, "100 Continue"));
	assert_true(net_client_has(&t->c, "POST|/x|"));
}

static void a_body_above_the_limit_gets_no_sign(void **state)
{
	struct test *t = *state;

	net_client_puts(&t->c, "POST /collect HTTP/1.1\r\n" H
			       "Expect: 100-continue\r\nContent-Length: 100001\r\n\r\n");
	net_client_until_closed(&t->c);
	assert_memory_equal(buf_str(&t->c.got), "HTTP/1.1 413 ", 13);
}

static void an_answer_in_pieces_is_chunked(void **state)
{
	struct test *t = *state;

	net_client_puts(&t->c, "GET /answer HTTP/1.1\r\n" H "\r\n");
	net_client_until(&t->c, "\r\n0\r\n\r\n");
	assert_true(net_client_has(&t->c, "Transfer-Encoding: chunked\r\n"));
	assert_string_equal(body_of(buf_str(&t->c.got)), "6\r\nhello \r\n5\r\nworld\r\n0\r\n\r\n");
	assert_int_equal(t->bytes, 11);
	assert_string_equal(
		body_of(net_client_ask(&t->c, "GET /answer-sized HTTP/1.1\r\n" H "\r\n")),
		"hello world");
	assert_false(net_client_has(&t->c, "chunked"));
}

static void a_head_request_gets_the_head_only(void **state)
{
	struct test *t = *state;

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
	struct test *t = *state;

	net_client_puts(&t->c, "GET /x HTTP/1.1\r\n" H "Connection: close\r\n\r\n");
	net_client_until_closed(&t->c);
	assert_true(net_client_has(&t->c, "Connection: close\r\n"));
	assert_true(net_client_has(&t->c, "GET|/x|"));
}

static void headers_cannot_be_split(void **state)
{
	struct test *t = *state;
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
	struct test *t = *state;
	const char *a = net_client_ask(&t->c, "GET /error HTTP/1.1\r\n" H "\r\n");

	assert_memory_equal(a, "HTTP/1.1 409 Conflict\r\n", 23);
	assert_non_null(strstr(a, "Content-Type: application/json\r\n"));
	assert_string_equal(body_of(a), "{\"error\":{\"code\":\"conflict\",\"message\":\"a "
					"\\\"name\\\" is\\ntaken\",\"details\":null}}");
}

static void a_well_formed_id_of_the_client_comes_back_beside_ours(void **state)
{
	struct test *t = *state;
	const char *a;

	a = net_client_ask(&t->c, "GET / HTTP/1.1\r\n" H "X-Request-Id: Ab-1_2:3.x\r\n\r\n");
	assert_non_null(strstr(a, "\r\nX-Client-Request-Id: Ab-1_2:3.x\r\n"));
	assert_null(strstr(a, "\r\nX-Request-Id: Ab"));
	a = net_client_ask(&t->c, "GET / HTTP/1.1\r\n" H "X-Request-Id: a b\r\n\r\n");
	assert_null(strstr(a, "X-Client"));
}

static void a_bad_request_is_told_why_and_closed(void **state)
{
	struct test *t = *state;

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
	struct test *t = *state;

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
	struct test *t = *state;

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
	struct test *t = *state;

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
	struct test *t = *state;

	net_client_puts(&t->c, "GET /forget HTTP/1.1\r\n" H "\r\n");
	net_rig_run_ms(&t->g, 20);
	net_client_close(&t->c);
	net_rig_run_ms(&t->g, 50);
	http_on_gone(t->kept, on_gone, t);
	assert_false(t->gone);
	net_rig_until(&t->g, &t->gone);
	assert_int_equal(t->reports, 1);
	net_client_open(&t->c, &t->g);
}

static void such_a_request_may_be_answered_when_all_is_closed(void **state)
{
	struct test *t = *state;

	net_client_puts(&t->c, "GET /forget HTTP/1.1\r\n" H "\r\n");
	net_rig_run_ms(&t->g, 20);
	http_server_close(t->g.server);
	http_reply(t->kept, 200, "text/plain", "x", 1);
	net_client_until_closed(&t->c);
	assert_int_equal(t->c.got.len, 0);
}

static void such_a_request_goes_with_its_server(void **state)
{
	struct test *t = *state;

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
	struct test *t = *state;

	net_client_puts(&t->c, "POST /forget HTTP/1.1\r\n" H "Content-Length: 5\r\n\r\nhel");
	net_rig_run_ms(&t->g, 20);
	net_client_close(&t->c);
	net_rig_run_ms(&t->g, 50);
	assert_non_null(t->kept);
	http_body_stream(t->kept, &body_ops, t);
	assert_false(t->body_gone);
	net_rig_until(&t->g, &t->body_gone);
	net_client_open(&t->c, &t->g);
	/* The same when all is closed. */
	net_client_puts(&t->c, "POST /forget HTTP/1.1\r\n" H "Content-Length: 5\r\n\r\nhel");
	net_rig_run_ms(&t->g, 20);
	http_server_close(t->g.server);
	t->body_gone = false;
	http_body_stream(t->kept, &body_ops, t);
	net_rig_until(&t->g, &t->body_gone);
}

static void an_aborted_answer_is_seen_to_be_incomplete(void **state)
{
	struct test *t = *state;

	net_client_puts(&t->c, "GET /keep HTTP/1.1\r\n" H "\r\n");
	net_rig_run_ms(&t->g, 20);
	http_begin(t->kept, 200, "text/plain", -1);
	assert_true(http_write(t->kept, "x", 1) > 0);
	net_client_until(&t->c, "1\r\nx\r\n");
	http_abort(t->kept);
	net_client_until_closed(&t->c);
	assert_false(net_client_has(&t->c, "\r\n0\r\n"));
	assert_false(t->gone);
	assert_int_equal(t->reports, 1);
}

static void an_answer_shorter_than_announced_is_cut(void **state)
{
	struct test *t = *state;

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
	struct test *t = *state;

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
	struct test *t = *state;
	char *data = calloc(1, 1 << 20);
	size_t total = 0;

	assert_non_null(data);
	net_client_puts(&t->c, "GET /keep HTTP/1.1\r\n" H "\r\n");
	net_rig_run_ms(&t->g, 20);
	net_client_read(&t->c, false);
	http_begin(t->kept, 200, "application/octet-stream", 10 << 20);
	http_on_drain(t->kept, 1000, on_drain, t);
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
	assert_int_equal((size_t)(buf_str(&t->c.got) + t->c.got.len - body_of(t->c.got.data)),
			 total);
	free(data);
}

static void a_half_closed_client_still_gets_an_answer_that_is_complete(void **state)
{
	struct test *t = *state;
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

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

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
