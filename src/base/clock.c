#include "base/clock.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
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

/* n digits and nothing else; -1. */
static int take_digits(const char **at, int n)
{
	int number = 0;

	for (; n > 0; n--, (*at)++) {
		if (**at < '0' || **at > '9')
			return -1;
		number = number * 10 + (**at - '0');
	}
	return number;
}

static bool take_char(const char **at, const char *set)
{
	if (**at == '\0' || !strchr(set, **at))
		return false;
	(*at)++;
	return true;
}

/* timegm() would take the 31st of February for a day of March. */
static bool take_date(const char **at, struct tm *ret)
{
	struct tm day;
	int year = take_digits(at, 4), month, mday;

	if (year < 1 || !take_char(at, "-"))
		return false;
	month = take_digits(at, 2);
	if (month < 1 || !take_char(at, "-"))
		return false;
	mday = take_digits(at, 2);
	*ret = (struct tm){ .tm_year = year - 1900, .tm_mon = month - 1, .tm_mday = mday };
	day = *ret;
	(void)timegm(&day);
	return day.tm_mon == month - 1 && day.tm_mday == mday;
}

static bool take_time(const char **at, struct tm *tm, int64_t *ret_ms)
{
	int64_t unit = 100;

	tm->tm_hour = take_digits(at, 2);
	if (tm->tm_hour < 0 || tm->tm_hour > 23 || !take_char(at, ":"))
		return false;
	tm->tm_min = take_digits(at, 2);
	if (tm->tm_min < 0 || tm->tm_min > 59 || !take_char(at, ":"))
		return false;
	tm->tm_sec = take_digits(at, 2);
	if (tm->tm_sec < 0 || tm->tm_sec > 60) /* 60: a leap second */
		return false;
	if (!take_char(at, "."))
		return true;
	if (**at < '0' || **at > '9')
		return false;
	for (; **at >= '0' && **at <= '9'; (*at)++, unit /= 10)
		*ret_ms += unit * (**at - '0');
	return true;
}

/* What is to be taken off to reach UTC. */
static bool take_zone(const char **at, int64_t *ret_ms)
{
	int sign = **at == '-' ? -1 : 1, hours, minutes;

	if (take_char(at, "Zz"))
		return true;
	if (!take_char(at, "+-"))
		return false;
	hours = take_digits(at, 2);
	if (hours < 0 || hours > 23 || !take_char(at, ":"))
		return false;
	minutes = take_digits(at, 2);
	if (minutes < 0 || minutes > 59)
		return false;
	*ret_ms = sign * (hours * 60 + minutes) * 60000ll;
	return true;
}

int clock_from_iso(const char *iso, int64_t *ret_wall_ms)
{
	int64_t ms = 0, ahead_ms = 0;
	struct tm tm;

	if (!take_date(&iso, &tm))
		return -EINVAL;
	if (*iso != '\0' && (!take_char(&iso, "Tt ") || !take_time(&iso, &tm, &ms) ||
			     !take_zone(&iso, &ahead_ms) || *iso != '\0'))
		return -EINVAL;
	*ret_wall_ms = (int64_t)timegm(&tm) * 1000 + ms - ahead_ms;
	return 0;
}
