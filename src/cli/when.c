#include "cli/when.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

int when_parse(const char *iso, int64_t *ret_ms)
{
	struct tm tm = { 0 };
	const char *rest = strptime(iso, "%Y-%m-%dT%H:%M:%S", &tm);
	int64_t ms = 0, unit = 100;

	if (!rest)
		return -EINVAL;
	if (*rest == '.')
		for (rest++; *rest >= '0' && *rest <= '9'; rest++, unit /= 10)
			ms += unit * (*rest - '0');
	if (rest[0] != 'Z' || rest[1] != '\0')
		return -EINVAL;
	*ret_ms = (int64_t)timegm(&tm) * 1000 + ms;
	return 0;
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
