/* Answers of a hostile server: the same events whole and in pieces, and what is told keeps our
 * rules. */
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "fuzz.h"
#include "net/http.h"
#include "net/http1.h"

#define INPUT_MAX ((size_t)32 << 10)

static const struct http_limits limits = { .line_max = 500, .head_max = 2000, .headers_max = 20 };

static void check_head(const struct http1_head *h)
{
	MUST(h->status >= 100 && h->status <= 599 && h->count <= limits.headers_max);
	MUST(h->body_length >= -1);
	for (unsigned i = 0; i < h->count; i++) {
		MUST(h->fields[i].name[0] && !strpbrk(h->fields[i].name, ":\r\n "));
		for (const char *s = h->fields[i].value; *s; s++)
			MUST(((unsigned char)*s >= 0x20 || *s == '\t') && *s != 0x7f);
	}
}

static void tell(struct buf *out, struct http1 *p, enum http1_event e, struct str body)
{
	if (e == HTTP1_HEAD) {
		check_head(http1_head(p));
		MUST(buf_printf(out, "H %d %lld\n", http1_head(p)->status,
				(long long)http1_head(p)->body_length) == 0);
	} else if (e == HTTP1_DATA) {
		MUST(body.len > 0 && buf_append(out, body.data, body.len) == 0);
	} else if (e == HTTP1_END) {
		MUST(buf_puts(out, "E\n") == 0);
	} else if (e == HTTP1_BAD) {
		MUST(buf_puts(out, "B\n") == 0);
	}
}

static void parse(const uint8_t *data, size_t size, size_t piece, bool is_head, struct buf *out)
{
	struct http1 *p = http1_create_answers(&limits);
	enum http1_event e = HTTP1_MORE;

	MUST(p);
	http1_expect(p, is_head);
	for (size_t off = 0; off < size && e != HTTP1_BAD; off += piece) {
		size_t n = size - off < piece ? size - off : piece;
		const char *from = (const char *)data + off;
		struct str body = { 0 };

		do {
			e = http1_next(p, &from, &n, &body);
			tell(out, p, e, body);
		} while (e != HTTP1_MORE && e != HTTP1_BAD);
		MUST(e == HTTP1_BAD || n == 0);
	}
	if (e != HTTP1_BAD)
		tell(out, p, http1_finish(p), (struct str){ 0 });
	p = http1_free(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf whole = { 0 }, cut = { 0 };

	if (size < 1 || size > INPUT_MAX)
		return 0;
	parse(data + 1, size - 1, INPUT_MAX, data[0] & 1, &whole);
	parse(data + 1, size - 1, 1 + data[0] % 7, data[0] & 1, &cut);
	MUST(whole.len == cut.len && memcmp(buf_str(&whole), buf_str(&cut), whole.len) == 0);
	buf_done(&whole);
	buf_done(&cut);
	return 0;
}
