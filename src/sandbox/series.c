#include "sandbox/series.h"

#include <stdlib.h>

#include "sandbox/registry.h"

/* A first look at a box says how much it used, but not in which time. */
static uint32_t cpu_since(const struct series *s, uint64_t cpu_us, uint64_t now)
{
	uint64_t ms = now - s->seen_ms;

	if (s->seen_ms == 0 || ms == 0 || cpu_us <= s->cpu_us)
		return 0;
	return (uint32_t)((cpu_us - s->cpu_us) / ms); /* microseconds a millisecond */
}

void series_add(struct sandbox *sb, const struct box_usage *used)
{
	struct series *s = &sb->series;
	uint64_t now = now_ms(sb->all);

	if (!s->ring)
		s->ring = calloc(SERIES_MAX, sizeof(*s->ring));
	if (!s->ring) /* NOTE: without memory there is no series, and nothing else suffers. */
		return;
	s->ring[s->next] = (struct sample){ .at_ms = wall_ms(sb->all),
					    .memory_bytes = used->memory_bytes,
					    .cpu_milli = cpu_since(s, used->cpu_us, now) };
	s->next = (s->next + 1) % SERIES_MAX;
	if (s->n < SERIES_MAX)
		s->n++;
	s->cpu_us = used->cpu_us;
	s->seen_ms = now;
}

size_t sandbox_series(const struct sandbox *sb, int64_t from_ms, int64_t to_ms, struct sample *ret,
		      size_t cap)
{
	const struct series *s = &sb->series;
	size_t n = 0;

	for (uint32_t i = 0; i < s->n && n < cap; i++) {
		const struct sample *one = &s->ring[(s->next + SERIES_MAX - s->n + i) % SERIES_MAX];

		if (one->at_ms >= from_ms && one->at_ms <= to_ms)
			ret[n++] = *one;
	}
	return n;
}

void series_done(struct series *s)
{
	free(s->ring);
}
