/* holt port forward: ports of a sandbox as ports of this machine. Each connection is carried by a
 * process of its own: one that fails or hangs takes no other along. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/parse.h"
#include "base/str.h"
#include "cli/client.h"
#include "cli/command.h"
#include "cli/forward.h"
#include "json/jw.h"

#define FORWARDS_MAX 16
#define CARRIERS_MAX 64 /* what a sandbox has of streams, too */
#define BACKLOG 64
#define REFUSED_STATUS 1

struct forward_args {
	struct client_args client;
	bool expose;
};

#define AT(field) offsetof(struct forward_args, field)
const struct opt port_forward_opts[] = {
	{ .name = "expose",
	  .type = OPT_FLAG,
	  .help = "expose ports that are not, and close those again at the end",
	  .offset = AT(expose) },
	CLIENT_OPTS(struct forward_args, client),
	{ 0 },
};

struct forward {
	uint16_t local, port;
	int fd;         /* owned: listens */
	bool is_opened; /* by us */
};

struct forwards {
	struct client *client; /* borrowed */
	const char *sandbox;
	struct forward all[FORWARDS_MAX];
	size_t count;
	pid_t carriers[CARRIERS_MAX]; /* 0: free */
	int sigfd;                    /* owned */
	bool is_over;
};

/* ---- what is asked for ---- */

static int parse_forward(const char *text, struct forward *ret, struct err *err)
{
	const char *colon = strchr(text, ':');
	uint32_t local = 0, port = 0;
	char number[8];
	int r = parse_u32(colon ? colon + 1 : text, 1, UINT16_MAX, &port);

	*ret = (struct forward){ .fd = -1 };
	local = port;
	if (r == 0 && colon)
		r = str_format(number, sizeof(number), "%.*s", (int)(colon - text), text);
	if (r == 0 && colon) /* 0: any that is free */
		r = parse_u32(number, 0, UINT16_MAX, &local);
	if (r < 0)
		return err_set(err, EINVAL, "'%.40s': want PORT or LOCAL:PORT, up to 65535", text);
	ret->local = (uint16_t)local;
	ret->port = (uint16_t)port;
	return 0;
}

/* On loopback only: whoever reaches it needs no key any more. */
static int listen_locally(struct forward *f, struct err *err)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_port = htons(f->local),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(at);
	int on = 1;

	f->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (f->fd < 0 || setsockopt(f->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
	    bind(f->fd, (struct sockaddr *)&at, sizeof(at)) < 0 || listen(f->fd, BACKLOG) < 0 ||
	    getsockname(f->fd, (struct sockaddr *)&at, &size) < 0)
		return err_sys(err, errno, "127.0.0.1:%u", f->local);
	f->local = ntohs(at.sin_port);
	return 0;
}

static int port_request(struct forwards *s, const char *method, struct forward *f, struct err *err)
{
	_cleanup_(client_doc_done) struct client_doc d = { 0 };
	_cleanup_(buf_done) struct buf path = { 0 }, body = { 0 };
	bool is_new = strcmp(method, "POST") == 0;
	char number[8];
	int r;

	(void)str_format(number, sizeof(number), "%u", f->port);
	if (is_new)
		r = client_path(&path, "sandboxes/%/ports", s->sandbox);
	else
		r = client_path(&path, "sandboxes/%/ports/%", s->sandbox, number);
	if (r == 0 && is_new)
		r = buf_printf(&body, "{\"port\":%u}", f->port);
	if (r < 0)
		return err_sys(err, r, "request");
	return client_json(s->client, method, path.data, is_new ? &body : NULL, &d, err);
}

static int check_exposed(struct forwards *s, struct forward *f, bool expose, struct err *err)
{
	struct err why = { 0 };
	int r = port_request(s, "GET", f, &why);

	if (r == 0)
		return 0;
	if (r != -ENOENT)
		return err_copy(err, &why);
	if (!expose)
		return err_set(err, ENOENT, "%.160s (holt port expose, or --expose)", why.text);
	r = port_request(s, "POST", f, err);
	f->is_opened = r == 0;
	return r;
}

static int print_forwards(const struct forwards *s)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);
	int r;

	jw_array_begin(&w);
	for (size_t i = 0; i < s->count; i++) {
		jw_object_begin(&w);
		jw_str_field(&w, "address", "127.0.0.1");
		jw_uint_field(&w, "local", s->all[i].local);
		jw_uint_field(&w, "port", s->all[i].port);
		jw_object_end(&w);
		if (!s->client->json)
			(void)printf("127.0.0.1:%u -> %s:%u\n", s->all[i].local, s->sandbox,
				     s->all[i].port);
	}
	jw_array_end(&w);
	r = jw_end(&w);
	if (r == 0 && s->client->json)
		r = client_print(&b);
	return r < 0 || fflush(stdout) != 0 ? -EIO : 0;
}

/* ---- connections ---- */

static _Noreturn void run_carrier(struct forwards *s, const struct forward *f, int fd, pid_t parent)
{
	struct err err = { 0 };
	sigset_t none;

	/* It ends with us, however we do. */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(REFUSED_STATUS);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	for (size_t i = 0; i < s->count; i++)
		(void)fd_close(s->all[i].fd);
	if (forward_carry(s->client, s->sandbox, f->port, fd, &err) == 0)
		_exit(0);
	cli_say("%s", err.text);
	_exit(REFUSED_STATUS);
}

static pid_t *free_carrier(struct forwards *s)
{
	for (size_t i = 0; i < CARRIERS_MAX; i++)
		if (s->carriers[i] == 0)
			return &s->carriers[i];
	return NULL;
}

static void on_connection(struct forwards *s, const struct forward *f)
{
	struct sockaddr_in peer = { 0 };
	socklen_t size = sizeof(peer);
	_close_ int fd = accept4(f->fd, (struct sockaddr *)&peer, &size, SOCK_CLOEXEC);
	pid_t *slot = free_carrier(s), parent = getpid();

	if (fd < 0)
		return;
	if (!slot)
		return cli_say("port %u: %d connections are open, the limit", f->port,
			       CARRIERS_MAX);
	cli_say("port %u: a connection from 127.0.0.1:%u", f->port, ntohs(peer.sin_port));
	*slot = fork();
	if (*slot == 0)
		run_carrier(s, f, fd, parent);
	if (*slot > 0)
		return;
	*slot = 0;
	cli_say("port %u: %s", f->port, strerror(errno));
}

static void reap(struct forwards *s)
{
	for (size_t i = 0; i < CARRIERS_MAX; i++)
		if (s->carriers[i] > 0 && waitpid(s->carriers[i], NULL, WNOHANG) != 0)
			s->carriers[i] = 0;
}

static void on_signal(struct forwards *s)
{
	struct signalfd_siginfo info;

	if (read(s->sigfd, &info, sizeof(info)) != sizeof(info))
		return;
	if (info.ssi_signo == SIGCHLD)
		reap(s);
	else
		s->is_over = true;
}

static int loop(struct forwards *s, struct err *err)
{
	struct pollfd polls[FORWARDS_MAX + 1];

	while (!s->is_over) {
		polls[s->count] = (struct pollfd){ .fd = s->sigfd, .events = POLLIN };
		for (size_t i = 0; i < s->count; i++)
			polls[i] = (struct pollfd){ .fd = s->all[i].fd, .events = POLLIN };
		if (poll(polls, s->count + 1, -1) < 0 && errno != EINTR)
			return err_sys(err, errno, "poll");
		if (polls[s->count].revents)
			on_signal(s);
		for (size_t i = 0; i < s->count && !s->is_over; i++)
			if (polls[i].revents)
				on_connection(s, &s->all[i]);
	}
	return 0;
}

/* ---- from the beginning to the end ---- */

static int watch_signals(struct forwards *s, struct err *err)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD };
	sigset_t set;

	(void)sigemptyset(&set);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		(void)sigaddset(&set, signals[i]);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	s->sigfd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return s->sigfd < 0 ? err_sys(err, errno, "signalfd") : 0;
}

static void forwards_done(struct forwards *s)
{
	struct err ignored;

	for (size_t i = 0; i < CARRIERS_MAX; i++)
		if (s->carriers[i] > 0) {
			(void)kill(s->carriers[i], SIGKILL);
			(void)waitpid(s->carriers[i], NULL, 0);
		}
	for (size_t i = 0; i < s->count; i++) {
		(void)fd_close(s->all[i].fd);
		if (s->all[i].is_opened && port_request(s, "DELETE", &s->all[i], &ignored) < 0)
			cli_say("port %u is still exposed: %s", s->all[i].port, ignored.text);
	}
	(void)fd_close(s->sigfd);
}

static int forward(struct client *c, void *args, int n, char **operands, struct err *err)
{
	_cleanup_(forwards_done) struct forwards s = { .client = c,
						       .sandbox = operands[0],
						       .sigfd = -1 };
	const struct forward_args *a = args;
	int r = watch_signals(&s, err);

	for (int i = 1; i < n && r == 0; i++) {
		r = parse_forward(operands[i], &s.all[s.count], err);
		if (r == 0)
			r = listen_locally(&s.all[s.count++], err);
	}
	for (size_t i = 0; i < s.count && r == 0; i++)
		r = check_exposed(&s, &s.all[i], a->expose, err);
	if (r == 0)
		r = print_forwards(&s);
	return r < 0 ? r : loop(&s, err);
}

int cmd_port_forward(const struct command *cmd, int argc, char **argv)
{
	struct forward_args args = { 0 };
	struct client_task task = { &args, &args.client, 2, FORWARDS_MAX + 1, forward };

	return client_run(cmd, argc, argv, &task);
}
