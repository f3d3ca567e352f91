/* What a sandbox took lately: a ring of looks at its box, in memory only. One is taken whenever its
 * usage is counted, and whenever somebody asks. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct box_usage;
struct sandbox;

#define SERIES_MAX 120u /* an hour, as usage is counted */

struct sample {
	int64_t at_ms; /* wall clock */
	uint64_t memory_bytes;
	uint32_t cpu_milli; /* thousandths of a core, since the one before */
};

struct series {
	struct sample *ring; /* owned, SERIES_MAX of them; NULL: none yet */
	uint32_t n, next;
	uint64_t cpu_us;  /* as last seen, */
	uint64_t seen_ms; /* and when, monotonic; 0: never, or of another box */
};

/* From the first at or after from_ms to the last at or before to_ms, oldest first, at most cap of
 * them; how many. */
size_t sandbox_series(const struct sandbox *sb, int64_t from_ms, int64_t to_ms, struct sample *ret,
		      size_t cap);

/* ---- inside ---- */

void series_add(struct sandbox *sb, const struct box_usage *used);
void series_done(struct series *s);
