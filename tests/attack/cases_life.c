/* R9 to R12: processor time, and processes that do not want to end. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "attack.h"
#include "base/clock.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* Eight threads on half a core: they get half a core, and the control channel answers meanwhile. */
static void quota_holds(struct world *w, const struct attack *a)
{
	struct box_usage before, after;
	uint64_t began, cpu_us, wall_us;
	struct op op;

	box_open(w, &w->box, TEMPLATE_PLAIN, &a->limits);
	box_upload(w, &w->box);
	box_start(w, &w->box, "burn 8 4000", NULL, &op);
	assert_false(box_wait(&w->box, &op, 500));
	assert_int_equal(launcher_usage_sync(w->launcher, w->box.l.id, &before, NULL), 0);
	began = clock_now_ns();
	for (int i = 0; i < 20; i++) {
		assert_false(box_wait(&w->box, &op, 100));
		box_expect_answer(&w->box);
	}
	assert_int_equal(launcher_usage_sync(w->launcher, w->box.l.id, &after, NULL), 0);
	wall_us = (clock_now_ns() - began) / 1000;
	cpu_us = after.cpu_us - before.cpu_us;
	if (cpu_us * 10 > wall_us * 7)
		fail_msg("used %llu us of processor in %llu us, quota is half",
			 (unsigned long long)cpu_us, (unsigned long long)wall_us);
	guest_forget(w->box.guest, op.id);
	op_done(&op);
	box_close(w, &w->box, NULL);
}

/* PID 1 with the lowest priority there is, among as many busy threads as fit. */
static void low_priority_still_answers(struct world *w, const struct attack *a)
{
	struct op op;

	box_open(w, &w->box, TEMPLATE_PLAIN, &a->limits);
	box_upload(w, &w->box);
	box_start(w, &w->box, "burn-low 56 6000", NULL, &op);
	assert_false(box_wait(&w->box, &op, 1000));
	for (int i = 0; i < 8; i++) {
		assert_false(box_wait(&w->box, &op, 100));
		box_expect_answer(&w->box);
	}
	guest_forget(w->box.guest, op.id);
	op_done(&op);
	box_close(w, &w->box, NULL);
}

/* A child that lives on is said to be left, and goes with the box. */
static void leftovers_are_flagged(struct world *w, const struct attack *a)
{
	struct op op;

	(void)a;
	box_open(w, &w->box, TEMPLATE_PLAIN, NULL);
	box_upload(w, &w->box);
	box_start(w, &w->box, "daemon leave", NULL, &op);
	assert_true(box_wait(&w->box, &op, 10000));
	op_expect_held("daemon", &op, 0);
	assert_true(op.exit.flags & EXIT_LEFTOVERS);
	op_done(&op);
	box_close(w, &w->box, NULL);
}

/* The request ends although a child of its keeps the pipe open. */
static void held_pipe_does_not_hold_the_request(struct world *w, const struct attack *a)
{
	struct op op;

	(void)a;
	box_open(w, &w->box, TEMPLATE_PLAIN, NULL);
	box_upload(w, &w->box);
	box_start(w, &w->box, "hold-pipe 60000", NULL, &op);
	if (!box_wait(&w->box, &op, 10000))
		fail_msg("the execution waits for a child that only holds its output");
	op_expect_held("hold-pipe", &op, 0);
	op_done(&op);
	box_close(w, &w->box, NULL);
}

/* Cancelled, not timed out: the same end. */
static void cancel_ends_everything(struct world *w, const struct attack *a)
{
	struct op op;

	(void)a;
	box_open(w, &w->box, TEMPLATE_PLAIN, NULL);
	box_upload(w, &w->box);
	box_start(w, &w->box, "subreaper", NULL, &op);
	assert_false(box_wait(&w->box, &op, 500));
	assert_int_equal(guest_cancel(w->box.guest, op.id), 0);
	assert_true(box_wait(&w->box, &op, 5000));
	assert_true(op.exit.flags & EXIT_CANCELLED);
	op_done(&op);
	box_expect_held(w, &w->box, "none-named survivor", 0);
	box_close(w, &w->box, NULL);
}

/* The deadline and the end at the same moment: one result, whichever it is. */
static void deadline_meets_end(struct world *w, const struct attack *a)
{
	(void)a;
	box_open(w, &w->box, TEMPLATE_PLAIN, NULL);
	box_upload(w, &w->box);
	for (unsigned ms = 90; ms < 115; ms++) {
		struct attack row = { .timeout_ms = ms };
		struct op op;

		box_start(w, &w->box, "just-then 100", &row, &op);
		assert_true(box_wait(&w->box, &op, 5000));
		assert_int_equal(op.code, 0);
		if (!(op.exit.flags & EXIT_TIMED_OUT))
			op_expect_held("just-then", &op, 0);
		op_done(&op);
	}
	box_expect_answer(&w->box);
	box_close(w, &w->box, NULL);
}

/* Only the one that ran out of time is ended; what runs beside it is not. */
static void others_in_the_box_live_on(struct world *w, const struct attack *a)
{
	struct op quiet, loud;

	(void)a;
	box_open(w, &w->box, TEMPLATE_PLAIN, NULL);
	box_upload(w, &w->box);
	box_start(w, &w->box, "sit beside", NULL, &quiet);
	box_wait_ready(&w->box, &quiet);
	box_start(w, &w->box, "refork 15000", &(struct attack){ .timeout_ms = 1000 }, &loud);
	assert_true(box_wait(&w->box, &loud, 15000));
	assert_true(loud.exit.flags & EXIT_TIMED_OUT);
	assert_false(quiet.ended);
	op_done(&loud);
	box_expect_held(w, &w->box, "none-named survivor", 0);
	assert_int_equal(guest_signal(w->box.guest, quiet.id, SIGKILL, true), 0);
	assert_true(box_wait(&w->box, &quiet, 5000));
	op_done(&quiet);
	box_close(w, &w->box, NULL);
}

/* A frozen box stands still, answers to nothing, thaws, and can be destroyed frozen. */
static void frozen_boxes_can_be_destroyed(struct world *w, const struct attack *a)
{
	struct op op;

	(void)a;
	box_open(w, &w->box, TEMPLATE_PLAIN, NULL);
	box_upload(w, &w->box);
	box_start(w, &w->box, "burn 4 60000", &(struct attack){ .timeout_ms = 90000 }, &op);
	assert_false(box_wait(&w->box, &op, 300));
	assert_int_equal(launcher_freeze_sync(w->launcher, w->box.l.id, true, NULL), 0);
	assert_int_equal(guest_ping_sync(w->box.guest, 300), -ETIMEDOUT);
	assert_int_equal(launcher_freeze_sync(w->launcher, w->box.l.id, false, NULL), 0);
	box_expect_answer(&w->box);
	assert_int_equal(launcher_freeze_sync(w->launcher, w->box.l.id, true, NULL), 0);
	guest_forget(w->box.guest, op.id);
	op_done(&op);
	box_close(w, &w->box, NULL);
}

#define ENDS WANT_TIMEOUT, 1000, { 0 }, NULL

static const struct attack rows[] = {
	{ "R9 threads that burn get their quota, and the box answers meanwhile",
	  NULL,
	  NEEDS_CPU,
	  0,
	  { 0 },
	  quota_holds },
	{ "R9 a box that puts PID 1 last in line still answers",
	  NULL,
	  NEEDS_CPU | NEEDS_PIDS,
	  0,
	  { 0 },
	  low_priority_still_answers },
	{ "R10 a sleeper ends at its deadline", "sleeper plain", ENDS },
	{ "R10 one that ignores and masks all signals ends at its deadline", "sleeper deaf", ENDS },
	{ "R10 one that is stopped ends at its deadline", "sleeper stopped", ENDS },
	{ "R10 one that spins with all signals masked ends at its deadline", "sleeper spin", ENDS },
	{ "R10 one that waits in vfork ends at its deadline", "vfork-stuck", ENDS },
	{ "R10 a process without its first thread ends at its deadline", "leaderless", ENDS },
	{ "R10 a terminal's process ends at its deadline",
	  "sleeper deaf",
	  WANT_TIMEOUT | ON_TERMINAL,
	  1000,
	  { 0 },
	  NULL },
	{ "R10 a deadline that meets the end gives one result",
	  NULL,
	  0,
	  0,
	  { 0 },
	  deadline_meets_end },
	{ "R11 a daemon that left everything ends with its execution's deadline", "daemon stay",
	  ENDS },
	{ "R11 a daemon that cannot be dumped ends with its execution's deadline",
	  "daemon stay hidden", ENDS },
	{ "R11 a daemon with limits of its own ends with its execution's deadline",
	  "daemon stay tamper", ENDS },
	{ "R11 a daemon is reported as left over and goes with its box",
	  NULL,
	  0,
	  0,
	  { 0 },
	  leftovers_are_flagged },
	{ "R11 adoptive parents do not save their children", "subreaper", ENDS },
	{ "R11 a cancelled execution leaves nothing", NULL, 0, 0, { 0 }, cancel_ends_everything },
	{ "R11 a background child that holds the output does not hold the request",
	  NULL,
	  0,
	  0,
	  { 0 },
	  held_pipe_does_not_hold_the_request },
	{ "R12 processes that fork faster than they are killed end",
	  "refork 15000",
	  WANT_TIMEOUT | NEEDS_PIDS,
	  1500,
	  { 0 },
	  NULL },
	{ "R12 ending one execution leaves another alone",
	  NULL,
	  NEEDS_PIDS,
	  0,
	  { 0 },
	  others_in_the_box_live_on },
	{ "R12 a frozen box is destroyed like any other",
	  NULL,
	  NEEDS_FREEZER,
	  0,
	  { 0 },
	  frozen_boxes_can_be_destroyed },
	{ "R13 a crash leaves no core file", "dump-core", 0, 0, { 0 }, NULL },
};

const struct attack_table attacks_life = { rows, COUNT(rows) };
