#include "base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

#define ISO_MIN_MS (-62135596800000ll) /* 0001-01-01T00:00:00.000Z */
#define ISO_MAX_MS 253402300799999ll   /* 9999-12-31T23:59:59.999Z */

uint64_t clock_now_ns(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

uint64_t clock_now_ms(void)
{
	return clock_now_ns() / 1000000u;
}

int64_t clock_wall_ns(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_REALTIME, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

int64_t clock_wall_ms(void)
{
	return clock_wall_ns() / 1000000;
}

void clock_iso(int64_t wall_ms, char dst[CLOCK_ISO_SIZE])
{
	struct tm tm;
	time_t seconds;
	int ms;

	/* Four digits of a year are what the format has; beyond them the nearest one stands. */
	if (wall_ms < ISO_MIN_MS)
		wall_ms = ISO_MIN_MS;
	if (wall_ms > ISO_MAX_MS)
		wall_ms = ISO_MAX_MS;
	ms = (int)((wall_ms % 1000 + 1000) % 1000);
	seconds = (time_t)((wall_ms - ms) / 1000);
	(void)gmtime_r(&seconds, &tm);
	(void)snprintf(dst, CLOCK_ISO_SIZE, "%04u-%02u-%02uT%02u:%02u:%02u.%03uZ",
		       (unsigned)(tm.tm_year + 1900) % 10000, (unsigned)(tm.tm_mon + 1) % 100,
		       (unsigned)tm.tm_mday % 100, (unsigned)tm.tm_hour % 100,
		       (unsigned)tm.tm_min % 100, (unsigned)tm.tm_sec % 100, (unsigned)ms);
}

int clock_from_iso(const char *iso, int64_t *ret_wall_ms)
{
	struct tm tm = { 0 };
	const char *rest = strptime(iso, "%Y-%m-%d", &tm);
	int64_t ms = 0, unit = 100;

	if (rest && *rest == '\0')
		rest = "Z";
	else if (rest)
		rest = strptime(rest, "T%H:%M:%S", &tm);
	if (!rest)
		return -EINVAL;
	if (*rest == '.')
		for (rest++; *rest >= '0' && *rest <= '9'; rest++, unit /= 10)
			ms += unit * (*rest - '0');
	if (rest[0] != 'Z' || rest[1] != '\0')
		return -EINVAL;
	*ret_wall_ms = (int64_t)timegm(&tm) * 1000 + ms;
	return 0;
}
