/* What a box says about a running execution, and what is said to it; but for its output. */
#include <errno.h>
#include <stdio.h>

#include "provider/guest_client.h"
#include "sandbox/execution.h"
#include "sandbox/tracing.h"

static void on_started(void *user, uint32_t pid, bool warm)
{
	struct execution *x = user;

	x->pid = pid;
	if (warm)
		x->flags |= EXECUTION_WARM;
	x->waits_for_start = false;
	tracing_execution_started(x);
	if (!x->waits_for_row)
		execution_tell_start(x, NULL);
}

static void on_exited(void *user, const struct guest_exit *e)
{
	execution_exited(user, e);
}

static void on_failed(void *user, int code, const char *text)
{
	struct execution *x = user;

	x->is_bound = false;
	(void)snprintf(x->reason, sizeof(x->reason), "%s", text);
	/* The connection's end looks like this, too: see executions_fail_cut(). */
	if ((code == EPIPE || code == EPROTO) && x->sb) {
		x->is_cut = x->sb->has_cut = true;
		return;
	}
	x->is_unkept = true;
	execution_finish(x, EXECUTION_FAILED);
}

/* ---- standard input ---- */

/* Sends what waits, as far as the box takes it. */
static void pump(struct execution *x)
{
	ssize_t n = 1;

	while (x->in.len > 0 && n > 0) {
		n = guest_stdin(x->sb->guest, x->guest_id, x->in.data, x->in.len);
		if (n > 0)
			buf_drop(&x->in, (size_t)n);
	}
	if (x->in.len == 0 && x->is_in_ending) {
		x->is_in_ending = false;
		(void)guest_stdin(x->sb->guest, x->guest_id, NULL, 0);
	}
	x->sb->waits_for_flush |= guest_wants_write(x->sb->guest);
	link_kick(x->sb);
}

static void tell_room(struct execution *x)
{
	if (x->room && x->in.len <= EXEC_STDIN_MAX / 2)
		x->room(x->room_user);
}

static void on_taken(void *user, uint64_t bytes)
{
	struct execution *x = user;

	(void)bytes;
	pump(x);
	tell_room(x);
}

void executions_feed(struct sandbox *sb)
{
	LIST_FOREACH (&sb->executions, x, struct execution, node) {
		if (!x->is_bound || x->state != EXECUTION_RUNNING)
			continue;
		pump(x);
		tell_room(x);
	}
}

const struct guest_callbacks execution_callbacks = {
	.started = on_started,
	.output = execution_on_output,
	.taken = on_taken,
	.exited = on_exited,
	.failed = on_failed,
};

/* 0 while something can be said to it. */
static int check_running(const struct execution *x)
{
	if (x->state != EXECUTION_RUNNING || x->is_exiting || !x->sb)
		return -ESRCH;
	if (x->sb->state != SANDBOX_RUNNING)
		return -EBUSY;
	return x->is_bound ? 0 : -EPIPE;
}

int exec_stdin(struct execution *x, const void *data, size_t n)
{
	int r = check_running(x);

	if (r < 0)
		return r == -ESRCH ? -EPIPE : r;
	if (!x->is_in_open)
		return -EPIPE;
	if (n > EXEC_STDIN_MAX)
		return -E2BIG;
	if (x->in.len + n > EXEC_STDIN_MAX)
		return -EAGAIN;
	if (buf_append(&x->in, data, n) < 0) {
		x->in.failed = false; /* nothing of it was taken: others may be */
		return -ENOMEM;
	}
	pump(x);
	return 0;
}

int exec_stdin_end(struct execution *x)
{
	int r = check_running(x);

	if (r < 0)
		return r == -ESRCH ? -EPIPE : r;
	if (!x->is_in_open)
		return -EPIPE;
	x->is_in_open = false;
	x->is_in_ending = true;
	pump(x);
	return 0;
}

bool exec_stdin_is_sent(const struct execution *x)
{
	return x->in.len == 0 && !x->is_in_ending && x->sb && x->sb->guest &&
	       !guest_wants_write(x->sb->guest);
}

void exec_on_room(struct execution *x, void (*room)(void *user), void *user)
{
	x->room = room;
	x->room_user = user;
}

int exec_signal(struct execution *x, int signo, bool tree)
{
	int r = check_running(x);

	if (r < 0)
		return r;
	r = guest_signal(x->sb->guest, x->guest_id, signo, tree);
	link_kick(x->sb);
	return r;
}

int exec_resize(struct execution *x, uint16_t rows, uint16_t cols)
{
	int r = check_running(x);

	if (r < 0)
		return r;
	if (x->kind != EXECUTION_PTY)
		return -ENOTTY;
	r = guest_resize(x->sb->guest, x->guest_id, rows, cols);
	link_kick(x->sb);
	return r;
}

int exec_cancel(struct execution *x)
{
	int r = check_running(x);

	if (r < 0)
		return r;
	r = guest_cancel(x->sb->guest, x->guest_id);
	link_kick(x->sb);
	return r;
}
