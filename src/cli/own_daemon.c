#include "cli/own_daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/parse.h"
#include "base/str.h"
#include "cli/bench_daemon.h"
#include "json/jv.h"

#define START_MS 30000
#define END_MS 15000
#define ANSWER_MAX (8u << 20)
#define PAGE 500 /* sandboxes of a list */

CLEANUP_FUNC(struct jv_doc *, jv_free)

/* A page of what lives; 0 when there was nothing (more). */
static int delete_page(struct own_daemon *d)
{
	_cleanup_(buf_done) struct buf answer = { 0 };
	_cleanup_(jv_free_p) struct jv_doc *doc = NULL;
	char target[64];
	int n = 0;

	(void)snprintf(target, sizeof(target), "/api/v1/sandboxes?limit=%d", PAGE);
	if (fetch_want(&d->conn, 200, "GET", target, NULL, &answer, NULL) < 0 ||
	    jv_parse(answer.data, answer.len, ANSWER_MAX, &doc, NULL) < 0)
		return -1;
	JV_FOREACH (jv_get(jv_root(doc), "items"), it) {
		const char *id = jv_text(jv_get(it.value, "id"));

		if (!id || bench_sandbox_delete(d, id, NULL) < 0)
			return -1;
		n++;
	}
	return n;
}

/* ---- the minder: outlives us by as long as it takes to clean up ---- */

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	(void)remove(path);
	return 0;
}

static int read_key(struct own_daemon *d)
{
	char path[128];
	int r;

	(void)snprintf(path, sizeof(path), "%s/key", d->dir);
	r = fd_read_file_at(AT_FDCWD, path, d->key, sizeof(d->key));
	d->key[strcspn(d->key, "\n")] = '\0';
	return r < 0 ? r : 0;
}

static void end_daemon(struct own_daemon *d, pid_t pid)
{
	uint64_t deadline = clock_now_ms() + END_MS;

	if (d->port && read_key(d) == 0 && fetch_open(&d->conn, d->port, d->key, NULL) == 0) {
		while (delete_page(d) > 0)
			;
		fetch_close(&d->conn);
	}
	(void)kill(pid, SIGTERM);
	while (waitpid(pid, NULL, WNOHANG) == 0) {
		if (clock_now_ms() > deadline)
			(void)kill(pid, SIGKILL);
		bench_nap_ms(10);
	}
}

static bool is_kept(const char *const *kept, const char *name, size_t n)
{
	for (; kept && *kept; kept++)
		if (strlen(*kept) == n && strncmp(*kept, name, n) == 0)
			return true;
	return false;
}

/* The settings of the person who runs us are for another daemon, but for those that are kept. */
static void forget_settings(const char *const *kept)
{
	for (char **e = environ; *e;) {
		char name[64];
		size_t n = strcspn(*e, "=");

		if (strncmp(*e, "HOLT_", 5) != 0 || is_kept(kept, *e, n) ||
		    str_format(name, sizeof(name), "%.*s", (int)n, *e) < 0 || unsetenv(name) < 0)
			e++;
	}
}

static _Noreturn void become_daemon(const struct own_daemon *d, int news)
{
	const char *const argv[] = { "holt",      "serve",       "--config",
				     "holt.yaml", "--state-dir", "state",
				     "--listen",  "127.0.0.1:0", "--admin-key-file",
				     "key",       NULL };
	pid_t self = getpid();
	int log;

	(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
	forget_settings(d->kept);
	if (chdir(d->dir) < 0)
		_exit(126);
	log = open("log", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (log < 0 || open("holt.yaml", O_WRONLY | O_CREAT | O_CLOEXEC, 0644) < 0 ||
	    fd_write_all(news, &self, sizeof(self)) < 0 || dup2(news, STDOUT_FILENO) < 0 ||
	    dup2(log, STDERR_FILENO) < 0)
		_exit(126);
	(void)execv("/proc/self/exe", (char *const *)argv);
	_exit(127);
}

static _Noreturn void mind(struct own_daemon *d, int lifeline, int news)
{
	uint16_t port;
	pid_t pid;

	(void)setsid(); /* a Ctrl-C is for who started us, and reaches us through the lifeline */
	pid = fork();
	if (pid == 0)
		become_daemon(d, news);
	(void)close(news);
	/* The port comes when it is known, the end when there is nobody any more. */
	while (fd_read_all(lifeline, &port, sizeof(port)) == sizeof(port))
		d->port = port;
	if (pid > 0)
		end_daemon(d, pid);
	(void)nftw(d->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	_exit(0);
}

/* ---- the start ---- */

/* "holt 0.1.0 listens on http://127.0.0.1:PORT" */
static int read_port(int news, uint16_t *ret, struct err *err)
{
	uint64_t deadline = clock_now_ms() + START_MS;
	struct pollfd p = { .fd = news, .events = POLLIN };
	char text[512] = "";
	size_t len = 0;
	uint32_t port;

	while (len < sizeof(text) - 1 && !strchr(text, '\n')) {
		uint64_t now = clock_now_ms();
		ssize_t n = -1;

		if (now < deadline && poll(&p, 1, (int)(deadline - now)) > 0)
			n = read(news, text + len, 1);
		if (n <= 0)
			return err_set(err, ETIMEDOUT, "the daemon does not start");
		text[++len] = '\0';
	}
	text[strcspn(text, "\n")] = '\0';
	if (!strrchr(text, ':') || parse_u32(strrchr(text, ':') + 1, 1, UINT16_MAX, &port) < 0)
		return err_set(err, EPROTO, "the daemon says '%.60s'", text);
	*ret = (uint16_t)port;
	return 0;
}

/* The last of its log, where it says why it did not start. */
static int explain(const struct own_daemon *d, int r, struct err *err)
{
	char path[128], text[4096], *last;
	_cleanup_(buf_done) struct buf log = { .max = 1u << 20 };
	_close_ int fd = -1;

	(void)snprintf(path, sizeof(path), "%s/log", d->dir);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fd_slurp(fd, &log) < 0 || log.len == 0)
		return r;
	log.data[--log.len] = '\0';
	last = strrchr(log.data, '\n');
	(void)snprintf(text, sizeof(text), "%s", last ? last + 1 : log.data);
	return err_set(err, -r, "the daemon does not start: %.150s", text);
}

static int meet(struct own_daemon *d, int news, struct err *err)
{
	pid_t served;
	int r = fd_read_all(news, &served, sizeof(served)) == sizeof(served)
			? read_port(news, &d->port, err)
			: err_set(err, EIO, "the daemon does not start");

	if (r < 0)
		return explain(d, r, err);
	if (fd_write_all(d->lifeline, &d->port, sizeof(d->port)) < 0)
		return err_set(err, EIO, "the minder is gone");
	if (bench_child(served, "holt", &d->pid) < 0)
		return err_set(err, ESRCH, "the daemon's process is not found");
	r = read_key(d);
	return r < 0 ? err_sys(err, r, "the daemon's key")
		     : fetch_open(&d->conn, d->port, d->key, err);
}

static int make_dir(struct own_daemon *d, const char *what, struct err *err)
{
	const char *base = getenv("TMPDIR");

	if (str_format(d->dir, sizeof(d->dir), "%s/holt-%s-XXXXXX", base ? base : "/tmp", what) < 0)
		return err_sys(err, ENAMETOOLONG, "TMPDIR '%.60s'", base ? base : "");
	if (!mkdtemp(d->dir))
		return err_sys(err, errno, "make a directory '%.60s'", d->dir);
	return chmod(d->dir, 0755) < 0 ? err_sys(err, errno, "chmod '%.60s'", d->dir) : 0;
}

int own_daemon_start(struct own_daemon *d, const char *what, const char *const *kept,
		     struct err *err)
{
	int life[2], news[2] = { -1, -1 }, r;

	*d = (struct own_daemon){ .lifeline = -1, .conn.fd = -1, .kept = kept };
	r = make_dir(d, what, err);
	if (r < 0)
		return r;
	if (pipe2(life, O_CLOEXEC) < 0)
		return err_sys(err, errno, "pipe");
	d->lifeline = life[1];
	if (pipe2(news, O_CLOEXEC) == 0)
		d->minder = fork();
	if (d->minder == 0 && news[0] >= 0) {
		(void)close(life[1]);
		(void)close(news[0]);
		mind(d, life[0], news[1]);
	}
	(void)close(life[0]);
	(void)fd_close(news[1]);
	r = d->minder > 0 ? meet(d, news[0], err) : err_sys(err, errno, "fork");
	(void)fd_close(news[0]);
	return r;
}

void own_daemon_stop(struct own_daemon *d)
{
	if (d->minder <= 0)
		return;
	fetch_close(&d->conn);
	d->lifeline = fd_close(d->lifeline);
	(void)waitpid(d->minder, NULL, 0);
	d->minder = 0;
}
