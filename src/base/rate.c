#include "base/rate.h"

#include <errno.h>
#include <string.h>

#include "base/parse.h"
#include "base/str.h"

static const struct {
	char unit;
	uint32_t ms;
} units[] = { { 's', 1000 }, { 'm', 60000 }, { 'h', 3600000 } };

#define UNITS (sizeof(units) / sizeof(units[0]))

int rate_parse(const char *text, struct rate *ret)
{
	const char *slash = text ? strchr(text, '/') : NULL;
	char number[RATE_TEXT_SIZE];
	uint64_t count;
	int r;

	if (!text)
		return -EINVAL;
	if (strcmp(text, "0") == 0) {
		*ret = (struct rate){ 0 };
		return 0;
	}
	if (!slash || slash[1] == '\0' || slash[2] != '\0')
		return -EINVAL;
	r = str_format(number, sizeof(number), "%.*s", (int)(slash - text), text);
	if (r == 0)
		r = parse_u64(number, 1, RATE_COUNT_MAX, &count);
	if (r < 0)
		return r == -E2BIG ? -ERANGE : r;
	for (size_t i = 0; i < UNITS; i++)
		if (units[i].unit == slash[1]) {
			*ret = (struct rate){ (uint32_t)count, units[i].ms };
			return 0;
		}
	return -EINVAL;
}

void rate_format(struct rate r, char text[RATE_TEXT_SIZE])
{
	char unit = 's';

	for (size_t i = 0; i < UNITS; i++)
		if (units[i].ms == r.per_ms)
			unit = units[i].unit;
	if (r.count == 0)
		(void)str_copy(text, RATE_TEXT_SIZE, "0");
	else /* fits: rate_parse() */
		(void)str_format(text, RATE_TEXT_SIZE, "%u/%c", r.count, unit);
}
