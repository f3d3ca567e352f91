#include "cli/bench_fetch.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/parse.h"
#include "base/str.h"

#define CHUNK_MAX (1ull << 40)
#define RECEIVE (256u << 10) /* bytes taken from the socket at once */
#define TIMEOUT_S 60         /* without a byte: the server hangs */

/* ---- the answer ---- */

static int read_status(struct fetch_answer *a)
{
	uint32_t status;
	char *end;

	if (strncmp(a->line, "HTTP/1.1 ", 9) != 0)
		return -EPROTO;
	end = a->line + 9 + strcspn(a->line + 9, " ");
	*end = '\0';
	if (parse_u32(a->line + 9, 100, 999, &status) < 0)
		return -EPROTO;
	a->status = (int)status;
	return 0;
}

static int read_header(struct fetch_answer *a)
{
	const char *value = strchr(a->line, ':');

	if (!value)
		return -EPROTO;
	value += 1 + strspn(value + 1, " \t");
	if (strncasecmp(a->line, "content-length:", 15) == 0)
		return parse_u64(value, 0, UINT64_MAX, &a->left) < 0 ? -EPROTO : 0;
	if (strncasecmp(a->line, "transfer-encoding:", 18) == 0)
		a->is_chunked = strcasecmp(value, "chunked") == 0;
	if (a->keep && strncasecmp(a->line, a->keep, strlen(a->keep)) == 0 &&
	    a->line[strlen(a->keep)] == ':')
		return str_copy(a->kept, sizeof(a->kept), value);
	return 0;
}

static void end_head(struct fetch_answer *a)
{
	if (a->status == 204 || a->status == 304)
		a->state = FETCH_DONE;
	else if (a->is_chunked)
		a->state = FETCH_CHUNK_SIZE;
	else
		a->state = a->left ? FETCH_BODY : FETCH_DONE;
}

static int read_chunk_size(struct fetch_answer *a)
{
	static const char digits[] = "0123456789abcdef";
	uint64_t size = 0;

	if (a->line[0] == '\0' || a->line[0] == ';')
		return -EPROTO;
	for (const char *c = a->line; *c != '\0' && *c != ';'; c++) {
		const char *at = strchr(digits, *c | 0x20);

		if (!at || *at == '\0' || size > CHUNK_MAX)
			return -EPROTO;
		size = size << 4 | (uint64_t)(at - digits);
	}
	a->left = size;
	a->state = size ? FETCH_CHUNK : FETCH_TRAILER;
	return 0;
}

/* a->line has a whole line, without its end. */
static int take_line(struct fetch_answer *a)
{
	bool empty = a->line[0] == '\0';

	switch (a->state) {
	case FETCH_CHUNK_SIZE:
		return read_chunk_size(a);
	case FETCH_CHUNK_END:
		a->state = FETCH_CHUNK_SIZE;
		return empty ? 0 : -EPROTO;
	case FETCH_TRAILER:
		a->state = empty ? FETCH_DONE : FETCH_TRAILER;
		return 0;
	default:
		break;
	}
	if (a->status == 0)
		return read_status(a);
	if (!empty)
		return read_header(a);
	end_head(a);
	return 0;
}

static ssize_t feed_line(struct fetch_answer *a, const char *data, size_t n)
{
	const char *end = memchr(data, '\n', n);
	size_t len = end ? (size_t)(end - data) : n;
	int r;

	if (a->line_len + len >= sizeof(a->line))
		return -E2BIG;
	memcpy(a->line + a->line_len, data, len);
	a->line_len += len;
	if (!end)
		return (ssize_t)n;
	if (a->line_len > 0 && a->line[a->line_len - 1] == '\r')
		a->line_len--;
	a->line[a->line_len] = '\0';
	a->line_len = 0;
	r = take_line(a);
	return r < 0 ? r : (ssize_t)len + 1;
}

static ssize_t feed_body(struct fetch_answer *a, const char *data, size_t n, fetch_data_fn fn,
			 void *user)
{
	size_t part = n < a->left ? n : (size_t)a->left;
	int r = fn ? fn(user, data, part) : 0;

	if (r != 0)
		return r;
	a->left -= part;
	if (a->left == 0)
		a->state = a->state == FETCH_BODY ? FETCH_DONE : FETCH_CHUNK_END;
	return (ssize_t)part;
}

ssize_t fetch_feed(struct fetch_answer *a, const char *data, size_t n, fetch_data_fn fn, void *user)
{
	size_t used = 0;

	while (used < n && a->state != FETCH_DONE) {
		bool body = a->state == FETCH_BODY || a->state == FETCH_CHUNK;
		ssize_t r = body ? feed_body(a, data + used, n - used, fn, user)
				 : feed_line(a, data + used, n - used);

		if (r < 0)
			return r;
		used += (size_t)r;
	}
	return (ssize_t)used;
}

/* ---- the connection ---- */

int fetch_open(struct fetch *f, uint16_t port, const char *key, struct err *err)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons(port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const struct timeval patience = { .tv_sec = TIMEOUT_S };
	const int on = 1;
	_close_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	*f = (struct fetch){ .fd = -1, .key = key };
	if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0)
		return err_sys(err, errno, "connect to port %u", port);
	if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) < 0)
		return err_sys(err, errno, "set up the connection to port %u", port);
	f->fd = TAKE_FD(fd);
	return 0;
}

void fetch_close(struct fetch *f)
{
	f->fd = fd_close(f->fd);
	buf_done(&f->out);
}

int fetch_send(struct fetch *f, const char *method, const char *target, const char *body,
	       struct err *err)
{
	int r;

	buf_clear(&f->out);
	(void)buf_printf(&f->out, "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\n", method, target);
	if (f->key)
		(void)buf_printf(&f->out, "Authorization: Bearer %s\r\n", f->key);
	if (f->more)
		(void)buf_puts(&f->out, f->more);
	if (body)
		(void)buf_printf(&f->out,
				 "Content-Type: application/json\r\nContent-Length: %zu\r\n",
				 strlen(body));
	(void)buf_printf(&f->out, "\r\n%s", body ? body : "");
	f->answer.state = FETCH_HEAD;
	f->answer.status = 0;
	f->answer.left = 0;
	f->answer.is_chunked = false;
	f->answer.line_len = 0;
	r = f->out.failed ? -ENOMEM : fd_write_all(f->fd, f->out.data, f->out.len);
	return r < 0 ? err_sys(err, r, "%s %.80s", method, target) : 0;
}

int fetch_step(struct fetch *f, fetch_data_fn fn, void *user, struct err *err)
{
	char data[RECEIVE];
	ssize_t n, used;

	do
		n = recv(f->fd, data, sizeof(data), 0);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return err_sys(err,
			       n == 0            ? ECONNRESET
			       : errno == EAGAIN ? ETIMEDOUT
						 : errno,
			       "an answer");
	used = fetch_feed(&f->answer, data, (size_t)n, fn, user);
	if (used < 0 && err_code(err))
		return (int)used;
	if (used < 0)
		return err_sys(err, (int)used, "an answer");
	if (used < n)
		return err_set(err, EPROTO, "an answer is longer than it says");
	return f->answer.state == FETCH_DONE;
}

static int collect(void *user, const void *data, size_t n)
{
	return buf_append(user, data, n);
}

int fetch_call(struct fetch *f, const char *method, const char *target, const char *body,
	       struct buf *ret, struct err *err)
{
	int r = fetch_send(f, method, target, body, err);

	if (ret)
		buf_clear(ret);
	while (r == 0)
		r = fetch_step(f, ret ? collect : NULL, ret, err);
	return r < 0 ? r : f->answer.status;
}

int fetch_want(struct fetch *f, int status, const char *method, const char *target,
	       const char *body, struct buf *ret, struct err *err)
{
	_cleanup_(buf_done) struct buf own = { 0 };
	struct buf *to = ret ? ret : &own;
	int r = fetch_call(f, method, target, body, to, err);

	if (r < 0)
		return r;
	return r == status
		       ? 0
		       : err_set(err, EIO, "%s %.80s: %d %.120s", method, target, r, buf_str(to));
}
