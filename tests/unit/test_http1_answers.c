/* Answers of a server that is not trusted: what is told of them, whole and in pieces. */
#include "net/http1.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "check.h"
#include "net/http.h"

#define OK "HTTP/1.1 200 OK\r\n"

static const struct http_limits limits = { .line_max = 500, .head_max = 2000, .headers_max = 20 };

static void note(struct buf *out, struct http1 *p, enum http1_event e, struct str body)
{
	const struct http1_head *h = http1_head(p);

	if (e == HTTP1_HEAD)
		(void)buf_printf(out, "%d %lld%s|", h->status, (long long)h->body_length,
				 h->keep_alive ? "" : " close");
	else if (e == HTTP1_DATA)
		(void)buf_append(out, body.data, body.len);
	else if (e == HTTP1_END)
		(void)buf_puts(out, "|END ");
	else if (e == HTTP1_BAD)
		(void)buf_puts(out, "BAD");
}

/* The events of the text, given in pieces of that size, and then its connection's end. */
static char *events_of(const char *text, size_t size, bool is_head)
{
	struct http1 *p = http1_create_answers(&limits);
	enum http1_event e = HTTP1_MORE;
	struct buf out = { 0 };
	size_t n = strlen(text);

	assert_non_null(p);
	http1_expect(p, is_head);
	for (size_t off = 0; off < n && e != HTTP1_BAD; off += size) {
		size_t left = n - off < size ? n - off : size;
		const char *data = text + off;
		struct str body = { 0 };

		while ((e = http1_next(p, &data, &left, &body)) != HTTP1_MORE && e != HTTP1_BAD)
			note(&out, p, e, body);
		if (e == HTTP1_BAD)
			note(&out, p, e, body);
	}
	if (e != HTTP1_BAD)
		note(&out, p, http1_finish(p), (struct str){ 0 });
	(void)http1_free(p);
	(void)buf_puts(&out, "");
	return buf_take(&out);
}

static void expect(const char *text, bool is_head, const char *want)
{
	for (size_t size = 1; size <= 1000; size += size < 8 ? 1 : 331) {
		char *got = events_of(text, size, is_head);

		assert_string_equal(got ? got : "", want);
		free(got);
	}
}

static void bodies_end_as_they_say(void **state)
{
	(void)state;
	expect(OK "Content-Length: 5\r\n\r\nhello", false, "200 5|hello|END ");
	expect(OK "Transfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n", false,
	       "200 -1|hello|END ");
	expect(OK "\r\nup to the end", false, "200 -1 close|up to the end|END ");
	expect("HTTP/1.0 200 OK\r\n\r\nold", false, "200 -1 close|old|END ");
}

static void answers_without_a_body_have_none(void **state)
{
	(void)state;
	expect(OK "Content-Length: 5\r\n\r\n", true, "200 5||END ");
	expect("HTTP/1.1 204 No\r\n\r\n", false, "204 -1||END ");
	expect("HTTP/1.1 304 No\r\nContent-Length: 9\r\n\r\n", false, "304 9||END ");
}

static void interim_answers_are_messages_of_their_own(void **state)
{
	(void)state;
	expect("HTTP/1.1 100 Continue\r\n\r\n" OK "Content-Length: 1\r\n\r\nx", false,
	       "100 -1||END 200 1|x|END ");
}

static void what_ends_too_early_is_bad(void **state)
{
	(void)state;
	expect(OK "Content-Length: 5\r\n\r\nhel", false, "200 5|helBAD");
	expect(OK "Transfer-Encoding: chunked\r\n\r\n5\r\nhel", false, "200 -1|helBAD");
	expect(OK "Content-", false, "BAD");
}

static void what_two_could_read_differently_is_bad(void **state)
{
	(void)state;
	expect(OK "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", false, "BAD");
	expect(OK "Content-Length: 5\r\nContent-Length: 5\r\n\r\n", false, "BAD");
	expect(OK "Content-Length: +5\r\n\r\n", false, "BAD");
	expect(OK "Transfer-Encoding: gzip, chunked\r\n\r\n", false, "BAD");
	expect(OK "X: a\rb\r\n\r\n", false, "BAD");
	expect("HTTP/1.1 999 No\r\n\r\n", false, "BAD");
	expect("HTTP/2.0 200 OK\r\n\r\n", false, "BAD");
}

static void heads_are_bounded(void **state)
{
	struct buf b = { 0 };
	char *got;

	(void)state;
	(void)buf_puts(&b, OK);
	for (int i = 0; i < 21; i++)
		(void)buf_puts(&b, "X: a\r\n");
	(void)buf_puts(&b, "\r\n");
	got = events_of(buf_str(&b), b.len, false);
	assert_string_equal(got, "BAD");
	free(got);
	buf_clear(&b);
	(void)buf_puts(&b, OK "X: ");
	for (int i = 0; i < 2001; i++)
		(void)buf_putc(&b, 'a');
	got = events_of(buf_str(&b), 7, false);
	assert_string_equal(got, "BAD");
	free(got);
	buf_done(&b);
}

/* Found by fuzzing: the piece that a head ended in was not counted. */
static void a_long_reason_is_too_long_however_it_is_cut(void **state)
{
	static const size_t sizes[] = { 1, 7, 999, 100000 };
	static char text[3000] = "HTTP/1.1 200 ";

	(void)state;
	memset(text + strlen(text), 'x', 2500);
	memcpy(text + strlen(text), "\r\n\r\n", 5);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		char *got = events_of(text, sizes[i], false);

		assert_string_equal(got, "BAD");
		free(got);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bodies_end_as_they_say),
		cmocka_unit_test(answers_without_a_body_have_none),
		cmocka_unit_test(interim_answers_are_messages_of_their_own),
		cmocka_unit_test(what_ends_too_early_is_bad),
		cmocka_unit_test(what_two_could_read_differently_is_bad),
		cmocka_unit_test(heads_are_bounded),
		cmocka_unit_test(a_long_reason_is_too_long_however_it_is_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
