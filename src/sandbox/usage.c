#include "sandbox/usage.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/str.h"
#include "sandbox/ask.h"
#include "sandbox/execution.h"
#include "sandbox/registry.h"

#define DAY_MS 86400000
#define GAP_MAX_MS (400ll * DAY_MS) /* more than that is a clock that was wrong */

struct kept { /* by an owner */
	char owner[SANDBOX_OWNER_MAX + 1];
	uint64_t bytes;
	struct usage usage;
};

/* Whose usage it is, and what is held: for sandboxes and what is kept alike. */
struct account {
	struct sandboxes *all;
	struct usage *usage;
	const char *owner, *key_id, *sandbox_id;
	uint64_t memory_bytes, disk_bytes;
};

static struct account of_sandbox(struct sandbox *sb)
{
	return (struct account){ sb->all,
				 &sb->usage,
				 sb->owner,
				 sb->key_id,
				 sb->id,
				 sb->limits.memory_bytes,
				 sb->limits.disk_bytes };
}

static struct account of_kept(struct sandboxes *all, struct kept *k)
{
	return (struct account){ .all = all,
				 .usage = &k->usage,
				 .owner = k->owner,
				 .key_id = "",
				 .sandbox_id = STORE_KEPT,
				 .disk_bytes = k->bytes };
}

static int32_t day_of(int64_t wall)
{
	return (int32_t)(wall / DAY_MS);
}

static enum usage_held held_in(enum sandbox_state s)
{
	switch (s) {
	case SANDBOX_RUNNING:
	case SANDBOX_PAUSING:
		return HELD_ALL;
	case SANDBOX_PAUSED:
	case SANDBOX_RESUMING:
	case SANDBOX_SUSPENDING:
		return HELD_MEMORY;
	case SANDBOX_SUSPENDED:
	case SANDBOX_STARTING:
		return HELD_DISK;
	default:
		return HELD_NOTHING;
	}
}

/* ---- counting ---- */

/* A row's values are below 2^63. */
static void add(uint64_t *sum, uint64_t size, uint64_t times)
{
	uint64_t n;

	if (__builtin_mul_overflow(size, times, &n) || n > (uint64_t)INT64_MAX - *sum)
		*sum = INT64_MAX;
	else
		*sum += n;
}

static struct usage_row row_of(const struct account *a)
{
	const struct usage *u = a->usage;

	return (struct usage_row){ .day = u->day,
				   .owner = a->owner,
				   .key_id = a->key_id,
				   .sandbox_id = a->sandbox_id,
				   .cpu_us = u->cpu_us,
				   .memory_byte_ms = u->memory_byte_ms,
				   .disk_byte_ms = u->disk_byte_ms,
				   .net_bytes = u->net_bytes,
				   .executions = u->executions,
				   .wall_ms = u->wall_ms,
				   .until_ms = u->until_ms,
				   .box_cpu_us = u->box_cpu_us,
				   .exec_cpu_us = u->exec_cpu_us };
}

static void put(const struct account *a)
{
	struct usage_row row = row_of(a);

	/* A write that fails is made good by the next one. */
	(void)store_put_usage(a->all->store, &row, NULL, NULL);
	a->usage->written_ms = (int64_t)now_ms(a->all);
}

static void count(const struct account *a, uint64_t ms)
{
	struct usage *u = a->usage;

	if (u->held == HELD_ALL)
		add(&u->wall_ms, 1, ms);
	if (u->held >= HELD_MEMORY)
		add(&u->memory_byte_ms, a->memory_bytes, ms);
	if (u->held >= HELD_DISK)
		add(&u->disk_byte_ms, a->disk_bytes, ms);
}

/* A day is over: its row is written for the last time. */
static void turn_day(const struct account *a, int32_t day, int64_t until)
{
	struct usage *u = a->usage, was = *u;

	if (was.is_timed)
		u->until_ms = until;
	put(a);
	*u = (struct usage){ .day = day,
			     .box_cpu_us = was.box_cpu_us,
			     .exec_cpu_us = was.exec_cpu_us,
			     .held = was.held,
			     .is_timed = was.is_timed,
			     .since_ms = was.since_ms,
			     .until_ms = u->until_ms,
			     .written_ms = u->written_ms };
}

/* Counts until now, each day for itself. A clock that was set back counts for the later day: rows
 * that are written are not begun anew. */
static void advance(const struct account *a)
{
	struct usage *u = a->usage;
	int64_t now = (int64_t)now_ms(a->all), wall = wall_ms(a->all);
	int64_t from = u->is_timed && now > u->since_ms ? wall - (now - u->since_ms) : wall;

	if (u->is_waiting) /* what was before has to be counted first */
		return;
	if (u->day == 0)
		u->day = day_of(from);
	for (;;) {
		int64_t end = (u->day + 1) * (int64_t)DAY_MS;

		if (wall < end) {
			count(a, (uint64_t)(wall - from));
			break;
		}
		if (from < end) {
			count(a, (uint64_t)(end - from));
			from = end;
		}
		turn_day(a, day_of(from), end);
	}
	if (u->is_timed) {
		u->since_ms = now;
		u->until_ms = wall;
	}
}

/* From now on this is held. */
static void hold(const struct account *a, enum usage_held held)
{
	struct usage *u = a->usage;

	advance(a);
	u->held = held;
	u->is_timed = held != HELD_NOTHING;
	u->since_ms = (int64_t)now_ms(a->all);
	u->until_ms = wall_ms(a->all);
}

/* From until_ms on it was held as it is now, whoever was there to count. */
static void fill_gap(const struct account *a)
{
	struct usage *u = a->usage;
	int64_t gap = wall_ms(a->all) - u->until_ms;

	if (gap < 0 || u->until_ms == 0)
		gap = 0;
	if (gap > GAP_MAX_MS)
		gap = GAP_MAX_MS;
	u->is_timed = u->held != HELD_NOTHING;
	u->since_ms = (int64_t)now_ms(a->all) - gap;
	advance(a);
}

/* Both are less than what was really used, or that; the larger one is nearer. */
static void count_cpu(struct usage *u, uint64_t known_us)
{
	if (known_us <= u->box_cpu_us)
		return;
	add(&u->cpu_us, 1, known_us - u->box_cpu_us);
	u->box_cpu_us = known_us;
}

/* ---- sandboxes ---- */

void usage_settle(struct sandbox *sb)
{
	struct account a = of_sandbox(sb);
	enum usage_held held = held_in(sb->state);
	bool is_first = sb->usage.day == 0;

	if (!sb->all->is_loaded) {
		sb->usage.held = held;
		return;
	}
	if (held == sb->usage.held || sb->usage.is_waiting)
		return;
	hold(&a, held);
	if (!is_first) /* before its first row, the time of its making says as much */
		put(&a);
}

void usage_found(struct sandbox *sb)
{
	struct account a = of_sandbox(sb);

	if (!sb->usage.is_waiting)
		return;
	sb->usage.is_waiting = false;
	fill_gap(&a);
	usage_settle(sb);
}

void usage_lost(struct sandbox *sb)
{
	if (sb->usage.is_waiting)
		sb->usage.held = HELD_NOTHING;
	sb->usage.is_waiting = false;
}

void usage_new_box(struct sandbox *sb)
{
	sb->usage.box_cpu_us = sb->usage.exec_cpu_us = 0;
	sb->series.seen_ms = sb->series.cpu_us = 0;
}

void usage_box(struct sandbox *sb, const struct box_usage *used)
{
	struct account a = of_sandbox(sb);

	if (used->cpu_us <= sb->usage.box_cpu_us)
		return;
	advance(&a);
	count_cpu(&sb->usage, used->cpu_us);
	put(&a);
}

void usage_net(struct sandbox *sb, uint64_t bytes)
{
	struct account a = of_sandbox(sb);

	advance(&a);
	add(&sb->usage.net_bytes, 1, bytes);
}

bool usage_execution(struct execution *x, struct usage_row *ret)
{
	struct account a;

	if (!x->sb)
		return false;
	a = of_sandbox(x->sb);
	advance(&a);
	if (!x->is_counted) {
		a.usage->executions++;
		a.usage->exec_cpu_us += x->cpu_us;
		count_cpu(a.usage, a.usage->exec_cpu_us);
		x->is_counted = true;
	}
	*ret = row_of(&a);
	return true;
}

void usage_run(struct sandbox *sb)
{
	struct account a = of_sandbox(sb);

	advance(&a);
	sb->usage.executions++;
	put(&a);
}

/* ---- what is kept ---- */

static struct kept *find_kept(struct sandboxes *all, const char *owner)
{
	struct kept *k = map_get(all->kept, owner, strlen(owner));

	if (k)
		return k;
	k = calloc(1, sizeof(*k));
	if (!k)
		return NULL;
	if (str_copy(k->owner, sizeof(k->owner), owner) == 0 &&
	    map_put(all->kept, owner, strlen(owner), k, NULL) == 0)
		return k;
	free(k);
	return NULL;
}

void usage_keep(struct sandboxes *all, const char *owner, uint64_t before, uint64_t now)
{
	struct kept *k = before != now ? find_kept(all, owner) : NULL;
	struct account a;

	if (!k) /* NOTE: without memory it is not counted until the next start. */
		return;
	if (!all->is_loaded) { /* since when is in rows that come later */
		k->bytes += now - before;
		return;
	}
	a = of_kept(all, k);
	advance(&a);
	k->bytes += now - before;
	hold(&a, k->bytes > 0 ? HELD_DISK : HELD_NOTHING);
	put(&a);
}

void usage_forget(struct sandboxes *all)
{
	if (all->kept)
		MAP_FOREACH (all->kept, it)
			free(it.value);
	(void)map_free(all->kept);
	all->kept = NULL;
}

/* ---- now and then ---- */

static void write_due(const struct account *a, uint64_t every_ms)
{
	if (!a->usage->is_timed)
		return;
	if ((int64_t)now_ms(a->all) - a->usage->written_ms < (int64_t)every_ms &&
	    day_of(wall_ms(a->all)) <= a->usage->day)
		return;
	advance(a);
	put(a);
}

static void walk_on(struct sandboxes *all, struct list *at);

static void on_usage(void *user, const struct provider_reply *r)
{
	struct sandbox *sb = user;
	struct account a = of_sandbox(sb);

	if (r->code == 0) {
		count_cpu(&sb->usage, r->usage.cpu_us);
		series_add(sb, &r->usage);
	} else if (r->code == -EPIPE || r->code == -EAGAIN) {
		sb->all->is_counting_alone = true; /* for the rest of this round */
	}
	advance(&a);
	put(&a);
	walk_on(sb->all, sb->node.next);
	sandbox_unref(sb);
}

/* One at a time, so that nobody's claim waits behind a crowd of questions. */
static void walk_on(struct sandboxes *all, struct list *at)
{
	for (; at != &all->sandboxes; at = at->next) {
		struct sandbox *sb = LIST_ENTRY(at, struct sandbox, node);
		struct account a = of_sandbox(sb);

		if (sb->usage.held == HELD_ALL && sb->usage.is_timed && sb->box_id[0] != '\0' &&
		    !all->is_counting_alone) {
			ask_provider(all,
				     &(struct ask){ .kind = ASK_USAGE,
						    .box_id = sb->box_id,
						    .is_impatient = true },
				     on_usage, sandbox_ref(sb));
			return;
		}
		write_due(&a, sb->usage.held >= HELD_MEMORY ? USAGE_EVERY_MS / 2 : USAGE_IDLE_MS);
	}
	all->is_counting = false;
}

void usage_checkpoint(struct sandboxes *all)
{
	MAP_FOREACH (all->kept, it) {
		struct account a = of_kept(all, it.value);

		write_due(&a, USAGE_IDLE_MS);
	}
	if (all->is_counting)
		return;
	all->is_counting = true;
	all->is_counting_alone = false;
	walk_on(all, all->sandboxes.next);
}

/* ---- the start ---- */

static void fill(struct usage *u, const struct usage_row *row)
{
	enum usage_held held = u->held;

	*u = (struct usage){ .day = row->day,
			     .cpu_us = row->cpu_us,
			     .memory_byte_ms = row->memory_byte_ms,
			     .disk_byte_ms = row->disk_byte_ms,
			     .net_bytes = row->net_bytes,
			     .executions = row->executions,
			     .wall_ms = row->wall_ms,
			     .box_cpu_us = row->box_cpu_us,
			     .exec_cpu_us = row->exec_cpu_us,
			     .held = held,
			     .until_ms = row->until_ms };
}

static void loaded(void *user, const struct usage_row *row)
{
	struct sandboxes *all = user;
	struct sandbox *sb = map_get(all->by_id, row->sandbox_id, strlen(row->sandbox_id));
	struct kept *k = NULL;

	if (strcmp(row->sandbox_id, STORE_KEPT) == 0)
		k = find_kept(all, row->owner);
	if (k)
		fill(&k->usage, row);
	else if (sb)
		fill(&sb->usage, row);
}

int usage_load(struct sandboxes *all, struct err *err)
{
	int r = store_load_last_usage(all->store, loaded, all, err);

	if (r < 0)
		return r;
	LIST_FOREACH (&all->sandboxes, sb, struct sandbox, node) {
		if (sb->usage.until_ms == 0)
			sb->usage.until_ms = sb->created_ms;
		if (sb->usage.day == 0)
			sb->usage.day = day_of(sb->created_ms);
		sb->usage.is_waiting = true;
	}
	MAP_FOREACH (all->kept, it) {
		struct kept *k = it.value;
		struct account a = of_kept(all, k);

		k->usage.held = k->bytes > 0 ? HELD_DISK : HELD_NOTHING;
		fill_gap(&a);
	}
	all->is_loaded = true;
	LIST_FOREACH (&all->sandboxes, sb, struct sandbox, node)
		if (!sb->is_found_again) /* it has no box that could be gone */
			usage_found(sb);
	return 0;
}
