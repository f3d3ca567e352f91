#include "cli/when.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"

int when_parse(const char *iso, int64_t *ret_ms)
{
	return clock_from_iso(iso, ret_ms);
}

void when_span(int64_t ms, char dst[WHEN_SIZE])
{
	static const struct {
		int64_t ms;
		const char *unit;
	} units[] = { { 86400000, "d" }, { 3600000, "h" }, { 60000, "m" }, { 1000, "s" } };

	if (ms < 0)
		ms = 0;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (ms >= units[i].ms && (ms >= 2 * units[i].ms || units[i].ms == 1000)) {
			(void)snprintf(dst, WHEN_SIZE, "%" PRId64 "%s", ms / units[i].ms,
				       units[i].unit);
			return;
		}
	(void)snprintf(dst, WHEN_SIZE, "%" PRId64 "ms", ms);
}
