#include "api/range.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/parse.h"
#include "base/str.h"
#include "spec/file_version.h"

/* A number of the header; -1 when it is none. Absent (empty) is not a number either. */
static int parse_position(struct str s, uint64_t *ret)
{
	char text[24];

	if (s.len == 0 || str_format(text, sizeof(text), "%.*s", (int)s.len, s.data) < 0)
		return -1;
	if (strspn(text, "0123456789") != s.len)
		return -1; /* parse_u64 might take more than digits one day; the RFC does not */
	return parse_u64(text, 0, UINT64_MAX, ret) < 0 ? -1 : 0;
}

static enum range_kind parse_suffix(struct str digits, uint64_t size, struct range *ret)
{
	uint64_t n;

	if (parse_position(digits, &n) < 0)
		return RANGE_WHOLE;
	if (n == 0 || size == 0)
		return RANGE_NOTHING;
	ret->length = n < size ? n : size;
	ret->first = size - ret->length;
	return RANGE_PART;
}

enum range_kind range_parse(const char *header, uint64_t size, struct range *ret)
{
	static const char unit[] = "bytes=";
	struct str spec;
	const char *dash;
	uint64_t first, last = UINT64_MAX;

	if (!header || strncasecmp(header, unit, sizeof(unit) - 1) != 0)
		return RANGE_WHOLE;
	spec = str_trim(str_of(header + sizeof(unit) - 1));
	dash = spec.len ? memchr(spec.data, '-', spec.len) : NULL;
	if (!dash || memchr(spec.data, ',', spec.len))
		return RANGE_WHOLE;
	struct str before = { spec.data, (size_t)(dash - spec.data) };
	struct str after = { dash + 1, spec.len - before.len - 1 };

	if (before.len == 0)
		return parse_suffix(after, size, ret);
	if (parse_position(before, &first) < 0)
		return RANGE_WHOLE;
	if (after.len > 0 && (parse_position(after, &last) < 0 || last < first))
		return RANGE_WHOLE;
	if (first >= size)
		return RANGE_NOTHING;
	if (last >= size)
		last = size - 1;
	ret->first = first;
	ret->length = last - first + 1;
	return RANGE_PART;
}

void etag_format(char dst[ETAG_SIZE], uint64_t inode, uint64_t mtime_ns, uint64_t size)
{
	char version[FILE_VERSION_SIZE];

	file_version(version, inode, mtime_ns, size);
	(void)str_format(dst, ETAG_SIZE, "\"%s\"", version);
}

bool etag_in(const char *header, const char *etag, bool weak)
{
	struct str rest = str_of(header), one;

	while (str_split(&rest, ',', &one)) {
		one = str_trim(one);
		if (str_is(one, "*"))
			return true;
		if (weak && str_starts(one, "W/"))
			one = (struct str){ one.data + 2, one.len - 2 };
		if (str_is(one, etag))
			return true;
	}
	return false;
}

void http_date_format(char dst[HTTP_DATE_SIZE], int64_t wall_s)
{
	static const char days[][4] = { "Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat" };
	static const char months[][4] = { "Jan", "Feb", "Mar", "Apr", "May", "Jun",
					  "Jul", "Aug", "Sep", "Oct", "Nov", "Dec" };
	time_t t = (time_t)wall_s;
	struct tm tm;

	/* A box may give its files any time: what HTTP cannot say is said as the epoch. */
	if (!gmtime_r(&t, &tm) || tm.tm_year + 1900 < 0 || tm.tm_year + 1900 > 9999)
		(void)gmtime_r(&(time_t){ 0 }, &tm);
	(void)str_format(dst, HTTP_DATE_SIZE, "%s, %02d %s %04d %02d:%02d:%02d GMT",
			 days[tm.tm_wday], tm.tm_mday, months[tm.tm_mon], tm.tm_year + 1900,
			 tm.tm_hour, tm.tm_min, tm.tm_sec);
}

int http_date_parse(const char *text, int64_t *ret_wall_s)
{
	struct tm tm = { 0 };
	const char *end = strptime(text, "%a, %d %b %Y %H:%M:%S GMT", &tm);

	if (!end || *end != '\0')
		return -EINVAL;
	*ret_wall_s = (int64_t)timegm(&tm);
	return 0;
}
