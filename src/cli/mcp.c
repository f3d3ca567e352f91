/* holt mcp: the daemon's MCP server for a client that talks over standard input and output. Without
 * a daemon it starts one of its own, which ends with it. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "cli/client.h"
#include "cli/command.h"
#include "cli/mcp_bridge.h"
#include "cli/own_daemon.h"
#include "config/config.h"
#include "crypto/secret.h"
#include "httpc/url.h"
#include "loop/loop.h"
#include "mcpc/http.h"
#include "outbound/courier.h"

#define LOOK_MS 5       /* between looks whether the last requests are through */
#define LOOKS_MAX 1000u /* until they are given up */
#define READ_SIZE 65536u

struct mcp_args {
	struct client_args client;
	const char *sandbox;
	bool no_start;
};

#define AT(field) offsetof(struct mcp_args, field)
const struct opt mcp_opts[] = {
	{ .name = "sandbox",
	  .type = OPT_TEXT,
	  .arg = "ID",
	  .help = "the server of this sandbox alone",
	  .offset = AT(sandbox) },
	{ .name = "no-start",
	  .type = OPT_FLAG,
	  .help = "fail when there is no daemon, instead of starting one",
	  .offset = AT(no_start) },
	CLIENT_SETTINGS(struct mcp_args, client),
	{ 0 },
};

struct mcp {
	struct loop *loop;
	struct courier *courier;
	struct mcp_bridge *bridge;
	struct loop_io *in;          /* NULL: it is a file */
	struct loop_task read_again; /* of a file */
	struct loop_timer *timer;    /* after the end */
	unsigned looks;
	bool is_over;
	struct loop_signal *signals[3];
	int in_flags;   /* of standard input, as they were; -1 */
	struct buf key; /* the header; zeroed */
};

/* ---- the end ---- */

static void look(void *user)
{
	struct mcp *m = user;

	m->bridge = mcp_bridge_free(m->bridge); /* which may have a session to end */
	if (courier_count(m->courier) == 0 || m->looks++ == LOOKS_MAX)
		loop_stop(m->loop);
	else
		loop_timer_start(m->timer, LOOK_MS, 0);
}

static void finish(void *user)
{
	struct mcp *m = user;

	if (m->is_over)
		return;
	m->is_over = true;
	m->in = loop_io_free(m->in);
	loop_timer_start(m->timer, 0, 0);
}

static void caught(void *user, int signo)
{
	(void)signo;
	finish(user);
}

/* ---- the client's side ---- */

/* Blocks while the client does not read: the server is held back by that. */
static void write_line(void *user, const char *text, size_t n)
{
	struct mcp *m = user;
	struct pollfd out = { .fd = STDOUT_FILENO, .events = POLLOUT };
	struct buf line = { .max = n + 1 };
	size_t done = 0;

	(void)buf_append(&line, text, n);
	(void)buf_putc(&line, '\n');
	while (!line.failed && done < line.len) {
		ssize_t r = write(STDOUT_FILENO, line.data + done, line.len - done);

		if (r >= 0) {
			done += (size_t)r;
		} else if (errno == EAGAIN) {
			(void)poll(&out, 1, -1);
		} else if (errno != EINTR) { /* nobody is there any more */
			finish(m);
			break;
		}
	}
	buf_done(&line);
}

static const struct mcp_bridge_ops ops = { .line = write_line, .over = finish };

/* False: there is nothing more for now. */
static bool read_some(struct mcp *m)
{
	char data[READ_SIZE];
	ssize_t n = read(STDIN_FILENO, data, sizeof(data));

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n > 0) {
		mcp_bridge_feed(m->bridge, data, (size_t)n);
		return true;
	}
	m->in = loop_io_free(m->in);
	mcp_bridge_end(m->bridge);
	return false;
}

static void readable(void *user, unsigned events)
{
	(void)events;
	(void)read_some(user); /* what is left is told again */
}

static void read_file(void *user)
{
	struct mcp *m = user;

	if (!m->is_over && read_some(m) && !m->is_over)
		loop_task_post(m->loop, &m->read_again);
}

static int watch_input(struct mcp *m)
{
	int r;

	m->in_flags = fcntl(STDIN_FILENO, F_GETFL);
	r = loop_io_create(m->loop, STDIN_FILENO, readable, m, &m->in);
	if (r == 0)
		return loop_io_want(m->in, LOOP_READ);
	if (r != -EPERM)
		return r;
	loop_task_post(m->loop, &m->read_again); /* a file is always ready */
	return 0;
}

static int watch_signals(struct mcp *m)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
	int r = 0;

	(void)signal(SIGPIPE, SIG_IGN); /* a write says it */
	for (size_t i = 0; r == 0 && i < sizeof(signals) / sizeof(signals[0]); i++)
		r = loop_signal_create(m->loop, signals[i], caught, m, &m->signals[i]);
	return r;
}

/* ---- the server's side ---- */

struct place {
	const char *server, *key, *sandbox;
};

static int open_bridge(struct mcp *m, const struct place *p, struct err *err)
{
	_cleanup_(buf_done) struct buf target = { 0 };
	struct mcpc_transport *t = NULL;
	const char *headers[] = { NULL, NULL };
	int r = p->sandbox ? client_path(&target, "/sandboxes/%/mcp", p->sandbox)
			   : buf_puts(&target, "/mcp");

	if (r == 0 && p->key) {
		(void)buf_puts(&m->key, "Authorization: Bearer ");
		r = buf_puts(&m->key, p->key);
		headers[0] = m->key.data;
	}
	if (r < 0)
		return err_sys(err, r, "mcp");
	r = mcpc_http_create(&(struct mcpc_http_options){ .loop = m->loop,
							  .courier = m->courier,
							  .server = p->server,
							  .url = target.data,
							  .ca_file = getenv("SSL_CERT_FILE"),
							  .headers = headers },
			     &t, err);
	return r < 0 ? r : mcp_bridge_create(t, &ops, m, &m->bridge, err);
}

static void mcp_done(struct mcp *m)
{
	m->in = loop_io_free(m->in);
	loop_task_cancel(&m->read_again);
	m->bridge = mcp_bridge_free(m->bridge);
	m->courier = courier_free(m->courier);
	m->timer = loop_timer_free(m->timer);
	for (size_t i = 0; i < sizeof(m->signals) / sizeof(m->signals[0]); i++)
		m->signals[i] = loop_signal_free(m->signals[i]);
	m->loop = loop_free(m->loop);
	if (m->in_flags >= 0)
		(void)fcntl(STDIN_FILENO, F_SETFL, m->in_flags);
	if (m->key.data)
		explicit_bzero(m->key.data, m->key.len);
	buf_done(&m->key);
}

static int carry(const struct place *p, struct err *err)
{
	_cleanup_(mcp_done) struct mcp m = { .in_flags = -1 };
	int r = loop_create(&m.loop, err);

	if (r < 0)
		return r;
	loop_task_init(&m.read_again, read_file, &m);
	r = courier_create(m.loop, &m.courier, err);
	if (r == 0)
		r = open_bridge(&m, p, err);
	if (r < 0)
		return r;
	r = loop_timer_create(m.loop, look, &m, &m.timer);
	if (r == 0)
		r = watch_signals(&m);
	if (r == 0)
		r = watch_input(&m);
	if (r < 0)
		return err_sys(err, r, "standard input");
	loop_run(m.loop);
	return 0;
}

/* ---- which daemon ---- */

static int carry_private(struct err *err)
{
	static const char *const kept[] = { "HOLT_MCP_SERVERS_FILE", "HOLT_SKILLS_DIR",
					    "HOLT_LOG_LEVEL", NULL };
	_cleanup_(own_daemon_stop) struct own_daemon d = { 0 };
	char server[64];
	int r = own_daemon_start(&d, "mcp", kept, err);

	if (r < 0)
		return r;
	(void)str_format(server, sizeof(server), "http://127.0.0.1:%u", d.port);
	return carry(&(struct place){ .server = server, .key = d.key }, err);
}

static int run(struct client *c, void *args, int n, char **operands, struct err *err)
{
	_cleanup_(client_doc_done) struct client_doc health = { 0 };
	const struct mcp_args *a = args;
	struct place place = { .server = c->config->url,
			       .key = secret_reveal(c->config->api_key, NULL),
			       .sandbox = a->sandbox };
	struct url url;
	int r = client_json(c, "GET", "/healthz", NULL, &health, err);

	(void)n;
	(void)operands;
	if (r == 0)
		return carry(&place, err);
	/* One elsewhere, or one that is there and refuses, is not to be replaced by another. */
	if (r != -ECONNREFUSED || a->no_start || a->sandbox ||
	    url_parse(c->config->url, &url, NULL) < 0 || !url.loopback)
		return r;
	cli_say("no daemon at %s: one is started, and ends with this command", c->config->url);
	err_clear(err);
	return carry_private(err);
}

int cmd_mcp(const struct command *cmd, int argc, char **argv)
{
	struct mcp_args args = { 0 };
	struct client_task task = { &args, &args.client, 0, 0, run };

	return client_run(cmd, argc, argv, &task);
}
