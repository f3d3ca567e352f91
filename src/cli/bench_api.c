/* What the daemon adds: an execution and a whole life of a sandbox, over HTTP. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/bench.h"
#include "cli/bench_daemon.h"
#include "json/jv.h"

/* Between two requests, as an agent thinks. Back to back, a box's quota of processor time would be
 * measured instead: half a core does not start a program every millisecond. */
#define THINK_MS 10
#define ANSWER_MAX (1u << 20)

#define RUN_TRUE "{\"type\":\"command\",\"content\":\"/bin/true\"}"
#define ARGV_TRUE "{\"argv\":[\"/bin/true\"]}"
#define RUN_CONTEXT "{\"type\":\"code\",\"content\":\"1+1\",\"contextId\":\"bench\"}"
#define MAKE_CONTEXT "{\"language\":\"python\",\"name\":\"bench\"}"
#define RUN_PYTHON "{\"type\":\"code\",\"language\":\"python\",\"content\":\"print(1)\"}"

enum reference { BARE_TRUE, BARE_SHELL, BARE_PYTHON };
static const struct probe references[] = {
	[BARE_TRUE] = { "bare fork+exec", bare_once, (void *)&bare_true },
	[BARE_SHELL] = { "bare bash -c /bin/true", bare_once, (void *)&bare_shell },
	[BARE_PYTHON] = { "bare python3", bare_once, (void *)&bare_python },
};

static const struct api_row {
	const char *what;
	const char *verb; /* end of the route; NULL: create, run and delete */
	const char *body;
	const char *output;
	enum reference bare;
	double demand;
	long think_ms;
	uint32_t cores;      /* of the sandbox; 0: as is usual */
	const char *context; /* body of a context's that it needs; NULL: none */
} api_rows[] = {
	{ "POST execute of /bin/true, live sandbox", "/execute", RUN_TRUE, "", BARE_TRUE, 1.6,
	  THINK_MS, 0, NULL },
	{ "the same, as bash -c /bin/true", "/execute", RUN_TRUE, "", BARE_SHELL, 0, THINK_MS, 0,
	  NULL },
	{ "/bin/true without a shell (argv)", "/executions", ARGV_TRUE, "", BARE_TRUE, 1.6,
	  THINK_MS, 0, NULL },
	{ "POST execute of Python print(1), live sandbox", "/execute", RUN_PYTHON, "1\n",
	  BARE_PYTHON, 0.1, THINK_MS, 0, NULL },
	{ "Python 1+1 in a live context", "/execute", RUN_CONTEXT, "", BARE_PYTHON, 0.05, THINK_MS,
	  0, MAKE_CONTEXT },
	{ "create from the pool, Python print(1), delete", NULL, RUN_PYTHON, "1\n", BARE_PYTHON,
	  0.25, THINK_MS, 0, NULL },
	{ "argv back to back, half a core", "/executions", ARGV_TRUE, "", BARE_TRUE, 0, 0, 0,
	  NULL },
	{ "argv back to back, 2 cores", "/executions", ARGV_TRUE, "", BARE_TRUE, 0, 0, 2, NULL },
	{ "Python back to back, half a core", "/execute", RUN_PYTHON, "1\n", BARE_PYTHON, 0, 0, 0,
	  NULL },
	{ "Python back to back, 2 cores", "/execute", RUN_PYTHON, "1\n", BARE_PYTHON, 0, 0, 2,
	  NULL },
};

CLEANUP_FUNC(struct jv_doc *, jv_free)

struct api_probe {
	const struct api_row *row;
	struct own_daemon *d;      /* borrowed */
	char target[BENCH_TARGET]; /* of a live sandbox's execution */
	struct buf answer;         /* owned */
	char body[BENCH_BOX];      /* of a sandbox */
};

/* The run did what was asked: a benchmark of failures would be quick. */
static int check(const struct api_probe *p, struct err *err)
{
	_cleanup_(jv_free_p) struct jv_doc *doc = NULL;
	int r = jv_parse(p->answer.data, p->answer.len, ANSWER_MAX, &doc, err);
	struct jv root = jv_root(doc);
	const char *out = jv_text(jv_get(root, "stdout"));
	bool warm = false;
	int64_t code = -1;

	if (r < 0)
		return r;
	if (jv_i64(jv_get(root, "exitCode"), &code) < 0 || code != 0 || !out ||
	    strcmp(out, p->row->output) != 0)
		return err_set(err, EIO, "the run ended with %.150s", buf_str(&p->answer));
	(void)jv_bool(jv_get(root, "warm"), &warm);
	if (p->row->bare == BARE_PYTHON && !warm)
		return err_set(err, EIO, "no interpreter was waiting in the sandbox");
	return 0;
}

static int execute(struct api_probe *p, struct err *err)
{
	return fetch_want(&p->d->conn, 200, "POST", p->target, p->row->body, &p->answer, err);
}

static int run_live(struct api_probe *p, uint64_t *ret_ns, struct err *err)
{
	uint64_t began = clock_now_ns();
	int r = execute(p, err);

	*ret_ns = clock_now_ns() - began;
	return r;
}

static int run_life(struct api_probe *p, uint64_t *ret_ns, struct err *err)
{
	struct bench_sandbox box;
	uint64_t began;
	int r = bench_pool_wait(p->d, "python", err);

	began = clock_now_ns();
	if (r == 0)
		r = bench_sandbox_create(p->d, p->body, &box, err);
	if (r < 0)
		return r;
	bench_target(p->target, box.id, "/execute");
	r = execute(p, err);
	if (r == 0)
		r = bench_sandbox_delete(p->d, box.id, err);
	*ret_ns = clock_now_ns() - began;
	if (r == 0 && !box.is_warm)
		r = err_set(err, EIO, "no box was waiting");
	return r;
}

static int api_once(void *self, uint64_t *ret_ns, struct err *err)
{
	struct api_probe *p = self;
	int r;

	bench_nap_ms(p->row->think_ms);
	r = p->row->verb ? run_live(p, ret_ns, err) : run_life(p, ret_ns, err);
	return r < 0 ? r : check(p, err);
}

/* The reference at the same pace: caches and processors cool down alike. */
static int bare_paced(void *self, uint64_t *ret_ns, struct err *err)
{
	const struct api_row *row = self;

	bench_nap_ms(row->think_ms);
	return references[row->bare].once(references[row->bare].self, ret_ns, err);
}

static int make_context(struct api_probe *p, const char *sandbox, struct err *err)
{
	char target[BENCH_TARGET];

	bench_target(target, sandbox, "/contexts");
	return fetch_want(&p->d->conn, 201, "POST", target, p->row->context, &p->answer, err);
}

static int measure(struct bench *b, struct own_daemon *d, const struct api_row *row,
		   struct err *err)
{
	struct api_probe p = { .row = row, .d = d };
	const struct probe subject = { row->what, api_once, &p };
	const struct probe reference = { references[row->bare].name, bare_paced, (void *)row };
	struct bench_row *to = bench_add(b, "api", row->what);
	struct bench_sandbox box;
	int r;

	bench_box(p.body, row->cores, "");
	r = row->verb ? bench_sandbox_create(d, p.body, &box, err) : 0;
	if (r < 0)
		return r;
	if (row->context)
		r = make_context(&p, box.id, err);
	if (row->verb)
		bench_target(p.target, box.id, row->verb);
	if (r == 0 && row->context)
		r = execute(&p, err); /* until it has begun */
	if (r == 0)
		r = bench_pair(b, to, &subject, &reference, b->n, err);
	buf_done(&p.answer);
	if (r == 0 && row->verb)
		r = bench_sandbox_delete(d, box.id, err);
	if (r == 0 && row->demand > 0)
		bench_judge(to, row->demand, false);
	if (r == 0 && row->think_ms > 0)
		(void)snprintf(to->note, sizeof(to->note),
			       "%ld ms between requests and between runs of the reference",
			       row->think_ms);
	return r;
}

int bench_api(struct bench *b, struct err *err)
{
	_cleanup_(own_daemon_stop) struct own_daemon d = { 0 };
	int r = bench_daemon_start(&d, err);

	for (size_t i = 0; r == 0 && i < sizeof(api_rows) / sizeof(api_rows[0]); i++)
		r = measure(b, &d, &api_rows[i], err);
	return r;
}
