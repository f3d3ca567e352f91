/* How many boxes should wait: as many as were ever claimed within one short slot of the recent
 * past, and more by what is to be left at such a peak (a quarter), because a burst is served from
 * what is there when it begins. Pure: time comes in as a number. */
#pragma once

#include <stdint.h>

#define POOLSIZE_SLOT_MS 100u
#define POOLSIZE_SLOTS 64u /* the recent past is at most this many slots */

struct poolsize {
	uint32_t min, max, quiet_ms;
	uint32_t utilization;            /* per cent of those waiting that a peak takes */
	uint64_t slot;                   /* number of the newest slot */
	uint32_t claims[POOLSIZE_SLOTS]; /* claims[slot % SLOTS] */
	uint32_t make_ms;                /* smoothed time to make a box */
	uint64_t make_us;                /* the same, for people */
	uint32_t peak;    /* highest demand that has not yet been quiet for quiet_ms */
	uint64_t peak_ms; /* when it was last reached */
};

void poolsize_init(struct poolsize *p, uint32_t min, uint32_t max, uint32_t quiet_ms);
void poolsize_claimed(struct poolsize *p, uint64_t now_ms);
void poolsize_made(struct poolsize *p, uint64_t took_ns);
uint32_t poolsize_target(struct poolsize *p, uint64_t now_ms);
