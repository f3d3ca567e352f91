#include "sandbox/usage.h"

#include <string.h>

#include "base/map.h"
#include "sandbox/execution.h"
#include "sandbox/registry.h"

#define DAY_MS 86400000

static int32_t today(const struct sandboxes *all)
{
	return (int32_t)(wall_ms(all) / DAY_MS);
}

static bool is_counted(enum sandbox_state s)
{
	return s == SANDBOX_RUNNING || s == SANDBOX_PAUSING;
}

/* A row's values are below 2^63. */
static void add(uint64_t *sum, uint64_t size, uint64_t ms)
{
	uint64_t n;

	if (__builtin_mul_overflow(size, ms, &n) || n > (uint64_t)INT64_MAX - *sum)
		*sum = INT64_MAX;
	else
		*sum += n;
}

static void put(struct sandbox *sb)
{
	const struct usage *u = &sb->usage;

	/* A write that fails is made good by the next one. */
	(void)store_put_usage(sb->all->store,
			      &(struct usage_row){ .day = u->day,
						   .owner = sb->owner,
						   .key_id = sb->key_id,
						   .sandbox_id = sb->id,
						   .cpu_us = u->cpu_us,
						   .memory_byte_ms = u->memory_byte_ms,
						   .disk_byte_ms = u->disk_byte_ms,
						   .executions = u->executions,
						   .wall_ms = u->wall_ms },
			      NULL, NULL);
}

static void count(struct sandbox *sb, uint64_t ms)
{
	struct usage *u = &sb->usage;

	u->wall_ms += ms;
	add(&u->memory_byte_ms, sb->limits.memory_bytes, ms);
	add(&u->disk_byte_ms, sb->limits.disk_bytes, ms);
}

/* Counts until now; at midnight the day before is written and another begins. */
static void accrue(struct sandbox *sb)
{
	struct usage *u = &sb->usage;
	uint64_t now = now_ms(sb->all), ms = u->since_ms ? now - u->since_ms : 0;
	uint64_t of_today = (uint64_t)(wall_ms(sb->all) % DAY_MS);
	int32_t day = today(sb->all);

	if (u->day != 0 && u->day != day) {
		count(sb, ms > of_today ? ms - of_today : 0);
		put(sb);
		ms = ms < of_today ? ms : of_today;
		*u = (struct usage){ .since_ms = u->since_ms };
	}
	u->day = day;
	count(sb, ms);
	if (u->since_ms)
		u->since_ms = now;
}

void usage_settle(struct sandbox *sb)
{
	struct usage *u = &sb->usage;
	bool runs = is_counted(sb->state);

	if (runs == (u->since_ms != 0))
		return;
	accrue(sb);
	u->since_ms = runs ? now_ms(sb->all) : 0;
	if (!runs)
		put(sb);
}

void usage_execution(struct execution *x)
{
	if (!x->sb)
		return;
	accrue(x->sb);
	x->sb->usage.executions++;
	x->sb->usage.cpu_us += x->cpu_us;
	put(x->sb);
}

void usage_run(struct sandbox *sb)
{
	accrue(sb);
	sb->usage.executions++;
	put(sb);
}

void usage_checkpoint(struct sandboxes *all)
{
	LIST_FOREACH (&all->sandboxes, sb, struct sandbox, node) {
		if (!sb->usage.since_ms)
			continue;
		accrue(sb);
		put(sb);
	}
}

static void loaded(void *user, const struct usage_row *row)
{
	struct sandboxes *all = user;
	struct sandbox *sb = map_get(all->by_id, row->sandbox_id, strlen(row->sandbox_id));

	if (!sb || row->day != today(all))
		return;
	sb->usage.day = row->day;
	sb->usage.cpu_us += row->cpu_us;
	sb->usage.memory_byte_ms += row->memory_byte_ms;
	sb->usage.disk_byte_ms += row->disk_byte_ms;
	sb->usage.executions += row->executions;
	sb->usage.wall_ms += row->wall_ms;
}

int usage_load(struct sandboxes *all, struct err *err)
{
	return store_load_usage(all->store, today(all), loaded, all, err);
}
