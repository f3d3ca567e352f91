/* Boxes a second, each side with as many workers at once as serve it best. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/bench.h"

#define ROUNDS 4
#define ROUND_MS 2000u
#define TRY_MS 800u
#define SETTLE_MS 300u /* the workers' launchers start meanwhile */
#define WORKERS_MAX 64

/* Written by one worker, read by the parent when it has ended. */
struct tally {
	uint64_t runs;
	struct err err;
};

/* When runs count, on the monotonic clock. */
struct window {
	uint64_t begin_ms, end_ms;
};

typedef int worker_fn(struct tally *t, const struct window *w, struct err *err);

/* Counts the runs that end within the round; what is done while the others start is not. */
static int repeat(const struct probe *p, struct tally *t, const struct window *w, struct err *err)
{
	while (clock_now_ms() < w->end_ms) {
		uint64_t ns, now_ms;
		int r = p->once(p->self, &ns, err);

		if (r < 0)
			return r;
		now_ms = clock_now_ms();
		t->runs += now_ms >= w->begin_ms && now_ms < w->end_ms;
	}
	return 0;
}

/* A launcher of its own, as every daemon has one; each run builds, uses and removes a box. */
static int work_boxes(struct tally *t, const struct window *w, struct err *err)
{
	_cleanup_(launcher_stop_p) struct launcher *l = NULL;
	struct template_spec spec = { .id = 1, .preload = "" };
	struct box_probe p = { .template_id = 1, .claim_flags = LAUNCH_COLD, .until_gone = true };
	struct probe probe = { "box", box_once, &p };
	int r = box_launcher(&spec, 0, &l, err);

	if (r < 0)
		return r;
	box_exec_true(&p.exec);
	p.launcher = l;
	return repeat(&probe, t, w, err);
}

static int work_bwrap(struct tally *t, const struct window *w, struct err *err)
{
	const struct probe probe = { "bubblewrap", bare_once, (void *)&bare_bwrap };

	return repeat(&probe, t, w, err);
}

/* Runs a second of n workers side by side, or a negative errno. */
static double round_of(worker_fn *fn, int n, uint64_t ms, struct tally *tallies, struct err *err)
{
	uint64_t begin_ms = clock_now_ms() + SETTLE_MS, runs = 0;
	const struct window w = { begin_ms, begin_ms + ms };
	pid_t pids[WORKERS_MAX];
	int bad = 0;

	for (int i = 0; i < n; i++) {
		tallies[i] = (struct tally){ 0 };
		pids[i] = fork();
		if (pids[i] == 0)
			_exit(fn(&tallies[i], &w, &tallies[i].err) < 0);
	}
	for (int i = 0; i < n; i++) {
		int status = 0;

		if (pids[i] < 0 || waitpid(pids[i], &status, 0) != pids[i] || status != 0)
			bad = bad ? bad : i + 1;
		runs += tallies[i].runs;
	}
	if (bad)
		return err_set(err, EIO, "a worker failed: %.150s", tallies[bad - 1].err.text);
	return (double)runs * 1000 / (double)ms;
}

/* The number of workers (1, 2 or 4 a processor) with which it does most; 0 when it fails. */
static int best_workers(worker_fn *fn, struct tally *tallies, struct err *err)
{
	double best = 0;
	int best_n = 0;

	for (int n = get_nprocs(); n <= 4 * get_nprocs() && n <= WORKERS_MAX; n *= 2) {
		double rate = round_of(fn, n, TRY_MS, tallies, err);

		if (rate < 0)
			return 0;
		if (rate > best) {
			best = rate;
			best_n = n;
		}
	}
	return best_n;
}

static int race(struct bench *b, struct bench_row *row, struct tally *tallies, struct err *err)
{
	int ours = best_workers(work_boxes, tallies, err);
	int theirs = ours ? best_workers(work_bwrap, tallies, err) : 0;

	if (!ours || !theirs)
		return err_result(err, EIO);
	for (int i = 0; i < ROUNDS; i++) {
		double a, c;

		bench_quiet(b);
		a = round_of(work_boxes, ours, ROUND_MS, tallies, err);
		c = a < 0 ? a : round_of(work_bwrap, theirs, ROUND_MS, tallies, err);
		if (c < 0)
			return (int)c;
		row->p50 += a / ROUNDS;
		row->ref_p50 += c / ROUNDS;
	}
	(void)snprintf(
		row->note, sizeof(row->note),
		"%d workers, bubblewrap with %d: what served each best; %d rounds of %u ms in turn",
		ours, theirs, ROUNDS, ROUND_MS);
	return 0;
}

int bench_throughput(struct bench *b, struct err *err)
{
	struct bench_row *row = bench_add(b, "throughput", "create + run + destroy");
	struct tally *tallies = mmap(NULL, sizeof(*tallies) * WORKERS_MAX, PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int r;

	if (tallies == MAP_FAILED)
		return err_sys(err, errno, "shared memory");
	r = race(b, row, tallies, err);
	(void)munmap(tallies, sizeof(*tallies) * WORKERS_MAX);
	if (r < 0)
		return r;
	row->unit = "runs/s";
	row->ratio = row->ref_p50 > 0 ? row->p50 / row->ref_p50 : 0;
	row->n = ROUNDS;
	(void)snprintf(row->reference, sizeof(row->reference), "bubblewrap");
	bench_judge(row, 4, true);
	return 0;
}
