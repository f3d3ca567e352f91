#include "httpc/ws_client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "check.h"
#include "http_rig.h"
#include "httpc/handshake.h"
#include "httpc/httpc.h"

#define LEN(a) (sizeof(a) / sizeof((a)[0]))
#define HELLO                                                        \
	"HTTP/1.1 101 Switching Protocols\r\nUpgrade: WebSocket\r\n" \
	"Connection: keep-alive, Upgrade\r\nSec-WebSocket-Accept: \1\r\n\r\n"

struct world {
	struct http_rig rig;
	struct httpc *client;
	struct ws_client *ws;
	struct buf got; /* "t:text\n" or "b:bytes\n" a message */
	struct err err;
};

static void on_message(void *user, bool text, const void *data, size_t n)
{
	struct world *w = user;

	(void)buf_puts(&w->got, text ? "t:" : "b:");
	(void)buf_append(&w->got, data, n);
	(void)buf_putc(&w->got, '\n');
}

static int begin(struct world *w, const struct http_step *step)
{
	*w = (struct world){ 0 };
	http_rig_start(&w->rig, step, 1);
	assert_int_equal(httpc_create(&(struct httpc_options){ .url = w->rig.url,
							       .key = "holt_k",
							       .connect_ms = 2000 },
				      &w->client, &w->err),
			 0);
	return ws_client_open(w->client, "/pty?a=b", on_message, w, &w->ws, &w->err);
}

static int turns(struct world *w)
{
	int r = 0;

	for (int i = 0; i < 100 && r == 0; i++)
		r = ws_client_turn(w->ws, NULL, 0, 50, &w->err);
	return r;
}

static void end(struct world *w)
{
	w->ws = ws_client_free(w->ws);
	w->client = httpc_free(w->client);
	buf_done(&w->got);
	http_rig_done(&w->rig);
}

static void messages_go_both_ways_and_ours_are_masked(void **state)
{
	/* text "hi", binary in two frames, ping */
	static const char frames[] = "\x81\x02hi\x02\x01x\x80\x01y\x89\x01p";
	static const struct http_step step = { .answer = HELLO,
					       .more = frames,
					       .more_len = sizeof(frames) - 1,
					       .more_after_ms = 100,
					       .read_more = 16 };
	struct world w;
	const char *sent;

	(void)state;
	assert_int_equal(begin(&w, &step), 0);
	assert_int_equal(ws_client_send(w.ws, false, "abc", 3), 0);
	assert_int_equal(turns(&w), -ECONNRESET);
	assert_string_equal(w.got.data, "t:hi\nb:xy\n");
	w.ws = ws_client_free(w.ws);
	http_rig_stop(&w.rig);
	assert_non_null(strstr(w.rig.got.data, "GET /pty?a=b HTTP/1.1\r\n"));
	assert_non_null(strstr(w.rig.got.data, "Authorization: Bearer holt_k\r\n"));
	sent = (const char *)memmem(w.rig.got.data, w.rig.got.len, "\r\n\r\n", 4) + 4;
	assert_int_equal((unsigned char)sent[0], 0x82);
	assert_int_equal((unsigned char)sent[1], 0x83); /* 3 bytes, masked */
	for (int i = 0; i < 3; i++)
		assert_int_equal(sent[6 + i] ^ sent[2 + i], "abc"[i]);
	assert_int_equal((unsigned char)sent[9], 0x8a); /* the pong */
	end(&w);
}

static void bytes_right_behind_the_handshake_are_not_lost(void **state)
{
	static const char all[] = HELLO "\x81\x05"
					"early\x88\x02\x03\xe9";
	static const struct http_step step = { .answer = all, .len = sizeof(all) - 1 };
	struct world w;

	(void)state;
	assert_int_equal(begin(&w, &step), 0);
	assert_int_equal(turns(&w), 1);
	assert_string_equal(w.got.data, "t:early\n");
	assert_int_equal(ws_client_code(w.ws), 1001);
	end(&w);
}

static void nothing_comes_while_held(void **state)
{
	static const char all[] = HELLO "\x81\x01z";
	static const struct http_step step = { .answer = all,
					       .len = sizeof(all) - 1,
					       .read_more = 1 };
	struct world w;

	(void)state;
	assert_int_equal(begin(&w, &step), 0);
	ws_client_hold(w.ws, true);
	for (int i = 0; i < 3; i++)
		assert_int_equal(ws_client_turn(w.ws, NULL, 0, 20, &w.err), 0);
	assert_int_equal(w.got.len, 0);
	ws_client_hold(w.ws, false);
	assert_int_equal(ws_client_turn(w.ws, NULL, 0, 50, &w.err), 0);
	assert_string_equal(w.got.data, "t:z\n");
	end(&w);
}

static void a_connection_that_breaks_is_no_close(void **state)
{
	static const struct http_step step = { .answer = HELLO };
	struct world w;

	(void)state;
	assert_int_equal(begin(&w, &step), 0);
	assert_int_equal(turns(&w), -ECONNRESET);
	end(&w);
}

static void frames_that_break_the_protocol_end_it(void **state)
{
	static const char *const bad[] = {
		"\x83\x01z",         /* no such kind */
		"\x81\x81\1\1\1\1z", /* masked by a server */
		"\xc1\x01z",         /* a reserved bit */
		"\x81\x01\xff",      /* text that is no UTF-8 */
	};

	(void)state;
	for (size_t i = 0; i < LEN(bad); i++) {
		const struct http_step step = { .answer = HELLO, .more = bad[i], .read_more = 1 };
		struct world w;

		assert_int_equal(begin(&w, &step), 0);
		assert_int_equal(turns(&w), -EPROTO);
		assert_int_equal(w.got.len, 0);
		end(&w);
	}
}

static void a_refusal_is_what_the_server_says(void **state)
{
	static const struct http_step step = {
		.answer = "HTTP/1.1 409 Conflict\r\nContent-Type: application/json\r\n"
			  "Content-Length: 54\r\n\r\n"
			  "{\"error\":{\"code\":\"conflict\"",
		.more = ",\"message\":\"it is paused\"}}",
		.more_after_ms = 30,
	};
	struct world w;

	(void)state;
	assert_int_equal(begin(&w, &step), -EBUSY);
	assert_string_equal(w.err.text, "it is paused");
	assert_null(w.ws);
	end(&w);
}

static void a_server_that_does_not_answer_is_given_up(void **state)
{
	static const struct http_step step = { .answer = "", .after_ms = 3000 };
	struct world w;

	(void)state;
	assert_int_equal(begin(&w, &step), -ETIMEDOUT);
	end(&w);
}

/* --- the handshake as bytes ---------------------------------------------------------------- */

/* The standard's own example. */
static const struct handshake sample = { .target = "/",
					 .host = "h",
					 .key = "dGhlIHNhbXBsZSBub25jZQ==" };
#define ACCEPT "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"
#define HEAD "HTTP/1.1 101 Switching Protocols\r\n"

static int read_answer(const char *text, struct handshake_answer *ret)
{
	struct err err = { 0 };

	return handshake_read(&sample, text, strlen(text), ret, &err);
}

static void the_standard_s_example_is_accepted(void **state)
{
	static const char good[] =
		HEAD "upgrade:websocket\r\nCONNECTION: Upgrade\r\n" ACCEPT "\r\nrest";
	struct handshake_answer a = { 0 };
	struct err err = { 0 };

	(void)state;
	for (size_t n = 0; n < sizeof(good) - 5; n++)
		assert_int_equal(handshake_read(&sample, good, n, &a, &err), -EAGAIN);
	assert_int_equal(read_answer(good, &a), 0);
	assert_int_equal(a.status, 101);
	assert_int_equal(a.head_len, sizeof(good) - 5);
}

static void an_answer_to_another_request_is_refused(void **state)
{
	static const char *const bad[] = {
		HEAD "Upgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
		HEAD "Connection: Upgrade\r\n" ACCEPT "\r\n",
		HEAD "Upgrade: websocket\r\nConnection: close\r\n" ACCEPT "\r\n",
		HEAD "Upgrade: h2c\r\nConnection: Upgrade\r\n" ACCEPT "\r\n",
		HEAD "Upgrade: websocket\r\nConnection: Upgrade\r\n" ACCEPT
		     "Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n",
		HEAD "Upgrade: websocket\r\nConnection: Upgrade\r\n"
		     "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo\r\n\r\n",
		"HTTP/2 101\r\n\r\n",
		"HTTP/1.1 1o1 x\r\n\r\n",
		"HTTP/1.1 101x\r\n\r\n",
		"\r\n\r\n",
	};
	struct handshake_answer a;

	(void)state;
	for (size_t i = 0; i < LEN(bad); i++)
		assert_int_equal(read_answer(bad[i], &a), -EPROTO);
}

static void a_head_without_an_end_is_refused(void **state)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct handshake_answer a;
	struct err err = { 0 };

	(void)state;
	(void)buf_puts(&b, HEAD);
	while (b.len < HANDSHAKE_MAX - 1)
		(void)buf_putc(&b, 'x');
	assert_int_equal(handshake_read(&sample, b.data, b.len, &a, &err), -EAGAIN);
	(void)buf_putc(&b, 'x');
	assert_int_equal(handshake_read(&sample, b.data, b.len, &a, &err), -E2BIG);
}

static void another_status_tells_how_long_its_body_is(void **state)
{
	struct handshake_answer a = { 0 };

	(void)state;
	assert_int_equal(read_answer("HTTP/1.1 404\r\ncontent-length: 17\r\n\r\n", &a), 0);
	assert_int_equal(a.status, 404);
	assert_int_equal(a.body_length, 17);
	assert_int_equal(read_answer("HTTP/1.1 404 x\r\nContent-Length: 99999999\r\n\r\n", &a), 0);
	assert_int_equal(a.body_length, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_go_both_ways_and_ours_are_masked),
		cmocka_unit_test(bytes_right_behind_the_handshake_are_not_lost),
		cmocka_unit_test(nothing_comes_while_held),
		cmocka_unit_test(a_connection_that_breaks_is_no_close),
		cmocka_unit_test(frames_that_break_the_protocol_end_it),
		cmocka_unit_test(a_refusal_is_what_the_server_says),
		cmocka_unit_test(a_server_that_does_not_answer_is_given_up),
		cmocka_unit_test(the_standard_s_example_is_accepted),
		cmocka_unit_test(an_answer_to_another_request_is_refused),
		cmocka_unit_test(a_head_without_an_end_is_refused),
		cmocka_unit_test(another_status_tells_how_long_its_body_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
