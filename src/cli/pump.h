/* Runs one execution and moves its bytes: ours in, its out, signals across. Back-pressure goes both
 * ways: what our reader does not take stays in the box, what the box does not take stays with our
 * writer. */
#pragma once

#include "cli/outcome.h"
#include "provider/guest_client.h"

struct pump {
	bool collect;        /* keep the output in out and err instead of writing it */
	struct buf out, err; /* owned: pump_done() */
	struct outcome outcome;
};

/* Blocks the signals that pump_run() handles. Call it before the box is made, so that a Ctrl-C at
 * any moment leads to a box that is destroyed. */
void pump_block_signals(void);
/* Runs to the end. 0 when there is an outcome (also a bad one), -errno when we ourselves failed. */
int pump_run(struct pump *p, struct guest_client *g, const struct guest_exec *e, struct err *err);
void pump_done(struct pump *p);
