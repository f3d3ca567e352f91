/* Answers: heads, whole ones, pieces. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/utf8.h"
#include "net/exchange.h"
#include "net/http1.h"
#include "net/server.h"

#define TOKEN                                                 \
	"!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz" \
	"ABCDEFGHIJKLMNOPQRSTUVWXYZ"

int http_header_add(struct http_request *r, const char *name, const char *value)
{
	struct buf *b = &r->extra;
	size_t len = b->len;

	assert(r->answer == ANSWER_NONE);
	if (*name == '\0' || name[strspn(name, TOKEN)] != '\0')
		return -EINVAL;
	/* A line break would begin a header, or an answer, of somebody else's making. */
	for (const char *p = value; *p; p++)
		if (((unsigned char)*p < 0x20 && *p != '\t') || *p == 0x7f)
			return -EINVAL;
	(void)buf_puts(b, name);
	(void)buf_puts(b, ": ");
	(void)buf_puts(b, value);
	if (buf_puts(b, "\r\n") == 0)
		return 0;
	/* Half a header is none. */
	b->len = len;
	b->failed = false;
	return -E2BIG;
}

void http_header_clear(struct http_request *r)
{
	buf_clear(&r->extra);
}

static void put_number(struct buf *b, uint64_t n)
{
	char text[20];
	size_t i = sizeof(text);

	do
		text[--i] = (char)('0' + n % 10);
	while ((n /= 10) > 0);
	(void)buf_append(b, text + i, sizeof(text) - i);
}

static void put_line(struct buf *b, const char *name, const char *value)
{
	(void)buf_puts(b, name);
	(void)buf_puts(b, value);
	(void)buf_append(b, "\r\n", 2);
}

/* The head in s->head. length -1: chunked. Printf would cost more than all else here. */
static int make_head(struct http_request *r, int status, const char *content_type, int64_t length)
{
	struct http_server *s = r->c.server;
	struct buf *b = &s->head;
	const char *theirs = http_client_request_id(r);

	buf_clear(b);
	(void)buf_puts(b, "HTTP/1.1 ");
	put_number(b, (uint64_t)status);
	put_line(b, " ", http_status_text(status));
	(void)buf_puts(b, server_date(s));
	if (content_type)
		put_line(b, "Content-Type: ", content_type);
	if (length >= 0 && status != 204 && status != 304 && status >= 200) {
		(void)buf_puts(b, "Content-Length: ");
		put_number(b, (uint64_t)length);
		(void)buf_append(b, "\r\n", 2);
	} else if (length < 0 && !r->no_body) {
		(void)buf_puts(b, "Transfer-Encoding: chunked\r\n");
	}
	put_line(b, "X-Request-Id: ", r->id);
	if (theirs)
		put_line(b, "X-Client-Request-Id: ", theirs);
	if (r->close_after)
		(void)buf_puts(b, "Connection: close\r\n");
	(void)buf_append(b, buf_str(&r->extra), r->extra.len);
	return buf_append(b, "\r\n", 2);
}

/* Decides what the head will say, and makes it. False when there is nobody to send it to. */
static bool begin(struct http_request *r, int status, const char *content_type, int64_t length)
{
	struct conn *c = &r->c;

	assert(r->active && r->answer == ANSWER_NONE);
	assert(status >= 200 && status <= 599);
	r->answer = ANSWER_BEGUN;
	r->no_body = strcmp(r->head->method, "HEAD") == 0 || status == 204 || status == 304;
	r->chunked = length < 0 && !r->no_body;
	r->left = length;
	if (c->state == CONN_CLOSED)
		return false;
	r->status = status;
	if (c->server->draining)
		r->close_after = true;
	if (make_head(r, status, content_type, length) == 0)
		return true;
	conn_fail(c);
	return false;
}

void answer_upgrade(struct http_request *r)
{
	struct iovec part;

	assert(r->active && r->answer == ANSWER_NONE && r->c.state == CONN_OPEN);
	r->answer = ANSWER_BEGUN;
	r->status = 101;
	r->no_body = true;
	if (make_head(r, 101, NULL, -1) < 0) {
		conn_fail(&r->c);
		return;
	}
	part = (struct iovec){ r->c.server->head.data, r->c.server->head.len };
	conn_send(&r->c, &part, 1);
}

void http_reply(struct http_request *r, int status, const char *content_type, const void *data,
		size_t n)
{
	struct iovec parts[2];

	if (r->c.state != CONN_CLOSED && n > r->c.server->o.limits.pending_max) {
		buf_clear(&r->extra);
		http_reply_error(r, 500, "internal", "the answer is too long");
		return;
	}
	if (begin(r, status, content_type, (int64_t)n)) {
		parts[0] = (struct iovec){ r->c.server->head.data, r->c.server->head.len };
		parts[1] = (struct iovec){ (void *)(uintptr_t)data, n };
		conn_send(&r->c, parts, r->no_body || n == 0 ? 1 : 2);
		r->sent = r->no_body ? 0 : n;
	}
	exchange_answered(r);
}

void http_reply_error(struct http_request *r, int status, const char *code, const char *message)
{
	struct buf b = { 0 };

	(void)buf_puts(&b, "{\"error\":{\"code\":\"");
	(void)utf8_json_escape(&b, code, strlen(code));
	(void)buf_puts(&b, "\",\"message\":\"");
	(void)utf8_json_escape(&b, message, strlen(message));
	if (buf_puts(&b, "\",\"details\":null}}") == 0)
		http_reply(r, status, "application/json", b.data, b.len);
	else
		http_reply(r, status, NULL, NULL, 0);
	buf_done(&b);
}

void http_begin(struct http_request *r, int status, const char *content_type, int64_t length)
{
	if (begin(r, status, content_type, length))
		conn_queue(&r->c, r->c.server->head.data, r->c.server->head.len);
}

static void put_chunk(struct conn *c, const void *data, size_t n)
{
	static const char digits[] = "0123456789abcdef";
	char size[18];
	size_t i = sizeof(size);

	size[--i] = '\n';
	size[--i] = '\r';
	for (size_t left = n; left > 0; left >>= 4)
		size[--i] = digits[left & 15];
	conn_queue(c, size + i, sizeof(size) - i);
	conn_queue(c, data, n);
	conn_queue(c, "\r\n", 2);
}

ssize_t http_write(struct http_request *r, const void *data, size_t n)
{
	struct conn *c = &r->c;

	assert(r->answer == ANSWER_BEGUN);
	if (c->state != CONN_OPEN)
		return -EPIPE;
	if (r->no_body || n == 0)
		return (ssize_t)conn_pending(c);
	if (conn_pending(c) + n > c->server->o.limits.pending_max ||
	    (!r->chunked && (int64_t)n > r->left)) {
		conn_fail(c); /* more than can be kept, or than was announced */
		return -ENOBUFS;
	}
	r->sent += n;
	if (r->chunked) {
		put_chunk(c, data, n);
	} else {
		r->left -= (int64_t)n;
		conn_queue(c, data, n);
	}
	return (ssize_t)conn_pending(c);
}

void http_end(struct http_request *r)
{
	assert(r->answer == ANSWER_BEGUN);
	if (!r->no_body && !r->chunked && r->left > 0) {
		http_abort(r); /* less than was announced: the client must not take it for all */
		return;
	}
	if (r->chunked)
		conn_queue(&r->c, "0\r\n\r\n", 5);
	exchange_answered(r);
}

/* Clients tell a server that has broken off from one that has ended: a chunked answer that just
 * ends is a fault of the protocol to some, and the end to others. */
void http_abort(struct http_request *r)
{
	conn_reset(&r->c);
	r->answer = ANSWER_ENDED;
	exchange_over(r);
}

size_t http_pending(const struct http_request *r)
{
	return conn_pending(&r->c);
}

void http_on_drain(struct http_request *r, size_t low_water,
		   void (*drained)(void *user, struct http_request *r), void *user)
{
	r->drained = drained;
	r->drained_user = user;
	conn_set_low_water(&r->c, low_water);
}
