/* How many boxes should wait for claims. Pure: time comes in as a number.
 *
 * A bucket holds what was claimed and could not have been made again yet: each claim fills it by
 * one, and it empties as fast as the pool makes boxes (POOLSIZE_BUILDERS at a time, in the time
 * that one has taken of late). Its level is exactly the stock that the claims so far would have
 * needed, whether they came as a burst or as a steady rate, and whether boxes are quick or slow to
 * make. The target is its highest level within the last quiet_ms, and more by what a peak may leave
 * over, because the next peak may be a little higher than the last.
 *
 * test_poolsim.c replays loads against it and against an oracle that knows the future. */
#pragma once

#include <stdint.h>

#define POOLSIZE_BUILDERS 2u    /* boxes of a template that are made at a time */
#define POOLSIZE_PARTS 16u      /* of quiet_ms: how finely what was long ago is forgotten */
#define POOLSIZE_UTILIZATION 70 /* per cent of those waiting that a peak takes */

struct poolsize {
	uint32_t min, max, quiet_ms;
	uint32_t utilization;           /* per cent; POOLSIZE_UTILIZATION after poolsize_init() */
	uint64_t make_us;               /* smoothed time to make a box; 0: none was made yet */
	uint64_t level;                 /* of the bucket, in thousandths of a box */
	uint64_t level_ms;              /* when that was */
	uint64_t part;                  /* number of the newest part of time */
	uint64_t peaks[POOLSIZE_PARTS]; /* highest level in a part: peaks[part % PARTS] */
};

void poolsize_init(struct poolsize *p, uint32_t min, uint32_t max, uint32_t quiet_ms);
/* The same for one in use: what is known of its boxes stays. */
void poolsize_change(struct poolsize *p, uint32_t min, uint32_t max, uint32_t quiet_ms);
void poolsize_claimed(struct poolsize *p, uint64_t now_ms);
void poolsize_made(struct poolsize *p, uint64_t took_ns);
uint32_t poolsize_target(struct poolsize *p, uint64_t now_ms);
