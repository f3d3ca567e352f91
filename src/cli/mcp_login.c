/* holt mcp login: somebody logs in at others' MCP server for the daemon. The address is printed,
 * and nothing is opened by itself; the browser comes back to a port of this machine, and what it
 * brings goes to the daemon, which has asked for it. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include "cli/client.h"
#include "cli/command.h"
#include "json/jw.h"

#define CALLBACK "/callback"
#define HEAD_MAX (16u << 10) /* bytes of a browser's request */
#define HEAD_MS 5000         /* for all of it */
#define BACKLOG 8
#define WAIT_S 600u /* as long as the daemon waits */

struct login_args {
	struct client_args client;
	uint32_t port;
};

#define AT(field) offsetof(struct login_args, field)
const struct opt mcp_login_opts[] = {
	{ .name = "port",
	  .type = OPT_COUNT,
	  .arg = "PORT",
	  .help = "where the browser comes back to (any that is free)",
	  .max = UINT16_MAX,
	  .offset = AT(port) },
	CLIENT_OPTS(struct login_args, client),
	{ 0 },
};

/* ---- the browser ---- */

static int listen_here(uint32_t port, int *ret_fd, uint16_t *ret_port, struct err *err)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_port = htons((uint16_t)port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(at);
	_close_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 || listen(fd, BACKLOG) < 0 ||
	    getsockname(fd, (struct sockaddr *)&at, &size) < 0)
		return err_sys(err, errno, "127.0.0.1:%u", port);
	*ret_port = ntohs(at.sin_port);
	*ret_fd = TAKE_FD(fd);
	return 0;
}

static bool is_whole(const struct buf *b)
{
	return strstr(buf_str(b), "\r\n\r\n") || strstr(buf_str(b), "\n\n");
}

/* The head of its request. Whoever is slow, or says too much, is left. */
static int read_head(int fd, struct buf *b)
{
	uint64_t until = clock_now_ms() + HEAD_MS;

	while (!is_whole(b)) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		uint64_t now = clock_now_ms();
		ssize_t n;

		if (now >= until || poll(&p, 1, (int)(until - now)) <= 0)
			return -ETIMEDOUT;
		if (buf_reserve(b, 1024) < 0)
			return -E2BIG;
		n = recv(fd, b->data + b->len, 1024, 0);
		if (n <= 0)
			return -ECONNRESET;
		b->len += (size_t)n;
		b->data[b->len] = '\0';
	}
	return 0;
}

/* "GET /callback?QUERY HTTP/1.1": the query, cut off in its place; NULL: something else. */
static char *find_query(struct buf *head)
{
	static const char begin[] = "GET " CALLBACK "?";
	char *query, *end;

	if (strncmp(buf_str(head), begin, sizeof(begin) - 1) != 0)
		return NULL;
	query = head->data + sizeof(begin) - 1;
	end = query + strcspn(query, " \r\n");
	if (*end != ' ')
		return NULL;
	*end = '\0';
	return query;
}

static void answer(int fd, int status, const char *text)
{
	struct buf b = { 0 };

	(void)buf_printf(&b,
			 "HTTP/1.1 %d %s\r\nContent-Type: text/plain; charset=utf-8\r\n"
			 "Content-Length: %zu\r\nCache-Control: no-store\r\n"
			 "Referrer-Policy: no-referrer\r\nConnection: close\r\n\r\n%s",
			 status, status == 200 ? "OK" : "No", strlen(text), text);
	(void)send(fd, buf_str(&b), b.len, MSG_NOSIGNAL);
	(void)shutdown(fd, SHUT_WR);
	buf_done(&b);
}

/* ---- the daemon ---- */

static int post(struct client *c, const char *pattern, const char *server, const char *key,
		const char *value, struct client_doc *ret, struct err *err)
{
	_cleanup_(buf_done) struct buf body = { 0 }, path = { 0 };
	struct jw w = jw_begin(&body);
	int r = client_path(&path, pattern, server);

	jw_object_begin(&w);
	jw_str_field(&w, key, value);
	jw_object_end(&w);
	if (r == 0)
		r = jw_end(&w);
	if (r < 0)
		return err_sys(err, r, "login");
	return client_json(c, "POST", buf_str(&path), &body, ret, err);
}

static int begin(struct client *c, const char *server, uint16_t port, struct err *err)
{
	_cleanup_(client_doc_done) struct client_doc d = { 0 };
	char redirect[64];
	const char *url;
	int r = str_format(redirect, sizeof(redirect), "http://127.0.0.1:%u" CALLBACK, port);

	if (r == 0)
		r = post(c, "tools/servers/%/login", server, "redirect_uri", redirect, &d, err);
	if (r < 0)
		return r;
	url = jv_text(jv_get(jv_root(d.doc), "url"));
	if (!url)
		return err_set(err, EPROTO, "the daemon says no address");
	if (c->json)
		return client_print(&d.text);
	cli_hint("open this address in a browser on this machine:");
	(void)printf("%s\n", url);
	(void)fflush(stdout);
	return 0;
}

/* 0: it is over, *is_over says so; a browser that brought nothing is nobody's failure. */
static int serve_one(struct client *c, const char *server, int listener, bool *is_over,
		     struct err *err)
{
	_cleanup_(client_doc_done) struct client_doc d = { 0 };
	_cleanup_(buf_done) struct buf head = { .max = HEAD_MAX };
	_close_ int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	const char *query;
	int r;

	if (fd < 0 || read_head(fd, &head) < 0)
		return 0;
	query = find_query(&head);
	if (!query) {
		answer(fd, 404, "There is nothing here.\n");
		return 0;
	}
	r = post(c, "tools/servers/%/login/finish", server, "query", query, &d, err);
	if (r < 0 && c->status == 400) { /* not an answer to what was asked: it stays open */
		answer(fd, 400, "That is no answer to what was asked.\n");
		err_clear(err);
		return 0;
	}
	*is_over = true;
	answer(fd, r < 0 ? 502 : 200,
	       r < 0 ? "It did not work: the terminal says why.\n"
		     : "You are logged in. This window can be closed.\n");
	return r;
}

static int run_login(struct client *c, void *args, int n, char **operands, struct err *err)
{
	const struct login_args *a = args;
	uint64_t until = clock_now_ms() + WAIT_S * 1000;
	_close_ int fd = -1;
	uint16_t port = 0;
	bool is_over = false;
	int r = listen_here(a->port, &fd, &port, err);

	(void)n;
	if (r == 0)
		r = begin(c, operands[0], port, err);
	while (r == 0 && !is_over) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		uint64_t now = clock_now_ms();

		if (now >= until)
			return err_set(err, ETIMEDOUT, "nobody has logged in in time");
		if (poll(&p, 1, (int)(until - now)) > 0)
			r = serve_one(c, operands[0], fd, &is_over, err);
	}
	if (r == 0 && !c->json)
		cli_say("logged in at %s", operands[0]);
	return r;
}

static int run_logout(struct client *c, void *args, int n, char **operands, struct err *err)
{
	_cleanup_(client_doc_done) struct client_doc d = { 0 };
	_cleanup_(buf_done) struct buf path = { 0 };
	int r = client_path(&path, "tools/servers/%/login", operands[0]);

	(void)args;
	(void)n;
	return r < 0 ? err_sys(err, r, "logout")
		     : client_json(c, "DELETE", buf_str(&path), NULL, &d, err);
}

struct logout_args {
	struct client_args client;
};

CLIENT_COMMAND(cmd_mcp_login, login_args, 1, 1, run_login, .port = 0)
CLIENT_COMMAND(cmd_mcp_logout, logout_args, 1, 1, run_logout, .client.json = false)
