#include "launch/backlog.h"

#include <string.h>

#include "base/log.h"
#include "base/map.h"
#include "launch/backlog_count.h"
#include "launch/launch.h"
#include "launch/process.h"

/* Those on the machine's network have its connections. */
static bool has_own(const struct box *b)
{
	return (b->state == BOX_READY || b->state == BOX_CLAIMED) && b->pid > 0 &&
	       b->plan.net == NET_NONE;
}

void backlog_ask(const struct launch *l, struct backlog_table *t)
{
	t->count = 0;
	MAP_FOREACH (l->by_id, it) {
		const struct box *b = it.value;
		struct backlog_row *row = &t->rows[t->count];

		if (t->count == BACKLOG_BOXES_MAX)
			break;
		if (!has_own(b))
			continue;
		*row = (struct backlog_row){
			.pid = b->pid, .most = backlog_allowance(b->plan.limits.memory_bytes)
		};
		memcpy(row->id, b->id, sizeof(row->id));
		t->count++;
	}
}

/* The number of an adopted box's process is another's as soon as that has ended: whoever still
 * lives had it when we looked. That of a child of ours is its own until we have reaped it. */
static bool is_same(const struct box *b, const struct backlog_row *row)
{
	return b && has_own(b) && b->pid == row->pid &&
	       (b->pidfd < 0 || process_wait(b->pidfd, 0) != 0);
}

void backlog_judge(struct launch *l, const struct backlog_table *t)
{
	for (size_t i = 0; i < t->count; i++) {
		const struct backlog_row *row = &t->rows[i];
		struct box *b = row->bytes > row->most ? boxes_find(l, row->id) : NULL;

		if (!is_same(b, row))
			continue;
		log_warn("launch",
			 "box %s held more than %llu bytes in connections that no program had "
			 "accepted: it was ended",
			 b->id, (unsigned long long)row->most);
		boxes_abort(b);
	}
}
