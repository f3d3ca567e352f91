#include "http_rig.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/encode.h"
#include "base/fd.h"
#include "base/str.h"
#include "check.h"

#define GUID "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

/* Whether the request is whole: its head and the body that it announces. */
static int is_whole(const struct buf *b)
{
	const char *end = memmem(buf_str(b), b->len, "\r\n\r\n", 4);
	const char *length = end ? strcasestr(b->data, "content-length: ") : NULL;
	unsigned long n = 0;

	if (!end)
		return 0;
	if (strcasestr(b->data, "transfer-encoding: chunked"))
		return str_ends((struct str){ b->data, b->len }, "0\r\n\r\n");
	if (length && length < end)
		n = strtoul(length + 16, NULL, 10); /* NOTE: a test's own server */
	return b->len >= (size_t)(end + 4 - b->data) + n;
}

static void read_request(int fd, struct buf *b)
{
	char data[4096];
	ssize_t n;

	while (!is_whole(b) && (n = read(fd, data, sizeof(data))) > 0)
		(void)buf_append(b, data, (size_t)n);
}

/* What the standard makes of the request's key. */
static void accept_of(const struct buf *request, char *dst)
{
	const char *key = strcasestr(buf_str(request), "sec-websocket-key: ");
	unsigned char sum[EVP_MAX_MD_SIZE];
	char text[128];
	unsigned n = 0;

	dst[0] = '\0';
	if (!key)
		return;
	(void)snprintf(text, sizeof(text), "%.24s" GUID, key + 19);
	(void)EVP_Digest(text, strlen(text), sum, &n, EVP_sha1(), NULL);
	(void)encode_base64(sum, n, dst);
}

static void send_answer(int fd, const struct http_step *s, const struct buf *request)
{
	size_t len = s->len ? s->len : strlen(s->answer);
	const char *mark = memchr(s->answer, '\1', len);
	char accepted[64];

	if (!mark) {
		(void)fd_write_all(fd, s->answer, len);
		return;
	}
	accept_of(request, accepted);
	(void)fd_write_all(fd, s->answer, (size_t)(mark - s->answer));
	(void)fd_write_all(fd, accepted, strlen(accepted));
	(void)fd_write_all(fd, mark + 1, len - (size_t)(mark + 1 - s->answer));
}

static void serve(int listener, int log, const struct http_step *s)
{
	int fd = accept(listener, NULL, NULL);
	struct buf request = { 0 };

	read_request(fd, &request);
	(void)fd_write_all(log, buf_str(&request), request.len);
	(void)usleep((useconds_t)s->after_ms * 1000);
	send_answer(fd, s, &request);
	if (s->more) {
		(void)usleep((useconds_t)s->more_after_ms * 1000);
		(void)fd_write_all(fd, s->more, s->more_len ? s->more_len : strlen(s->more));
	}
	for (size_t i = 0; i < s->read_more; i++) {
		char c;

		if (read(fd, &c, 1) != 1)
			break;
		(void)fd_write_all(log, &c, 1);
	}
	(void)close(fd);
	buf_done(&request);
}

void http_rig_start(struct http_rig *r, const struct http_step *steps, size_t n)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), log[2];

	*r = (struct http_rig){ .log = -1 };
	assert_true(fd >= 0 && bind(fd, (struct sockaddr *)&a, sizeof(a)) == 0);
	assert_int_equal(listen(fd, 8), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &len), 0);
	(void)snprintf(r->url, sizeof(r->url), "http://127.0.0.1:%u", ntohs(a.sin_port));
	assert_int_equal(pipe(log), 0);
	r->pid = fork();
	assert_true(r->pid >= 0);
	if (r->pid == 0) {
		(void)alarm(60);
		for (size_t i = 0; i < n; i++)
			serve(fd, log[1], &steps[i]);
		_exit(0);
	}
	(void)close(log[1]);
	(void)close(fd);
	r->log = log[0];
}

void http_rig_stop(struct http_rig *r)
{
	assert_int_equal(fd_slurp(r->log, &r->got), 0);
	assert_int_equal(waitpid(r->pid, NULL, 0), r->pid);
	r->pid = 0;
}

void http_rig_done(struct http_rig *r)
{
	if (r->pid > 0)
		http_rig_stop(r);
	r->log = fd_close(r->log);
	buf_done(&r->got);
}
