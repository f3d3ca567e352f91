/* Time. Deadlines use the monotonic clock only: wall-clock jumps must not move them. */
#pragma once

#include <stddef.h>
#include <stdint.h>

uint64_t clock_now_ns(void); /* CLOCK_MONOTONIC */
uint64_t clock_now_ms(void);
int64_t clock_wall_ms(void); /* CLOCK_REALTIME since the epoch, for people */
int64_t clock_wall_ns(void);
#define CLOCK_ISO_SIZE 25 /* "2026-01-02T03:04:05.678Z" and its NUL */
void clock_iso(int64_t wall_ms, char dst[CLOCK_ISO_SIZE]);
/* The way back, from every form of RFC 3339: "2026-01-02T03:04:05.678Z", "2026-01-02
 * 04:04:05+01:00"; a day alone is its beginning in UTC. What is finer than a millisecond is left
 * out. -EINVAL. */
int clock_from_iso(const char *iso, int64_t *ret_wall_ms);
