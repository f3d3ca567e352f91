/* Runs every case of a cases file twice, in a box with waiting interpreters and in one without, and
 * compares what came out: an interpreter that waited must behave as a fresh one. See cases.h for
 * the format. usage: compat LAUNCHER [-v] [-k TEXT] FILE... */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "cases.h"
#include "provider/guest_client.h"
#include "provider/launcher.h"

enum { WARM_TEMPLATE = 1, COLD_TEMPLATE = 2 };
#define POOL 3
#define POOL_WAIT_MS 20000
#define RUN_TIMEOUT_MS 60000
#define DISTINCT_RUNS 4 /* two boxes, two runs each */

struct bench {
	struct launcher *launcher;
	bool verbose;
	unsigned passed, failed;
};

struct outcome {
	struct buf out, err; /* owned; normalised */
	uint32_t code, flags;
	bool warm;
};

static void outcome_done(struct outcome *o)
{
	buf_done(&o->out);
	buf_done(&o->err);
}

/* What differs from one process to the next and says nothing: addresses, process numbers. */
static const struct {
	const char *before, *digits, *name;
} volatile_parts[] = {
	{ "0x", "0123456789abcdef", "ADDRESS" },
	{ "(node:", "0123456789", "PID" },
	{ "pid=", "0123456789", "PID" },
	{ "PID ", "0123456789", "PID" },
};

/* True when the text that ends at `to` ends with `before`. */
static bool ends_with(const struct buf *to, const char *before)
{
	size_t n = strlen(before);

	return to->len >= n && memcmp(to->data + to->len - n, before, n) == 0;
}

static void normalise(const struct buf *from, struct buf *to)
{
	const char *s = buf_str(from);

	for (size_t i = 0; i < from->len; i++) {
		(void)buf_putc(to, s[i]);
		for (size_t k = 0; k < sizeof(volatile_parts) / sizeof(volatile_parts[0]); k++) {
			size_t n = strspn(s + i + 1, volatile_parts[k].digits);

			if (n == 0 || !ends_with(to, volatile_parts[k].before))
				continue;
			(void)buf_puts(to, volatile_parts[k].name);
			i += n;
		}
	}
}

static void wait_for_pool(struct bench *b)
{
	struct pool_state state;

	for (int ms = 0; ms < POOL_WAIT_MS; ms += 5) {
		if (launcher_pool_state_sync(b->launcher, WARM_TEMPLATE, &state, NULL) == 0 &&
		    state.ready > 0)
			return;
		(void)nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
	}
}

struct boxed {
	struct launcher_box box;
	struct guest_client *guest; /* owned */
};

static int open_box(struct bench *b, uint32_t template_id, struct boxed *ret, struct err *err)
{
	struct launch_spec spec = { .template_id = template_id };
	int r;

	if (template_id == WARM_TEMPLATE)
		wait_for_pool(b);
	r = launcher_claim_sync(b->launcher, &spec, &ret->box, err);
	return r < 0 ? r : guest_create(ret->box.sock, &ret->guest, err);
}

static void close_box(struct bench *b, struct boxed *box)
{
	(void)guest_free(box->guest);
	(void)close(box->box.pidfd);
	(void)launcher_destroy_sync(b->launcher, box->box.id, NULL, NULL);
}

static int run_in(struct boxed *box, const struct test_case *c, const char *code,
		  struct outcome *ret, struct err *err)
{
	struct guest_exec e = { .kind = c->node ? EXEC_NODE : EXEC_PYTHON,
				.flags = (uint8_t)(EXEC_LOGIN | (c->has_stdin ? EXEC_STDIN : 0)),
				.timeout_ms = RUN_TIMEOUT_MS,
				.user = "",
				.cwd = c->cwd,
				.code = code };
	struct guest_result result = { 0 };
	int r;

	e.envp[e.envc++] = "PATH=" GUEST_PATH;
	e.envp[e.envc++] = "LANG=C.UTF-8";
	for (size_t i = 0; i < c->envc; i++)
		e.envp[e.envc++] = c->env[i];
	for (size_t i = 0; i < c->argc; i++)
		e.argv[e.argc++] = c->args[i];
	r = guest_exec_sync(box->guest, &e, c->in.data, c->in.len, &result, err);
	if (r == 0) {
		*ret = (struct outcome){ .code = result.exit.code,
					 .flags = result.exit.flags,
					 .warm = result.warm };
		normalise(&result.out, &ret->out);
		normalise(&result.err, &ret->err);
	}
	guest_result_done(&result);
	return r;
}

/* Programs that come first run in the same box; only the last one's outcome counts. */
static int run_case(struct bench *b, const struct test_case *c, uint32_t template_id,
		    struct outcome *ret, struct err *err)
{
	struct boxed box = { 0 };
	int r = open_box(b, template_id, &box, err);

	if (r < 0)
		return r;
	if (c->first) {
		struct outcome ignored = { 0 };

		r = run_in(&box, c, c->first, &ignored, err);
		outcome_done(&ignored);
	}
	if (r == 0)
		r = run_in(&box, c, c->code, ret, err);
	close_box(b, &box);
	return r;
}

static bool is_same_text(const struct buf *a, const struct buf *b)
{
	return a->len == b->len && (a->len == 0 || memcmp(a->data, b->data, a->len) == 0);
}

static bool is_same(const struct outcome *a, const struct outcome *b)
{
	return a->code == b->code && a->flags == b->flags && is_same_text(&a->out, &b->out) &&
	       is_same_text(&a->err, &b->err);
}

static void print_outcome(const char *name, const struct outcome *o)
{
	(void)printf("# %s: code %u flags %#x%s\n# out: %s\n# err: %s\n", name, o->code, o->flags,
		     o->warm ? " (waited)" : "", buf_str(&o->out), buf_str(&o->err));
}

static void verdict(struct bench *b, const struct test_case *c, bool ok, const char *why)
{
	if (ok)
		b->passed++;
	else
		b->failed++;
	if (!ok || b->verbose)
		(void)printf("%s %s: %s%s%s\n", ok ? "ok" : "FAILED", c->node ? "node" : "python",
			     c->name, ok ? "" : ": ", ok ? "" : why);
}

static void compare(struct bench *b, const struct test_case *c)
{
	struct outcome warm = { 0 }, cold = { 0 };
	struct err err = { 0 };
	int r = run_case(b, c, WARM_TEMPLATE, &warm, &err);

	if (r == 0)
		r = run_case(b, c, COLD_TEMPLATE, &cold, &err);
	if (c->loose) {
		warm.flags &= ~(uint32_t)EXIT_LEFTOVERS;
		cold.flags &= ~(uint32_t)EXIT_LEFTOVERS;
	}
	if (r < 0)
		verdict(b, c, false, err.text);
	else if (warm.warm == c->served_cold || cold.warm)
		verdict(b, c, false, warm.warm ? "a waiting interpreter took it" : "none took it");
	else
		verdict(b, c, is_same(&warm, &cold), "differs from a fresh interpreter");
	if (r == 0 && !is_same(&warm, &cold)) {
		print_outcome("waited", &warm);
		print_outcome("fresh ", &cold);
	}
	outcome_done(&warm);
	outcome_done(&cold);
}

/* The same program in two boxes, twice in each, must never say the same. */
static void expect_distinct(struct bench *b, const struct test_case *c)
{
	struct outcome runs[DISTINCT_RUNS] = { 0 };
	struct err err = { 0 };
	const char *why = NULL;
	int r = 0;

	for (int i = 0; i < DISTINCT_RUNS && r == 0; i += 2) {
		struct boxed box = { 0 };

		r = open_box(b, WARM_TEMPLATE, &box, &err);
		for (int k = 0; k < 2 && r == 0; k++)
			r = run_in(&box, c, c->code, &runs[i + k], &err);
		if (box.guest)
			close_box(b, &box);
	}
	if (r < 0)
		why = err.text;
	for (int i = 0; i < DISTINCT_RUNS && !why; i++) {
		if (runs[i].code != 0 || runs[i].out.len == 0)
			why = "the program failed";
		for (int k = 0; k < i && !why; k++)
			if (is_same_text(&runs[i].out, &runs[k].out))
				why = "two runs said the same";
	}
	verdict(b, c, !why, why);
	for (int i = 0; i < DISTINCT_RUNS; i++) {
		if (why)
			print_outcome("run", &runs[i]);
		outcome_done(&runs[i]);
	}
}

static int define(struct bench *b, uint32_t id, uint32_t flags, struct err *err)
{
	struct template_spec t = { .id = id, .flags = flags, .preload = "" };

	t.limits.memory_bytes = 512ull << 20;
	t.limits.cpu_milli = 2000; /* what is compared is not speed */
	return launcher_template_sync(b->launcher, &t, -1, err);
}

static int prepare(struct bench *b, const char *program, struct err *err)
{
	struct launcher_options o = { .program = program };
	struct pool_spec pool = { .template_id = WARM_TEMPLATE, .min = POOL, .max = POOL };
	int r = launcher_start(&o, &b->launcher, err);

	if (r == 0)
		r = define(b, WARM_TEMPLATE, TEMPLATE_WARM_PYTHON | TEMPLATE_WARM_NODE, err);
	if (r == 0)
		r = define(b, COLD_TEMPLATE, 0, err);
	pool.quiet_ms = 60000;
	return r < 0 ? r : launcher_pool_sync(b->launcher, &pool, err);
}

static int run_file(struct bench *b, const char *path, const char *only, struct err *err)
{
	_cleanup_(cases_done) struct cases cases = { 0 };
	int r = cases_load(&cases, path, err);

	for (size_t i = 0; i < cases.len && r == 0; i++) {
		const struct test_case *c = &cases.items[i];

		if (only && !strstr(c->name, only))
			continue;
		if (c->distinct)
			expect_distinct(b, c);
		else
			compare(b, c);
	}
	return r;
}

int main(int argc, char **argv)
{
	struct bench b = { 0 };
	struct err err = { 0 };
	const char *only = NULL;
	int at = 2, r;

	if (argc < 3) {
		(void)fprintf(stderr, "usage: compat LAUNCHER [-v] [-k TEXT] FILE...\n");
		return 2;
	}
	for (; at < argc && argv[at][0] == '-'; at++) {
		if (strcmp(argv[at], "-k") == 0 && at + 1 < argc)
			only = argv[++at];
		else
			b.verbose = true;
	}
	r = prepare(&b, argv[1], &err);
	for (; at < argc && r == 0; at++)
		r = run_file(&b, argv[at], only, &err);
	if (r < 0)
		(void)printf("FAILED: %s\n", err.text);
	(void)launcher_stop(b.launcher);
	(void)printf("%u passed, %u failed\n", b.passed, b.failed + (r < 0));
	return r < 0 || b.failed > 0;
}
