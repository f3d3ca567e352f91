/* Other sandboxes, by the same clock: each runs /bin/true and Python, in turn with a bare program.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "cli/bench.h"
#include "cli/bench_bundle.h"

#define ARGS_MAX 40
#define BUDGET_NS 8000000000ull /* for one row of a slow peer */
#define N_MIN 20u
#define TRIAL_S 30

/* Words of a peer's command line. These stand for what changes: */
#define CMD "{cmd}"       /* the command and its arguments */
#define BUNDLE "{bundle}" /* an OCI bundle of that command */
#define STATE "{state}"   /* a directory for the peer's state */
#define ROOT "{root}"     /* a root directory with /usr to be mounted */
#define ID "{id}"         /* a new name for each run */
#define SHELL "{shell}"   /* the command as one word */

static const struct peer {
	const char *name;
	const char *argv[28];
} peers[] = {
	{ "bubblewrap", { BENCH_BWRAP, CMD } },
	{ "crun", { "crun", "--root", STATE, "run", "--bundle", BUNDLE, ID } },
	{ "runc", { "runc", "--root", STATE, "run", "--bundle", BUNDLE, ID } },
	{ "runsc",
	  { "runsc", "--root", STATE, "--network=none", "--ignore-cgroups", "run", "--bundle",
	    BUNDLE, ID } },
	{ "docker",
	  { "docker", "run", "--rm", "--pull", "never", "--network", "none", "debian:stable-slim",
	    CMD } },
	{ "podman",
	  { "podman", "run", "--rm", "--network", "none", "-v", "/usr:/usr:ro", "--rootfs", ROOT,
	    CMD } },
	{ "firejail",
	  { "firejail", "--quiet", "--noprofile", "--net=none", "--private-dev", "--private-tmp",
	    "--caps.drop=all", "--seccomp", "--nonewprivs", CMD } },
	{ "srt", { "srt", "-c", SHELL } },
};

/* One peer with one command. */
struct peer_run {
	const struct peer *peer;
	const struct bare *cmd;
	const struct bundle *bundle;
	unsigned runs;
	char id[48], bundle_dir[128], root_dir[128], shell[128];
	const char *argv[ARGS_MAX];
};

static const char *value_of(struct peer_run *p, const char *word)
{
	const struct {
		const char *word, *value;
	} values[] = { { BUNDLE, p->bundle_dir },
		       { STATE, p->bundle->state },
		       { ROOT, p->root_dir },
		       { ID, p->id },
		       { SHELL, p->shell } };

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		if (strcmp(values[i].word, word) == 0)
			return values[i].value;
	return word;
}

static void build_argv(struct peer_run *p)
{
	size_t n = 0;

	(void)snprintf(p->id, sizeof(p->id), "holt-bench-%d-%u", getpid(), p->runs++);
	for (const char *const *w = p->peer->argv; *w; w++) {
		if (strcmp(*w, CMD) != 0) {
			p->argv[n++] = value_of(p, *w);
			continue;
		}
		for (const char *const *c = p->cmd->argv; *c; c++)
			p->argv[n++] = *c;
	}
	p->argv[n] = NULL;
}

static int peer_once(void *self, uint64_t *ret_ns, struct err *err)
{
	struct peer_run *p = self;
	struct bare bare = { p->argv, 0 };

	build_argv(p);
	return bare_once(&bare, ret_ns, err);
}

/* The first line that is not empty, fit to be printed. */
static void first_line(const char *text, char *dst, size_t size)
{
	text += strspn(text, "\r\n ");
	(void)snprintf(dst, size, "%.*s", (int)strcspn(text, "\n"), text);
	for (char *c = dst; *c; c++)
		if ((unsigned char)*c < 0x20)
			*c = ' ';
}

/* Starts the peer with its output in the pipe; a peer that hangs is ended by its own alarm. */
static pid_t start_trial(const struct peer_run *p, int out)
{
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	(void)alarm(TRIAL_S);
	(void)dup2(out, STDOUT_FILENO);
	(void)dup2(out, STDERR_FILENO);
	(void)close(STDIN_FILENO);
	(void)open("/dev/null", O_RDONLY);
	(void)execvp(p->argv[0], (char *const *)p->argv);
	_exit(127);
}

/* One run that may fail: its time, or the reason in its own words. */
static int trial(struct peer_run *p, uint64_t *ret_ns, struct err *err)
{
	char text[4096] = "", reason[128];
	uint64_t began = clock_now_ns();
	int fds[2], status = 0;
	ssize_t n;
	pid_t pid;

	build_argv(p);
	if (pipe2(fds, O_CLOEXEC) < 0)
		return err_sys(err, errno, "pipe");
	pid = start_trial(p, fds[1]);
	(void)close(fds[1]);
	n = fd_read_all(fds[0], text, sizeof(text) - 1);
	(void)close(fds[0]); /* a flood of words ends here */
	text[n > 0 ? n : 0] = '\0';
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return err_sys(err, errno, "trial");
	*ret_ns = clock_now_ns() - began;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	first_line(text, reason, sizeof(reason));
	return err_set(err, EIO, "%s", reason[0] ? reason : "it ended without a word");
}

static void measure(struct bench *b, struct peer_run *p, const char *what,
		    const struct probe *reference)
{
	struct probe subject = { p->peer->name, peer_once, p };
	struct err err = { 0 };
	struct bench_row *row;
	char name[72];
	uint64_t ns = 0;
	uint32_t n;

	(void)snprintf(name, sizeof(name), "%s, %s", p->peer->name, what);
	row = bench_add(b, "peers", name);
	if (trial(p, &ns, &err) < 0) {
		row->verdict = VERDICT_ABSENT;
		(void)snprintf(row->note, sizeof(row->note), "does not run here: %.130s", err.text);
		return;
	}
	n = (uint32_t)(BUDGET_NS / (ns ? ns : 1));
	n = n < N_MIN ? N_MIN : n > b->n ? b->n : n;
	if (bench_pair(b, row, &subject, reference, n, &err) < 0) {
		row->verdict = VERDICT_FAILED;
		(void)snprintf(row->note, sizeof(row->note), "%.150s", err.text);
	}
}

static void measure_peer(struct bench *b, const struct peer *peer, const struct bundle *bundle)
{
	static const struct probe bare_t = { "bare fork+exec", bare_once, (void *)&bare_true };
	static const struct probe bare_p = { "bare python3", bare_once, (void *)&bare_python };
	struct peer_run run = { .peer = peer, .bundle = bundle, .cmd = &bare_true };
	char path[256];

	if (!bare_is_there(peer->argv[0], path, sizeof(path))) {
		struct bench_row *row = bench_add(b, "peers", peer->name);

		row->verdict = VERDICT_ABSENT;
		(void)snprintf(row->note, sizeof(row->note), "not installed");
		return;
	}
	(void)snprintf(run.root_dir, sizeof(run.root_dir), "%s/true/rootfs", bundle->dir);
	(void)snprintf(run.bundle_dir, sizeof(run.bundle_dir), "%s/true", bundle->dir);
	(void)snprintf(run.shell, sizeof(run.shell), "/bin/true");
	measure(b, &run, "/bin/true", &bare_t);
	if (b->rows[b->len - 1].verdict != VERDICT_NONE)
		return;
	run.cmd = &bare_python;
	(void)snprintf(run.bundle_dir, sizeof(run.bundle_dir), "%s/python", bundle->dir);
	(void)snprintf(run.shell, sizeof(run.shell), "/usr/bin/python3 -c 'print(1)'");
	measure(b, &run, "python3 -c 'print(1)'", &bare_p);
}

/* crun refuses machines with both kinds of cgroup mounted; in our own mounts the second goes. */
static void hide_second_cgroup(void)
{
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return;
	(void)umount2("/sys/fs/cgroup/unified", MNT_DETACH);
}

static int measure_all(struct bench *b, struct err *err)
{
	struct bundle bundle;
	int r = bundle_make(&bundle, err);

	if (r < 0)
		return r;
	hide_second_cgroup();
	for (size_t i = 0; i < sizeof(peers) / sizeof(peers[0]); i++)
		measure_peer(b, &peers[i], &bundle);
	bundle_remove(&bundle);
	return 0;
}

/* In a child, because its mounts change; the rows are in shared memory. */
int bench_peers(struct bench *b, struct err *err)
{
	pid_t pid = fork();
	int status;

	if (pid < 0)
		return err_sys(err, errno, "fork");
	if (pid == 0) {
		struct err why = { 0 };
		int r = measure_all(b, &why);

		if (r < 0)
			(void)fprintf(stderr, "holt: %s\n", why.text);
		_exit(r < 0);
	}
	if (waitpid(pid, &status, 0) != pid || status != 0)
		return err_set(err, EIO, "the peers could not be measured");
	return 0;
}
