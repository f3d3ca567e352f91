/* The scene: a launcher, a neighbour, canaries, and the common walk of an attack. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attack.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define NEIGHBOUR_FILE "/workspace/neighbour"
#define NEIGHBOUR_TEXT "this is the neighbour's\n"

static void random_hex(char *dst, size_t size)
{
	unsigned char bytes[32];

	(void)getrandom(bytes, sizeof(bytes), 0);
	for (size_t i = 0; i + 1 < size; i++)
		dst[i] = "0123456789abcdef"[bytes[i % sizeof(bytes)] >> (i / sizeof(bytes) * 4) &
					    15];
	dst[size - 1] = '\0';
}

static int make_canaries(struct world *w)
{
	const char *top = getenv("TMPDIR");
	char path[300];

	if (str_format(w->dir, sizeof(w->dir), "%s/holt-attack.XXXXXX", top ? top : "/tmp") < 0 ||
	    !mkdtemp(w->dir))
		return -errno;
	(void)chmod(w->dir, 0777); /* as inviting as it gets */
	random_hex(w->secret, sizeof(w->secret));
	(void)snprintf(path, sizeof(path), "%s/dir", w->dir);
	if (mkdir(path, 0777) < 0 || chmod(path, 0777) < 0)
		return -errno;
	(void)snprintf(path, sizeof(path), "%s/canary", w->dir);
	_close_ int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);

	if (fd < 0 || fchmod(fd, 0666) < 0)
		return -errno;
	return fd_write_all(fd, w->secret, strlen(w->secret));
}

/* Sockets of the machine that no box may reach: an abstract one, TCP and UDP on loopback. */
static int open_sockets(struct world *w)
{
	struct sockaddr_in in = { .sin_family = AF_INET };
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	socklen_t n = sizeof(in);

	(void)str_format(w->abstract, sizeof(w->abstract), "holt-attack-%d", (int)getpid());
	memcpy(un.sun_path + 1, w->abstract, strlen(w->abstract));
	w->abstract_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (bind(w->abstract_fd, (struct sockaddr *)&un,
		 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(w->abstract))) <
		    0 ||
	    listen(w->abstract_fd, 8) < 0)
		return -errno;
	w->tcp_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	w->udp_fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (bind(w->tcp_fd, (struct sockaddr *)&in, sizeof(in)) < 0 || listen(w->tcp_fd, 8) < 0 ||
	    getsockname(w->tcp_fd, (struct sockaddr *)&in, &n) < 0 ||
	    bind(w->udp_fd, (struct sockaddr *)&in, sizeof(in)) < 0)
		return -errno;
	w->port = ntohs(in.sin_port);
	return 0;
}

static int load_probe(struct world *w, const char *build_dir)
{
	char path[512];
	int r;

	(void)snprintf(path, sizeof(path), "%s/tests/attack/attack-probe", build_dir);
	_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);

	r = fd < 0 ? -errno : fd_slurp(fd, &w->probe);
	if (r < 0)
		fprintf(stderr, "%s: %s\n", path, strerror(-r));
	return r;
}

static int define_templates(struct launcher *l, struct err *err)
{
	struct template_spec plain = { .id = TEMPLATE_PLAIN, .root = ROOT_HOST, .preload = "" };
	struct template_spec pooled = plain, writable = plain;
	struct pool_spec pool = {
		.template_id = TEMPLATE_POOLED, .min = 4, .max = 8, .quiet_ms = 1000
	};
	int r;

	pooled.id = TEMPLATE_POOLED;
	writable.id = TEMPLATE_WRITABLE;
	writable.flags = TEMPLATE_WRITABLE_ROOT;
	r = launcher_template_sync(l, &plain, -1, err);
	if (r == 0)
		r = launcher_template_sync(l, &pooled, -1, err);
	if (r == 0)
		r = launcher_template_sync(l, &writable, -1, err);
	return r < 0 ? r : launcher_pool_sync(l, &pool, err);
}

int world_start_launcher(struct world *w, struct launcher **ret)
{
	struct launcher *l = NULL;
	struct err err = { 0 };
	int r;

	(void)w;
	r = launcher_start(&(struct launcher_options){ .program = getenv("HOLT_ATTACK_LAUNCHER") },
			   &l, &err);
	if (r == 0)
		r = define_templates(l, &err);
	if (r < 0) {
		fprintf(stderr, "launcher: %s\n", err.text);
		(void)launcher_stop(l);
		return r;
	}
	*ret = l;
	return 0;
}

void world_neighbour(struct world *w)
{
	struct op op;

	box_open(w, &w->neighbour, TEMPLATE_PLAIN, NULL);
	box_upload(w, &w->neighbour);
	assert_int_equal(
		api_write(&w->neighbour, NEIGHBOUR_FILE, NEIGHBOUR_TEXT, strlen(NEIGHBOUR_TEXT)),
		0);
	box_expect_held(w, &w->neighbour, "residue-fill", 0);
	/* Its process lives on: the neighbour is never idle. */
	box_start(w, &w->neighbour, "sit neighbour", &(struct attack){ .timeout_ms = UINT32_MAX },
		  &op);
	box_wait_ready(&w->neighbour, &op);
	guest_forget(w->neighbour.guest, op.id);
	op_done(&op);
}

/* A launcher and a neighbour, whatever the case before has done to them. */
static void get_ready(struct world *w)
{
	struct pool_state state;

	if (!w->launcher ||
	    launcher_pool_state_sync(w->launcher, TEMPLATE_PLAIN, &state, NULL) < 0) {
		w->neighbour.guest = guest_free(w->neighbour.guest);
		w->launcher = launcher_stop(w->launcher);
		assert_int_equal(world_start_launcher(w, &w->launcher), 0);
	}
	if (w->neighbour.guest && guest_ping_sync(w->neighbour.guest, 2000) < 0)
		box_drop(w, &w->neighbour);
	if (!w->neighbour.guest)
		world_neighbour(w);
}

int world_open(struct world *w, const char *build_dir, const char *data_dir)
{
	char path[600];
	int r;

	*w = (struct world){ .abstract_fd = -1, .tcp_fd = -1, .udp_fd = -1 };
	(void)str_copy(w->data, sizeof(w->data), data_dir);
	(void)snprintf(path, sizeof(path), "%s/holt-launch", build_dir);
	(void)setenv("HOLT_ATTACK_LAUNCHER", path, 1);
	(void)signal(SIGPIPE, SIG_IGN);
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1); /* whatever outlives its launcher comes to us */
	/* Mounts of our own, so that a new one can only be the launcher's. An ordinary user's
	 * launcher cannot mount anything where we would see it. */
	if (geteuid() == 0 &&
	    (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0))
		return -errno;
	r = make_canaries(w);
	if (r == 0)
		r = open_sockets(w);
	if (r == 0)
		r = load_probe(w, build_dir);
	if (r < 0)
		return r;
	(void)setenv("HOLT_ATTACK_SECRET", w->secret, 1);
	r = world_start_launcher(w, &w->launcher);
	if (r < 0)
		return r;
	w->rootless = launcher_info(w->launcher)->rootless;
	machine_look(w, &w->before);
	return 0;
}

void world_close(struct world *w)
{
	char path[300];

	w->neighbour.guest = guest_free(w->neighbour.guest);
	(void)fd_close(w->neighbour.l.pidfd);
	w->launcher = launcher_stop(w->launcher);
	(void)fd_close(w->abstract_fd);
	(void)fd_close(w->tcp_fd);
	(void)fd_close(w->udp_fd);
	(void)snprintf(path, sizeof(path), "%s/canary", w->dir);
	(void)unlink(path);
	(void)snprintf(path, sizeof(path), "%s/dir", w->dir);
	(void)rmdir(path);
	(void)rmdir(w->dir);
	machine_done(&w->before);
	buf_done(&w->probe);
}

void world_skip(struct world *w, const char *why)
{
	printf("skipped: %s\n", why);
	w->skipped++;
	skip();
	abort(); /* skip() does not come back */
}

/* ---- the checks ---- */

static void expect_same(const char *what, const struct buf *before, const struct buf *now)
{
	if (before->len == now->len && memcmp(buf_str(before), buf_str(now), now->len) == 0)
		return;
	fail_msg("the machine's %s changed:\n%s\nto\n%s", what, buf_str(before), buf_str(now));
}

static void check_neighbour(struct world *w)
{
	struct op op;

	box_expect_answer(&w->neighbour);
	assert_int_equal(api_read(&w->neighbour, NEIGHBOUR_FILE, &op), 0);
	assert_string_equal(buf_str(&op.out), NEIGHBOUR_TEXT);
	op_done(&op);
	box_expect_held(w, &w->neighbour, "ids", 0);
	box_expect_held(w, &w->neighbour, "some-named neighbour", 0);
}

static void check_launcher(struct world *w)
{
	struct pool_state state;
	struct err err = { 0 };

	if (launcher_pool_state_sync(w->launcher, TEMPLATE_PLAIN, &state, &err) < 0)
		fail_msg("the launcher does not answer: %s", err.text);
}

static void check_sockets(struct world *w)
{
	char bytes[64];

	assert_true(accept4(w->tcp_fd, NULL, NULL, SOCK_CLOEXEC) < 0);
	assert_true(accept4(w->abstract_fd, NULL, NULL, SOCK_CLOEXEC) < 0);
	assert_true(recv(w->udp_fd, bytes, sizeof(bytes), MSG_DONTWAIT) < 0);
}

void world_check(struct world *w)
{
	struct machine now;

	machine_look(w, &now);
	expect_same("settings", &w->before.sysctls, &now.sysctls);
	expect_same("mounts", &w->before.mounts, &now.mounts);
	expect_same("canaries", &w->before.canaries, &now.canaries);
	machine_done(&now);
	check_launcher(w);
	check_sockets(w);
	check_neighbour(w);
}

/* ---- the common walk ---- */

static const struct {
	unsigned flag;
	uint32_t controller;
	const char *why;
} needs[] = {
	{ NEEDS_MEMORY, CONTROLLER_MEMORY, "no delegated memory cgroup" },
	{ NEEDS_PIDS, CONTROLLER_PIDS, "no delegated pids cgroup" },
	{ NEEDS_CPU, CONTROLLER_CPU, "no delegated cpu cgroup" },
	{ NEEDS_FREEZER, CONTROLLER_FREEZER, "no delegated freezer cgroup" },
};

static void skip_unless_possible(struct world *w, const struct attack *a)
{
	const struct launch_info *info = launcher_info(w->launcher);

	for (size_t i = 0; i < COUNT(needs); i++)
		if (a->flags & needs[i].flag && info->cgroup_missing & needs[i].controller)
			world_skip(w, needs[i].why);
}

static void expect_timeout(struct world *w, const struct attack *a, const struct op *op)
{
	uint64_t most_ms = (uint64_t)a->timeout_ms + 2000;

	if (op->code)
		fail_msg("%s: %s", a->probe, op->text);
	if (!(op->exit.flags & EXIT_TIMED_OUT))
		fail_msg("%s: it ended before its deadline: flags %#x, code %u, %s", a->probe,
			 op->exit.flags, op->exit.code, buf_str(&op->out));
	if (op->exit.wall_us / 1000 > most_ms)
		fail_msg("%s: ended after %llu ms, deadline %u", a->probe,
			 (unsigned long long)op->exit.wall_us / 1000, a->timeout_ms);
	box_expect_held(w, &w->box, "none-named survivor", 0);
	box_expect_held(w, &w->box, "none-named bomb", 0);
}

/* All of the box's programs are as good as each other to the kernel: it may take the one that would
 * have reported. check_usage() wants to see it told. */
static bool was_killed_for_memory(const struct attack *a, const struct op *op)
{
	return a->flags & (NEEDS_MEMORY | BOX_MAY_DIE) && op->exit.flags & EXIT_SIGNALED &&
	       op->exit.code == SIGKILL;
}

static void check_usage(const struct attack *a, const struct op *op, const struct box_usage *u)
{
	bool killed = strstr(buf_str(&op->out), "killed for it") || was_killed_for_memory(a, op);

	if (a->flags & NEEDS_MEMORY && a->limits.memory_bytes &&
	    u->memory_peak_bytes > a->limits.memory_bytes + PEAK_SLACK)
		fail_msg("%s: held %llu bytes, limit %llu", a->probe,
			 (unsigned long long)u->memory_peak_bytes,
			 (unsigned long long)a->limits.memory_bytes);
	if (a->flags & NEEDS_MEMORY && killed && u->oom_kills == 0)
		fail_msg("%s: it was killed for memory, and nobody says so", a->probe);
}

void world_expect_death(struct world *w, struct op *op, bool by_memory)
{
	uint64_t before = machine_ticks();
	struct box_usage usage = { 0 };
	char id[ID_LEN + 1] = "";
	bool told = false;

	for (int i = 0; i < 100 && !told; i++) {
		check_launcher(w);
		told = launcher_next_death(w->launcher, id, &(int){ 0 }, &usage);
		if (!told)
			(void)usleep(20000);
	}
	if (!told || strcmp(id, w->box.l.id) != 0)
		fail_msg("the box died, and nobody says so: %s", op->text);
	if (by_memory && usage.oom_kills == 0)
		fail_msg("the box died, and nobody says that it was for memory: %s", op->text);
	box_expect_gone(&w->box, before);
	w->box.guest = guest_free(w->box.guest);
	(void)close(w->box.l.pidfd);
	op_done(op);
	world_check(w);
}

void world_attack(struct world *w, const struct attack *a)
{
	unsigned patience = (a->timeout_ms ? a->timeout_ms : ATTACK_TIMEOUT_MS) + 10000;
	struct box_usage usage;
	struct op op;

	get_ready(w);
	skip_unless_possible(w, a);
	if (a->run) {
		a->run(w, a);
		world_check(w);
		return;
	}
	box_open(w, &w->box, TEMPLATE_PLAIN, &a->limits);
	box_upload(w, &w->box);
	box_start(w, &w->box, a->probe, a, &op);
	if (!box_wait(&w->box, &op, patience)) {
		machine_explain(w->box.l.pid);
		fail_msg("%s: no end", a->probe);
	}
	if (a->flags & BOX_MAY_DIE && op.code == EPIPE) {
		/* It belongs to the box and to no process in it: all of them went, PID 1 last. */
		world_expect_death(w, &op, true);
		return;
	}
	if (a->flags & WANT_TIMEOUT)
		expect_timeout(w, a, &op);
	else if (!was_killed_for_memory(a, &op))
		op_expect_held(a->probe, &op, a->flags);
	box_expect_answer(&w->box);
	box_close(w, &w->box, &usage);
	check_usage(a, &op, &usage);
	printf("%s", strstr(buf_str(&op.out), "held: ") ? buf_str(&op.out) : "");
	op_done(&op);
	world_check(w);
}
