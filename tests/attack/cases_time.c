/* T1, T3, T4: what one box leaves to the next, clocks, and numbers that come round again. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
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
#define ROUNDS 200

/* Fills a box with marks and destroys it, then looks for them in a new one, again and again. */
static void marks_do_not_cross(struct world *w, uint32_t template_id)
{
	for (int i = 0; i < ROUNDS; i++) {
		struct box_usage usage;

		box_open(w, &w->box, template_id, NULL);
		box_upload(w, &w->box);
		assert_int_equal(launcher_usage_sync(w->launcher, w->box.l.id, &usage, NULL), 0);
		assert_int_equal(usage.oom_kills, 0);
		assert_true(usage.cpu_us < 2000000); /* a fresh count */
		box_expect_held(w, &w->box, "residue-look", 0);
		if (i % 4 == 0)
			box_expect_held(w, &w->box, "residue-fill", 0);
		box_close(w, &w->box, NULL);
	}
}

static void marks_do_not_cross_cold(struct world *w, const struct attack *a)
{
	(void)a;
	marks_do_not_cross(w, TEMPLATE_PLAIN);
}

static void marks_do_not_cross_warm(struct world *w, const struct attack *a)
{
	(void)a;
	marks_do_not_cross(w, TEMPLATE_POOLED);
}

/* Counters of a box that used much are not those of the one that gets its control group next. */
static void counters_start_at_zero(struct world *w, const struct attack *a)
{
	(void)a;
	for (int i = 0; i < 12; i++) {
		struct box_usage used, fresh;
		struct op op;

		box_open(w, &w->box, TEMPLATE_PLAIN, NULL);
		box_upload(w, &w->box);
		box_start(w, &w->box, "memory private 2048", NULL, &op);
		assert_true(box_wait(&w->box, &op, ATTACK_TIMEOUT_MS));
		op_done(&op); /* killed itself, or its child was */
		box_close(w, &w->box, &used);
		assert_true(used.oom_kills > 0 && used.memory_peak_bytes > 64u << 20);
		box_open(w, &w->box, TEMPLATE_PLAIN, NULL);
		assert_int_equal(launcher_usage_sync(w->launcher, w->box.l.id, &fresh, NULL), 0);
		if (fresh.oom_kills != 0 || fresh.memory_peak_bytes > 32u << 20)
			fail_msg("a new box has %u kills and %llu bytes of peak on its account",
				 fresh.oom_kills, (unsigned long long)fresh.memory_peak_bytes);
		box_close(w, &w->box, NULL);
	}
}

/* A deadline is kept although nothing happens until then: it hangs from no wall clock. That the
 * wall clock is not even read is checked in the source; setting the machine's clock is not for a
 * test. */
static void deadlines_use_the_monotonic_clock(struct world *w, const struct attack *a)
{
	static const char *const words[] = { "CLOCK_REALTIME", "gettimeofday", "clock_wall_ms",
					     " time(" };
	static const char *const dirs[] = { "guest", "launch", "provider" };
	char dir[600], path[900];
	int files = 0;

	(void)a;
	for (size_t i = 0; i < COUNT(dirs); i++) {
		DIR *d;

		(void)snprintf(dir, sizeof(dir), "%s/../../src/%s", w->data, dirs[i]);
		d = opendir(dir);
		for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
			_cleanup_(buf_done) struct buf text = { 0 };
			_close_ int fd = -1;

			if (!str_ends(str_of(e->d_name), ".c"))
				continue;
			(void)snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
			fd = open(path, O_RDONLY | O_CLOEXEC);
			if (fd < 0 || fd_slurp(fd, &text) < 0)
				continue;
			files++;
			for (size_t k = 0; k < COUNT(words); k++)
				if (strstr(buf_str(&text), words[k]))
					fail_msg("%s uses%s", path, words[k]);
		}
		if (d)
			(void)closedir(d);
	}
	if (files == 0)
		world_skip(w, "the sources are not here");
}

/* In the box's process namespace: sets how far its numbers go. Our /proc shows the setting of
 * whoever looks, so a process of ours goes in and looks. */
static _Noreturn void set_last_number(int pidfd, const char *last)
{
	pid_t inside;
	int status = 1;

	if (setns(pidfd, CLONE_NEWPID) < 0 && setns(pidfd, CLONE_NEWUSER | CLONE_NEWPID) < 0)
		_exit(1);
	inside = fork();
	if (inside == 0)
		_exit(fd_write_file_at(AT_FDCWD, "/proc/sys/kernel/pid_max", last) < 0);
	(void)waitpid(inside, &status, 0);
	_exit(status != 0);
}

static bool shrink_numbers(struct box *b, const char *last)
{
	pid_t pid = fork();
	int status = 1;

	assert_true(pid >= 0);
	if (pid == 0)
		set_last_number(b->l.pidfd, last);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status == 0;
}

/* The number of an ended process comes round; a signal for the old one must not hit the new one. */
static void signals_do_not_reach_strangers(struct world *w, const struct attack *a)
{
	struct op first, burner;
	char line[64];

	box_open(w, &w->box, TEMPLATE_PLAIN, &a->limits);
	box_upload(w, &w->box);
	if (!shrink_numbers(&w->box, "700"))
		world_skip(w, "this kernel has one range of process numbers for all");
	/* The kernel gives numbers below 300 out once only. */
	box_expect_held(w, &w->box, "orphans 400", 0);
	box_start(w, &w->box, "ids", NULL, &first);
	assert_true(box_wait(&w->box, &first, 5000));
	(void)snprintf(line, sizeof(line), "burn-pids %u 1500", first.pid);
	box_start(w, &w->box, line, &(struct attack){ .timeout_ms = 90000 }, &burner);
	box_wait_ready(&w->box, &burner);
	for (int i = 0; i < 10; i++) { /* the old execution's id, whose process number is taken */
		(void)guest_signal(w->box.guest, first.id, SIGKILL, true);
		(void)guest_signal(w->box.guest, first.id, SIGKILL, false);
		(void)guest_cancel(w->box.guest, first.id);
		box_expect_answer(&w->box);
	}
	assert_true(box_wait(&w->box, &burner, 100000));
	op_expect_held("burn-pids", &burner, 0);
	op_done(&burner);
	op_done(&first);
	box_close(w, &w->box, NULL);
}

static const struct attack rows[] = {
	{ "T1 nothing of 50 used boxes shows up in 200 cold ones",
	  NULL,
	  0,
	  0,
	  { 0 },
	  marks_do_not_cross_cold },
	{ "T1 nothing of 50 used boxes shows up in 200 warm ones",
	  NULL,
	  0,
	  0,
	  { 0 },
	  marks_do_not_cross_warm },
	{ "T1 a new box's counters start at zero",
	  NULL,
	  NEEDS_MEMORY,
	  0,
	  { 0 },
	  counters_start_at_zero },
	{ "T3 deadlines know no wall clock",
	  NULL,
	  READS_SOURCES,
	  0,
	  { 0 },
	  deadlines_use_the_monotonic_clock },
	{ "T4 a signal for an ended process never reaches a stranger",
	  NULL,
	  0,
	  0,
	  { .cpu_milli = 2000 },
	  signals_do_not_reach_strangers },
};

const struct attack_table attacks_time = { rows, COUNT(rows) };
