#include "launch/poolsize.h"

#include <string.h>

#define UTILIZATION 80u

void poolsize_init(struct poolsize *p, uint32_t min, uint32_t max, uint32_t quiet_ms)
{
	memset(p, 0, sizeof(*p));
	p->min = min;
	p->max = max > min ? max : min;
	p->quiet_ms = quiet_ms;
	p->utilization = UTILIZATION;
}

static void advance(struct poolsize *p, uint64_t now_ms)
{
	uint64_t slot = now_ms / POOLSIZE_SLOT_MS;

	if (slot - p->slot >= POOLSIZE_SLOTS)
		memset(p->claims, 0, sizeof(p->claims));
	else
		for (uint64_t s = p->slot + 1; s <= slot; s++)
			p->claims[s % POOLSIZE_SLOTS] = 0;
	p->slot = slot;
}

void poolsize_claimed(struct poolsize *p, uint64_t now_ms)
{
	advance(p, now_ms);
	p->claims[p->slot % POOLSIZE_SLOTS]++;
}

void poolsize_made(struct poolsize *p, uint64_t took_ns)
{
	uint32_t ms = (uint32_t)(took_ns / 1000000);

	p->make_ms = (7 * p->make_ms + ms) / 8;
	p->make_us = p->make_us ? (7 * p->make_us + took_ns / 1000) / 8 : took_ns / 1000;
}

/* Claims that can come in while one box is made: the busiest run of slots of that length. */
static uint32_t demand(const struct poolsize *p)
{
	uint32_t span = 1 + p->make_ms / POOLSIZE_SLOT_MS, best = 0;

	if (span > POOLSIZE_SLOTS)
		span = POOLSIZE_SLOTS;
	for (uint32_t i = 0; i + span <= POOLSIZE_SLOTS; i++) {
		uint32_t sum = 0;

		for (uint32_t k = 0; k < span; k++)
			sum += p->claims[(p->slot + 1 + i + k) % POOLSIZE_SLOTS];
		if (sum > best)
			best = sum;
	}
	return (uint32_t)(100ull * best / p->utilization);
}

uint32_t poolsize_target(struct poolsize *p, uint64_t now_ms)
{
	uint32_t want;

	advance(p, now_ms);
	want = demand(p);
	if (want >= p->peak || now_ms - p->peak_ms >= p->quiet_ms) {
		p->peak = want;
		p->peak_ms = now_ms;
	}
	if (p->peak < p->min)
		return p->min;
	return p->peak > p->max ? p->max : p->peak;
}
