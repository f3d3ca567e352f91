#include "net/http1.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "check.h"
#include "fault.h"
#include "net/http.h"

#define H "Host: a\r\n"
#define GET "GET / HTTP/1.1\r\n" H
#define POST "POST / HTTP/1.1\r\n" H
#define CHUNKED POST "Transfer-Encoding: chunked\r\n\r\n"
#define CASE(text) (text), sizeof(text) - 1

static const struct http_limits limits = {
	.line_max = 8192,
	.head_max = 32768,
	.headers_max = 100,
};

static void put_head(struct buf *out, const struct http1_head *h)
{
	(void)buf_printf(out, "%s %s ?%s %lld%s%s", h->method, h->path, h->query,
			 (long long)h->body_length, h->keep_alive ? "" : " close",
			 h->expects_continue ? " expects" : "");
	for (unsigned i = 0; i < h->count; i++)
		(void)buf_printf(out, " [%s=%s]", h->fields[i].name, h->fields[i].value);
	(void)buf_putc(out, '\n');
}

/* All events of the text, given in pieces of `size` bytes (the copies have the piece's exact size,
 * so that reading one byte too far is seen). Body pieces are joined. */
static char *events_of(const struct http_limits *l, const char *text, size_t n, size_t size)
{
	struct http1 *p = http1_create(l);
	struct buf out = { 0 };
	bool bad = false, in_body = false;

	assert_non_null(p);
	for (size_t off = 0; off < n && !bad; off += size) {
		size_t left = n - off < size ? n - off : size;
		char *copy = malloc(left);
		const char *data = copy;
		enum http1_event e;
		struct str body;

		assert_non_null(copy);
		memcpy(copy, text + off, left);
		while (!bad && (e = http1_next(p, &data, &left, &body)) != HTTP1_MORE) {
			if (in_body && e != HTTP1_DATA)
				(void)buf_puts(&out, ">\n");
			if (!in_body && e == HTTP1_DATA)
				(void)buf_puts(&out, "<");
			in_body = e == HTTP1_DATA;
			if (e == HTTP1_HEAD)
				put_head(&out, http1_head(p));
			else if (e == HTTP1_DATA)
				(void)buf_append(&out, body.data, body.len);
			else if (e == HTTP1_END)
				(void)buf_puts(&out, "end\n");
			bad = e == HTTP1_BAD;
		}
		assert_true(bad || left == 0);
		free(copy);
	}
	if (bad) {
		(void)buf_printf(&out, "bad %d\n", http1_status(p));
		assert_true(strlen(http1_reason(p)) > 5);
	} else if (!http1_is_idle(p)) {
		(void)buf_puts(&out, "more\n");
	}
	p = http1_free(p);
	assert_false(out.failed);
	return buf_take(&out);
}

/* The same whole, byte by byte, and cut in two everywhere. */
static void check_events(const struct http_limits *l, const char *text, size_t n, const char *want)
{
	for (size_t size = 1; size <= n; size = size < 200 ? size + 1 : size < n ? n : n + 1) {
		char *got = events_of(l, text, n, size);

		if (!got || strcmp(got, want) != 0)
			fail_msg("in pieces of %zu: %s\ngot  %s\nwant %s", size, text, got, want);
		free(got);
	}
}

struct row {
	const char *text;
	size_t n;
	const char *want;
};

static void check_rows(const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++)
		check_events(&limits, rows[i].text, rows[i].n, rows[i].want);
}

#define CHECK(rows) check_rows(rows, sizeof(rows) / sizeof((rows)[0]))

static void good_requests_are_read_the_same_however_they_are_cut(void **state)
{
	static const struct row rows[] = {
		{ CASE(GET "\r\n"), "GET / ? 0 [Host=a]\nend\n" },
		{ CASE("GET /a/b?c=d&e HTTP/1.1\r\nHost: a:80\r\nX-Y:  z \t \r\n\r\n"),
		  "GET /a/b ?c=d&e 0 [Host=a:80] [X-Y=z]\nend\n" },
		{ CASE("GET /?a?b HTTP/1.1\r\n" H "\r\n"), "GET / ?a?b 0 [Host=a]\nend\n" },
		{ CASE(GET "Empty:\r\n\r\n"), "GET / ? 0 [Host=a] [Empty=]\nend\n" },
		{ CASE(GET "X: \x80\xff"
			   "ok\r\n\r\n"),
		  "GET / ? 0 [Host=a] [X=\x80\xff"
		  "ok]\nend\n" },
		{ CASE(POST "Content-Length: 5\r\n\r\nhello"),
		  "POST / ? 5 [Host=a] [Content-Length=5]\n<hello>\nend\n" },
		{ CASE(POST "Content-Length: 0\r\n\r\n"),
		  "POST / ? 0 [Host=a] [Content-Length=0]\nend\n" },
		{ CASE(CHUNKED "5\r\nhello\r\n0006\r\n world\r\n0\r\n\r\n"),
		  "POST / ? -1 [Host=a] [Transfer-Encoding=chunked]\n<hello world>\nend\n" },
		{ CASE(POST "transfer-encoding: CHUNKED\r\n\r\n0\r\n\r\n"),
		  "POST / ? -1 [Host=a] [transfer-encoding=CHUNKED]\nend\n" },
		{ CASE(CHUNKED "A;name=value;other=\"q\"\r\n0123456789\r\n0\r\n\r\n"),
		  "POST / ? -1 [Host=a] [Transfer-Encoding=chunked]\n<0123456789>\nend\n" },
		{ CASE(GET "Connection: close\r\n\r\n"),
		  "GET / ? 0 close [Host=a] [Connection=close]\nend\n" },
		{ CASE(POST "Expect: 100-Continue\r\nContent-Length: 1\r\n\r\nx"),
		  "POST / ? 1 expects [Host=a] [Expect=100-Continue] "
		  "[Content-Length=1]\n<x>\nend\n" },
		{ CASE(GET "Expect: 100-continue\r\n\r\n"),
		  "GET / ? 0 [Host=a] [Expect=100-continue]\nend\n" },
		{ CASE("OPTIONS * HTTP/1.1\r\n" H "\r\n"), "OPTIONS * ? 0 [Host=a]\nend\n" },
		{ CASE("\r\n\r\n" GET "\r\n"), "GET / ? 0 [Host=a]\nend\n" },
		{ CASE(GET), "more\n" },
		{ CASE("G"), "more\n" },
	};

	(void)state;
	CHECK(rows);
}

static void absolute_targets_must_name_the_host(void **state)
{
	static const struct row rows[] = {
		{ CASE("GET http://a/x?y HTTP/1.1\r\n" H "\r\n"), "GET /x ?y 0 [Host=a]\nend\n" },
		{ CASE("GET HTTPS://A/x HTTP/1.1\r\n" H "\r\n"), "GET /x ? 0 [Host=a]\nend\n" },
		{ CASE("GET http://a HTTP/1.1\r\n" H "\r\n"), "GET / ? 0 [Host=a]\nend\n" },
		{ CASE("GET http://a?y HTTP/1.1\r\n" H "\r\n"), "GET / ?y 0 [Host=a]\nend\n" },
		{ CASE("GET http://b/x HTTP/1.1\r\n" H "\r\n"), "bad 400\n" },
		{ CASE("GET http://a:80/x HTTP/1.1\r\n" H "\r\n"), "bad 400\n" },
		{ CASE("GET http://u@a/x HTTP/1.1\r\n" H "\r\n"), "bad 400\n" },
		{ CASE("GET ftp://a/x HTTP/1.1\r\n" H "\r\n"), "bad 400\n" },
		{ CASE("GET * HTTP/1.1\r\n" H "\r\n"), "bad 400\n" },
	};

	(void)state;
	CHECK(rows);
}

static void pipelined_requests_come_one_by_one(void **state)
{
	static const struct row rows[] = {
		{ CASE(GET "\r\n" POST "Content-Length: 2\r\n\r\nab" CHUNKED
			   "1\r\nc\r\n0\r\nTrailer: dropped\r\n\r\n" GET "\r\n"),
		  "GET / ? 0 [Host=a]\nend\n"
		  "POST / ? 2 [Host=a] [Content-Length=2]\n<ab>\nend\n"
		  "POST / ? -1 [Host=a] [Transfer-Encoding=chunked]\n<c>\nend\n"
		  "GET / ? 0 [Host=a]\nend\n" },
		{ CASE(GET "Connection: close\r\n\r\n" GET "\r\n"),
		  "GET / ? 0 close [Host=a] [Connection=close]\nend\nbad 400\n" },
	};

	(void)state;
	CHECK(rows);
}

static void an_upgrade_that_nobody_takes_is_plain_http(void **state)
{
	static const struct row rows[] = {
		{ CASE(GET "Connection: Upgrade\r\nUpgrade: h2c\r\n\r\n" GET "\r\n"),
		  "GET / ? 0 [Host=a] [Connection=Upgrade] [Upgrade=h2c]\nend\n"
		  "GET / ? 0 [Host=a]\nend\n" },
		{ CASE(POST "Connection: Upgrade\r\nUpgrade: x\r\nContent-Length: 3\r\n\r\nabc" GET
			    "\r\n"),
		  "POST / ? 3 [Host=a] [Connection=Upgrade] [Upgrade=x] [Content-Length=3]\n"
		  "<abc>\nend\nGET / ? 0 [Host=a]\nend\n" },
	};

	(void)state;
	CHECK(rows);
}

/* Each of these was read differently by two servers in a row once. */
static void a_body_has_one_length_or_the_request_is_refused(void **state)
{
	static const struct row rows[] = {
		{ CASE(POST "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
		  "bad 400\n" },
		{ CASE(POST "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n"),
		  "bad 400\n" },
		{ CASE(POST "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello"), "bad 400\n" },
		{ CASE(POST "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello"), "bad 400\n" },
		{ CASE(POST "Content-Length: 5, 5\r\n\r\nhello"), "bad 400\n" },
		{ CASE(POST "Content-Length: 5 5\r\n\r\nhello"), "bad 400\n" },
		{ CASE(POST "Content-Length: +5\r\n\r\nhello"), "bad 400\n" },
		{ CASE(POST "Content-Length: -5\r\n\r\nhello"), "bad 400\n" },
		{ CASE(POST "Content-Length: 0x5\r\n\r\nhello"), "bad 400\n" },
		{ CASE(POST "Content-Length: 5.0\r\n\r\nhello"), "bad 400\n" },
		{ CASE(POST "Content-Length: 05\r\n\r\nhello"), "bad 400\n" },
		{ CASE(POST "Content-Length: 5;\r\n\r\nhello"), "bad 400\n" },
		{ CASE(POST "Content-Length: \r\n\r\nhello"), "bad 400\n" },
		{ CASE(POST "Content-Length: five\r\n\r\nhello"), "bad 400\n" },
		{ CASE(POST "Content-Length: 5\x0b\r\n\r\nhello"), "bad 400\n" },
		{ CASE(POST "Content-Length: 18446744073709551616\r\n\r\nhello"), "bad 400\n" },
		{ CASE(POST "Content-Length: 9999999999999999999\r\n\r\nhello"), "bad 400\n" },
		{ CASE(POST "Content-Length\r\n\r\nhello"), "bad 400\n" },
		{ CASE(POST "Content-Length : 5\r\n\r\nhello"), "bad 400\n" },
		{ CASE(POST "Content-Length: 5\r\n 6\r\n\r\nhello"), "bad 400\n" },
	};

	(void)state;
	CHECK(rows);
}

static void only_plain_chunked_is_a_transfer_encoding(void **state)
{
	static const struct row rows[] = {
		{ CASE(POST "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"), "bad 501\n" },
		{ CASE(POST "Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n"), "bad 400\n" },
		{ CASE(POST "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n"), "bad 400\n" },
		{ CASE(POST "Transfer-Encoding: identity\r\n\r\n0\r\n\r\n"), "bad 501\n" },
		{ CASE(POST "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"), "bad 501\n" },
		{ CASE(POST "Transfer-Encoding: chunkedx\r\n\r\n0\r\n\r\n"), "bad 501\n" },
		{ CASE(POST "Transfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n"), "bad 501\n" },
		{ CASE(POST "Transfer-Encoding: chunked;q=1\r\n\r\n0\r\n\r\n"), "bad 501\n" },
		{ CASE(POST "Transfer-Encoding: ,chunked\r\n\r\n0\r\n\r\n"), "bad 501\n" },
		{ CASE(POST "Transfer-Encoding:\r\n\r\n0\r\n\r\n"), "bad 501\n" },
		{ CASE(POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n"
			    "\r\n"),
		  "bad 400\n" },
		{ CASE(POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n0\r\n\r\n"),
		  "bad 400\n" },
		{ CASE(POST "Transfer-Encoding:\x0b"
			    "chunked\r\n\r\n0\r\n\r\n"),
		  "bad 400\n" },
		{ CASE(POST "Transfer-Encoding: \x00"
			    "chunked\r\n\r\n0\r\n\r\n"),
		  "bad 400\n" },
		{ CASE(POST "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n"), "bad 400\n" },
		{ CASE(POST "Transfer-Encoding\t: chunked\r\n\r\n0\r\n\r\n"), "bad 400\n" },
		{ CASE(POST " Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), "bad 400\n" },
		{ CASE(POST "X: y\r\n Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), "bad 400\n" },
		{ CASE(POST "X: y\rTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), "bad 400\n" },
		{ CASE(POST "X: y\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), "bad 400\n" },
		{ CASE(POST "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n"), "bad 400\n" },
	};

	(void)state;
	CHECK(rows);
}

#define CHUNK_HEAD "POST / ? -1 [Host=a] [Transfer-Encoding=chunked]\n"

static void chunks_have_one_spelling(void **state)
{
	static const struct row rows[] = {
		{ CASE(CHUNKED "5\nhello\r\n0\r\n\r\n"), CHUNK_HEAD "bad 400\n" },
		{ CASE(CHUNKED "5\rhello\r\n0\r\n\r\n"), CHUNK_HEAD "bad 400\n" },
		{ CASE(CHUNKED "0x5\r\nhello\r\n0\r\n\r\n"), CHUNK_HEAD "bad 400\n" },
		{ CASE(CHUNKED "+5\r\nhello\r\n0\r\n\r\n"), CHUNK_HEAD "bad 400\n" },
		{ CASE(CHUNKED "-5\r\nhello\r\n0\r\n\r\n"), CHUNK_HEAD "bad 400\n" },
		{ CASE(CHUNKED " 5\r\nhello\r\n0\r\n\r\n"), CHUNK_HEAD "bad 400\n" },
		{ CASE(CHUNKED "5 \r\nhello\r\n0\r\n\r\n"), CHUNK_HEAD "bad 400\n" },
		{ CASE(CHUNKED "\r\nhello\r\n0\r\n\r\n"), CHUNK_HEAD "bad 400\n" },
		{ CASE(CHUNKED ";a\r\nhello\r\n0\r\n\r\n"), CHUNK_HEAD "bad 400\n" },
		{ CASE(CHUNKED "5g\r\nhello\r\n0\r\n\r\n"), CHUNK_HEAD "bad 400\n" },
		{ CASE(CHUNKED "10000000000000005\r\nhello\r\n0\r\n\r\n"), CHUNK_HEAD "bad 400\n" },
		{ CASE(CHUNKED "ffffffffffffffff1\r\nhello\r\n"), CHUNK_HEAD "bad 400\n" },
		{ CASE(CHUNKED "5;a\nhello\r\n0\r\n\r\n"), CHUNK_HEAD "bad 400\n" },
		{ CASE(CHUNKED "5;a=\x01\r\nhello\r\n0\r\n\r\n"), CHUNK_HEAD "bad 400\n" },
		{ CASE(CHUNKED "5\r\nhelloX\r\n0\r\n\r\n"), CHUNK_HEAD "<hello>\nbad 400\n" },
		{ CASE(CHUNKED "5\r\nhello\n0\r\n\r\n"), CHUNK_HEAD "<hello>\nbad 400\n" },
		{ CASE(CHUNKED "5\r\nhello0\r\n\r\n"), CHUNK_HEAD "<hello>\nbad 400\n" },
		{ CASE(CHUNKED "0\r\nContent-Length: 5\r\n\r\nhello"), CHUNK_HEAD "bad 400\n" },
		{ CASE(CHUNKED "0\r\nX: a\x01\r\n\r\n"), CHUNK_HEAD "bad 400\n" },
		{ CASE(CHUNKED "0\r\nX : a\r\n\r\n"), CHUNK_HEAD "bad 400\n" },
		{ CASE(CHUNKED "0\r\n\nGET / HTTP/1.1\r\n"), CHUNK_HEAD "bad 400\n" },
	};

	(void)state;
	CHECK(rows);
}

static void lines_end_with_cr_and_lf(void **state)
{
	static const struct row rows[] = {
		{ CASE("GET / HTTP/1.1\nHost: a\r\n\r\n"), "bad 400\n" },
		{ CASE("GET / HTTP/1.1\rHost: a\r\n\r\n"), "bad 400\n" },
		{ CASE("GET / HTTP/1.1\r\nHost: a\n\r\n"), "bad 400\n" },
		{ CASE("GET / HTTP/1.1\r\nHost: a\r\n\n"), "bad 400\n" },
		{ CASE("GET / HTTP/1.1\r\nHost: a\r\r\n\r\n"), "bad 400\n" },
		{ CASE("GET / HTTP/1.1\r\nHost: a\n\nGET /2 HTTP/1.1\r\n"), "bad 400\n" },
	};

	(void)state;
	CHECK(rows);
}

static void headers_are_text_without_folds_and_blanks(void **state)
{
	static const struct row rows[] = {
		{ CASE(GET "X: a\r\n b\r\n\r\n"), "bad 400\n" },
		{ CASE(GET "X: a\r\n\tb\r\n\r\n"), "bad 400\n" },
		{ CASE(GET "X: a\x00"
			   "b\r\n\r\n"),
		  "bad 400\n" },
		{ CASE(GET "X: a\x01\r\n\r\n"), "bad 400\n" },
		{ CASE(GET "X: a\x7f\r\n\r\n"), "bad 400\n" },
		{ CASE(GET "X: a\x1b[2J\r\n\r\n"), "bad 400\n" },
		{ CASE(GET "X y: a\r\n\r\n"), "bad 400\n" },
		{ CASE(GET "X\x00y: a\r\n\r\n"), "bad 400\n" },
		{ CASE(GET "X\x80: a\r\n\r\n"), "bad 400\n" },
		{ CASE(GET "(x): a\r\n\r\n"), "bad 400\n" },
		{ CASE(GET ": a\r\n\r\n"), "bad 400\n" },
		{ CASE(GET "noColon\r\n\r\n"), "bad 400\n" },
		{ CASE("GET / HTTP/1.1\r\n " H "\r\n"), "bad 400\n" },
	};

	(void)state;
	CHECK(rows);
}

static void there_is_one_plausible_host(void **state)
{
	static const struct row rows[] = {
		{ CASE("GET / HTTP/1.1\r\n\r\n"), "bad 400\n" },
		{ CASE("GET / HTTP/1.1\r\nHost:\r\n\r\n"), "bad 400\n" },
		{ CASE(GET H "\r\n"), "bad 400\n" },
		{ CASE(GET "Host: b\r\n\r\n"), "bad 400\n" },
		{ CASE("GET / HTTP/1.1\r\nHost: a b\r\n\r\n"), "bad 400\n" },
		{ CASE("GET / HTTP/1.1\r\nHost: a,b\r\n\r\n"), "bad 400\n" },
		{ CASE("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n"), "bad 400\n" },
		{ CASE("GET / HTTP/1.1\r\nHost: u@a\r\n\r\n"), "bad 400\n" },
		{ CASE("GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n"),
		  "GET / ? 0 [Host=[::1]:80]\nend\n" },
	};

	(void)state;
	CHECK(rows);
}

static void other_versions_and_methods_are_not_spoken(void **state)
{
	static const struct row rows[] = {
		{ CASE("GET / HTTP/1.0\r\n" H "\r\n"), "bad 505\n" },
		{ CASE("GET / HTTP/2.0\r\n" H "\r\n"), "bad 505\n" },
		{ CASE("GET / HTTP/0.9\r\n" H "\r\n"), "bad 505\n" },
		{ CASE("GET / HTTP/1.2\r\n" H "\r\n"), "bad 505\n" },
		{ CASE("GET /\r\n\r\n"), "bad 505\n" },
		{ CASE("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), "bad 505\n" },
		{ CASE("GET / http/1.1\r\n" H "\r\n"), "bad 400\n" },
		{ CASE("GET / HTTP/1.1 \r\n" H "\r\n"), "bad 400\n" },
		{ CASE("GET / HTTP/1.1x\r\n" H "\r\n"), "bad 400\n" },
		{ CASE("BREW / HTTP/1.1\r\n" H "\r\n"), "bad 501\n" },
		{ CASE("get / HTTP/1.1\r\n" H "\r\n"), "bad 501\n" },
		{ CASE("CONNECT a:80 HTTP/1.1\r\n" H "\r\n"), "bad 501\n" },
		{ CASE(GET "Expect: a-miracle\r\n\r\n"), "bad 417\n" },
		{ CASE("\x16\x03\x01\x02\x00\x01\x00"), "bad 501\n" },
	};

	(void)state;
	CHECK(rows);
}

static void the_request_line_has_two_blanks_and_each_is_one(void **state)
{
	static const struct row rows[] = {
		{ CASE("GET  / HTTP/1.1\r\n" H "\r\n"), "bad 400\n" },
		{ CASE("GET /  HTTP/1.1\r\n" H "\r\n"), "bad 400\n" },
		{ CASE("GET   /   HTTP/1.1\r\n" H "\r\n"), "bad 400\n" },
		{ CASE("\r\nGET  / HTTP/1.1\r\n" H "\r\n"), "bad 400\n" },
		{ CASE("GET  / HTTP/1.0\r\n" H "\r\n"), "bad 400\n" },
		{ CASE(GET "\r\nGET  / HTTP/1.1\r\n" H "\r\n"),
		  "GET / ? 0 [Host=a]\nend\nbad 400\n" },
		{ CASE(POST "Content-Length: 4\r\n\r\na  bGET /  HTTP/1.1\r\n" H "\r\n"),
		  "POST / ? 4 [Host=a] [Content-Length=4]\n<a  b>\nend\nbad 400\n" },
		{ CASE("GET / HTTP/1.1\r\n" H "X: a  b\r\n\r\n"),
		  "GET / ? 0 [Host=a] [X=a  b]\nend\n" },
	};

	(void)state;
	CHECK(rows);
}

static void targets_are_visible_ascii(void **state)
{
	static const struct row rows[] = {
		{ CASE("GET /\x80 HTTP/1.1\r\n" H "\r\n"), "bad 400\n" },
		{ CASE("GET /a#b HTTP/1.1\r\n" H "\r\n"), "bad 400\n" },
		{ CASE("GET /a\tb HTTP/1.1\r\n" H "\r\n"), "bad 400\n" },
		{ CASE("GET /a\x00 HTTP/1.1\r\n" H "\r\n"), "bad 400\n" },
		{ CASE("GET /?\x01 HTTP/1.1\r\n" H "\r\n"), "bad 400\n" },
		{ CASE("GET /?\x7f HTTP/1.1\r\n" H "\r\n"), "bad 400\n" },
	};

	(void)state;
	CHECK(rows);
}

/* The outcome's first line, for a request with n times the filler in the middle. */
static void check_sized(const struct http_limits *l, const char *before, const char *filler,
			size_t n, const char *behind, const char *want)
{
	struct buf b = { 0 };
	char *got;

	(void)buf_puts(&b, before);
	for (size_t i = 0; i < n; i++)
		(void)buf_puts(&b, filler);
	(void)buf_puts(&b, behind);
	for (size_t size = b.len; size > 0; size = size == b.len ? 7 : 0) {
		got = events_of(l, b.data, b.len, size);
		if (strncmp(got, want, strlen(want)) != 0)
			fail_msg("%zu x %s: got %.60s", n, filler, got);
		free(got);
	}
	buf_done(&b);
}

static void the_request_line_has_a_limit(void **state)
{
	static const struct http_limits l = { .line_max = 100, .head_max = 1000, .headers_max = 5 };

	/* "GET " and " HTTP/1.1" are 13 bytes, the slash is one. */
	(void)state;
	check_sized(&l, "GET /", "x", 86, " HTTP/1.1\r\n" H "\r\n", "GET /xxx");
	check_sized(&l, "GET /", "x", 87, " HTTP/1.1\r\n" H "\r\n", "bad 414");
	check_sized(&l, "GET /", "x", 5000, "", "bad 414");
}

static void heads_have_a_limit(void **state)
{
	static const struct http_limits l = { .line_max = 100, .head_max = 1000, .headers_max = 5 };

	(void)state;
	check_sized(&l, GET "X: ", "y", 900, "\r\n\r\n", "GET /");
	check_sized(&l, GET "X: ", "y", 1000, "\r\n\r\n", "bad 431");
	check_sized(&l, GET, "y", 5000, "", "bad 431"); /* a name that never ends */
	check_sized(&l, "", "\r\n", 300, GET "\r\n", "GET /");
	check_sized(&l, "", "\r\n", 5000, "", "bad 431");    /* blank lines in front */
	check_sized(&l, GET "X:", " ", 5000, "", "bad 431"); /* blanks that are not kept */
}

static void headers_are_counted(void **state)
{
	static const struct http_limits l = { .line_max = 100, .head_max = 1000, .headers_max = 5 };

	(void)state;
	check_sized(&l, GET, "X: y\r\n", 4, "\r\n", "GET /");
	check_sized(&l, GET, "X: y\r\n", 5, "\r\n", "bad 431");
	check_sized(&limits, GET, "X: y\r\n", 99, "\r\n", "GET /");
	check_sized(&limits, GET, "X: y\r\n", 100, "\r\n", "bad 431");
}

static void trailers_and_extensions_have_limits(void **state)
{
	static const struct http_limits l = { .line_max = 100, .head_max = 1000, .headers_max = 5 };

	(void)state;
	check_sized(&l, CHUNKED "0\r\n", "X: y\r\n", 5, "\r\n", CHUNK_HEAD "end");
	check_sized(&l, CHUNKED "0\r\n", "X: y\r\n", 6, "\r\n", CHUNK_HEAD "bad 431");
	check_sized(&l, CHUNKED "0\r\nX: ", "y", 5000, "\r\n\r\n", CHUNK_HEAD "bad 431");
	check_sized(&l, CHUNKED "1;", "e", 256, "\r\nx\r\n0\r\n\r\n", CHUNK_HEAD "<x>\nend");
	check_sized(&l, CHUNKED "1;", "e", 257, "\r\nx\r\n0\r\n\r\n", CHUNK_HEAD "bad 400");
	check_sized(&l, CHUNKED "1;a=", "e", 256, "\r\nx\r\n0\r\n\r\n", CHUNK_HEAD "bad 400");
	check_sized(&l, CHUNKED "1;", "e;", 257, "\r\nx\r\n0\r\n\r\n", CHUNK_HEAD "bad 400");
}

static void a_refused_connection_stays_refused(void **state)
{
	static const char text[] = "BAD\r\n\r\n" GET "\r\n";
	struct http1 *p = http1_create(&limits);
	const char *data = text;
	size_t n = sizeof(text) - 1;
	struct str body;

	(void)state;
	assert_int_equal(http1_next(p, &data, &n, &body), HTTP1_BAD);
	data = GET "\r\n";
	n = strlen(data);
	assert_int_equal(http1_next(p, &data, &n, &body), HTTP1_BAD);
	p = http1_free(p);
}

static void header_names_are_found_in_any_case(void **state)
{
	static const char text[] = GET "X-One: 1\r\nx-one: 2\r\n\r\n";
	struct http1 *p = http1_create(&limits);
	const char *data = text;
	size_t n = sizeof(text) - 1;
	struct str body;

	(void)state;
	assert_int_equal(http1_next(p, &data, &n, &body), HTTP1_HEAD);
	assert_string_equal(http1_header(http1_head(p), "x-ONE"), "1");
	assert_null(http1_header(http1_head(p), "x-on"));
	p = http1_free(p);
}

static int parse_many_headers(void *arg)
{
	struct http1 *p = http1_create(&limits);
	struct buf *text = arg;
	const char *data = text->data;
	size_t n = text->len;
	struct str body;
	enum http1_event e;

	if (!p)
		return -12;
	e = http1_next(p, &data, &n, &body);
	if (e == HTTP1_BAD)
		assert_int_equal(http1_status(p), 500);
	p = http1_free(p);
	return e == HTTP1_HEAD ? 0 : -12;
}

static void no_memory_is_an_answer(void **state)
{
	struct buf b = { 0 };

	(void)state;
	(void)buf_puts(&b, GET);
	for (int i = 0; i < 60; i++)
		(void)buf_puts(&b, "Some-Header-Name: some header value of some length\r\n");
	(void)buf_puts(&b, "\r\n");
	assert_true(fault_each(parse_many_headers, &b) > 5);
	buf_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_requests_are_read_the_same_however_they_are_cut),
		cmocka_unit_test(absolute_targets_must_name_the_host),
		cmocka_unit_test(pipelined_requests_come_one_by_one),
		cmocka_unit_test(an_upgrade_that_nobody_takes_is_plain_http),
		cmocka_unit_test(a_body_has_one_length_or_the_request_is_refused),
		cmocka_unit_test(only_plain_chunked_is_a_transfer_encoding),
		cmocka_unit_test(chunks_have_one_spelling),
		cmocka_unit_test(lines_end_with_cr_and_lf),
		cmocka_unit_test(headers_are_text_without_folds_and_blanks),
		cmocka_unit_test(there_is_one_plausible_host),
		cmocka_unit_test(other_versions_and_methods_are_not_spoken),
		cmocka_unit_test(the_request_line_has_two_blanks_and_each_is_one),
		cmocka_unit_test(targets_are_visible_ascii),
		cmocka_unit_test(the_request_line_has_a_limit),
		cmocka_unit_test(heads_have_a_limit),
		cmocka_unit_test(headers_are_counted),
		cmocka_unit_test(trailers_and_extensions_have_limits),
		cmocka_unit_test(a_refused_connection_stays_refused),
		cmocka_unit_test(header_names_are_found_in_any_case),
		cmocka_unit_test(no_memory_is_an_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
