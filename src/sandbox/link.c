/* The connection to a sandbox's box: the guest client on the loop. */
#include <errno.h>

#include "base/fd.h"
#include "provider/guest_client.h"
#include "sandbox/execution.h"
#include "sandbox/registry.h"

#define RELINKS_MAX 3u /* a box that keeps hanging up is given up */

void link_kick(struct sandbox *sb)
{
	unsigned want = LOOP_READ;

	if (!sb->io)
		return;
	if (guest_wants_write(sb->guest))
		want |= LOOP_WRITE;
	(void)loop_io_want(sb->io,
			   want); /* a descriptor that cannot be watched has failed before */
}

/* The box hung up, or lied. Which end that is, its death notice or the tick will say; until then
 * what runs in it counts as running. */
static void lose(struct sandbox *sb, int r)
{
	sb->is_foreign = r == -EPROTO && guest_is_foreign(sb->guest);
	link_close(sb);
	sb->lost_at_ms = now_ms(sb->all);
	if (r == -EPROTO)
		sb->relinks = RELINKS_MAX;
	recover_settle(sb);
	tick_need(sb->all);
}

static void on_io(void *user, unsigned events)
{
	struct sandbox *sb = sandbox_ref(user);
	int r = guest_dispatch(sb->guest);

	if (events & LOOP_READ)
		sb->heard_ms = now_ms(sb->all);
	if (r < 0)
		lose(sb, r);
	else if (sb->has_cut)
		executions_fail_cut(sb);
	sb->has_cut = false;
	if (sb->waits_for_flush && sb->guest && !guest_wants_write(sb->guest)) {
		sb->waits_for_flush = false;
		executions_feed(sb);
	}
	link_kick(sb);
	sandbox_unref(sb);
}

static void on_said_all(struct sandbox *sb)
{
	sb->is_guest_ready = true;
	executions_settle(sb);
	executions_feed(sb);
	recover_link_ready(sb);
}

static void on_ready(void *user, const struct guest_ready *r)
{
	struct sandbox *sb = user;

	if (sb->is_guest_ready)
		return;
	sb->live_left = r->live;
	if (r->live == 0)
		on_said_all(sb);
}

static bool on_live(void *user, const struct guest_live *live, struct guest_callbacks *ret_cb,
		    void **ret_user)
{
	struct sandbox *sb = user;
	bool is_known = execution_found(sb, live, ret_cb, ret_user);

	if (sb->live_left > 0 && --sb->live_left == 0)
		on_said_all(sb);
	return is_known;
}

static const struct guest_hooks hooks = { .ready = on_ready, .live = on_live };

int link_open(struct sandbox *sb, int fd, bool is_new, struct err *err)
{
	int r = guest_create(fd, &sb->guest, err);

	if (r < 0)
		return r;
	guest_set_hooks(sb->guest, &hooks, sb);
	r = loop_io_create(sb->all->loop, guest_fd(sb->guest), on_io, sb, &sb->io);
	if (r == 0)
		r = loop_io_want(sb->io, LOOP_READ);
	if (r < 0) {
		link_close(sb);
		return err_sys(err, r, "watch the box's socket");
	}
	sb->is_guest_ready = is_new;
	sb->live_left = 0;
	sb->lost_at_ms = 0;
	return 0;
}

void link_close(struct sandbox *sb)
{
	sb->io = loop_io_free(sb->io);
	sb->guest = guest_free(sb->guest);
	sb->is_guest_ready = false;
	executions_unbind(sb);
	files_fail(sb, "the sandbox's box is gone");
	ports_end(sb, 0);
}

bool link_retry(struct sandbox *sb)
{
	if (sb->lost_at_ms == 0 || sb->state == SANDBOX_STOPPING || !state_is_live(sb->state))
		return false;
	if (sb->state == SANDBOX_CREATING || !sb->all->has_provider || sb->needs_link ||
	    now_ms(sb->all) - sb->lost_at_ms < TICK_MS)
		return true;
	if (sb->relinks < RELINKS_MAX) {
		sb->relinks++;
		recover_attach(sb);
		return sb->lost_at_ms != 0;
	}
	sandbox_set_reason(sb, sb->is_foreign ? "its box is of another version of the service"
					      : "its box does not answer");
	stop_kill(sb);
	return false;
}
