#include "base/parse.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

struct unit {
	const char *name;
	uint64_t factor;
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Digits at *s, at least one; *s is behind them afterwards. -ERANGE still consumes them all, so
 * that what is no number at all is told from what is too big. */
static int digits(const char **s, uint64_t *ret)
{
	uint64_t v = 0;
	bool over = false;

	if (!is_digit(**s))
		return -EINVAL;
	for (; is_digit(**s); (*s)++)
		over |= __builtin_mul_overflow(v, 10u, &v) ||
			__builtin_add_overflow(v, (uint64_t)(**s - '0'), &v);
	if (over)
		return -ERANGE;
	*ret = v;
	return 0;
}

int parse_u64(const char *s, uint64_t min, uint64_t max, uint64_t *ret)
{
	uint64_t v = 0;
	int r;

	if (!s)
		return -EINVAL;
	r = digits(&s, &v);
	if (r == -EINVAL || *s != '\0')
		return -EINVAL;
	if (r < 0 || v < min || v > max)
		return -ERANGE;
	*ret = v;
	return 0;
}

int parse_i64(const char *s, int64_t min, int64_t max, int64_t *ret)
{
	bool negative = s && *s == '-';
	uint64_t limit = negative ? (uint64_t)INT64_MAX + 1 : INT64_MAX, v;
	int64_t value;
	int r;

	r = parse_u64(negative ? s + 1 : s, 0, limit, &v);
	if (r < 0)
		return r;
	value = negative ? (int64_t)(0 - v) : (int64_t)v;
	if (value < min || value > max)
		return -ERANGE;
	*ret = value;
	return 0;
}

int parse_u32(const char *s, uint32_t min, uint32_t max, uint32_t *ret)
{
	uint64_t v;
	int r = parse_u64(s, min, max, &v);

	if (r == 0)
		*ret = (uint32_t)v;
	return r;
}

int parse_bool(const char *s, int *ret)
{
	static const char *const words[][2] = {
		{ "false", "true" }, { "no", "yes" }, { "off", "on" }, { "0", "1" }
	};

	for (size_t i = 0; s && i < sizeof(words) / sizeof(words[0]); i++) {
		for (int v = 0; v < 2; v++) {
			if (strcasecmp(s, words[i][v]) == 0) {
				*ret = v;
				return 0;
			}
		}
	}
	return -EINVAL;
}

/* floor(0.d1d2d3... * factor) for the n digits at s, exact for any number of them: a floor inside a
 * floor of a division changes nothing, so no intermediate grows beyond 10 * factor. */
static uint64_t fraction(const char *s, size_t n, uint64_t factor)
{
	uint64_t acc = 0;

	while (n > 0)
		acc = (acc + (uint64_t)(s[--n] - '0') * factor) / 10;
	return acc;
}

static const struct unit *unit_of(const char *s, const struct unit *units)
{
	for (; units->name; units++)
		if (strcasecmp(s, units->name) == 0)
			return units;
	return NULL;
}

/* "12", "1.5G": a number in one of the units (the table ends with a NULL name). */
static int scaled(const char *s, const struct unit *units, uint64_t *ret)
{
	const char *part = NULL;
	const struct unit *unit;
	uint64_t v = 0, more = 0;
	size_t n = 0;
	int r;

	if (!s)
		return -EINVAL;
	r = digits(&s, &v);
	if (r == -EINVAL)
		return r;
	if (*s == '.') {
		part = ++s;
		n = strspn(s, "0123456789");
		s += n;
	}
	unit = unit_of(s, units);
	/* A fraction must have digits, and a part of the smallest unit is none. */
	if (!unit || (part && (n == 0 || unit->factor == 1)))
		return -EINVAL;
	if (part)
		more = fraction(part, n, unit->factor);
	if (r < 0 || __builtin_mul_overflow(v, unit->factor, &v) ||
	    __builtin_add_overflow(v, more, &v))
		return -ERANGE;
	*ret = v;
	return 0;
}

static int bounded(const char *s, const struct unit *units, uint64_t min, uint64_t max,
		   uint64_t *ret)
{
	uint64_t v;
	int r = scaled(s, units, &v);

	if (r < 0)
		return r;
	if (v < min || v > max)
		return -ERANGE;
	*ret = v;
	return 0;
}

int parse_size(const char *s, uint64_t min, uint64_t max, uint64_t *ret_bytes)
{
	static const struct unit units[] = {
		{ "", 1 },
		{ "K", 1ull << 10 },
		{ "KB", 1ull << 10 },
		{ "Ki", 1ull << 10 },
		{ "KiB", 1ull << 10 },
		{ "M", 1ull << 20 },
		{ "MB", 1ull << 20 },
		{ "Mi", 1ull << 20 },
		{ "MiB", 1ull << 20 },
		{ "G", 1ull << 30 },
		{ "GB", 1ull << 30 },
		{ "Gi", 1ull << 30 },
		{ "GiB", 1ull << 30 },
		{ "T", 1ull << 40 },
		{ "TB", 1ull << 40 },
		{ "Ti", 1ull << 40 },
		{ "TiB", 1ull << 40 },
		{ NULL, 0 },
	};

	return bounded(s, units, min, max, ret_bytes);
}

int parse_duration(const char *s, uint64_t min_ms, uint64_t max_ms, uint64_t *ret_ms)
{
	static const struct unit units[] = {
		{ "", 1000 },     { "ms", 1 },       { "s", 1000 }, { "m", 60000 },
		{ "h", 3600000 }, { "d", 86400000 }, { NULL, 0 },
	};

	return bounded(s, units, min_ms, max_ms, ret_ms);
}

int parse_cpu(const char *s, uint32_t min_milli, uint32_t max_milli, uint32_t *ret_milli)
{
	static const struct unit units[] = { { "", 1000 }, { "m", 1 }, { NULL, 0 } };
	uint64_t v;
	int r = bounded(s, units, min_milli, max_milli, &v);

	if (r == 0)
		*ret_milli = (uint32_t)v;
	return r;
}
