/* Times of the API for people: how long ago, how long still. */
#pragma once

#include <stdint.h>

#define WHEN_SIZE 24

/* "2026-01-02T03:04:05.678Z" to milliseconds since the epoch; -EINVAL. */
int when_parse(const char *iso, int64_t *ret_ms);
/* "850ms", "90s", "5m", "36h", "2d": the largest unit of which there are two at least. */
void when_span(int64_t ms, char dst[WHEN_SIZE]);
