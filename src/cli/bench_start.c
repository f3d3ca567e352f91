/* How long until something has run: cold, warm, and again in the same box. */
#include <errno.h>

#include "base/cleanup.h"
#include "cli/bench.h"
#include "provider/guest_client.h"

#define TEMPLATE_ID 1u
#define POOL 8u

static const struct probe probe_true = { "bare fork+exec", bare_once, (void *)&bare_true };
static const struct probe probe_python = { "bare python3", bare_once, (void *)&bare_python };
static const struct probe probe_node = { "bare node", bare_once, (void *)&bare_node };
static const struct probe probe_bwrap = { "bubblewrap", bare_once, (void *)&bare_bwrap };

/* One row: a box of this template against a reference. */
struct start {
	const char *group, *what;
	const struct probe *reference;
	double demand;
	uint32_t template_flags;
	const char *preload;
	uint32_t pool;
};

static int measure(struct bench *b, const struct start *s, struct box_probe *p, struct err *err)
{
	_cleanup_(launcher_stop_p) struct launcher *l = NULL;
	struct template_spec t = { .id = TEMPLATE_ID,
				   .flags = s->template_flags,
				   .preload = s->preload ? s->preload : "" };
	struct probe subject = { s->what, box_once, p };
	struct bench_row *row = bench_add(b, s->group, s->what);
	int r = box_launcher(&t, s->pool, &l, err);

	if (r < 0)
		return r;
	p->launcher = l;
	p->template_id = TEMPLATE_ID;
	p->pool = s->pool;
	r = bench_pair(b, row, &subject, s->reference, b->n, err);
	if (r == 0)
		bench_judge(row, s->demand, false);
	return r;
}

int bench_cold(struct bench *b, struct err *err)
{
	const struct start s = { .group = "cold",
				 .what = "cold box with all limits, /bin/true, to reaped",
				 .reference = &probe_bwrap,
				 .demand = 0.5 };
	struct box_probe p = { .claim_flags = LAUNCH_COLD, .until_gone = true };

	box_exec_true(&p.exec);
	return measure(b, &s, &p, err);
}

int bench_warm(struct bench *b, struct err *err)
{
	const struct start s = { .group = "warm",
				 .what = "warm box (claimed from the pool), /bin/true",
				 .reference = &probe_true,
				 .demand = 1.5,
				 .pool = POOL };
	struct box_probe p = { 0 };

	box_exec_true(&p.exec);
	return measure(b, &s, &p, err);
}

/* The box is made here, so that measure() finds it living. */
int bench_live(struct bench *b, struct err *err)
{
	_cleanup_(launcher_stop_p) struct launcher *l = NULL;
	_cleanup_(guest_free_p) struct guest_client *g = NULL;
	struct bench_row *row = bench_add(b, "live", "further command in a live box, /bin/true");
	struct template_spec t = { .id = TEMPLATE_ID, .preload = "" };
	struct launch_spec spec = { .template_id = TEMPLATE_ID };
	struct box_probe p = { 0 };
	struct probe subject = { "live box", box_once, &p };
	struct launcher_box box;
	int r = box_launcher(&t, 0, &l, err);

	box_exec_true(&p.exec);
	if (r == 0)
		r = launcher_claim_sync(l, &spec, &box, err);
	if (r < 0)
		return r;
	r = guest_create(TAKE_FD(box.sock), &g, err);
	p.live = g;
	if (r == 0)
		r = bench_pair(b, row, &subject, &probe_true, b->n, err);
	if (r == 0)
		bench_judge(row, 1.3, false);
	launcher_box_done(&box);
	return r;
}

int bench_python(struct bench *b, struct err *err)
{
	const struct start s = { .group = "python",
				 .what = "warm Python print(1) in a fresh box, to result",
				 .reference = &probe_python,
				 .demand = 0.04,
				 .template_flags = TEMPLATE_WARM_PYTHON,
				 .pool = POOL };
	struct box_probe p = { .output = "1\n" };

	box_exec_code(&p.exec, EXEC_PYTHON, "print(1)");
	return measure(b, &s, &p, err);
}

int bench_numpy(struct bench *b, struct err *err)
{
	const struct start s = { .group = "numpy",
				 .what = "the same with numpy imported",
				 .reference = &probe_python,
				 .demand = 0.05,
				 .template_flags = TEMPLATE_WARM_PYTHON,
				 .preload = "numpy",
				 .pool = POOL };
	struct box_probe p = { .output = "1\n" };

	box_exec_code(&p.exec, EXEC_PYTHON, "print(1)");
	return measure(b, &s, &p, err);
}

int bench_node(struct bench *b, struct err *err)
{
	const struct start s = { .group = "node",
				 .what = "warm Node console.log(1) in a fresh box, to result",
				 .reference = &probe_node,
				 .demand = 0.2,
				 .template_flags = TEMPLATE_WARM_NODE,
				 .pool = 4 };
	struct box_probe p = { .output = "1\n" };

	box_exec_code(&p.exec, EXEC_NODE, "console.log(1)");
	return measure(b, &s, &p, err);
}
