/* Finished boxes that wait for a claim. A used box never comes back here. */
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "launch/launch.h"
#include "launch/sysdirs.h"
#include "launch/zygote.h"

/* No more at a time: claims must not wait behind the pool's own work. */
#define BUILDING_MAX POOLSIZE_BUILDERS
#define FAILURES_MAX 5 /* without a claim that worked, then only claims try */

/* What was fixed when the box was built; the rest can be changed, see fit(). */
static bool serves(const struct box *b, const struct limits *want)
{
	return b->plan.limits.nofile == want->nofile;
}

/* Makes what a waiting box may use larger or smaller. Nothing of it is in use yet. */
static int fit(struct launch *l, struct box *b, const struct limits *want, struct err *err)
{
	const struct limits *have = &b->plan.limits;
	bool is_other = have->disk_bytes != want->disk_bytes || have->inodes != want->inodes;
	uint64_t began = clock_now_ns();
	int r;

	if (memcmp(have, want, sizeof(*want)) == 0)
		return 0;
	r = cgroup_ops_of(b->cell.cgroup)->limit(b->cell.cgroup, want, err);
	if (r == 0 && have->disk_bytes != want->disk_bytes)
		r = room_resize(l, b, want->disk_bytes, err);
	/* In front of a room it depends on the memory, too. */
	if (r == 0 && (is_other || b->has_room))
		r = box_resize_disk(l->proc_fd, b->pid, want, b->has_room, err);
	if (r < 0)
		return r;
	b->plan.limits = *want;
	b->step_ns[STEP_LIMITS] = clock_now_ns() - began;
	return 0;
}

struct box *pool_take(struct launch *l, struct template *t, const struct limits *limits)
{
	struct box *found = NULL;
	struct err err = { 0 };

	poolsize_claimed(&t->size, clock_now_ms());
	LIST_FOREACH (&t->ready, b, struct box, pool_link) {
		if (!found && !locks_are_lost(l) && serves(b, limits))
			found = b;
	}
	if (!found) {
		t->missed[t->ready_count > 0 ? MISS_LIMITS : MISS_EMPTY]++;
		return NULL;
	}
	pool_remove(found);
	found->state = BOX_CLAIMED;
	if (fit(l, found, limits, &err) < 0) {
		log_warn("launch", "a waiting box is not used: %s", err.text);
		t->claimed_count++; /* boxes_destroy() takes it off again */
		boxes_destroy(l, found);
		t->missed[MISS_FAILED]++;
		return NULL;
	}
	t->hits++;
	return found;
}

void pool_add(struct box *b)
{
	b->state = BOX_READY;
	b->flags |= BOX_WARM;
	/* The newest is taken first: what it touched last is still in the processor's caches. */
	list_push_front(&b->tmpl->ready, &b->pool_link);
	b->tmpl->ready_count++;
}

void pool_remove(struct box *b)
{
	list_remove(&b->pool_link);
	b->tmpl->ready_count--;
}

/* Boxes that wait are a convenience: none is made when the machine is short of memory. */
static bool is_short_of_memory(const struct launch *l)
{
	struct machine_use use;

	return machine_gauge_read(&l->gauge, &use) && use.memory_left < l->reserve_bytes;
}

static bool refill_template(struct launch *l, struct template *t, bool quiet)
{
	uint32_t target = poolsize_target(&t->size, clock_now_ms());

	if (!quiet && t->ready_count * 2 > target)
		return false; /* whoever was just served needs the processors now */

	if (t->ready_count > target) {
		boxes_destroy(l, LIST_ENTRY(t->ready.prev, struct box, pool_link));
		return true;
	}
	if (t->ready_count + t->building_count >= target || t->building_count >= BUILDING_MAX ||
	    t->failures >= FAILURES_MAX || builds_check(l, NULL) < 0 || zygote_is_coming(l, t) ||
	    sysdirs_are_coming(l, t) || is_short_of_memory(l))
		return false;
	if (boxes_create(l, t, &t->spec.limits, NULL, NULL) < 0)
		t->failures++;
	return true;
}

bool pool_refill(struct launch *l, bool quiet)
{
	for (unsigned i = 1; i <= TEMPLATE_MAX; i++)
		if (l->templates[i].mount_ns >= 0 && l->templates[i].size.max > 0 &&
		    refill_template(l, &l->templates[i], quiet))
			return true;
	return false;
}

bool pool_is_active(const struct launch *l)
{
	for (unsigned i = 1; i <= TEMPLATE_MAX; i++)
		if (l->templates[i].mount_ns >= 0 && l->templates[i].size.max > 0)
			return true;
	return false;
}
