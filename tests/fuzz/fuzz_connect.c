/* A run of envelopes in one piece and in pieces (the first byte says how long): the same messages
 * come out, and the same verdict; each written again is the same bytes. What stands in headers is
 * read from the same input. */
#include <string.h>

#include "base/buf.h"
#include "e2b/connect.h"
#include "fuzz.h"

#define MAX 512

/* The messages one after the other, each with its flag. */
static ssize_t read_in_steps(const uint8_t *data, size_t n, size_t step, struct buf *all)
{
	struct buf in = { 0 };
	ssize_t r = 0;

	for (size_t at = 0; at < n && r >= 0; at += step) {
		struct connect_envelope e;

		MUST(buf_append(&in, data + at, n - at < step ? n - at : step) == 0);
		while ((r = connect_next(in.data, in.len, MAX, &e)) > 0) {
			MUST(e.len <= MAX && (size_t)r == CONNECT_HEAD + e.len);
			MUST(e.data == in.data + CONNECT_HEAD);
			(void)buf_append(all, in.data, (size_t)r);
			(void)buf_putc(all, e.is_end ? 'e' : 'm');
			buf_drop(&in, (size_t)r);
		}
	}
	buf_done(&in);
	return r;
}

static void check_written(const uint8_t *data, size_t n)
{
	struct buf b = { 0 };
	struct connect_envelope e;
	size_t at = connect_begin(&b);

	MUST(buf_append(&b, data, n) == 0 && connect_finish(&b, at) == 0);
	MUST(connect_next(b.data, b.len, n, &e) == (ssize_t)b.len);
	MUST(!e.is_end && e.len == n && (n == 0 || memcmp(e.data, data, n) == 0));
	buf_done(&b);
}

static void check_headers(const char *text)
{
	char user[CONNECT_USER_MAX + 1];
	enum connect_kind kind;
	uint64_t ms;

	if (connect_user(text, user) == 0)
		MUST(strlen(user) <= CONNECT_USER_MAX && !strchr(user, ':'));
	if (connect_timeout(text, &ms) == 0)
		MUST(ms <= 9999999999);
	MUST(connect_keepalive_ms(text) <= CONNECT_KEEPALIVE_MAX_S * 1000ull);
	(void)connect_kind_of(text, &kind);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf whole = { 0 }, pieces = { 0 }, text = { 0 };
	ssize_t a, b;

	if (size < 2)
		return 0;
	a = read_in_steps(data + 1, size - 1, size, &whole);
	b = read_in_steps(data + 1, size - 1, 1 + data[0] % 64, &pieces);
	MUST((a < 0) == (b < 0) && whole.len == pieces.len);
	MUST(whole.len == 0 || memcmp(whole.data, pieces.data, whole.len) == 0);
	check_written(data, size);
	MUST(buf_append(&text, data, size) == 0);
	check_headers(buf_str(&text));
	buf_done(&whole);
	buf_done(&pieces);
	buf_done(&text);
	return 0;
}
