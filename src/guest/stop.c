#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "base/clock.h"
#include "guest/exec.h"

/* A killed tree is gone in a millisecond or two; one that is not after LOOKS_MAX looks never will.
 */
#define LOOK_STEP_MS 2
#define LOOK_MAX_MS 50
#define LOOKS_MAX 200

/* Nothing but this tree lives in the box: one call ends it, and no fork can slip through. */
static bool is_alone(const struct guest *g)
{
	return g->tree.is_everything && g->n_execs == 1 && g->n_relays == 0 && !g->has_leftovers &&
	       g->warm.python_fd < 0 && g->warm.parked_fd < 0 && g->warm.node.pid == 0;
}

static void kill_tree(struct exec *x)
{
	struct guest *g = x->guest;

	if (is_alone(g)) {
		(void)kill(-1, SIGKILL);
		return;
	}
	/* What is missed now is found by the next look. An interpreter that has run a template's
	 * own code need not carry the mark that it was told to take; our child it is. */
	(void)tree_kill(&g->tree, x->mark);
	if (x->pid > 0)
		(void)kill(x->pid, SIGKILL);
}

static void set_deadline(struct exec *x, uint64_t ms)
{
	deadline_set(&x->guest->deadlines, &x->deadline, clock_now_ms() + ms);
}

static void enter_kill(struct exec *x)
{
	x->phase = EXEC_KILL;
	kill_tree(x);
	set_deadline(x, LOOK_STEP_MS);
}

/* The first cause counts; what has ended by itself has none. */
static void end(struct exec *x, uint32_t cause)
{
	if (x->phase != EXEC_RUNS || (x->is_reaped && !x->is_waiting))
		return;
	exec_wait_no_more(x);
	x->exit.flags |= cause;
	if (x->grace_ms == 0) {
		enter_kill(x);
		return;
	}
	x->phase = EXEC_TERM;
	(void)tree_signal(&x->guest->tree, x->mark, SIGTERM);
	set_deadline(x, x->grace_ms);
}

/* exec_settle() finds out whether the tree is gone when a child dies; this is for members whose
 * parents live elsewhere in the tree, and for those that came late. */
static void look_again(struct exec *x)
{
	uint64_t wait_ms = (uint64_t)LOOK_STEP_MS * ++x->looks;

	if (x->is_tree_gone)
		return; /* only output is still on its way */
	if (x->looks > LOOKS_MAX) {
		guest_fail(x->guest, EBUSY, "processes of an execution do not die");
		return;
	}
	if (tree_count(&x->guest->tree, x->mark) != 0)
		kill_tree(x);
	set_deadline(x, wait_ms < LOOK_MAX_MS ? wait_ms : LOOK_MAX_MS);
	exec_settle(x->guest);
}

void exec_expired(struct deadline *d)
{
	struct exec *x = LIST_ENTRY(d, struct exec, deadline);

	if (x->phase == EXEC_RUNS)
		end(x, EXIT_TIMED_OUT);
	else if (x->phase == EXEC_TERM && !x->is_tree_gone)
		enter_kill(x);
	else if (x->phase == EXEC_KILL)
		look_again(x);
}

void exec_cancel(struct exec *x)
{
	if (x->is_reaped && !x->is_waiting && x->phase == EXEC_RUNS) {
		/* Over already, but for output that nobody takes. */
		x->exit.flags |= EXIT_CANCELLED;
		exec_settle(x->guest);
		return;
	}
	end(x, EXIT_CANCELLED);
}

void exec_abandon(struct exec *x)
{
	x->is_orphan = true;
	x->grace_ms = 0;
	out_give_up(&x->out);
	out_abandon(&x->out);
	if (x->phase == EXEC_TERM && !x->is_tree_gone)
		enter_kill(x);
	else
		end(x, EXIT_CANCELLED);
}

int exec_signal(struct exec *x, uint32_t signo, bool is_tree)
{
	if (signo < 1 || signo > 64)
		return -EPROTO;
	if (is_tree && signo == SIGKILL)
		kill_tree(x);
	else if (is_tree)
		(void)tree_signal(&x->guest->tree, x->mark, (int)signo);
	else if (!x->is_reaped)
		(void)kill(x->pid, (int)signo);
	return 0;
}
