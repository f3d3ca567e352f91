#include "daemon/starter.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "auth/buckets.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include "mcpc/servers_row.h"
#include "provider/privilege.h"
#include "json/jv.h"

#define ROW_MAX (1u << 20) /* bytes of what is made of one row */
#define PATIENCE_MS 10000  /* with a program that does not begin */
#define N_FDS 4u

struct starter_answer {
	int32_t code;   /* 0 or a negative errno */
	char text[240]; /* why not, for a person */
};

/* ---- the process ---- */

const char *starter_variable(void *user, const char *name)
{
	(void)user;
	return getenv(name);
}

struct life {
	char name[MCPC_SERVER_NAME_MAX + 1]; /* of its row */
	int fd;                              /* see stdio_spawn() */
};

struct desk {
	int sock;
	struct jv rows;
	struct buckets *pace;
	size_t n_lives;
	struct life lives[MCPC_SERVERS_MAX * STARTER_LIVES_MAX];
};

static bool is_over(int life)
{
	char byte;

	return TEMP_FAILURE_RETRY(read(life, &byte, 1)) == 0;
}

/* Those of the name that are there still; who is gone is forgotten. */
static size_t count_lives(struct desk *d, const char *name)
{
	size_t n = 0, kept = 0;

	for (size_t i = 0; i < d->n_lives; i++) {
		if (is_over(d->lives[i].fd)) {
			(void)close(d->lives[i].fd);
			continue;
		}
		n += strcmp(d->lives[i].name, name) == 0;
		d->lives[kept++] = d->lives[i];
	}
	d->n_lives = kept;
	return n;
}

/* A daemon under somebody else's control asks as often as it can. */
static int check_pace(struct desk *d, const char *name, struct err *err)
{
	const struct rate rate = { STARTER_RATE, 60000 };
	struct bucket_state state;

	if (count_lives(d, name) >= STARTER_LIVES_MAX ||
	    d->n_lives == sizeof(d->lives) / sizeof(d->lives[0]))
		return err_set(err, EAGAIN, "%u of it run already", STARTER_LIVES_MAX);
	if (!buckets_take(d->pace, name, RATE_EXEC, rate, clock_now_ns(), &state))
		return err_set(err, EAGAIN, "it was started too often: once more in %" PRIu64 " s",
			       state.wait_ms / 1000 + 1);
	return 0;
}

static int spawn_watched(struct desk *d, const char *name, const struct stdio_spec *spec,
			 struct stdio_process *ret, struct err *err)
{
	int life, r = stdio_spawn(spec, ret, &life, err);

	if (r < 0)
		return r;
	(void)str_copy(d->lives[d->n_lives].name, sizeof(d->lives[0].name), name);
	d->lives[d->n_lives++].fd = life;
	return 0;
}

static void free_arena(struct arena **a)
{
	*a = arena_free(*a);
}

/* The daemon is not trusted: what it says is the name of a row, or of none. */
static int start_server(struct desk *d, const char *name, struct stdio_process *ret,
			struct err *err)
{
	const struct mcpc_servers_deps deps = { .variable = starter_variable };
	_cleanup_(free_arena) struct arena *a = arena_create(ROW_MAX);
	const char *argv[SERVER_ARGS_MAX + 1];
	struct jv v = jv_get(d->rows, name);
	struct server_row row = { 0 };
	struct stdio_spec spec;
	int r;

	if (!a)
		return err_sys(err, ENOMEM, "server");
	if (jv_kind(v) == JV_ABSENT)
		return err_set(err, ENOENT, "there is no such server");
	r = server_row_read(str_of(name), v, &deps, a, &row, err);
	if (r < 0)
		return r;
	if (!row.command || !row.is_on_host || row.is_disabled)
		return err_set(err, EINVAL, "it is no server of this machine");
	r = check_pace(d, name, err);
	if (r < 0)
		return r;
	spec = server_row_spec(&row, argv);
	return spawn_watched(d, name, &spec, ret, err);
}

static void answer(struct desk *d, const char *name)
{
	_cleanup_(stdio_process_close) struct stdio_process p = STDIO_PROCESS_NONE;
	struct starter_answer a = { 0 };
	struct err err = { 0 };
	int fds[N_FDS];

	a.code = start_server(d, name, &p, &err);
	(void)str_copy(a.text, sizeof(a.text), err.text);
	fds[0] = p.in;
	fds[1] = p.out;
	fds[2] = p.said;
	fds[3] = p.control;
	(void)fd_send(d->sock, &a, sizeof(a), fds, a.code < 0 ? 0 : N_FDS);
}

static _Noreturn void serve(int sock, const struct buf *json, const struct account *as)
{
	struct desk d = { .sock = sock, .pace = buckets_create(MCPC_SERVERS_MAX) };
	struct jv_doc *doc = NULL;
	sigset_t all;

	(void)sigfillset(&all); /* it ends with the daemon, whatever a terminal says */
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	(void)prctl(PR_SET_NAME, "holt-starter", 0, 0, 0);
	/* The daemon's files, and its way to the keeper. */
	fd_close_others(STDERR_FILENO + 1, &sock, 1);
	if (as && privilege_drop(as, NULL) < 0)
		_exit(1);
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	if (!d.pace || jv_parse(buf_str(json), json->len, MCPC_SERVERS_JSON_MAX, &doc, NULL) < 0)
		_exit(0); /* the daemon says what is wrong with it */
	d.rows = jv_get(jv_root(doc), "mcpServers");
	for (;;) {
		char name[MCPC_SERVER_NAME_MAX + 1];
		size_t nfds = 0;
		ssize_t n = fd_recv(sock, name, sizeof(name) - 1, NULL, &nfds);

		if (n <= 0 && n != -EMSGSIZE)
			_exit(0);
		name[n > 0 ? n : 0] = '\0';
		answer(&d, name);
	}
}

int starter_start(const struct buf *json, const struct account *as, struct starter *ret,
		  struct err *err)
{
	int pair[2];
	pid_t pid;

	if (json->len == 0)
		return 0;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(err, errno, "socketpair");
	pid = fork();
	if (pid == 0)
		serve(pair[1], json, as);
	(void)close(pair[1]);
	if (pid < 0) {
		(void)close(pair[0]);
		return err_sys(err, errno, "fork");
	}
	ret->sock = pair[0];
	return 0;
}

/* ---- the daemon's end ---- */

static int receive(int sock, struct stdio_process *ret, struct err *err)
{
	struct pollfd p = { .fd = sock, .events = POLLIN };
	struct starter_answer a = { 0 };
	int fds[N_FDS] = { -1, -1, -1, -1 };
	size_t nfds = N_FDS;
	ssize_t n;

	if (TEMP_FAILURE_RETRY(poll(&p, 1, PATIENCE_MS)) <= 0)
		return err_set(err, ETIMEDOUT, "the process that starts servers does not answer");
	n = fd_recv(sock, &a, sizeof(a), fds, &nfds);
	if (n != (ssize_t)sizeof(a) || (a.code == 0 && nfds != N_FDS))
		return err_set(err, EPIPE, "the process that starts servers is gone");
	a.text[sizeof(a.text) - 1] = '\0';
	if (a.code < 0)
		return err_set(err, -a.code, "%s", a.text);
	*ret = (struct stdio_process){ fds[0], fds[1], fds[2], fds[3] };
	return 0;
}

static int spawn(void *self, const struct stdio_spec *spec, struct stdio_process *ret,
		 struct err *err)
{
	struct starter *s = self;
	ssize_t n =
		s->sock < 0 ? -EPIPE : fd_send(s->sock, spec->name, strlen(spec->name), NULL, 0);
	int r;

	if (n < 0)
		return err_set(err, EPIPE, "the process that starts servers is gone");
	r = receive(s->sock, ret, err);
	if (r == -ETIMEDOUT)
		s->sock = fd_close(s->sock); /* its answer would be taken for the next one's */
	return r;
}

struct stdio_spawner starter_spawner(struct starter *s)
{
	return (struct stdio_spawner){ spawn, s };
}

void starter_done(struct starter *s)
{
	s->sock = fd_close(s->sock);
}
