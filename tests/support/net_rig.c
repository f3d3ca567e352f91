#include "net_rig.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/parse.h"
#include "check.h"
#include "loop/loop.h"

#define LATE_MS 10000
#define TURNS_MIN 20 /* however busy the machine is: enough to accept, read, answer and close */

static void on_late(void *user)
{
	struct net_rig *g = user;

	g->late = true;
	loop_stop(g->loop);
}

static void on_turn(void *user)
{
	struct net_rig *g = user;

	if (++g->turns < TURNS_MIN)
		loop_task_post(g->loop, &g->turn);
	else if (g->late)
		loop_stop(g->loop);
}

void net_rig_open(struct net_rig *g, const struct http_server_options *o)
{
	struct err err = { 0 };

	*g = (struct net_rig){ 0 };
	assert_int_equal(loop_create(&g->loop, &err), 0);
	assert_int_equal(loop_timer_create(g->loop, on_late, g, &g->timer), 0);
	loop_task_init(&g->turn, on_turn, g);
	if (http_server_create(g->loop, o, &g->server, &err) < 0)
		fail_msg("%s", err.text);
	g->port = net_listen(g->server, "127.0.0.1:0", NULL, &err);
	if (g->port <= 0)
		fail_msg("%s", err.text);
}

void net_rig_close(struct net_rig *g)
{
	g->server = http_server_free(g->server);
	g->timer = loop_timer_free(g->timer);
	g->loop = loop_free(g->loop);
}

void net_rig_run_ms(struct net_rig *g, unsigned ms)
{
	g->turns = 0;
	loop_task_post(g->loop, &g->turn);
	loop_timer_start(g->timer, ms, 0);
	while (!g->late || g->turns < TURNS_MIN)
		loop_run(g->loop);
	g->late = false;
}

/* Runs until somebody stops the loop; false when nobody did. */
static bool run(struct net_rig *g)
{
	bool late;

	loop_timer_start(g->timer, LATE_MS, 0);
	loop_run(g->loop);
	loop_timer_stop(g->timer);
	late = g->late;
	g->late = false;
	return !late;
}

void net_rig_until(struct net_rig *g, const bool *flag)
{
	for (int i = 0; !*flag && i < LATE_MS; i++)
		net_rig_run_ms(g, 1);
	assert_true(*flag);
}

static bool has(const struct net_client *c, const char *text)
{
	return memmem(buf_str(&c->got), c->got.len, text, strlen(text)) != NULL;
}

static void on_readable(void *user, unsigned events)
{
	struct net_client *c = user;
	char bytes[65536];
	ssize_t n = recv(c->fd, bytes, sizeof(bytes), 0);

	(void)events;
	if (n > 0)
		assert_int_equal(buf_append(&c->got, bytes, (size_t)n), 0);
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
		c->closed = true;
		c->reset = n < 0 && errno == ECONNRESET;
		(void)loop_io_want(c->io, 0);
		loop_stop(c->g->loop);
	}
	if ((c->want && has(c, c->want)) || (c->want_n > 0 && c->got.len >= c->want_n))
		loop_stop(c->g->loop);
}

void net_client_open(struct net_client *c, struct net_rig *g)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)g->port) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	net_client_adopt(c, g, fd);
}

void net_client_adopt(struct net_client *c, struct net_rig *g, int fd)
{
	*c = (struct net_client){ .g = g, .fd = fd };
	assert_int_equal(loop_io_create(g->loop, c->fd, on_readable, c, &c->io), 0);
	net_client_read(c, true);
}

void net_client_close(struct net_client *c)
{
	c->io = loop_io_free(c->io);
	c->fd = fd_close(c->fd);
	buf_done(&c->got);
}

void net_client_read(struct net_client *c, bool on)
{
	assert_int_equal(loop_io_want(c->io, on && !c->closed ? LOOP_READ : 0), 0);
}

void net_client_send(struct net_client *c, const void *data, size_t n)
{
	for (size_t sent = 0; sent < n && !c->closed;) {
		ssize_t k = send(c->fd, (const char *)data + sent, n - sent, MSG_NOSIGNAL);

		if (k > 0)
			sent += (size_t)k;
		else if (errno == EAGAIN)
			net_rig_run_ms(c->g, 1);
		else
			return; /* the server has closed it: what it said is looked at */
	}
}

size_t net_client_send_some(struct net_client *c, const void *data, size_t n)
{
	ssize_t sent = send(c->fd, data, n, MSG_NOSIGNAL | MSG_DONTWAIT);

	return sent > 0 ? (size_t)sent : 0;
}

void net_client_puts(struct net_client *c, const char *text)
{
	net_client_send(c, text, strlen(text));
}

void net_client_until(struct net_client *c, const char *text)
{
	c->want = text;
	while (!has(c, text) && !c->closed)
		if (!run(c->g))
			break;
	c->want = NULL;
	if (!has(c, text))
		fail_msg("'%s' has not come, but: %.2000s", text, buf_str(&c->got));
}

void net_client_until_len(struct net_client *c, size_t n)
{
	c->want_n = n;
	while (c->got.len < n && !c->closed)
		if (!run(c->g))
			break;
	c->want_n = 0;
	if (c->got.len < n)
		fail_msg("%zu bytes have come instead of %zu", c->got.len, n);
}

void net_client_until_closed(struct net_client *c)
{
	while (!c->closed)
		if (!run(c->g))
			break;
	if (!c->closed)
		fail_msg("not closed; there came: %.2000s", buf_str(&c->got));
}

const char *net_client_ask(struct net_client *c, const char *text)
{
	const char *length, *end;
	char digits[16] = "";
	uint64_t n;

	net_client_forget(c);
	net_client_puts(c, text);
	net_client_until(c, "\r\n\r\n");
	length = strcasestr(buf_str(&c->got), "\r\nContent-Length: ");
	assert_non_null(length);
	length += 18;
	memcpy(digits, length, strspn(length, "0123456789"));
	assert_int_equal(parse_u64(digits, 0, 1 << 30, &n), 0);
	end = strstr(c->got.data, "\r\n\r\n");
	net_client_until_len(c, (size_t)(end + 4 - c->got.data) + n);
	return buf_str(&c->got);
}

void net_client_forget(struct net_client *c)
{
	buf_clear(&c->got);
}

bool net_client_has(const struct net_client *c, const char *text)
{
	return has(c, text);
}

unsigned net_client_count(const struct net_client *c, const char *text)
{
	const char *p = buf_str(&c->got), *end = p + c->got.len;
	unsigned n = 0;

	while ((p = memmem(p, (size_t)(end - p), text, strlen(text)))) {
		p += strlen(text);
		n++;
	}
	return n;
}
