/* What makes a claimed box outlive us: a socket of its own to be found at, and a record. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/map.h"
#include "launch/launch.h"
#include "launch/process.h"
#include "spec/guest.h"

static void record_disk(struct record *rec, const struct disk_use *u)
{
	rec->n_template = (uint8_t)u->n_template;
	rec->layers.count = u->n_layers;
	for (uint32_t i = 0; i < u->n_layers; i++)
		rec->layers.ids[i] = u->layers[i];
	rec->n_volumes = u->n_volumes;
	for (uint32_t i = 0; i < u->n_volumes; i++)
		rec->volumes[i] = (struct launch_volume){ u->volumes[i].id, u->volumes[i].path,
							  u->volumes[i].read_only };
}

static int write_record(const struct launch *l, const struct box *b, bool first, struct err *err)
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
			      .limits = b->plan.limits };

	cgroup_mark(b->cell.cgroup, &rec.group);
	rec.held = b->held && !b->frozen; /* one that is paused stays as it is */
	if (b->disk)
		record_disk(&rec, b->disk);
	return state_write(&l->state, &rec, first, err);
}

int persist_update(const struct launch *l, const struct box *b, struct err *err)
{
	return state_is_open(&l->state) ? write_record(l, b, false, err) : 0;
}

static int send_listener(const struct box *b, struct err *err)
{
	char frame[64];
	long n = guest_put_raw(frame, sizeof(frame), G_PERSIST, 0, NULL, 0);
	ssize_t r = n < 0 ? n : fd_send(b->sock, frame, (size_t)n, &b->listener, 1);

	return r < 0 ? err_sys(err, (int)r, "socket of a box") : 0;
}

/* To make two files takes longer than the rest of a claim together. */
int persist_prepare(struct launch *l, struct box *b, struct err *err)
{
	int r;

	if (!state_is_open(&l->state))
		return 0;
	r = process_start(l->proc_fd, b->pid, &b->start_ticks);
	if (r < 0)
		return err_sys(err, r, "start of the box's process");
	b->listener = state_listen(&l->state, b->id, err);
	return b->listener < 0 ? b->listener : state_reserve(&l->state, b->id, err);
}

/* The record is there before the box can outlive us: whatever we are killed between, the box ends
 * by itself or is found. */
int persist_box(struct launch *l, struct box *b, struct err *err)
{
	int r;

	if (!state_is_open(&l->state))
		return 0;
	r = write_record(l, b, true, err);
	if (r == 0)
		r = send_listener(b, err);
	b->listener = fd_close(b->listener); /* the box's alone: nobody listens when it has ended */
	return r;
}

void persist_forget(const struct launch *l, const struct box *b)
{
	if (state_is_open(&l->state) && b->start_ticks)
		state_remove(&l->state, b->id);
}

int persist_connect(const struct launch *l, const struct box *b, struct err *err)
{
	if (!state_is_open(&l->state))
		return err_set(err, ENOTSUP,
			       "boxes of a launcher without a state directory have one client");
	return state_connect(&l->state, b->id, err);
}

static struct box *next_claimed(const struct launch *l)
{
	MAP_FOREACH (l->by_id, it) {
		struct box *b = it.value;

		if (b->state == BOX_CLAIMED)
			return b;
	}
	return NULL;
}

void persist_leave(struct launch *l)
{
	struct box *b;

	while (state_is_open(&l->state) && (b = next_claimed(l))) {
		(void)map_remove(l->by_id, b->id, ID_LEN);
		if (b->pidfd < 0)
			(void)map_remove(l->by_pid, (const char *)&b->pid, sizeof(b->pid));
		(void)fd_close(b->pidfd);
		(void)fd_close(b->cell.seed_sock); /* its seed ends by that */
		(void)fd_close(b->cell.user_ns);
		(void)fd_close(b->cell.layer_ns);
		cgroup_forget(b->cell.cgroup);
		b->disk = disk_use_free(l, b->disk);
		free(b);
	}
}
