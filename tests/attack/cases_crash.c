/* T2: the daemon, the launcher and the guest killed at any moment; and a thousand boxes. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attack.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define CRASHES 24
#define THOUSAND 1000

/* What is left when no launcher of ours lives: processes below us, mounts, groups. */
struct residue {
	int processes;
	struct buf mounts, groups;
};

static void look(struct world *w, struct residue *ret)
{
	struct machine m;

	*ret = (struct residue){ 0 };
	machine_look(w, &m);
	ret->mounts = m.mounts;
	m.mounts = (struct buf){ 0 };
	machine_done(&m);
	machine_stale_groups(&ret->groups);
	while (waitpid(-1, NULL, WNOHANG) > 0)
		; /* orphans that came to us and are dead */
	ret->processes = machine_descendants(getpid());
}

static void residue_done(struct residue *r)
{
	buf_done(&r->mounts);
	buf_done(&r->groups);
}

/* Others' launchers come and go meanwhile: what was there before may be gone. */
static bool has_no_new_line(const struct buf *now, const struct buf *before)
{
	struct str rest = { buf_str(now), now->len }, line;

	while (str_split(&rest, '\n', &line))
		if (line.len && !memmem(buf_str(before), before->len, line.data, line.len))
			return false;
	return true;
}

/* Dying takes a moment; what is still there after ten seconds is left. */
static void expect_residue(struct world *w, const struct residue *before)
{
	uint64_t until = clock_now_ms() + 10000;

	for (;;) {
		struct residue now;
		bool same, late = clock_now_ms() > until;

		look(w, &now);
		same = now.processes == before->processes &&
		       strcmp(buf_str(&now.mounts), buf_str(&before->mounts)) == 0 &&
		       has_no_new_line(&now.groups, &before->groups);
		if (!same && late)
			fail_msg("left behind: %d processes, were %d; groups:\n%s\nwere:\n%s",
				 now.processes, before->processes, buf_str(&now.groups),
				 buf_str(&before->groups));
		residue_done(&now);
		if (same)
			return;
		(void)usleep(50000);
	}
}

/* The suite's own launcher rests meanwhile, so that all that is left is the dead one's. */
static void stop_ours(struct world *w)
{
	w->neighbour.guest = guest_free(w->neighbour.guest);
	(void)fd_close(w->neighbour.l.pidfd);
	w->neighbour = (struct box){ 0 };
	w->launcher = launcher_stop(w->launcher);
}

static void start_ours(struct world *w)
{
	assert_int_equal(world_start_launcher(w, &w->launcher), 0);
	world_neighbour(w);
}

static unsigned next_random(unsigned *seed)
{
	*seed = *seed * 1103515245 + 12345;
	return *seed >> 16;
}

/* A client with a launcher of its own that claims, runs and destroys without end. */
static _Noreturn void churn(struct world *w, int ready)
{
	struct world mine = *w;
	struct guest_exec e = { .argc = 2,
				.timeout_ms = 5000,
				.user = "",
				.cwd = "",
				.code = "",
				.argv = { "/bin/sh", "-c" } };

	mine.launcher = NULL;
	if (world_start_launcher(&mine, &mine.launcher) < 0)
		_exit(1);
	(void)!write(ready, &(pid_t){ launcher_pid(mine.launcher) }, sizeof(pid_t));
	e.argc = 3;
	e.argv[2] = "(setsid sleep 100 &) ; echo x > /tmp/x ; sleep 0.02";
	for (;;) {
		struct launch_spec spec = { .template_id = clock_now_ns() & 64 ? TEMPLATE_PLAIN
									       : TEMPLATE_POOLED };
		struct guest_client *guest = NULL;
		struct guest_result result;
		struct launcher_box box;

		if (launcher_claim_sync(mine.launcher, &spec, &box, NULL) < 0)
			_exit(2);
		if (guest_create(box.sock, &guest, NULL) < 0)
			_exit(3);
		if (guest_exec_sync(guest, &e, NULL, 0, &result, NULL) == 0)
			guest_result_done(&result);
		guest = guest_free(guest);
		(void)close(box.pidfd);
		if (launcher_destroy_sync(mine.launcher, box.id, NULL, NULL) < 0)
			_exit(4);
	}
}

static pid_t start_churn(struct world *w, pid_t *ret_launcher)
{
	int ready[2];
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		churn(w, ready[1]);
	(void)close(ready[1]);
	assert_int_equal(read(ready[0], ret_launcher, sizeof(*ret_launcher)),
			 sizeof(*ret_launcher));
	(void)close(ready[0]);
	return pid;
}

/* After a crash, the next launcher sweeps what the dead one could not. The dead one's children
 * share its locks, so it counts as alive until they are gone too. */
static void sweep(struct world *w, const struct residue *before)
{
	struct launcher *l = NULL;

	for (int i = 0; i < 500 && machine_descendants(getpid()) > before->processes; i++) {
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		(void)usleep(10000);
	}
	assert_int_equal(world_start_launcher(w, &l), 0);
	l = launcher_stop(l);
}

/* Kills the client at a random moment: its launcher must notice and take everything along. */
static void client_is_killed(struct world *w, const struct attack *a)
{
	struct residue before;
	unsigned seed = 11;

	(void)a;
	stop_ours(w);
	look(w, &before);
	for (int i = 0; i < CRASHES; i++) {
		pid_t launcher, client = start_churn(w, &launcher);

		(void)usleep(next_random(&seed) % 150000);
		assert_int_equal(kill(client, SIGKILL), 0);
		assert_int_equal(waitpid(client, NULL, 0), client);
		expect_residue(w, &before); /* without any help */
	}
	residue_done(&before);
	start_ours(w);
}

/* Kills the launcher: its boxes end with it, or the next one's start ends them. */
static void launcher_is_killed(struct world *w, const struct attack *a)
{
	struct residue before;
	unsigned seed = 23;

	(void)a;
	stop_ours(w);
	look(w, &before);
	for (int i = 0; i < CRASHES; i++) {
		pid_t launcher, client = start_churn(w, &launcher);

		(void)usleep(next_random(&seed) % 150000);
		assert_int_equal(kill(launcher, SIGKILL), 0);
		(void)usleep(next_random(&seed) % 20000);
		assert_int_equal(kill(client, SIGKILL), 0);
		assert_int_equal(waitpid(client, NULL, 0), client);
		(void)waitpid(launcher, NULL, 0); /* an orphan, so ours now */
		sweep(w, &before);
		expect_residue(w, &before);
	}
	residue_done(&before);
	start_ours(w);
}

/* Kills both in the same breath. */
static void both_are_killed(struct world *w, const struct attack *a)
{
	struct residue before;
	unsigned seed = 37;

	(void)a;
	stop_ours(w);
	look(w, &before);
	for (int i = 0; i < CRASHES; i++) {
		pid_t launcher, client = start_churn(w, &launcher);

		(void)usleep(next_random(&seed) % 150000);
		assert_int_equal(kill(client, SIGKILL), 0);
		(void)kill(launcher, SIGKILL); /* may have gone already */
		assert_int_equal(waitpid(client, NULL, 0), client);
		(void)waitpid(launcher, NULL, 0);
		sweep(w, &before);
		expect_residue(w, &before);
	}
	residue_done(&before);
	start_ours(w);
}

/* Processes below the launcher once it has made all that it makes ahead. */
static int settled_descendants(struct world *w)
{
	int n = -1, same = 0;

	for (int i = 0; i < 100 && same < 10; i++) {
		int now = machine_descendants(launcher_pid(w->launcher));

		same = now == n ? same + 1 : 0;
		n = now;
		(void)usleep(50000);
	}
	return n;
}

/* Kills guests at random moments of their life: each death is told, the launcher goes on. */
static void guests_are_killed(struct world *w, const struct attack *a)
{
	unsigned seed = 41;
	int below, after;

	(void)a;
	below = settled_descendants(w);
	for (int i = 0; i < CRASHES * 2; i++) {
		char id[ID_LEN + 1];
		uint64_t before;
		struct op op;

		box_open(w, &w->box, TEMPLATE_PLAIN, NULL);
		box_upload(w, &w->box);
		box_start(w, &w->box, "orphans 500", NULL, &op);
		(void)box_wait(&w->box, &op, next_random(&seed) % 60);
		before = machine_ticks();
		assert_int_equal(kill(w->box.l.pid, SIGKILL), 0);
		(void)box_wait(&w->box, &op, 5000);
		assert_true(op.ended);
		op_done(&op);
		(void)launcher_destroy_sync(w->launcher, w->box.l.id, NULL, NULL);
		box_expect_gone(&w->box, before);
		w->box.guest = guest_free(w->box.guest);
		(void)close(w->box.l.pidfd);
		while (launcher_next_death(w->launcher, id, &(int){ 0 }, &(struct box_usage){ 0 }))
			;
	}
	after = settled_descendants(w);
	if (after > below + 8) /* the pool may have grown */
		fail_msg("%d processes below the launcher, were %d", after, below);
}

/* A thousand boxes, cold and warm: then the launcher is as it was, and after it nothing is left. */
static void thousand_boxes_leave_nothing(struct world *w, const struct attack *a)
{
	struct residue before;
	int fds = 0, groups = 0;
	uint64_t rss = 0;

	(void)a;
	stop_ours(w);
	look(w, &before);
	assert_int_equal(world_start_launcher(w, &w->launcher), 0);
	for (int i = 0; i < THOUSAND; i++) {
		struct guest_exec e = { .argc = 1,
					.timeout_ms = 5000,
					.user = "",
					.cwd = "",
					.code = "",
					.argv = { "/bin/true" } };
		struct op op;

		box_open(w, &w->box, i % 2 ? TEMPLATE_PLAIN : TEMPLATE_POOLED, NULL);
		box_start_argv(&w->box, &e, &op);
		assert_true(box_wait(&w->box, &op, 10000));
		assert_int_equal(op.exit.code, 0);
		op_done(&op);
		if (i == THOUSAND / 10) { /* everything that is made ahead has been made */
			(void)usleep(500000);
			fds = machine_fds(launcher_pid(w->launcher));
			rss = machine_rss(launcher_pid(w->launcher));
			groups = machine_groups(w->box.l.pid);
		}
		if (i == THOUSAND - 1)
			assert_true(machine_groups(w->box.l.pid) <= groups + 64);
		box_close(w, &w->box, NULL);
	}
	(void)usleep(500000);
	assert_true(machine_fds(launcher_pid(w->launcher)) <= fds + 16);
	assert_true(machine_rss(launcher_pid(w->launcher)) <= rss + (16u << 20));
	w->launcher = launcher_stop(w->launcher);
	expect_residue(w, &before);
	residue_done(&before);
	start_ours(w);
}

static const struct attack rows[] = {
	{ "T2 a client killed at any moment leaves nothing", NULL, 0, 0, { 0 }, client_is_killed },
	{ "T2 a launcher killed at any moment leaves nothing once another has started",
	  NULL,
	  0,
	  0,
	  { 0 },
	  launcher_is_killed },
	{ "T2 client and launcher killed together leave nothing",
	  NULL,
	  0,
	  0,
	  { 0 },
	  both_are_killed },
	{ "T2 guests killed at any moment leave nothing", NULL, 0, 0, { 0 }, guests_are_killed },
	{ "T2 a thousand boxes leave the machine as it was",
	  NULL,
	  0,
	  0,
	  { 0 },
	  thousand_boxes_leave_nothing },
};

const struct attack_table attacks_crash = { rows, COUNT(rows) };
