/* A thousand sandboxes that live in one daemon: what it weighs, and whether they slow each other.
 */
#include "cli/bench_fleet.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"

#define FEW 10u
#define MANY 1000u
#define STREAMS 200u
#define RSS_MIB 64
#define RUN_TRUE "{\"type\":\"command\",\"content\":\"/bin/true\"}"

/* How a sandbox is made: from the pool, which is full each time, or anew. */
static const struct way {
	const char *what, *body;
	bool is_warm;
} ways[] = {
	{ "creation from the pool while 1,000 live", "{}", true },
	{ "creation without the pool while 1,000 live", "{\"useWarmPool\":false}", false },
};
#define WAYS (sizeof(ways) / sizeof(ways[0]))

struct times {
	struct samples few[WAYS], many[WAYS];
};

static void times_done(struct times *t)
{
	for (size_t i = 0; i < WAYS; i++) {
		samples_done(&t->few[i]);
		samples_done(&t->many[i]);
	}
}

static void fleet_done(struct fleet *f)
{
	own_daemon_stop(&f->d); /* and with it every sandbox */
	free(f->boxes);
}

static int fleet_grow(struct fleet *f, size_t n, struct err *err)
{
	int r = 0;

	while (r == 0 && f->len < n) {
		r = bench_sandbox_create(&f->d, "{}", &f->boxes[f->len], err);
		f->len += r == 0;
	}
	return r;
}

static int fleet_shrink(struct fleet *f, size_t n, struct err *err)
{
	int r = 0;

	while (r == 0 && f->len > n)
		r = bench_sandbox_delete(&f->d, f->boxes[--f->len].id, err);
	return r;
}

/* Each is deleted again, outside of the time. */
static int time_way(struct fleet *f, const struct way *way, uint32_t n, struct samples *to,
		    struct err *err)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < n; i++) {
		struct bench_sandbox box;
		uint64_t began;

		r = bench_pool_wait(&f->d, "python", err);
		began = clock_now_ns();
		if (r == 0)
			r = bench_sandbox_create(&f->d, way->body, &box, err);
		if (r == 0)
			r = samples_add(to, clock_now_ns() - began);
		if (r == 0)
			r = bench_sandbox_delete(&f->d, box.id, err);
		if (r == 0 && box.is_warm != way->is_warm)
			r = err_set(err, EIO, "a sandbox was not made as it should be");
	}
	return r;
}

static int time_ways(struct bench *b, struct fleet *f, uint32_t n, struct samples to[WAYS],
		     struct err *err)
{
	int r = 0;

	bench_quiet(b);
	for (size_t i = 0; r == 0 && i < WAYS; i++)
		r = time_way(f, &ways[i], n, &to[i], err);
	return r;
}

/* Every sandbox runs a command. How many did. */
static size_t ask_all(struct fleet *f)
{
	_cleanup_(buf_done) struct buf answer = { 0 };
	char target[BENCH_TARGET];
	size_t answered = 0;

	for (size_t i = 0; i < f->len; i++) {
		bench_target(target, f->boxes[i].id, "/execute");
		if (fetch_want(&f->d.conn, 200, "POST", target, RUN_TRUE, &answer, NULL) == 0 &&
		    strstr(buf_str(&answer), "\"exitCode\":0,"))
			answered++;
	}
	return answered;
}

static int add_rss(struct bench *b, struct fleet *f, struct err *err)
{
	struct bench_row *row = bench_add(b, "fleet", "the daemon's memory (RSS) with 1,000 live");
	uint64_t bytes;
	int r = bench_rss(f->d.pid, &bytes);

	if (r < 0)
		return err_sys(err, r, "the daemon's memory");
	row->unit = "MiB";
	row->n = 1;
	row->p50 = row->ratio = (double)bytes / (1 << 20);
	(void)snprintf(row->note, sizeof(row->note), "after an execution in each of them");
	bench_judge(row, RSS_MIB, false);
	return 0;
}

static void add_answered(struct bench *b, size_t answered)
{
	struct bench_row *row = bench_add(b, "fleet", "live sandboxes of 1,000 that run a command");

	row->unit = "boxes";
	row->n = MANY;
	row->p50 = row->ratio = (double)answered;
	bench_judge(row, MANY, true);
}

static void add_creation(struct bench *b, const struct way *way, struct samples *few,
			 struct samples *many)
{
	struct bench_row *row = bench_add(b, "fleet", way->what);

	row->n = many->len;
	row->p50 = samples_ms(many, 0.5);
	row->p99 = samples_ms(many, 0.99);
	row->ref_p50 = samples_ms(few, 0.5);
	row->ref_p99 = samples_ms(few, 0.99);
	row->ratio = row->ref_p99 > 0 ? row->p99 / row->ref_p99 : 0;
	(void)snprintf(row->reference, sizeof(row->reference), "the same while 10 live");
	(void)snprintf(row->note, sizeof(row->note),
		       "the ratio is that of the p99s (%.2f and %.2f ms); the few were measured "
		       "before and after the many",
		       row->p99, row->ref_p99);
	bench_judge(row, 2, false);
}

/* Few, many, few again: what drifts on the machine meanwhile falls on both sides. */
static int measure(struct bench *b, struct fleet *f, struct times *t, struct err *err)
{
	int r = fleet_grow(f, FEW, err);

	if (r == 0)
		r = time_ways(b, f, (b->n + 1) / 2, t->few, err);
	if (r == 0)
		r = fleet_grow(f, MANY, err);
	if (r == 0)
		r = time_ways(b, f, b->n, t->many, err);
	if (r == 0)
		add_answered(b, ask_all(f));
	if (r == 0)
		r = add_rss(b, f, err);
	if (r == 0)
		r = fleet_streams(b, f, STREAMS, err);
	if (r == 0)
		r = fleet_shrink(f, FEW, err);
	if (r == 0)
		r = time_ways(b, f, (b->n + 1) / 2, t->few, err);
	for (size_t i = 0; r == 0 && i < WAYS; i++)
		add_creation(b, &ways[i], &t->few[i], &t->many[i]);
	return r;
}

int bench_fleet(struct bench *b, struct err *err)
{
	_cleanup_(fleet_done) struct fleet f = { 0 };
	_cleanup_(times_done) struct times t = { 0 };
	int r;

	f.boxes = calloc(MANY, sizeof(*f.boxes));
	if (!f.boxes)
		return err_sys(err, ENOMEM, "%u sandboxes", MANY);
	r = bench_daemon_start(&f.d, err);
	return r < 0 ? r : measure(b, &f, &t, err);
}
