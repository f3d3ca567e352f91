#include "launch/poolsize.h"

#include <string.h>

#define ONE 1000ull         /* a box, in what levels are counted in */
#define MAKE_MIN_US 5000ull /* below that other things are what a box waits for */
#define ROUND_UP 700ull     /* of a box: a third of one more is none more */

void poolsize_init(struct poolsize *p, uint32_t min, uint32_t max, uint32_t quiet_ms)
{
	memset(p, 0, sizeof(*p));
	p->min = min;
	p->max = max > min ? max : min;
	p->quiet_ms = quiet_ms;
	p->utilization = POOLSIZE_UTILIZATION;
}

void poolsize_change(struct poolsize *p, uint32_t min, uint32_t max, uint32_t quiet_ms)
{
	uint64_t make_us = p->make_us;

	poolsize_init(p, min, max, quiet_ms);
	p->make_us = make_us;
}

/* What could have been made since the last look is off the level. */
static void drain(struct poolsize *p, uint64_t now_ms)
{
	uint64_t make_us = p->make_us > MAKE_MIN_US ? p->make_us : MAKE_MIN_US;
	uint64_t past_ms = now_ms - p->level_ms;
	uint64_t full_ms = p->level * make_us / (1000 * ONE * POOLSIZE_BUILDERS);

	if (past_ms > full_ms)
		p->level = 0;
	else
		p->level -= past_ms * 1000 * ONE * POOLSIZE_BUILDERS / make_us;
	p->level_ms = now_ms;
}

/* Parts of time that are over are forgotten when as many as there are have begun since. */
static void advance(struct poolsize *p, uint64_t now_ms)
{
	uint64_t part = now_ms / (1 + p->quiet_ms / POOLSIZE_PARTS);
	uint64_t *peak = &p->peaks[part % POOLSIZE_PARTS];

	drain(p, now_ms);
	if (part - p->part >= POOLSIZE_PARTS)
		memset(p->peaks, 0, sizeof(p->peaks));
	else
		for (uint64_t i = p->part + 1; i <= part; i++)
			p->peaks[i % POOLSIZE_PARTS] = 0;
	p->part = part;
	if (p->level > *peak)
		*peak = p->level;
}

void poolsize_claimed(struct poolsize *p, uint64_t now_ms)
{
	advance(p, now_ms);
	/* More than may wait is nothing to remember: the overload of one moment would count for
	 * long after it. */
	if (p->level < p->max * ONE)
		p->level += ONE;
	advance(p, now_ms);
}

void poolsize_made(struct poolsize *p, uint64_t took_ns)
{
	uint64_t us = took_ns / 1000;

	p->make_us = p->make_us ? (7 * p->make_us + us) / 8 : us;
}

uint32_t poolsize_target(struct poolsize *p, uint64_t now_ms)
{
	uint64_t peak = 0, want;

	advance(p, now_ms);
	for (unsigned i = 0; i < POOLSIZE_PARTS; i++)
		if (p->peaks[i] > peak)
			peak = p->peaks[i];
	want = (100 * peak / p->utilization + ROUND_UP) / ONE;
	if (want < p->min)
		return p->min;
	return want > p->max ? p->max : (uint32_t)want;
}
