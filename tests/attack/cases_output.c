/* R7 and R8: output that is too much, and readers that do not read. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attack.h"
#include "base/clock.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define MIB (1ull << 20)
#define LIMIT (256u << 10)
#define FAST                      \
	{                         \
		.cpu_milli = 2000 \
	}

static struct guest_exec command(const char *a1, const char *a2, const char *a3, const char *a4)
{
	return (struct guest_exec){ .argc = a4   ? 5
					    : a3 ? 4
					    : a2 ? 3
						 : 2,
				    .timeout_ms = 120000,
				    .grace_ms = 100,
				    .output_limit = LIMIT,
				    .user = "",
				    .cwd = "",
				    .code = "",
				    .argv = { ATTACK_PROBE, a1, a2, a3, a4 } };
}

/* Floods, and expects what was kept to be the limit, what was written to be counted. */
static void flood(struct world *w, const struct attack *a, struct guest_exec e, uint64_t bytes)
{
	uint64_t rss = machine_rss(getpid()), init_rss;
	struct op op;

	box_open(w, &w->box, TEMPLATE_PLAIN, &a->limits);
	box_upload(w, &w->box);
	box_start_argv(&w->box, &e, &op);
	assert_true(box_wait(&w->box, &op, 130000));
	init_rss = machine_rss(w->box.l.pid);
	assert_int_equal(op.code, 0);
	if (op.exit.code != 0)
		fail_msg("the writer ended with %u: %s", op.exit.code, buf_str(&op.err));
	assert_true(op.exit.flags & EXIT_TRUNCATED);
	assert_true(op.bytes <= LIMIT);
	assert_true(op.exit.output_bytes >= bytes);
	assert_true(init_rss < 16 * MIB);
	assert_true(machine_rss(getpid()) < rss + 64 * MIB);
	op_done(&op);
	box_expect_answer(&w->box);
	box_close(w, &w->box, NULL);
}

static void flood_stdout(struct world *w, const struct attack *a)
{
	flood(w, a, command("flood", "1", "256", "lines"), 256 * MIB);
}

static void flood_stderr(struct world *w, const struct attack *a)
{
	flood(w, a, command("flood", "2", "256", "lines"), 256 * MIB);
}

static void flood_both(struct world *w, const struct attack *a)
{
	flood(w, a, command("flood", "3", "256", "lines"), 256 * MIB);
}

static void flood_terminal(struct world *w, const struct attack *a)
{
	struct guest_exec e = command("flood", "1", "16", "lines");

	e.flags = EXEC_PTY;
	flood(w, a, e, 16 * MIB);
}

static void one_long_line(struct world *w, const struct attack *a)
{
	flood(w, a, command("flood", "1", "2048", "line"), 2048 * MIB);
}

static void many_small_writes(struct world *w, const struct attack *a)
{
	struct op op;
	struct guest_exec e = command("drip", "100000", NULL, NULL);

	e.output_limit = 1u << 20;
	box_open(w, &w->box, TEMPLATE_PLAIN, &a->limits);
	box_upload(w, &w->box);
	box_start_argv(&w->box, &e, &op);
	assert_true(box_wait(&w->box, &op, 60000));
	assert_int_equal(op.exit.code, 0);
	assert_int_equal(op.bytes, 200000);
	op_done(&op);
	box_close(w, &w->box, NULL);
}

/* A reader that never reads: the writer stops at the window, the box goes on with other work. */
static void nobody_reads(struct world *w, const struct attack *a)
{
	struct guest_exec e = command("flood", "1", "64", "lines");
	uint64_t until = clock_now_ms() + 1500;
	struct op op;

	e.output_limit = 0;
	box_open(w, &w->box, TEMPLATE_PLAIN, &a->limits);
	box_upload(w, &w->box);
	box_start_argv(&w->box, &e, &op);
	guest_hold(w->box.guest, op.id, true);
	while (clock_now_ms() < until)
		assert_false(box_wait(&w->box, &op, 100));
	assert_true(op.bytes > 0 && op.bytes <= GUEST_WINDOW);
	box_expect_answer(&w->box);
	box_expect_held(w, &w->box, "ids", 0);
	assert_true(machine_rss(w->box.l.pid) < 16 * MIB);
	assert_int_equal(guest_cancel(w->box.guest, op.id), 0);
	guest_hold(w->box.guest, op.id, false);
	assert_true(box_wait(&w->box, &op, 5000));
	op_done(&op);
	box_close(w, &w->box, NULL);
}

/* A client that stops to listen altogether, until the socket is full; then it is destroyed. */
static void nobody_listens(struct world *w, const struct attack *a)
{
	struct guest_exec e = command("flood", "3", "64", "lines");
	struct op ops[16];

	e.output_limit = 0;
	box_open(w, &w->box, TEMPLATE_PLAIN, &a->limits);
	box_upload(w, &w->box);
	for (size_t i = 0; i < COUNT(ops); i++)
		box_start_argv(&w->box, &e, &ops[i]);
	(void)usleep(1500000); /* nothing is read from the box meanwhile */
	assert_true(machine_rss(w->box.l.pid) < 32 * MIB);
	for (size_t i = 0; i < COUNT(ops); i++) {
		guest_forget(w->box.guest, ops[i].id);
		op_done(&ops[i]);
	}
	box_close(w, &w->box, NULL);
}

/* Standard input that is never read. */
static void nobody_takes_input(struct world *w, const struct attack *a)
{
	struct guest_exec e = command("just-then", "1500", NULL, NULL);
	static char block[GUEST_CHUNK];
	uint64_t sent = 0;
	struct op op;

	e.flags = EXEC_STDIN;
	box_open(w, &w->box, TEMPLATE_PLAIN, &a->limits);
	box_upload(w, &w->box);
	box_start_argv(&w->box, &e, &op);
	while (!op.ended && !box_wait(&w->box, &op, 50)) {
		ssize_t n = guest_stdin(w->box.guest, op.id, block, sizeof(block));

		sent += n > 0 ? (uint64_t)n : 0;
	}
	assert_true(sent <= GUEST_WINDOW + (128u << 10)); /* the window and the pipe */
	op_expect_held("just-then", &op, 0);
	op_done(&op);
	box_close(w, &w->box, NULL);
}

/* Output that looks like frames, events and escapes arrives as the bytes it is. */
static void forged_output_is_output(struct world *w, const struct attack *a)
{
	struct guest_exec e = command("forge", NULL, NULL, NULL);
	struct op op;

	e.output_limit = 1u << 20;
	box_open(w, &w->box, TEMPLATE_PLAIN, &a->limits);
	box_upload(w, &w->box);
	box_start_argv(&w->box, &e, &op);
	assert_true(box_wait(&w->box, &op, 10000));
	assert_int_equal(op.exit.code, 7); /* the real end, not the forged one */
	assert_int_equal(op.out.len, op.err.len);
	assert_int_equal(op.out.len % 100, 0);
	assert_non_null(memmem(op.out.data, op.out.len, "\x1b]0;owned\x07", 10));
	op_done(&op);
	box_expect_answer(&w->box);
	box_close(w, &w->box, NULL);
}

static const struct attack rows[] = {
	{ "R7 a flood on standard output is cut and flagged", NULL, 0, 0, FAST, flood_stdout },
	{ "R7 a flood on standard error is cut and flagged", NULL, 0, 0, FAST, flood_stderr },
	{ "R7 a flood on both is cut and flagged", NULL, 0, 0, FAST, flood_both },
	{ "R7 a flood on a terminal is cut and flagged", NULL, 0, 0, FAST, flood_terminal },
	{ "R7 a hundred thousand small writes arrive", NULL, 0, 0, FAST, many_small_writes },
	{ "R7 a reader that never reads stops the writer and nothing else", NULL, 0, 0, FAST,
	  nobody_reads },
	{ "R7 a client that never listens costs bounded memory", NULL, 0, 0, FAST, nobody_listens },
	{ "R7 input that is never read stops at the window",
	  NULL,
	  0,
	  0,
	  { 0 },
	  nobody_takes_input },
	{ "R8 one line of 2 GiB is cut and flagged", NULL, 0, 0, FAST, one_long_line },
	{ "C1 output that looks like frames is output",
	  NULL,
	  0,
	  0,
	  { 0 },
	  forged_output_is_output },
};

const struct attack_table attacks_output = { rows, COUNT(rows) };
