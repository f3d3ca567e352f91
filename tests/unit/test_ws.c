#include "net/ws.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "check.h"
#include "net_rig.h"

#define H "Host: a:80\r\n"
#define KEY "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
#define UPGRADE "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
#define OPEN "GET /ws HTTP/1.1\r\n" H UPGRADE KEY "\r\n"

enum { CONT = 0, TEXT = 1, BINARY = 2, CLOSE = 8, PING = 9, PONG = 10, FIN = 0x80 };

struct test {
	struct net_rig g;
	struct net_client c;
	struct ws_options o;
	struct ws *w;
	struct buf got; /* "t:hello\n" or "b:..." for each message */
	unsigned messages, reports;
	bool closed, drained, pause, close_in_message;
	unsigned code;
	char reason[128];
	int status;
};

static void on_message(void *user, struct ws *w, bool text, const void *data, size_t n)
{
	struct test *t = user;

	assert_ptr_equal(w, t->w);
	assert_false(t->closed);
	t->messages++;
	(void)buf_puts(&t->got, text ? "t:" : "b:");
	(void)buf_append(&t->got, data, n);
	(void)buf_putc(&t->got, '\n');
	if (t->pause)
		ws_pause(w, true);
	if (t->close_in_message)
		ws_close(w, 4000, "enough");
}

static void on_drain(void *user, struct ws *w)
{
	struct test *t = user;

	assert_true(ws_pending(w) <= 1000);
	t->drained = true;
}

static void on_closed(void *user, struct ws *w, unsigned code, const char *reason)
{
	struct test *t = user;

	assert_ptr_equal(w, t->w);
	assert_false(t->closed);
	assert_string_equal(http_path(ws_request(w)), "/ws"); /* still there */
	t->closed = true;
	t->code = code;
	assert_int_equal(str_copy(t->reason, sizeof(t->reason), reason), 0);
	t->w = NULL;
}

static const struct ws_ops ops = { on_message, on_drain, on_closed };

static void handle(void *user, struct http_request *r)
{
	struct test *t = user;

	if (strcmp(http_path(r), "/ws") == 0)
		t->w = ws_accept(r, &ops, t, &t->o);
	else
		http_reply(r, 200, "text/plain", "plain", 5);
}

static void done(void *user, const struct http_request *r, int status, uint64_t bytes,
		 uint64_t took_us)
{
	struct test *t = user;

	(void)r;
	(void)bytes;
	(void)took_us;
	t->reports++;
	t->status = status;
}

static int setup(void **state)
{
	struct test *t = calloc(1, sizeof(*t));
	struct http_server_options o = { .handle = handle, .done = done, .user = t };

	assert_non_null(t);
	o.limits.linger_ms = 40; /* deadlines are looked at every 10 ms */
	t->o.low_water = 1000;
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
	buf_done(&t->got);
	free(t);
	return 0;
}

static void open_socket(struct test *t)
{
	net_client_puts(&t->c, OPEN);
	net_client_until(&t->c, "\r\n\r\n");
	assert_memory_equal(buf_str(&t->c.got), "HTTP/1.1 101 ", 13);
	assert_non_null(t->w);
	net_client_forget(&t->c);
}

/* A masked frame; n above 65535 is for the caller to announce. */
static void put_frame(struct buf *b, int first, const void *data, size_t n)
{
	static const unsigned char mask[4] = { 0x12, 0x34, 0x56, 0x78 };
	const unsigned char *p = data;

	(void)buf_putc(b, (char)first);
	if (n < 126) {
		(void)buf_putc(b, (char)(0x80 | n));
	} else if (n < 65536) {
		(void)buf_putc(b, (char)(0x80 | 126));
		(void)buf_putc(b, (char)(n >> 8));
		(void)buf_putc(b, (char)n);
	} else {
		(void)buf_putc(b, (char)(0x80 | 127));
		for (int i = 7; i >= 0; i--)
			(void)buf_putc(b, (char)((uint64_t)n >> (8 * i)));
	}
	(void)buf_append(b, mask, 4);
	for (size_t i = 0; i < n; i++)
		(void)buf_putc(b, (char)(p[i] ^ mask[i % 4]));
}

static void send_frame(struct test *t, int first, const void *data, size_t n)
{
	struct buf b = { 0 };

	put_frame(&b, first, data, n);
	net_client_send(&t->c, b.data, b.len);
	buf_done(&b);
}

/* The server's next frame, of less than 126 bytes. */
static void want_frame(struct test *t, int first, const void *data, size_t n)
{
	net_client_until_len(&t->c, 2 + n);
	assert_int_equal((unsigned char)t->c.got.data[0], first);
	assert_int_equal((unsigned char)t->c.got.data[1], n); /* unmasked */
	assert_memory_equal(t->c.got.data + 2, data, n);
	buf_drop(&t->c.got, 2 + n);
}

static void want_close(struct test *t, unsigned code)
{
	const char *p;

	net_client_until_len(&t->c, 4);
	p = t->c.got.data;
	assert_int_equal((unsigned char)p[0], FIN | CLOSE);
	assert_int_equal((unsigned char)p[2] << 8 | (unsigned char)p[3], code);
}

static void the_handshake_is_answered_as_the_standard_says(void **state)
{
	struct test *t = *state;

	net_client_puts(&t->c, OPEN);
	net_client_until(&t->c, "\r\n\r\n");
	assert_memory_equal(buf_str(&t->c.got), "HTTP/1.1 101 Switching Protocols\r\n", 34);
	assert_true(net_client_has(&t->c,
				   "\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"));
	assert_true(net_client_has(&t->c, "\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"));
	assert_false(net_client_has(&t->c, "Content-Length"));
	assert_false(net_client_has(&t->c, "chunked"));
	assert_false(net_client_has(&t->c, "Sec-WebSocket-Protocol"));
	assert_string_equal(ws_protocol(t->w), "");
}

static void handshakes_that_are_none_are_refused(void **state)
{
	static const struct {
		const char *request, *want;
	} rows[] = {
		{ "POST /ws HTTP/1.1\r\n" H UPGRADE KEY "\r\n", "HTTP/1.1 405 " },
		{ "GET /ws HTTP/1.1\r\n" H UPGRADE KEY "Content-Length: 1\r\n\r\nx",
		  "HTTP/1.1 400 " },
		{ "GET /ws HTTP/1.1\r\n" H "\r\n", "HTTP/1.1 426 " },
		{ "GET /ws HTTP/1.1\r\n" H "Connection: Upgrade\r\n" KEY "\r\n", "HTTP/1.1 426 " },
		{ "GET /ws HTTP/1.1\r\n" H "Upgrade: websocket\r\n" KEY "\r\n", "HTTP/1.1 426 " },
		{ "GET /ws HTTP/1.1\r\n" H "Connection: Upgrade\r\nUpgrade: h2c\r\n" KEY "\r\n",
		  "HTTP/1.1 426 " },
		{ "GET /ws HTTP/1.1\r\n" H "Connection: Upgrade\r\nUpgrade: websockets\r\n" KEY
		  "\r\n",
		  "HTTP/1.1 426 " },
		{ "GET /ws HTTP/1.1\r\n" H "Connection: Upgrade\r\nUpgrade: websocket\r\n"
		  "Sec-WebSocket-Version: 8\r\n" KEY "\r\n",
		  "Sec-WebSocket-Version: 13\r\n" },
		{ "GET /ws HTTP/1.1\r\n" H UPGRADE "Sec-WebSocket-Version: 13\r\n" KEY "\r\n",
		  "HTTP/1.1 426 " },
		{ "GET /ws HTTP/1.1\r\n" H UPGRADE "\r\n", "HTTP/1.1 400 " },
		{ "GET /ws HTTP/1.1\r\n" H UPGRADE KEY KEY "\r\n", "HTTP/1.1 400 " },
		{ "GET /ws HTTP/1.1\r\n" H UPGRADE "Sec-WebSocket-Key: short\r\n\r\n",
		  "HTTP/1.1 400 " },
		{ "GET /ws HTTP/1.1\r\n" H UPGRADE
		  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=!\r\n\r\n",
		  "HTTP/1.1 400 " },
		{ "GET /ws HTTP/1.1\r\n" H UPGRADE
		  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZTEy\r\n\r\n",
		  "HTTP/1.1 400 " }, /* 18 bytes */
	};
	struct test *t = *state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct net_client c;

		net_client_open(&c, &t->g);
		if (!strstr(net_client_ask(&c, rows[i].request), rows[i].want))
			fail_msg("%s\n%s", rows[i].request, buf_str(&c.got));
		assert_null(t->w);
		/* It is still HTTP. */
		assert_non_null(
			strstr(net_client_ask(&c, "GET /x HTTP/1.1\r\n" H "\r\n"), "plain"));
		net_client_close(&c);
	}
}

static void header_tokens_may_stand_in_lists_and_any_case(void **state)
{
	struct test *t = *state;

	net_client_puts(&t->c, "GET /ws HTTP/1.1\r\n" H "Connection: keep-alive, UPGRADE\r\n"
			       "Upgrade: WebSocket\r\nSec-WebSocket-Version: 13\r\n" KEY "\r\n");
	net_client_until(&t->c, "HTTP/1.1 101 ");
	assert_non_null(t->w);
}

#define ORIGIN(o) "GET /ws HTTP/1.1\r\n" H UPGRADE KEY "Origin: " o "\r\n\r\n"

static void pages_of_other_sites_are_refused(void **state)
{
	static const char *const allowed[] = { "https://friend.example", NULL };
	static const struct {
		const char *request;
		bool good;
	} rows[] = {
		{ ORIGIN("http://a:80"), true },
		{ ORIGIN("http://A"), true }, /* the port is the scheme's own */
		{ ORIGIN("https://friend.example"), true },
		{ ORIGIN("https://FRIEND.example"), true },
		{ ORIGIN("http://a:81"), false },
		{ ORIGIN("http://b"), false },
		{ ORIGIN("http://a.evil"), false },
		{ ORIGIN("http://evil/a:80"), false },
		{ ORIGIN("null"), false },
		{ ORIGIN("file://"), false },
		{ ORIGIN("http://friend.example"), false },
		{ ORIGIN("http://a:80\r\nOrigin: http://b"), false },
	};
	struct test *t = *state;

	t->o.origins = allowed;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct net_client c;

		net_client_open(&c, &t->g);
		net_client_puts(&c, rows[i].request);
		net_client_until(&c, rows[i].good ? "HTTP/1.1 101 " : "HTTP/1.1 403 ");
		assert_int_equal(t->w != NULL, rows[i].good);
		t->closed = !rows[i].good;
		net_client_close(&c);
		net_rig_until(&t->g, &t->closed);
		t->closed = false;
	}
}

static void our_best_protocol_is_chosen(void **state)
{
	static const char *const ours[] = { "holt.v2", "holt.v1", NULL };
	struct test *t = *state;
	struct net_client c;

	t->o.protocols = ours;
	net_client_open(&c, &t->g);
	net_client_puts(&c, "GET /ws HTTP/1.1\r\n" H UPGRADE KEY
			    "Sec-WebSocket-Protocol: x, holt.v1 , holt.v2\r\n\r\n");
	net_client_until(&c, "\r\nSec-WebSocket-Protocol: holt.v2\r\n");
	assert_string_equal(ws_protocol(t->w), "holt.v2");
	net_client_close(&c);
	net_rig_until(&t->g, &t->closed);
	net_client_puts(&t->c, "GET /ws HTTP/1.1\r\n" H UPGRADE KEY
			       "Sec-WebSocket-Protocol: other\r\n\r\n");
	net_client_until(&t->c, "HTTP/1.1 400 ");
}

static void messages_go_both_ways(void **state)
{
	struct test *t = *state;

	open_socket(t);
	send_frame(t, FIN | TEXT, "hello \xc3\xa4", 8);
	send_frame(t, FIN | BINARY, "\x00\xff", 2);
	send_frame(t, FIN | TEXT, "", 0);
	for (int i = 0; i < 1000 && t->messages < 3; i++)
		net_rig_run_ms(&t->g, 1);
	assert_int_equal(t->got.len, 11 + 5 + 3);
	assert_memory_equal(t->got.data, "t:hello \xc3\xa4\nb:\x00\xff\nt:\n", 19);
	assert_true(ws_send_text(t->w, "world", 5) > 0);
	assert_true(ws_send_binary(t->w, "\x00\x01", 2) > 0);
	want_frame(t, FIN | TEXT, "world", 5);
	want_frame(t, FIN | BINARY, "\x00\x01", 2);
	assert_int_equal(ws_send_text(t->w, "\xff", 1), -EINVAL);
}

static void frames_behind_the_handshake_in_one_piece_are_taken(void **state)
{
	struct test *t = *state;
	struct buf b = { 0 };

	(void)buf_puts(&b, OPEN);
	put_frame(&b, FIN | TEXT, "early", 5);
	net_client_send(&t->c, b.data, b.len);
	buf_done(&b);
	net_client_until(&t->c, "\r\n\r\n");
	for (int i = 0; i < 1000 && t->messages < 1; i++)
		net_rig_run_ms(&t->g, 1);
	assert_string_equal(buf_str(&t->got), "t:early\n");
}

static void frames_may_come_byte_by_byte(void **state)
{
	struct test *t = *state;
	struct buf b = { 0 };

	open_socket(t);
	put_frame(&b, TEXT, "he", 2);
	put_frame(&b, FIN | PING, "p", 1);
	put_frame(&b, FIN | CONT, "llo", 3);
	for (size_t i = 0; i < b.len; i++) {
		net_client_send(&t->c, b.data + i, 1);
		net_rig_run_ms(&t->g, 1);
	}
	want_frame(t, FIN | PONG, "p", 1);
	for (int i = 0; i < 5000 && t->messages < 1; i++)
		net_rig_run_ms(&t->g, 1);
	assert_string_equal(buf_str(&t->got), "t:hello\n");
	buf_done(&b);
}

static void a_message_may_be_of_the_limit_and_not_above(void **state)
{
	struct test *t = *state;
	char *data = malloc(1 << 20);

	assert_non_null(data);
	memset(data, 'x', 1 << 20);
	open_socket(t);
	send_frame(t, FIN | BINARY, data, 1 << 20); /* the default */
	for (int i = 0; i < 5000 && t->messages < 1; i++)
		net_rig_run_ms(&t->g, 1);
	assert_int_equal(t->got.len, (1 << 20) + 3);
	/* Its pieces count together. */
	send_frame(t, BINARY, data, 1 << 19);
	send_frame(t, CONT, data, 1 << 19);
	send_frame(t, FIN | CONT, data, 1);
	want_close(t, 1009);
	net_rig_until(&t->g, &t->closed);
	assert_int_equal(t->code, 1009);
	assert_int_equal(t->messages, 1);
	free(data);
}

static void a_frame_above_the_limit_is_refused_by_its_head(void **state)
{
	struct test *t = *state;

	open_socket(t);
	net_client_send(&t->c, "\x82\xff\x7f\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x00x", 15);
	want_close(t, 1009);
	net_rig_until(&t->g, &t->closed);
}

/* Each piece costs a hundred times the byte that it brings. */
static void a_message_in_too_many_pieces_is_refused(void **state)
{
	struct test *t = *state;
	struct buf b = { 0 };

	open_socket(t);
	put_frame(&b, TEXT, "x", 1);
	for (int i = 1; i < 4096; i++)
		put_frame(&b, i == 4095 ? FIN | CONT : CONT, "x", 1);
	put_frame(&b, FIN | PING, "p", 1);
	net_client_send(&t->c, b.data, b.len); /* as many as there may be */
	want_frame(t, FIN | PONG, "p", 1);
	assert_int_equal(t->messages, 1);
	assert_int_equal(t->got.len, 4096 + 3);
	buf_clear(&b);
	put_frame(&b, TEXT, "x", 1);
	for (int i = 0; i < 4096; i++) {
		put_frame(&b, CONT, "x", 1);
		put_frame(&b, FIN | PONG, "", 0); /* no piece of it */
	}
	put_frame(&b, FIN | CONT, "x", 1);
	net_client_send(&t->c, b.data, b.len);
	want_close(t, 1009);
	net_rig_until(&t->g, &t->closed);
	assert_int_equal(t->code, 1009);
	assert_int_equal(t->messages, 1);
	buf_done(&b);
}

static void broken_rules_end_with_their_code(void **state)
{
	static const struct {
		const char *bytes;
		size_t n;
		unsigned code;
	} rows[] = {
		{ "\x81\x02hi", 4, 1002 },                             /* not masked */
		{ "\x80\x80\x00\x00\x00\x00", 6, 1002 },               /* goes on with nothing */
		{ "\xc1\x80\x00\x00\x00\x00", 6, 1002 },               /* reserved bit */
		{ "\x83\x80\x00\x00\x00\x00", 6, 1002 },               /* no such kind */
		{ "\x09\x80\x00\x00\x00\x00", 6, 1002 },               /* a ping in pieces */
		{ "\x89\xfe\x00\x7e\x00\x00\x00\x00", 8, 1002 },       /* a ping of 126 */
		{ "\x81\xfe\x00\x05\x00\x00\x00\x00hello", 13, 1002 }, /* a longer length */
		{ "\x01\x80\x00\x00\x00\x00\x81\x80\x00\x00\x00\x00", 12,
		  1002 },                                                 /* one in another */
		{ "\x88\x81\x00\x00\x00\x00\x03", 7, 1002 },              /* half a code */
		{ "\x88\x82\x00\x00\x00\x00\x03\xed", 8, 1002 },          /* 1005 is never sent */
		{ "\x81\x82\x00\x00\x00\x00\xc3\x28", 8, 1007 },          /* no UTF-8 */
		{ "\x81\x81\x00\x00\x00\x00\xc3", 7, 1007 },              /* nor is half of it */
		{ "\x88\x84\x00\x00\x00\x00\x03\xe8\xff\xff", 10, 1007 }, /* nor in a reason */
		{ "\x88\x83\x00\x00\x00\x00\x03\xe8\xc3", 9, 1007 },      /* nor half of it there */
	};
	struct test *t = *state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		net_client_close(&t->c);
		net_client_open(&t->c, &t->g);
		t->closed = false;
		open_socket(t);
		net_client_send(&t->c, rows[i].bytes, rows[i].n);
		want_close(t, rows[i].code);
		net_rig_until(&t->g, &t->closed);
		assert_int_equal(t->code, rows[i].code);
		net_client_until_closed(&t->c);
	}
	assert_int_equal(t->messages, 0);
	assert_int_equal(t->status, 101);
}

static void utf8_may_be_cut_by_frames(void **state)
{
	struct test *t = *state;

	open_socket(t);
	send_frame(t, TEXT, "\xe2\x82", 2);
	send_frame(t, FIN | CONT, "\xac", 1);
	for (int i = 0; i < 1000 && t->messages < 1; i++)
		net_rig_run_ms(&t->g, 1);
	assert_string_equal(buf_str(&t->got), "t:\xe2\x82\xac\n");
}

static void the_client_says_goodbye(void **state)
{
	struct test *t = *state;

	open_socket(t);
	send_frame(t, FIN | CLOSE,
		   "\x0f\xa1"
		   "bye",
		   5);
	want_close(t, 4001);
	net_rig_until(&t->g, &t->closed);
	assert_int_equal(t->code, 4001);
	assert_string_equal(t->reason, "bye");
	net_client_until_closed(&t->c);
	assert_int_equal(t->reports, 1);
	assert_int_equal(t->status, 101);
}

static void a_goodbye_without_a_code_is_one(void **state)
{
	struct test *t = *state;

	open_socket(t);
	send_frame(t, FIN | CLOSE, "", 0);
	net_rig_until(&t->g, &t->closed);
	assert_int_equal(t->code, 1005);
}

static void we_say_goodbye_and_wait_for_the_answer(void **state)
{
	struct test *t = *state;

	open_socket(t);
	ws_close(t->w, 4002, "done");
	ws_close(t->w, 4003, "again"); /* does nothing */
	assert_false(t->closed);       /* never from within */
	assert_int_equal(ws_send_text(t->w, "x", 1), -EPIPE);
	want_close(t, 4002);
	net_rig_run_ms(&t->g, 20);
	assert_false(t->closed);
	send_frame(t, FIN | TEXT, "late", 4); /* nobody listens any more */
	send_frame(t, FIN | CLOSE, "\x0f\xa2", 2);
	net_rig_until(&t->g, &t->closed);
	assert_int_equal(t->code, 4002);
	assert_string_equal(t->reason, "done");
	assert_int_equal(t->messages, 0);
	net_client_until_closed(&t->c);
}

static void an_unanswered_goodbye_is_enough_in_the_end(void **state)
{
	struct test *t = *state;

	t->o.pong_ms = 50;
	open_socket(t);
	ws_close(t->w, 1000, NULL);
	net_rig_until(&t->g, &t->closed);
	assert_int_equal(t->code, 1000);
	net_client_until_closed(&t->c);
}

static void a_goodbye_may_be_said_in_a_message(void **state)
{
	struct test *t = *state;
	struct buf b = { 0 };

	t->close_in_message = true;
	open_socket(t);
	for (int i = 0; i < 5; i++)
		put_frame(&b, FIN | TEXT, "x", 1);
	put_frame(&b, FIN | CLOSE, "\x0f\xa0", 2);
	net_client_send(&t->c, b.data, b.len);
	buf_done(&b);
	net_rig_until(&t->g, &t->closed);
	assert_int_equal(t->messages, 1);
	assert_int_equal(t->code, 4000);
	want_close(t, 4000);
}

static void a_long_reason_is_cut_at_a_character(void **state)
{
	struct test *t = *state;
	char reason[201];

	for (int i = 0; i < 200; i += 2)
		memcpy(reason + i, "\xc3\xa4", 3);
	open_socket(t);
	ws_close(t->w, 1000, reason);
	net_client_until_len(&t->c, 126);
	assert_int_equal(t->c.got.len, 4 + 122);
}

static void a_broken_connection_is_told(void **state)
{
	struct test *t = *state;

	open_socket(t);
	net_client_close(&t->c);
	net_rig_until(&t->g, &t->closed);
	assert_int_equal(t->code, 1006);
	net_client_open(&t->c, &t->g);
}

static void a_quiet_client_is_pinged_and_lives_by_its_answer(void **state)
{
	struct test *t = *state;

	t->o.ping_ms = 50;
	t->o.pong_ms = 1000;
	open_socket(t);
	for (int i = 0; i < 4; i++) {
		want_frame(t, FIN | PING, "", 0);
		send_frame(t, FIN | PONG, "", 0);
	}
	assert_false(t->closed);
	net_rig_until(&t->g, &t->closed); /* and dies without */
	assert_int_equal(t->code, 1006);
}

static void paused_messages_come_later_and_in_order(void **state)
{
	struct test *t = *state;
	struct buf b = { 0 };

	t->pause = true;
	open_socket(t);
	put_frame(&b, FIN | TEXT, "one", 3);
	put_frame(&b, FIN | TEXT, "two", 3);
	put_frame(&b, FIN | TEXT, "three", 5);
	net_client_send(&t->c, b.data, b.len);
	for (unsigned i = 1; i <= 3; i++) {
		net_rig_run_ms(&t->g, 20);
		assert_int_equal(t->messages, i);
		ws_pause(t->w, false);
	}
	assert_string_equal(buf_str(&t->got), "t:one\nt:two\nt:three\n");
	net_rig_run_ms(&t->g, 20);
	assert_int_equal(t->messages, 3);
	/* Held ones are not leaked by an end, either. */
	net_client_send(&t->c, b.data, b.len);
	net_rig_run_ms(&t->g, 20);
	assert_int_equal(t->messages, 4);
	net_client_close(&t->c);
	net_rig_until(&t->g, &t->closed);
	net_client_open(&t->c, &t->g);
	buf_done(&b);
}

static void pending_output_is_bounded_and_its_end_told(void **state)
{
	struct test *t = *state;
	char *data = calloc(1, 100000);
	ssize_t n = 0;
	size_t sent = 0;

	assert_non_null(data);
	t->o.pending_max = 1 << 20;
	open_socket(t);
	net_client_read(&t->c, false);
	for (int i = 0; i < 1000 && n >= 0; i++) {
		n = ws_send_binary(t->w, data, 100000);
		sent += n >= 0 ? 100000 + 10 : 0;
	}
	assert_int_equal(n, -ENOBUFS);
	assert_int_equal(ws_send_binary(t->w, data, (1 << 20) + 1), -ENOBUFS);
	assert_true(ws_pending(t->w) <= (1 << 20) + 10);
	net_rig_run_ms(&t->g, 20);
	assert_false(t->closed); /* it is no reason to part */
	assert_false(t->drained);
	net_client_read(&t->c, true);
	net_rig_until(&t->g, &t->drained);
	net_client_until_len(&t->c, sent);
	assert_int_equal(t->c.got.len, sent);
	free(data);
}

static void who_pings_and_does_not_read_is_held_back(void **state)
{
	struct test *t = *state;
	char data[110] = "";
	struct buf b = { 0 };

	t->o.pending_max = 100000;
	open_socket(t);
	net_client_read(&t->c, false);
	for (int i = 0; i < 500; i++)
		put_frame(&b, FIN | PING, data, sizeof(data));
	for (int i = 0; i < 300; i++) {
		(void)net_client_send_some(&t->c, b.data, b.len);
		net_rig_run_ms(&t->g, 1);
	}
	assert_true(ws_pending(t->w) <= 100000 + 70000);
	assert_false(t->closed);
	buf_done(&b);
}

static void on_drained(void *user)
{
	*(bool *)user = true;
}

static void a_server_that_shuts_down_says_goodbye(void **state)
{
	struct test *t = *state;
	bool drained = false;

	open_socket(t);
	http_server_drain(t->g.server, 5000, on_drained, &drained);
	want_close(t, 1001);
	send_frame(t, FIN | CLOSE, "\x03\xe9", 2);
	net_rig_until(&t->g, &drained);
	assert_true(t->closed);
	assert_int_equal(t->code, 1001);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(the_handshake_is_answered_as_the_standard_says),
		T(handshakes_that_are_none_are_refused),
		T(header_tokens_may_stand_in_lists_and_any_case),
		T(pages_of_other_sites_are_refused),
		T(our_best_protocol_is_chosen),
		T(messages_go_both_ways),
		T(frames_behind_the_handshake_in_one_piece_are_taken),
		T(frames_may_come_byte_by_byte),
		T(a_message_may_be_of_the_limit_and_not_above),
		T(a_frame_above_the_limit_is_refused_by_its_head),
		T(a_message_in_too_many_pieces_is_refused),
		T(broken_rules_end_with_their_code),
		T(utf8_may_be_cut_by_frames),
		T(the_client_says_goodbye),
		T(a_goodbye_without_a_code_is_one),
		T(we_say_goodbye_and_wait_for_the_answer),
		T(an_unanswered_goodbye_is_enough_in_the_end),
		T(a_goodbye_may_be_said_in_a_message),
		T(a_long_reason_is_cut_at_a_character),
		T(a_broken_connection_is_told),
		T(a_quiet_client_is_pinged_and_lives_by_its_answer),
		T(paused_messages_come_later_and_in_order),
		T(pending_output_is_bounded_and_its_end_told),
		T(who_pings_and_does_not_read_is_held_back),
		T(a_server_that_shuts_down_says_goodbye),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
