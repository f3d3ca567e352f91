/* What makes a claimed box outlive us: a socket of its own to be found at, and a record. */
#include <errno.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "launch/launch.h"
#include "spec/guest.h"

int persist_update(const struct launch *l, const struct box *b, struct err *err)
{
	struct record rec = { .id = b->id,
			      .tag = b->tag,
			      .boot_id = l->state.boot_id,
			      .pid = (uint32_t)b->pid,
			      .start_ticks = b->start_ticks,
			      .uid_base = b->cell.uid_base,
			      .root = b->plan.root,
			      .level = b->plan.level,
			      .net = b->plan.net,
			      .template_flags = b->plan.flags,
			      .box_flags = b->flags,
			      .limits = b->plan.limits,
			      .claimed_ms = b->claimed_ms };

	if (!state_is_open(&l->state))
		return 0;
	cgroup_mark(b->cell.cgroup, &rec.group);
	return state_write(&l->state, &rec, err);
}

static int send_listener(const struct box *b, int listener, struct err *err)
{
	char frame[64];
	long n = guest_put_raw(frame, sizeof(frame), G_PERSIST, 0, NULL, 0);
	ssize_t r = n < 0 ? n : fd_send(b->sock, frame, (size_t)n, &listener, 1);

	return r < 0 ? err_sys(err, (int)r, "socket of a box") : 0;
}

/* The record is there before the box can outlive us: whatever we are killed between, the box ends
 * by itself or is found. */
int persist_box(struct launch *l, struct box *b, struct err *err)
{
	_close_ int listener = -1;
	int r;

	if (!state_is_open(&l->state))
		return 0;
	if (b->start_ticks == 0)
		return err_set(err, ESRCH, "the box's process could not be looked at");
	listener = state_listen(&l->state, b->id, err);
	if (listener < 0)
		return listener;
	r = persist_update(l, b, err);
	return r < 0 ? r : send_listener(b, listener, err);
}

void persist_forget(const struct launch *l, const struct box *b)
{
	if (state_is_open(&l->state) && b->claimed_ms)
		state_remove(&l->state, b->id);
}

int persist_connect(const struct launch *l, const struct box *b, struct err *err)
{
	if (!state_is_open(&l->state))
		return err_set(err, ENOTSUP,
			       "boxes of a launcher without a state directory have one client");
	return state_connect(&l->state, b->id, err);
}
