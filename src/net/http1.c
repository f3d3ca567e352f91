#include "net/http1.h"

#include <assert.h>
#include <llhttp.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "net/http.h"

#define CHUNK_EXTENSION_MAX 256 /* bytes of one chunk; nobody uses them */
#define FIELDS_FIRST 16u

/* Where a field's texts are in the head; pointers are made when nothing grows any more. */
struct place {
	uint32_t name, value;
};

struct http1 {
	llhttp_t ll;
	const struct http_limits *limits; /* borrowed */
	struct buf text;                  /* target, then name and value of each field, each NUL */
	struct place *places;             /* owned */
	struct http1_field *fields;       /* owned; as many as places */
	unsigned count, room;             /* of fields */
	unsigned trailers;                /* fields behind a chunked body: counted, dropped */
	size_t head_bytes;                /* of this head; of the trailers behind it */
	size_t extension_bytes;           /* of this chunk */
	bool in_field;                    /* a name has begun and is not complete */
	bool has_head;
	char last;         /* byte of the request line; 0 before it */
	bool is_line_over; /* the request line's */
	bool is_answer, is_to_head, is_proxy;
	struct http1_head head;
	enum http1_event event; /* what the last callback stopped for */
	struct str body;
	int status;
	const char *reason;
};

/* The callbacks' way out: the first reason stays. */
static int refuse(struct http1 *p, int status, const char *reason)
{
	if (p->status == 0) {
		p->status = status;
		p->reason = reason;
	}
	return HPE_USER;
}

static int stop_for(struct http1 *p, enum http1_event event)
{
	p->event = event;
	return HPE_PAUSED;
}

static int keep(struct http1 *p, const char *at, size_t n)
{
	if (n > p->limits->head_max - p->text.len)
		return refuse(p, 431, "the head is too long");
	return buf_append(&p->text, at, n) < 0 ? refuse(p, 500, "out of memory") : 0;
}

static bool has_control(const char *at, size_t n)
{
	bool bad = false;

	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)at[i];

		bad |= (c < 0x20 && c != '\t') || c == 0x7f;
	}
	return bad;
}

static int on_message_begin(llhttp_t *ll)
{
	struct http1 *p = ll->data;

	buf_clear(&p->text);
	p->head = (struct http1_head){ .method = "", .path = "", .query = "" };
	p->has_head = false;
	p->count = p->trailers = 0;
	return 0;
}

static int on_url(llhttp_t *ll, const char *at, size_t n)
{
	struct http1 *p = ll->data;

	/* The line is the method, two blanks, "HTTP/1.1" and the target. */
	if (p->text.len + n + strlen(llhttp_method_name(ll->method)) + 10 > p->limits->line_max)
		return refuse(p, 414, "the request line is too long");
	for (size_t i = 0; i < n; i++)
		if (at[i] <= ' ' || at[i] >= 0x7f || at[i] == '#')
			return refuse(p, 400, "the request target has a character that it may not");
	return keep(p, at, n);
}

static int on_text_complete(llhttp_t *ll)
{
	return keep(ll->data, "", 1);
}

static int on_version_complete(llhttp_t *ll)
{
	const struct http1 *p = ll->data;

	if (ll->http_major != 1 ||
	    (ll->http_minor != 1 && !((p->is_answer || p->is_proxy) && ll->http_minor == 0)))
		return refuse(ll->data, 505, "only HTTP/1.1 is spoken here");
	return 0;
}

static int add_field(struct http1 *p)
{
	unsigned room = p->room ? p->room * 2 : FIELDS_FIRST;
	void *more;

	if (p->count >= p->limits->headers_max)
		return refuse(p, 431, "there are too many headers");
	if (p->count == p->room) {
		more = realloc(p->places, room * sizeof(*p->places));
		if (!more)
			return refuse(p, 500, "out of memory");
		p->places = more;
		more = realloc(p->fields, room * sizeof(*p->fields));
		if (!more)
			return refuse(p, 500, "out of memory");
		p->fields = more;
		p->room = room;
	}
	p->places[p->count++].name = (uint32_t)p->text.len;
	return 0;
}

static int on_header_field(llhttp_t *ll, const char *at, size_t n)
{
	struct http1 *p = ll->data;

	if (p->has_head) {
		if (!p->in_field && ++p->trailers > p->limits->headers_max)
			return refuse(p, 431, "there are too many trailers");
		p->in_field = true;
		return 0;
	}
	if (!p->in_field && add_field(p) != 0)
		return HPE_USER;
	p->in_field = true;
	return keep(p, at, n);
}

static int on_header_field_complete(llhttp_t *ll)
{
	struct http1 *p = ll->data;

	p->in_field = false;
	if (p->has_head)
		return 0;
	if (keep(p, "", 1) != 0)
		return HPE_USER;
	p->places[p->count - 1].value = (uint32_t)p->text.len;
	return 0;
}

static int on_header_value(llhttp_t *ll, const char *at, size_t n)
{
	struct http1 *p = ll->data;

	if (has_control(at, n))
		return refuse(p, 400, "a header has a control character");
	return p->has_head ? 0 : keep(p, at, n);
}

static int on_header_value_complete(llhttp_t *ll)
{
	struct http1 *p = ll->data;
	size_t from;

	if (p->has_head)
		return 0;
	/* Blanks behind a value are not part of it. */
	from = p->places[p->count - 1].value;
	while (p->text.len > from && strchr(" \t", p->text.data[p->text.len - 1]))
		p->text.len--;
	return keep(p, "", 1);
}

/* One Host and a plausible one: it is what browsers cannot forge, and origins are compared to it.
 */
static int check_host(struct http1 *p, unsigned count, const char *host)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789.-_~:[]%";

	if (count == 0)
		return refuse(p, 400, "the Host header is missing");
	if (count > 1 || *host == '\0' || host[strspn(host, allowed)] != '\0')
		return refuse(p, 400, "the Host header is not one host");
	return 0;
}

static int check_length(struct http1 *p, unsigned count, const char *value)
{
	size_t digits = strspn(value, "0123456789");

	if (count > 1 || digits == 0 || digits > 18 || value[digits] != '\0' ||
	    (digits > 1 && value[0] == '0'))
		return refuse(p, 400, "Content-Length is not one plain number");
	p->head.body_length = (int64_t)p->ll.content_length;
	return 0;
}

/* The fields that decide how the rest is read, and how often each was there. */
enum { HOST, LENGTH, ENCODING, EXPECT, SEEN_COUNT };
struct seen {
	unsigned count;
	const char *value; /* the last */
};

static void look(const struct http1_head *h, struct seen seen[SEEN_COUNT])
{
	static const char *const names[SEEN_COUNT] = {
		[HOST] = "host",
		[LENGTH] = "content-length",
		[ENCODING] = "transfer-encoding",
		[EXPECT] = "expect",
	};

	for (unsigned i = 0; i < h->count; i++) {
		const char *name = h->fields[i].name;

		for (unsigned k = 0; k < SEEN_COUNT; k++) {
			if ((name[0] | 0x20) != names[k][0] || strcasecmp(name, names[k]) != 0)
				continue;
			seen[k].count++;
			seen[k].value = h->fields[i].value;
		}
	}
}

static int check_body(struct http1 *p, const struct seen *length, const struct seen *encoding)
{
	if (encoding->count > 0 && length->count > 0)
		return refuse(p, 400, "Content-Length and Transfer-Encoding exclude each other");
	if (encoding->count > 1)
		return refuse(p, 400, "Transfer-Encoding is repeated");
	if (encoding->count == 1 && strcasecmp(encoding->value, "chunked") != 0)
		return refuse(p, 501, "the only Transfer-Encoding here is chunked");
	if (encoding->count == 1)
		p->head.body_length = -1;
	return length->count > 0 ? check_length(p, length->count, length->value) : 0;
}

static int check_expect(struct http1 *p, const struct seen *expect)
{
	if (expect->count == 0)
		return 0;
	if (expect->count > 1 || strcasecmp(expect->value, "100-continue") != 0)
		return refuse(p, 417, "the only expectation met here is 100-continue");
	p->head.expects_continue = p->head.body_length != 0;
	return 0;
}

/* "http://host/path" is taken when it says the same as the Host header. */
static int check_absolute(struct http1 *p, char *target, const char *host)
{
	char *authority = strstr(target, "://");
	size_t n;

	if (!authority ||
	    (strncasecmp(target, "http://", 7) != 0 && strncasecmp(target, "https://", 8) != 0))
		return refuse(p, 400, "the request target is not a path");
	authority += 3;
	n = strcspn(authority, "/?");
	if (n != strlen(host) || strncasecmp(authority, host, n) != 0)
		return refuse(p, 400, "the request target names another host than the Host header");
	p->head.path = authority + n;
	p->head.is_absolute = strncasecmp(target, "http://", 7) == 0;
	return 0;
}

static int check_target(struct http1 *p, const char *host)
{
	char *target = p->text.data, *mark;

	p->head.path = target;
	if (p->ll.method == HTTP_CONNECT)
		return p->is_proxy ? 0 : refuse(p, 501, "this is no proxy");
	if (target[0] == '*') {
		if (target[1] != '\0' || p->ll.method != HTTP_OPTIONS)
			return refuse(p, 400, "the request target is not a path");
	} else if (target[0] != '/' && check_absolute(p, target, host) != 0) {
		return HPE_USER;
	}
	mark = strchr(p->head.path, '?');
	if (mark) {
		*mark = '\0';
		p->head.query = mark + 1;
	}
	if (*p->head.path == '\0')
		p->head.path = "/";
	return 0;
}

/* How an answer ends is for us to know and for nobody else: whoever gets it gets it from us. */
static int check_answer(struct http1 *p, const struct seen *length, const struct seen *encoding)
{
	p->head.status = p->ll.status_code;
	p->head.body_length = -1;
	if (p->head.status < 100 || p->head.status > 599)
		return refuse(p, 502, "the status is none");
	if (check_body(p, length, encoding) != 0)
		return HPE_USER;
	if (p->is_to_head)
		p->ll.flags |= F_SKIPBODY;
	return 0;
}

static int check_request(struct http1 *p, const struct seen seen[SEEN_COUNT])
{
	bool is_connect = p->ll.method == HTTP_CONNECT && p->is_proxy;

	/* HTTP/0.9 has no version to complain about on the way. Common clients say no Host with
	 * CONNECT, whose target is one. */
	if (on_version_complete(&p->ll) != 0)
		return HPE_USER;
	if ((!is_connect && check_host(p, seen[HOST].count, seen[HOST].value) != 0) ||
	    check_body(p, &seen[LENGTH], &seen[ENCODING]) != 0 ||
	    check_expect(p, &seen[EXPECT]) != 0 || check_target(p, seen[HOST].value) != 0)
		return HPE_USER;
	return 0;
}

static int on_headers_complete(llhttp_t *ll)
{
	struct http1 *p = ll->data;
	struct seen seen[SEEN_COUNT] = { 0 };
	int r;

	for (unsigned i = 0; i < p->count; i++) {
		p->fields[i].name = p->text.data + p->places[i].name;
		p->fields[i].value = p->text.data + p->places[i].value;
	}
	p->head.fields = p->fields;
	p->head.count = p->count;
	p->head.method = p->is_answer ? "" : llhttp_method_name(ll->method);
	look(&p->head, seen);
	r = p->is_answer ? check_answer(p, &seen[LENGTH], &seen[ENCODING]) : check_request(p, seen);
	if (r != 0)
		return r;
	p->head.keep_alive = llhttp_should_keep_alive(ll) != 0;
	/* An upgrade is the handler's decision, not the parser's: until then this is HTTP. */
	ll->upgrade = 0;
	p->has_head = true;
	return stop_for(p, HTTP1_HEAD);
}

static int on_chunk_header(llhttp_t *ll)
{
	struct http1 *p = ll->data;

	p->extension_bytes = 0;
	return 0;
}

static int on_chunk_extension(llhttp_t *ll, const char *at, size_t n)
{
	struct http1 *p = ll->data;

	p->extension_bytes += n;
	if (p->extension_bytes > CHUNK_EXTENSION_MAX || has_control(at, n))
		return refuse(p, 400, "a chunk's extension is too long or not text");
	return 0;
}

static int on_body(llhttp_t *ll, const char *at, size_t n)
{
	struct http1 *p = ll->data;

	if (n == 0) /* a piece that the end of the input cut is told again, empty */
		return 0;
	p->body = (struct str){ at, n };
	return stop_for(p, HTTP1_DATA);
}

static int on_message_complete(llhttp_t *ll)
{
	return stop_for(ll->data, HTTP1_END);
}

static const llhttp_settings_t settings = {
	.on_message_begin = on_message_begin,
	.on_url = on_url,
	.on_url_complete = on_text_complete,
	.on_version_complete = on_version_complete,
	.on_header_field = on_header_field,
	.on_header_field_complete = on_header_field_complete,
	.on_header_value = on_header_value,
	.on_header_value_complete = on_header_value_complete,
	.on_headers_complete = on_headers_complete,
	.on_chunk_header = on_chunk_header,
	.on_chunk_extension_name = on_chunk_extension,
	.on_chunk_extension_value = on_chunk_extension,
	.on_body = on_body,
	.on_message_complete = on_message_complete,
};

struct http1 *http1_create(const struct http_limits *limits)
{
	struct http1 *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	llhttp_init(&p->ll, HTTP_REQUEST, &settings);
	p->ll.data = p;
	p->limits = limits;
	p->head = (struct http1_head){ .method = "", .path = "", .query = "" };
	return p;
}

struct http1 *http1_create_answers(const struct http_limits *limits)
{
	struct http1 *p = http1_create(limits);

	if (!p)
		return NULL;
	llhttp_init(&p->ll, HTTP_RESPONSE, &settings);
	p->ll.data = p;
	p->is_answer = p->is_line_over = true;
	return p;
}

struct http1 *http1_create_proxy(const struct http_limits *limits)
{
	struct http1 *p = http1_create(limits);

	if (p)
		p->is_proxy = true;
	return p;
}

void http1_expect(struct http1 *p, bool is_head)
{
	p->is_to_head = is_head;
}

struct http1 *http1_free(struct http1 *p)
{
	if (!p)
		return NULL;
	buf_done(&p->text);
	free(p->places);
	free(p->fields);
	free(p);
	return NULL;
}

static enum http1_event fail(struct http1 *p, llhttp_errno_t code)
{
	if (p->status == 0) {
		bool is_other = p->ll.http_major != 1 || p->ll.http_minor != 1;

		p->status = 400;
		if (code == HPE_INVALID_METHOD)
			p->status = 501;
		else if (code == HPE_INVALID_VERSION && is_other)
			p->status = 505;
		p->reason = p->ll.reason && *p->ll.reason ? p->ll.reason : "this is not HTTP";
	}
	return HTTP1_BAD;
}

/* Bytes that are neither target nor field count too: blank lines in front, an answer's reason,
 * chunk heads' trailers. Also those of the piece that a head ends in: what is too long must not
 * depend on how it was cut. */
static bool is_too_long(struct http1 *p, size_t taken, enum http1_event event)
{
	bool is_head = event == HTTP1_HEAD, is_long;

	if (event == HTTP1_DATA || (!is_head && p->has_head && p->trailers == 0))
		return false;
	p->head_bytes += taken;
	is_long = p->head_bytes > p->limits->head_max;
	if (is_head)
		p->head_bytes = 0; /* trailers begin anew */
	return is_long;
}

/* How much of the text comes before a second blank in a row of the request line. llhttp takes any
 * number of them; somebody before us who does not may see another request. */
static size_t plain_line(struct http1 *p, const char *at, size_t n)
{
	for (size_t i = 0; i < n && !p->is_line_over; i++) {
		if (at[i] == ' ' && p->last == ' ')
			return i;
		if (at[i] == '\n')
			p->is_line_over = p->last != 0; /* else a blank line in front */
		else if (at[i] != '\r')
			p->last = at[i];
	}
	return n;
}

enum http1_event http1_next(struct http1 *p, const char **data, size_t *n, struct str *ret_body)
{
	const char *from = *n > 0 ? *data : "";
	llhttp_errno_t code;
	size_t taken;

	if (p->status != 0)
		return HTTP1_BAD;
	p->event = HTTP1_MORE;
	taken = plain_line(p, from, *n);
	code = llhttp_execute(&p->ll, from, taken);
	if (code == HPE_PAUSED) {
		taken = (size_t)(llhttp_get_error_pos(&p->ll) - from);
		llhttp_resume(&p->ll);
	} else if (code != HPE_OK) {
		return fail(p, code);
	}
	*data += taken;
	*n -= taken;
	if (p->event == HTTP1_MORE && *n > 0) {
		(void)refuse(p, 400, "the request line has two blanks in a row");
		return HTTP1_BAD;
	}
	if (is_too_long(p, taken, p->event)) {
		(void)refuse(p, 431, "the head is too long");
		return HTTP1_BAD;
	}
	if (p->event == HTTP1_DATA)
		*ret_body = p->body;
	if (p->event == HTTP1_END) {
		p->has_head = false;
		p->is_line_over = p->is_answer;
		p->head_bytes = 0;
		p->last = 0;
	}
	return p->event;
}

enum http1_event http1_finish(struct http1 *p)
{
	llhttp_errno_t code;

	if (p->status != 0)
		return HTTP1_BAD;
	p->event = HTTP1_MORE;
	code = llhttp_finish(&p->ll);
	if (p->event == HTTP1_END)
		return HTTP1_END;
	if (code == HPE_OK && http1_is_idle(p))
		return HTTP1_MORE;
	(void)refuse(p, 502, "it ended in the middle");
	return HTTP1_BAD;
}

const struct http1_head *http1_head(const struct http1 *p)
{
	return &p->head;
}

const char *http1_header(const struct http1_head *h, const char *name)
{
	for (unsigned i = 0; i < h->count; i++)
		if (strcasecmp(h->fields[i].name, name) == 0)
			return h->fields[i].value;
	return NULL;
}

bool http1_is_idle(const struct http1 *p)
{
	return !p->has_head && p->head_bytes == 0;
}

int http1_status(const struct http1 *p)
{
	return p->status;
}

const char *http1_reason(const struct http1 *p)
{
	return p->reason ? p->reason : "";
}
