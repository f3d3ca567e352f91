/* So many in so much time, as people write it: "600/m", "10/s", "5000/h". */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct rate {
	uint32_t count; /* 0: no limit */
	uint32_t per_ms;
};

#define RATE_COUNT_MAX 1000000u
#define RATE_TEXT_SIZE sizeof("1000000/s")

/* "0" is no limit. -EINVAL, -ERANGE above RATE_COUNT_MAX; *ret is then untouched. */
int rate_parse(const char *text, struct rate *ret);
void rate_format(struct rate r, char text[RATE_TEXT_SIZE]);
