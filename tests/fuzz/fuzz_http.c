/* Requests. The parser tells the same events whole and in pieces, and what it tells keeps our
 * rules; then the same bytes go through a connection with a handler that does a little of
 * everything. */
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "fuzz.h"
#include "net/http1.h"
#include "net_fuzz.h"

#define INPUT_MAX ((size_t)32 << 10)

static const struct http_limits limits = { .line_max = 500, .head_max = 2000, .headers_max = 20 };

static void check_text(const char *s, unsigned char from)
{
	for (; *s; s++)
		MUST((unsigned char)*s >= from && *s != 0x7f);
}

static void check_head(const struct http1_head *h)
{
	unsigned hosts = 0, lengths = 0, encodings = 0;

	check_text(h->path, 0x21);
	check_text(h->query, 0x21);
	MUST(h->path[0] == '/' || strcmp(h->path, "*") == 0);
	MUST(h->count <= limits.headers_max);
	for (unsigned i = 0; i < h->count; i++) {
		check_text(h->fields[i].name, 0x21);
		check_text(h->fields[i].value, '\t');
		MUST(!strpbrk(h->fields[i].value, "\r\n"));
		MUST(!strchr(h->fields[i].name, ':'));
		hosts += strcasecmp(h->fields[i].name, "host") == 0;
		lengths += strcasecmp(h->fields[i].name, "content-length") == 0;
		encodings += strcasecmp(h->fields[i].name, "transfer-encoding") == 0;
	}
	MUST(hosts == 1 && lengths + encodings <= 1);
	MUST((h->body_length == -1) == (encodings == 1));
	MUST(lengths == 1 || h->body_length <= 0);
}

static void tell(struct buf *out, struct http1 *p, enum http1_event e, struct str body)
{
	const struct http1_head *h = http1_head(p);

	switch (e) {
	case HTTP1_HEAD:
		check_head(h);
		MUST(buf_printf(out, "H %s %s %s %lld %d\n", h->method, h->path, h->query,
				(long long)h->body_length, h->keep_alive) == 0);
		for (unsigned i = 0; i < h->count; i++)
			MUST(buf_printf(out, "%s:%s\n", h->fields[i].name, h->fields[i].value) ==
			     0);
		break;
	case HTTP1_DATA:
		MUST(body.len > 0);
		MUST(buf_append(out, body.data, body.len) == 0);
		break;
	case HTTP1_END:
		MUST(buf_puts(out, "E\n") == 0);
		MUST(http1_is_idle(p));
		break;
	case HTTP1_BAD:
		MUST(http1_status(p) >= 400 && http1_status(p) <= 505 && http1_status(p) != 500);
		MUST(buf_printf(out, "B\n") == 0);
		break;
	case HTTP1_MORE:
		break;
	}
}

static void parse(const uint8_t *data, size_t size, size_t piece, struct buf *out)
{
	struct http1 *p = http1_create(&limits);
	enum http1_event e = HTTP1_MORE;

	MUST(p);
	for (size_t off = 0; off < size && e != HTTP1_BAD; off += piece) {
		size_t n = size - off < piece ? size - off : piece, before = n;
		const char *from = (const char *)data + off;
		struct str body = { 0 };

		do {
			e = http1_next(p, &from, &n, &body);
			MUST(n <= before);
			before = n;
			tell(out, p, e, body);
		} while (e != HTTP1_MORE && e != HTTP1_BAD);
		MUST(e == HTTP1_BAD || n == 0);
	}
	p = http1_free(p);
}

static void got(void *user, struct http_request *r, const char *data, size_t n)
{
	(void)user;
	MUST(data[n] == '\0' && n <= 1000);
	http_reply(r, 200, "text/plain", data, n);
}

static void on_data(void *user, struct http_request *r, const char *data, size_t n)
{
	(void)user;
	MUST(n > 0);
	if (memchr(data, '!', n))
		http_reply(r, 400, NULL, NULL, 0);
}

static void on_end(void *user, struct http_request *r)
{
	(void)user;
	http_begin(r, 200, "text/plain", -1);
	(void)http_write(r, "x", 1);
	http_end(r);
}

static void on_gone(void *user, struct http_request *r)
{
	(void)user;
	MUST(http_method(r)[0] != '\0');
}

static void handle(void *user, struct http_request *r)
{
	static const struct http_body_ops ops = { on_data, on_end, on_gone };
	const char *value;

	MUST(user && http_method(r)[0] != '\0');
	(void)http_query(r, "q", &value);
	if (http_header(r, "x-value"))
		MUST(http_header_add(r, "X-Echo", http_header(r, "x-value")) == 0);
	switch (http_path(r)[1]) {
	case 'c':
		http_body_collect(r, 1000, got, NULL);
		break;
	case 's':
		http_body_stream(r, &ops, NULL);
		break;
	case 'a':
		http_abort(r);
		break;
	default:
		http_reply(r, 200, "text/plain", http_path(r), strlen(http_path(r)));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct net_fuzz f;
	struct buf whole = { 0 }, cut = { 0 };
	size_t piece;

	if (!f.loop)
		net_fuzz_open(&f, &(struct http_server_options){
					  .limits = limits, .handle = handle, .user = &f });
	if (size < 1 || size > INPUT_MAX)
		return 0;
	piece = data[0] % 16 ? data[0] : INPUT_MAX;
	data++;
	size--;
	parse(data, size, INPUT_MAX, &whole);
	parse(data, size, 1 + piece % 7, &cut);
	MUST(whole.len == cut.len && memcmp(buf_str(&whole), buf_str(&cut), whole.len) == 0);
	buf_done(&whole);
	buf_done(&cut);
	net_fuzz_run(&f, data, size, piece);
	return 0;
}
