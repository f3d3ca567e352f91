/* Boxes a second, with as many workers as the machine has processors. */
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
#define WORKERS_MAX 64

/* Written by one worker, read by the parent when it has ended. */
struct tally {
	uint64_t runs;
	struct err err;
};

typedef int worker_fn(struct tally *t, uint64_t end_ms, struct err *err);

static int repeat(const struct probe *p, struct tally *t, uint64_t end_ms, struct err *err)
{
	while (clock_now_ms() < end_ms) {
		uint64_t ns;
		int r = p->once(p->self, &ns, err);

		if (r < 0)
			return r;
		t->runs++;
	}
	return 0;
}

/* A launcher of its own, as every daemon has one; each run builds, uses and removes a box. */
static int work_boxes(struct tally *t, uint64_t end_ms, struct err *err)
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
	return repeat(&probe, t, end_ms, err);
}

static int work_bwrap(struct tally *t, uint64_t end_ms, struct err *err)
{
	const struct probe probe = { "bubblewrap", bare_once, (void *)&bare_bwrap };

	return repeat(&probe, t, end_ms, err);
}

static void be_worker(worker_fn *fn, struct tally *t, uint64_t begin_ms)
{
	while (clock_now_ms() < begin_ms)
		(void)usleep(1000);
	_exit(fn(t, begin_ms + ROUND_MS, &t->err) < 0);
}

/* Runs a second of n workers side by side, or a negative errno. */
static double round_of(worker_fn *fn, int n, struct tally *tallies, struct err *err)
{
	uint64_t begin_ms = clock_now_ms() + 50, runs = 0;
	pid_t pids[WORKERS_MAX];
	int bad = 0;

	for (int i = 0; i < n; i++) {
		tallies[i] = (struct tally){ 0 };
		pids[i] = fork();
		if (pids[i] == 0)
			be_worker(fn, &tallies[i], begin_ms);
	}
	for (int i = 0; i < n; i++) {
		int status = 0;

		if (pids[i] < 0 || waitpid(pids[i], &status, 0) != pids[i] || status != 0)
			bad = bad ? bad : i + 1;
		runs += tallies[i].runs;
	}
	if (bad)
		return err_set(err, EIO, "a worker failed: %.150s", tallies[bad - 1].err.text);
	return (double)runs * 1000 / ROUND_MS;
}

int bench_throughput(struct bench *b, struct err *err)
{
	struct bench_row *row = bench_add(b, "throughput", "create + run + destroy");
	int n = get_nprocs() < WORKERS_MAX ? get_nprocs() : WORKERS_MAX;
	struct tally *tallies = mmap(NULL, sizeof(*tallies) * WORKERS_MAX, PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	double ours = 0, theirs = 0;

	if (tallies == MAP_FAILED)
		return err_sys(err, errno, "shared memory");
	row->unit = "runs/s";
	for (int i = 0; i < ROUNDS; i++) {
		double a, c;

		bench_quiet(b);
		a = round_of(work_boxes, n, tallies, err);
		c = a < 0 ? a : round_of(work_bwrap, n, tallies, err);
		if (c < 0) {
			(void)munmap(tallies, sizeof(*tallies) * WORKERS_MAX);
			return (int)c;
		}
		ours += a / ROUNDS;
		theirs += c / ROUNDS;
	}
	(void)munmap(tallies, sizeof(*tallies) * WORKERS_MAX);
	row->p50 = ours;
	row->ref_p50 = theirs;
	row->ratio = theirs > 0 ? ours / theirs : 0;
	row->n = ROUNDS;
	(void)snprintf(row->reference, sizeof(row->reference), "bubblewrap");
	(void)snprintf(row->note, sizeof(row->note), "%d workers each, %d rounds of %u ms in turn",
		       n, ROUNDS, ROUND_MS);
	bench_judge(row, 4, true);
	return 0;
}
