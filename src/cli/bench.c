#include "cli/bench.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "base/cleanup.h"
#include "cli/command.h"

/* Subjects and references inherit it alike: other work on the machine then blurs them less. */
#define PRIORITY (-19)
#define RUNS 300
#define RUNS_QUICK 60

struct bench_args {
	uint32_t n;
	uint64_t load_wait_ms;
	struct opt_list only;
	bool peers, quick, json, markdown;
};

const struct opt bench_opts[] = {
	{ .name = "peers",
	  .type = OPT_FLAG,
	  .help = "also measure the other sandboxes that are installed",
	  .offset = offsetof(struct bench_args, peers) },
	{ .name = "quick",
	  .type = OPT_FLAG,
	  .help = "a first look: fewer runs, 1 GiB instead of 10",
	  .offset = offsetof(struct bench_args, quick) },
	{ .name = "n",
	  .letter = 'n',
	  .type = OPT_COUNT,
	  .arg = "N",
	  .help = "runs of each kind (300; with --quick 60)",
	  .offset = offsetof(struct bench_args, n),
	  .min = 5,
	  .max = 100000 },
	{ .name = "only",
	  .type = OPT_LIST,
	  .arg = "NAME",
	  .help = "cold, warm, live, python, numpy, node, throughput, idle, crowd, "
		  "health, proxy, api, mcp, audit, fleet, flow, fork, peers",
	  .offset = offsetof(struct bench_args, only) },
	{ .name = "load-wait",
	  .type = OPT_DURATION,
	  .arg = "TIME",
	  .help = "longest wait for a quiet machine, for each kind (30s)",
	  .offset = offsetof(struct bench_args, load_wait_ms),
	  .max = 3600000 },
	{ .name = "json",
	  .type = OPT_FLAG,
	  .help = "as a JSON object",
	  .offset = offsetof(struct bench_args, json) },
	{ .name = "markdown",
	  .type = OPT_FLAG,
	  .help = "as a Markdown table",
	  .offset = offsetof(struct bench_args, markdown) },
	{ 0 },
};

static const struct experiment {
	const char *name;
	int (*run)(struct bench *b, struct err *err);
	bool is_peers; /* only with --peers or by name */
} experiments[] = {
	{ "cold", bench_cold, false },
	{ "warm", bench_warm, false },
	{ "live", bench_live, false },
	{ "python", bench_python, false },
	{ "numpy", bench_numpy, false },
	{ "node", bench_node, false },
	{ "throughput", bench_throughput, false },
	{ "idle", bench_idle, false },
	{ "crowd", bench_crowd, false },
	{ "health", bench_health, false },
	{ "proxy", bench_proxy, false },
	{ "api", bench_api, false },
	{ "mcp", bench_mcp, false },
	{ "audit", bench_audit, false },
	{ "fleet", bench_fleet, false },
	{ "flow", bench_flow, false },
	{ "fork", bench_fork, false },
	{ "store", bench_store, false },
	{ "peers", bench_peers, true },
};
#define EXPERIMENTS (sizeof(experiments) / sizeof(experiments[0]))

static bool is_wanted(const struct bench_args *a, const struct experiment *e)
{
	for (size_t i = 0; i < a->only.len; i++)
		if (strcmp(a->only.items[i], e->name) == 0)
			return true;
	return a->only.len == 0 && (!e->is_peers || a->peers);
}

static int check_names(const struct opt_list *only)
{
	const char *names[EXPERIMENTS + 1] = { 0 };

	for (size_t i = 0; i < EXPERIMENTS; i++)
		names[i] = experiments[i].name;
	for (size_t i = 0; i < only->len; i++) {
		size_t k = 0;

		while (k < EXPERIMENTS && strcmp(names[k], only->items[i]) != 0)
			k++;
		if (k == EXPERIMENTS) {
			cli_say("--only does not know '%.40s'", only->items[i]);
			cli_hint(
				"it knows cold, warm, live, python, numpy, node, throughput, idle, "
				"crowd, health, proxy, api, fleet, flow and peers");
			return -EINVAL;
		}
	}
	return 0;
}

/* What an experiment could not measure becomes a row that says why. */
static void run_one(struct bench *b, const struct experiment *e)
{
	struct err err = { 0 };
	size_t before = b->len;
	struct bench_row *row;

	(void)fprintf(stderr, "holt bench: %s\n", e->name);
	b->patience_ms = b->load_wait_ms;
	if (e->run(b, &err) == 0)
		return;
	row = b->len > before ? &b->rows[b->len - 1] : bench_add(b, e->name, e->name);
	row->verdict = VERDICT_FAILED;
	(void)snprintf(row->note, sizeof(row->note), "%.150s", err.text);
}

static void print(const struct bench *b, const struct bench_args *a)
{
	_cleanup_(buf_done) struct buf out = { 0 };

	if (a->json)
		bench_print_json(b, &out);
	else if (a->markdown)
		bench_print_markdown(b, &out);
	else
		bench_print_text(b, &out);
	(void)fputs(buf_str(&out), stdout);
}

int cmd_bench(const struct command *cmd, int argc, char **argv)
{
	struct bench_args args = { .load_wait_ms = 30000 };
	int n = cli_parse(cmd, argc, argv, &args);
	bool all = true;
	struct bench *b;

	if (n <= 0)
		return -n;
	if (check_names(&args.only) < 0)
		return CLI_USAGE;
	b = mmap(NULL, sizeof(*b), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (b == MAP_FAILED) {
		cli_say("no memory: %s", strerror(errno));
		return CLI_ERROR;
	}
	b->n = args.n ? args.n : args.quick ? RUNS_QUICK : RUNS;
	b->quick = args.quick;
	b->load_wait_ms = args.load_wait_ms;
	b->raised = setpriority(PRIO_PROCESS, 0, PRIORITY) == 0;
	bench_load(b->load_before, sizeof(b->load_before));
	for (size_t i = 0; i < EXPERIMENTS; i++)
		if (is_wanted(&args, &experiments[i]))
			run_one(b, &experiments[i]);
	bench_load(b->load_after, sizeof(b->load_after));
	print(b, &args);
	for (size_t i = 0; i < b->len; i++)
		all = all && b->rows[i].verdict != VERDICT_FAILED;
	(void)munmap(b, sizeof(*b));
	return all ? CLI_OK : CLI_FAILED;
}
